//! A run's inbox: one small file for each thing that the user tells it. A file is put there whole, and taken away only
//! when the journal has it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{StoreError, at, make_directory};
use crate::event::Command;

/// The version of the files' format.
const VERSION: u32 = 1;
const EXTENSION: &str = "json";
/// No order that a person gave is larger.
const MAX_BYTES: u64 = 1 << 20;
/// What is put aside.
const REJECTED: &str = ".rejected";
/// Digits at the beginning of a name, by which files are sorted.
const STAMP: usize = 20;
/// A note that nobody has touched for so long is complete.
const SETTLED: Duration = Duration::from_millis(300);

/// `{"version": 1, "kind": "message", "text": "…"}`
#[derive(Debug, Serialize, Deserialize)]
struct Letter {
    version: u32,
    #[serde(flatten)]
    order: Command,
}

/// The inbox of one run.
#[derive(Debug, Clone)]
pub struct Inbox {
    directory: PathBuf,
}

/// What was found in the inbox.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name there.
    pub id: String,
    /// The order, or why it is none.
    pub order: Result<Command, String>,
}

impl Inbox {
    pub fn of(run: &Path) -> Self {
        Self {
            directory: run.join("inbox"),
        }
    }

    /// Puts an order in. Its name sorts it behind what was put in before.
    pub fn put(&self, order: Command, now: Timestamp) -> Result<PathBuf, StoreError> {
        make_directory(&self.directory)?;
        let name = format!(
            "{:020}-{}-{:04x}.{EXTENSION}",
            now.as_nanosecond().max(0),
            std::process::id(),
            fastrand::u16(..)
        );
        let path = self.directory.join(name);
        let letter = Letter {
            version: VERSION,
            order,
        };
        let write = || -> io::Result<()> {
            let mut file = tempfile::Builder::new()
                .prefix(".new-")
                .tempfile_in(&self.directory)?;
            serde_json::to_writer(&mut file, &letter)?;
            file.write_all(b"\n")?;
            file.as_file().sync_data()?;
            file.persist(&path).map(drop).map_err(|error| error.error)
        };
        write().map_err(at("write", &path))?;
        Ok(path)
    }

    /// What is in it, the oldest first. An inbox that nobody has made is empty.
    pub fn look(&self) -> Vec<Found> {
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return Vec::new();
        };
        let names = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| !name.starts_with('.') && !name.ends_with('~') && !name.ends_with(REJECTED));
        let mut names: Vec<String> = names
            .filter_map(|name| match name.ends_with(EXTENSION) || is_stamped(&name) {
                true => Some(name),
                false => self.stamp(&name),
            })
            .collect();
        names.sort_unstable();
        names
            .into_iter()
            .map(|id| Found {
                order: read(&self.directory.join(&id)),
                id,
            })
            .collect()
    }

    /// Takes away what the journal has. One that cannot be taken away is recognised by its name the next time.
    pub fn remove(&self, id: &str) {
        let _ = fs::remove_file(self.directory.join(id));
    }

    /// Puts aside what is no order, for its author to look at.
    pub fn reject(&self, id: &str) {
        let aside = self.directory.join(format!("{id}{REJECTED}"));
        let _ = fs::rename(self.directory.join(id), aside);
    }

    /// A note that somebody has left by hand gets a name of its own, with the time in front: the next note may be
    /// called the same. One that is still being written stays for the next look.
    fn stamp(&self, name: &str) -> Option<String> {
        let path = self.directory.join(name);
        let note = fs::metadata(&path).ok().filter(|note| note.is_file())?;
        let changed = note.modified().ok()?;
        let rests = changed.elapsed().is_ok_and(|age| age >= SETTLED);
        if note.len() == 0 || !rests {
            return None;
        }
        let nanoseconds = changed.duration_since(std::time::UNIX_EPOCH).ok()?.as_nanos();
        let stamped = format!("{nanoseconds:020}-{name}");
        fs::rename(&path, self.directory.join(&stamped)).ok()?;
        Some(stamped)
    }
}

