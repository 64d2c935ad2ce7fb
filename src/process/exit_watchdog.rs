//! A helper process that notices when ralph exits. Its stdin is a pipe that only ralph holds; the last bytes distinguish
//! a clean exit from a kill.

use std::io::{Read, Write};
use std::process::{ChildStdin, Command, Stdio};

use crate::ok_or_log;

use super::Supervisors;
use super::orphans::HelperProcess;

/// A process that waits for the exit of ralph. Dropping this value sends `exit_message` and ends it.
#[derive(Debug)]
pub struct ExitWatchdog {
    stdin: Option<ChildStdin>,
    process: Option<HelperProcess>,
    exit_message: &'static str,
}

impl ExitWatchdog {
    /// Starts this program with one argument, on the same stdout, writes `input` to its stdin, and waits for one byte on
    /// its stderr, which reports that it is ready. Returns `None` if that fails.
    pub fn start(
        supervisors: &Supervisors,
        argument: &str,
        input: &str,
        exit_message: &'static str,
    ) -> Option<Self> {
        let program = ok_or_log!(std::env::current_exe(), "cannot find this program")?;
        let mut command = Command::new(program);
        command
            .arg(argument)
            .stdin(Stdio::piped())
            .stdout(Stdio::inherit())
            .stderr(Stdio::piped());
        let process = supervisors.orphans().start(command);
        let mut process = ok_or_log!(process, "cannot start the exit watchdog")?;
        let (stdin, ready) = process.pipes();
        let mut watchdog = Self {
            stdin,
            process: Some(process),
            exit_message,
        };
        let written = watchdog.stdin.as_mut()?.write_all(input.as_bytes());
        ok_or_log!(written, "the exit watchdog has ended")?;
        ok_or_log!(ready?.read_exact(&mut [0]), "the exit watchdog has ended")?;
        Some(watchdog)
    }
}

impl Drop for ExitWatchdog {
    fn drop(&mut self) {
        if let Some(mut stdin) = self.stdin.take() {
            // Fails if the watchdog has exited.
            let _ = stdin.write_all(self.exit_message.as_bytes());
        }
        if let Some(process) = &mut self.process {
            process.wait();
        }
    }
}
