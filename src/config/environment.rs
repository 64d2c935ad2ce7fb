//! Settings from `RALPH_*` environment variables. `settings.rs` declares which variable sets which key.

use crate::policy::section::LayerSection;
use crate::policy::{PartialHooks, PartialSandbox};

use super::diagnostic::{ConfigError, Problem, closest, printable};
use super::expected::FileKind;
use super::settings::{PartialCli, PartialDriver, PartialEventLoop, PartialSettings};
use super::shell_words::split_words;

const PREFIX: &str = "RALPH_";

/// A command line: it sets several keys, so it is no variable of one key.
const COMMAND: &str = "RALPH_AGENT_CMD";

/// Variables that ralph sets for its children or reads elsewhere.
const RESERVED: &[&str] = &[
    "RALPH_RUN_ID",
    "RALPH_ITERATION",
    "RALPH_HAT",
    "RALPH_BIN",
    super::CONFIG_ALONE,
    "RALPH_HOOK",
    "RALPH_HOOK_MESSAGE",
    "RALPH_BENCH_DIR",
    "RALPH_BENCH_TASK",
    "RALPH_BENCH_AGENT",
    "RALPH_BENCH_REPEAT",
    "RALPH_COMPLETE",
    "RALPH_LOG",
    "RALPH_SECRETS",
    "RALPH_SUPERVISORS",
    "RALPH_TRUST",
    "RALPH_STATE_DIR",
    "RALPH_AS_CLAUDE",
    "RALPH_INBOX",
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
        // An empty variable counts as unset.
        let get = |name: &str| {
            let value = variables.iter().find(|(known, _)| known == name);
            value
                .map(|(_, text)| text.as_str())
                .filter(|text| !text.is_empty())
        };
        let mut layer = Self::default();
        let (settings, set_by) = (&mut layer.settings, &mut layer.set_by);
        read_section(&mut settings.cli, get, set_by)?;
        read_section(&mut settings.event_loop, get, set_by)?;
        read_section(&mut settings.hooks, get, set_by)?;
        read_section(&mut settings.driver, get, set_by)?;
        read_section(&mut settings.worktree, get, set_by)?;
        read_section(&mut settings.ui, get, set_by)?;
        read_section(&mut settings.sandbox, get, set_by)?;
        if let Some(text) = get(COMMAND) {
            read_command(text, settings).map_err(|problem| ConfigError::Variable {
                variable: COMMAND.to_owned(),
                problem,
            })?;
            set_by.extend(["cli.command", "cli.args", "cli.backend"].map(|key| (key, COMMAND)));
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

fn read_section<'a, Layer: LayerSection>(
    layer: &mut Layer,
    get: impl Fn(&str) -> Option<&'a str>,
    set_by: &mut Vec<(&'static str, &'static str)>,
) -> Result<(), ConfigError> {
    for variable in Layer::VARIABLES {
        let Some(text) = get(variable.name) else { continue };
        if !(variable.set)(layer, text) {
            let expected = FileKind::Settings.expected_type(variable.key);
            let problem = Problem::at_value(variable.key, expected.mismatch(text.trim()));
            return Err(ConfigError::Variable {
                variable: variable.name.to_owned(),
                problem: problem.with_help(expected.correction(text.trim())),
            });
        }
        set_by.push((variable.key, variable.name));
    }
    Ok(())
}

/// The names of all variables that set a key.
pub(super) fn names() -> Vec<&'static str> {
    fn of<Layer: LayerSection>() -> impl Iterator<Item = &'static str> {
        Layer::VARIABLES.iter().map(|variable| variable.name)
    }
    let agent = of::<PartialCli>().chain([COMMAND]);
    let others = of::<PartialHooks>()
        .chain(of::<PartialDriver>())
        .chain(of::<PartialSandbox>());
    agent.chain(of::<PartialEventLoop>()).chain(others).collect()
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
    let known = names();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PartialAdapter;
    use crate::policy::PartialHat;

    #[test]
    fn variable_sets_no_key_below_a_name_that_the_user_chooses() {
        assert!(PartialAdapter::VARIABLES.is_empty() && PartialHat::VARIABLES.is_empty());
    }

    #[test]
    fn every_variable_is_documented() {
        let manual = include_str!("../../docs/config.md");
        for name in names() {
            assert!(manual.contains(name), "{name} is missing in docs/config.md");
        }
    }
}
