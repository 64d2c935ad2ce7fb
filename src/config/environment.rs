//! Settings from `RALPH_*` environment variables. Each variable is one row of a table.

use super::diagnostic::{ConfigError, Problem, closest, printable};
use super::expected::Expected;
use super::partial::PartialSettings;
use super::shell_words::split_words;

const PREFIX: &str = "RALPH_";

struct EnvironmentVariable {
    name: &'static str,
    /// The keys that it sets, the main one first.
    keys: &'static [&'static str],
    read: fn(&str, &mut PartialSettings) -> Result<(), Problem>,
}

/// An earlier row takes precedence over a later one that sets the same key.
const VARIABLES: &[EnvironmentVariable] = &[
    EnvironmentVariable {
        name: "RALPH_AGENT",
        keys: &["cli.backend"],
        read: |text, settings| {
            settings.cli.backend = Some(text.to_owned());
            Ok(())
        },
    },
    EnvironmentVariable {
        name: "RALPH_AGENT_CMD",
        keys: &["cli.command", "cli.args", "cli.backend"],
        read: read_command,
    },
    EnvironmentVariable {
        name: "RALPH_TRANSCRIPT",
        keys: &["cli.transcript"],
        read: |text, settings| {
            settings.cli.transcript = Some(text.to_owned());
            Ok(())
        },
    },
    EnvironmentVariable {
        name: "RALPH_MODEL",
        keys: &["cli.model"],
        read: |text, settings| {
            settings.cli.model = Some(text.to_owned());
            Ok(())
        },
    },
    EnvironmentVariable {
        name: "RALPH_MAX_ITERATIONS",
        keys: &["event_loop.max_iterations"],
        read: |text, settings| {
            settings.event_loop.max_iterations = Some(read_number("event_loop.max_iterations", text)?);
            Ok(())
        },
    },
    EnvironmentVariable {
        name: "RALPH_MAX_RUNTIME_SECONDS",
        keys: &["event_loop.max_runtime_seconds"],
        read: |text, settings| {
            settings.event_loop.max_runtime_seconds =
                Some(read_number("event_loop.max_runtime_seconds", text)?);
            Ok(())
        },
    },
    EnvironmentVariable {
        name: "RALPH_MAX_COST_USD",
        keys: &["event_loop.max_cost_usd"],
        read: |text, settings| {
            settings.event_loop.max_cost_usd = Some(read_number("event_loop.max_cost_usd", text)?);
            Ok(())
        },
    },
    EnvironmentVariable {
        name: "RALPH_PROMPT_FILE",
        keys: &["event_loop.prompt_file"],
        read: |text, settings| {
            settings.event_loop.prompt_file = Some(text.into());
            Ok(())
        },
    },
];

/// Variables that ralph sets for its children or reads elsewhere.
const RESERVED: &[&str] = &[
    "RALPH_RUN_ID",
    "RALPH_ITERATION",
    "RALPH_HAT",
    "RALPH_BIN",
    super::CONFIG_ALONE,
    "RALPH_HOOK",
    "RALPH_TRUST",
    "RALPH_STATE_DIR",
    "RALPH_AS_CLAUDE",
];

/// The settings from the environment.
#[derive(Debug, Default)]
pub(super) struct EnvironmentLayer {
    pub(super) settings: PartialSettings,
    pub(super) warnings: Vec<String>,
    /// Pairs of a key and the variable that set it.
    pub(super) set_by: Vec<(&'static str, &'static str)>,
}

impl EnvironmentLayer {
    pub(super) fn read(variables: &[(String, String)]) -> Result<Self, ConfigError> {
        let mut layer = Self::default();
        for variable in VARIABLES {
            let value = variables.iter().find(|(name, _)| name == variable.name);
            // An empty variable counts as unset.
            let Some((_, text)) = value.filter(|(_, text)| !text.is_empty()) else {
                continue;
            };
            (variable.read)(text, &mut layer.settings).map_err(|problem| ConfigError::Variable {
                variable: variable.name.to_owned(),
                problem,
            })?;
            layer
                .set_by
                .extend(variable.keys.iter().map(|key| (*key, variable.name)));
        }
        layer.warnings = variables
            .iter()
            .filter_map(|(name, _)| unknown_warning(name))
            .collect();
        Ok(layer)
    }

    /// The error for a problem with a value from the environment.
    pub(super) fn error(&self, problem: Problem) -> ConfigError {
        let variable = variable_of(&self.set_by, &problem.key)
            .unwrap_or("RALPH_*")
            .to_owned();
        ConfigError::Variable { variable, problem }
    }
}

/// The variable that set a key.
pub(super) fn variable_of<'a>(set_by: &[(&'a str, &'a str)], key: &str) -> Option<&'a str> {
    let row = set_by.iter().find(|(set, _)| *set == key);
    row.or_else(|| set_by.iter().find(|(set, _)| set.starts_with(key)))
        .map(|(_, variable)| *variable)
}

/// A warning for an unknown `RALPH_*` variable.
fn unknown_warning(name: &str) -> Option<String> {
    let word = name.strip_prefix(PREFIX)?;
    let known: Vec<_> = VARIABLES.iter().map(|variable| variable.name).collect();
    if known.contains(&name) || RESERVED.contains(&name) {
        return None;
    }
    // Compared without the common prefix, which would make all names similar.
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

fn read_command(text: &str, settings: &mut PartialSettings) -> Result<(), Problem> {
    let problem = |message: String| Problem::at_value("cli.command", message);
    let mut words = split_words(text)
        .map_err(|error| problem(error.to_string()))?
        .into_iter();
    let command = words
        .next()
        .ok_or_else(|| problem("expected a command, found only whitespace".to_owned()))?;
    settings.cli.command = Some(command);
    settings.cli.args = Some(words.collect());
    settings.cli.backend.get_or_insert_with(|| "custom".to_owned());
    Ok(())
}

fn read_number<N: std::str::FromStr>(key: &str, text: &str) -> Result<N, Problem> {
    let text = text.trim();
    text.parse().map_err(|_| {
        let expected = Expected::of(key);
        Problem::at_value(key, expected.mismatch(text)).with_help(expected.correction(text))
    })
}
