//! Collects the facts for `ralph doctor --bundle`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::config::{LoadedConfig, flatten};
use crate::doctor::{BundleFacts, BundleSetting, RunLogFacts, bundle};
use crate::files::{self, FileError, Links};
use crate::ok_or_log;
use crate::store::{Project, RunIndex, debug_log_of};

use super::context::Context;
use super::setting_text::{origin_text, value_text};

/// Maximum length of the part of the debug log that the bundle contains.
const MAX_LOG_BYTES: u64 = 512 << 10;

/// The text of the bundle with these findings.
pub(super) fn bundle_text(context: &Context, loaded: Option<&LoadedConfig>, findings: String) -> String {
    let environment = context.host.environment();
    let variables = environment.iter().filter_map(|(name, value)| {
        let name = name.to_str().filter(|name| name.starts_with("RALPH_"))?;
        Some((name.to_owned(), value.to_string_lossy().into_owned()))
    });
    let facts = BundleFacts {
        ralph: env!("CARGO_PKG_VERSION"),
        system: system(),
        programs: programs(context),
        findings,
        settings: loaded.map(settings).unwrap_or_default(),
        variables: variables.collect(),
        run: context.project().ok().and_then(|project| last_log(&project)),
    };
    let home = std::env::var_os("HOME").map(PathBuf::from);
    bundle(&facts, &context.host.secrets(), home.as_deref())
}

fn system() -> String {
    let uname = rustix::system::uname();
    let parts = [uname.sysname(), uname.release(), uname.machine()];
    parts.map(|part| part.to_string_lossy()).join(" ")
}

fn programs(context: &Context) -> Vec<(&'static str, String)> {
    let probe = context.probe();
    let version = |name: &'static str| {
        let version = match probe.find(name) {
            None => "not found".to_owned(),
            Some(program) => probe.version(&program).unwrap_or_else(|error| error.to_string()),
        };
        (name, version)
    };
    ["git", "bash"].map(version).to_vec()
}

fn settings(loaded: &LoadedConfig) -> Vec<BundleSetting> {
    let values = serde_json::to_value(&loaded.settings).unwrap_or_default();
    let settings = flatten(&values).into_iter().map(|(key, value)| BundleSetting {
        value: value_text(value),
        origin: origin_text(&loaded.origin(&key)),
        key,
    });
    settings.collect()
}

/// The debug log of the newest run that has one.
fn last_log(project: &Project) -> Option<RunLogFacts> {
    let index = RunIndex::load(project).without_legacy();
    index.newest_first().find_map(|id| {
        let path = debug_log_of(&project.runs().join(id));
        let (log, omitted) = match read_end(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => ok_or_log!(read, "cannot read {}", path.display()),
        }?;
        let id = id.to_owned();
        Some(RunLogFacts { id, log, omitted })
    })
}

/// The last lines of a file, and the number of bytes before them.
fn read_end(path: &Path) -> io::Result<(String, u64)> {
    let mut file: File = files::open(path, Links::Refuse).map_err(FileError::into_io)?;
    let start = file.metadata()?.len().saturating_sub(MAX_LOG_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(MAX_LOG_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // The first line may be a part of one.
    let skipped = if start > 0 {
        text.find('\n').map_or(0, |end| end + 1)
    } else {
        0
    };
    Ok((text[skipped..].to_owned(), start + skipped as u64))
}
