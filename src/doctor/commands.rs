//! Checks the commands of gates and hooks without running them.

use std::path::Path;

use crate::agent::Probe;
use crate::config::Settings;
use crate::policy::Gate;

use super::{Finding, FindingState};

/// Shell builtins and keywords, which need no program.
const SHELL_BUILTINS: &[&str] = &[
    ".", ":", "[", "alias", "case", "cd", "command", "eval", "exec", "exit", "export", "false", "for", "if",
    "printf", "pwd", "read", "set", "shift", "test", "time", "trap", "true", "type", "ulimit", "umask",
    "unset", "until", "wait", "while",
];

/// Checks all configured gates and hooks.
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
        ("on_ask", &hooks.on_ask),
    ];
    findings.extend(named.into_iter().filter_map(|(name, command)| {
        let command = command.as_deref()?;
        let remedy = format!("install it, or fix hooks.{name}");
        Some(check_command(("hooks", name), command, None, &remedy, probe))
    }));
    findings
}

fn check_gate(gate: &Gate, probe: &dyn Probe) -> Finding {
    if gate.is_review() {
        let missing = gate
            .all_reviewers()
            .into_iter()
            .find_map(|reviewer| reviewer.prompt_file.filter(|path| !path.is_file()));
        return Finding {
            area: "gates",
            subject: gate.name.clone(),
            state: match &missing {
                Some(_) => FindingState::Broken,
                None => FindingState::Good,
            },
            detail: match &missing {
                Some(path) => format!("the prompt of the reviewer is missing: {}", path.display()),
                None => gate.shown_command(),
            },
            remedy: missing.map(|_| "create the file, or fix the gate's `prompt_file`".to_owned()),
        };
    }
    if let Some(cwd) = gate.cwd.as_deref().filter(|cwd| !cwd.is_dir()) {
        return Finding {
            area: "gates",
            subject: gate.name.clone(),
            state: FindingState::Broken,
            detail: format!("{} is not a directory; the gate can never pass", cwd.display()),
            remedy: Some("create the directory, or fix the gate's `cwd`".to_owned()),
        };
    }
    let remedy = format!(
        "install it, or fix the gate's `run`; to test it: ralph gates run {}",
        gate.name
    );
    let directory = gate.cwd.as_deref();
    check_command(("gates", &gate.name), &gate.run, directory, &remedy, probe)
}

/// Checks that the first program of a command exists. A missing program is only a warning, because the run may create
/// it.
fn check_command(
    (area, subject): (&'static str, &str),
    command: &str,
    directory: Option<&Path>,
    remedy: &str,
    probe: &dyn Probe,
) -> Finding {
    let missing = program_of(command).filter(|program| {
        let path = directory
            .filter(|_| program.contains('/'))
            .map(|directory| directory.join(program));
        let program = path.map_or_else(|| (*program).to_owned(), |path| path.display().to_string());
        probe.find(&program).is_none()
    });
    let (state, detail, remedy) = match missing {
        Some(program) => (
            FindingState::Warning,
            format!("{command} (`{program}` not found)"),
            Some(remedy.to_owned()),
        ),
        None => (FindingState::Good, command.to_owned(), None),
    };
    Finding {
        area,
        subject: subject.to_owned(),
        state,
        detail,
        remedy,
    }
}

/// Returns the program of a simple command; `None` if only a shell can determine it.
fn program_of(command: &str) -> Option<&str> {
    let is_plain = |word: &str| {
        word.chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-./+".contains(c))
    };
    let first = command.split_whitespace().next()?;
    (is_plain(first) && !SHELL_BUILTINS.contains(&first)).then_some(first)
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
            timeout: crate::policy::Seconds(1),
            ..Gate::new("g", run)
        }
    }

    #[test]
    fn missing_programs_are_reported_except_shell_builtins() {
        for (run, state) in [
            ("make test", FindingState::Good),
            ("mkae test", FindingState::Warning),
            ("./check.sh", FindingState::Warning),
            ("test -f x && mkae", FindingState::Good),
            ("A=1 mkae", FindingState::Good),
            ("\"$TOOL\" x", FindingState::Good),
            ("(mkae)", FindingState::Good),
        ] {
            assert_eq!(check_gate(&gate(run), &OnlyMake).state, state, "{run}");
        }
    }

    #[test]
    fn a_gate_in_a_missing_directory_is_broken() {
        let mut misplaced = gate("make");
        misplaced.cwd = Some("/nonexistent/web".into());
        let found = check_gate(&misplaced, &OnlyMake);
        assert_eq!(found.state, FindingState::Broken);
        assert!(found.detail.contains("/nonexistent/web"), "{found:?}");
    }
}
