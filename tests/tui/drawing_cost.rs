//! How much is drawn: frames are dropped, events are not, and what stands still is not drawn again.

use std::time::{Duration, Instant};

use serde_json::json;

use super::terminal::Terminal;
use crate::sandbox::{Sandbox, claude};

/// What the specification allows ralph to hold, the pictures included.
const MEMORY: u64 = 96 << 20;

fn frames(bytes: &[u8]) -> usize {
    bytes.windows(6).filter(|bytes| bytes == b"\x1b[?25l").count()
}

#[test]
fn a_flood_is_shown_in_few_frames_and_nothing_of_it_is_lost() {
    const LINES: u64 = 20_000;
    let text = json!({ "type": "assistant", "message": { "id": "m", "role": "assistant", "model": "f",
        "content": [{ "type": "text", "text": "y".repeat(400) }] }, "session_id": "s" });
    let script = format!(
        "{}repeat {LINES} {text}\n{}wait-for measured\n{}",
        claude::init(),
        claude::message("m2", "that was all of it"),
        claude::result("LOOP_COMPLETE")
    );
    let sandbox = Sandbox::new().with_agent("claude").playing("default", &script);
    let start = Instant::now();
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (120, 40));
    terminal.expect("that was all of it");
    let seconds = start.elapsed().as_secs() + 1;
    let drawn = terminal.bytes();
    let most = usize::try_from(seconds * 31 + 5).expect("a number");
    assert!(frames(&drawn) <= most, "{} frames in {seconds} s", frames(&drawn));
    let printed = LINES * text.to_string().len() as u64;
    assert!((drawn.len() as u64) < printed / 2, "{} bytes drawn", drawn.len());
    let status = std::fs::read_to_string(format!("/proc/{}/status", terminal.pid())).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    assert!(peak.is_some_and(|peak| peak * 1024 < MEMORY), "{peak:?} kB");
    std::fs::write(sandbox.path("play").join("measured"), "").expect("a file");
    terminal.ends("exit status: 0");
    let told = sandbox.records("transcript");
    let texts = told
        .iter()
        .filter(|record| record["event"]["text"] == "y".repeat(400).as_str());
    assert!(texts.count() as u64 >= LINES, "every event is in the journal");
}

#[test]
fn what_stands_still_is_not_drawn_again() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing("default", &claude::session("LOOP_COMPLETE"));
    sandbox.ralph(&["run", "-p", "go"]).exits_with(0);
    let viewer = Terminal::start(&sandbox, &["attach"], (80, 24));
    viewer.expect("q leave");
    viewer.still();
    let before = viewer.bytes().len();
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(viewer.bytes().len(), before, "nothing was drawn in two seconds");
    viewer.keys("q");
    viewer.ends("exit status: 0");
}
