//! A gate: a command, or a review by other agents, that decides whether the task is done.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PartialSandbox, Reviewer, Seconds};
use crate::event::Severity;

/// A command that must succeed, or a review that must approve, before the task counts as done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// A unique name of your choice.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The shell command; exit code 0 means success. A gate without a command is a [review](multiple-agents.md#review).
    #[serde(
        default,
        skip_serializing_if = "String::is_empty",
        deserialize_with = "given_command"
    )]
    #[schemars(length(min = 1))]
    pub run: String,
    /// Maximum duration.
    #[serde(default = "Gate::default_timeout")]
    #[schemars(extend("minimum" = 1))]
    pub timeout: Seconds,
    /// Working directory, relative to this file. Default: the directory of this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("format" = "path"))]
    pub cwd: Option<PathBuf>,
    /// An additional environment variable.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Where the gate runs: in the workspace, or in a clean checkout of the project's files outside of it. Default: `clean` with
    /// `protect`, else `workspace`.
    #[serde(rename = "in", default, skip_serializing_if = "Option::is_none")]
    pub place: Option<GatePlace>,
    /// Path patterns of files whose version from the start of the run counts, such as the tests. A gate that passes only
    /// with the agent's version of these files fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(length(min = 1)), extend("format" = "patterns"))]
    pub protect: Vec<String>,
    /// Path patterns of files that stay in the clean checkout between iterations, such as `target/**`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(length(min = 1)), extend("format" = "patterns"))]
    pub cache: Vec<String>,
    /// Run the gate before the first iteration too. It must fail there: a gate that passes before any work proves nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub must_fail_first: bool,
    /// Keep the command and its output from the agent, which learns only that a hidden check failed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hidden: bool,
    /// A JUnit XML file that the command writes, relative to `cwd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub report: Option<PathBuf>,
    /// The number of passed tests that the output or `report` must show at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub min_tests: Option<u64>,
    /// Review: the agent that reviews. Default: the agent of the run, with another `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub agent: Option<String>,
    /// Review: the model of the reviewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub model: Option<String>,
    /// Review: additional arguments for the reviewer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Review: a file that says what the reviewer looks for, relative to this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("format" = "path"))]
    pub prompt_file: Option<PathBuf>,
    /// Review: the lowest severity of a finding that rejects the result in the first round. It rises by one level with each
    /// round. Default: `high`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Severity>,
    /// Review: after this number of rounds with findings, the run ends as unreviewed. Default: 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub rounds: Option<u64>,
    /// Review: allow an agent and model to review its own work.
    #[serde(default, skip_serializing_if = "is_false")]
    pub same: bool,
    /// Review: several reviewers. What one leaves out is that of the gate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviewers: Vec<Reviewer>,
    /// Review: the number of reviewers that have to approve. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub quorum: Option<u64>,
    /// What differs from the sandbox of the run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sandbox: PartialSandbox,
}

fn is_default(sandbox: &PartialSandbox) -> bool {
    *sandbox == PartialSandbox::default()
}

/// Where a gate runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GatePlace {
    /// The workspace, as the agent left it.
    Workspace,
    /// A checkout outside of the workspace, without ignored files.
    Clean,
}

/// Names of files that test tools read without being asked. They can decide what a test command does.
const RUNNER_FILES: [&str; 23] = [
    "conftest.py",
    "sitecustomize.py",
    "usercustomize.py",
    "pytest.ini",
    ".pytest.ini",
    "tox.ini",
    "setup.cfg",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    "jest.config.js",
    "jest.config.cjs",
    "jest.config.mjs",
    "jest.config.ts",
    "jest.config.json",
    "vitest.config.js",
    "vitest.config.ts",
    ".mocharc.json",
    ".mocharc.yml",
    ".env",
    ".envrc",
    "rust-toolchain",
    "rust-toolchain.toml",
];
/// Files for the build tools that are read even if the command does not name them.
const BUILD_FILES: [(&str, [&str; 3]); 3] = [
    ("make", ["Makefile", "makefile", "GNUmakefile"]),
    ("just", ["justfile", "Justfile", ".justfile"]),
    ("cargo", [".cargo/config", ".cargo/config.toml", "build.rs"]),
];

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes the field by reference"
)]
fn is_false(value: &bool) -> bool {
    !*value
}

