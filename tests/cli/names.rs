//! Every command that shows something shows it to programs too; and whether a line that somebody wrote down parses.

use serde_json::Value;

use super::commands;
use crate::sandbox::{Sandbox, claude};

/// Whether `ralph` takes this line, cut into words as a shell does. `Err` is what it says instead.
pub(crate) fn parses(line: &str) -> Result<(), String> {
    parsed(line).map_err(|error| error.to_string())
}

/// As `parses`, but it need not be whole: `ralph export` is the name of a command.
pub(crate) fn exists(line: &str) -> Result<(), String> {
    use clap::error::ErrorKind::{
        DisplayHelpOnMissingArgumentOrSubcommand, MissingRequiredArgument, MissingSubcommand,
    };
    match parsed(line) {
        Err(error)
            if [
                DisplayHelpOnMissingArgumentOrSubcommand,
                MissingRequiredArgument,
                MissingSubcommand,
            ]
            .contains(&error.kind())
                || error.to_string().contains("none was supplied") =>
        {
            Ok(())
        }
        other => other.map_err(|error| error.to_string()),
    }
}

fn parsed(line: &str) -> Result<(), clap::Error> {
    let words = ralph::config::split_words(line)
        .map_err(|error| clap::Error::raw(clap::error::ErrorKind::InvalidValue, error.to_string()))?;
    let first = words.get(1).map(String::as_str).unwrap_or_default();
    let only_flags = first.starts_with('-') && !["-h", "--help", "-V", "--version"].contains(&first);
    let mut words = words;
    if only_flags {
        words.insert(1, "run".to_owned());
    }
    match ralph::cli::command().try_get_matches_from(words) {
        Ok(_) => Ok(()),
        Err(error) if !error.use_stderr() => Ok(()),
        Err(error) => Err(error),
    }
}

/// What does something, or prints what is a document already. A new command is either here or has `--json`.
const NO_LISTING: &[(&str, &str)] = &[
    ("", "prints its help"),
    ("init", "writes files"),
    ("tell", "gives an order"),
    ("export", "--format json"),
    ("drivers", "has commands of its own"),
    ("drivers new", "writes a file"),
    ("bench", "has commands of its own"),
    ("config", "has commands of its own"),
    ("config convert", "prints YAML"),
    ("as-claude", "prints stream-json in any case"),
    ("demo", "is a show"),
    ("attach", "is a screen; logs -f --json is the same for programs"),
    ("schema", "prints JSON in any case"),
    ("completions", "prints a script"),
    ("man", "prints a page"),
];

/// How each is called in a workspace with one run, and whether lines or one document come.
const LISTINGS: &[(&str, &str, Shape)] = &[
    ("run", "--dry-run --json -p x", Shape::Document),
    ("understand", "--dry-run --json", Shape::Document),
    ("runs", "--json", Shape::Document),
    ("show", "--json", Shape::Document),
    ("logs", "--json", Shape::Lines),
    ("clean", "--dry-run --json", Shape::Document),
    ("agents", "--json", Shape::Document),
    ("agents test", "--json", Shape::Document),
    ("doctor", "--json", Shape::Document),
    ("bench run", "tasks.yml --trust --json", Shape::Document),
    ("bench report", "latest --json", Shape::Document),
    ("bench list", "--json", Shape::Document),
    ("drivers list", "--json", Shape::Document),
    ("drivers check", "--json", Shape::Document),
    ("config show", "--json", Shape::Document),
    ("trust", "--show --json", Shape::Document),
    ("hats", "--json", Shape::Document),
    ("hats list", "--json", Shape::Document),
    ("hats show", "builder --json", Shape::Document),
    ("hats validate", "--json", Shape::Document),
    ("hats graph", "--json", Shape::Document),
    ("gates", "--json", Shape::Document),
    ("gates list", "--json", Shape::Document),
    ("gates run", "--json", Shape::Document),
    ("transcript", "captured.txt --json", Shape::Lines),
    ("replay", "latest --json", Shape::Lines),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Document,
    Lines,
}

#[test]
fn every_command_that_lists_has_json() {
    for (path, command) in commands() {
        let path = path.join(" ");
        let has_json = command
            .get_arguments()
            .any(|argument| argument.get_long() == Some("json"));
        let is_listing = !NO_LISTING.iter().any(|(of, _)| *of == path);
        assert_eq!(has_json, is_listing, "`{path}`: --json, or a row in NO_LISTING");
        // Those that another room proves in full have no row here; those that are listed must.
        if has_json {
            let called = LISTINGS.iter().any(|(of, ..)| *of == path);
            assert!(called, "`{path}` has --json and no row in LISTINGS");
        }
    }
}

#[test]
fn what_they_print_is_json_and_nothing_else() {
    let hats = "hats:\n  builder:\n    triggers: [task.start]\n    publishes: [done]\n";
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing("default", &claude::session("LOOP_COMPLETE"))
        .with_file(
            "ralph.yml",
            &format!("gates:\n  - {{name: t, run: 'true'}}\n{hats}"),
        )
        .with_file("captured.txt", "hello\n")
        .with_file(
            "tasks.yml",
            "tasks:\n  - {name: one, prompt: do it, verify: 'true'}\n",
        );
    sandbox
        .ralph(&["run", "-q", "--no-tui", "-p", "do it"])
        .exits_with(0);
    for (path, more, shape) in LISTINGS {
        let words: Vec<&str> = path.split_whitespace().chain(more.split_whitespace()).collect();
        let told = sandbox.ralph(&words);
        assert!(!told.stdout.is_empty(), "{words:?}: {told:?}");
        match shape {
            Shape::Document => {
                let _: Value = told.json();
            }
            Shape::Lines => {
                for line in told.stdout.lines() {
                    let parsed = serde_json::from_str::<Value>(line);
                    assert!(parsed.is_ok(), "{words:?}: {line}");
                }
            }
        }
    }
    for document in [
        ["schema", "config"].as_slice(),
        &["schema", "events"],
        &["export", "latest", "--format", "json"],
    ] {
        let _: Value = sandbox.ralph(document).exits_with(0).json();
    }
}
