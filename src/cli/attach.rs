//! `ralph attach`: the screen of a run that another process drives, or that is over. Reads its journal as it grows, and
//! what it wants of the run it leaves in the run's inbox: whatever happens to the viewer, the run does not notice.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::event::{Order, RunEvent, Sink};
use crate::store::{Entry, LATEST, OrderBox, StoreError, Tail, is_at_work, journal_at};
use crate::ui::tui::{Door, OnEnd, Role, Tui, Wish, WishKind};
use crate::ui::{Face, Terminal};

use super::args::AttachArguments;
use super::error::CliError;
use super::exit::Exit;
use super::replay::named_run;
use super::shelf::RunShelf;

/// How often the journal is looked at: soon while it grows, less often while it does not.
const SOON: Duration = Duration::from_millis(100);
const LATER: Duration = Duration::from_millis(500);
/// A run that is silent for so long may have lost its process.
const SILENCE: Duration = Duration::from_secs(2);

pub(super) fn attach(arguments: &AttachArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let what = arguments.run.as_deref().unwrap_or(Path::new(LATEST));
    let place = named_run(what)?.unwrap_or_else(|| what.to_owned());
    let not_a_run = || StoreError::NotARun { path: place.clone() };
    let journal = journal_at(&place)?.ok_or_else(not_a_run)?;
    if !terminal.can_be_taken() {
        return Err(CliError::NoTerminal { what: "ralph attach" });
    }
    let directory = journal.parent().unwrap_or(Path::new(".")).to_owned();
    let shelf = directory.clone();
    let open_shelf = Box::new(move |_: &_| Box::new(RunShelf::at(shelf.clone())) as Box<_>);
    let mut tui = terminal
        .tui(Role::Viewer, OnEnd::Stay, open_shelf, super::screen::guard())
        .map_err(CliError::Output)?;
    let _ = tui.take_door(Box::new(InboxDoor(OrderBox::of(&directory))));
    watch(Tail::open(&journal)?, &directory, &mut tui).map_err(|source| CliError::Capture {
        path: journal,
        source,
    })?;
    Ok(Exit::Success)
}

/// Shows what is there and what is added, until the watcher leaves.
fn watch(mut tail: Tail, directory: &Path, tui: &mut Tui) -> io::Result<()> {
    let mut wait = SOON;
    let mut silent_since = Instant::now();
    let mut last = News::None;
    loop {
        let news = tell_news(&mut tail, tui)?;
        if news != News::None {
            (silent_since, last) = (Instant::now(), news);
        } else if last != News::End && silent_since.elapsed() >= SILENCE {
            silent_since = Instant::now();
            if !is_at_work(directory) {
                tui.lose();
            }
        }
        wait = match news {
            News::None => LATER.min(wait * 2),
            News::Some | News::End => SOON,
        };
        if tui.left_within(wait) {
            return Ok(());
        }
    }
}

/// Hands on what is new.
fn tell_news(tail: &mut Tail, tui: &mut Tui) -> io::Result<News> {
    let mut news = News::None;
    while let Some(entry) = tail.next_entry()? {
        news = News::Some;
        if let Entry::Record(record) = entry {
            // A watcher who has left is noticed elsewhere.
            let _ = tui.accept(&record);
            if let RunEvent::RunEnded { .. } = record.event {
                news = News::End;
            }
        }
    }
    Ok(news)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    None,
    Some,
    /// The last of it is that the run is over.
    End,
}

/// What the watcher wants of a run that another process drives goes into its inbox, as `ralph tell` puts it there.
struct InboxDoor(OrderBox);

impl Door for InboxDoor {
    fn send(&self, wish: Wish) -> Result<(), String> {
        let order = match wish {
            Wish::Tell(text) => Order::Message { text },
            Wish::Pause => Order::Pause,
            Wish::Resume | Wish::GoOn => Order::Resume,
            Wish::Wake => Order::Wake,
            Wish::StopIteration => Order::StopIteration,
            // Those are about the viewer.
            Wish::GoOnWithoutAsking | Wish::Interrupt | Wish::Quit | Wish::Left | Wish::Gone => {
                return Ok(());
            }
        };
        let put = self.0.put(order, Timestamp::now());
        put.map(drop).map_err(|error| error.to_string())
    }

    fn understands(&self, kind: WishKind) -> bool {
        match kind {
            WishKind::Pause | WishKind::Resume | WishKind::Wake | WishKind::Tell | WishKind::GoOn => true,
            WishKind::StopIteration | WishKind::GoOnWithoutAsking => false,
        }
    }
}
