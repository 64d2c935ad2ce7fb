//! A project directory with driver scripts, and a bash host with a timeout.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ralph::agent::driver::{Driver, DriverDirs, DriverError, DriverHost, DriverQuery, DriverVariables};
use tempfile::TempDir;

use crate::process::helpers::supervisors;

pub(crate) fn variables() -> DriverVariables {
    DriverVariables {
        output_format: "json".into(),
        permission_mode: String::new(),
        allowed_tools: String::new(),
        use_continue: "true".into(),
        ralphrc: ".ralphrc".into(),
    }
}

pub(crate) fn host(cwd: &Path) -> DriverHost {
    DriverHost {
        bash: "bash".into(),
        supervisors: supervisors(),
        cwd: cwd.to_owned(),
        timeout: Duration::from_secs(30),
    }
}

pub(crate) fn fixture_dirs() -> DriverDirs {
    DriverDirs {
        configured: Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/drivers")),
        projects: Vec::new(),
    }
}

/// A project directory with one driver `x` in it.
pub(crate) struct Project {
    pub(crate) directory: TempDir,
}

/// A driver script with all required hooks. Tests append overrides.
pub(crate) const COMPLETE_DRIVER: &str = r#"
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

    /// A complete driver, followed by these lines.
    pub(crate) fn complete_driver_with(more: &str) -> Self {
        Self::with(format!("{COMPLETE_DRIVER}\n{more}\n"))
    }

    pub(crate) fn script(&self) -> PathBuf {
        self.directory.path().join(".ralph/drivers/x.sh")
    }

    pub(crate) fn dirs(&self) -> DriverDirs {
        DriverDirs {
            configured: None,
            projects: vec![self.directory.path().to_owned()],
        }
    }

    pub(crate) fn load(&self) -> Result<Driver, DriverError> {
        self.load_with(host(self.directory.path()))
    }

    pub(crate) fn load_with(&self, host: DriverHost) -> Result<Driver, DriverError> {
        Driver::load(&self.dirs().find("x")?, host, variables(), DriverQuery::Check)
    }

    pub(crate) fn load_error(&self) -> String {
        let root = self.directory.path().display().to_string();
        let error = self.load().expect_err("the driver fails to load");
        error.to_string().replace(&root, "/project")
    }
}
