//! Evaluates the calls of `ralph agents test`: whether the agent works, and what to fix.

mod evidence;

use std::time::Duration;

use serde::Serialize;

use crate::agent::{AGENTS, CUSTOM, ResolvedAgent, StdinSource, Terminal};
use crate::event::{ErrorClass, Meta, TranscriptEvent, Usage, UsageScope};
use crate::run::{CallMode, TrialOutput};
use crate::transcript::Format;

use super::{Finding, FindingState};
use evidence::{
    PromptEvidence, asks_for_login, assistant_text, count, detect_format, failure, is_finished, last_line,
    prompt_evidence, proves_prompt, shown_output, succeeded,
};

/// The test prompt. It does not contain the answer, so that an echo does not count as one.
pub const PROMPT: &str = "This is a test of the connection: use no tools and change nothing. Join the two words \
                          pelican and 4711 into one word without a space, and answer with that word alone.";
const ANSWER: &str = "pelican4711";
/// The start of the prompt, to recognize an echo.
const PROMPT_START: &str = "This is a test of the connection";

const AREA: &str = "findings";

/// The result of an agent test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentVerdict {
    Works,
    /// The agent ran and printed output, but not the requested answer.
    Unproven,
    Broken,
}

/// An agent and its test calls.
pub struct AgentTest<'a> {
    pub agent: &'a ResolvedAgent,
    pub format: &'static Format,
    pub timeout: Duration,
    /// The first call is as configured.
    pub calls: &'a [TrialOutput],
}

/// Returns how to call the agent next; `None` if the test is complete. A built-in agent is called once, a custom one up
/// to three times until it answers.
pub fn next_call(agent: &ResolvedAgent, calls: &[TrialOutput]) -> Option<CallMode> {
    let Some(first) = calls.first() else {
        return Some(CallMode::AsConfigured);
    };
    if agent.adapter() != CUSTOM || calls.iter().any(proves_prompt) {
        return None;
    }
    let untried = |mode| !calls.iter().any(|call| call.mode == mode);
    // An agent that timed out with an empty stdin does not wait for stdin.
    if first.end.is_some() && agent.with_stdin_prompt().is_some() && untried(CallMode::OnStdin) {
        return Some(CallMode::OnStdin);
    }
    let has_output = succeeded(first) && prompt_evidence(first) > PromptEvidence::NoOutput;
    (!has_output && agent.terminal == Terminal::Pipe && untried(CallMode::OnTerminal))
        .then_some(CallMode::OnTerminal)
}

/// Returns the finding for an agent that cannot be called.
pub fn unusable(why: String, remedy: Option<String>) -> Finding {
    finding("program", FindingState::Broken, why, remedy)
}

