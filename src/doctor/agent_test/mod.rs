//! Does an agent work? What one small prompt brought to light, and what helps. Calls nothing itself.

mod evidence;

use std::time::Duration;

use serde::Serialize;

use crate::agent::{AGENTS, CUSTOM, ResolvedAgent, StdinSource, Terminal};
use crate::event::{ErrorClass, Meta, TranscriptEvent, Usage, UsageScope};
use crate::run::{TrialOutput, Way};
use crate::transcript::Format;

use super::{Finding, State};
use evidence::{
    PromptEvidence, assistant_text, count, detect_format, failure, is_finished, last_line, prompt_evidence,
    proves_prompt, succeeded,
};

/// What the agent is asked. Its answer is not in it, so that an echo is not taken for one.
pub const PROMPT: &str = "This is a test of the connection: use no tools and change nothing. Join the two words \
                          pelican and 4711 into one word without a space, and answer with that word alone.";
const ANSWER: &str = "pelican4711";
/// Enough of the prompt to know it again.
const BEGINNING: &str = "This is a test of the connection";

const AREA: &str = "findings";

/// What is known about an agent after it was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Works,
    /// It ran and spoke, but nothing shows that it was given its prompt.
    Unproven,
    Broken,
}

/// An agent, and what came of calling it.
pub struct AgentTest<'a> {
    pub agent: &'a ResolvedAgent,
    pub format: &'static Format,
    pub timeout: Duration,
    /// As configured first.
    pub calls: &'a [TrialOutput],
}

/// How the agent should be called next, if there is still something to find out. An agent that we know is called once;
/// the user's own again, in other ways, as long as no answer comes.
pub fn next_call(agent: &ResolvedAgent, calls: &[TrialOutput]) -> Option<Way> {
    let Some(first) = calls.first() else {
        return Some(Way::AsConfigured);
    };
    if agent.adapter() != CUSTOM || calls.iter().any(proves_prompt) {
        return None;
    }
    let untried = |way| !calls.iter().any(|call| call.way == way);
    // What did not end with an empty stdin does not wait for it.
    if first.end.is_some() && agent.on_stdin().is_some() && untried(Way::OnStdin) {
        return Some(Way::OnStdin);
    }
    let content = succeeded(first) && prompt_evidence(first) > PromptEvidence::NoOutput;
    (!content && agent.terminal == Terminal::Pipe && untried(Way::OnTerminal)).then_some(Way::OnTerminal)
}

/// There is nothing that could be called.
pub fn unusable(why: String, remedy: Option<String>) -> Finding {
    finding("program", State::Broken, why, remedy)
}

impl AgentTest<'_> {
    pub fn verdict(&self) -> Verdict {
        if super::is_broken(&self.findings()) {
            Verdict::Broken
        } else if self
            .best()
            .is_none_or(|best| prompt_evidence(best) <= PromptEvidence::OtherOutput)
        {
            Verdict::Unproven
        } else {
            Verdict::Works
        }
    }

    /// In the order in which they are shown.
    pub fn findings(&self) -> Vec<Finding> {
        let (Some(first), Some(best)) = (self.calls.first(), self.best()) else {
            return Vec::new();
        };
        let mut findings = vec![
            self.program(),
            self.end(first),
            self.stdin(first),
            self.terminal(first),
            arrival(best, self.agent.adapter() == CUSTOM),
            self.transcript(best),
            session(best),
        ];
        findings.extend(leftovers(self.calls));
        findings.push(cost(self.calls));
        findings
    }

    /// The call that got furthest, the earlier of two alike.
    fn best(&self) -> Option<&TrialOutput> {
        let proven_by = self.calls.iter().find(|call| proves_prompt(call));
        proven_by.or_else(|| self.calls.first())
    }

    fn proven_by(&self, way: Way) -> bool {
        self.calls
            .iter()
            .any(|call| call.way == way && proves_prompt(call))
    }

    fn program(&self) -> Finding {
        let version = self.agent.version.as_deref();
        let shown = version.map(|version| format!(", {version}")).unwrap_or_default();
        let detail = format!("{}{shown}", self.agent.program.display());
        let row = AGENTS.iter().find(|row| row.name == self.agent.name);
        let outdated = row.zip(version).filter(|(row, version)| row.is_outdated(version));
        match outdated.and_then(|(row, _)| row.oldest) {
            Some(oldest) => finding(
                "program",
                State::Warning,
                detail,
                Some(format!("update it: ralph needs {oldest} or newer")),
            ),
            None => finding("program", State::Good, detail, None),
        }
    }

    fn end(&self, first: &TrialOutput) -> Finding {
        let by_hand = || Some(format!("see what it says by hand: {}", by_hand(first)));
        let failure = failure(first);
        match (first.end, failure) {
            (None, _) => {
                let limit = self.timeout.as_secs();
                let though = match prompt_evidence(first) {
                    PromptEvidence::Answered => ", though it had answered",
                    PromptEvidence::OtherOutput | PromptEvidence::Echoed => {
                        ", though it had printed something"
                    }
                    PromptEvidence::NoOutput => "",
                };
                finding(
                    "end",
                    State::Broken,
                    format!("did not end within {limit} s, and was stopped{though}"),
                    Some(
                        "find the flag that makes it work without a person, or give it more time: --timeout"
                            .into(),
                    ),
                )
            }
            (Some(end), Some((class, message))) => {
                let remedy = match class {
                    ErrorClass::Auth if !self.agent.auth_hint.is_empty() => {
                        Some(self.agent.auth_hint.clone())
                    }
                    _ => by_hand(),
                };
                finding("end", State::Broken, format!("{end}: {message}"), remedy)
            }
            (Some(end), None) if end.success() => {
                let detail = format!("{end}, after {:.1} s", first.took.as_secs_f64());
                finding("end", State::Good, detail, None)
            }
            (Some(end), None) => {
                let said = last_line(&first.stderr).or_else(|| last_line(&first.stdout));
                let said = said.map(|line| format!(": {line}")).unwrap_or_default();
                let detail = format!("{end}{said}");
                finding("end", State::Broken, detail, by_hand())
            }
        }
    }

    fn stdin(&self, first: &TrialOutput) -> Finding {
        let (state, detail, remedy) = if self.proven_by(Way::OnStdin) {
            (
                State::Broken,
                "it waits for its prompt there, and is given it as an argument",
                Some("in ralph.yml: cli.prompt_mode: stdin".to_owned()),
            )
        } else if first.stdin != StdinSource::Null {
            (State::Good, "its prompt comes from there", None)
        } else if first.end.is_some() {
            (State::Good, "empty, and it does not wait for it", None)
        } else {
            (State::Good, "empty; that is not what it waits for", None)
        };
        finding("stdin", state, detail.to_owned(), remedy)
    }

    fn terminal(&self, first: &TrialOutput) -> Finding {
        let tried = self.calls.iter().any(|call| call.way == Way::OnTerminal);
        let (state, detail, remedy) = if self.proven_by(Way::OnTerminal) {
            (
                State::Broken,
                "it works with one, and not without",
                Some("in ralph.yml: cli.pty_mode: true".to_owned()),
            )
        } else if tried {
            (State::Absent, "with one it works no better", None)
        } else if self.agent.terminal == Terminal::Pty {
            (State::Good, "its stdout is one", None)
        } else if succeeded(first) && prompt_evidence(first) > PromptEvidence::NoOutput {
            (State::Good, "it needs none", None)
        } else {
            (State::Absent, "not known", None)
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
            (State::Absent, "nothing to read".to_owned(), None)
        } else if let Some(better) = better {
            let detail = format!("is read as {name}, and looks like {better}");
            (State::Warning, detail, set(better))
        } else if assistant_text(best).trim().is_empty() {
            let detail = format!("as {name}, nothing of what it printed is an answer");
            let own = (self.agent.adapter() == CUSTOM).then(|| "plain".to_owned());
            (State::Broken, detail, own.and_then(|plain| set(&plain)))
        } else if unreadable > 0 {
            let detail = format!("{unreadable} lines could not be read as {name}");
            (State::Warning, detail, None)
        } else if self.format.capabilities.terminal_event && !finished {
            let detail = format!("{name}, but without its last event: the output is cut off");
            (State::Broken, detail, None)
        } else {
            (State::Good, format!("{name} fits"), None)
        };
        finding("transcript", state, detail, remedy)
    }
}

