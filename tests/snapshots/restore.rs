//! `ralph diff` and `ralph restore` as a user calls them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::helpers::contents;
use crate::sandbox::{DEADLINE, Sandbox};

/// Three iterations: the first one writes two files, the second one changes and adds one, the third one removes one.
fn three_iterations() -> Sandbox {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("1", "write a.rs one\\n\nwrite b.txt two\nsay 1\n")
        .with_script("2", "write a.rs changed\\n\nwrite c.txt three\nsay 2\n")
        .with_script("3", "write b.txt\nsay 3\n")
        .with_file(
            "ralph.yml",
            "event_loop: {prompt: x, max_iterations: 3}\ncli: {transcript: plain}\n",
        );
    sandbox.ralph(&["run"]).exits_with(3);
    sandbox
}

fn files(sandbox: &Sandbox) -> BTreeMap<String, String> {
    let found = contents(&sandbox.work());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("a name");
    let mut files: BTreeMap<String, String> = found
        .into_iter()
        .map(|(path, content)| (text(path), content))
        .collect();
    files.retain(|path, content| !path.starts_with(".agent") && !content.starts_with("directory"));
    files
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn diff_shows_an_iteration_a_range_and_the_whole_run() {
    let sandbox = three_iterations();
    let diff = |words: &[&str]| {
        let words: Vec<&str> = ["diff"].iter().chain(words).copied().collect();
        sandbox.ralph(&words).exits_with(0).stdout
    };
    let second = diff(&["2"]);
    assert!(second.contains("--- a/a.rs\n+++ b/a.rs\n"), "{second}");
    assert!(
        second.contains("-one\n") && second.contains("+changed\n"),
        "{second}"
    );
    assert!(!second.contains("b.txt"), "{second}");
    let report = json(&diff(&["1..3", "--json"]));
    let paths: Vec<&str> = report["files"]
        .as_array()
        .expect("files")
        .iter()
        .filter_map(|file| file["path"].as_str())
        .collect();
    assert_eq!(paths, ["a.rs", "b.txt", "c.txt"]);
    let stat = diff(&["--stat"]);
    assert!(
        stat.contains("a.rs") && stat.contains("3 files changed"),
        "{stat}"
    );
    let missing = sandbox.ralph(&["diff", "7"]).exits_with(2);
    assert!(
        missing.stderr.contains("has no snapshot after iteration 7"),
        "{missing:?}"
    );
    let shown = sandbox.ralph(&["show"]).exits_with(0).stdout;
    assert!(
        shown.contains("Changed files\n  1    a.rs +1 −0, b.txt +1 −0\n"),
        "{shown}"
    );
}

#[test]
fn restore_can_be_undone_and_leaves_new_files_alone() {
    let sandbox = three_iterations();
    let end = files(&sandbox);
    fs::write(sandbox.work().join("mine"), "new").expect("a file");
    let output = sandbox.ralph(&["restore", "@1"]).exits_with(0).stdout;
    let restored = files(&sandbox);
    assert_eq!(
        restored["b.txt"],
        end["b.txt"].replace("[]", "[116, 119, 111]"),
        "{restored:?}"
    );
    assert!(
        restored.contains_key("mine") && !restored.contains_key("c.txt"),
        "{restored:?}"
    );
    let undo = output
        .lines()
        .find_map(|line| line.strip_prefix("to undo: ralph restore "));
    sandbox
        .ralph(&["restore", undo.expect("the way back")])
        .exits_with(0);
    let mut undone = files(&sandbox);
    undone.remove("mine");
    assert_eq!(undone, end);
    sandbox.ralph(&["restore", "@2", "a.rs"]).exits_with(0);
    assert_eq!(files(&sandbox)["b.txt"], end["b.txt"], "only the named file");
    let same = sandbox.ralph(&["restore", "@2", "a.rs"]).exits_with(0).stdout;
    assert_eq!(same, "Nothing to restore: the files are the same.\n");
}

#[test]
fn unrecorded_changes_are_overwritten_only_on_request() {
    let sandbox = three_iterations();
    fs::write(sandbox.work().join("a.rs"), "edited by hand").expect("a file");
    let before = files(&sandbox);
    let refused = sandbox.ralph(&["restore", "@1"]).exits_with(2);
    assert!(
        refused
            .stderr
            .contains("1 change has not been recorded and would be lost:\n  a.rs"),
        "{refused:?}"
    );
    assert_eq!(files(&sandbox), before);
    let listed = sandbox
        .ralph(&["restore", "@1", "--dry-run"])
        .exits_with(0)
        .stdout;
    assert_eq!(listed, "write   a.rs\nwrite   b.txt\nremove  c.txt\n");
    assert_eq!(files(&sandbox), before);
    let output = sandbox
        .ralph(&["restore", "@1", "--yes", "--json"])
        .exits_with(0)
        .stdout;
    let undo = json(&output)["undo"].as_str().expect("an id").to_owned();
    sandbox.ralph(&["restore", &undo, "--yes"]).exits_with(0);
    assert_eq!(files(&sandbox), before, "the edit was recorded first");
}

#[test]
fn names_that_do_not_exist_are_explained() {
    let sandbox = three_iterations();
    for (words, message) in [
        (&["restore", "@9"][..], "has no snapshot after iteration 9"),
        (&["restore", "abcd1234"], "is neither a snapshot nor RUN@N"),
        (&["restore", "@1", "../outside"], "is outside of the project"),
        (
            &["restore", "--continue"],
            "no restore of this project was interrupted",
        ),
    ] {
        let output = sandbox.ralph(words).exits_with(2);
        assert!(output.stderr.contains(message), "{output:?}");
    }
}

/// Waits until a restore writes files.
fn wait_for_writing(child: &mut Child, pending: &Path) {
    let deadline = Instant::now() + DEADLINE;
    while !pending.exists() && child.try_wait().expect("a state").is_none() {
        assert!(Instant::now() < deadline, "the restore does not start");
        std::thread::yield_now();
    }
}

/// Kills `ralph restore` at different moments. Afterwards nothing has changed, everything is restored, or `--continue`
/// completes it.
fn kill_restores(kills: u64) {
    const FILES: usize = 300;
    let script = |text: &str| {
        let lines = (0..FILES).map(|number| format!("write file-{number} {text}\n"));
        lines.collect::<String>() + "say x\n"
    };
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("1", &script("one"))
        .with_script("2", &script("two"))
        .with_file(
            "ralph.yml",
            "event_loop: {prompt: x, max_iterations: 2}\ncli: {transcript: plain}\n",
        );
    sandbox.ralph(&["run"]).exits_with(3);
    let second = files(&sandbox);
    sandbox.ralph(&["restore", "@1"]).exits_with(0);
    let first = files(&sandbox);
    assert_ne!(first, second);
    let pending = sandbox.project().directory().join("snapshots.git/restore.json");
    let mut continued = 0;
    for kill in 0..kills {
        let (what, before, target) = match kill % 2 {
            0 => ("@2", &first, &second),
            _ => ("@1", &second, &first),
        };
        let mut command = sandbox.command(&["restore", what]);
        let mut child = command.stdout(Stdio::null()).spawn().expect("ralph");
        if kill % 4 > 1 {
            wait_for_writing(&mut child, &pending);
        }
        std::thread::sleep(Duration::from_millis(kill * 13 % 150));
        // It may have ended.
        let _ = child.kill();
        child.wait().expect("an end");
        let resumed = sandbox.ralph(&["restore", "--continue"]);
        let after = files(&sandbox);
        match resumed.code() {
            Some(0) => {
                continued += 1;
                assert_eq!(&after, target);
            }
            _ => {
                assert!(
                    resumed
                        .stderr
                        .contains("no restore of this project was interrupted"),
                    "{resumed:?}"
                );
                assert!(
                    &after == before || &after == target,
                    "a mixture after kill {kill}"
                );
            }
        }
        sandbox.ralph(&["restore", what]).exits_with(0);
        assert_eq!(&files(&sandbox), target);
    }
    assert!(kills < 50 || continued > 0, "no kill interrupted a restore");
}

#[test]
fn a_killed_restore_is_completed() {
    kill_restores(6);
}

#[test]
#[ignore = "takes a minute: just slow"]
fn a_restore_killed_fifty_times_is_completed() {
    kill_restores(50);
}

#[test]
fn a_run_does_not_start_from_a_half_restored_project() {
    let sandbox = three_iterations();
    let store = sandbox.project().directory().join("snapshots.git");
    let ids = sandbox.journal();
    let id = ids
        .iter()
        .rev()
        .find_map(|record| record["id"].as_str().filter(|id| id.len() == 64));
    let id = id.expect("a snapshot");
    let pending =
        format!("{{\"version\":1,\"target\":\"{id}\",\"before\":\"{id}\",\"recorded\":[],\"paths\":[]}}");
    fs::write(store.join("restore.json"), pending).expect("a file");
    let refused = sandbox.ralph(&["run"]).exits_with(2);
    assert!(
        refused
            .stderr
            .contains("hint: to complete it: ralph restore --continue"),
        "{refused:?}"
    );
    sandbox.ralph(&["restore", "--continue"]).exits_with(0);
    sandbox.ralph(&["run"]).exits_with(3);
}

#[test]
fn files_are_restored_when_an_iteration_breaks_a_gate_that_passed_before() {
    let config = "event_loop: {prompt: x, max_iterations: 4, max_no_progress: 0, on_rejected: restore}\ngates:\n  \
                  - {name: first, run: grep -q good a.txt}\n  - {name: second, run: grep -q good b.txt}\n";
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", config);
    sandbox.script("1", "write a.txt good\nwrite b.txt bad\nsay LOOP_COMPLETE");
    sandbox.script(
        "2",
        "write a.txt bad\nwrite b.txt good\nwrite c.txt new\nsay LOOP_COMPLETE",
    );
    sandbox.script("3", "read-stdin\nwrite b.txt good\nsay LOOP_COMPLETE");
    sandbox.ralph(&["run", "-q"]).exits_with(0);
    let files = files(&sandbox);
    assert!(!files.contains_key("c.txt"), "{files:?}");
    assert!(
        sandbox.prompt(3).contains("All files were restored"),
        "{}",
        sandbox.prompt(3)
    );
    let moments: Vec<(u64, String)> = sandbox
        .records("snapshot")
        .iter()
        .map(|record| {
            let moment = record["moment"].as_str().unwrap_or_default().to_owned();
            (record["iteration"].as_u64().unwrap_or_default(), moment)
        })
        .collect();
    let expected = [(0, "start"), (1, "end"), (2, "end"), (2, "restored"), (3, "end")];
    assert_eq!(
        moments,
        expected.map(|(iteration, moment)| (iteration, moment.to_owned()))
    );
    let diff = sandbox.ralph(&["diff", "3", "--json"]).exits_with(0).json();
    assert_eq!(
        diff["files"].as_array().map(Vec::len),
        Some(1),
        "only b.txt: {diff}"
    );
    let lost = sandbox.ralph(&["diff", "2", "--stat"]).exits_with(0).stdout;
    assert!(lost.contains("c.txt"), "what was undone can be seen: {lost}");
}
