//! Wishes that come as `RALPH_*` variables. A new variable is one row of the table.

use super::diagnostic::{ConfigError, Problem, closest, printable};
use super::expected::Expected;
use super::partial::Partial;
use super::words::split_words;

const PREFIX: &str = "RALPH_";

struct Variable {
    name: &'static str,
    /// What it sets, the first being what it is about.
    keys: &'static [&'static str],
    read: fn(&str, &mut Partial) -> Result<(), Problem>,
}

/// An earlier row wins over a later one that touches the same key.
const VARIABLES: &[Variable] = &[
    Variable {
        name: "RALPH_AGENT",
        keys: &["cli.backend"],
        read: |text, wishes| {
            wishes.cli.backend = Some(text.to_owned());
            Ok(())
        },
    },
    Variable {
        name: "RALPH_AGENT_CMD",
        keys: &["cli.command", "cli.args", "cli.backend"],
        read: read_command,
    },
    Variable {
        name: "RALPH_TRANSCRIPT",
        keys: &["cli.transcript"],
        read: |text, wishes| {
            wishes.cli.transcript = Some(text.to_owned());
            Ok(())
        },
    },
    Variable {
        name: "RALPH_MODEL",
        keys: &["cli.model"],
        read: |text, wishes| {
            wishes.cli.model = Some(text.to_owned());
            Ok(())
        },
    },
    Variable {
        name: "RALPH_MAX_ITERATIONS",
        keys: &["event_loop.max_iterations"],
        read: |text, wishes| {
            wishes.event_loop.max_iterations = Some(read_number("event_loop.max_iterations", text)?);
            Ok(())
        },
    },
    Variable {
        name: "RALPH_MAX_RUNTIME_SECONDS",
        keys: &["event_loop.max_runtime_seconds"],
        read: |text, wishes| {
            wishes.event_loop.max_runtime_seconds =
                Some(read_number("event_loop.max_runtime_seconds", text)?);
            Ok(())
        },
    },
    Variable {
        name: "RALPH_MAX_COST_USD",
        keys: &["event_loop.max_cost_usd"],
        read: |text, wishes| {
            wishes.event_loop.max_cost_usd = Some(read_number("event_loop.max_cost_usd", text)?);
            Ok(())
        },
    },
    Variable {
        name: "RALPH_PROMPT_FILE",
        keys: &["event_loop.prompt_file"],
        read: |text, wishes| {
            wishes.event_loop.prompt_file = Some(text.into());
            Ok(())
        },
    },
];

/// What `ralph` itself tells its children, or reads elsewhere.
const NOT_WISHES: &[&str] = &[
    "RALPH_RUN_ID",
    "RALPH_ITERATION",
    "RALPH_HAT",
    "RALPH_BIN",
    "RALPH_CONFIG_ALONE",
    "RALPH_HOOK",
    "RALPH_TRUST",
    "RALPH_AS_CLAUDE",
];

/// The environment as a layer.
#[derive(Debug, Default)]
pub(super) struct Environment {
    pub(super) wishes: Partial,
    pub(super) warnings: Vec<String>,
    /// What was set, and by which variable.
    pub(super) set_by: Vec<(&'static str, &'static str)>,
}

impl Environment {
    pub(super) fn read(variables: &[(String, String)]) -> Result<Self, ConfigError> {
        let mut read = Self::default();
        for variable in VARIABLES {
            let given = variables.iter().find(|(name, _)| name == variable.name);
            // `RALPH_MODEL= ralph run` takes a variable back, as it does for most programs.
            let Some((_, text)) = given.filter(|(_, text)| !text.is_empty()) else {
                continue;
            };
            (variable.read)(text, &mut read.wishes).map_err(|complaint| ConfigError::Variable {
                variable: variable.name.to_owned(),
                complaint,
            })?;
            read.set_by
                .extend(variable.keys.iter().map(|key| (*key, variable.name)));
        }
        read.warnings = variables.iter().filter_map(|(name, _)| unknown(name)).collect();
        Ok(read)
    }

    pub(super) fn blame(&self, complaint: Problem) -> ConfigError {
        let variable = origin_of(&self.set_by, &complaint.key)
            .unwrap_or("RALPH_*")
            .to_owned();
        ConfigError::Variable { variable, complaint }
    }
}

/// The variable behind a key.
pub(super) fn origin_of<'a>(set_by: &[(&'a str, &'a str)], key: &str) -> Option<&'a str> {
    let row = set_by.iter().find(|(set, _)| *set == key);
    row.or_else(|| set_by.iter().find(|(set, _)| set.starts_with(key)))
        .map(|(_, variable)| *variable)
}

/// A variable that looks like a wish and is none.
fn unknown(name: &str) -> Option<String> {
    let word = name.strip_prefix(PREFIX)?;
    let known: Vec<_> = VARIABLES.iter().map(|variable| variable.name).collect();
    if known.contains(&name) || NOT_WISHES.contains(&name) {
        return None;
    }
    // Without the prefix, which they all share and which would make them all alike.
    let words: Vec<_> = known
        .iter()
        .filter_map(|name| name.strip_prefix(PREFIX))
        .collect();
    let hint = closest(word, &words).map_or(String::new(), |meant| {
        format!("; did you mean `{PREFIX}{meant}`?")
    });
    Some(format!(
        "environment variable `{}` has no effect{hint}",
        printable(name)
    ))
}

fn read_command(text: &str, wishes: &mut Partial) -> Result<(), Problem> {
    let complain = |problem: String| Problem::about_value("cli.command", problem);
    let mut words = split_words(text)
        .map_err(|error| complain(error.to_string()))?
        .into_iter();
    let command = words
        .next()
        .ok_or_else(|| complain("names no command".to_owned()))?;
    wishes.cli.command = Some(command);
    wishes.cli.args = Some(words.collect());
    wishes.cli.backend.get_or_insert_with(|| "custom".to_owned());
    Ok(())
}

fn read_number<N: std::str::FromStr>(key: &str, text: &str) -> Result<N, Problem> {
    let text = text.trim();
    text.parse().map_err(|_| {
        let expected = Expected::of(key);
        Problem::about_value(key, expected.refusal(text)).with_help(expected.correction(text))
    })
}
