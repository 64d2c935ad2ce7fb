//! The list of commands in the help of `ralph`: the most used ones with their help line, the others by name in groups.

use clap::Command;

/// The most used commands, in the order of a first session.
const FIRST: &[&str] = &[
    "demo", "init", "run", "plan", "runs", "show", "logs", "attach", "tell", "serve",
];
/// The other commands. A command in no group is listed under `Other`.
const GROUPS: &[(&str, &[&str])] = &[
    ("Run", &["understand", "race", "fork", "emit"]),
    (
        "Look",
        &[
            "top",
            "diff",
            "receipt",
            "verify",
            "review",
            "export",
            "replay",
            "transcript",
        ],
    ),
    ("Undo", &["restore", "clean"]),
    (
        "Configure",
        &["config", "trust", "doctor", "hats", "gates", "schema"],
    ),
    ("Agents", &["agents", "drivers", "quota", "as-claude"]),
    ("Many", &["bench", "worker", "fleet"]),
    ("Shell", &["completions", "man", "docs", "help"]),
];
const OTHER: &str = "Other";
/// Width of the column with the names.
const NAME_COLUMNS: usize = 11;

/// Replaces the flat list of commands in the help of the program.
pub(in crate::cli) fn with_command_groups(root: Command) -> Command {
    let list = command_list(&root);
    root.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}\nOptions:\n{{options}}{{after-help}}"
    ))
}

fn command_list(root: &Command) -> String {
    let visible: Vec<&Command> = root
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .collect();
    let find = |name: &str| visible.iter().find(|command| command.get_name() == name);
    let mut text = "Commands:\n".to_owned();
    for command in FIRST.iter().filter_map(|name| find(name)) {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        text.push_str(&format!("  {:<NAME_COLUMNS$} {about}\n", command.get_name()));
    }
    text.push_str("\nMore commands (ralph help COMMAND explains one):\n");
    for (group, names) in GROUPS {
        let names: Vec<&str> = names
            .iter()
            .copied()
            .filter(|name| find(name).is_some())
            .collect();
        push_group(&mut text, group, &names);
    }
    let is_grouped =
        |name: &str| FIRST.contains(&name) || GROUPS.iter().any(|(_, names)| names.contains(&name));
    let names = visible.iter().map(|command| command.get_name());
    push_group(
        &mut text,
        OTHER,
        &names.filter(|name| !is_grouped(name)).collect::<Vec<_>>(),
    );
    text
}

fn push_group(text: &mut String, group: &str, names: &[&str]) {
    if !names.is_empty() {
        text.push_str(&format!(
            "  {:<NAME_COLUMNS$} {}\n",
            format!("{group}:"),
            names.join(", ")
        ));
    }
}
