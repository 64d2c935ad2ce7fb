//! Validates values that have the correct type: the rules of the schema, known names, duplicates, patterns. The same
//! checks apply to every layer.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde_json::Value;

use crate::policy::{FINDING_TOPIC, Gate, GatePlace, QUESTION_TOPIC};

use super::diagnostic::{Problem, quoted, suggestion};
use super::partial::AUTO;
use super::pattern::PathPattern;
use super::schema::{self, YEAR};
use super::settings::PartialSettings;

/// The built-in names that settings may refer to.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownNames<'a> {
    pub(super) agents: &'a [&'a str],
    pub(super) transcripts: &'a [&'a str],
}

/// Returns the first invalid value of a layer.
pub(super) fn check(settings: &PartialSettings, known: KnownNames<'_>) -> Result<(), Problem> {
    // A layer contains only types that JSON can represent, so serialization cannot fail.
    let values = serde_json::to_value(settings).unwrap_or_default();
    check_rules("", &values, &schema::SETTINGS)?;
    check_costs(settings)?;
    check_addresses(settings)?;
    check_names(settings, known)?;
    check_prompt_and_markers(settings)?;
    check_adapters(settings)?;
    check_triggers(settings)?;
    check_gates(settings)?;
    check_path_patterns(settings)
}

/// Checks ranges and empty strings against the rules of the schema.
fn check_rules(key: &str, value: &Value, rules: &Value) -> Result<(), Problem> {
    match value {
        Value::Object(members) => {
            let dot = if key.is_empty() { "" } else { "." };
            for (name, value) in members {
                if let Some(rules) = schema::member(rules, name) {
                    check_rules(&format!("{key}{dot}{name}"), value, rules)?;
                }
            }
        }
        Value::Array(items) => {
            let Some(rules) = schema::find(rules, "[0]") else {
                return Ok(());
            };
            for (index, item) in items.iter().enumerate() {
                check_rules(&format!("{key}[{index}]"), item, rules)?;
            }
        }
        Value::String(text) if rules["minLength"].is_u64() => not_blank(key, Some(text))?,
        Value::Number(number) => {
            let bound = |name: &str| rules[name].as_u64();
            let allowed = bound("minimum").unwrap_or(0)..=bound("maximum").unwrap_or(u64::MAX);
            check_range(key, number.as_u64(), allowed)?;
        }
        Value::String(_) | Value::Bool(_) | Value::Null => {}
    }
    Ok(())
}

pub(super) fn check_range(
    key: &str,
    given: Option<impl Into<u64>>,
    allowed: RangeInclusive<u64>,
) -> Result<(), Problem> {
    let Some(given) = given.map(Into::into).filter(|given| !allowed.contains(given)) else {
        return Ok(());
    };
    let bound = if given < *allowed.start() {
        format!("at least {}", allowed.start())
    } else if *allowed.end() == YEAR {
        format!("at most {YEAR} seconds (one year)")
    } else {
        format!("at most {}", allowed.end())
    };
    let help = (given == 0).then(|| "omit it to use the default".to_owned());
    Err(Problem::at_value(key, format!("expected {bound}, found `{given}`")).with_help(help))
}

fn check_costs(settings: &PartialSettings) -> Result<(), Problem> {
    let costs = [
        ("event_loop.max_cost_usd", settings.event_loop.max_cost_usd),
        ("budgets.per_day_usd", settings.budgets.per_day_usd),
        ("budgets.per_project_usd", settings.budgets.per_project_usd),
    ];
    for (key, cost) in costs {
        if let Some(cost) = cost.filter(|cost| !(cost.is_finite() && *cost > 0.0)) {
            let message = format!("expected a finite number greater than 0, found `{cost}`");
            return Err(
                Problem::at_value(key, message).with_help(Some("omit it for no cost limit".to_owned()))
            );
        }
    }
    Ok(())
}

fn check_addresses(settings: &PartialSettings) -> Result<(), Problem> {
    let addresses = [
        ("notify.ntfy", &settings.notify.ntfy),
        ("notify.webhook", &settings.notify.webhook),
    ];
    for (key, address) in addresses {
        let is_address = |address: &&String| {
            let rest = address
                .strip_prefix("https://")
                .or_else(|| address.strip_prefix("http://"));
            let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !"\"\\{}[]".contains(c);
            rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(is_plain))
        };
        if let Some(address) = address.as_ref().filter(|address| !is_address(address)) {
            let message =
                format!("expected an address that starts with `https://` or `http://`, found `{address}`");
            return Err(Problem::at_value(key, message));
        }
    }
    Ok(())
}

