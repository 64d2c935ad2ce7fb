//! Validates values that have the correct type: ranges, known names, empty strings, duplicates, patterns. The same
//! checks apply to every layer.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::diagnostic::{Problem, quoted, suggestion};
use super::partial::{AUTO, PartialSettings};
use super::pattern::PathPattern;

/// The built-in names that settings may refer to.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownNames<'a> {
    pub(super) agents: &'a [&'a str],
    pub(super) transcripts: &'a [&'a str],
}

/// Maximum duration. Longer durations are certainly errors and could overflow a clock.
pub(super) const YEAR: u64 = 365 * 24 * 60 * 60;
const OPTIONAL_SECONDS: RangeInclusive<u64> = 0..=YEAR;
pub(super) const REQUIRED_SECONDS: RangeInclusive<u64> = 1..=YEAR;
const AT_LEAST_ONE: RangeInclusive<u64> = 1..=u64::MAX;
/// Large enough for a small event, small enough for memory.
const LINE_BYTES: RangeInclusive<u64> = 4096..=4 << 30;

/// Returns the first invalid value of a layer.
pub(super) fn check(settings: &PartialSettings, known: KnownNames<'_>) -> Result<(), Problem> {
    check_ranges(settings)?;
    check_names(settings, known)?;
    check_texts(settings)?;
    check_gates(settings)?;
    check_hats(settings)?;
    check_path_patterns(settings)
}

fn check_ranges(settings: &PartialSettings) -> Result<(), Problem> {
    let limits = &settings.event_loop;
    for (key, given, allowed) in [
        (
            "cli.idle_timeout_secs",
            settings.cli.idle_timeout_secs.map(u64::from),
            OPTIONAL_SECONDS,
        ),
        ("event_loop.max_iterations", limits.max_iterations, AT_LEAST_ONE),
        (
            "event_loop.max_runtime_seconds",
            limits.max_runtime_seconds.map(u64::from),
            REQUIRED_SECONDS,
        ),
        ("event_loop.max_tokens", limits.max_tokens, AT_LEAST_ONE),
        (
            "event_loop.max_consecutive_failures",
            limits.max_consecutive_failures,
            AT_LEAST_ONE,
        ),
        (
            "event_loop.cooldown_seconds",
            limits.cooldown_seconds.map(u64::from),
            OPTIONAL_SECONDS,
        ),
        (
            "event_loop.max_wait_seconds",
            limits.max_wait_seconds.map(u64::from),
            REQUIRED_SECONDS,
        ),
        (
            "event_loop.stop_grace_seconds",
            limits.stop_grace_seconds.map(u64::from),
            OPTIONAL_SECONDS,
        ),
        (
            "event_loop.result_grace_seconds",
            limits.result_grace_seconds.map(u64::from),
            OPTIONAL_SECONDS,
        ),
        ("event_loop.max_line_bytes", limits.max_line_bytes, LINE_BYTES),
        (
            "hooks.timeout",
            settings.hooks.timeout.map(u64::from),
            REQUIRED_SECONDS,
        ),
    ] {
        check_range(key, given, allowed)?;
    }
    check_list_ranges(settings)?;
    check_cost(limits.max_cost_usd)
}

/// Checks the numbers of adapters, gates and hats.
fn check_list_ranges(settings: &PartialSettings) -> Result<(), Problem> {
    for (name, adapter) in &settings.adapters {
        check_range(
            &format!("adapters.{name}.timeout"),
            adapter.timeout,
            REQUIRED_SECONDS,
        )?;
        check_range(
            &format!("adapters.{name}.idle_timeout"),
            adapter.idle_timeout,
            OPTIONAL_SECONDS,
        )?;
    }
    for (index, gate) in settings.gates.iter().flatten().enumerate() {
        check_range(
            &format!("gates[{index}].timeout"),
            Some(gate.timeout),
            REQUIRED_SECONDS,
        )?;
    }
    for (name, hat) in &settings.hats {
        check_range(
            &format!("hats.{name}.max_activations"),
            hat.max_activations,
            AT_LEAST_ONE,
        )?;
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

fn check_cost(given: Option<f64>) -> Result<(), Problem> {
    match given {
        Some(cost) if !(cost.is_finite() && cost > 0.0) => {
            let message = format!("expected a finite number greater than 0, found `{cost}`");
            Err(Problem::at_value("event_loop.max_cost_usd", message)
                .with_help(Some("omit it for no cost limit".to_owned())))
        }
        _ => Ok(()),
    }
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

fn check_texts(settings: &PartialSettings) -> Result<(), Problem> {
    let path =
        |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.to_string_lossy().into_owned());
    for (key, given) in [
        ("cli.backend", settings.cli.backend.clone()),
        ("cli.command", settings.cli.command.clone()),
        ("cli.prompt_flag", settings.cli.prompt_flag.clone()),
        ("cli.claude_command", settings.cli.claude_command.clone()),
        ("event_loop.prompt", settings.event_loop.prompt.clone()),
        ("event_loop.prompt_file", path(&settings.event_loop.prompt_file)),
        ("pricing", path(&settings.pricing)),
        ("hooks.on_start", settings.hooks.on_start.clone()),
        ("hooks.on_iteration", settings.hooks.on_iteration.clone()),
        ("hooks.on_complete", settings.hooks.on_complete.clone()),
        ("hooks.on_fail", settings.hooks.on_fail.clone()),
        ("hooks.on_rate_limit", settings.hooks.on_rate_limit.clone()),
    ] {
        not_blank(key, given.as_deref())?;
    }
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
        not_blank(&key, Some(marker))?;
        if marker.trim_end().contains('\n') {
            return Err(Problem::at_value(key, "expected one line, found several")
                .with_help(Some("a completion marker must fit on one line".to_owned())));
        }
    }
    Ok(())
}

fn check_gates(settings: &PartialSettings) -> Result<(), Problem> {
    let mut seen = BTreeMap::new();
    for (index, gate) in settings.gates.iter().flatten().enumerate() {
        not_blank(&format!("gates[{index}].name"), Some(&gate.name))?;
        not_blank(&format!("gates[{index}].run"), Some(&gate.run))?;
        let cwd = gate.cwd.as_ref().map(|cwd| cwd.to_string_lossy());
        not_blank(&format!("gates[{index}].cwd"), cwd.as_deref())?;
        let is_invalid = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
        if let Some(name) = gate.env.keys().find(is_invalid) {
            let message = format!("expected names of environment variables, found {}", quoted(name));
            return Err(Problem::at_value(format!("gates[{index}].env"), message)
                .with_help(Some("a name is not empty and contains no `=`".to_owned())));
        }
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

fn check_hats(settings: &PartialSettings) -> Result<(), Problem> {
    for (name, hat) in &settings.hats {
        for (key, topics) in [("triggers", &hat.triggers), ("publishes", &hat.publishes)] {
            for (index, topic) in topics.iter().flatten().enumerate() {
                not_blank(&format!("hats.{name}.{key}[{index}]"), Some(topic))?;
            }
        }
        not_blank(
            &format!("hats.{name}.default_publishes"),
            hat.default_publishes.as_deref(),
        )?;
    }
    Ok(())
}

/// Path patterns must be relative to the workspace.
fn check_path_patterns(settings: &PartialSettings) -> Result<(), Problem> {
    for (index, pattern) in settings.event_loop.allowed_paths.iter().flatten().enumerate() {
        let key = format!("event_loop.allowed_paths[{index}]");
        not_blank(&key, Some(pattern))?;
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
