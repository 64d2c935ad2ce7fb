//! Finds programs in PATH and runs `--version`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::panic_hook::PanicScope;
use crate::process::{self, Supervisors};

use super::Unusable;

/// Some CLIs take six seconds to print their version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(15);

/// Finds programs and queries their versions.
pub trait Probe: Send + Sync {
    fn find(&self, program: &str) -> Option<PathBuf>;

    /// The first line of the output of `--version`.
    fn version(&self, program: &Path) -> Result<String, Unusable>;

    /// The scope of the threads that call `version`.
    fn panics(&self) -> PanicScope {
        PanicScope::detached()
    }

    /// The supervisors and working directory for driver scripts. `None` for a fake probe in tests.
    fn script_host(&self) -> Option<(Supervisors, PathBuf)> {
        None
    }
}

/// Searches the user's PATH.
#[derive(Debug)]
pub struct PathProbe {
    pub path: Option<OsString>,
    pub cwd: PathBuf,
    pub supervisors: Supervisors,
}

impl Probe for PathProbe {
    fn find(&self, program: &str) -> Option<PathBuf> {
        // A relative entry of PATH would let a repository bring its own agent.
        let path = self.path.as_ref()?;
        let entries = std::env::split_paths(path).filter(|entry| entry.is_absolute());
        let path = std::env::join_paths(entries).ok()?;
        which::which_in(program, Some(path), &self.cwd).ok()
    }

    fn script_host(&self) -> Option<(Supervisors, PathBuf)> {
        Some((self.supervisors.clone(), self.cwd.clone()))
    }

    fn panics(&self) -> PanicScope {
        self.supervisors.panics().clone()
    }

    fn version(&self, program: &Path) -> Result<String, Unusable> {
        let spec = process::ProcessSpec {
            program: program.to_owned(),
            args: vec!["--version".into()],
            environment: process::Environment::default(),
            cwd: self.cwd.clone(),
            stdin: process::Stdin::Null,
            stdout: process::Transport::Pipe,
            confinement: None,
        };
        let bounds = process::Bounds {
            timeout: VERSION_TIMEOUT,
            grace: Duration::from_millis(200),
            max_bytes: 4096,
        };
        let captured =
            process::capture(&self.supervisors, &spec, bounds).map_err(|error| Unusable::CouldNotStart {
                reason: error.to_string(),
            })?;
        match captured.end {
            None => Err(Unusable::TimedOut {
                seconds: VERSION_TIMEOUT.as_secs(),
            }),
            Some(end) if !end.success() => Err(Unusable::Refused { end }),
            Some(_) => {
                let text = String::from_utf8_lossy(&captured.stdout);
                Ok(text.lines().next().unwrap_or_default().trim().to_owned())
            }
        }
    }
}
