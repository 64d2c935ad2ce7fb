//! The inbox of a run: one small file per command. Files are written atomically and removed only after the journal
//! contains the command.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{StoreError, io_error, private_files};
use crate::event::{Command, CommandNotSent, CommandRequest, CommandSender};
use crate::ok_or_log;

/// The version of the file format.
const VERSION: u32 = 1;
const EXTENSION: &str = "json";
/// Maximum size of a file in the inbox.
const MAX_BYTES: u64 = 1 << 20;
/// Suffix of rejected files.
const REJECTED_SUFFIX: &str = ".rejected";
/// Number of digits at the start of a file name, by which files are sorted.
const STAMP_DIGITS: usize = 20;
/// A note that has not been modified for this long is complete.
const NOTE_COMPLETE_AFTER: Duration = Duration::from_millis(300);

/// `{"version": 1, "id": "…", "kind": "message", "text": "…"}`
#[derive(Debug, Serialize, Deserialize)]
struct CommandFile {
    version: u32,
    /// Given by the sender. Without it, the file name is the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(flatten)]
    command: Command,
}

/// The inbox of one run.
#[derive(Debug, Clone)]
pub struct Inbox {
    directory: PathBuf,
}

/// A file in the inbox.
#[derive(Debug, PartialEq, Eq)]
pub struct InboxEntry {
    pub file_name: String,
    /// The command, or the reason why the file is invalid.
    pub request: Result<CommandRequest, String>,
}

impl Inbox {
    pub fn new(run: &Path) -> Self {
        Self::at(run.join("inbox"))
    }

    pub fn at(directory: PathBuf) -> Self {
        Self { directory }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Creates the directory, so that a sandbox can show it.
    pub fn create(&self) -> Result<(), StoreError> {
        private_files::create_directory(&self.directory)
    }

    /// Adds a command. File names start with the time, so commands are read in the order in which they were added.
    pub fn put(&self, request: CommandRequest, now: Timestamp) -> Result<PathBuf, StoreError> {
        private_files::create_directory(&self.directory)?;
        let name = format!(
            "{:020}-{}-{:04x}.{EXTENSION}",
            now.as_nanosecond().max(0),
            std::process::id(),
            fastrand::u16(..)
        );
        let path = self.directory.join(name);
        let content = CommandFile {
            version: VERSION,
            id: Some(request.id),
            command: request.command,
        };
        let write = || -> io::Result<()> {
            let mut file = tempfile::Builder::new()
                .prefix(".new-")
                .tempfile_in(&self.directory)?;
            serde_json::to_writer(&mut file, &content)?;
            file.write_all(b"\n")?;
            file.as_file().sync_data()?;
            file.persist(&path).map(drop).map_err(|error| error.error)
        };
        write().map_err(io_error("write", &path))?;
        Ok(path)
    }

    /// A sender that adds commands to this inbox. The name of the source is part of the ids.
    pub fn sender(&self, source: &str) -> CommandSender {
        let inbox = self.clone();
        let (now, process) = (Timestamp::now().as_nanosecond(), std::process::id());
        CommandSender::new(&format!("{source}-{now}-{process}"), move |request| {
            let written = inbox.put(request, Timestamp::now());
            written.map(drop).map_err(CommandNotSent::new)
        })
    }

    /// Reads all entries, oldest first. A missing inbox is empty.
    pub fn read_all(&self) -> Vec<InboxEntry> {
        if private_files::check_directory(&self.directory).is_err() {
            return Vec::new();
        }
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return Vec::new();
        };
        let names = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| {
                !name.starts_with('.') && !name.ends_with('~') && !name.ends_with(REJECTED_SUFFIX)
            });
        let mut names: Vec<String> = names
            .filter_map(|name| match name.ends_with(EXTENSION) || is_stamped(&name) {
                true => Some(name),
                false => self.stamp_note(&name),
            })
            .collect();
        names.sort_unstable();
        names
            .into_iter()
            .map(|file_name| InboxEntry {
                request: read_request(&self.directory, &file_name),
                file_name,
            })
            .collect()
    }

    /// Removes an entry that the journal contains. If that fails, the caller recognizes the entry by its id next time.
    pub fn remove(&self, file_name: &str) {
        let removed = fs::remove_file(self.directory.join(file_name));
        ok_or_log!(removed, "cannot remove a command from the inbox");
    }

    /// Renames an invalid file, so that it is not read again and its author can inspect it.
    pub fn reject(&self, file_name: &str) {
        let rejected = self.directory.join(format!("{file_name}{REJECTED_SUFFIX}"));
        let renamed = fs::rename(self.directory.join(file_name), rejected);
        ok_or_log!(renamed, "cannot rename an invalid command in the inbox");
    }

    /// Prefixes the name of a note, a file that the user created by hand, with its time. This makes the id unique if a
    /// later note has the same name. Returns `None` for a note that is still being written.
    fn stamp_note(&self, name: &str) -> Option<String> {
        let path = self.directory.join(name);
        let metadata = fs::symlink_metadata(&path)
            .ok()
            .filter(|metadata| metadata.is_file())?;
        let modified = metadata.modified().ok()?;
        let is_complete = modified.elapsed().is_ok_and(|age| age >= NOTE_COMPLETE_AFTER);
        if metadata.len() == 0 || !is_complete {
            return None;
        }
        let nanoseconds = modified.duration_since(std::time::UNIX_EPOCH).ok()?.as_nanos();
        let stamped = format!("{nanoseconds:020}-{name}");
        let renamed = fs::rename(&path, self.directory.join(&stamped));
        ok_or_log!(renamed, "cannot rename a note in the inbox")?;
        Some(stamped)
    }
}

