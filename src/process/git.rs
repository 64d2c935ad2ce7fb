//! Runs git so that nothing a repository configures is executed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::{
    Bounds, Captured, Environment, OutputReader, ProcessError, ProcessSpec, Stdin, Supervisors, Transport,
    capture,
};

/// Settings that override what a repository, or a directory that poses as a bare one, could configure.
const SETTINGS: &[(&str, &str)] = &[
    ("safe.bareRepository", "explicit"),
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.untrackedCache", "false"),
    ("core.sshCommand", "false"),
    ("core.alternateRefsCommand", ""),
    ("core.pager", "cat"),
    ("credential.helper", ""),
    ("diff.external", ""),
    ("protocol.allow", "never"),
];

const VARIABLES: &[(&str, &str)] = &[
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("LC_ALL", "C"),
];

/// Runs a git command that only reads. Filters, hooks, pagers and other programs named in git's configuration do not
/// run, and `GIT_*` variables of ralph's own environment do not redirect it.
pub fn read_git(
    program: &Path,
    supervisors: &Supervisors,
    cwd: &Path,
    args: &[&OsStr],
    bounds: Bounds,
) -> Result<Captured, ProcessError> {
    let mut settings: Vec<(OsString, OsString)> = SETTINGS
        .iter()
        .map(|(key, value)| (key.into(), value.into()))
        .collect();
    let run = |args: &[&OsStr], settings: &[(OsString, OsString)]| {
        let spec = ProcessSpec {
            program: PathBuf::from(program),
            args: args.iter().map(OsString::from).collect(),
            environment: environment(supervisors, settings),
            cwd: cwd.to_owned(),
            stdin: Stdin::Null,
            stdout: Transport::Pipe,
            confinement: None,
        };
        capture(supervisors, &spec, bounds)
    };
    // Only `status` compares file contents, which is when git runs clean filters.
    if args.first().is_some_and(|command| *command == "status") {
        let listing = ["config", "--list", "--name-only", "-z"].map(OsStr::new);
        let names = run(&listing, &settings)?;
        if !names.end.is_some_and(|end| end.success()) || names.stdout_omitted.is_some() {
            return Ok(names);
        }
        settings.extend(without_filters(&names.stdout));
    }
    run(args, &settings)
}

/// Settings of ralph's own stores, in addition to `SETTINGS`.
const STORE_SETTINGS: &[(&str, &str)] = &[
    // Names that are invalid on other systems can still be stored.
    ("core.protectNTFS", "false"),
    ("core.protectHFS", "false"),
    ("core.compression", "1"),
    // Every import stays one pack.
    ("fastimport.unpackLimit", "1"),
    ("gc.auto", "0"),
];

/// A git repository that only ralph writes, and the git that it calls there.
#[derive(Debug, Clone)]
pub struct GitStore {
    pub program: PathBuf,
    pub supervisors: Supervisors,
    pub directory: PathBuf,
}

impl GitStore {
    /// Starts a git command in the store. The user's and the system's configuration do not apply.
    pub fn start<'a>(
        &self,
        args: impl IntoIterator<Item = &'a OsStr>,
        stdin: Stdin,
    ) -> Result<OutputReader, ProcessError> {
        let settings: Vec<(OsString, OsString)> = SETTINGS
            .iter()
            .chain(STORE_SETTINGS)
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
        let mut environment = environment(&self.supervisors, &settings);
        let isolated = [("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")];
        environment
            .set
            .extend(isolated.map(|(name, value)| (name.into(), value.into())));
        let spec = ProcessSpec {
            program: self.program.clone(),
            args: [OsStr::new("--git-dir=.")]
                .into_iter()
                .chain(args)
                .map(OsString::from)
                .collect(),
            environment,
            cwd: self.directory.clone(),
            stdin,
            stdout: Transport::Pipe,
            confinement: None,
        };
        OutputReader::start(&self.supervisors, &spec)
    }
}

