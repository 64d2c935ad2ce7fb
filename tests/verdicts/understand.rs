//! `ralph understand`: only its map may change, and other changed files are named.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::in_a_repository;
use crate::sandbox::Sandbox;

/// Reads every file of the workspace except for those of ralph and git.
fn files(directory: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.ends_with(".agent") || path.ends_with(".git") {
            continue;
        }
        if path.is_dir() {
            files(&path, found);
        } else {
            let bytes = fs::read(&path).expect("a file");
            found.insert(path.display().to_string(), bytes);
        }
    }
}

#[test]
fn understand_changes_only_the_map() {
    let sandbox = Sandbox::scripted(
        "read-stdin\nwrite codebase_map.md A small project.\nsay LOOP_COMPLETE",
        "",
    );
    sandbox.init_git_repository();
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    files(&sandbox.work(), &mut before);
    let git = sandbox.git_state();
    sandbox.ralph(&["understand"]).exits_with(0);
    files(&sandbox.work(), &mut after);
    let map = sandbox.work().join("codebase_map.md").display().to_string();
    assert_eq!(after.remove(&map).as_deref(), Some(&b"A small project."[..]));
    assert!(before == after, "{:?} and {:?}", before.keys(), after.keys());
    assert!(sandbox.git_state() == git);
}

#[test]
fn an_edit_of_another_file_fails_and_the_file_is_named() {
    let script = "read-stdin\nwrite codebase_map.md x\nwrite b.txt improved\nrun mkdir -p deep && echo x > deep/new.rs\nsay LOOP_COMPLETE";
    let sandbox = Sandbox::scripted(script, "event_loop: {max_consecutive_failures: 1}\n");
    let output = in_a_repository(&sandbox, &["understand"]).exits_with(1);
    assert!(output.stdout.contains("b.txt, deep/new.rs"), "{output:?}");
    let ended = &sandbox.records("iteration_ended")[0];
    assert_eq!(
        ended["failure"]["files"],
        serde_json::json!(["b.txt", "deep/new.rs"]),
        "{ended}"
    );
}

#[test]
fn a_committed_edit_fails_too() {
    let script = "run echo x >> a.txt && git -c user.name=t -c user.email=t@t commit --quiet -m x a.txt\nsay LOOP_COMPLETE";
    let sandbox = Sandbox::scripted(script, "");
    sandbox.init_git_repository();
    let output = sandbox.ralph(&["understand", "1"]).exits_with(3);
    assert!(output.stdout.contains("a.txt"), "{output:?}");
}