fn finding(subject: &str, state: State, detail: String, remedy: Option<String>) -> Finding {
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
        word if word.contains(BEGINNING) => "hello".to_owned(),
        word if word.contains(' ') => format!("'{word}'"),
        word => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn arrival(best: &TrialOutput, is_own: bool) -> Finding {
    let once = match best.way {
        Way::AsConfigured => "",
        Way::OnStdin => ", once it came on stdin",
        Way::OnTerminal => ", once there was a terminal",
    };
    let (state, detail, remedy) = match prompt_evidence(best) {
        PromptEvidence::Answered => (State::Good, format!("arrived, and was answered{once}"), None),
        PromptEvidence::Echoed => (
            State::Warning,
            format!("arrived, and was printed back{once}; no answer to it was seen"),
            None,
        ),
        PromptEvidence::OtherOutput if failure(best).is_some() => {
            (State::Absent, "not known, since it failed".to_owned(), None)
        }
        PromptEvidence::OtherOutput => (
            State::Warning,
            format!(
                "nothing shows that it arrived{}",
                said("it printed", &best.stdout)
            ),
            is_own.then(|| "check how it takes a prompt: cli.prompt_mode, cli.prompt_flag".to_owned()),
        ),
        PromptEvidence::NoOutput => (
            State::Broken,
            format!("nothing was printed on stdout{}", said("on stderr", &best.stderr)),
            is_own.then(|| {
                "without an answer every iteration fails; find the flag that makes it print one".to_owned()
            }),
        ),
    };
    finding("prompt", state, detail, remedy)
}

fn said(place: &str, bytes: &[u8]) -> String {
    last_line(bytes)
        .map(|line| format!("; {place}: {line}"))
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
        (State::Good, "it tells its id")
    } else {
        (
            State::Absent,
            "it tells no id: `session: continue` is not possible",
        )
    };
    finding("session", state, detail.to_owned(), None)
}

fn leftovers(calls: &[TrialOutput]) -> Option<Finding> {
    let swept: u64 = calls.iter().map(|call| call.swept).sum();
    let what = match swept {
        0 => return None,
        1 => "a process".to_owned(),
        more => format!("{more} processes"),
    };
    let detail = format!("{what} outlived it and had to be stopped, as in every run");
    Some(finding("leftovers", State::Warning, detail, None))
}

/// Usage of all calls, as far as the agent reports it.
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
    let money = all.cost_usd.map(|usd| format!("${usd:.4}"));
    let text: Vec<String> = tokens.into_iter().chain(money).collect();
    let (state, detail) = if text.is_empty() {
        (State::Absent, "not told".to_owned())
    } else {
        (State::Good, text.join(", "))
    };
    finding("used", state, detail, None)
}
