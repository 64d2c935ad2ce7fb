//! Runs ralph on a terminal and answers its questions.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::Sandbox;

impl Sandbox {
    /// Runs ralph on a terminal and types one line of `keys` each time the question appears. Returns the printed text and the
    /// exit code.
    pub(crate) fn run_on_terminal(&self, arguments: &[&str], question: &str, keys: &str) -> (String, i32) {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&controller)
            .and_then(|()| unlockpt(&controller))
            .expect("a terminal");
        let name = ptsname(&controller, Vec::new()).expect("its name");
        let open = || {
            let mut options = fs::File::options();
            let name = name.to_str().expect("a path");
            options.read(true).write(true).open(name).expect("the other end")
        };
        let mut command = self.command(arguments);
        command
            .stdin(open())
            .stdout(open())
            .stderr(open())
            .process_group(0);
        let mut child = command.spawn().expect("ralph starts");
        drop(command);
        let mut screen = fs::File::from(controller);
        let mut keyboard = screen.try_clone().expect("a keyboard");
        let mut seen = String::new();
        let mut lines = keys.split_inclusive('\n');
        let mut questions = 0;
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = screen.read(&mut bytes) {
            seen.push_str(&String::from_utf8_lossy(&bytes[..length]));
            while seen.matches(question).count() > questions {
                questions += 1;
                if let Some(line) = lines.next() {
                    keyboard.write_all(line.as_bytes()).expect("keys");
                }
            }
        }
        let status = child.wait().expect("its end");
        (seen, status.code().unwrap_or(-1))
    }
}
