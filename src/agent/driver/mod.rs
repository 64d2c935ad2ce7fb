//! Driver scripts: bash files that describe an agent's command line by hooks. The contract is that of the scripts which
//! other Ralphs ship; they are sourced unchanged. Which file a name means is in `find`, bash itself in `host`.

mod error;
mod find;
mod frames;
mod host;
mod session;
mod tools;

pub use error::DriverError;
pub use find::{EMBEDDED, Places, Script};
pub use host::Host;
pub use tools::check_tools;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::config::{Session, Settings};

use host::{Answer, Task};

/// For all hooks of one question together; a hook that asks its program something may take seconds.
pub const HOOK_TIMEOUT: Duration = Duration::from_secs(10);
/// No name, and no text for people, is longer.
const LONGEST_TEXT: usize = 64 * 1024;
/// What the contract wants printed when a driver has nothing of its own to say.
const DEFAULT_HELP: &str = "The agent was refused a tool that it needs. Allow it in the agent's own settings, or in \
                            driver.allowed_tools of ralph.yml (ALLOWED_TOOLS in .ralphrc).";

/// The variables that a driver reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Globals {
    pub output_format: String,
    pub permission_mode: String,
    pub allowed_tools: String,
    pub use_continue: String,
    pub ralphrc: PathBuf,
}

impl Globals {
    pub fn of(settings: &Settings, ralphrc: Option<&Path>) -> Self {
        let driver = &settings.driver;
        Self {
            output_format: driver.output_format.word().to_owned(),
            permission_mode: driver.permission_mode.clone().unwrap_or_default(),
            allowed_tools: driver.allowed_tools.clone().unwrap_or_default(),
            use_continue: (settings.session == Session::Continue).to_string(),
            ralphrc: ralphrc.map_or_else(|| ".ralphrc".into(), Path::to_owned),
        }
    }

    fn variables(&self) -> Vec<(&'static str, OsString)> {
        vec![
            ("CLAUDE_OUTPUT_FORMAT", self.output_format.clone().into()),
            ("CLAUDE_PERMISSION_MODE", self.permission_mode.clone().into()),
            ("CLAUDE_ALLOWED_TOOLS", self.allowed_tools.clone().into()),
            ("CLAUDE_USE_CONTINUE", self.use_continue.clone().into()),
            ("RALPHRC_FILE", self.ralphrc.clone().into()),
        ]
    }
}

/// A driver that was sourced, and answered.
#[derive(Debug)]
pub struct Driver {
    pub name: String,
    pub display_name: String,
    /// The program, as the driver names it.
    pub binary: String,
    pub place: String,
    pub min_version: Option<String>,
    /// The jq filter for its output; `None` if the driver defines none, which means `empty`.
    pub filter: Option<String>,
    pub denial_help: String,
    pub tools: Vec<String>,
    pub supports: Supports,
    /// What `driver_check_available` said, where it was asked.
    pub available: Option<bool>,
    /// That sourcing it went wrong, though all that must be there is there.
    pub complaint: Option<String>,
    host: Host,
    globals: Globals,
    script: PathBuf,
    /// Holds a script that comes with ralph while it is in use.
    _unpacked: Option<TempDir>,
}

/// What a driver can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Supports {
    pub tool_allowlist: Support,
    pub sessions: Support,
    pub live_output: Support,
    pub live_command: Support,
    pub session_extractor: Support,
    pub session_fallback: Support,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    Yes,
    No,
}

impl From<bool> for Support {
    fn from(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// Whether the driver's program is to be looked for as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    Describe,
    Check,
}

/// What a build gave, whether it succeeded or not.
#[derive(Debug, PartialEq, Eq)]
pub struct Built {
    pub status: u32,
    pub argv: Vec<OsString>,
    /// `None` if the driver does not prepare a live command.
    pub live_status: Option<u32>,
    pub live_argv: Vec<OsString>,
    pub stderr: String,
}

impl Driver {
    /// Sources the script and asks for all that does not depend on a prompt, in one go.
    pub fn load(script: &Script, host: Host, globals: Globals, asking: Asking) -> Result<Self, DriverError> {
        let (path, unpacked) = unpack(script)?;
        let task = match asking {
            Asking::Describe => Task::Describe,
            Asking::Check => Task::Check,
        };
        let answer = host.ask(&path, &globals.variables(), task)?;
        let reader = Reader {
            place: script.place(),
            answer,
        };
        reader.forbid_missing()?;
        let tools = reader.answer.array("VALID_TOOL_PATTERNS");
        Ok(Self {
            name: reader.required("driver_name")?,
            display_name: reader.required("driver_display_name")?,
            binary: reader.required("driver_cli_binary")?,
            min_version: reader.optional("driver_min_version")?,
            filter: reader.optional("driver_stream_filter")?,
            denial_help: reader
                .optional("driver_permission_denial_help")?
                .unwrap_or_else(|| DEFAULT_HELP.to_owned()),
            tools: tools
                .iter()
                .map(|tool| tool.to_string_lossy().into_owned())
                .collect(),
            supports: reader.supports(),
            available: reader.answer.flag("driver_check_available"),
            complaint: reader.complaint(),
            place: reader.place,
            host,
            globals,
            script: path,
            _unpacked: unpacked,
        })
    }

