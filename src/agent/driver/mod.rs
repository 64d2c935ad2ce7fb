//! Driver scripts: bash files whose hooks describe an agent and build its command lines.
//!
//! The hook contract is the one of bmalph and similar tools, so their scripts work unchanged. `find` locates scripts
//! and `host` runs bash.

mod error;
mod find;
mod frames;
mod host;
mod session;
mod tools;

pub use error::DriverError;
pub use find::{DriverDirs, DriverScript, EMBEDDED};
pub use host::DriverHost;
pub use tools::check_tools;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::config::Settings;
use crate::policy::Session;

use host::{HostReply, HostRequest};

/// Limit for all hooks of one request. A hook that runs the agent's program may take seconds.
pub const HOOK_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of the text that one hook may print.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// Shown after a permission denial if the driver defines no `driver_permission_denial_help`.
const DEFAULT_DENIAL_HELP: &str = "The agent was denied a tool that it needs. Allow it in the agent's own settings, or in \
                            driver.allowed_tools of ralph.yml (ALLOWED_TOOLS in .ralphrc).";

/// The shell variables that driver scripts read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverVariables {
    pub output_format: String,
    pub permission_mode: String,
    pub allowed_tools: String,
    pub use_continue: String,
    pub ralphrc: PathBuf,
}

impl DriverVariables {
    pub fn from_settings(settings: &Settings, ralphrc: Option<&Path>) -> Self {
        let driver = &settings.driver;
        Self {
            output_format: driver.output_format.as_str().to_owned(),
            permission_mode: driver.permission_mode.clone().unwrap_or_default(),
            allowed_tools: driver.allowed_tools.clone().unwrap_or_default(),
            use_continue: (settings.session == Session::Continue).to_string(),
            ralphrc: ralphrc.map_or_else(|| ".ralphrc".into(), Path::to_owned),
        }
    }

    fn assignments(&self) -> Vec<(&'static str, OsString)> {
        vec![
            ("CLAUDE_OUTPUT_FORMAT", self.output_format.clone().into()),
            ("CLAUDE_PERMISSION_MODE", self.permission_mode.clone().into()),
            ("CLAUDE_ALLOWED_TOOLS", self.allowed_tools.clone().into()),
            ("CLAUDE_USE_CONTINUE", self.use_continue.clone().into()),
            ("RALPHRC_FILE", self.ralphrc.clone().into()),
        ]
    }
}

/// A loaded driver script and its description.
#[derive(Debug)]
pub struct Driver {
    pub name: String,
    pub display_name: String,
    /// The agent's program, as the driver names it.
    pub binary: String,
    /// Path of the script, or a note that it is built in.
    pub location: String,
    pub min_version: Option<String>,
    /// The jq filter for the agent's output. `None`, if the driver defines none, means `empty`.
    pub filter: Option<String>,
    pub permission_denial_help: String,
    pub tools: Vec<String>,
    pub supports: DriverCapabilities,
    /// The result of `driver_check_available`, if it was called.
    pub available: Option<bool>,
    /// Set if sourcing the script failed although all required hooks are defined.
    pub source_warning: Option<String>,
    host: DriverHost,
    variables: DriverVariables,
    script: PathBuf,
    /// Keeps the unpacked file of a built-in script alive.
    _unpacked: Option<TempDir>,
}

/// Optional features that a driver supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverCapabilities {
    pub tool_allowlist: Supported,
    pub sessions: Supported,
    pub live_output: Supported,
    pub live_command: Supported,
    pub session_extractor: Supported,
    pub session_fallback: Supported,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Supported {
    Yes,
    No,
}

impl From<bool> for Supported {
    fn from(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// What to ask a driver when it is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverQuery {
    Describe,
    /// Also check whether the agent's program is available.
    Check,
}

/// The result of `driver_build_command`, successful or not.
#[derive(Debug, PartialEq, Eq)]
pub struct BuiltCommand {
    pub status: u32,
    pub argv: Vec<OsString>,
    /// `None` if the driver does not prepare a live command.
    pub live_status: Option<u32>,
    pub live_argv: Vec<OsString>,
    pub stderr: String,
}

impl Driver {
    /// Sources the script and reads everything that does not depend on a prompt, in one request.
    pub fn load(
        script: &DriverScript,
        host: DriverHost,
        variables: DriverVariables,
        query: DriverQuery,
    ) -> Result<Self, DriverError> {
        let (path, unpacked) = unpack(script)?;
        let request = match query {
            DriverQuery::Describe => HostRequest::Describe,
            DriverQuery::Check => HostRequest::Check,
        };
        let reply = host.send(&path, &variables.assignments(), request)?;
        let reader = ReplyReader {
            location: script.location(),
            reply,
        };
        reader.require_hooks()?;
        let tools = reader.reply.array("VALID_TOOL_PATTERNS");
        Ok(Self {
            name: reader.required("driver_name")?,
            display_name: reader.required("driver_display_name")?,
            binary: reader.required("driver_cli_binary")?,
            min_version: reader.optional("driver_min_version")?,
            filter: reader.optional("driver_stream_filter")?,
            permission_denial_help: reader
                .optional("driver_permission_denial_help")?
                .unwrap_or_else(|| DEFAULT_DENIAL_HELP.to_owned()),
            tools: tools
                .iter()
                .map(|tool| tool.to_string_lossy().into_owned())
                .collect(),
            supports: reader.supports(),
            available: reader.reply.flag("driver_check_available"),
            source_warning: reader.source_warning(),
            location: reader.location,
            host,
            variables,
            script: path,
            _unpacked: unpacked,
        })
    }

