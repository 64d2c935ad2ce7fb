//! `ralph hats`: lists, shows and validates the hats, and draws their graph.

use serde::Serialize;

use crate::config::Settings;
use crate::engine::{HatEdge, HatFinding, HatSeverity, check_hats, hat_edges};
use crate::policy::Hat;
use crate::ui::{Cell, Table, Terminal, Tone, clean::clean, pretty_json};

use super::args::{ConfigArguments, HatsArguments, HatsCommand};
use super::context::working_directory;
use super::error::CliError;
use super::exit::Exit;

/// Returns the configured hats, sorted by name.
fn rules(settings: &Settings) -> Vec<Hat> {
    settings.hats.values().cloned().collect()
}

pub(super) fn hats(arguments: &HatsArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let all = HatsCommand::List(ConfigArguments {
        json: arguments.config.json,
        config: arguments.config.config.clone(),
    });
    match arguments.command.as_ref().unwrap_or(&all) {
        HatsCommand::List(config) => {
            let settings = load(config)?;
            let text = if config.json {
                pretty_json(&settings.hats)
            } else {
                list(&settings, terminal)
            };
            print(terminal, &text)
        }
        HatsCommand::Show { name, config } => {
            let settings = load(config)?;
            let hat = settings.hats.get(name).ok_or_else(|| unknown(name, &settings))?;
            let text = if config.json {
                pretty_json(hat)
            } else {
                show(name, hat)
            };
            print(terminal, &text)
        }
        HatsCommand::Validate(config) => validate(&load(config)?, config.json, terminal),
        HatsCommand::Graph { mermaid, config } => {
            let settings = load(config)?;
            let rules = rules(&settings);
            let edges = hat_edges(&rules, &settings.event_loop.starting_event);
            let text = match (config.json, mermaid) {
                (true, _) => pretty_json(&edges),
                (false, true) => as_mermaid(&rules, &edges),
                (false, false) if rules.is_empty() => NONE.to_owned(),
                (false, false) => graph_text(&rules, &edges),
            };
            print(terminal, &text)
        }
    }
}

const NONE: &str = "No hats are configured (see docs/hats.md).\n";

fn load(arguments: &ConfigArguments) -> Result<Settings, CliError> {
    let loaded = super::context::load(
        &working_directory()?,
        crate::config::PartialSettings::default(),
        arguments.config.as_ref(),
    )?;
    Ok(loaded.settings)
}

fn print(terminal: &Terminal, text: &str) -> Result<Exit, CliError> {
    terminal.print(text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

fn unknown(name: &str, settings: &Settings) -> CliError {
    CliError::UnknownName {
        what: "hat",
        name: name.to_owned(),
        known: settings.hats.keys().cloned().collect(),
    }
}

fn list(settings: &Settings, terminal: &Terminal) -> String {
    if settings.hats.is_empty() {
        return NONE.to_owned();
    }
    let mut table = Table::new(["HAT", "AGENT", "TRIGGERS", "PUBLISHES", "DESCRIPTION"]);
    for (name, hat) in &settings.hats {
        table.row([
            Cell::new(name, Tone::Accent),
            Cell::from(agent_of(hat, settings)),
            Cell::from(hat.triggers.join(", ")),
            Cell::from(hat.publishes.join(", ")),
            Cell::from(hat.description.trim()),
        ]);
    }
    terminal.render(&table)
}

/// The agent and the model that a hat works with.
fn agent_of(hat: &Hat, settings: &Settings) -> String {
    let agent = hat.agent.as_deref().unwrap_or(&settings.cli.backend);
    let adapter = settings.adapters.get(agent);
    let of_run = settings.cli.model.as_ref().filter(|_| hat.agent.is_none());
    let model = hat.model.as_ref().or(of_run);
    let model = model.or_else(|| adapter.and_then(|adapter| adapter.model.as_ref()));
    match model {
        Some(model) => format!("{agent} ({model})"),
        None => agent.to_owned(),
    }
}

fn show(name: &str, hat: &Hat) -> String {
    let mut text = String::new();
    let mut line = |key: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("{key:<18} {value}\n"));
        }
    };
    line("name", name);
    line("display_name", hat.display_name.as_deref().unwrap_or_default());
    line("description", hat.description.trim());
    line("agent", hat.agent.as_deref().unwrap_or_default());
    line("model", hat.model.as_deref().unwrap_or_default());
    line("args", &hat.args.join(" "));
    line("triggers", &hat.triggers.join(", "));
    line("publishes", &hat.publishes.join(", "));
    line(
        "default_publishes",
        hat.default_publishes.as_deref().unwrap_or_default(),
    );
    line("disallowed_tools", &hat.disallowed_tools.join(", "));
    let most = hat.max_activations.map(|most| most.to_string());
    line("max_activations", most.as_deref().unwrap_or_default());
    if !hat.instructions.trim().is_empty() {
        text.push_str(&format!("\n{}\n", hat.instructions.trim()));
    }
    clean(&text).into_owned()
}

