//! Which of the agent's own sessions the next iteration goes on with.

use super::*;
use crate::event::Level;

/// What an agent's program needs to find a session again; it reaches a command line.
const LONGEST_ID: usize = 128;

/// The session that the agent was last heard in.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    current: Option<String>,
    /// What it had used when it was last heard of.
    used: Usage,
    /// The running iteration was started in it.
    resumed: bool,
    told: bool,
}

impl Sessions {
    /// The session in which the next iteration starts.
    pub(super) fn next(&mut self, rule: SessionRule) -> Option<String> {
        if rule == SessionRule::Fresh {
            self.forget();
        }
        self.resumed = self.current.is_some();
        self.current.clone()
    }

    /// The session of a run that goes on, and what it had used.
    pub(super) fn restore(&mut self, id: Option<&str>, used: Usage) {
        if let Some(id) = id {
            self.named(id);
            self.used = used;
        }
    }

    /// What the session had used before the running iteration.
    pub(super) fn used(&self) -> Usage {
        self.used.clone()
    }

    fn forget(&mut self) {
        self.current = None;
        self.used = Usage::default();
    }

    fn named(&mut self, id: &str) {
        if self.current.as_deref() != Some(id) && is_session_id(id) {
            self.current = Some(id.to_owned());
        }
    }
}

/// UserMessages, digits and `._:-`, not too many of them, and nothing that could be an option.
fn is_session_id(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
    (1..=LONGEST_ID).contains(&id.len()) && id.chars().all(plain) && !id.starts_with('-')
}

impl Engine {
    /// Takes in the name that an agent gives to its session.
    pub(super) fn hear_session(&mut self, event: &TranscriptEvent) {
        if let TranscriptEvent::Meta {
            meta: Meta::Session { session_id, .. },
        } = event
        {
            self.sessions.named(session_id);
        }
    }

    /// An iteration has ended: what is known of its session now? True if it could not be resumed, so that nothing
    /// was done: then the same iteration is due again, in a fresh one.
    pub(super) fn close_session(
        &mut self,
        work: &Attempt,
        outcome: &IterationOutcome,
        out: &mut Vec<Action>,
    ) -> bool {
        if self.policy.session == SessionRule::Fresh {
            return false;
        }
        if let Some(used) = &work.session_used {
            self.sessions.used = used.clone();
        }
        let failed = matches!(outcome, IterationOutcome::Failed { .. });
        let lost = self.sessions.resumed && failed && work.never_began();
        let text = if lost {
            "the agent could not resume its session; it goes on with a fresh one"
        } else if self.sessions.current.is_none() && !self.sessions.told {
            self.sessions.told = true;
            "the agent did not name its session; the next iteration starts a fresh one"
        } else {
            return false;
        };
        if lost {
            self.sessions.forget();
        }
        out.push(Action::Emit(RunEvent::Notice {
            level: Level::Warning,
            text: text.to_owned(),
        }));
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::is_session_id;

    #[test]
    fn only_what_looks_like_an_id_reaches_a_command_line() {
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
