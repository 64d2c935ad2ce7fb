//! What a run will be judged by, looked at before a night is trusted to it: gates, and the hooks beside them. Starts
//! nothing.

use std::path::Path;

use crate::agent::Probe;
use crate::config::{Gate, Settings};

use super::{Finding, State};

/// Words that a shell knows without a program of that name.
const SHELL_WORDS: &[&str] = &[
    ".", ":", "[", "alias", "case", "cd", "command", "eval", "exec", "exit", "export", "false", "for", "if",
    "printf", "pwd", "read", "set", "shift", "test", "time", "trap", "true", "type", "ulimit", "umask",
    "unset", "until", "wait", "while",
];

/// Findings about what is configured of all that; nothing about what is not.
pub fn check_commands(settings: &Settings, probe: &dyn Probe) -> Vec<Finding> {
    let gates = settings.gates.iter();
    let mut findings: Vec<Finding> = gates.map(|gate| check_gate(gate, probe)).collect();
    let hooks = &settings.hooks;
    let named = [
        ("on_start", &hooks.on_start),
        ("on_iteration", &hooks.on_iteration),
        ("on_complete", &hooks.on_complete),
        ("on_fail", &hooks.on_fail),
        ("on_rate_limit", &hooks.on_rate_limit),
    ];
    findings.extend(named.into_iter().filter_map(|(name, command)| {
        let command = command.as_deref()?;
        let remedy = format!("install it, or correct hooks.{name}");
        Some(check_command(("hooks", name), command, None, &remedy, probe))
    }));
    findings
}

fn check_gate(gate: &Gate, probe: &dyn Probe) -> Finding {
    if let Some(cwd) = gate.cwd.as_deref().filter(|cwd| !cwd.is_dir()) {
        return Finding {
            area: "gates",
            subject: gate.name.clone(),
            state: State::Broken,
            detail: format!("{} is not a directory, so it can never pass", cwd.display()),
            remedy: Some("make the directory, or correct its `cwd`".to_owned()),
        };
    }
    let remedy = format!(
        "install it, or correct its `run`; to try it: ralph gates run {}",
        gate.name
    );
    let place = gate.cwd.as_deref();
    check_command(("gates", &gate.name), &gate.run, place, &remedy, probe)
}

/// Whether the program that a command begins with is there. It may also be made during the run, so that it is missing
/// is no more than a warning.
fn check_command(
    (area, subject): (&'static str, &str),
    command: &str,
    place: Option<&Path>,
    remedy: &str,
    probe: &dyn Probe,
) -> Finding {
    let missing = program_of(command).filter(|program| {
        let path = place
            .filter(|_| program.contains('/'))
            .map(|place| place.join(program));
        let program = path.map_or_else(|| (*program).to_owned(), |path| path.display().to_string());
        probe.find(&program).is_none()
    });
    let (state, detail, remedy) = match missing {
        Some(program) => (
            State::Warning,
            format!("{command} (`{program}` is not found)"),
            Some(remedy.to_owned()),
        ),
        None => (State::Good, command.to_owned(), None),
    };
    Finding {
        area,
        subject: subject.to_owned(),
        state,
        detail,
        remedy,
    }
}

/// The program of a command that plainly begins with one. What only a shell can tell is not guessed.
fn program_of(command: &str) -> Option<&str> {
    let is_plain = |word: &str| {
        word.chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-./+".contains(c))
    };
    let first = command.split_whitespace().next()?;
    (is_plain(first) && !SHELL_WORDS.contains(&first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::agent::Unusable;

    /// A machine on which only `make` is installed.
    struct OnlyMake;

    impl Probe for OnlyMake {
        fn find(&self, program: &str) -> Option<PathBuf> {
            (program == "make").then(|| "/bin/make".into())
        }

        fn version(&self, _: &Path) -> Result<String, Unusable> {
            Err(Unusable::NotFound)
        }
    }

    fn gate(run: &str) -> Gate {
        Gate {
            name: "g".to_owned(),
            run: run.to_owned(),
            timeout: 1,
            cwd: None,
            env: std::collections::BTreeMap::new(),
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_told_and_what_a_shell_knows_is_not() {
        for (run, state) in [
            ("make test", State::Good),
            ("mkae test", State::Warning),
            ("./check.sh", State::Warning),
            ("test -f x && mkae", State::Good),
            ("A=1 mkae", State::Good),
            ("\"$TOOL\" x", State::Good),
            ("(mkae)", State::Good),
        ] {
            assert_eq!(check_gate(&gate(run), &OnlyMake).state, state, "{run}");
        }
    }

    #[test]
    fn a_gate_in_a_directory_that_is_not_there_can_never_pass() {
        let mut nowhere = gate("make");
        nowhere.cwd = Some("/nonexistent/web".into());
        let found = check_gate(&nowhere, &OnlyMake);
        assert_eq!(found.state, State::Broken);
        assert!(found.detail.contains("/nonexistent/web"), "{found:?}");
    }
}
