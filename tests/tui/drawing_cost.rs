//! Drawing costs: frames may be dropped, events may not, and an unchanged screen is not redrawn.

use std::time::{Duration, Instant};

use serde_json::json;

use super::terminal::Terminal;
use crate::sandbox::{Sandbox, claude};

/// Memory limit of the specification, including the TUI.
const MAX_MEMORY: u64 = 96 << 20;

fn frames(bytes: &[u8]) -> usize {
    bytes.windows(6).filter(|bytes| bytes == b"\x1b[?25l").count()
}

#[test]
fn flood_of_output_is_drawn_in_few_frames_without_losing_events() {
    const LINES: u64 = 20_000;
    let text = json!({ "type": "assistant", "message": { "id": "m", "role": "assistant", "model": "f",
        "content": [{ "type": "text", "text": "y".repeat(400) }] }, "session_id": "s" });
    let script = format!(
        "{}repeat {LINES} {text}\n{}wait-for measured\n{}",
        claude::init(),
        claude::message("m2", "end of the flood"),
        claude::result("LOOP_COMPLETE")
    );
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &script);
    let start = Instant::now();
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (120, 40));
    terminal.expect("end of the flood");
    let seconds = start.elapsed().as_secs() + 1;
    let drawn = terminal.bytes();
    let limit = usize::try_from(seconds * 31 + 5).expect("a number");
    assert!(
        frames(&drawn) <= limit,
        "{} frames in {seconds} s",
        frames(&drawn)
    );
    let printed = LINES * text.to_string().len() as u64;
    assert!((drawn.len() as u64) < printed / 2, "{} bytes drawn", drawn.len());
    let status = std::fs::read_to_string(format!("/proc/{}/status", terminal.pid())).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    assert!(peak.is_some_and(|peak| peak * 1024 < MAX_MEMORY), "{peak:?} kB");
    std::fs::write(sandbox.path("agent").join("measured"), "").expect("a file");
    terminal.ends("exit status: 0");
    let records = sandbox.records("transcript");
    let texts = records
        .iter()
        .filter(|record| record["event"]["text"] == "y".repeat(400).as_str());
    assert!(texts.count() as u64 >= LINES, "every event is in the journal");
}

#[test]
fn unchanged_screen_is_not_redrawn() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("LOOP_COMPLETE"));
    sandbox.ralph(&["run", "-p", "go"]).exits_with(0);
    let viewer = Terminal::start(&sandbox, &["attach"], (80, 24));
    viewer.expect("q quit");
    // Longer than the interval at which a running clock would be redrawn.
    viewer.wait_until_silent(Duration::from_millis(1500));
    viewer.keys("q");
    viewer.ends("exit status: 0");
}
