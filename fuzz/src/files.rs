//! Files with arbitrary contents: `ralph.yml`, configuration files of other Ralphs, and journals.

use std::fs;
use std::path::{Path, PathBuf};

use ralph::config::{ImportSource, ImportedFile, LoadRequest, PartialSettings, convert_to_yaml, load};
use ralph::event::{Record, RunEvent};
use ralph::store::{Journal, JournalEntry, RestoredRecord, restore_records};

const AGENTS: &[&str] = &["claude", "codex", "gemini"];
const TRANSCRIPTS: &[&str] = &["plain", "rtf1", "claude"];

/// `ralph.yml` either loads, or the error names the file.
pub fn config(bytes: &[u8]) {
    let directory = directory();
    let file = directory.join("ralph.yml");
    fs::write(&file, bytes).expect("the temporary file is writable");
    let request = LoadRequest {
        cwd: &directory,
        user_dir: None,
        file: Some(&file),
        environment: &[],
        flags: PartialSettings::default(),
        agents: AGENTS,
        transcripts: TRANSCRIPTS,
    };
    match load(&request) {
        Ok(loaded) => {
            loaded.origin("event_loop.max_iterations");
            loaded.file_commands();
        }
        Err(error) => assert!(error.to_string().contains("ralph.yml"), "{error}"),
    }
}

/// The configuration file of another Ralph converts to a `ralph.yml` that is valid YAML.
pub fn imported_config(format: ImportedFile, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let converted = convert_to_yaml(&ImportSource {
        format,
        path: Path::new("/project/theirs"),
        text: &text,
        agents: AGENTS,
        base: Path::new("/project"),
    });
    config(converted.as_bytes());
    let directory = directory();
    let name = match format {
        ImportedFile::Ralphrc => ".ralphrc",
        ImportedFile::Ralphex => ".ralphex/config",
        ImportedFile::Kstrl => "kstrl.toml",
    };
    let file = directory.join(name);
    fs::create_dir_all(file.parent().expect("the path has a parent"))
        .expect("the temporary directory is writable");
    fs::write(&file, bytes).expect("the temporary file is writable");
    let loaded = load(&LoadRequest {
        cwd: &directory,
        user_dir: None,
        file: None,
        environment: &[],
        flags: PartialSettings::default(),
        agents: AGENTS,
        transcripts: TRANSCRIPTS,
    });
    if let Err(error) = loaded {
        assert!(!error.to_string().is_empty());
    }
}

/// Both readers of the journal find every record, whatever is between the records.
pub fn journal(bytes: &[u8]) {
    let file = directory().join("events.jsonl");
    fs::write(&file, bytes).expect("the temporary file is writable");
    let all: Vec<Record> = Journal::read(&file).expect("the journal is readable").collect();
    let entries = Journal::entries(&file).expect("the journal is readable");
    let record_count = entries
        .filter(|entry| matches!(entry, Ok(JournalEntry::Record(_))))
        .count();
    assert_eq!(record_count, all.len());

    let mut restored = Vec::new();
    restore_records(&file, |read| match read {
        RestoredRecord::Parsed(record) => restored.push(*record),
        RestoredRecord::Skipped { .. } => {}
    })
    .expect("the journal is readable");
    let mut rest = restored.iter();
    for record in all.iter().filter(|record| !is_output(record)) {
        assert!(
            rest.any(|other| is_same(other, record)),
            "not restored: {record:?}"
        );
    }
}

/// Records of the agent's output, which the restoring reader may skip.
fn is_output(record: &Record) -> bool {
    matches!(
        record.event,
        RunEvent::Transcript { .. } | RunEvent::Stderr { .. }
    )
}

/// Compares the debug output, because a cost may be NaN, which is not equal to itself.
fn is_same(one: &Record, other: &Record) -> bool {
    format!("{one:?}") == format!("{other:?}")
}

/// A directory that only this process uses.
fn directory() -> PathBuf {
    let directory = std::env::temp_dir().join(format!("ralph-fuzz-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("the temporary directory is writable");
    directory
}
