//! The help on one screen: `-h` leaves out what is rarely wanted, `--help` has it all. clap can do this too, but then
//! gives every option of the long help three lines, which is no screen any more.

use std::ffi::OsString;

use clap::Command;

/// By the words of the command (`*` is any) and the argument.
const RARE: &[(&str, &str)] = &[
    ("*", "color"),
    ("*", "jq_filter"),
    ("*", "driver_dir"),
    ("run", "mode"),
    ("run", "show_prompt"),
    ("run", "yes"),
];

pub(in crate::cli) fn shorten_if_requested(root: Command, words: &[OsString]) -> Command {
    let mut own = words.iter().take_while(|word| *word != "--");
    if own.any(|word| word == "-h") {
        below("", root)
    } else {
        root
    }
}

fn below(path: &str, command: Command) -> Command {
    let is_rare = |id: &str| {
        RARE.iter()
            .any(|(of, rare)| (*of == "*" || *of == path) && *rare == id)
    };
    let mut hidden = false;
    let command = command.mut_args(|argument| {
        let rare = is_rare(argument.get_id().as_str());
        hidden |= rare;
        argument.hide(rare)
    });
    let command = command.mut_subcommands(|inner| {
        let path = format!("{path} {}", inner.get_name());
        below(path.trim_start(), inner)
    });
    match command.get_after_help().filter(|_| hidden && !path.is_empty()) {
        Some(examples) => {
            let text = format!("All options: ralph {path} --help\n\n{examples}");
            command.after_help(text)
        }
        None => command,
    }
}
