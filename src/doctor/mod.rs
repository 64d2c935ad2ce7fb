//! Checks for `ralph doctor` and `ralph agents test`: each returns findings with remedies, and changes nothing.

mod agent_test;
mod bundle;
mod commands;
mod environment;
mod hats;
mod sandbox;
mod trust;

pub use agent_test::{AgentTest, AgentVerdict, PROMPT, next_call, unusable};
pub use bundle::{BundleFacts, BundleSetting, RunLogFacts, bundle};
pub use commands::check_commands;
pub use environment::{
    ByteSize, ClockFacts, DiskFacts, EnvironmentFacts, GitStatus, TerminalFacts, WorkspaceFacts,
    check_environment,
};
pub use hats::check_hats;
pub use sandbox::{SWITCHES, SandboxFacts, check_sandbox};
pub use trust::check_trust;

use serde::Serialize;

use crate::agent::{ACP_COMMAND, AGENTS, AgentCheck, DRIVER, Unusable};
use crate::config::{Cli, ConfigError, LoadedConfig, Origin};

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub area: &'static str,
    pub subject: String,
    pub state: FindingState,
    pub detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingState {
    Good,
    /// Missing, but not required.
    Absent,
    Warning,
    Broken,
}

/// The input of the configuration and agent checks.
pub struct DoctorInput<'a> {
    pub configuration: Result<&'a LoadedConfig, &'a ConfigError>,
    /// Settings that differ from their defaults, with their origin.
    pub overridden: &'a [(String, Origin)],
    pub agents: &'a [AgentCheck],
    /// Why the configured command, wrapper or driver cannot run.
    pub configured_problem: Option<&'a str>,
}

/// Checks the configuration and the agents; findings are in display order.
pub fn check_config_and_agents(input: &DoctorInput<'_>) -> Vec<Finding> {
    let mut findings = configuration(input);
    findings.extend(input.agents.iter().map(agent));
    findings.push(configured_agent(input));
    findings
}

/// Returns whether a required check failed.
pub fn is_broken(findings: &[Finding]) -> bool {
    findings
        .iter()
        .any(|finding| finding.state == FindingState::Broken)
}

fn configuration(input: &DoctorInput<'_>) -> Vec<Finding> {
    let finding = |subject: &str, state, detail: String| Finding {
        area: "configuration",
        subject: subject.to_owned(),
        state,
        detail,
        remedy: None,
    };
    let loaded = match input.configuration {
        Ok(loaded) => loaded,
        Err(error) => {
            let remedy = Some("fix the file, then run ralph doctor again".to_owned());
            return vec![Finding {
                remedy,
                ..finding("ralph.yml", FindingState::Broken, error.to_string())
            }];
        }
    };
    let mut findings: Vec<Finding> = loaded
        .files
        .iter()
        .map(|path| {
            let here = overrides(
                input,
                |origin| matches!(origin, Origin::File { path: of, .. } if of == path),
            );
            finding(&path.display().to_string(), FindingState::Good, here)
        })
        .collect();
    if findings.is_empty() {
        findings.push(Finding {
            remedy: Some("to create one: ralph init".to_owned()),
            ..finding(
                "ralph.yml",
                FindingState::Absent,
                "not found; using the defaults".to_owned(),
            )
        });
    }
    for (subject, matches) in [
        (
            "environment",
            (|origin: &Origin| matches!(origin, Origin::Environment { .. })) as fn(&Origin) -> bool,
        ),
        ("command line", |origin: &Origin| *origin == Origin::Flag),
    ] {
        if input.overridden.iter().any(|(_, origin)| matches(origin)) {
            findings.push(finding(subject, FindingState::Good, overrides(input, matches)));
        }
    }
    findings.extend(loaded.warnings.iter().map(|warning| Finding {
        remedy: Some(
            "fix or remove it; to show the origin of each setting: ralph config show --origin".to_owned(),
        ),
        ..finding("warning", FindingState::Warning, warning.clone())
    }));
    findings
}

/// Maximum number of settings to list by name.
const MAX_NAMED: usize = 5;

fn overrides(input: &DoctorInput<'_>, matches: impl Fn(&Origin) -> bool) -> String {
    let keys: Vec<&str> = input
        .overridden
        .iter()
        .filter(|(_, origin)| matches(origin))
        .map(|(key, _)| key.as_str())
        .collect();
    match keys.as_slice() {
        [] => "sets nothing".to_owned(),
        few if few.len() <= MAX_NAMED => format!("sets {}", few.join(", ")),
        many => format!(
            "sets {} and {} more",
            many[..MAX_NAMED].join(", "),
            many.len() - MAX_NAMED
        ),
    }
}

fn agent(checked: &AgentCheck) -> Finding {
    let AgentCheck { agent, version, .. } = checked;
    let subject = agent.name.to_owned();
    let finding = |state, detail, remedy| Finding {
        area: "agents",
        subject,
        state,
        detail,
        remedy,
    };
    let install = Some(format!("install it: {}", agent.install));
    match version {
        Ok(version) if agent.is_outdated(version) => finding(
            FindingState::Warning,
            format!(
                "{version}; ralph requires {} or newer",
                agent.min_version.unwrap_or_default()
            ),
            Some(format!("update it: {}", agent.install)),
        ),
        Ok(version) => finding(
            FindingState::Good,
            version.clone(),
            Some(agent.auth_hint.to_owned()),
        ),
        Err(why @ Unusable::NotFound) => finding(FindingState::Absent, why.to_string(), install),
        Err(why @ Unusable::Disabled) => finding(
            FindingState::Absent,
            why.to_string(),
            Some("remove `enabled: false` to use it".to_owned()),
        ),
        Err(
            why @ (Unusable::Refused { .. } | Unusable::TimedOut { .. } | Unusable::CouldNotStart { .. }),
        ) => finding(FindingState::Warning, why.to_string(), install),
    }
}