fn is_stamped(name: &str) -> bool {
    let (digits, rest) = name.split_at_checked(STAMP_DIGITS).unwrap_or((name, ""));
    rest.starts_with('-') && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn read_request(directory: &Path, file_name: &str) -> Result<CommandRequest, String> {
    let path = &directory.join(file_name);
    let bytes = private_files::read(path, MAX_BYTES).map_err(|error| error.to_string())?;
    if path.extension().is_none_or(|extension| extension != EXTENSION) {
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        return match text.is_empty() {
            true => Err("the file is empty".to_owned()),
            false => Ok(CommandRequest {
                id: file_name.to_owned(),
                command: Command::Message { text },
            }),
        };
    }
    let content: CommandFile = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    match content.version {
        VERSION => Ok(CommandRequest {
            id: content.id.unwrap_or_else(|| file_name.to_owned()),
            command: content.command,
        }),
        other => Err(format!("unsupported version {other} (supported: {VERSION})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Command {
        Command::Message { text: text.into() }
    }

    fn commands(inbox: &Inbox) -> Vec<Result<Command, String>> {
        let entries = inbox.read_all().into_iter();
        entries
            .map(|entry| entry.request.map(|request| request.command))
            .collect()
    }

    #[test]
    fn commands_are_read_in_the_order_in_which_they_were_added() {
        let run = tempfile::tempdir().unwrap();
        let inbox = Inbox::new(run.path());
        assert_eq!(inbox.read_all(), []);
        for second in [5, 6, 7] {
            let now = Timestamp::from_second(second).unwrap();
            let request = CommandRequest {
                id: format!("id {second}"),
                command: message(&second.to_string()),
            };
            inbox.put(request, now).unwrap();
        }
        assert_eq!(
            commands(&inbox),
            [Ok(message("5")), Ok(message("6")), Ok(message("7"))]
        );
        let first = inbox.read_all().remove(0);
        assert_eq!(first.request.unwrap().id, "id 5", "the sender gives the id");
        inbox.remove(&first.file_name);
        assert_eq!(inbox.read_all().len(), 2);
    }

    /// Creates a note that was modified `age` seconds ago.
    fn create_note(directory: &Path, name: &str, text: &str, age: u64) {
        fs::write(directory.join(name), text).unwrap();
        let file = fs::File::options()
            .write(true)
            .open(directory.join(name))
            .unwrap();
        file.set_modified(std::time::SystemTime::now() - Duration::from_secs(age))
            .unwrap();
    }

    #[test]
    fn note_is_a_message_and_a_later_note_with_the_same_name_is_another() {
        let run = tempfile::tempdir().unwrap();
        let inbox = Inbox::new(run.path());
        let directory = run.path().join("inbox");
        fs::create_dir(&directory).unwrap();
        create_note(&directory, "note.md", "use the new API\n", 60);
        create_note(&directory, "a.txt", "and update the tests", 10);
        create_note(&directory, "blank", " \n", 5);
        create_note(&directory, "draft~", "not yet", 60);
        fs::write(directory.join("unfinished.md"), "").unwrap();
        let commands = commands(&inbox);
        assert_eq!(
            commands[..2],
            [
                Ok(message("use the new API")),
                Ok(message("and update the tests"))
            ]
        );
        assert_eq!((commands.len(), commands[2].is_err()), (3, true));
        let first_id = || inbox.read_all().remove(0).request.unwrap().id;
        let first = first_id();
        assert_eq!(first_id(), first, "the id does not change");
        inbox.remove(&first);
        create_note(&directory, "note.md", "use the new API\n", 30);
        assert_ne!(first_id(), first);
    }

    #[test]
    fn invalid_files_are_reported_and_unfinished_files_are_ignored() {
        let run = tempfile::tempdir().unwrap();
        let inbox = Inbox::new(run.path());
        let directory = run.path().join("inbox");
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join(".new-1.json"), "{").unwrap();
        fs::write(directory.join("1.json"), r#"{"version":2,"kind":"pause"}"#).unwrap();
        fs::write(directory.join("2.json"), r#"{"version":1,"kind":"rewind"}"#).unwrap();
        fs::write(directory.join("3.json"), r#"{"version":1,"kind":"pause"}"#).unwrap();
        let found = commands(&inbox);
        assert!(
            found[0]
                .as_ref()
                .is_err_and(|reason| reason.contains("version 2"))
        );
        assert!(found[1].as_ref().is_err_and(|reason| reason.contains("rewind")));
        assert_eq!(found[2], Ok(Command::Pause));
        let third = inbox.read_all().remove(2).request.unwrap();
        assert_eq!(third.id, "3.json", "the file name is the id if the file has none");
        inbox.reject("1.json");
        assert_eq!(inbox.read_all().len(), 2);
        assert!(directory.join("1.json.rejected").exists());
    }
}
