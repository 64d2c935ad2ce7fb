//! Values that have the right type and still make no sense. The same checks hold for every layer. Whether the
//! chosen agent exists is not asked here.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::diagnostic::{Problem, quoted, suggestion};
use super::partial::{AUTO, Partial};
use super::pattern::PathPattern;

/// The names that a wish may refer to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) agents: &'a [&'a str],
    pub(super) transcripts: &'a [&'a str],
}

/// Longer times are mistakes, and could not be added to a clock.
pub(super) const YEAR: u64 = 365 * 24 * 60 * 60;
const ANY_TIME: RangeInclusive<u64> = 0..=YEAR;
pub(super) const SOME_TIME: RangeInclusive<u64> = 1..=YEAR;
const SOME: RangeInclusive<u64> = 1..=u64::MAX;
/// A line must at least hold one small event, and at most what a machine can hold.
const LINE: RangeInclusive<u64> = 4096..=4 << 30;

/// The first thing in this layer that makes no sense.
pub(super) fn check(wishes: &Partial, known: Known<'_>) -> Result<(), Problem> {
    check_ranges(wishes)?;
    check_names(wishes, known)?;
    check_texts(wishes)?;
    check_gates(wishes)?;
    check_hats(wishes)?;
    check_globs(wishes)
}

fn check_ranges(wishes: &Partial) -> Result<(), Problem> {
    let limits = &wishes.event_loop;
    for (key, given, allowed) in [
        ("cli.idle_timeout_secs", wishes.cli.idle_timeout_secs, ANY_TIME),
        ("event_loop.max_iterations", limits.max_iterations, SOME),
        (
            "event_loop.max_runtime_seconds",
            limits.max_runtime_seconds,
            SOME_TIME,
        ),
        ("event_loop.max_tokens", limits.max_tokens, SOME),
        (
            "event_loop.max_consecutive_failures",
            limits.max_consecutive_failures,
            SOME,
        ),
        ("event_loop.cooldown_seconds", limits.cooldown_seconds, ANY_TIME),
        (
            "event_loop.stop_grace_seconds",
            limits.stop_grace_seconds,
            ANY_TIME,
        ),
        (
            "event_loop.result_grace_seconds",
            limits.result_grace_seconds,
            ANY_TIME,
        ),
        ("event_loop.max_line_bytes", limits.max_line_bytes, LINE),
        ("hooks.timeout", wishes.hooks.timeout, SOME_TIME),
    ] {
        check_range(key, given, allowed)?;
    }
    for (name, adapter) in &wishes.adapters {
        check_range(&format!("adapters.{name}.timeout"), adapter.timeout, SOME_TIME)?;
        check_range(
            &format!("adapters.{name}.idle_timeout"),
            adapter.idle_timeout,
            ANY_TIME,
        )?;
    }
    for (index, gate) in wishes.gates.iter().flatten().enumerate() {
        check_range(&format!("gates[{index}].timeout"), Some(gate.timeout), SOME_TIME)?;
    }
    for (name, hat) in &wishes.hats {
        check_range(&format!("hats.{name}.max_activations"), hat.max_activations, SOME)?;
    }
    check_cost(limits.max_cost_usd)
}

pub(super) fn check_range(
    key: &str,
    given: Option<u64>,
    allowed: RangeInclusive<u64>,
) -> Result<(), Problem> {
    let Some(given) = given.filter(|given| !allowed.contains(given)) else {
        return Ok(());
    };
    let bound = if given < *allowed.start() {
        format!("at least {}", allowed.start())
    } else if *allowed.end() == YEAR {
        format!("at most {YEAR} seconds (a year)")
    } else {
        format!("at most {}", allowed.end())
    };
    let help = (given == 0).then(|| "leave it out for the default".to_owned());
    Err(Problem::about_value(key, format!("must be {bound}, but is `{given}`")).with_help(help))
}

fn check_cost(given: Option<f64>) -> Result<(), Problem> {
    match given {
        Some(cost) if !(cost.is_finite() && cost > 0.0) => {
            let problem = format!("must be more than 0 and finite, but is `{cost}`");
            Err(Problem::about_value("event_loop.max_cost_usd", problem)
                .with_help(Some("leave it out for no limit on the cost".to_owned())))
        }
        _ => Ok(()),
    }
}

fn check_names(wishes: &Partial, known: Known<'_>) -> Result<(), Problem> {
    let mut adapters = known.agents.to_vec();
    if !adapters.contains(&"custom") {
        adapters.push("custom");
    }
    if let Some(name) = wishes
        .adapters
        .keys()
        .find(|name| !adapters.contains(&name.as_str()))
    {
        return Err(
            Problem::about_name(format!("adapters.{name}"), "is not a known agent")
                .with_help(Some(suggestion(name, &adapters))),
        );
    }
    match &wishes.cli.transcript {
        Some(name) if name != AUTO && !known.transcripts.contains(&name.as_str()) => {
            let mut transcripts = vec![AUTO];
            transcripts.extend(known.transcripts.iter().filter(|name| **name != AUTO));
            let problem = format!("must be a transcript format, but is {}", quoted(name));
            Err(Problem::about_value("cli.transcript", problem)
                .with_help(Some(suggestion(name, &transcripts))))
        }
        _ => Ok(()),
    }
}