impl AgentTest<'_> {
    pub fn verdict(&self) -> AgentVerdict {
        if super::is_broken(&self.findings()) {
            AgentVerdict::Broken
        } else if self
            .best()
            .is_none_or(|best| prompt_evidence(best) < PromptEvidence::Answered)
        {
            AgentVerdict::Unproven
        } else {
            AgentVerdict::Works
        }
    }

    /// Returns the findings in display order.
    pub fn findings(&self) -> Vec<Finding> {
        let (Some(first), Some(best)) = (self.calls.first(), self.best()) else {
            return Vec::new();
        };
        let mut findings = vec![
            self.program(),
            self.end(first),
            self.stdin(first),
            self.terminal(first),
            prompt_arrival(best, self.agent.adapter() == CUSTOM),
            self.transcript(best),
            session(best),
        ];
        findings.extend(leftovers(self.calls));
        findings.push(cost(self.calls));
        findings
    }

    /// Returns the first call that proves that the prompt arrived, otherwise the first call.
    fn best(&self) -> Option<&TrialOutput> {
        let proven_by = self.calls.iter().find(|call| proves_prompt(call));
        proven_by.or_else(|| self.calls.first())
    }

    fn proven_by(&self, mode: CallMode) -> bool {
        self.calls
            .iter()
            .any(|call| call.mode == mode && proves_prompt(call))
    }

    fn program(&self) -> Finding {
        let version = self.agent.version.as_deref();
        let shown = version.map(|version| format!(", {version}")).unwrap_or_default();
        let detail = format!("{}{shown}", self.agent.program.display());
        let row = AGENTS.iter().find(|row| row.name == self.agent.name);
        let outdated = row.zip(version).filter(|(row, version)| row.is_outdated(version));
        match outdated.and_then(|(row, _)| row.min_version) {
            Some(oldest) => finding(
                "program",
                FindingState::Warning,
                detail,
                Some(format!("update it: ralph requires {oldest} or newer")),
            ),
            None => finding("program", FindingState::Good, detail, None),
        }
    }

    fn end(&self, first: &TrialOutput) -> Finding {
        let by_hand = || Some(format!("run it by hand: {}", by_hand(first)));
        let failure = failure(first);
        match (first.end, failure) {
            (end, _) if asks_for_login(first) => {
                let end = end.map_or_else(
                    || format!("timed out after {}s", self.timeout.as_secs()),
                    |end| end.to_string(),
                );
                let hint = &self.agent.auth_hint;
                let remedy = match hint.is_empty() {
                    true => format!(
                        "run its login command, or start it by hand: {}",
                        self::by_hand(first)
                    ),
                    false => hint.clone(),
                };
                let detail = format!("{end}: it asks a person to log in");
                finding("end", FindingState::Broken, detail, Some(remedy))
            }
            (None, _) => {
                let limit = self.timeout.as_secs();
                let note = match prompt_evidence(first) {
                    PromptEvidence::Answered => " (it had answered)",
                    PromptEvidence::OtherOutput | PromptEvidence::Echoed => " (it had printed output)",
                    PromptEvidence::NoOutput => "",
                };
                finding(
                    "end",
                    FindingState::Broken,
                    format!("timed out after {limit}s{note}"),
                    Some("find its flag for headless use, or increase --timeout".into()),
                )
            }
            (Some(end), Some((class, message))) => {
                let remedy = match class {
                    ErrorClass::Auth if !self.agent.auth_hint.is_empty() => {
                        Some(self.agent.auth_hint.clone())
                    }
                    _ => by_hand(),
                };
                finding("end", FindingState::Broken, format!("{end}: {message}"), remedy)
            }
            (Some(end), None) if end.success() => {
                let detail = format!("{end}, after {:.1}s", first.took.as_secs_f64());
                finding("end", FindingState::Good, detail, None)
            }
            (Some(end), None) => {
                let message = last_line(&first.stderr).or_else(|| last_line(&first.stdout));
                let message = message.map(|line| format!(": {line}")).unwrap_or_default();
                let detail = format!("{end}{message}");
                finding("end", FindingState::Broken, detail, by_hand())
            }
        }
    }

    fn stdin(&self, first: &TrialOutput) -> Finding {
        let (state, detail, remedy) = if self.proven_by(CallMode::OnStdin) {
            (
                FindingState::Broken,
                "the agent reads its prompt from stdin, but receives it as an argument",
                Some("in ralph.yml: cli.prompt_mode: stdin".to_owned()),
            )
        } else if first.stdin != StdinSource::Null {
            (FindingState::Good, "used for the prompt", None)
        } else if first.end.is_some() {
            (FindingState::Good, "empty; the agent does not wait for it", None)
        } else {
            (FindingState::Good, "empty; not the cause of the timeout", None)
        };
        finding("stdin", state, detail.to_owned(), remedy)
    }

    fn terminal(&self, first: &TrialOutput) -> Finding {
        let tried = self.calls.iter().any(|call| call.mode == CallMode::OnTerminal);
        let (state, detail, remedy) = if self.proven_by(CallMode::OnTerminal) {
            (
                FindingState::Broken,
                "works only with a terminal",
                Some("in ralph.yml: cli.pty_mode: true".to_owned()),
            )
        } else if tried {
            (FindingState::Absent, "a terminal makes no difference", None)
        } else if self.agent.terminal == Terminal::Pty {
            (FindingState::Good, "stdout is a terminal", None)
        } else if succeeded(first) && prompt_evidence(first) > PromptEvidence::NoOutput {
            (FindingState::Good, "not required", None)
        } else {
            (FindingState::Absent, "unknown", None)
        };
        finding("terminal", state, detail.to_owned(), remedy)
    }

    fn transcript(&self, best: &TrialOutput) -> Finding {
        let name = self.format.name;
        let unreadable = count(best, |event| {
            matches!(
                event,
                TranscriptEvent::Meta {
                    meta: Meta::ParseError { .. }
                }
            )
        });
        let finished = count(best, is_finished) > 0;
        let better =
            detect_format(&best.stdout).filter(|better| self.agent.adapter() == CUSTOM && *better != name);
        let set = |format: &str| Some(format!("in ralph.yml: cli.transcript: {format}"));
        let (state, detail, remedy) = if best.stdout.is_empty() {
            (FindingState::Absent, "no output".to_owned(), None)
        } else if let Some(better) = better {
            let detail = format!("parsed as {name}, but looks like {better}");
            (FindingState::Warning, detail, set(better))
        } else if failure(best).is_none() && assistant_text(best).trim().is_empty() {
            let detail = format!("parsed as {name}, the output contains no answer");
            let fallback = (self.agent.adapter() == CUSTOM).then(|| "plain".to_owned());
            (
                FindingState::Broken,
                detail,
                fallback.and_then(|plain| set(&plain)),
            )
        } else if unreadable > 0 {
            let detail = format!("{unreadable} lines could not be parsed as {name}");
            (FindingState::Warning, detail, None)
        } else if self.format.capabilities.terminal_event && !finished {
            let detail = format!("{name}, but the final event is missing: the output is truncated");
            (FindingState::Broken, detail, None)
        } else {
            (FindingState::Good, format!("parsed as {name}"), None)
        };
        finding("transcript", state, detail, remedy)
    }
}

