//! Runs driver scripts in bash. Each request starts a short-lived bash process that sources the script, calls hooks
//! and prints frames. A timeout bounds every request.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::event::ProcessEnd;
use crate::process::{self, Supervisors};

use super::DriverError;
use super::frames::{self, Frame};

const HOST_SCRIPT: &str = include_str!("host.sh");
/// Twice the maximum size of a command line, and more than any description needs.
const MAX_OUTPUT_BYTES: usize = 8 << 20;
const MAX_STDERR_BYTES: usize = 2000;

/// The bash program and how to start it.
#[derive(Debug, Clone)]
pub struct DriverHost {
    pub bash: PathBuf,
    pub supervisors: Supervisors,
    pub cwd: PathBuf,
    /// Limit for one request, including all its hooks.
    pub timeout: Duration,
}

/// A request to the host script.
#[derive(Debug, Clone, Copy)]
pub(super) enum HostRequest<'a> {
    Describe,
    /// Like `Describe`, and also checks whether the agent's program is available.
    Check,
    Build {
        prompt_file: &'a Path,
        context: &'a str,
        session: &'a str,
    },
    /// Calls one hook that reads an output file.
    Session {
        hook: &'a str,
        output: &'a Path,
    },
}

/// The frames and stderr of one request.
#[derive(Debug)]
pub(super) struct HostReply {
    pub(super) frames: Vec<Frame>,
    pub(super) stderr: String,
}

impl DriverHost {
    pub(super) fn send(
        &self,
        script: &Path,
        variables: &[(&str, OsString)],
        request: HostRequest<'_>,
    ) -> Result<HostReply, DriverError> {
        let captured = process::capture(
            &self.supervisors,
            &self.spec(script, variables, request),
            self.bounds(),
        )?;
        let stderr = stderr_tail(&captured.stderr);
        let path = script.to_owned();
        if let Some(omitted) = captured.stdout_omitted {
            let frames = frames::parse(&captured.stdout[..omitted.at]);
            return Err(DriverError::OutputTooLarge {
                path,
                hook: last_hook(&frames),
            });
        }
        let frames = frames::parse(&captured.stdout);
        let Some(end) = captured.end else {
            let (hook, seconds) = (last_hook(&frames), self.timeout.as_secs());
            return Err(DriverError::TimedOut { path, hook, seconds });
        };
        if !matches!(frames.first(), Some(Frame::Hello { .. })) {
            let bash = self.bash.clone();
            return Err(DriverError::NotBash { bash, end, stderr });
        }
        if frames.last() != Some(&Frame::End) {
            let hook = last_hook(&frames);
            return Err(DriverError::Exited {
                path,
                hook,
                end,
                stderr,
            });
        }
        Ok(HostReply { frames, stderr })
    }

    fn bounds(&self) -> process::Bounds {
        process::Bounds {
            timeout: self.timeout,
            grace: Duration::from_millis(200),
            max_bytes: MAX_OUTPUT_BYTES,
        }
    }

    fn spec(
        &self,
        script: &Path,
        variables: &[(&str, OsString)],
        request: HostRequest<'_>,
    ) -> process::ProcessSpec {
        let mut args: Vec<OsString> = [
            "--norc",
            "--noprofile",
            "-p",
            "-c",
            HOST_SCRIPT,
            "ralph",
            request.name(),
        ]
        .iter()
        .map(OsString::from)
        .collect();
        args.push(script.into());
        args.push(variables.len().to_string().into());
        args.extend(variables.iter().map(|(name, value)| {
            let mut assignment = OsString::from(name);
            assignment.push("=");
            assignment.push(value);
            assignment
        }));
        match request {
            HostRequest::Describe | HostRequest::Check => {}
            HostRequest::Build {
                prompt_file,
                context,
                session,
            } => {
                args.extend(
                    [prompt_file.as_os_str(), OsStr::new(context), OsStr::new(session)].map(OsString::from),
                );
            }
            HostRequest::Session { hook, output } => args.extend([OsString::from(hook), output.into()]),
        }
        process::ProcessSpec {
            program: self.bash.clone(),
            args,
            environment: process::Environment::default(),
            cwd: self.cwd.clone(),
            stdin: process::Stdin::Null,
            stdout: process::Transport::Pipe,
            confinement: None,
        }
    }
}

impl HostRequest<'_> {
    fn name(self) -> &'static str {
        match self {
            Self::Describe => "describe",
            Self::Check => "check",
            Self::Build { .. } => "build",
            Self::Session { .. } => "session",
        }
    }
}

impl HostReply {
    /// The exit status and output of a hook, if the script defines it.
    pub(super) fn text(&self, hook: &str) -> Option<(u32, &[u8])> {
        self.frames.iter().find_map(|frame| match frame {
            Frame::Text {
                hook: name,
                status,
                text,
            } if name == hook => Some((*status, text.as_slice())),
            _ => None,
        })
    }

    pub(super) fn flag(&self, hook: &str) -> Option<bool> {
        self.frames.iter().find_map(|frame| match frame {
            Frame::Flag { hook: name, status } if name == hook => Some(*status == 0),
            _ => None,
        })
    }

    pub(super) fn done(&self, hook: &str) -> Option<u32> {
        self.frames.iter().find_map(|frame| match frame {
            Frame::Done { hook: name, status } if name == hook => Some(*status),
            _ => None,
        })
    }

    pub(super) fn has(&self, hook: &str) -> bool {
        self.frames
            .iter()
            .any(|frame| matches!(frame, Frame::Has(name) if name == hook))
    }

    pub(super) fn array(&self, name: &str) -> Vec<OsString> {
        let items = self.frames.iter().find_map(|frame| match frame {
            Frame::Array { name: array, items } if array == name => Some(items),
            _ => None,
        });
        items
            .into_iter()
            .flatten()
            .map(|item| OsString::from_vec(item.clone()))
            .collect()
    }

    pub(super) fn missing(&self) -> Vec<String> {
        let missing = self.frames.iter().filter_map(|frame| match frame {
            Frame::Missing(hook) => Some(hook.clone()),
            _ => None,
        });
        missing.collect()
    }
}

fn last_hook(frames: &[Frame]) -> String {
    let begun = frames.iter().rev().find_map(|frame| match frame {
        Frame::Begin(hook) => Some(hook.as_str()),
        _ => None,
    });
    match begun {
        None | Some("source") => "the script".to_owned(),
        Some(hook) => hook.to_owned(),
    }
}

/// The end of stderr, which usually contains the reason.
fn stderr_tail(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let text = text.trim();
    text[text.ceil_char_boundary(text.len().saturating_sub(MAX_STDERR_BYTES))..].to_owned()
}

/// Describes how a hook ended the shell.
pub(super) fn describe_exit(end: ProcessEnd) -> String {
    match end {
        ProcessEnd::Exited { code } => format!("called `exit {code}`"),
        other => format!("terminated the shell ({other})"),
    }
}