    /// Builds the command line for one prompt.
    pub fn build(
        &self,
        prompt_file: &Path,
        context: &str,
        session: &str,
    ) -> Result<BuiltCommand, DriverError> {
        let mut variables = self.variables.assignments();
        variables.push(("DRIVER_DISPLAY_NAME", self.display_name.clone().into()));
        variables.push(("CLAUDE_CODE_CMD", self.binary.clone().into()));
        let request = HostRequest::Build {
            prompt_file,
            context,
            session,
        };
        let reply = self.host.send(&self.script, &variables, request)?;
        Ok(BuiltCommand {
            status: reply.done("driver_build_command").unwrap_or(1),
            argv: reply.array("CLAUDE_CMD_ARGS"),
            live_status: reply.done("driver_prepare_live_command"),
            live_argv: reply.array("LIVE_CMD_ARGS"),
            stderr: reply.stderr,
        })
    }

    /// The command line to start: the live one if the driver supports live output. If a hook fails, the arrays that
    /// it set are ignored.
    pub fn command(&self, prompt_file: &Path, session: &str) -> Result<Vec<OsString>, DriverError> {
        let built = self.build(prompt_file, "", session)?;
        let failed = |hook: &'static str, status| DriverError::Hook {
            path: self.location.clone(),
            hook: hook.to_owned(),
            status,
            stderr: built.stderr.clone(),
        };
        if built.status != 0 {
            return Err(failed("driver_build_command", built.status));
        }
        let supports_live = match self.variables.output_format.as_str() {
            // The live command is for JSON lines.
            "text" => Supported::No,
            _ => self.supports.live_output,
        };
        let argv = match (supports_live, built.live_status) {
            (Supported::No, _) => built.argv,
            (Supported::Yes, None | Some(0)) => built.live_argv,
            (Supported::Yes, Some(status)) => return Err(failed("driver_prepare_live_command", status)),
        };
        match argv.first() {
            Some(program) if !program.is_empty() => Ok(argv),
            _ => Err(DriverError::NoCommand {
                path: self.location.clone(),
            }),
        }
    }

    /// True if the driver supports sessions and the settings ask to resume them.
    pub fn resumes_sessions(&self) -> bool {
        self.supports.sessions == Supported::Yes && self.variables.use_continue == "true"
    }
}

/// Extracts values from a reply and creates errors that name the script.
struct ReplyReader {
    location: String,
    reply: HostReply,
}

impl ReplyReader {
    fn require_hooks(&self) -> Result<(), DriverError> {
        let hooks = self.reply.missing();
        if hooks.is_empty() {
            return Ok(());
        }
        Err(DriverError::Missing {
            path: self.location.clone(),
            hooks,
            stderr: self.reply.stderr.clone(),
        })
    }

    /// A nonzero status alone is no problem, because a script may end with a failing test. With stderr output it is.
    fn source_warning(&self) -> Option<String> {
        let status = self.reply.done("source").filter(|status| *status != 0)?;
        let stderr = &self.reply.stderr;
        (!stderr.is_empty()).then(|| {
            format!(
                "driver {} may not have loaded completely (status {status}); stderr: {stderr}",
                self.location
            )
        })
    }

    fn required(&self, hook: &str) -> Result<String, DriverError> {
        let failed = |status| DriverError::Hook {
            path: self.location.clone(),
            hook: hook.to_owned(),
            status,
            stderr: self.reply.stderr.clone(),
        };
        match self.reply.text(hook) {
            Some((0, _)) => match self.optional(hook)? {
                Some(text) => Ok(text),
                None => Err(DriverError::EmptyOutput {
                    path: self.location.clone(),
                    hook: hook.to_owned(),
                }),
            },
            Some((status, _)) => Err(failed(status)),
            None => Err(failed(127)),
        }
    }

    /// A hook that fails or prints nothing counts as undefined.
    fn optional(&self, hook: &str) -> Result<Option<String>, DriverError> {
        let Some((0, text)) = self.reply.text(hook) else {
            return Ok(None);
        };
        if text.len() > MAX_TEXT_BYTES {
            return Err(DriverError::OutputTooLarge {
                path: self.location.clone().into(),
                hook: hook.to_owned(),
            });
        }
        let text = String::from_utf8_lossy(text).trim().to_owned();
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    fn supports(&self) -> DriverCapabilities {
        let flag = |hook: &str, undefined: bool| Supported::from(self.reply.flag(hook).unwrap_or(undefined));
        let has = |hook: &str| Supported::from(self.reply.has(hook));
        DriverCapabilities {
            tool_allowlist: flag("driver_supports_tool_allowlist", false),
            sessions: flag("driver_supports_sessions", true),
            live_output: flag("driver_supports_live_output", true),
            live_command: has("driver_prepare_live_command"),
            session_extractor: has("driver_extract_session_id_from_output"),
            session_fallback: has("driver_fallback_session_id"),
        }
    }
}

/// Writes a built-in script to a file. Scripts need a path because some load files from their own directory.
fn unpack(script: &DriverScript) -> Result<(PathBuf, Option<TempDir>), DriverError> {
    match script {
        DriverScript::File(path) => Ok((path.clone(), None)),
        DriverScript::Embedded { name, text } => {
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
