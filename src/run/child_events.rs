//! What the child that runs reports: what it says, and that it has ended.

use crate::engine::Input;
use crate::event::{RunOutcome, TranscriptEvent};
use crate::process::{ChildEvent, Ended};
use crate::store::IterationFiles;

use super::queue::{Generation, OutputBytes};
use super::session::{Parsed, Recycled, SessionKind};
use super::workspace::Workspace;
use super::{Driver, RunError};

impl Driver<'_> {
    fn is_of_the_present_child(&self, generation: Generation) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| session.generation == generation)
    }

    pub(super) fn on_child_event(
        &mut self,
        generation: Generation,
        report: ChildEvent,
    ) -> Result<(), RunError> {
        if !self.is_of_the_present_child(generation) {
            return Ok(());
        }
        match (report, self.session.as_mut().map(|session| &mut session.work)) {
            (ChildEvent::Output { chunk, .. }, Some(SessionKind::Gate(excerpt))) => excerpt.take(&chunk),
            // An agent's comes together with what it says.
            (ChildEvent::Output { .. }, Some(SessionKind::Agent(_)) | None) => {}
            (ChildEvent::Ended(ended), _) => self.ended(ended)?,
        }
        Ok(())
    }

    /// What the agent has said goes to the engine, and to whoever looks at its screen.
    pub(super) fn on_output(
        &mut self,
        generation: Generation,
        spoken: OutputBytes,
        said: Parsed,
    ) -> Result<Option<RunOutcome>, RunError> {
        if !self.is_of_the_present_child(generation) {
            return Ok(None);
        }
        let judged = self.judge(said);
        if let Some(sitting) = &self.sitting {
            sitting.paint(spoken);
        }
        judged
    }

    fn judge(&mut self, said: Parsed) -> Result<Option<RunOutcome>, RunError> {
        self.failpoint("judge");
        if let Some(outcome) = self.step(Input::OutputSeen)? {
            return Ok(Some(outcome));
        }
        match said {
            Parsed::Events(events) => self.on_events(events),
            Parsed::Stderr(lines) => {
                let mut steps = lines.into_iter().map(|line| self.step(Input::Stderr(line)));
                steps.find_map(Result::transpose).transpose()
            }
        }
    }

    fn on_events(&mut self, mut events: Vec<TranscriptEvent>) -> Result<Option<RunOutcome>, RunError> {
        for event in events.drain(..) {
            let input = Input::Transcript(event);
            self.driven.overhear(&input);
            if let Some(outcome) = self.step(input)? {
                return Ok(Some(outcome));
            }
        }
        let mut spent = std::mem::take(&mut self.spent);
        spent.list = events;
        if let Some(SessionKind::Agent(reading)) = self.session.as_ref().map(|session| &session.work) {
            self.spent = reading.take_back(spent);
        }
        Ok(None)
    }

    fn ended(&mut self, ended: Ended) -> Result<(), RunError> {
        let Some(session) = self.session.take() else {
            return Ok(());
        };
        self.get_up();
        self.spent = Recycled::default();
        let mut complaint = None;
        let (todo, driven) = (&mut self.todo, &mut self.driven);
        match &session.work {
            SessionKind::Agent(reading) => {
                let said = reading.finish();
                said.iter().for_each(|input| driven.overhear(input));
                todo.extend(said);
                let strayed = self.tree.as_mut().map(Workspace::strayed);
                match strayed {
                    Some(Ok(files)) if !files.is_empty() => todo.push_back(Input::PathsViolated { files }),
                    Some(Err(why)) => complaint = Some(why),
                    Some(Ok(_)) | None => {}
                }
                todo.push_back(Input::Exited {
                    end: ended.end,
                    swept: ended.swept,
                });
                let output = self.files.as_ref().map(IterationFiles::stdout_path);
                let notices = driven.conclude(&self.setup.agent, output);
                notices.into_iter().try_for_each(|notice| self.emit(notice))?;
            }
            SessionKind::Gate(excerpt) => {
                todo.push_back(Input::GateEnded {
                    end: Some(ended.end),
                    output: excerpt.text(),
                });
            }
        }
        self.past = Some(session);
        self.complain_of_tree(complaint)
    }

    /// What cannot be looked at cannot be judged; the run goes on, and says so.
    pub(super) fn complain_of_tree(&mut self, complaint: Option<String>) -> Result<(), RunError> {
        match complaint {
            Some(why) => self.warn(format!("cannot tell what has changed in the workspace: {why}")),
            None => Ok(()),
        }
    }
}
