//! The TUI in a real terminal: tmux plays it. Where there is no tmux, one line says so.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process::stage::wait_until;
use crate::sandbox::Sandbox;

const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal of its own, gone with the test.
struct Tmux {
    socket: String,
}

impl Tmux {
    /// Starts a shell command in a terminal of 100×30; nothing where there is no tmux.
    #[expect(clippy::print_stdout, reason = "a test that was skipped says so")]
    fn start(directory: &Path, command: &str) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            println!("skipped: tmux is not installed");
            return None;
        }
        let socket = directory.join("tmux.sock").display().to_string();
        let tmux = Self { socket };
        let directory = directory.display().to_string();
        tmux.run(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "100",
            "-y",
            "30",
            "-c",
            &directory,
            command,
        ]);
        Some(tmux)
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-S", &self.socket])
            .args(arguments)
            .output();
        String::from_utf8_lossy(&output.expect("tmux").stdout).into_owned()
    }

    fn press(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    fn expect(&self, text: &str) {
        wait_until(&format!("{text:?} on the screen"), PATIENCE, || {
            self.screen().contains(text)
        });
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

fn ralph() -> &'static str {
    env!("CARGO_BIN_EXE_ralph")
}

/// The settings of the terminal before and after must be the same, to the letter.
fn between_two_looks(command: &str) -> String {
    format!(
        "stty -g > before; {command}; echo \"status $?\"; stty -g > after; cmp before after && echo restored; exec sh"
    )
}

#[test]
fn the_demo_is_watched_searched_resized_and_left() {
    let sandbox = Sandbox::new();
    let command = between_two_looks(&format!("'{}' demo --tui", ralph()));
    let Some(tmux) = Tmux::start(&sandbox.work(), &command) else {
        return;
    };
    tmux.expect("Complete: the agent gave LOOP_COMPLETE.");
    tmux.expect("q leave");
    tmux.press(&["Tab"]);
    tmux.expect("started      took");
    tmux.press(&["Down", "Down", "Enter"]);
    tmux.expect("│ path: greet.sh");
    tmux.press(&["4"]);
    tmux.expect("Make the project's test pass");
    tmux.press(&["5"]);
    tmux.expect("This agent draws no screen");
    tmux.press(&["6"]);
    tmux.expect("the agent does not tell it");
    tmux.press(&["3"]);
    tmux.expect("gate test");
    tmux.press(&["1", "Left"]);
    tmux.expect("looking at 1");
    tmux.press(&["/", "comma", "Enter"]);
    tmux.expect("n N next");
    tmux.run(&["resize-window", "-x", "39", "-y", "9"]);
    tmux.expect("ralph needs more room");
    tmux.run(&["resize-window", "-x", "80", "-y", "24"]);
    tmux.expect("looking at 1");
    tmux.press(&["e"]);
    tmux.expect("written to");
    tmux.press(&["q"]);
    tmux.expect("restored");
    let screen = tmux.screen();
    assert!(
        screen.contains("status 0") && screen.contains("iterations  2 of 5"),
        "{screen}"
    );
    assert!(!screen.contains("Transcript"), "{screen}");
    assert_eq!(
        tmux.run(&[
            "display-message",
            "-p",
            "#{alternate_on} #{cursor_flag} #{mouse_any_flag}"
        ])
        .trim(),
        "0 1 0"
    );
}

#[test]
fn q_asks_and_then_stops_the_run_and_its_agent() {
    let sandbox = Sandbox::new();
    let agent = sandbox.work().join("agent.sh");
    let evil = r"\033]0;evil\007\033]52;c;AAAA\007\033[6nworking";
    std::fs::write(&agent, format!("printf '{evil}\\n'; exec sleep 600\n")).expect("a script");
    let command = between_two_looks(&format!("'{}' run -p go --agent-cmd 'sh agent.sh'", ralph()));
    let Some(tmux) = Tmux::start(&sandbox.work(), &command) else {
        return;
    };
    tmux.expect("working");
    tmux.press(&["5"]);
    tmux.expect("working");
    tmux.press(&["q"]);
    tmux.expect("Stop the run?");
    tmux.press(&["n"]);
    tmux.expect("q stop");
    tmux.press(&["q", "y"]);
    tmux.expect("restored");
    assert!(tmux.screen().contains("status 130"), "{}", tmux.screen());
    assert!(
        !tmux
            .run(&["display-message", "-p", "#{pane_title}"])
            .contains("evil")
    );
    assert!(tmux.run(&["show-buffer"]).is_empty());
}

#[test]
fn a_signal_gives_the_terminal_back_and_a_viewer_can_be_killed() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.work().join("agent.sh"), "echo at work; exec sleep 600\n").expect("a script");
    let command = between_two_looks(&format!("'{}' run -p go --agent-cmd 'sh agent.sh'", ralph()));
    let Some(tmux) = Tmux::start(&sandbox.work(), &command) else {
        return;
    };
    tmux.expect("at work");
    let pid_of = |pane: &str| {
        let shell = tmux.run(&["display-message", "-p", "-t", pane, "#{pane_pid}"]);
        let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", shell.trim()));
        children.unwrap_or_default().trim().to_owned()
    };
    let run = pid_of(":0");
    let directory = sandbox.work().display().to_string();
    tmux.run(&[
        "new-window",
        "-c",
        &directory,
        &format!("'{}' attach; exec sh", ralph()),
    ]);
    tmux.expect("q leave");
    tmux.expect("at work");
    Command::new("kill")
        .args(["-9", &pid_of(":1")])
        .status()
        .expect("kill");
    tmux.run(&["select-window", "-t", ":0"]);
    tmux.expect("q stop");
    Command::new("kill").args(["-TERM", &run]).status().expect("kill");
    tmux.expect("restored");
    assert!(tmux.screen().contains("status 143"), "{}", tmux.screen());
}
