//! Every listing command has `--json`; helpers to check that documented command lines parse.

use serde_json::Value;

use super::commands;
use crate::sandbox::{Sandbox, claude};

/// Checks that a command line parses, after splitting it like a shell; `Err` has the error message.
pub(crate) fn parses(line: &str) -> Result<(), String> {
    parse(line).map_err(|error| error.to_string())
}

/// Like `parses`, but required arguments may be missing: `ralph export` is the name of a command.
pub(crate) fn exists(line: &str) -> Result<(), String> {
    use clap::error::ErrorKind::{
        DisplayHelpOnMissingArgumentOrSubcommand, MissingRequiredArgument, MissingSubcommand,
    };
    match parse(line) {
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

fn parse(line: &str) -> Result<(), clap::Error> {
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

/// Commands that perform an action or already print a document, with the reason. All other commands have `--json`.
const NO_LISTING: &[(&str, &str)] = &[
    ("", "prints its help"),
    ("init", "writes files"),
    ("tell", "sends a command"),
    ("export", "--format json"),
    ("drivers", "has subcommands"),
    ("drivers new", "writes a file"),
    ("bench", "has subcommands"),
    ("config", "has subcommands"),
    ("config convert", "prints YAML"),
    ("agents report", "writes a file"),
    ("plan", "has subcommands"),
    ("plan tell", "sends a message"),
    ("plan retry", "sends a command"),
    ("plan skip", "sends a command"),
    ("plan stop", "sends a command"),
    ("as-claude", "always prints stream-json"),
    ("worker", "starts ralph-fleet"),
    ("fleet", "starts ralph-fleet"),
    ("demo", "is a demonstration"),
    (
        "attach",
        "is a TUI; the equivalent for programs is logs -f --json",
    ),
    ("serve", "serves a page; its API is JSON"),
    ("schema", "always prints JSON"),
    ("completions", "prints a script"),
    ("man", "prints a page"),
    ("docs", "prints a page"),
];

/// Arguments of each command in a workspace with one run, and the shape of its output.
const LISTINGS: &[(&str, &str, JsonShape)] = &[
    ("run", "--dry-run --json -p x", JsonShape::Document),
    ("understand", "--dry-run --json", JsonShape::Document),
    ("runs", "--json", JsonShape::Document),
    ("quota", "--json", JsonShape::Document),
    ("show", "--json", JsonShape::Document),
    ("diff", "--json", JsonShape::Document),
    ("restore", "@0 --json", JsonShape::Document),
    ("review", "--json", JsonShape::Document),
    ("fork", "@0 --json", JsonShape::Lines),
    ("race", "@0 --agent claude --json", JsonShape::Document),
    ("receipt", "--json", JsonShape::Document),
    ("verify", "--json", JsonShape::Document),
    ("logs", "--json", JsonShape::Lines),
    ("clean", "--dry-run --json", JsonShape::Document),
    ("agents", "--json", JsonShape::Document),
    ("agents test", "--json", JsonShape::Document),
    ("doctor", "--json", JsonShape::Document),
    ("bench run", "tasks.yml --trust --json", JsonShape::Document),
    ("bench report", "latest --json", JsonShape::Document),
    ("bench list", "--json", JsonShape::Document),
    ("drivers list", "--json", JsonShape::Document),
    ("drivers check", "--json", JsonShape::Document),
    ("config show", "--json", JsonShape::Document),
    ("trust", "--show --json", JsonShape::Document),
    ("hats", "--json", JsonShape::Document),
    ("hats list", "--json", JsonShape::Document),
    ("hats show", "builder --json", JsonShape::Document),
    ("hats validate", "--json", JsonShape::Document),
    ("hats graph", "--json", JsonShape::Document),
    ("gates", "--json", JsonShape::Document),
    ("gates list", "--json", JsonShape::Document),
    ("gates run", "--json", JsonShape::Document),
    ("plan check", "plan.md --json", JsonShape::Document),
    ("plan run", "plan.md --trust --json", JsonShape::Lines),
    ("plan status", "--json", JsonShape::Document),
    ("transcript", "captured.txt --json", JsonShape::Lines),
    ("replay", "latest --json", JsonShape::Lines),
    ("top", "--json", JsonShape::Document),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonShape {
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
        if has_json {
            let is_listed = LISTINGS.iter().any(|(of, ..)| *of == path);
            assert!(is_listed, "`{path}` has --json and no row in LISTINGS");
        }
    }
}

#[test]
fn json_output_is_only_json() {
    let hats = "hats:\n  builder:\n    triggers: [task.start]\n    publishes: [done]\n";
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("LOOP_COMPLETE"))
        .with_file(
            "ralph.yml",
            &format!("gates:\n  - {{name: t, run: 'true'}}\n{hats}"),
        )
        .with_file("captured.txt", "hello\n")
        .with_file("plan.md", "- [ ] Add a test\n")
        .with_file(
            "tasks.yml",
            "tasks:\n  - {name: one, prompt: do it, verify: 'true'}\n",
        );
    sandbox
        .ralph(&["run", "-q", "--no-tui", "-p", "do it"])
        .exits_with(0);
    for (path, more, shape) in LISTINGS {
        let words: Vec<&str> = path.split_whitespace().chain(more.split_whitespace()).collect();
        let output = sandbox.ralph(&words);
        assert!(!output.stdout.is_empty(), "{words:?}: {output:?}");
        match shape {
            JsonShape::Document => {
                let _: Value = output.json();
            }
            JsonShape::Lines => {
                for line in output.stdout.lines() {
                    let parsed = serde_json::from_str::<Value>(line);
                    assert!(parsed.is_ok(), "{words:?}: {line}");
                }
            }
        }
    }
    for document in [
        ["schema", "config"].as_slice(),
        &["schema", "review"],
        &["schema", "events"],
        &["export", "latest", "--format", "json"],
    ] {
        let _: Value = sandbox.ralph(document).exits_with(0).json();
    }
}
