//! What a driver script has to say between two iterations: which session to go on with, and what helps when a tool was
//! refused. Nothing of this concerns agents without a driver.

use std::path::PathBuf;

use crate::agent::ResolvedAgent;
use crate::engine::Input;
use crate::event::{Level, Meta, RunEvent, TranscriptEvent};

#[derive(Debug, Default)]
pub(super) struct DriverSession {
    /// The session that the next iteration resumes.
    pub(super) session: Option<String>,
    /// The session that the running iteration named.
    told: Option<String>,
    refused: Option<String>,
    /// What was said once is not said again.
    said_help: bool,
    said_lost: bool,
}

impl DriverSession {
    /// Listens to what the agent says.
    pub(super) fn overhear(&mut self, input: &Input) {
        let Input::Transcript(TranscriptEvent::Meta { meta }) = input else {
            return;
        };
        if let Meta::Session { session_id, .. } = meta {
            self.told = Some(session_id.clone());
        } else if let Meta::PermissionDenied { tool } = meta {
            self.refused = Some(tool.clone());
        }
    }

    /// The agent has ended, and printed into this file.
    pub(super) fn conclude(&mut self, agent: &ResolvedAgent, output: Option<PathBuf>) -> Vec<RunEvent> {
        let (told, refused) = (self.told.take(), self.refused.take());
        let Some(driver) = agent.driver() else {
            return Vec::new();
        };
        let mut notices = Vec::new();
        if let Some(tool) = refused.filter(|_| !self.said_help) {
            self.said_help = true;
            notices.push(notice(format!("{tool} was refused.\n{}", driver.denial_help)));
        }
        if driver.continues() {
            self.session = output.and_then(|output| driver.session_of(&output, told.as_deref()));
            if self.session.is_none() && !self.said_lost {
                self.said_lost = true;
                let text = "the agent named no session; the next iteration starts a fresh one";
                notices.push(notice(text.to_owned()));
            }
        }
        notices
    }
}

fn notice(text: String) -> RunEvent {
    RunEvent::Notice {
        level: Level::Warning,
        text,
    }
}