/// Checks that the configured agent can run.
fn configured_agent(input: &DoctorInput<'_>) -> Finding {
    match input.configured_problem {
        None => usable_agent(input),
        Some(problem) => Finding {
            area: "agents",
            subject: "an agent to run".to_owned(),
            state: FindingState::Broken,
            detail: problem.to_owned(),
            remedy: Some("install it, fix the setting, or select another agent with --agent".to_owned()),
        },
    }
}

/// Checks that an agent is available: a built-in or a custom one.
fn usable_agent(input: &DoctorInput<'_>) -> Finding {
    let usable = input.agents.iter().find(|checked| checked.version.is_ok());
    let custom = input
        .configuration
        .ok()
        .and_then(|loaded| custom_agent(&loaded.settings.cli));
    let named = input.configuration.ok().and_then(|loaded| {
        let backend = &loaded.settings.cli.backend;
        input.agents.iter().find(|checked| checked.agent.name == backend)
    });
    if let Some(AgentCheck {
        agent,
        version: Err(why),
        ..
    }) = named
    {
        return Finding {
            area: "agents",
            subject: "an agent to run".to_owned(),
            state: FindingState::Broken,
            detail: format!("{} is configured: {why}", agent.name),
            remedy: Some(format!(
                "install it ({}), or select another with --agent",
                agent.install
            )),
        };
    }
    let usable = named.or(usable);
    let (state, detail, remedy) = match (usable, custom) {
        (_, Some(custom)) => (FindingState::Good, custom, None),
        (Some(checked), None) => (
            FindingState::Good,
            format!("{} is available", checked.agent.name),
            None,
        ),
        (None, None) if input.configuration.is_err() => (
            FindingState::Absent,
            "unknown until the configuration is fixed".to_owned(),
            None,
        ),
        (None, None) => (
            FindingState::Broken,
            format!("none of the {} built-in agents is usable", AGENTS.len()),
            Some(
                "install one, or pass your own with --agent-cmd; to try ralph without an agent: ralph demo"
                    .to_owned(),
            ),
        ),
    };
    Finding {
        area: "agents",
        subject: "an agent to run".to_owned(),
        state,
        detail,
        remedy,
    }
}

/// Returns the configured driver or custom command. Other checks report whether it works.
fn custom_agent(cli: &Cli) -> Option<String> {
    let driver = cli
        .backend
        .strip_prefix(DRIVER)
        .map(|name| format!("driver {name}"));
    let server = || {
        Some(format!(
            "agent over ACP: {}",
            cli.backend.strip_prefix(ACP_COMMAND)?
        ))
    };
    let command = cli.command.as_ref().or(cli.claude_command.as_ref());
    driver
        .or_else(server)
        .or_else(|| command.map(|command| format!("custom command: {command}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(index: usize, version: Result<&str, Unusable>) -> AgentCheck {
        AgentCheck {
            agent: &AGENTS[index],
            program: None,
            version: version.map(str::to_owned),
        }
    }

    fn findings(agents: &[AgentCheck]) -> Vec<Finding> {
        let loaded = LoadedConfig::default();
        check_config_and_agents(&DoctorInput {
            configured_problem: None,
            configuration: Ok(&loaded),
            overridden: &[],
            agents,
        })
    }

    #[test]
    fn one_usable_agent_is_enough() {
        let found = findings(&[
            checked(0, Ok("2.1.197 (Claude Code)")),
            checked(1, Err(Unusable::NotFound)),
        ]);
        assert!(!is_broken(&found), "{found:#?}");
    }

    #[test]
    fn a_missing_configured_agent_is_broken_even_if_another_is_installed() {
        let mut loaded = LoadedConfig::default();
        loaded.settings.cli.backend = AGENTS[1].name.to_owned();
        let found = check_config_and_agents(&DoctorInput {
            configured_problem: None,
            configuration: Ok(&loaded),
            overridden: &[],
            agents: &[checked(0, Ok("2.1.197")), checked(1, Err(Unusable::NotFound))],
        });
        assert!(is_broken(&found), "{found:#?}");
        assert!(found.last().unwrap().remedy.is_some());
    }

    #[test]
    fn no_usable_agent_is_broken_and_has_a_remedy() {
        let found = findings(&[checked(0, Err(Unusable::TimedOut { seconds: 15 }))]);
        assert!(is_broken(&found));
        assert!(found.last().unwrap().remedy.is_some());
    }

    #[test]
    fn an_outdated_version_is_a_warning() {
        let found = findings(&[checked(0, Ok("1.0.3 (Claude Code)"))]);
        let claude = &found[1];
        assert_eq!(claude.state, FindingState::Warning);
        assert!(
            claude.detail.starts_with("1.0.3 (Claude Code); ralph requires "),
            "{claude:?}"
        );
        assert!(!is_broken(&found));
    }
}