fn finding(subject: &str, state: FindingState, detail: String, remedy: Option<String>) -> Finding {
    Finding {
        area: AREA,
        subject: subject.to_owned(),
        state,
        detail,
        remedy,
    }
}

fn by_hand(call: &TrialOutput) -> String {
    let words = call.command.iter().map(|word| match word.as_str() {
        word if word.contains(PROMPT_START) => "hello".to_owned(),
        word if word.contains(' ') => format!("'{word}'"),
        word => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn prompt_arrival(best: &TrialOutput, is_custom: bool) -> Finding {
    let condition = match best.mode {
        CallMode::AsConfigured => "",
        CallMode::OnStdin => " when sent on stdin",
        CallMode::OnTerminal => " when run on a terminal",
    };
    let (state, detail, remedy) = match prompt_evidence(best) {
        PromptEvidence::Answered => (
            FindingState::Good,
            format!("received and answered{condition}"),
            None,
        ),
        PromptEvidence::Echoed => (
            FindingState::Warning,
            format!(
                "received and echoed{condition}, but not answered{}",
                printed(best)
            ),
            None,
        ),
        PromptEvidence::OtherOutput if failure(best).is_some() => (
            FindingState::Absent,
            "unknown, because the agent failed".to_owned(),
            None,
        ),
        PromptEvidence::OtherOutput => (
            FindingState::Warning,
            format!("no sign that it arrived{}", printed(best)),
            is_custom
                .then(|| "check how the agent takes its prompt: cli.prompt_mode, cli.prompt_flag".to_owned()),
        ),
        PromptEvidence::NoOutput => (
            FindingState::Broken,
            format!("no output on stdout{}", last_output("stderr", &best.stderr)),
            is_custom.then(|| {
                "find the flag that makes it print its answer; without one every iteration fails".to_owned()
            }),
        ),
    };
    finding("prompt", state, detail, remedy)
}

/// What the agent printed instead of the requested answer.
fn printed(call: &TrialOutput) -> String {
    shown_output(call)
        .map(|text| format!("; it printed: {text}"))
        .unwrap_or_default()
}

fn last_output(stream: &str, bytes: &[u8]) -> String {
    last_line(bytes)
        .map(|line| format!("; {stream}: {line}"))
        .unwrap_or_default()
}

fn session(best: &TrialOutput) -> Finding {
    let named = count(best, |event| {
        matches!(
            event,
            TranscriptEvent::Meta {
                meta: Meta::Session { .. }
            }
        )
    });
    let (state, detail) = if named > 0 {
        (FindingState::Good, "reports its id")
    } else {
        (
            FindingState::Absent,
            "reports no id; `session: continue` is not supported",
        )
    };
    finding("session", state, detail.to_owned(), None)
}

fn leftovers(calls: &[TrialOutput]) -> Option<Finding> {
    let swept: u64 = calls.iter().map(|call| call.swept).sum();
    let what = match swept {
        0 => return None,
        1 => "1 process".to_owned(),
        more => format!("{more} processes"),
    };
    let detail = format!("left {what} running; stopped, as in every run");
    Some(finding("leftovers", FindingState::Warning, detail, None))
}

/// Reports the total usage of all calls.
fn cost(calls: &[TrialOutput]) -> Finding {
    let mut all = Usage::default();
    for call in calls {
        let mut used = Usage::default();
        for event in &call.events {
            match event {
                TranscriptEvent::Usage { usage } if usage.scope == UsageScope::Step => used.add(usage),
                TranscriptEvent::Usage { usage } => used = (**usage).clone(),
                _ => {}
            }
        }
        all.add(&used);
    }
    let tokens = all.tokens().map(|tokens| format!("{tokens} tokens"));
    let money = all.cost_usd.map(|usd| format!("${:.4}", usd.get()));
    let text: Vec<String> = tokens.into_iter().chain(money).collect();
    let (state, detail) = if text.is_empty() {
        (FindingState::Absent, "not reported".to_owned())
    } else {
        (FindingState::Good, text.join(", "))
    };
    finding("used", state, detail, None)
}
