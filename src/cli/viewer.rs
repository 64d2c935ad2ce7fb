//! Shows a run in the TUI while another process drives it, or after it has ended. It reads the journal and writes commands
//! to the run's inbox, so the viewer cannot affect the run in any other way.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::event::{RunEvent, Sink};
use crate::run::Host;
use crate::store::{Inbox, JournalEntry, JournalTail, StoreError, is_running, journal_at};
use crate::ui::tui::{OnEnd, Role, ScreenOptions, Tui};
use crate::ui::{FrontEnd, Terminal};

use super::error::CliError;
use super::exit::Exit;
use super::front_end::{terminal_guard, theme_here};
use super::run_files::StoredRunFiles;

/// Polling intervals of the journal, while it grows and while it does not.
const POLL_ACTIVE: Duration = Duration::from_millis(100);
const POLL_IDLE: Duration = Duration::from_millis(500);
/// After this much silence, check whether the run's process is alive.
const LIVENESS_CHECK: Duration = Duration::from_secs(2);

/// Shows the run at a path, which is its directory or its journal, until the user quits.
pub(super) fn view(path: &Path, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    let not_a_run = || StoreError::NotARun {
        path: path.to_owned(),
    };
    let journal = journal_at(path)?.ok_or_else(not_a_run)?;
    if !terminal.supports_tui() {
        return Err(CliError::NoTerminal { what: "ralph attach" });
    }
    let directory = journal.parent().unwrap_or(Path::new(".")).to_owned();
    let files = StoredRunFiles::at(directory.clone(), host);
    let open_run_files = Box::new(move |_: &_| Box::new(files.clone()) as Box<_>);
    let mut tui = terminal
        .tui(
            ScreenOptions {
                role: Role::Viewer,
                on_end: OnEnd::StayOpen,
                theme: theme_here(host),
            },
            open_run_files,
            terminal_guard(host),
        )
        .map_err(CliError::Output)?;
    let _ = tui.set_commands(Inbox::new(&directory).sender("attach"));
    watch(JournalTail::open(&journal)?, &directory, &mut tui).map_err(|source| {
        CliError::InputUnreadable {
            path: journal,
            source,
        }
    })?;
    Ok(Exit::Success)
}

/// Shows the journal and its additions until the user quits.
fn watch(mut tail: JournalTail, directory: &Path, tui: &mut Tui) -> io::Result<()> {
    let mut wait = POLL_ACTIVE;
    let mut silent_since = Instant::now();
    let mut last = NewRecords::None;
    loop {
        let new_records = forward_new_records(&mut tail, tui)?;
        if new_records != NewRecords::None {
            (silent_since, last) = (Instant::now(), new_records);
        } else if last != NewRecords::End && silent_since.elapsed() >= LIVENESS_CHECK {
            silent_since = Instant::now();
            if !is_running(directory) {
                tui.mark_died();
            }
        }
        wait = match new_records {
            NewRecords::None => POLL_IDLE.min(wait * 2),
            NewRecords::Some | NewRecords::End => POLL_ACTIVE,
        };
        if tui.wait_until_closed(wait) {
            return Ok(());
        }
    }
}

/// Passes new records to the TUI.
fn forward_new_records(tail: &mut JournalTail, tui: &mut Tui) -> io::Result<NewRecords> {
    let mut new_records = NewRecords::None;
    while let Some(entry) = tail.next_entry()? {
        new_records = NewRecords::Some;
        if let JournalEntry::Record(record) = entry {
            // `watch` notices when the user has quit.
            let _ = tui.accept(&record);
            if let RunEvent::RunEnded { .. } = record.event {
                new_records = NewRecords::End;
            }
        }
    }
    Ok(new_records)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NewRecords {
    None,
    Some,
    /// The last record ends the run.
    End,
}
