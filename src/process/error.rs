//! Errors of starting a child. Each names the program or the path.

use std::io;
use std::path::PathBuf;

use super::wire::SpawnStage;
use super::{Access, ConfinementStep, PathRule, ProcessSpec};

/// The reason why a child could not be started. No process of it is left.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("program not found: {}", program.display())]
    NotFound { program: PathBuf },
    #[error("the interpreter of {} was not found", program.display())]
    InterpreterNotFound { program: PathBuf },
    #[error("no permission to execute {}", program.display())]
    NotExecutable { program: PathBuf },
    #[error("cannot enter the working directory {}: {source}", path.display())]
    WorkingDirectory { path: PathBuf, source: io::Error },
    #[error("the arguments of {} are too long for the system ({bytes} bytes)", program.display())]
    ArgumentsTooLong { program: PathBuf, bytes: usize },
    #[error("cannot open {} as standard input: {source}", path.display())]
    StdinFile { path: PathBuf, source: io::Error },
    #[error("cannot confine {}: cannot {}{}: {source}", program.display(), step.purpose(), of_rule(rule.as_ref()))]
    Confinement {
        program: PathBuf,
        step: ConfinementStep,
        /// The rule that could not be applied.
        rule: Option<PathRule>,
        source: io::Error,
    },
    #[error("cannot start {}: {source}", program.display())]
    Spawn { program: PathBuf, source: io::Error },
    #[error("cannot start {} as the supervisor of {}: {source}", supervisor.display(), program.display())]
    Supervisor {
        supervisor: PathBuf,
        program: PathBuf,
        source: io::Error,
    },
}

/// The path of a rule and its access.
fn of_rule(rule: Option<&PathRule>) -> String {
    let Some(PathRule { path, access }) = rule else {
        return String::new();
    };
    let access = match access {
        Access::Write => "writable",
        Access::Read => "read-only",
        Access::Hidden => "hidden",
        Access::Private(_) => "private",
    };
    format!(" ({} {access})", path.display())
}

impl ProcessError {
    pub(super) fn spawn(spec: &ProcessSpec, source: io::Error) -> Self {
        Self::Spawn {
            program: spec.program.clone(),
            source,
        }
    }

    /// The supervisor could not be executed or could not read the request.
    pub(super) fn supervisor(supervisor: PathBuf, spec: &ProcessSpec, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::ArgumentListTooLong => Self::arguments_too_long(spec),
            io::ErrorKind::InvalidInput => Self::spawn(spec, source),
            _ => Self::Supervisor {
                supervisor,
                program: spec.program.clone(),
                source,
            },
        }
    }

    /// The supervisor runs, but could not start the child.
    pub(super) fn refused(spec: &ProcessSpec, stage: SpawnStage, errno: i32) -> Self {
        let source = io::Error::from_raw_os_error(errno);
        let program = spec.program.clone();
        match (stage, source.kind()) {
            (SpawnStage::WorkingDirectory, _) => Self::WorkingDirectory {
                path: spec.cwd.clone(),
                source,
            },
            (SpawnStage::Confinement(step), _) => {
                let rules = spec
                    .confinement
                    .as_ref()
                    .map_or(&[][..], |confinement| confinement.rules());
                let rule = match step {
                    ConfinementStep::Rule(index) => rules.get(usize::from(index)).cloned(),
                    _ => None,
                };
                Self::Confinement {
                    program,
                    step,
                    rule,
                    source,
                }
            }
            (SpawnStage::Exec, io::ErrorKind::NotFound) if spec.cwd.join(&program).is_file() => {
                Self::InterpreterNotFound { program }
            }
            (SpawnStage::Exec, io::ErrorKind::NotFound) => Self::NotFound { program },
            (SpawnStage::Exec, io::ErrorKind::PermissionDenied) => Self::NotExecutable { program },
            (SpawnStage::Exec, io::ErrorKind::ArgumentListTooLong) => Self::arguments_too_long(spec),
            (SpawnStage::Exec, _) => Self::Spawn { program, source },
        }
    }

    fn arguments_too_long(spec: &ProcessSpec) -> Self {
        Self::ArgumentsTooLong {
            program: spec.program.clone(),
            bytes: spec.args.iter().map(|argument| argument.len() + 1).sum(),
        }
    }
}
