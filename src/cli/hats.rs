//! `ralph hats`: the hats as a list, one by one, as a graph_text; and what is wrong with them.

use serde::Serialize;

use crate::config::{Hat, Settings};
use crate::doctor::{Finding, State};
use crate::engine::{Edge, HatFinding, HatRule, HatSeverity, check, edges};
use crate::ui::{Cell, Table, Terminal, Tone, clean::clean};

use super::agents::json;
use super::args::{ConfigArguments, HatsArguments, HatsCommand};
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;

/// The hats of the configuration, in the order of their names.
pub(super) fn rules(settings: &Settings) -> Vec<HatRule> {
    let rule = |(name, hat): (&String, &Hat)| HatRule {
        name: name.clone(),
        description: hat.description.clone(),
        triggers: hat.triggers.clone(),
        publishes: hat.publishes.clone(),
        instructions: hat.instructions.clone(),
        default_publishes: hat.default_publishes.clone(),
        max_activations: hat.max_activations,
    };
    settings.hats.iter().map(rule).collect()
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
                json(&settings.hats)
            } else {
                list(&settings, terminal)
            };
            print(terminal, &text)
        }
        HatsCommand::Show { name, config } => {
            let settings = load(config)?;
            let hat = settings.hats.get(name).ok_or_else(|| unknown(name, &settings))?;
            let text = if config.json { json(hat) } else { show(name, hat) };
            print(terminal, &text)
        }
        HatsCommand::Validate(config) => validate(&rules(&load(config)?), config.json, terminal),
        HatsCommand::Graph { mermaid, config } => {
            let rules = rules(&load(config)?);
            let edges = edges(&rules);
            let text = match (config.json, mermaid) {
                (true, _) => json(&edges),
                (false, true) => as_mermaid(&rules, &edges),
                (false, false) if rules.is_empty() => NONE.to_owned(),
                (false, false) => graph_text(&rules, &edges),
            };
            print(terminal, &text)
        }
    }
}

const NONE: &str = "No hats are configured: the agent works without them (see docs/hats.md).\n";

fn load(arguments: &ConfigArguments) -> Result<Settings, CliError> {
    let context = Context::here()?;
    let loaded = context.load(crate::config::Partial::default(), arguments.config.as_ref())?;
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
    let mut table = Table::new(["HAT", "TRIGGERS", "PUBLISHES", "DESCRIPTION"]);
    for (name, hat) in &settings.hats {
        table.row([
            Cell::new(name, Tone::Accent),
            Cell::from(hat.triggers.join(", ")),
            Cell::from(hat.publishes.join(", ")),
            Cell::from(hat.description.trim()),
        ]);
    }
    terminal.render(&table)
}

fn show(name: &str, hat: &Hat) -> String {
    let mut text = String::new();
    let mut line = |key: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("{key:<18} {value}\n"));
        }
    };
    line("name", name);
    line("description", hat.description.trim());
    line("triggers", &hat.triggers.join(", "));
    line("publishes", &hat.publishes.join(", "));
    line(
        "default_publishes",
        hat.default_publishes.as_deref().unwrap_or_default(),
    );
    let most = hat.max_activations.map(|most| most.to_string());
    line("max_activations", most.as_deref().unwrap_or_default());
    if !hat.instructions.trim().is_empty() {
        text.push_str(&format!("\n{}\n", hat.instructions.trim()));
    }
    clean(&text).into_owned()
}

/// What is wrong with them, for the doctor; nothing where there are none.
pub(super) fn findings(settings: &Settings) -> Vec<Finding> {
    let rules = rules(settings);
    let finding = |state, detail: String, remedy| Finding {
        area: "hats",
        subject: "hats".to_owned(),
        state,
        detail,
        remedy,
    };
    let wrong: Vec<Finding> = check(&rules)
        .into_iter()
        .map(|found| {
            let state = match found.severity {
                HatSeverity::Error => State::Broken,
                HatSeverity::Warning => State::Warning,
            };
            let remedy = "to see how they hang together: ralph hats graph".to_owned();
            finding(state, found.text, Some(remedy))
        })
        .collect();
    match rules.len() {
        0 => Vec::new(),
        count if wrong.is_empty() => {
            let noun = if count == 1 { "hat" } else { "hats" };
            vec![finding(
                State::Good,
                format!("{count} {noun}, nothing wrong"),
                None,
            )]
        }
        _ => wrong,
    }
}

/// An error means that no run can be made: the exit code of a wrong configuration.
fn validate(rules: &[HatRule], as_json: bool, terminal: &Terminal) -> Result<Exit, CliError> {
    #[derive(Serialize)]
    struct HatsReport<'a> {
        hats: usize,
        findings: &'a [HatFinding],
    }
    let findings = check(rules);
    let text = if as_json {
        json(&HatsReport {
            hats: rules.len(),
            findings: &findings,
        })
    } else if rules.is_empty() {
        NONE.to_owned()
    } else {
        verdict(rules, &findings, terminal)
    };
    print(terminal, &text)?;
    let broken = findings
        .iter()
        .any(|finding| finding.severity == HatSeverity::Error);
    Ok(if broken { Exit::Usage } else { Exit::Success })
}

fn verdict(rules: &[HatRule], findings: &[HatFinding], terminal: &Terminal) -> String {
    let mut text: String = findings
        .iter()
        .map(|finding| {
            let (word, tone) = match finding.severity {
                HatSeverity::Error => ("error", Tone::Bad),
                HatSeverity::Warning => ("warning", Tone::Warning),
            };
            format!("{}: {}\n", terminal.tinted(word, tone), clean(&finding.text))
        })
        .collect();
    if findings.is_empty() {
        let mark = terminal.tinted("✓", Tone::Good);
        text = format!("{mark} {} hats, nothing wrong\n", rules.len());
    }
    text
}

/// Who hands what to whom, hat by hat.
fn graph_text(rules: &[HatRule], edges: &[Edge]) -> String {
    let mut text = String::new();
    let mut block = |title: &str, from: Option<&str>| {
        let own: Vec<&Edge> = edges.iter().filter(|edge| edge.from.as_deref() == from).collect();
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
            let to = edge.to.as_deref().unwrap_or("nobody");
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

fn as_mermaid(rules: &[HatRule], edges: &[Edge]) -> String {
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

/// As mermaid wants it inside quotes.
fn escaped(text: &str) -> String {
    text.replace('"', "#quot;").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hat(name: &str, triggers: &[&str], publishes: &[&str]) -> HatRule {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        HatRule {
            name: name.into(),
            triggers: owned(triggers),
            publishes: owned(publishes),
            ..HatRule::default()
        }
    }

    fn team() -> Vec<HatRule> {
        vec![
            hat("builder", &["plan.ready"], &["build.done", "help"]),
            hat("planner", &["task.start"], &["plan.ready"]),
            hat("the \"boss\"", &["build.*"], &[]),
        ]
    }

    #[test]
    fn the_drawing_shows_every_topic_and_where_it_goes() {
        let rules = team();
        insta::assert_snapshot!(graph_text(&rules, &edges(&rules)), @r#"
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
    fn mermaid_gets_safe_names_and_dotted_lines_for_what_nobody_claims() {
        let rules = team();
        insta::assert_snapshot!(as_mermaid(&rules, &edges(&rules)), @r#"
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