    /// Asks for the command line of one prompt.
    pub fn build(&self, prompt_file: &Path, context: &str, session: &str) -> Result<Built, DriverError> {
        let mut globals = self.globals.variables();
        globals.push(("DRIVER_DISPLAY_NAME", self.display_name.clone().into()));
        globals.push(("CLAUDE_CODE_CMD", self.binary.clone().into()));
        let task = Task::Build {
            prompt_file,
            context,
            session,
        };
        let answer = self.host.ask(&self.script, &globals, task)?;
        Ok(Built {
            status: answer.done("driver_build_command").unwrap_or(1),
            argv: answer.array("CLAUDE_CMD_ARGS"),
            live_status: answer.done("driver_prepare_live_command"),
            live_argv: answer.array("LIVE_CMD_ARGS"),
            stderr: answer.stderr,
        })
    }

    /// The command line that is to be started: the live one, where the driver has live output. Arrays of a call that
    /// failed are ignored.
    pub fn command(&self, prompt_file: &Path, session: &str) -> Result<Vec<OsString>, DriverError> {
        let built = self.build(prompt_file, "", session)?;
        let failed = |hook: &'static str, status| DriverError::Hook {
            path: self.place.clone(),
            hook: hook.to_owned(),
            status,
            stderr: built.stderr.clone(),
        };
        if built.status != 0 {
            return Err(failed("driver_build_command", built.status));
        }
        let argv = match (self.supports.live_output, built.live_status) {
            (Support::No, _) => built.argv,
            (Support::Yes, None | Some(0)) => built.live_argv,
            (Support::Yes, Some(status)) => return Err(failed("driver_prepare_live_command", status)),
        };
        match argv.first() {
            Some(program) if !program.is_empty() => Ok(argv),
            _ => Err(DriverError::NoCommand {
                path: self.place.clone(),
            }),
        }
    }

    /// Whether sessions are to be resumed, as the driver sees it.
    pub fn continues(&self) -> bool {
        self.supports.sessions == Support::Yes && self.globals.use_continue == "true"
    }
}

/// Takes an answer apart, and complains in the name of the script.
struct Reader {
    place: String,
    answer: Answer,
}

impl Reader {
    fn forbid_missing(&self) -> Result<(), DriverError> {
        let hooks = self.answer.missing();
        if hooks.is_empty() {
            return Ok(());
        }
        Err(DriverError::Missing {
            path: self.place.clone(),
            hooks,
            stderr: self.answer.stderr.clone(),
        })
    }

    /// A script may end with a test that fails; only with words does that mean something.
    fn complaint(&self) -> Option<String> {
        let status = self.answer.done("source").filter(|status| *status != 0)?;
        let stderr = &self.answer.stderr;
        (!stderr.is_empty()).then(|| {
            format!(
                "the driver {} was sourced with status {status}, perhaps not to its end; it said: {stderr}",
                self.place
            )
        })
    }

    fn required(&self, hook: &str) -> Result<String, DriverError> {
        let failed = |status| DriverError::Hook {
            path: self.place.clone(),
            hook: hook.to_owned(),
            status,
            stderr: self.answer.stderr.clone(),
        };
        match self.answer.text(hook) {
            Some((0, _)) => match self.optional(hook)? {
                Some(text) => Ok(text),
                None => Err(DriverError::Silent {
                    path: self.place.clone(),
                    hook: hook.to_owned(),
                }),
            },
            Some((status, _)) => Err(failed(status)),
            None => Err(failed(127)),
        }
    }

    /// A hook that fails or prints nothing is as good as none.
    fn optional(&self, hook: &str) -> Result<Option<String>, DriverError> {
        let Some((0, text)) = self.answer.text(hook) else {
            return Ok(None);
        };
        if text.len() > LONGEST_TEXT {
            return Err(DriverError::TooMuch {
                path: self.place.clone().into(),
                hook: hook.to_owned(),
            });
        }
        let text = String::from_utf8_lossy(text).trim().to_owned();
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    fn supports(&self) -> Supports {
        let flag = |hook: &str, undefined: bool| Support::from(self.answer.flag(hook).unwrap_or(undefined));
        let has = |hook: &str| Support::from(self.answer.has(hook));
        Supports {
            tool_allowlist: flag("driver_supports_tool_allowlist", false),
            sessions: flag("driver_supports_sessions", true),
            live_output: flag("driver_supports_live_output", true),
            live_command: has("driver_prepare_live_command"),
            session_extractor: has("driver_extract_session_id_from_output"),
            session_fallback: has("driver_fallback_session_id"),
        }
    }
}

/// A script must have a path: some look for what lies beside them.
fn unpack(script: &Script) -> Result<(PathBuf, Option<TempDir>), DriverError> {
    match script {
        Script::File(path) => Ok((path.clone(), None)),
        Script::Embedded { name, text } => {
            let failed = |source| DriverError::Unpack { name, source };
            let directory = crate::process::scratch("ralph-driver-").map_err(failed)?;
            let path = directory.path().join(format!("{name}.sh"));
            std::fs::File::create(&path)
                .and_then(|mut file| file.write_all(text.as_bytes()))
                .map_err(failed)?;
            Ok((path, Some(directory)))
        }
    }
}