fn check_names(settings: &PartialSettings, known: KnownNames<'_>) -> Result<(), Problem> {
    let mut adapters = known.agents.to_vec();
    if !adapters.contains(&"custom") {
        adapters.push("custom");
    }
    if let Some(name) = settings
        .adapters
        .keys()
        .find(|name| !adapters.contains(&name.as_str()))
    {
        return Err(Problem::at_key(format!("adapters.{name}"), "unknown agent")
            .with_help(Some(suggestion(name, &adapters))));
    }
    match &settings.cli.transcript {
        Some(name) if name != AUTO && !known.transcripts.contains(&name.as_str()) => {
            let mut transcripts = vec![AUTO];
            transcripts.extend(known.transcripts.iter().filter(|name| **name != AUTO));
            let message = format!("expected a transcript format, found {}", quoted(name));
            Err(Problem::at_value("cli.transcript", message).with_help(Some(suggestion(name, &transcripts))))
        }
        _ => Ok(()),
    }
}

fn check_prompt_and_markers(settings: &PartialSettings) -> Result<(), Problem> {
    if settings.event_loop.prompt.is_some() && settings.event_loop.prompt_file.is_some() {
        let message = "cannot be combined with `event_loop.prompt`";
        return Err(Problem::at_key("event_loop.prompt_file", message)
            .with_help(Some("remove one of the two".to_owned())));
    }
    for (index, marker) in settings
        .event_loop
        .completion_promise
        .iter()
        .flatten()
        .enumerate()
    {
        // A single marker may be written without a list. The error then points at the key.
        let key = format!("event_loop.completion_promise[{index}]");
        if marker.trim_end().contains('\n') {
            return Err(Problem::at_value(key, "expected one line, found several")
                .with_help(Some("a completion marker must fit on one line".to_owned())));
        }
    }
    Ok(())
}

/// The topic of questions to the user activates no hat.
fn check_triggers(settings: &PartialSettings) -> Result<(), Problem> {
    for (name, hat) in &settings.hats {
        let mut triggers = hat.triggers.iter().flatten().enumerate();
        if let Some((index, trigger)) = triggers.find(|(_, trigger)| {
            let trigger = trigger.as_str();
            trigger == QUESTION_TOPIC || trigger == FINDING_TOPIC
        }) {
            let message = format!("the topic {} is reserved", quoted(trigger));
            let use_of_topic = match trigger == QUESTION_TOPIC {
                true => "agents ask the user with it; choose another name",
                false => "agents answer the findings of reviews with it; choose another name",
            };
            return Err(
                Problem::at_value(format!("hats.{name}.triggers[{index}]"), message)
                    .with_help(Some(use_of_topic.to_owned())),
            );
        }
    }
    Ok(())
}

fn check_adapters(settings: &PartialSettings) -> Result<(), Problem> {
    for (name, adapter) in &settings.adapters {
        if let Some(variables) = &adapter.env {
            check_variables(&format!("adapters.{name}.env"), variables)?;
        }
    }
    Ok(())
}

fn check_variables(key: &str, variables: &BTreeMap<String, String>) -> Result<(), Problem> {
    let is_invalid = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
    let Some(name) = variables.keys().find(is_invalid) else {
        return Ok(());
    };
    let message = format!("expected names of environment variables, found {}", quoted(name));
    Err(Problem::at_value(key.to_owned(), message)
        .with_help(Some("a name is not empty and contains no `=`".to_owned())))
}

fn check_gates(settings: &PartialSettings) -> Result<(), Problem> {
    let mut seen = BTreeMap::new();
    check_gate_places(settings)?;
    check_reviews(settings)?;
    for (index, gate) in settings.gates.iter().flatten().enumerate() {
        check_variables(&format!("gates[{index}].env"), &gate.env)?;
        if let Some(first) = seen.insert(gate.name.as_str(), index) {
            let message = format!(
                "duplicate name {}, already used by `gates[{first}]`",
                quoted(&gate.name)
            );
            return Err(Problem::at_value(format!("gates[{index}].name"), message)
                .with_help(Some("rename one of the two".to_owned())));
        }
    }
    Ok(())
}

/// A gate is either a command or a review.
fn check_reviews(settings: &PartialSettings) -> Result<(), Problem> {
    for (index, gate) in settings.gates.iter().flatten().enumerate() {
        let key = |name: &str| format!("gates[{index}].{name}");
        if !gate.is_review() {
            if let Some(name) = review_key(gate) {
                return Err(
                    Problem::at_key(key(name), "cannot be combined with `run`").with_help(Some(
                        "a gate is either a command or a review; make it two gates".to_owned(),
                    )),
                );
            }
            continue;
        }
        if gate.agent.is_none()
            && gate.model.is_none()
            && gate.prompt_file.is_none()
            && gate.reviewers.is_empty()
        {
            return Err(
                Problem::at_key(format!("gates[{index}]"), "missing required key `run`")
                    .with_help(Some("add `run: …`, or `agent: …` for a review".to_owned())),
            );
        }
        if let Some(name) = command_key(gate) {
            return Err(Problem::at_key(key(name), "has no effect on a review")
                .with_help(Some("remove it, or add `run`".to_owned())));
        }
        let most = gate.all_reviewers().len() as u64;
        check_range(&key("quorum"), gate.quorum, 1..=most)?;
        let mut seen = BTreeMap::new();
        for (number, reviewer) in gate.reviewers.iter().enumerate() {
            if let Some(first) = seen.insert(reviewer.name.as_str(), number) {
                let message = format!(
                    "duplicate name {}, already used by `gates[{index}].reviewers[{first}]`",
                    quoted(&reviewer.name)
                );
                let key = key(&format!("reviewers[{number}].name"));
                return Err(
                    Problem::at_value(key, message).with_help(Some("rename one of the two".to_owned()))
                );
            }
        }
    }
    Ok(())
}

