//! A directory with driver scripts, and a host for them. Whatever could hang has a deadline.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ralph::agent::driver::{Asking, Driver, DriverError, Globals, Host, Places};
use tempfile::TempDir;

use crate::process::stage::supervisors;

pub(crate) fn globals() -> Globals {
    Globals {
        output_format: "json".into(),
        permission_mode: String::new(),
        allowed_tools: String::new(),
        use_continue: "true".into(),
        ralphrc: ".ralphrc".into(),
    }
}

pub(crate) fn host(cwd: &Path) -> Host {
    Host {
        bash: "bash".into(),
        supervisors: supervisors(),
        cwd: cwd.to_owned(),
        timeout: Duration::from_secs(30),
    }
}

pub(crate) fn fixtures() -> Places {
    Places {
        named: Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/drivers")),
        projects: Vec::new(),
    }
}

/// A project directory with one driver `x` in it.
pub(crate) struct Project {
    pub(crate) directory: TempDir,
}

/// All that a driver must define; a test defines some of it again.
pub(crate) const WHOLE: &str = r#"
driver_name() { echo "x"; }
driver_display_name() { echo "The X"; }
driver_cli_binary() { echo "x-cli"; }
driver_valid_tools() { VALID_TOOL_PATTERNS=("Read" "Two words"); }
driver_build_command() { CLAUDE_CMD_ARGS=(x-cli --file "$1" "$2" "$3"); }
"#;

impl Project {
    pub(crate) fn with(script: impl AsRef<[u8]>) -> Self {
        let project = Self {
            directory: TempDir::new().expect("a temporary directory"),
        };
        let path = project.script();
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, script).expect("a script");
        project
    }

    /// The whole contract, and this after it.
    pub(crate) fn whole_and(more: &str) -> Self {
        Self::with(format!("{WHOLE}\n{more}\n"))
    }

    pub(crate) fn script(&self) -> PathBuf {
        self.directory.path().join(".ralph/drivers/x.sh")
    }

    pub(crate) fn places(&self) -> Places {
        Places {
            named: None,
            projects: vec![self.directory.path().to_owned()],
        }
    }

    pub(crate) fn load(&self) -> Result<Driver, DriverError> {
        self.load_by(host(self.directory.path()))
    }

    pub(crate) fn load_by(&self, host: Host) -> Result<Driver, DriverError> {
        Driver::load(&self.places().find("x")?, host, globals(), Asking::Check)
    }

    pub(crate) fn complaint(&self) -> String {
        let root = self.directory.path().display().to_string();
        let error = self.load().expect_err("a driver that cannot be loaded");
        error.to_string().replace(&root, "/project")
    }
}
