//! The levels in `RALPH_LOG`.

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

/// The modules of which the level can be set. A test compares them with those of the crate.
const MODULES: &[&str] = &[
    "agent",
    "bench",
    "cli",
    "config",
    "debug_log",
    "doctor",
    "engine",
    "event",
    "files",
    "panic_hook",
    "plan",
    "policy",
    "process",
    "run",
    "runner",
    "signals",
    "store",
    "transcript",
    "trust",
    "ui",
];

/// A word of `RALPH_LOG` that is neither a level nor `MODULE=LEVEL`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLevels {
    #[error("{VARIABLE}: unknown level `{word}`; expected one of {}", LEVELS.map(|(name, _)| name).join(", "))]
    Level { word: String },
    #[error("{VARIABLE}: unknown module `{word}`; expected one of {}", MODULES.join(", "))]
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
    match MODULES.contains(&first) {
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
        let source = include_str!("../lib.rs");
        let mut modules: Vec<&str> = source
            .lines()
            .filter_map(|line| line.split_once("mod ")?.1.strip_suffix(';'))
            .collect();
        modules.sort_unstable();
        modules.dedup();
        assert_eq!(modules, MODULES);
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
