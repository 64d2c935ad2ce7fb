//! A project with a configuration, and scripts for the fake agent that works in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

pub(crate) struct Place {
    directory: TempDir,
}

/// What the program said, and how it ended.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Told {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let place = Self { directory };
        for name in ["work", "stage", "home"] {
            fs::create_dir(place.path(name)).expect("a directory");
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.path("work")
    }

    /// A configuration by which the fake agent is the agent.
    pub(crate) fn configure(&self, yaml: &str) {
        let agent = Path::new(env!("CARGO_BIN_EXE_fake-agent"));
        let cli = format!(
            "backend: custom\n  command: {}\n  prompt_mode: stdin\n",
            agent.display()
        );
        let yaml = match yaml.strip_prefix("cli:\n") {
            Some(rest) => format!("cli:\n  {cli}{rest}"),
            None => format!("cli:\n  {cli}{yaml}"),
        };
        fs::write(self.path("work/ralph.yml"), yaml).expect("a configuration");
    }

    pub(crate) fn script(&self, invocation: usize, steps: &str) {
        fs::write(self.path(&format!("stage/{invocation}.script")), steps).expect("a script");
    }

    /// Calls the program. It ends by itself: its own limits see to that.
    pub(crate) fn ralph(&self, arguments: &[&str]) -> Told {
        let output = Command::new(env!("CARGO_BIN_EXE_ralph"))
            .args(arguments)
            .current_dir(self.path("work"))
            .env("FAKE_AGENT", self.path("stage"))
            .env("HOME", self.path("home"))
            .env_remove("XDG_CONFIG_HOME")
            .env("RALPH_MAX_RUNTIME_SECONDS", "60")
            .stdin(Stdio::null())
            .output()
            .expect("ralph starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Told {
            code: output.status.code().unwrap_or(-1),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    pub(crate) fn was_called(&self, invocation: usize) -> bool {
        self.path(&format!("stage/{invocation}.claimed")).exists()
    }

    pub(crate) fn prompt(&self, invocation: usize) -> String {
        fs::read_to_string(self.path(&format!("stage/{invocation}.stdin"))).expect("a prompt")
    }

    pub(crate) fn agent_variable(&self, invocation: usize, name: &str) -> Option<String> {
        let environment = fs::read(self.path(&format!("stage/{invocation}.env"))).expect("an environment");
        let text = String::from_utf8_lossy(&environment).into_owned();
        text.split('\0')
            .find_map(|pair| pair.strip_prefix(&format!("{name}=")).map(str::to_owned))
    }
}