/// A git command that changes a repository: its arguments, its stdin and further variables.
#[derive(Debug, Clone)]
pub struct GitCommand {
    pub cwd: PathBuf,
    pub args: Vec<OsString>,
    pub stdin: Option<Vec<u8>>,
    pub variables: Vec<(OsString, OsString)>,
}

/// Runs a git command that may write. Hooks, signing programs and maintenance do not run. Filters do, because files that
/// are stored by a filter would be wrong without it.
pub fn run_git(
    program: &Path,
    supervisors: &Supervisors,
    command: GitCommand,
    bounds: Bounds,
) -> Result<Captured, ProcessError> {
    let unchanged = SETTINGS.iter().filter(|(key, _)| *key != "protocol.allow");
    let own = [
        ("commit.gpgSign", "false"),
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
    ];
    let settings: Vec<(OsString, OsString)> = unchanged
        .chain(&own)
        .map(|(key, value)| (key.into(), value.into()))
        .collect();
    let mut environment = environment(supervisors, &settings);
    // Without an identity in the configuration, the user may have set it in the environment.
    environment.remove.retain(|name| {
        let name = name.as_bytes();
        !name.starts_with(b"GIT_AUTHOR_") && !name.starts_with(b"GIT_COMMITTER_")
    });
    environment.set.extend(command.variables);
    let spec = ProcessSpec {
        program: PathBuf::from(program),
        args: command.args,
        environment,
        cwd: command.cwd,
        stdin: command.stdin.map_or(Stdin::Null, Stdin::Bytes),
        stdout: Transport::Pipe,
        confinement: None,
    };
    capture(supervisors, &spec, bounds)
}

/// Settings that switch off every filter driver among these configuration keys.
fn without_filters(keys: &[u8]) -> Vec<(OsString, OsString)> {
    let mut drivers: Vec<&[u8]> = keys
        .split(|byte| *byte == 0)
        .filter_map(|key| {
            let name = key.strip_prefix(b"filter.")?;
            let end = name.iter().rposition(|byte| *byte == b'.')?;
            Some(&name[..end])
        })
        .collect();
    drivers.sort_unstable();
    drivers.dedup();
    let values = [
        ("clean", ""),
        ("smudge", ""),
        ("process", ""),
        ("required", "false"),
    ];
    let off = |driver: &[u8]| {
        values.map(|(key, value)| {
            let key = [b"filter.", driver, b".", key.as_bytes()].concat();
            (OsString::from_vec(key), OsString::from(value))
        })
    };
    drivers.into_iter().flat_map(off).collect()
}

/// The settings go through the environment: unlike `-c`, it allows every character in a key.
fn environment(supervisors: &Supervisors, settings: &[(OsString, OsString)]) -> Environment {
    let inherited = supervisors.environment().iter().map(|(name, _)| name);
    let mut set: Vec<(OsString, OsString)> = VARIABLES
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    set.push(("GIT_CONFIG_COUNT".into(), settings.len().to_string().into()));
    for (index, (key, value)) in settings.iter().enumerate() {
        set.push((format!("GIT_CONFIG_KEY_{index}").into(), key.clone()));
        set.push((format!("GIT_CONFIG_VALUE_{index}").into(), value.clone()));
    }
    let overridden = |name: &OsString| set.iter().any(|(variable, _)| variable == name);
    let remove = inherited
        .filter(|name| name.as_bytes().starts_with(b"GIT_") && !overridden(name))
        .cloned()
        .collect();
    Environment { remove, set }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filter_driver_is_switched_off_whatever_its_name() {
        let keys = b"core.bare\0filter.a.clean\0filter.a.smudge\0filter.b=c.d.process\0";
        let off = without_filters(keys);
        let keys: Vec<&str> = off.iter().filter_map(|(key, _)| key.to_str()).collect();
        assert_eq!(off.len(), 8);
        assert!(keys.contains(&"filter.a.clean") && keys.contains(&"filter.b=c.d.process"));
    }
}
