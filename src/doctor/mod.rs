//! Checks: is everything in place? Each check looks at one thing and reports what it found, with a remedy where
//! something is wrong. Mends nothing.

mod agent_test;
mod commands;
mod environment;

pub use agent_test::{AgentTest, PROMPT, Verdict, next_call, unusable};
pub use commands::check_commands;
pub use environment::{
    Clock, Disk, Environment, Git, GitIgnored, Screen, Size, Workspace, check_environment,
};

use serde::Serialize;

use crate::agent::{AGENTS, Checked, DRIVER, Unusable};
use crate::config::{Cli, ConfigError, Loaded, Origin};

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub area: &'static str,
    pub subject: String,
    pub state: State,
    pub detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Good,
    /// Not there, and not needed.
    Absent,
    Warning,
    Broken,
}

/// What the checks look at.
pub struct DoctorInput<'a> {
    pub configuration: Result<&'a Loaded, &'a ConfigError>,
    /// Settings that differ from their defaults, with their origin.
    pub overridden: &'a [(String, Origin)],
    pub agents: &'a [Checked],
}

/// All checks, in the order in which their findings are shown.
pub fn examine(input: &DoctorInput<'_>) -> Vec<Finding> {
    let mut findings = configuration(input);
    findings.extend(input.agents.iter().map(agent));
    findings.push(some_agent(input));
    findings
}

/// Whether something that is needed does not work.
pub fn is_broken(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.state == State::Broken)
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
            let remedy = Some("correct the file; `ralph doctor` tells when it is right".to_owned());
            return vec![Finding {
                remedy,
                ..finding("ralph.yml", State::Broken, error.to_string())
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
            finding(&path.display().to_string(), State::Good, here)
        })
        .collect();
    if findings.is_empty() {
        findings.push(Finding {
            remedy: Some("ralph init writes one".to_owned()),
            ..finding(
                "ralph.yml",
                State::Absent,
                "none found; the defaults are used".to_owned(),
            )
        });
    }
    for (subject, is_meant) in [
        (
            "environment",
            (|origin: &Origin| matches!(origin, Origin::Environment { .. })) as fn(&Origin) -> bool,
        ),
        ("command line", |origin: &Origin| *origin == Origin::Flag),
    ] {
        if input.overridden.iter().any(|(_, origin)| is_meant(origin)) {
            findings.push(finding(subject, State::Good, overrides(input, is_meant)));
        }
    }
    findings.extend(loaded.warnings.iter().map(|warning| Finding {
        remedy: Some(
            "correct or remove it; ralph config show --origin tells where each setting comes from".to_owned(),
        ),
        ..finding("warning", State::Warning, warning.clone())
    }));
    findings
}

/// More settings than these are counted.
const MAX_NAMED: usize = 5;

fn overrides(input: &DoctorInput<'_>, is_meant: impl Fn(&Origin) -> bool) -> String {
    let keys: Vec<&str> = input
        .overridden
        .iter()
        .filter(|(_, origin)| is_meant(origin))
        .map(|(key, _)| key.as_str())
        .collect();
    match keys.as_slice() {
        [] => "read; decides nothing".to_owned(),
        few if few.len() <= MAX_NAMED => format!("decides {}", few.join(", ")),
        many => format!(
            "decides {} and {} more",
            many[..MAX_NAMED].join(", "),
            many.len() - MAX_NAMED
        ),
    }
}

fn agent(checked: &Checked) -> Finding {
    let Checked { agent, answer, .. } = checked;
    let subject = agent.name.to_owned();
    let finding = |state, detail, remedy| Finding {
        area: "agents",
        subject,
        state,
        detail,
        remedy,
    };
    let install = Some(format!("install it: {}", agent.install));
    match answer {
        Ok(version) if agent.is_outdated(version) => finding(
            State::Warning,
            format!(
                "{version}; ralph needs {} or newer",
                agent.oldest.unwrap_or_default()
            ),
            Some(format!("update it: {}", agent.install)),
        ),
        Ok(version) => finding(State::Good, version.clone(), Some(agent.auth_hint.to_owned())),
        Err(why @ Unusable::NotFound) => finding(State::Absent, why.to_string(), install),
        Err(why @ Unusable::Disabled) => finding(
            State::Absent,
            why.to_string(),
            Some("remove `enabled: false` to use it".to_owned()),
        ),
        Err(
            why @ (Unusable::Refused { .. } | Unusable::TimedOut { .. } | Unusable::CouldNotStart { .. }),
        ) => finding(State::Warning, why.to_string(), install),
    }
}

/// One agent is needed: a built-in one, or the user's own.
fn some_agent(input: &DoctorInput<'_>) -> Finding {
    let usable = input.agents.iter().find(|checked| checked.answer.is_ok());
    let own = input
        .configuration
        .ok()
        .and_then(|loaded| own_agent(&loaded.settings.cli));
    let named = input.configuration.ok().and_then(|loaded| {
        let backend = &loaded.settings.cli.backend;
        input.agents.iter().find(|checked| checked.agent.name == backend)
    });
    if let Some(Checked {
        agent,
        answer: Err(why),
        ..
    }) = named
    {
        return Finding {
            area: "agents",
            subject: "an agent to run".to_owned(),
            state: State::Broken,
            detail: format!("{} is configured: {why}", agent.name),
            remedy: Some(format!(
                "install it ({}), or name another with --agent",
                agent.install
            )),
        };
    }
    let usable = named.or(usable);
    let (state, detail, remedy) = match (usable, own) {
        (_, Some(own)) => (State::Good, own, None),
        (Some(checked), None) => (State::Good, format!("{} can be used", checked.agent.name), None),
        (None, None) if input.configuration.is_err() => (
            State::Absent,
            "cannot be told while the configuration is wrong".to_owned(),
            None,
        ),
        (None, None) => (
            State::Broken,
            format!("none of {} is usable", AGENTS.len()),
            Some("install one, or name your own with --agent-cmd; `ralph demo` needs none".to_owned()),
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

/// What was configured instead of a built-in agent. Other checks report whether it works.
fn own_agent(cli: &Cli) -> Option<String> {
    let driver = cli
        .backend
        .strip_prefix(DRIVER)
        .map(|name| format!("the driver {name}"));
    let command = cli.command.as_ref().or(cli.claude_command.as_ref());
    driver.or_else(|| command.map(|command| format!("your own command: {command}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(index: usize, answer: Result<&str, Unusable>) -> Checked {
        Checked {
            agent: &AGENTS[index],
            program: None,
            answer: answer.map(str::to_owned),
        }
    }

    fn findings(agents: &[Checked]) -> Vec<Finding> {
        let loaded = Loaded::default();
        examine(&DoctorInput {
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
    fn a_configured_agent_must_be_there_even_if_another_is() {
        let mut loaded = Loaded::default();
        loaded.settings.cli.backend = AGENTS[1].name.to_owned();
        let found = examine(&DoctorInput {
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
    fn a_version_that_is_too_old_is_warned_about() {
        let found = findings(&[checked(0, Ok("1.0.3 (Claude Code)"))]);
        let claude = &found[1];
        assert_eq!(claude.state, State::Warning);
        assert!(
            claude.detail.starts_with("1.0.3 (Claude Code); ralph needs "),
            "{claude:?}"
        );
        assert!(!is_broken(&found));
    }
}
