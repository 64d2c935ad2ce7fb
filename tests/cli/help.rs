//! Help texts fit a screen and end with examples.

use super::{commands, words};
use crate::sandbox::Sandbox;

const COLUMNS: &str = "100";
/// Lines of a typical terminal.
const SCREEN: usize = 40;
/// `ralph --help` lists all commands.
const ALL_COMMANDS: usize = 48;
/// `ralph run --help` has too many options for one screen, and `ralph fork` takes most of them.
const LONG: usize = 64;

fn help(sandbox: &Sandbox, path: &[String], flag: &str) -> String {
    let mut command = sandbox.command(&words(path, &[flag]));
    command.env("COLUMNS", COLUMNS);
    let output = command.output().expect("ralph");
    assert!(output.status.success(), "{path:?} {flag}: {output:?}");
    assert_eq!(output.stderr, b"", "{path:?} {flag}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn help_of_every_command_fits_a_screen_and_ends_with_examples() {
    let sandbox = Sandbox::new();
    let all = commands();
    assert!(all.len() > 30, "{} commands", all.len());
    for (path, _) in &all {
        for flag in ["-h", "--help"] {
            let text = help(&sandbox, path, flag);
            let max = match path.as_slice() {
                [] => ALL_COMMANDS,
                [command] if ["run", "fork"].contains(&&**command) && flag == "--help" => LONG,
                _ => SCREEN,
            };
            let lines = text.lines().count();
            assert!(lines <= max, "{path:?} {flag} has {lines} lines:\n{text}");
            for line in text.lines() {
                assert!(line.chars().count() <= 100, "{path:?} {flag}: {line}");
            }
            let (_, end) = text
                .rsplit_once("\n\n")
                .unwrap_or_else(|| panic!("{path:?} has an end"));
            assert!(
                end.starts_with("Example"),
                "{path:?} {flag} ends with an example:\n{text}"
            );
            assert!(end.contains("ralph"), "{path:?} {flag}:\n{text}");
        }
    }
}

#[test]
fn long_help_of_run_lists_all_options_and_short_help_refers_to_it() {
    let sandbox = Sandbox::new();
    let run = ["run".to_owned()];
    let (short, long) = (help(&sandbox, &run, "-h"), help(&sandbox, &run, "--help"));
    for heading in ["\nOptions:", "\nAgent:", "\nLimits:", "\nDisplay:"] {
        assert!(
            short.contains(heading) && long.contains(heading),
            "{heading}\n{short}"
        );
    }
    for rare in [
        "--jq-filter",
        "--driver-dir",
        "--mode ",
        "--show-prompt",
        "--yes",
        "--color",
    ] {
        assert!(!short.contains(rare) && long.contains(rare), "{rare}");
    }
    assert!(short.contains("All options: ralph run --help"), "{short}");
    let (_, tree) = commands()
        .into_iter()
        .find(|(path, _)| path == &run)
        .expect("run");
    for argument in tree.get_arguments() {
        if let Some(name) = argument.get_long() {
            assert!(long.contains(&format!("--{name}")), "{name} is in the long help");
        }
    }
}

/// Parses the part of each example before a pipe or redirection.
#[test]
fn every_example_parses() {
    let mut seen = 0;
    for (path, command) in commands() {
        let help = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        for line in help.lines() {
            let line = line.trim().trim_start_matches("Example: ");
            let line = line.trim_start_matches("source <(").trim_end_matches(')');
            if !line.starts_with("ralph ") {
                continue;
            }
            let parts = line.split(['|', '>']);
            let command_line = parts.into_iter().next().expect("a line");
            crate::cli::parses(command_line).unwrap_or_else(|error| panic!("{path:?}: {line}\n{error}"));
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen} examples");
}
