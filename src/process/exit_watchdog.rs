//! A small process of our own that outlives us by a moment: it waits for the end of a pipe that only we hold, and knows by
//! our last word whether we went in peace or were killed.

use std::io::{Read, Write};
use std::process::{ChildStdin, Command, Stdio};

use super::orphans::{self, KeeperProcess};

/// Somebody who waits for our end. Dropped, it hears our goodbye and goes.
#[derive(Debug)]
pub struct ExitWatchdog {
    lifeline: Option<ChildStdin>,
    process: Option<KeeperProcess>,
    goodbye: &'static str,
}

impl ExitWatchdog {
    /// Starts this program again with one argument, on our stdout, tells it something, and waits until it says, by one
    /// byte on stderr, that it is ready. None where that cannot be.
    pub fn start(argument: &str, word: &str, goodbye: &'static str) -> Option<Self> {
        let program = std::env::current_exe().ok()?;
        let mut command = Command::new(program);
        command
            .arg(argument)
            .stdin(Stdio::piped())
            .stdout(Stdio::inherit())
            .stderr(Stdio::piped());
        let mut process = orphans::start(&mut command).ok()?;
        let (lifeline, ready) = process.pipes();
        let mut companion = Self {
            lifeline,
            process: Some(process),
            goodbye,
        };
        companion.lifeline.as_mut()?.write_all(word.as_bytes()).ok()?;
        ready?.read_exact(&mut [0]).ok()?;
        Some(companion)
    }
}

impl Drop for ExitWatchdog {
    fn drop(&mut self) {
        if let Some(mut lifeline) = self.lifeline.take() {
            // One that is gone needs no goodbye.
            let _ = lifeline.write_all(self.goodbye.as_bytes());
        }
        if let Some(process) = &mut self.process {
            process.wait();
        }
    }
}
