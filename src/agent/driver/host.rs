//! Real bash, one short-lived process for each question: the script is sourced by its path, and what it says comes
//! back in frames. Whatever it does, there is an answer in time.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::event::ProcessEnd;
use crate::process::{self, Supervisors};

use super::DriverError;
use super::frames::{self, Frame};

const HOST: &str = include_str!("host.sh");
/// What a command line can hold, twice over, and more than any description takes.
const MOST_BYTES: usize = 8 << 20;
const STDERR_SHOWN: usize = 2000;

/// How bash is found and started.
#[derive(Debug, Clone)]
pub struct Host {
    pub bash: PathBuf,
    pub supervisors: Supervisors,
    pub cwd: PathBuf,
    /// For one question, with all its hooks.
    pub timeout: Duration,
}

/// What the host is asked to do.
#[derive(Debug, Clone, Copy)]
pub(super) enum Task<'a> {
    Describe,
    /// As describe, and whether its program is there.
    Check,
    Build {
        prompt_file: &'a Path,
        context: &'a str,
        session: &'a str,
    },
    /// One hook that reads an output file.
    Session {
        hook: &'a str,
        output: &'a Path,
    },
}

/// What it said.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) frames: Vec<Frame>,
    pub(super) stderr: String,
}

impl Host {
    pub(super) fn ask(
        &self,
        script: &Path,
        globals: &[(&str, OsString)],
        task: Task<'_>,
    ) -> Result<Answer, DriverError> {
        let captured = process::capture(
            &self.supervisors,
            &self.spec(script, globals, task),
            self.bounds(),
        )?;
        let stderr = shown(&captured.stderr);
        let path = script.to_owned();
        if let Some(omitted) = captured.stdout_omitted {
            let frames = frames::read(&captured.stdout[..omitted.at]);
            return Err(DriverError::TooMuch {
                path,
                hook: last_begun(&frames),
            });
        }
        let frames = frames::read(&captured.stdout);
        let Some(end) = captured.end else {
            let (hook, seconds) = (last_begun(&frames), self.timeout.as_secs());
            return Err(DriverError::TimedOut { path, hook, seconds });
        };
        if !matches!(frames.first(), Some(Frame::Hello { .. })) {
            let bash = self.bash.clone();
            return Err(DriverError::NotBash { bash, end, stderr });
        }
        if frames.last() != Some(&Frame::End) {
            let hook = last_begun(&frames);
            return Err(DriverError::Exited {
                path,
                hook,
                end,
                stderr,
            });
        }
        Ok(Answer { frames, stderr })
    }

    fn bounds(&self) -> process::Bounds {
        process::Bounds {
            timeout: self.timeout,
            grace: Duration::from_millis(200),
            max_bytes: MOST_BYTES,
        }
    }

    fn spec(&self, script: &Path, globals: &[(&str, OsString)], task: Task<'_>) -> process::ProcessSpec {
        let mut args: Vec<OsString> = ["--norc", "--noprofile", "-p", "-c", HOST, "ralph", task.word()]
            .iter()
            .map(OsString::from)
            .collect();
        args.push(script.into());
        args.push(globals.len().to_string().into());
        args.extend(globals.iter().map(|(name, value)| {
            let mut assignment = OsString::from(name);
            assignment.push("=");
            assignment.push(value);
            assignment
        }));
        match task {
            Task::Describe | Task::Check => {}
            Task::Build {
                prompt_file,
                context,
                session,
            } => {
                args.extend(
                    [prompt_file.as_os_str(), OsStr::new(context), OsStr::new(session)].map(OsString::from),
                );
            }
            Task::Session { hook, output } => args.extend([OsString::from(hook), output.into()]),
        }
        process::ProcessSpec {
            program: self.bash.clone(),
            args,
            environment: process::Environment::default(),
            cwd: self.cwd.clone(),
            stdin: process::Stdin::Null,
            stdout: process::Transport::Pipe,
        }
    }
}

impl Task<'_> {
    fn word(self) -> &'static str {
        match self {
            Self::Describe => "describe",
            Self::Check => "check",
            Self::Build { .. } => "build",
            Self::Session { .. } => "session",
        }
    }
}

impl Answer {
    /// What a hook printed, if it exists and succeeded.
    pub(super) fn text(&self, hook: &str) -> Option<(u32, &[u8])> {
        self.frames.iter().find_map(|frame| match frame {
            Frame::Text {
                hook: said,
                status,
                text,
            } if said == hook => Some((*status, text.as_slice())),
            _ => None,
        })
    }

    pub(super) fn flag(&self, hook: &str) -> Option<bool> {
        self.frames.iter().find_map(|frame| match frame {
            Frame::Flag { hook: said, status } if said == hook => Some(*status == 0),
            _ => None,
        })
    }

    pub(super) fn done(&self, hook: &str) -> Option<u32> {
        self.frames.iter().find_map(|frame| match frame {
            Frame::Done { hook: said, status } if said == hook => Some(*status),
            _ => None,
        })
    }

    pub(super) fn has(&self, hook: &str) -> bool {
        self.frames
            .iter()
            .any(|frame| matches!(frame, Frame::Has(said) if said == hook))
    }

    pub(super) fn array(&self, name: &str) -> Vec<OsString> {
        let items = self.frames.iter().find_map(|frame| match frame {
            Frame::Array { name: said, items } if said == name => Some(items),
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

fn last_begun(frames: &[Frame]) -> String {
    let begun = frames.iter().rev().find_map(|frame| match frame {
        Frame::Begin(hook) => Some(hook.as_str()),
        _ => None,
    });
    match begun {
        None | Some("source") => "the script itself".to_owned(),
        Some(hook) => hook.to_owned(),
    }
}

/// The end of what was printed, where the reason usually is.
fn shown(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let text = text.trim();
    text[text.ceil_char_boundary(text.len().saturating_sub(STDERR_SHOWN))..].to_owned()
}

/// How a hook ended, in words.
pub(super) fn ended(end: ProcessEnd) -> String {
    match end {
        ProcessEnd::Exited { code } => format!("called `exit {code}`"),
        other => format!("ended the shell ({other})"),
    }
}
