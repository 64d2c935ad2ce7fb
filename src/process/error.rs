//! Why a child could not be started, in words that name the program or the path.

use std::io;
use std::path::PathBuf;

use super::Spec;
use super::wire::Stage;

/// Why a child could not be started. Nothing of it is running.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("program not found: {}", program.display())]
    NotFound { program: PathBuf },
    #[error("the interpreter that {} asks for was not found", program.display())]
    InterpreterNotFound { program: PathBuf },
    #[error("no permission to execute {}", program.display())]
    NotExecutable { program: PathBuf },
    #[error("cannot enter the working directory {}: {source}", path.display())]
    WorkingDirectory { path: PathBuf, source: io::Error },
    #[error("the arguments of {} are too long for the system ({bytes} bytes)", program.display())]
    ArgumentsTooLong { program: PathBuf, bytes: usize },
    #[error("cannot open {} as standard input: {source}", path.display())]
    StdinFile { path: PathBuf, source: io::Error },
    #[error("cannot start {}: {source}", program.display())]
    Spawn { program: PathBuf, source: io::Error },
    #[error("cannot start {} as the keeper of {}: {source}", keeper.display(), program.display())]
    Keeper {
        keeper: PathBuf,
        program: PathBuf,
        source: io::Error,
    },
}

impl ProcessError {
    pub(super) fn spawn(spec: &Spec, source: io::Error) -> Self {
        Self::Spawn {
            program: spec.program.clone(),
            source,
        }
    }

    /// The keeper itself could not be executed. The child's arguments are the keeper's, so their faults
    /// already show here.
    pub(super) fn keeper(keeper: PathBuf, spec: &Spec, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::ArgumentListTooLong => Self::arguments_too_long(spec),
            io::ErrorKind::InvalidInput => Self::spawn(spec, source),
            _ => Self::Keeper {
                keeper,
                program: spec.program.clone(),
                source,
            },
        }
    }

    /// The keeper runs, but could not start the child.
    pub(super) fn refused(spec: &Spec, stage: Stage, errno: i32) -> Self {
        let source = io::Error::from_raw_os_error(errno);
        let program = spec.program.clone();
        match (stage, source.kind()) {
            (Stage::WorkingDirectory, _) => Self::WorkingDirectory {
                path: spec.cwd.clone(),
                source,
            },
            (Stage::Exec, io::ErrorKind::NotFound) if spec.cwd.join(&program).is_file() => {
                Self::InterpreterNotFound { program }
            }
            (Stage::Exec, io::ErrorKind::NotFound) => Self::NotFound { program },
            (Stage::Exec, io::ErrorKind::PermissionDenied) => Self::NotExecutable { program },
            (Stage::Exec, io::ErrorKind::ArgumentListTooLong) => Self::arguments_too_long(spec),
            (Stage::Exec, _) => Self::Spawn { program, source },
        }
    }

    fn arguments_too_long(spec: &Spec) -> Self {
        Self::ArgumentsTooLong {
            program: spec.program.clone(),
            bytes: spec.args.iter().map(|argument| argument.len() + 1).sum(),
        }
    }
}
