//! Tests of the command line: every command of the clap tree, with the real binary.

mod doctor;
mod help;
mod hints;
mod json_output;
mod shells;

use clap::Command;

pub(crate) use doctor::redact_varying_lines;
pub(crate) use json_output::{exists, parses};

/// Returns the path of every command (`[]` for the program itself) with its clap command.
fn commands() -> Vec<(Vec<String>, Command)> {
    let mut found = Vec::new();
    collect(Vec::new(), ralph::cli::command(), &mut found);
    found
}

fn collect(path: Vec<String>, command: Command, found: &mut Vec<(Vec<String>, Command)>) {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        let mut path = path.clone();
        path.push(inner.get_name().to_owned());
        collect(path, inner.clone(), found);
    }
    found.push((path, command));
}

fn words<'a>(path: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    path.iter()
        .map(String::as_str)
        .chain(more.iter().copied())
        .collect()
}
