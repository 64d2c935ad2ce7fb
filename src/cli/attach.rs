//! `ralph attach`: the screen of a run that another process drives, or that is over. Reads its journal as it grows;
//! touches nothing, so that whatever happens to the viewer, the run does not notice.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::event::{Record, RunEvent, Sink};
use crate::store::{self, Lock};
use crate::ui::Terminal;
use crate::ui::tui::{OnEnd, Role};

use super::args::AttachArguments;
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::shelf::RunShelf;

/// How often the journal is looked at: soon while it grows, less often while it does not.
const SOON: Duration = Duration::from_millis(100);
const LATER: Duration = Duration::from_millis(500);
const PIECE: usize = 1 << 18;

pub(super) fn attach(arguments: &AttachArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let context = Context::here()?;
    let agent = context.cwd.join(store::DIRECTORY);
    let directory = find(&agent, arguments.run.as_deref())?;
    let journal = directory.join("events.jsonl");
    let unreadable = |source| CliError::Journal {
        path: journal.clone(),
        source,
    };
    let mut tail = Tail::open(&journal).map_err(unreadable)?;
    if !terminal.can_be_taken() {
        return Err(CliError::NoTerminal { what: "ralph attach" });
    }
    let shelf = directory.clone();
    let open_shelf = Box::new(move |_: &_| Box::new(RunShelf::at(shelf.clone())) as Box<_>);
    let mut tui = terminal
        .tui(Role::Viewer, OnEnd::Stay, open_shelf)
        .map_err(CliError::Output)?;
    tui.obey_signals().map_err(CliError::Output)?;
    let mut wait = SOON;
    loop {
        let grown = tail.read(&mut tui).map_err(unreadable)?;
        let is_newest =
            std::fs::canonicalize(agent.join("events.jsonl")).ok() == std::fs::canonicalize(&journal).ok();
        let is_driven = is_newest && Lock::holder(&agent.join("lock")).is_some();
        if !grown && !tail.ended && !is_driven {
            tui.lose();
        }
        wait = if grown { SOON } else { LATER.min(wait * 2) };
        if tui.left_within(wait) {
            return Ok(Exit::Success);
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
            self.rest.extend_from_slice(&piece[..count]);
            let Some(end) = memchr::memrchr(b'\n', &self.rest) else {
                continue;
            };
            for line in self.rest[..end].split(|byte| *byte == b'\n') {
                if let Ok(record) = serde_json::from_slice::<Record>(line) {
                    self.ended = matches!(record.event, RunEvent::RunEnded { .. });
                    sink.accept(&record)?;
                }
            }
            self.rest.drain(..=end);
        }
    }
}

/// The directory of a run: the newest, or the one whose name begins so, or any that is named by its path.
fn find(agent: &Path, wanted: Option<&str>) -> Result<PathBuf, CliError> {
    let runs = agent.join("runs");
    let Some(wanted) = wanted else {
        let newest = std::fs::canonicalize(agent.join("events.jsonl"));
        let newest = newest.ok().and_then(|path| path.parent().map(Path::to_owned));
        return newest.ok_or(CliError::NoRun { wanted: None });
    };
    let path = Path::new(wanted);
    if path.join("events.jsonl").is_file() {
        return Ok(path.to_owned());
    }
    let names = std::fs::read_dir(&runs).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = names
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(wanted))
        .map(|entry| entry.path())
        .collect();
    match (found.pop(), found.pop()) {
        (Some(one), None) => Ok(one),
        _ => Err(CliError::NoRun {
            wanted: Some(wanted.to_owned()),
        }),
    }
}
