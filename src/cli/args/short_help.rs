//! Short help: `-h` hides rarely used options, `--help` shows all. clap's own support is not used because it gives every
//! option of the long help three lines.

use std::ffi::OsString;

use clap::Command;

/// Pairs of command path (`*` matches any) and argument.
const RARE: &[(&str, &str)] = &[
    ("*", "color"),
    ("*", "jq_filter"),
    ("*", "driver_dir"),
    ("*", "net"),
    ("*", "sandbox"),
    ("run", "mode"),
    ("run", "prompt"),
    ("run", "interactive"),
    ("run", "max_tokens"),
    ("run", "transcript"),
    ("run", "show_prompt"),
    ("run", "yes"),
    ("run", "accept_damage"),
    ("run", "on_limit"),
    ("run", "checkpoint"),
    ("run", "run_id"),
    ("run", "while_open"),
];

pub(in crate::cli) fn shorten_if_requested(root: Command, words: &[OsString]) -> Command {
    let mut own = words.iter().take_while(|word| *word != "--");
    if own.any(|word| word == "-h") {
        hide_rare("", root)
    } else {
        root
    }
}

fn hide_rare(path: &str, command: Command) -> Command {
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
        hide_rare(path.trim_start(), inner)
    });
    match command.get_after_help().filter(|_| hidden && !path.is_empty()) {
        Some(examples) => {
            let text = format!("All options: ralph {path} --help\n\n{examples}");
            command.after_help(text)
        }
        None => command,
    }
}

/// Commands about the configuration. They accept the options of the agent, which rarely matter there.
const ABOUT_CONFIGURATION: [&str; 3] = ["config", "trust", "doctor"];
/// The options that matter there too.
const SHOWN: [&str; 2] = ["config", "trust"];

/// Hides the options of the agent in the help of commands that are not about the agent.
pub(in crate::cli) fn without_agent_options(mut root: Command) -> Command {
    for name in ABOUT_CONFIGURATION {
        root = root.mut_subcommand(name, |command| {
            command.mut_args(|argument| {
                let hidden = argument.get_help_heading() == Some("Agent")
                    && !SHOWN.contains(&argument.get_id().as_str());
                if hidden { argument.hide(true) } else { argument }
            })
        });
    }
    root
}