/// A key that only reviews have.
fn review_key(gate: &Gate) -> Option<&'static str> {
    let keys = [
        ("agent", gate.agent.is_some()),
        ("model", gate.model.is_some()),
        ("args", !gate.args.is_empty()),
        ("prompt_file", gate.prompt_file.is_some()),
        ("block", gate.block.is_some()),
        ("rounds", gate.rounds.is_some()),
        ("same", gate.same),
        ("reviewers", !gate.reviewers.is_empty()),
        ("quorum", gate.quorum.is_some()),
    ];
    first_set(&keys)
}

/// A key that only commands have.
fn command_key(gate: &Gate) -> Option<&'static str> {
    let keys = [
        ("cwd", gate.cwd.is_some()),
        ("env", !gate.env.is_empty()),
        ("in", gate.place.is_some()),
        ("protect", !gate.protect.is_empty()),
        ("cache", !gate.cache.is_empty()),
        ("must_fail_first", gate.must_fail_first),
        ("hidden", gate.hidden),
        ("report", gate.report.is_some()),
        ("min_tests", gate.min_tests.is_some()),
    ];
    first_set(&keys)
}

fn first_set(keys: &[(&'static str, bool)]) -> Option<&'static str> {
    keys.iter().find(|(_, set)| *set).map(|(key, _)| *key)
}

/// Protected files can be restored only in a checkout.
fn check_gate_places(settings: &PartialSettings) -> Result<(), Problem> {
    for (index, gate) in settings.gates.iter().flatten().enumerate() {
        if gate.place == Some(GatePlace::Workspace) && !gate.protect.is_empty() {
            let key = format!("gates[{index}].protect");
            return Err(
                Problem::at_key(key, "cannot be combined with `in: workspace`").with_help(Some(
                    "remove `in`: a gate with `protect` runs in a clean checkout".to_owned(),
                )),
            );
        }
        if !gate.runs_clean() && !gate.cache.is_empty() {
            let key = format!("gates[{index}].cache");
            return Err(Problem::at_key(key, "has no effect without `in: clean`")
                .with_help(Some("add `in: clean`, or remove it".to_owned())));
        }
    }
    Ok(())
}

/// Path patterns must be relative to the workspace.
fn check_path_patterns(settings: &PartialSettings) -> Result<(), Problem> {
    let allowed = settings.event_loop.allowed_paths.iter().flatten().enumerate();
    let allowed = allowed.map(|(index, pattern)| (format!("event_loop.allowed_paths[{index}]"), pattern));
    let included = settings.snapshots.include.iter().flatten().enumerate();
    let included = included.map(|(index, pattern)| (format!("snapshots.include[{index}]"), pattern));
    let gates = settings.gates.iter().flatten().enumerate();
    let gates = gates.flat_map(|(gate, rule)| {
        let named = [("protect", &rule.protect), ("cache", &rule.cache)];
        named.into_iter().flat_map(move |(name, patterns)| {
            let numbered = patterns.iter().enumerate();
            numbered.map(move |(index, pattern)| (format!("gates[{gate}].{name}[{index}]"), pattern))
        })
    });
    for (key, pattern) in allowed.chain(included).chain(gates) {
        if pattern.starts_with('/') || pattern.split('/').any(|part| matches!(part, "." | "..")) {
            let message = format!(
                "expected a path relative to the workspace, without `.` or `..`, found {}",
                quoted(pattern)
            );
            return Err(Problem::at_value(key, message)
                .with_help(Some("write for example `src/**` or `docs/*.md`".to_owned())));
        }
        if let Err(error) = pattern.parse::<PathPattern>() {
            let message = format!("invalid path pattern {}: {error}", quoted(pattern));
            return Err(Problem::at_value(key, message));
        }
    }
    Ok(())
}

pub(super) fn not_blank(key: &str, given: Option<&str>) -> Result<(), Problem> {
    match given {
        Some(text) if text.trim().is_empty() => Err(Problem::at_value(key, "must not be empty")),
        _ => Ok(()),
    }
}
