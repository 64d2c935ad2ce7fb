//! Hands: the meeting room. Everything that happens comes in by the inbox, goes through the engine, and what the
//! engine asks for is done. Decides nothing itself.

mod clock;
mod inbox;
mod perform;
mod session;
mod summary;

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use jiff::Timestamp;

use crate::agent::Selected;
use crate::engine::{Engine, Input};
use crate::event::{Interrupt, Record, RunEvent, RunHeader, RunOutcome, Sink};
use crate::process::{Ended, Keeper, Report};
use crate::store::{IterationFiles, Journal, Run, StoreError};
use crate::transcript::Format;
use crate::ui::Face;

use clock::Clock;
use inbox::{Generation, Inbox, Message};
use session::{Session, SessionKind};

/// What cannot be mended by trying again.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot write the journal of this run")]
    Journal(#[source] io::Error),
    #[error("cannot keep the agent's output")]
    Raw(#[source] io::Error),
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
}

/// Where the user's prompt comes from. A file is read again for every iteration.
#[derive(Debug, Clone)]
pub enum PromptSource {
    Text(String),
    File(PathBuf),
}

impl PromptSource {
    pub fn read(&self) -> Result<String, String> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(path) => std::fs::read(path)
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                .map_err(|error| format!("cannot read the prompt file {}: {error}", path.display())),
        }
    }
}

/// Everything a run needs.
pub struct Setup {
    pub engine: Engine,
    pub header: RunHeader,
    pub run: Run,
    pub agent: Selected,
    pub format: &'static Format,
    pub prompt: PromptSource,
    pub workspace: PathBuf,
    pub keeper: Keeper,
    pub max_line_bytes: usize,
}

/// Drives a run to its end.
pub fn drive(setup: Setup, face: &mut dyn Face) -> Result<RunOutcome, RunError> {
    let inbox = Inbox::open().map_err(RunError::Signals)?;
    face.take_door(Box::new(inbox::WishDoor(inbox.sender())));
    setup.run.write_header(&setup.header)?;
    let journal = setup.run.journal()?;
    let header = setup.header.clone();
    let mut hands = Hands {
        setup,
        inbox,
        journal,
        face: Some(face),
        clock: Clock::start(),
        seq: 0,
        generation: 0,
        iteration: 0,
        files: None,
        session: None,
        todo: VecDeque::new(),
    };
    hands.todo.push_back(Input::Started(header));
    hands.work()
}

/// The state of the hands: what is open, what runs, what is still to be told to the engine.
struct Hands<'a> {
    setup: Setup,
    inbox: Inbox,
    journal: Journal,
    /// Gone when nobody can see it any more.
    face: Option<&'a mut dyn Face>,
    clock: Clock,
    seq: u64,
    generation: Generation,
    /// The iteration whose child runs now, or ran last, and its files until its outcome is written.
    iteration: u64,
    files: Option<IterationFiles>,
    session: Option<Session>,
    todo: VecDeque<Input>,
}

impl Hands<'_> {
    fn work(&mut self) -> Result<RunOutcome, RunError> {
        loop {
            while let Some(input) = self.todo.pop_front() {
                let actions = self.setup.engine.step(self.clock.elapsed(), input);
                for action in actions {
                    if let Some(outcome) = self.perform(action)? {
                        self.flush()?;
                        return Ok(outcome);
                    }
                }
            }
            match self.next_message()? {
                Some(Message::Child { generation, report }) => self.hear(generation, report)?,
                Some(Message::Signal(signal)) => self.todo.extend(inbox::meaning(signal)),
                Some(Message::Wish(wish)) => self.todo.extend(inbox::meaning_of_wish(wish)),
                None => self.todo.push_back(Input::Tick),
            }
        }
    }

    /// The next message, or nothing when a deadline came first. Before waiting, what was said is made visible.
    fn next_message(&mut self) -> Result<Option<Message>, RunError> {
        if let Some(message) = self.inbox.take() {
            return Ok(Some(message));
        }
        self.flush()?;
        self.tick_face();
        let now = self.clock.elapsed();
        let deadline = self.setup.engine.deadline().map(|due| due.saturating_sub(now));
        let redraw = self.face.as_ref().and_then(|face| face.wants_tick());
        Ok(self.inbox.wait(deadline.into_iter().chain(redraw).min()))
    }

    fn hear(&mut self, generation: Generation, report: Report) -> Result<(), RunError> {
        let Some(session) = self
            .session
            .as_mut()
            .filter(|session| session.generation == generation)
        else {
            return Ok(());
        };
        match report {
            Report::Output { stream, chunk } => match &mut session.work {
                SessionKind::Agent(agent) => {
                    let todo = &mut self.todo;
                    agent
                        .take(stream, &chunk, &mut |input| todo.push_back(input))
                        .map_err(RunError::Raw)
                }
                SessionKind::Gate(excerpt) => {
                    excerpt.take(&chunk);
                    Ok(())
                }
            },
            Report::Ended(ended) => {
                self.ended(ended);
                Ok(())
            }
        }
    }

    fn ended(&mut self, ended: Ended) {
        let Some(mut session) = self.session.take() else {
            return;
        };
        let todo = &mut self.todo;
        match &mut session.work {
            SessionKind::Agent(agent) => {
                agent.finish(&mut |input| todo.push_back(input));
                todo.push_back(Input::Exited {
                    end: ended.end,
                    swept: ended.swept,
                });
            }
            SessionKind::Gate(excerpt) => {
                todo.push_back(Input::GateEnded {
                    end: Some(ended.end),
                    output: excerpt.text(),
                });
            }
        }
    }

    /// Stamps an event and gives it to every sink, the journal first.
    fn emit(&mut self, event: RunEvent) -> Result<(), RunError> {
        self.seq += 1;
        let record = Record {
            seq: self.seq,
            at: Timestamp::now(),
            event,
        };
        self.journal.accept(&record).map_err(RunError::Journal)?;
        self.show(|face| face.accept(&record));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), RunError> {
        self.journal.flush().map_err(RunError::Journal)?;
        self.show(|face| face.flush());
        Ok(())
    }

    fn tick_face(&mut self) {
        self.show(|face| face.tick(Timestamp::now()));
    }

    /// A face that cannot be written to has lost its watcher: the run ends as it does when the terminal goes away.
    fn show(&mut self, act: impl FnOnce(&mut dyn Face) -> io::Result<()>) {
        if let Some(face) = &mut self.face
            && act(&mut **face).is_err()
        {
            self.face = None;
            self.todo.push_back(Input::Interrupted(Interrupt::Hup));
        }
    }
}
