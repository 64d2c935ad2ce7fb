//! The house: no room knows a room above it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What each room may know, besides itself.
fn allowed() -> BTreeMap<&'static str, Vec<&'static str>> {
    let ground = vec!["event"];
    let ours = vec!["event", "panic_hook"];
    let siblings = vec!["event", "panic_hook", "config", "process"];
    let all = vec![
        "panic_hook",
        "event",
        "config",
        "process",
        "transcript",
        "agent",
        "engine",
        "store",
        "ui",
        "run",
        "doctor",
    ];
    BTreeMap::from([
        ("panic_hook", vec![]),
        ("event", vec![]),
        ("config", ground.clone()),
        ("process", ours.clone()),
        ("transcript", ground.clone()),
        ("engine", ground),
        ("store", ours.clone()),
        ("ui", ours),
        ("agent", siblings),
        ("run", all[..9].to_vec()),
        (
            "doctor",
            vec![
                "event",
                "config",
                "process",
                "transcript",
                "agent",
                "store",
                "run",
            ],
        ),
        ("cli", all),
    ])
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The rooms that a piece of source names: `crate::room`, also inside `use crate::{room::…, other}`.
fn named_rooms<'a>(source: &str, rooms: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let code: String = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let flat = code.replace(' ', "");
    rooms
        .filter(|room| {
            let direct =
                flat.contains(&format!("crate::{room}::")) || flat.contains(&format!("crate::{room};"));
            let grouped = flat.split("crate::{").skip(1).any(|group| {
                let group = group.split(';').next().unwrap_or_default();
                group
                    .split([',', '{'])
                    .any(|name| name.trim_end_matches('}') == *room || name.starts_with(&format!("{room}::")))
            });
            direct || grouped
        })
        .collect()
}

#[test]
fn no_room_knows_a_room_above_it() {
    let allowed = allowed();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut trespasses = Vec::new();
    for (room, may_know) in &allowed {
        let mut files = Vec::new();
        sources(&source.join(room), &mut files);
        assert!(!files.is_empty(), "the room {room} is empty");
        for file in files {
            let text = fs::read_to_string(&file).expect("a source file");
            // Tests may hold a rule against the real data of another room.
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let known = named_rooms(code, allowed.keys().copied());
            let wrong = known
                .into_iter()
                .filter(|other| other != room && !may_know.contains(other));
            trespasses.extend(wrong.map(|other| format!("{} uses {other}", file.display())));
        }
    }
    assert!(trespasses.is_empty(), "{trespasses:#?}");
}

#[test]
fn every_room_is_on_the_map() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let map = fs::read_to_string(source.join("lib.rs")).expect("lib.rs");
    let rooms = allowed();
    let declared = map
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let declared: Vec<&str> = declared.collect();
    assert_eq!(declared.len(), rooms.len());
    assert!(
        declared.iter().all(|room| rooms.contains_key(room)),
        "{declared:?}"
    );
}

#[test]
fn a_trespass_would_be_seen() {
    let rooms = || ["run", "ui", "event"].into_iter();
    assert_eq!(named_rooms("use crate::ui::Face;", rooms()), ["ui"]);
    assert_eq!(
        named_rooms("use crate::{event::Record, run};", rooms()),
        ["run", "event"]
    );
    assert_eq!(named_rooms("let x = crate::run::drive();", rooms()), ["run"]);
    assert_eq!(
        named_rooms("// crate::run is above us\nuse crate::event::Tag;", rooms()),
        ["event"]
    );
}