/// Prints the problems; errors exit with the code of an invalid configuration.
fn validate(settings: &Settings, as_json: bool, terminal: &Terminal) -> Result<Exit, CliError> {
    #[derive(Serialize)]
    struct HatsReport<'a> {
        hats: usize,
        findings: &'a [HatFinding],
    }
    let rules = rules(settings);
    let findings = check_hats(&rules, &settings.event_loop.starting_event);
    let text = if as_json {
        pretty_json(&HatsReport {
            hats: rules.len(),
            findings: &findings,
        })
    } else if rules.is_empty() {
        NONE.to_owned()
    } else {
        findings_text(&rules, &findings, terminal)
    };
    print(terminal, &text)?;
    let broken = findings
        .iter()
        .any(|finding| finding.severity == HatSeverity::Error);
    Ok(if broken { Exit::Usage } else { Exit::Success })
}

fn findings_text(rules: &[Hat], findings: &[HatFinding], terminal: &Terminal) -> String {
    let mut text: String = findings
        .iter()
        .map(|finding| {
            let (word, tone) = match finding.severity {
                HatSeverity::Error => ("error", Tone::Bad),
                HatSeverity::Warning => ("warning", Tone::Warning),
            };
            format!("{}: {}\n", terminal.styled(word, tone), clean(&finding.text))
        })
        .collect();
    if findings.is_empty() {
        let mark = terminal.styled("✓", Tone::Good);
        text = format!("{mark} {} hats, no problems\n", rules.len());
    }
    text
}

/// Draws which topic activates which hat, grouped by hat.
fn graph_text(rules: &[Hat], edges: &[HatEdge]) -> String {
    let mut text = String::new();
    let mut block = |title: &str, from: Option<&str>| {
        let own: Vec<&HatEdge> = edges.iter().filter(|edge| edge.from.as_deref() == from).collect();
        let width = own
            .iter()
            .map(|edge| edge.topic.chars().count())
            .max()
            .unwrap_or(0);
        text.push_str(&format!("{title}\n"));
        for (index, edge) in own.iter().enumerate() {
            let branch = if index + 1 == own.len() {
                "└─"
            } else {
                "├─"
            };
            let to = edge.to.as_deref().unwrap_or("(no hat)");
            let (arrow, note) = if edge.claimed {
                ("──▶", "")
            } else {
                ("╌╌▶", "  (no hat claims it)")
            };
            text.push_str(&format!("{branch} {:<width$} {arrow} {to}{note}\n", edge.topic));
        }
    };
    block("(start)", None);
    for rule in rules {
        block(&rule.name, Some(&rule.name));
    }
    clean(&text).into_owned()
}

fn as_mermaid(rules: &[Hat], edges: &[HatEdge]) -> String {
    let id = |name: &str| {
        rules
            .iter()
            .position(|rule| rule.name == name)
            .map(|index| format!("hat{index}"))
    };
    let mut text = "flowchart TD\n    start((start))\n".to_owned();
    for (index, rule) in rules.iter().enumerate() {
        text.push_str(&format!("    hat{index}[\"{}\"]\n", escaped(&rule.name)));
    }
    for edge in edges {
        let from = match &edge.from {
            Some(name) => id(name),
            None => Some("start".to_owned()),
        };
        if let (Some(from), Some(to)) = (from, edge.to.as_deref().and_then(id)) {
            let arrow = if edge.claimed { "-->" } else { "-.->" };
            text.push_str(&format!(
                "    {from} {arrow}|\"{}\"| {to}\n",
                escaped(&edge.topic)
            ));
        }
    }
    clean(&text).into_owned()
}

/// Escapes a quoted Mermaid label.
fn escaped(text: &str) -> String {
    text.replace('"', "#quot;").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::START_TOPIC;

    fn hat(name: &str, triggers: &[&str], publishes: &[&str]) -> Hat {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        Hat {
            name: name.into(),
            triggers: owned(triggers),
            publishes: owned(publishes),
            ..Hat::default()
        }
    }

    fn team() -> Vec<Hat> {
        vec![
            hat("builder", &["plan.ready"], &["build.done", "help"]),
            hat("planner", &["task.start"], &["plan.ready"]),
            hat("the \"boss\"", &["build.*"], &[]),
        ]
    }

    #[test]
    fn graph_shows_every_topic_and_its_target() {
        let rules = team();
        insta::assert_snapshot!(graph_text(&rules, &hat_edges(&rules, START_TOPIC)), @r#"
        (start)
        └─ task.start ──▶ planner
        builder
        ├─ build.done ──▶ the "boss"
        └─ help       ╌╌▶ planner  (no hat claims it)
        planner
        └─ plan.ready ──▶ builder
        the "boss"
        "#);
    }

    #[test]
    fn mermaid_escapes_names_and_dots_unclaimed_topics() {
        let rules = team();
        insta::assert_snapshot!(as_mermaid(&rules, &hat_edges(&rules, START_TOPIC)), @r#"
        flowchart TD
            start((start))
            hat0["builder"]
            hat1["planner"]
            hat2["the #quot;boss#quot;"]
            start -->|"task.start"| hat1
            hat0 -->|"build.done"| hat2
            hat0 -.->|"help"| hat1
            hat1 -->|"plan.ready"| hat0
        "#);
    }
}