/// An empty command differs from a missing one: it is a mistake, which the check of the configuration reports.
fn given_command<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let command = String::deserialize(from)?;
    Ok(match command.is_empty() {
        true => " ".to_owned(),
        false => command,
    })
}

impl Gate {
    /// A gate with only a name and a command.
    pub(crate) fn new(name: impl Into<String>, run: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            run: run.into(),
            timeout: Self::default_timeout(),
            cwd: None,
            env: BTreeMap::new(),
            place: None,
            protect: Vec::new(),
            cache: Vec::new(),
            must_fail_first: false,
            hidden: false,
            report: None,
            min_tests: None,
            agent: None,
            model: None,
            args: Vec::new(),
            prompt_file: None,
            block: None,
            rounds: None,
            same: false,
            reviewers: Vec::new(),
            quorum: None,
            sandbox: PartialSandbox::default(),
        }
    }

    pub(crate) const DEFAULT_ROUNDS: u64 = 3;

    /// Whether the gate is a review instead of a command.
    pub(crate) fn is_review(&self) -> bool {
        self.run.is_empty()
    }

    /// The reviewers, with everything that they inherit from the gate.
    pub(crate) fn all_reviewers(&self) -> Vec<Reviewer> {
        if self.reviewers.is_empty() {
            return vec![Reviewer {
                name: self.name.clone(),
                agent: self.agent.clone(),
                model: self.model.clone(),
                args: self.args.clone(),
                prompt_file: self.prompt_file.clone(),
            }];
        }
        self.reviewers
            .iter()
            .map(|reviewer| reviewer.inherit(self))
            .collect()
    }

    /// Whether the gate runs in a checkout outside of the workspace.
    pub(crate) fn runs_clean(&self) -> bool {
        if self.is_review() {
            return true;
        }
        match self.place {
            Some(place) => place == GatePlace::Clean,
            None => !self.protect.is_empty(),
        }
    }

    /// Whether the command runs or reads a file, as far as its words tell: `sh check.sh`, `make test`, `python -m pytest`, which
    /// prefers `pytest.py` in the working directory.
    pub(crate) fn names_file(&self, path: &str) -> bool {
        let is_separator = |c: char| c.is_whitespace() || ";|&()<>\"'`=".contains(c);
        let mut words = self.run.split(is_separator).filter(|word| !word.is_empty());
        words.any(|word| {
            let word = word.trim_start_matches("./");
            let builds = BUILD_FILES.iter().filter(|(tool, _)| *tool == word);
            let is_module = path
                .strip_suffix(".py")
                .map(|path| path.trim_end_matches("/__init__"))
                == Some(word);
            word == path || is_module || builds.flat_map(|(_, files)| files).any(|file| *file == path)
        })
    }

    /// Whether a test tool reads this file without being asked.
    pub(crate) fn is_runner_file(path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        RUNNER_FILES.contains(&name)
            || path.ends_with(".cargo/config")
            || path.ends_with(".cargo/config.toml")
    }

    /// Whether a file contains tests, by its name or its directory.
    pub(crate) fn is_test_file(path: &str) -> bool {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let is_test_directory = |part: &str| ["test", "tests", "__tests__", "spec", "t"].contains(&part);
        let stem = name.split('.').next().unwrap_or(name);
        directory.split('/').any(is_test_directory)
            || stem.starts_with("test_")
            || stem.ends_with("_test")
            || name.contains(".test.")
            || name.contains(".spec.")
            || name.ends_with(".t")
            || Self::is_runner_file(path)
    }

    /// The command as the agent and its files may show it.
    pub(crate) fn shown_command(&self) -> String {
        match (self.hidden, self.is_review()) {
            (_, true) => {
                let names = self.all_reviewers().into_iter().map(|reviewer| {
                    let agent = reviewer.agent.as_deref().unwrap_or("another model").to_owned();
                    let model = reviewer.model.map(|model| format!(" ({model})"));
                    agent + &model.unwrap_or_default()
                });
                let mut names: Vec<String> = names.collect();
                names.dedup();
                format!("review by {}", names.join(", "))
            }
            (true, false) => "(hidden)".to_owned(),
            (false, false) => self.run.clone(),
        }
    }

    pub(crate) fn default_timeout() -> Seconds {
        Seconds(600)
    }
}
