//! The levels in `RALPH_LOG`.

use std::collections::BTreeSet;
use std::ffi::OsString;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

/// The variable with the levels.
const VARIABLE: &str = "RALPH_LOG";

/// The level if `RALPH_LOG` is not set: a few lines per iteration, and every error after which ralph continues.
const DEFAULT_LEVEL: LevelFilter = LevelFilter::INFO;
const LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

/// The crate root, which declares the modules. A second list of them would have to be kept up to date.
const CRATE_ROOT: &str = include_str!("../lib.rs");

/// The modules of which the level can be set.
fn modules() -> BTreeSet<&'static str> {
    let declared = |line: &'static str| line.split_once("mod ")?.1.strip_suffix(';');
    CRATE_ROOT.lines().filter_map(declared).collect()
}

/// A word of `RALPH_LOG` that is neither a level nor `MODULE=LEVEL`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLevels {
    #[error("{VARIABLE}: unknown level `{word}`; expected one of {}", LEVELS.map(|(name, _)| name).join(", "))]
    Level { word: String },
    #[error("{VARIABLE}: unknown module `{word}`; expected one of {}", modules().into_iter().collect::<Vec<_>>().join(", "))]
    Module { word: String },
}

/// The levels that `RALPH_LOG` selects.
#[derive(Debug, Clone)]
pub struct LogLevels {
    pub(super) targets: Targets,
    /// Whether the variable is set.
    pub requested: bool,
}

impl Default for LogLevels {
    fn default() -> Self {
        Self {
            targets: Targets::new().with_default(DEFAULT_LEVEL),
            requested: false,
        }
    }
}

impl LogLevels {
    /// Reads the variable: a level, or `MODULE=LEVEL` pairs separated by commas. An empty variable counts as unset.
    pub fn from_environment(environment: &[(OsString, OsString)]) -> Result<Self, InvalidLevels> {
        let value = environment.iter().find(|(name, _)| name == VARIABLE);
        match value.map(|(_, value)| value.to_string_lossy()) {
            Some(value) if !value.trim().is_empty() => Self::parse(&value),
            Some(_) | None => Ok(Self::default()),
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, InvalidLevels> {
        let mut targets = Targets::new().with_default(DEFAULT_LEVEL);
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            targets = match item.split_once('=') {
                Some((module, level)) => targets.with_target(target(module.trim())?, level_of(level.trim())?),
                None => targets.with_default(level_of(item)?),
            };
        }
        Ok(Self {
            targets,
            requested: true,
        })
    }

    /// Whether nothing is logged.
    pub(super) fn are_off(&self) -> bool {
        self.targets.default_level() == Some(LevelFilter::OFF) && self.targets.iter().next().is_none()
    }
}

fn level_of(word: &str) -> Result<LevelFilter, InvalidLevels> {
    let known = LEVELS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    known
        .map(|(_, level)| *level)
        .ok_or_else(|| InvalidLevels::Level {
            word: word.to_owned(),
        })
}

/// The path of a module, given with or without the name of the crate.
fn target(module: &str) -> Result<String, InvalidLevels> {
    let path = module.strip_prefix("ralph::").unwrap_or(module);
    let first = path.split("::").next().unwrap_or(path);
    match modules().contains(first) {
        true => Ok(format!("ralph::{path}")),
        false => Err(InvalidLevels::Module {
            word: module.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_those_of_the_crate() {
        let modules = modules();
        for module in ["cli", "debug_log", "engine", "files", "run", "ui"] {
            assert!(modules.contains(module), "{modules:?}");
        }
        let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
        assert!(
            modules.iter().all(|module| module.chars().all(is_name)),
            "{modules:?}"
        );
    }

    #[test]
    fn unknown_levels_and_modules_are_errors() {
        let level = LogLevels::parse("debgu").unwrap_err().to_string();
        assert_eq!(
            level,
            "RALPH_LOG: unknown level `debgu`; expected one of off, error, warn, info, debug, trace"
        );
        let module = LogLevels::parse("engin=debug").unwrap_err().to_string();
        assert!(
            module.starts_with("RALPH_LOG: unknown module `engin`; expected one of agent, bench"),
            "{module}"
        );
        assert!(LogLevels::parse("engine=").is_err());
    }
}
