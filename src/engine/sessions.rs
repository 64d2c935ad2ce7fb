//! Tracks which agent session the next iteration resumes.

use std::collections::BTreeMap;

use super::*;
use crate::event::NoticeLevel;

/// Session ids become command-line arguments, so their length is bounded.
const MAX_SESSION_ID_BYTES: usize = 128;

/// The most recent session of each agent. An agent never receives the session of another one.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_agent: BTreeMap<usize, AgentSession>,
}

/// The most recent session that one agent reported.
#[derive(Debug, Default)]
struct AgentSession {
    current: Option<String>,
    /// The session's cumulative usage in its last report.
    usage: Usage,
    /// Whether the running iteration resumed the session.
    resumed: bool,
    warned: bool,
}

impl Sessions {
    /// Returns the session that the next iteration resumes.
    pub(super) fn next(&mut self, agent: usize, rule: Session, source: SessionSource) -> Option<String> {
        let session = self.of(agent);
        if rule == Session::Fresh && source == SessionSource::Transcript {
            session.clear();
        }
        session.resumed = session.current.is_some();
        session.current.clone()
    }

    /// Restores the session of a resumed run.
    pub(super) fn restore(&mut self, agent: usize, id: &str, usage: Usage) {
        let session = self.of(agent);
        session.set_current(id);
        session.usage = usage;
    }

    /// The session's cumulative usage before the running iteration.
    pub(super) fn usage(&mut self, agent: usize) -> Usage {
        self.of(agent).usage.clone()
    }

    /// Replaces the session by the one that the driver found.
    pub(super) fn replace(&mut self, agent: usize, id: Option<&str>) {
        match id {
            Some(id) => self.of(agent).set_current(id),
            None => self.of(agent).clear(),
        }
    }

    fn of(&mut self, agent: usize) -> &mut AgentSession {
        self.by_agent.entry(agent).or_default()
    }
}

impl AgentSession {
    fn clear(&mut self) {
        self.current = None;
        self.usage = Usage::default();
    }

    fn set_current(&mut self, id: &str) {
        if self.current.as_deref() != Some(id) && is_session_id(id) {
            self.current = Some(id.to_owned());
        }
    }
}

/// Accepts letters, digits and `._:-` up to the length limit, and nothing that could be parsed as an option.
fn is_session_id(id: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
    (1..=MAX_SESSION_ID_BYTES).contains(&id.len()) && id.chars().all(allowed) && !id.starts_with('-')
}

impl Engine {
    /// Stores the session id that the agent reports.
    pub(super) fn note_session(&mut self, event: &TranscriptEvent) {
        if let TranscriptEvent::Meta {
            meta: Meta::Session { session_id, .. },
        } = event
            && self.agent().session_source == SessionSource::Transcript
        {
            self.sessions.of(self.agent).set_current(session_id);
        }
    }

    /// Updates the session after an iteration. Returns true if the session could not be resumed and nothing was done;
    /// the same iteration is then repeated in a new session.
    pub(super) fn close_session(
        &mut self,
        attempt: &Attempt,
        outcome: &IterationOutcome,
        out: &mut Vec<Action>,
    ) -> bool {
        let source = self.agent().session_source;
        if self.policy.session == Session::Fresh && source == SessionSource::Transcript {
            return false;
        }
        let session = self.sessions.of(self.agent);
        if let Some(usage) = &attempt.session_usage {
            session.usage = usage.clone();
        }
        let failed = matches!(outcome, IterationOutcome::Failed { .. });
        let lost = session.resumed && failed && attempt.failed_before_model_responded();
        let text = if lost {
            "the agent could not resume its session; starting a new one"
        } else if session.current.is_none() && !session.warned {
            session.warned = true;
            "the agent did not report a session id; the next iteration starts a new session"
        } else {
            return false;
        };
        if lost {
            session.clear();
        }
        out.push(Action::Emit(RunEvent::Notice {
            level: NoticeLevel::Warning,
            text: text.to_owned(),
        }));
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::is_session_id;

    #[test]
    fn session_ids_are_validated() {
        for id in ["ses_e1e258a24ffeJi1", "01a1e1d6-c401-74b0", "a.b:c", "x"] {
            assert!(is_session_id(id), "{id}");
        }
        for id in [
            "",
            "-x",
            "--resume",
            "a b",
            "a;b",
            "$(id)",
            "../x",
            "ä",
            "a\nb",
            &"x".repeat(129),
        ] {
            assert!(!is_session_id(id), "{id}");
        }
    }
}
