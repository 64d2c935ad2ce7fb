//! Files that a user, another Ralph or an earlier run wrote, with anything whatever in them.

use std::fs;
use std::path::{Path, PathBuf};

use ralph::config::{ImportedFile, Partial, Request, Theirs, equivalent_yaml, load};
use ralph::event::{Record, RunEvent};
use ralph::store::{Entry, Journal, RestoredRecord, recall};

const AGENTS: &[&str] = &["claude", "codex", "gemini"];
const TRANSCRIPTS: &[&str] = &["plain", "rtf1", "claude"];

/// `ralph.yml`: it is read, or the mistake names the file.
pub fn config(bytes: &[u8]) {
    let directory = directory();
    let file = directory.join("ralph.yml");
    fs::write(&file, bytes).expect("a file can be written");
    let request = Request {
        cwd: &directory,
        user_dir: None,
        file: Some(&file),
        environment: &[],
        flags: Partial::default(),
        agents: AGENTS,
        transcripts: TRANSCRIPTS,
    };
    match load(&request) {
        Ok(loaded) => {
            loaded.origin("event_loop.max_iterations");
            loaded.executes();
        }
        Err(mistake) => assert!(mistake.to_string().contains("ralph.yml"), "{mistake}"),
    }
}

/// Another Ralph's file: whatever is in it, its counterpart is a `ralph.yml` that ralph can read as YAML.
pub fn foreign(whose: ImportedFile, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let converted = equivalent_yaml(&Theirs {
        whose,
        path: Path::new("/project/theirs"),
        text: &text,
        agents: AGENTS,
        base: Path::new("/project"),
    });
    config(converted.as_bytes());
    let directory = directory();
    let name = match whose {
        ImportedFile::Ralphrc => ".ralphrc",
        ImportedFile::Ralphex => ".ralphex/config",
    };
    let file = directory.join(name);
    fs::create_dir_all(file.parent().expect("it is in a directory")).expect("a directory can be made");
    fs::write(&file, bytes).expect("a file can be written");
    let read = load(&Request {
        cwd: &directory,
        user_dir: None,
        file: None,
        environment: &[],
        flags: Partial::default(),
        agents: AGENTS,
        transcripts: TRANSCRIPTS,
    });
    if let Err(mistake) = read {
        assert!(!mistake.to_string().is_empty());
    }
}

/// A journal: every record in it is found by both readers, whatever stands between.
pub fn journal(bytes: &[u8]) {
    let file = directory().join("events.jsonl");
    fs::write(&file, bytes).expect("a file can be written");
    let all: Vec<Record> = Journal::read(&file).expect("it can be read").collect();
    let entries = Journal::entries(&file).expect("it can be read");
    let among_entries = entries
        .filter(|entry| matches!(entry, Ok(Entry::Record(_))))
        .count();
    assert_eq!(among_entries, all.len());

    let mut recalled = Vec::new();
    recall(&file, |told| match told {
        RestoredRecord::Whole(record) => recalled.push(*record),
        RestoredRecord::Passed { .. } => {}
    })
    .expect("it can be read");
    let mut rest = recalled.iter();
    for record in all.iter().filter(|record| !was_said(record)) {
        assert!(rest.any(|told| same(told, record)), "not recalled: {record:?}");
    }
}

fn was_said(record: &Record) -> bool {
    matches!(
        record.event,
        RunEvent::Transcript { .. } | RunEvent::Stderr { .. }
    )
}

/// A cost may be no number, which equals nothing.
fn same(one: &Record, other: &Record) -> bool {
    format!("{one:?}") == format!("{other:?}")
}

/// A directory of this process alone.
fn directory() -> PathBuf {
    let directory = std::env::temp_dir().join(format!("ralph-fuzz-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory can be made");
    directory
}