fn is_stamped(name: &str) -> bool {
    let (digits, rest) = name.split_at_checked(STAMP).unwrap_or((name, ""));
    rest.starts_with('-') && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn read(path: &Path) -> Result<Command, String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > MAX_BYTES {
        return Err(format!("larger than {MAX_BYTES} bytes"));
    }
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    if path.extension().is_none_or(|extension| extension != EXTENSION) {
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        return match text.is_empty() {
            true => Err("it is blank".to_owned()),
            false => Ok(Command::Message { text }),
        };
    }
    let letter: Letter = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    match letter.version {
        VERSION => Ok(letter.order),
        other => Err(format!("version {other} is not known to this version of ralph")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Command {
        Command::Message { text: text.into() }
    }

    #[test]
    fn orders_come_out_in_the_order_in_which_they_went_in() {
        let run = tempfile::tempdir().unwrap();
        let orders = Inbox::of(run.path());
        assert_eq!(orders.look(), []);
        for second in [5, 6, 7] {
            let now = Timestamp::from_second(second).unwrap();
            orders.put(message(&second.to_string()), now).unwrap();
        }
        let found: Vec<_> = orders.look().into_iter().map(|found| found.order).collect();
        assert_eq!(found, [Ok(message("5")), Ok(message("6")), Ok(message("7"))]);
        let first = orders.look().remove(0).id;
        orders.remove(&first);
        assert_eq!(orders.look().len(), 2);
    }

    /// A note by hand, as old as this.
    fn note(inbox: &Path, name: &str, text: &str, age: u64) {
        fs::write(inbox.join(name), text).unwrap();
        let file = fs::File::options().write(true).open(inbox.join(name)).unwrap();
        file.set_modified(std::time::SystemTime::now() - Duration::from_secs(age))
            .unwrap();
    }

    #[test]
    fn a_note_left_by_hand_is_a_message_and_the_next_of_that_name_is_another() {
        let run = tempfile::tempdir().unwrap();
        let orders = Inbox::of(run.path());
        let inbox = run.path().join("inbox");
        fs::create_dir(&inbox).unwrap();
        note(&inbox, "note.md", "use the new API\n", 60);
        note(&inbox, "a.txt", "and mind the gap", 10);
        note(&inbox, "blank", " \n", 5);
        note(&inbox, "draft~", "not yet", 60);
        fs::write(inbox.join("unfinished.md"), "").unwrap();
        let found = orders.look();
        let told: Vec<_> = found.iter().map(|found| found.order.clone()).collect();
        assert_eq!(
            told[..2],
            [Ok(message("use the new API")), Ok(message("and mind the gap"))]
        );
        assert_eq!((told.len(), told[2].is_err()), (3, true));
        let first = found[0].id.clone();
        assert_eq!(orders.look()[0].id, first, "as long as it is there");
        orders.remove(&first);
        note(&inbox, "note.md", "use the new API\n", 30);
        assert_ne!(orders.look()[0].id, first);
    }

    #[test]
    fn what_is_no_order_is_put_aside_and_half_written_ones_are_not_seen() {
        let run = tempfile::tempdir().unwrap();
        let orders = Inbox::of(run.path());
        let inbox = run.path().join("inbox");
        fs::create_dir(&inbox).unwrap();
        fs::write(inbox.join(".new-1.json"), "{").unwrap();
        fs::write(inbox.join("1.json"), r#"{"version":2,"kind":"pause"}"#).unwrap();
        fs::write(inbox.join("2.json"), r#"{"version":1,"kind":"dance"}"#).unwrap();
        fs::write(inbox.join("3.json"), r#"{"version":1,"kind":"pause"}"#).unwrap();
        let found = orders.look();
        assert!(
            found[0]
                .order
                .as_ref()
                .is_err_and(|why| why.contains("version 2"))
        );
        assert!(found[1].order.as_ref().is_err_and(|why| why.contains("dance")));
        assert_eq!(found[2].order, Ok(Command::Pause));
        orders.reject("1.json");
        assert_eq!(orders.look().len(), 2);
        assert!(inbox.join("1.json.rejected").exists());
    }
}
