//! `ralph man`: prints manual pages, generated from the clap command tree.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;

use crate::ui::Terminal;

use super::args::ManArguments;
use super::error::CliError;
use super::exit::Exit;

pub(super) fn man(arguments: &ManArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    // `ralph help` prints the same texts; its copies of the commands have no page.
    let mut root = super::command().disable_help_subcommand(true);
    root.build();
    if let Some(directory) = &arguments.out {
        let written = write_all(&root, directory)?;
        let text = format!("Wrote {written} pages to {}\n", directory.display());
        terminal.print(&text).map_err(CliError::Output)?;
        return Ok(Exit::Success);
    }
    let mut command = &root;
    for word in &arguments.command {
        command = command
            .find_subcommand(word)
            .ok_or_else(|| unknown(word, if command.has_subcommands() { command } else { &root }))?;
    }
    let text = page(command).map_err(CliError::Output)?;
    if !terminal.page_manual(&text).map_err(CliError::Output)? {
        let text = match terminal.is_interactive() {
            // Without `man`, the help has the same contents.
            true => command.clone().render_long_help().to_string(),
            false => text,
        };
        terminal.page(&text).map_err(CliError::Output)?;
    }
    Ok(Exit::Success)
}

fn unknown(word: &str, command: &Command) -> CliError {
    CliError::UnknownName {
        what: "command",
        name: word.to_owned(),
        known: command
            .get_subcommands()
            .map(|inner| inner.get_name().to_owned())
            .collect(),
    }
}

/// Writes `ralph.1`, `ralph-run.1`, `ralph-hats-graph.1` … and returns their number.
fn write_all(command: &Command, directory: &Path) -> Result<usize, CliError> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let path = directory.join(format!("{name}.1"));
    let written = fs::create_dir_all(directory)
        .and_then(|()| page(command))
        .and_then(|page| fs::write(&path, page));
    written.map_err(|source| CliError::Unwritable { path, source })?;
    let mut pages = 1;
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        pages += write_all(inner, directory)?;
    }
    Ok(pages)
}

fn page(command: &Command) -> io::Result<String> {
    let version = format!("ralph {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(version).manual("ralph");
    let mut roff = Vec::new();
    man.render_title(&mut roff)?;
    man.render_name_section(&mut roff)?;
    man.render_synopsis_section(&mut roff)?;
    man.render_description_section(&mut roff)?;
    man.render_options_section(&mut roff)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut roff)?;
    }
    let page = format!("{}{}", String::from_utf8_lossy(&roff), examples(command));
    Ok(page.chars().map(to_ascii).collect())
}

/// Returns the EXAMPLES section, from the end of the help text.
fn examples(command: &Command) -> String {
    let help = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let lines = help.lines().map(|line| {
        let line = line.trim();
        line.strip_prefix("Example: ").unwrap_or(line)
    });
    let examples: Vec<String> = lines
        .filter(|line| !line.is_empty() && *line != "Examples:")
        .map(escape)
        .collect();
    if examples.is_empty() {
        return String::new();
    }
    format!(".SH EXAMPLES\n.nf\n{}\n.fi\n", examples.join("\n"))
}

/// Escapes non-ASCII characters, because not every roff reads UTF-8.
fn to_ascii(c: char) -> String {
    match c {
        ascii if ascii.is_ascii() => ascii.to_string(),
        other => format!("\\[u{:04X}]", u32::from(other)),
    }
}

/// Escapes roff syntax: backslashes, hyphens, quotes, and a leading dot.
fn escape(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '\\' => text.push_str("\\e"),
            '-' => text.push_str("\\-"),
            '\'' => text.push_str("\\(aq"),
            other => text.push(other),
        }
    }
    match text.strip_prefix('.') {
        Some(rest) => format!("\\&.{rest}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_escaped_for_roff() {
        assert_eq!(escape("a --b 'c\\d'"), "a \\-\\-b \\(aqc\\ed\\(aq");
        assert_eq!(escape(".x"), "\\&.x");
        assert_eq!("a…".chars().map(to_ascii).collect::<String>(), "a\\[u2026]");
    }
}
