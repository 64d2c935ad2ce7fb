//! `ralph attach`: the screen of a run that another process drives, or that is over. Reads its journal as it grows, and
//! what it wants of the run it leaves in the run's inbox: whatever happens to the viewer, the run does not notice.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::event::{Command, RunEvent, Sink};
use crate::store::{Entry, Inbox, LATEST, StoreError, Tail, is_at_work, journal_at};
use crate::ui::tui::{CommandSender, OnEnd, Role, Tui, UserCommand, UserCommandKind};
use crate::ui::{FrontEnd, Terminal};

use super::args::AttachArguments;
use super::error::CliError;
use super::exit::Exit;
use super::replay::named_run;
use super::run_files::StoredRunFiles;

/// How often the journal is looked at: soon while it grows, less often while it does not.
const POLL_ACTIVE: Duration = Duration::from_millis(100);
const POLL_IDLE: Duration = Duration::from_millis(500);
/// A run that is silent for so long may have lost its process.
const LIVENESS_CHECK: Duration = Duration::from_secs(2);

pub(super) fn attach(arguments: &AttachArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let what = arguments.run.as_deref().unwrap_or(Path::new(LATEST));
    let place = named_run(what)?.unwrap_or_else(|| what.to_owned());
    let not_a_run = || StoreError::NotARun { path: place.clone() };
    let journal = journal_at(&place)?.ok_or_else(not_a_run)?;
    if !terminal.can_be_taken() {
        return Err(CliError::NoTerminal { what: "ralph attach" });
    }
    let directory = journal.parent().unwrap_or(Path::new(".")).to_owned();
    let index = directory.clone();
    let open_shelf = Box::new(move |_: &_| Box::new(StoredRunFiles::at(index.clone())) as Box<_>);
    let mut tui = terminal
        .tui(Role::Viewer, OnEnd::Stay, open_shelf, super::front_end::guard())
        .map_err(CliError::Output)?;
    let _ = tui.set_commands(Box::new(InboxSender(Inbox::of(&directory))));
    watch(Tail::open(&journal)?, &directory, &mut tui).map_err(|source| CliError::InputUnreadable {
        path: journal,
        source,
    })?;
    Ok(Exit::Success)
}

/// Shows what is there and what is added, until the watcher leaves.
fn watch(mut tail: Tail, directory: &Path, tui: &mut Tui) -> io::Result<()> {
    let mut wait = POLL_ACTIVE;
    let mut silent_since = Instant::now();
    let mut last = Progress::None;
    loop {
        let news = forward_new_records(&mut tail, tui)?;
        if news != Progress::None {
            (silent_since, last) = (Instant::now(), news);
        } else if last != Progress::End && silent_since.elapsed() >= LIVENESS_CHECK {
            silent_since = Instant::now();
            if !is_at_work(directory) {
                tui.lose();
            }
        }
        wait = match news {
            Progress::None => POLL_IDLE.min(wait * 2),
            Progress::Some | Progress::End => POLL_ACTIVE,
        };
        if tui.left_within(wait) {
            return Ok(());
        }
    }
}

/// Hands on what is new.
fn forward_new_records(tail: &mut Tail, tui: &mut Tui) -> io::Result<Progress> {
    let mut news = Progress::None;
    while let Some(entry) = tail.next_entry()? {
        news = Progress::Some;
        if let Entry::Record(record) = entry {
            // A watcher who has left is noticed elsewhere.
            let _ = tui.accept(&record);
            if let RunEvent::RunEnded { .. } = record.event {
                news = Progress::End;
            }
        }
    }
    Ok(news)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    None,
    Some,
    /// The last of it is that the run is over.
    End,
}

/// What the watcher wants of a run that another process drives goes into its inbox, as `ralph tell` puts it there.
struct InboxSender(Inbox);

impl CommandSender for InboxSender {
    fn send(&self, command: UserCommand) -> Result<(), String> {
        let order = match command {
            UserCommand::Tell(text) => Command::Message { text },
            UserCommand::Pause => Command::Pause,
            UserCommand::Resume | UserCommand::GoOn => Command::Resume,
            UserCommand::Wake => Command::Wake,
            UserCommand::StopIteration => Command::StopIteration,
            // Those are about the viewer.
            UserCommand::GoOnWithoutAsking
            | UserCommand::Interrupt
            | UserCommand::Quit
            | UserCommand::Left
            | UserCommand::Gone => {
                return Ok(());
            }
        };
        let put = self.0.put(order, Timestamp::now());
        put.map(drop).map_err(|error| error.to_string())
    }

    fn understands(&self, kind: UserCommandKind) -> bool {
        match kind {
            UserCommandKind::Pause
            | UserCommandKind::Resume
            | UserCommandKind::Wake
            | UserCommandKind::Tell
            | UserCommandKind::GoOn => true,
            UserCommandKind::StopIteration | UserCommandKind::GoOnWithoutAsking => false,
        }
    }
}
