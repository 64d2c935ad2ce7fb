//! `ralph attach`: the screen of a run that another process drives, or that is over. Reads its journal as it grows, and
//! what it wants of the run it leaves in the run's inbox: whatever happens to the viewer, the run does not notice.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::event::{Order, Record, RunEvent, Sink};
use crate::store::{LATEST, Lock, OrderBox, StoreError, journal_at};
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
const PIECE: usize = 1 << 18;

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
    watch(&journal, &directory, &mut tui).map_err(|source| CliError::Capture {
        path: journal.clone(),
        source,
    })?;
    Ok(Exit::Success)
}

/// Shows what is there and what is added, until the watcher leaves.
fn watch(journal: &Path, directory: &Path, tui: &mut Tui) -> io::Result<()> {
    let mut tail = Tail::open(journal)?;
    let mut wait = SOON;
    let mut silent_since = Instant::now();
    loop {
        let grown = tail.read(tui)?;
        if grown {
            silent_since = Instant::now();
        } else if !tail.ended && silent_since.elapsed() >= SILENCE {
            silent_since = Instant::now();
            if !is_driven(journal, directory) {
                tui.lose();
            }
        }
        wait = if grown { SOON } else { LATER.min(wait * 2) };
        if tui.left_within(wait) {
            return Ok(());
        }
    }
}

/// Whether a process is at work on this run: on the newest one, that is, of a workspace that is locked.
fn is_driven(journal: &Path, directory: &Path) -> bool {
    let Some(agent) = directory.ancestors().nth(2).map(Path::to_owned) else {
        return false;
    };
    let real = |path: PathBuf| std::fs::canonicalize(path).ok();
    let is_newest = real(agent.join("events.jsonl")) == real(journal.to_owned());
    is_newest && Lock::holder(&agent.join("lock")).is_some()
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

/// A journal that may still grow.
struct Tail {
    file: File,
    /// The beginning of a line whose end has not been written yet.
    rest: Vec<u8>,
    ended: bool,
}

impl Tail {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: File::open(path)?,
            rest: Vec::new(),
            ended: false,
        })
    }

    /// Hands on what is new; says whether there was any.
    fn read(&mut self, sink: &mut impl Sink) -> io::Result<bool> {
        let mut grown = false;
        let mut piece = vec![0; PIECE];
        loop {
            let count = self.file.read(&mut piece)?;
            if count == 0 {
                return Ok(grown);
            }
            grown = true;
            // Only what is new can end a line: a long one is not searched again and again.
            let fresh = self.rest.len();
            self.rest.extend_from_slice(&piece[..count]);
            let Some(end) = memchr::memrchr(b'\n', &self.rest[fresh..]).map(|at| fresh + at) else {
                continue;
            };
            for line in self.rest[..end].split(|byte| *byte == b'\n') {
                if let Ok(record) = serde_json::from_slice::<Record>(line) {
                    self.ended = matches!(record.event, RunEvent::RunEnded { .. });
                    // A watcher who has left is noticed elsewhere.
                    let _ = sink.accept(&record);
                }
            }
            self.rest.drain(..=end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[derive(Default)]
    struct Seqs(Vec<u64>);

    impl Sink for Seqs {
        fn accept(&mut self, record: &Record) -> io::Result<()> {
            self.0.push(record.seq);
            Ok(())
        }
    }

    #[test]
    fn a_journal_is_followed_line_by_line_and_half_a_line_waits_for_its_end() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let line =
            |seq: u64| format!("{{\"seq\":{seq},\"at\":\"2026-11-15T20:45:01Z\",\"type\":\"wait_ended\"}}\n");
        let (mut tail, mut seen) = (Tail::open(file.path()).unwrap(), Seqs::default());
        assert!(!tail.read(&mut seen).unwrap());
        let (half, rest) = (
            line(2).split_at(20).0.to_owned(),
            line(2).split_at(20).1.to_owned(),
        );
        write!(file, "{}damaged\n{half}", line(1)).unwrap();
        assert!(tail.read(&mut seen).unwrap());
        assert_eq!(seen.0, [1]);
        write!(file, "{rest}").unwrap();
        assert!(tail.read(&mut seen).unwrap());
        assert_eq!(seen.0, [1, 2]);
    }
}
