//! `ralph docs`: prints the pages of the documentation, which the program contains.

use crate::ui::{Cell, Table, Terminal, Tone};

use super::args::DocsArguments;
use super::common::ignore_broken_pipe;
use super::error::CliError;
use super::exit::Exit;

/// The pages for users, by the name that hints use: `docs/gates.md` is `gates`.
const PAGES: &[(&str, &str)] = &[
    ("install", include_str!("../../docs/install.md")),
    ("config", include_str!("../../docs/config.md")),
    ("agents", include_str!("../../docs/agents.md")),
    ("gates", include_str!("../../docs/gates.md")),
    ("runs", include_str!("../../docs/runs.md")),
    ("undo", include_str!("../../docs/undo.md")),
    ("tui", include_str!("../../docs/tui.md")),
    ("plans", include_str!("../../docs/plans.md")),
    ("hats", include_str!("../../docs/hats.md")),
    ("multiple-agents", include_str!("../../docs/multiple-agents.md")),
    ("notifications", include_str!("../../docs/notifications.md")),
    ("serve", include_str!("../../docs/serve.md")),
    ("security", include_str!("../../docs/security.md")),
    ("reliability", include_str!("../../docs/reliability.md")),
    ("bench", include_str!("../../docs/bench.md")),
    ("drivers", include_str!("../../docs/drivers.md")),
    ("providers", include_str!("../../docs/providers.md")),
    ("acp", include_str!("../../docs/acp.md")),
    ("transcripts", include_str!("../../docs/transcripts.md")),
    ("migrating", include_str!("../../docs/migrating.md")),
    ("faq", include_str!("../../docs/faq.md")),
    ("glossary", include_str!("../../docs/glossary.md")),
];

pub(super) fn docs(arguments: &DocsArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let text = match &arguments.page {
        None => list(terminal),
        Some(name) => page(name, terminal)?,
    };
    let printed = terminal.page(&text);
    printed.map(|()| Exit::Success).or_else(ignore_broken_pipe)
}

/// A page by its name, or by its path in a hint, with or without a section: `docs/gates.md#hidden`.
fn page(name: &str, terminal: &Terminal) -> Result<String, CliError> {
    let wanted = name.split('#').next().unwrap_or(name);
    let wanted = wanted.strip_prefix("docs/").unwrap_or(wanted);
    let wanted = wanted.strip_suffix(".md").unwrap_or(wanted).to_lowercase();
    let found = PAGES.iter().find(|(known, _)| *known == wanted);
    let (_, text) = found.ok_or_else(|| CliError::UnknownName {
        what: "page",
        name: name.to_owned(),
        known: PAGES.iter().map(|(known, _)| (*known).to_owned()).collect(),
    })?;
    Ok(styled(text, terminal))
}

fn list(terminal: &Terminal) -> String {
    let mut table = Table::new(["PAGE", "CONTENTS"]);
    for (name, text) in PAGES {
        table.row([
            Cell::new(name, Tone::Accent),
            Cell::new(summary(text), Tone::Plain),
        ]);
    }
    format!("{}\nTo read one: ralph docs gates\n", terminal.render(&table))
}

/// The first heading.
fn summary(text: &str) -> &str {
    let heading = text.lines().find_map(|line| line.strip_prefix("# "));
    heading.unwrap_or_default()
}

/// Markdown as written, with headings and code in color.
fn styled(text: &str, terminal: &Terminal) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut in_code = false;
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        let tone = match line {
            _ if is_fence => Tone::Faint,
            _ if in_code => Tone::Accent,
            heading if heading.starts_with('#') => Tone::Strong,
            _ => Tone::Plain,
        };
        match tone {
            Tone::Plain => shown.push_str(line),
            tone => shown.push_str(&terminal.styled(line, tone)),
        }
        shown.push('\n');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_that_a_hint_names_is_contained() {
        let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
        for (name, text) in PAGES {
            let on_disk = std::fs::read_to_string(source.join(format!("{name}.md"))).unwrap();
            assert_eq!(*text, on_disk, "{name}");
            assert!(!summary(text).is_empty(), "{name} has no heading");
        }
    }
}