fn check_texts(wishes: &Partial) -> Result<(), Problem> {
    let path =
        |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.to_string_lossy().into_owned());
    for (key, given) in [
        ("cli.backend", wishes.cli.backend.clone()),
        ("cli.command", wishes.cli.command.clone()),
        ("cli.prompt_flag", wishes.cli.prompt_flag.clone()),
        ("cli.claude_command", wishes.cli.claude_command.clone()),
        ("event_loop.prompt", wishes.event_loop.prompt.clone()),
        ("event_loop.prompt_file", path(&wishes.event_loop.prompt_file)),
        ("pricing", path(&wishes.pricing)),
        ("hooks.on_start", wishes.hooks.on_start.clone()),
        ("hooks.on_iteration", wishes.hooks.on_iteration.clone()),
        ("hooks.on_complete", wishes.hooks.on_complete.clone()),
        ("hooks.on_fail", wishes.hooks.on_fail.clone()),
        ("hooks.on_rate_limit", wishes.hooks.on_rate_limit.clone()),
    ] {
        not_blank(key, given.as_deref())?;
    }
    if wishes.event_loop.prompt.is_some() && wishes.event_loop.prompt_file.is_some() {
        let problem = "cannot be given together with `event_loop.prompt`";
        return Err(Problem::about_name("event_loop.prompt_file", problem)
            .with_help(Some("keep one of the two".to_owned())));
    }
    for (index, marker) in wishes.event_loop.completion_promise.iter().flatten().enumerate() {
        // One marker may be written without a list; then there is no item to point at, only the key around it.
        let key = format!("event_loop.completion_promise[{index}]");
        not_blank(&key, Some(marker))?;
        if marker.trim_end().contains('\n') {
            return Err(Problem::about_value(
                key,
                "must fit on one line, because an agent says it on one line",
            ));
        }
    }
    Ok(())
}

fn check_gates(wishes: &Partial) -> Result<(), Problem> {
    let mut seen = BTreeMap::new();
    for (index, gate) in wishes.gates.iter().flatten().enumerate() {
        not_blank(&format!("gates[{index}].name"), Some(&gate.name))?;
        not_blank(&format!("gates[{index}].run"), Some(&gate.run))?;
        let cwd = gate.cwd.as_ref().map(|cwd| cwd.to_string_lossy());
        not_blank(&format!("gates[{index}].cwd"), cwd.as_deref())?;
        let no_name = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
        if let Some(name) = gate.env.keys().find(no_name) {
            let problem = format!(
                "must have names of variables as keys, but {} is none",
                quoted(name)
            );
            return Err(Problem::about_value(format!("gates[{index}].env"), problem));
        }
        if let Some(first) = seen.insert(gate.name.as_str(), index) {
            let problem = format!(
                "must be unique, but {} is also the name of `gates[{first}]`",
                quoted(&gate.name)
            );
            return Err(Problem::about_value(format!("gates[{index}].name"), problem));
        }
    }
    Ok(())
}

fn check_hats(wishes: &Partial) -> Result<(), Problem> {
    for (name, hat) in &wishes.hats {
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

/// Globs are relative to the workspace, which is what they are held against.
fn check_globs(wishes: &Partial) -> Result<(), Problem> {
    for (index, glob) in wishes.event_loop.allowed_paths.iter().flatten().enumerate() {
        let key = format!("event_loop.allowed_paths[{index}]");
        not_blank(&key, Some(glob))?;
        if glob.starts_with('/') || glob.split('/').any(|part| matches!(part, "." | "..")) {
            let problem = format!(
                "must be relative to the workspace, without `.` or `..`, but is {}",
                quoted(glob)
            );
            return Err(Problem::about_value(key, problem)
                .with_help(Some("write `src/**`, or `docs/*.md`".to_owned())));
        }
        if let Err(error) = glob.parse::<PathPattern>() {
            let problem = format!(
                "must be a pattern of paths, but {} is none: {error}",
                quoted(glob)
            );
            return Err(Problem::about_value(key, problem));
        }
    }
    Ok(())
}

pub(super) fn not_blank(key: &str, given: Option<&str>) -> Result<(), Problem> {
    match given {
        Some(text) if text.trim().is_empty() => Err(Problem::about_value(key, "must not be empty")),
        _ => Ok(()),
    }
}
