//! Whole small sessions, told by records with a fixed clock, as they look on the page.
#![expect(
    clippy::too_many_lines,
    reason = "a story and the page that it gives are read together"
)]

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde_json::json;
use unicode_width::UnicodeWidthStr;

use super::{Plain, PlainOptions, Verbosity};
use crate::event::*;
use crate::ui::Face as _;

const PLAIN: PlainOptions = PlainOptions {
    colour: false,
    live: false,
    width: 80,
    verbosity: Verbosity::Normal,
};
const LIVE: PlainOptions = PlainOptions { live: true, ..PLAIN };

/// Tells a face what happens, one thing after the other.
struct Story<'a> {
    face: Plain<&'a mut Vec<u8>>,
    seq: u64,
    at: Timestamp,
}

impl<'a> Story<'a> {
    fn new(options: PlainOptions, out: &'a mut Vec<u8>) -> Self {
        let mut story = Self {
            face: Plain::new(out, options).in_zone(TimeZone::UTC),
            seq: 0,
            at: start(),
        };
        story.tell(RunEvent::RunStarted(header()));
        story
    }

    fn tell(&mut self, event: RunEvent) {
        self.seq += 1;
        let record = Record {
            seq: self.seq,
            at: self.at,
            event,
        };
        self.face.accept(&record).expect("memory can be written");
        self.face.flush().expect("memory can be flushed");
    }

    fn wait(&mut self, millis: i64) {
        self.at += SignedDuration::from_millis(millis);
    }

    fn tick(&mut self) {
        self.face.tick(self.at).expect("memory can be written");
    }

    fn iteration(&mut self, iteration: u64, attempt: u64, hat: Option<&str>) {
        self.tell(RunEvent::IterationStarted {
            iteration,
            attempt,
            hat: hat.map(str::to_owned),
            prompt_bytes: 1200,
        });
        self.tell(RunEvent::AgentStarted {
            iteration,
            pid: 4242,
            command: vec!["claude".into(), "-p".into(), "Fix it".into()],
        });
    }

    fn said(&mut self, event: TranscriptEvent) {
        self.tell(RunEvent::Transcript { iteration: 1, event });
    }

    fn meta(&mut self, meta: Meta) {
        self.said(TranscriptEvent::meta(meta));
    }

    fn delta(&mut self, tag: Tag, text: &str) {
        self.said(TranscriptEvent::Text {
            tag,
            text: text.into(),
            flow: Flow::Delta,
            parent: None,
        });
    }

    fn session(&mut self) {
        self.meta(Meta::Session {
            session_id: "3f2a91bc-77aa-4c1e".into(),
            model: Some("claude-opus-4".into()),
            version: None,
        });
    }

    fn start_tool(&mut self, id: &str, name: &str, input: serde_json::Value) {
        self.start_tool_in(None, id, name, input);
    }

    fn start_tool_in(&mut self, parent: Option<&str>, id: &str, name: &str, input: serde_json::Value) {
        self.said(TranscriptEvent::ToolStart {
            tool: ToolStart {
                id: id.into(),
                name: name.into(),
                input: Some(Json::from(input)),
                parent: parent.map(str::to_owned),
            },
        });
    }

    fn tool_output(&mut self, id: &str, text: &str) {
        self.said(TranscriptEvent::ToolOutput {
            tool: ToolRef { id: id.into() },
            text: text.into(),
        });
    }

    fn end_tool(&mut self, id: &str, status: ToolStatus, duration_ms: Option<u64>) {
        self.said(TranscriptEvent::ToolEnd {
            tool: ToolEnd {
                id: id.into(),
                status,
                duration_ms,
            },
        });
    }

    fn end_agent(&mut self, end: ProcessEnd, swept: u64) {
        self.tell(RunEvent::AgentEnded {
            iteration: 1,
            end,
            duration_ms: 61_000,
            swept,
        });
    }

    fn gate(&mut self, result: GateResult, output: &str) {
        self.tell(RunEvent::GateStarted {
            iteration: 1,
            name: "tests".into(),
            command: "cargo test --quiet".into(),
        });
        self.wait(4200);
        self.tell(RunEvent::GateEnded {
            iteration: 1,
            name: "tests".into(),
            result,
            duration_ms: 4200,
            output: output.into(),
        });
    }

    fn end_iteration(&mut self, outcome: IterationOutcome, usage: Usage) {
        self.tell(RunEvent::IterationEnded {
            iteration: 1,
            attempt: 1,
            outcome,
            duration_ms: 65_200,
            usage,
        });
    }

    fn end(&mut self, outcome: RunOutcome, usage: Usage) {
        self.tell(RunEvent::RunEnded {
            outcome,
            iterations: 1,
            duration_ms: 70_000,
            usage,
        });
    }
}

fn start() -> Timestamp {
    Timestamp::from_second(1_772_352_000).expect("a time of our days")
}

fn header() -> RunHeader {
    RunHeader {
        version: FORMAT_VERSION,
        run_id: "20260301-080000-3f2a".into(),
        ralph: "0.1.0".into(),
        agent: "claude".into(),
        agent_version: Some("2.1.0".into()),
        transcript: "claude".into(),
        workspace: "/home/me/parser".into(),
        max_iterations: 100,
        max_runtime_seconds: Some(14_400),
        max_tokens: None,
        max_cost_usd: Some(20.0),
    }
}

fn usage() -> Usage {
    Usage {
        prompt_tokens: Some(45_000),
        completion_tokens: Some(1_200),
        cached_tokens: Some(38_000),
        cost_usd: Some(0.1234),
        cost_source: Some(CostSource::Reported),
        ..Usage::default()
    }
}

fn told(options: PlainOptions, tell: impl FnOnce(&mut Story<'_>)) -> String {
    let mut out = Vec::new();
    tell(&mut Story::new(options, &mut out));
    String::from_utf8(out).expect("a face writes text")
}

/// Escape codes made visible.
fn shown(text: &str) -> String {
    text.replace('\x1b', "␛").replace('\r', "␍")
}

fn complete() -> RunOutcome {
    RunOutcome::Complete {
        marker: "LOOP_COMPLETE".into(),
    }
}

fn exit(code: i32) -> ProcessEnd {
    ProcessEnd::Exited { code }
}

fn solo(story: &mut Story<'_>) {
    story.iteration(1, 1, None);
    story.session();
    story.said(TranscriptEvent::message(
        Tag::Think,
        "The parser drops the last line when it has no newline. I should look at the reader first. \
         Then I will write a test that fails, and only then change the code, because the bug may well \
         be somewhere else entirely and a test tells me so at once. Let me begin.",
    ));
    story.said(TranscriptEvent::message(
        Tag::Ai,
        "I'll look at the code first.\n\nThree things matter:\n- the reader, which cuts the stream into lines and keeps the rest\n- the parser",
    ));
    story.start_tool("t1", "Read", json!({"file_path": "/home/me/parser/src/lib.rs"}));
    story.wait(12);
    story.tool_output("t1", "one\ntwo\nthree");
    story.end_tool("t1", ToolStatus::Ok, None);
    story.start_tool(
        "t2",
        "Bash",
        json!({"command": "cargo test --workspace --all-features -- --test-threads=1 --nocapture 2>&1 | tail -50"}),
    );
    story.wait(48_000);
    story.tool_output("t2", "running 3 tests\nfailed\n");
    story.end_tool("t2", ToolStatus::Fail, Some(48_123));
    story.said(TranscriptEvent::message(Tag::Ai, "Fixed.\n\nLOOP_COMPLETE\n"));
    story.meta(Meta::Finished {
        success: true,
        reason: Some("end_turn".into()),
        text: Some("Fixed.\n\nLOOP_COMPLETE".into()),
        turns: Some(3),
        duration_ms: None,
    });
    story.end_agent(exit(0), 0);
    story.end_iteration(
        IterationOutcome::Completed {
            marker: "LOOP_COMPLETE".into(),
        },
        usage(),
    );
    story.end(complete(), usage());
}

#[test]
fn a_solo_run_with_tools() {
    insta::assert_snapshot!(told(PLAIN, solo), @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 ─────────────────────────────────────────────────── 08:00 ──
        SYS │ session 3f2a91bc · claude-opus-4
      THINK │ The parser drops the last line when it has no newline. I should look
            │ at the reader first. Then I will write a test that fails, and only
            │ then change the code, because the bug may well be somewhere else
            │ …
         AI │ I'll look at the code first.
            │
            │ Three things matter:
            │ - the reader, which cuts the stream into lines and keeps the rest
            │ - the parser
       TOOL │ ▸ Read src/lib.rs
            │ ✓ 12ms · 3 lines
       TOOL │ ▸ Bash cargo test --workspace --all-features -- --test-threads=1 --n…
            │ ✗ 48.1s · 2 lines
         AI │ Fixed.
            │
            │ LOOP_COMPLETE
            │
       PLAN │ The parser drops the last line when it has no newline. I should look
            │ at the reader first.
    ACTIONS │ ✓ Read src/lib.rs · 12ms · 3 lines
            │ ✗ Bash cargo test --workspace --all-features -- -… · 48.1s · 2 lines
     REPORT │ ✓ complete: the agent gave LOOP_COMPLETE
            │ 1m05s · 46.2k tokens (38.0k cached) · $0.12 reported
            │ so far: 48.0s · 46.2k tokens (38.0k cached) · $0.12 of $20.00

    ✓ Complete: the agent gave LOOP_COMPLETE.
      iterations  1 of 100
      time        1m10s
      tokens      46,200 (45,000 in, 38,000 of them cached; 1,200 out)
      cost        $0.12 reported, of $20.00
      gates       none ran
      journal     /home/me/parser/.agent/runs/20260301-080000-3f2a
    ");
}

#[test]
fn a_terminal_gets_wrapped_lines() {
    insta::assert_snapshot!(told(LIVE, solo), @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 ─────────────────────────────────────────────────── 08:00 ──
        SYS │ session 3f2a91bc · claude-opus-4
      THINK │ The parser drops the last line when it has no newline. I should look
            │ at the reader first. Then I will write a test that fails, and only
            │ then change the code, because the bug may well be somewhere else
            │ …
         AI │ I'll look at the code first.
            │
            │ Three things matter:
            │ - the reader, which cuts the stream into lines and keeps the rest
            │ - the parser
       TOOL │ ▸ Read src/lib.rs
            │ ✓ 12ms · 3 lines
       TOOL │ ▸ Bash cargo test --workspace --all-features -- --test-threads=1 --n…
            │ ✗ 48.1s · 2 lines
         AI │ Fixed.
            │
            │ LOOP_COMPLETE
            │
       PLAN │ The parser drops the last line when it has no newline. I should look
            │ at the reader first.
    ACTIONS │ ✓ Read src/lib.rs · 12ms · 3 lines
            │ ✗ Bash cargo test --workspace --all-features -- -… · 48.1s · 2 lines
     REPORT │ ✓ complete: the agent gave LOOP_COMPLETE
            │ 1m05s · 46.2k tokens (38.0k cached) · $0.12 reported
            │ so far: 48.0s · 46.2k tokens (38.0k cached) · $0.12 of $20.00

    ✓ Complete: the agent gave LOOP_COMPLETE.
      iterations  1 of 100
      time        1m10s
      tokens      46,200 (45,000 in, 38,000 of them cached; 1,200 out)
      cost        $0.12 reported, of $20.00
      gates       none ran
      journal     /home/me/parser/.agent/runs/20260301-080000-3f2a
    ");
}

#[test]
fn forty_columns_are_enough() {
    insta::assert_snapshot!(told(PlainOptions { width: 40, ..LIVE }, solo), @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 ─────────── 08:00 ──
        SYS │ session 3f2a91bc · claude-op…
      THINK │ The parser drops the last
            │ line when it has no newline.
            │ I should look at the reader
            │ …
         AI │ I'll look at the code first.
            │
            │ Three things matter:
            │ - the reader, which cuts the
            │   stream into lines and keeps
            │   the rest
            │ - the parser
       TOOL │ ▸ Read src/lib.rs
            │ ✓ 12ms · 3 lines
       TOOL │ ▸ Bash cargo test --workspac…
            │ ✗ 48.1s · 2 lines
         AI │ Fixed.
            │
            │ LOOP_COMPLETE
            │
       PLAN │ The parser drops the last
            │ line when it has no newline.
            │ …
    ACTIONS │ ✓ Read src… · 12ms · 3 lines
            │ ✗ Bash ca… · 48.1s · 2 lines
     REPORT │ ✓ complete: the agent gave
            │ LOOP_COMPLETE
            │ 1m05s · 46.2k tokens (38.0k
            │ cached) · $0.12 reported
            │ so far: 48.0s · 46.2k tokens
            │ (38.0k cached) · $0.12 of
            │ $20.00

    ✓ Complete: the agent gave LOOP_COMPLETE.
      iterations  1 of 100
      time        1m10s
      tokens      46,200 (45,000 in, 38,000 of them cached; 1,200 out)
      cost        $0.12 reported, of $20.00
      gates       none ran
      journal     /home/me/parser/.agent/runs/20260301-080000-3f2a
    ");
}

#[test]
fn verbose_shows_input_output_and_thoughts_in_full() {
    let options = PlainOptions {
        verbosity: Verbosity::Verbose,
        ..LIVE
    };
    insta::assert_snapshot!(told(options, solo), @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 ─────────────────────────────────────────────────── 08:00 ──
        SYS │ started as process 4242: claude -p Fix it
        SYS │ session 3f2a91bc · claude-opus-4
      THINK │ The parser drops the last line when it has no newline. I should look
            │ at the reader first. Then I will write a test that fails, and only
            │ then change the code, because the bug may well be somewhere else
            │ entirely and a test tells me so at once. Let me begin.
         AI │ I'll look at the code first.
            │
            │ Three things matter:
            │ - the reader, which cuts the stream into lines and keeps the rest
            │ - the parser
       TOOL │ ▸ Read src/lib.rs
            │   file_path: /home/me/parser/src/lib.rs
            │ ┊ one
            │ ┊ two
            │ ┊ three
            │ ✓ 12ms · 3 lines
       TOOL │ ▸ Bash cargo test --workspace --all-features -- --test-threads=1 --n…
            │   command: cargo test --workspace --all-features -- --test-threads=1
            │   --nocapture 2>&1 | tail -50
            │ ┊ running 3 tests
            │ ┊ failed
            │ ✗ 48.1s · 2 lines
         AI │ Fixed.
            │
            │ LOOP_COMPLETE
        SYS │ the agent ended with exit code 0 after 1m01s
            │
       PLAN │ The parser drops the last line when it has no newline. I should look
            │ at the reader first.
    ACTIONS │ ✓ Read src/lib.rs · 12ms · 3 lines
            │ ✗ Bash cargo test --workspace --all-features -- -… · 48.1s · 2 lines
     REPORT │ ✓ complete: the agent gave LOOP_COMPLETE
            │ 1m05s · 46.2k tokens (38.0k cached) · $0.12 reported
            │ so far: 48.0s · 46.2k tokens (38.0k cached) · $0.12 of $20.00

    ✓ Complete: the agent gave LOOP_COMPLETE.
      iterations  1 of 100
      time        1m10s
      tokens      46,200 (45,000 in, 38,000 of them cached; 1,200 out)
      cost        $0.12 reported, of $20.00
      gates       none ran
      journal     /home/me/parser/.agent/runs/20260301-080000-3f2a
    ");
}

#[test]
fn quiet_leaves_only_the_final_report() {
    let options = PlainOptions {
        verbosity: Verbosity::Quiet,
        ..LIVE
    };
    insta::assert_snapshot!(told(options, solo), @"
    ✓ Complete: the agent gave LOOP_COMPLETE.
      iterations  1 of 100
      time        1m10s
      tokens      46,200 (45,000 in, 38,000 of them cached; 1,200 out)
      cost        $0.12 reported, of $20.00
      gates       none ran
      journal     /home/me/parser/.agent/runs/20260301-080000-3f2a
    ");
}

#[test]
fn colours_mark_what_words_already_say() {
    let text = told(PlainOptions { colour: true, ..LIVE }, solo);
    insta::assert_snapshot!(shown(&text), @"
    ␛[1mralph 0.1.0 · run 20260301-080000-3f2a␛[0m
    ␛[2m  agent       ␛[0mclaude 2.1.0
    ␛[2m  limits      ␛[0m100 iterations · 4h00m · $20.00
    ␛[2m  workspace   ␛[0m/home/me/parser
    ␛[2m  started     ␛[0m2026-03-01 08:00

    ␛[2m── ␛[0m␛[1miteration 1/100␛[0m␛[2m ─────────────────────────────────────────────────── 08:00 ──␛[0m
        ␛[2mSYS␛[0m␛[2m │␛[0m session 3f2a91bc · claude-opus-4
      ␛[2mTHINK␛[0m␛[2m │␛[0m ␛[2mThe parser drops the last line when it has no newline. I should look␛[0m
           ␛[2m │␛[0m ␛[2mat the reader first. Then I will write a test that fails, and only␛[0m
           ␛[2m │␛[0m ␛[2mthen change the code, because the bug may well be somewhere else␛[0m
           ␛[2m │␛[0m …
         ␛[1mAI␛[0m␛[2m │␛[0m I'll look at the code first.
           ␛[2m │␛[0m
           ␛[2m │␛[0m Three things matter:
           ␛[2m │␛[0m - the reader, which cuts the stream into lines and keeps the rest
           ␛[2m │␛[0m - the parser
       ␛[36mTOOL␛[0m␛[2m │␛[0m ▸ ␛[36mRead␛[0m src/lib.rs
           ␛[2m │␛[0m ␛[32m✓␛[0m ␛[2m12ms · 3 lines␛[0m
       ␛[36mTOOL␛[0m␛[2m │␛[0m ▸ ␛[36mBash␛[0m cargo test --workspace --all-features -- --test-threads=1 --n…
           ␛[2m │␛[0m ␛[1m␛[31m✗␛[0m ␛[2m48.1s · 2 lines␛[0m
         ␛[1mAI␛[0m␛[2m │␛[0m Fixed.
           ␛[2m │␛[0m
           ␛[2m │␛[0m LOOP_COMPLETE
           ␛[2m │␛[0m
       ␛[1mPLAN␛[0m␛[2m │␛[0m The parser drops the last line when it has no newline. I should look
           ␛[2m │␛[0m at the reader first.
    ␛[1mACTIONS␛[0m␛[2m │␛[0m ␛[32m✓␛[0m ␛[36mRead␛[0m src/lib.rs ␛[2m· 12ms · 3 lines␛[0m
           ␛[2m │␛[0m ␛[1m␛[31m✗␛[0m ␛[36mBash␛[0m cargo test --workspace --all-features -- -… ␛[2m· 48.1s · 2 lines␛[0m
     ␛[1mREPORT␛[0m␛[2m │␛[0m ␛[32m✓␛[0m complete: the agent gave LOOP_COMPLETE
           ␛[2m │␛[0m 1m05s · 46.2k tokens (38.0k cached) · $0.12 reported
           ␛[2m │␛[0m ␛[2mso far: 48.0s · 46.2k tokens (38.0k cached) · $0.12 of $20.00␛[0m

    ␛[32m✓␛[0m␛[1m Complete: the agent gave LOOP_COMPLETE.␛[0m
    ␛[2m  iterations  ␛[0m1 of 100
    ␛[2m  time        ␛[0m1m10s
    ␛[2m  tokens      ␛[0m46,200 (45,000 in, 38,000 of them cached; 1,200 out)
    ␛[2m  cost        ␛[0m$0.12 reported, of $20.00
    ␛[2m  gates       ␛[0mnone ran
    ␛[2m  journal     ␛[0m/home/me/parser/.agent/runs/20260301-080000-3f2a
    ");
    let bare = anstream::adapter::strip_str(&text).to_string();
    assert_eq!(bare, told(LIVE, solo));
}

#[test]
fn a_gate_refuses_and_then_passes() {
    let text = told(PLAIN, |story| {
        story.iteration(1, 1, Some("builder"));
        story.said(TranscriptEvent::message(Tag::Ai, "Done.\n\nLOOP_COMPLETE"));
        story.end_agent(exit(0), 2);
        let output: String = (1..=20).map(|line| format!("line {line}\n")).collect();
        story.gate(GateResult::Failed { end: exit(101) }, &output);
        story.end_iteration(
            IterationOutcome::Continued {
                rejected_by: Some("tests".into()),
            },
            usage(),
        );
        story.iteration(2, 1, Some("builder"));
        story.tell(RunEvent::Topic {
            iteration: 2,
            event: TopicEvent {
                topic: "build.done".into(),
                target: Some("reviewer".into()),
                payload: "the last test\npasses now".into(),
            },
        });
        story.tell(RunEvent::TopicRerouted {
            iteration: 2,
            topic: "odd\x1b[2J".into(),
            hat: Some("planner".into()),
            reason: "no hat claims it".into(),
        });
        story.said(TranscriptEvent::message(
            Tag::Ai,
            "Now it is really done.\n\nLOOP_COMPLETE",
        ));
        story.gate(GateResult::Passed, "ok\n");
        story.end_iteration(
            IterationOutcome::Completed {
                marker: "LOOP_COMPLETE".into(),
            },
            usage(),
        );
        let mut sum = usage();
        sum.add(&usage());
        story.end(complete(), sum);
    });
    insta::assert_snapshot!(text, @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 · builder ───────────────────────────────────────── 08:00 ──
         AI │ Done.
            │
            │ LOOP_COMPLETE
        SYS │ stopped 2 processes that the agent had left behind
       GATE │ ▸ tests cargo test --quiet
       GATE │ ✗ tests · 4.2s · exit code 101
            │   … 8 lines above
            │   line 9
            │   line 10
            │   line 11
            │   line 12
            │   line 13
            │   line 14
            │   line 15
            │   line 16
            │   line 17
            │   line 18
            │   line 19
            │   line 20
            │
     REPORT │ ✗ rejected: the agent says that it is done, but the gate tests failed
            │ 1m05s · 46.2k tokens (38.0k cached) · $0.12 reported
            │ so far: 4.2s · 46.2k tokens (38.0k cached) · $0.12 of $20.00

    ── iteration 2/100 · builder ───────────────────────────────────────── 08:00 ──
      TOPIC │ build.done → reviewer the last test passes now
      TOPIC │ odd → planner · no hat claims it
         AI │ Now it is really done.
            │
            │ LOOP_COMPLETE
       GATE │ ▸ tests cargo test --quiet
       GATE │ ✓ tests · 4.2s
            │
     REPORT │ ✓ complete: the agent gave LOOP_COMPLETE
            │ 1m05s · 46.2k tokens (38.0k cached) · $0.12 reported
            │ so far: 8.4s · 92.4k tokens (76.0k cached) · $0.25 of $20.00

    ✓ Complete: the agent gave LOOP_COMPLETE.
      iterations  1 of 100
      time        1m10s
      tokens      92,400 (90,000 in, 76,000 of them cached; 2,400 out)
      cost        $0.25 reported, of $20.00
      gates       tests passed ×1, failed ×1
      journal     /home/me/parser/.agent/runs/20260301-080000-3f2a
    ");
}

#[test]
fn a_night_of_trouble() {
    let text = told(PLAIN, |story| {
        story.iteration(3, 1, None);
        story.tell(RunEvent::Stderr {
            iteration: 3,
            text: "warning: config is old\n".into(),
        });
        story.tell(RunEvent::Stderr {
            iteration: 3,
            text: "Error: connection reset".into(),
        });
        story.end_agent(exit(1), 1);
        story.end_iteration(
            IterationOutcome::Failed {
                failure: Failure::Exit {
                    end: exit(1),
                    message: "connection reset".into(),
                },
            },
            Usage::default(),
        );
        story.tell(RunEvent::Waiting {
            why: Pause::Backoff,
            wait_ms: 8000,
        });
        story.wait(8000);
        story.tell(RunEvent::WaitEnded);
        story.iteration(3, 2, None);
        story.end_iteration(
            IterationOutcome::TimedOut {
                limit: TimeLimit::Idle,
                after_seconds: 600,
            },
            Usage::default(),
        );
        story.iteration(3, 3, None);
        story.said(TranscriptEvent::line(Tag::Ai, "a line"));
        story.said(TranscriptEvent::line(Tag::Ai, ""));
        story.said(TranscriptEvent::line(Tag::Ai, "  and another"));
        story.tell(RunEvent::MarkerIgnored {
            iteration: 3,
            marker: "LOOP_COMPLETE".into(),
            reason: "it stands inside a code fence".into(),
        });
        story.end_iteration(
            IterationOutcome::RateLimited {
                resets_at: Some(start() + SignedDuration::from_mins(20)),
                message: "usage limit reached".into(),
            },
            Usage::default(),
        );
        story.tell(RunEvent::Waiting {
            why: Pause::RateLimit,
            wait_ms: 1_192_000,
        });
        story.wait(60_000);
        story.tell(RunEvent::WaitEnded);
        story.tell(RunEvent::Waiting {
            why: Pause::Cooldown,
            wait_ms: 500,
        });
        story.tell(RunEvent::Notice {
            level: Level::Info,
            text: "no git here".into(),
        });
        story.tell(RunEvent::Stopping {
            reason: "Ctrl-C".into(),
        });
        story.end(RunOutcome::Interrupted { by: Interrupt::Int }, Usage::default());
    });
    insta::assert_snapshot!(text, @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 3/100 ─────────────────────────────────────────────────── 08:00 ──
        ERR │ warning: config is old
            │ Error: connection reset
        SYS │ the agent ended with exit code 1 after 1m01s
        SYS │ stopped one process that the agent had left behind
            │
     REPORT │ ✗ failed: the agent ended with exit code 1: connection reset
            │ 1m05s
            │ so far: 0ms
       WAIT │ backing off after a failure: waiting 8.0s, until 08:00

    ── iteration 3/100 · attempt 2 ─────────────────────────────────────── 08:00 ──
            │
     REPORT │ ✗ timed out: no output for 10m00s
            │ 1m05s
            │ so far: 8.0s

    ── iteration 3/100 · attempt 3 ─────────────────────────────────────── 08:00 ──
         AI │ a line
            │
            │   and another
       WARN │ LOOP_COMPLETE does not count: it stands inside a code fence
            │
     REPORT │ ! rate limited until 08:20, not counted: usage limit reached
            │ 1m05s
            │ so far: 8.0s
       WAIT │ rate limit: waiting 19m52s, until 08:20
       WAIT │ woken 18m52s early, going on
       WAIT │ cooldown: waiting 500ms, until 08:01
       NOTE │ no git here
       WARN │ stopping: Ctrl-C

    ! Interrupted by Ctrl-C.
      iterations  1 of 100
      time        1m10s
      cost        unknown; the limit of $20.00 was not enforced
      gates       none ran
      journal     /home/me/parser/.agent/runs/20260301-080000-3f2a
      next        to go on: ralph run --continue 20260301-080000-3f2a
    ");
}

#[test]
fn parallel_tools_stay_told_apart() {
    let text = told(PLAIN, |story| {
        story.iteration(1, 1, None);
        story.start_tool("a", "Read", json!({"file_path": "src/a.rs"}));
        story.start_tool("b", "Read", json!({"file_path": "src/b.rs"}));
        story.start_tool("c", "Task", json!({"description": "Find the bug", "prompt": "…"}));
        story.start_tool_in(Some("c"), "d", "Grep", json!({"pattern": "todo", "path": "src"}));
        story.wait(40);
        story.end_tool("d", ToolStatus::Ok, None);
        story.said(TranscriptEvent::Text {
            tag: Tag::Ai,
            text: "Found it.".into(),
            flow: Flow::Message,
            parent: Some("c".into()),
        });
        story.tool_output("b", "x\n");
        story.end_tool("b", ToolStatus::Ok, Some(5));
        story.end_tool("a", ToolStatus::Fail, Some(7));
        story.end_tool("zzz", ToolStatus::Unknown, None);
        story.end_iteration(
            IterationOutcome::Continued { rejected_by: None },
            Usage::default(),
        );
    });
    insta::assert_snapshot!(text, @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 ─────────────────────────────────────────────────── 08:00 ──
       TOOL │ ▸ Read src/a.rs
       TOOL │ ▸ Read src/b.rs
       TOOL │ ▸ Task Find the bug
       TOOL │ ┊ ▸ Grep todo
            │ ┊ ✓ 40ms
         AI │ ┊ Found it.
       TOOL │ ✓ Read src/b.rs · 5ms · 1 line
       TOOL │ ✗ Read src/a.rs · 7ms
       TOOL │ ? tool
            │
    ACTIONS │ ✓ Grep todo · 40ms
            │ ✓ Read src/b.rs · 5ms · 1 line
            │ ✗ Read src/a.rs · 7ms
            │ ? tool
            │ ? Task Find the bug
     REPORT │ → not done yet, going on
            │ 1m05s
    ");
}

#[test]
fn many_tools_are_counted_and_failures_listed() {
    let text = told(PLAIN, |story| {
        story.iteration(1, 1, None);
        for call in 0..30 {
            let id = call.to_string();
            story.start_tool(
                &id,
                if call % 3 == 0 { "Bash" } else { "Edit" },
                json!({"command": id}),
            );
            let status = if call % 4 == 0 {
                ToolStatus::Fail
            } else {
                ToolStatus::Ok
            };
            story.end_tool(&id, status, Some(1000));
        }
        story.end_iteration(
            IterationOutcome::Continued { rejected_by: None },
            Usage::default(),
        );
    });
    let callouts = text
        .find("ACTIONS")
        .map(|at| &text[at..])
        .expect("there were actions");
    insta::assert_snapshot!(callouts, @"
    ACTIONS │ 30 calls, 8 failed: Bash ×10 · Edit ×20
            │ ✗ Bash 0 · 1.0s
            │ ✗ Edit 4 · 1.0s
            │ ✗ Edit 8 · 1.0s
            │ ✗ Bash 12 · 1.0s
            │ ✗ Edit 16 · 1.0s
            │ … and 3 more failed
     REPORT │ → not done yet, going on
            │ 1m05s
    ");
}

fn deltas(story: &mut Story<'_>) {
    story.iteration(1, 1, None);
    for piece in [
        "I will",
        " now look at every fi",
        "",
        "le in this work",
        "space and then de",
        "cide.\n",
    ] {
        story.delta(Tag::Ai, piece);
    }
    for piece in [
        "\n1. fir",
        "st item of a list that is long\n2. sec",
        "ond",
        "\n\n",
    ] {
        story.delta(Tag::Ai, piece);
    }
    story.delta(Tag::Think, "Hm");
    story.delta(Tag::Think, "m.");
    story.delta(Tag::Ai, "Done.");
}

#[test]
fn deltas_join_to_lines() {
    insta::assert_snapshot!(told(PLAIN, deltas), @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 ─────────────────────────────────────────────────── 08:00 ──
         AI │ I will now look at every file in this workspace and then decide.
            │
            │ 1. first item of a list that is long
            │ 2. second
      THINK │ Hmm.
         AI │ Done.
    ");
}

#[test]
fn deltas_show_at_once_on_a_terminal_and_wrap_whole_words() {
    let text = told(PlainOptions { width: 40, ..LIVE }, deltas);
    insta::assert_snapshot!(shown(&text), @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 ─────────── 08:00 ──
         AI │ I will now look at every file
            │ in this workspace and then de␛[3D␛[K
            │ decide.
            │
            │ 1. first item of a list that
            │    is long
            │ 2. second
      THINK │ Hmm.
         AI │ Done.
    ");
}

#[test]
fn a_pipe_sees_whole_lines_only() {
    let mut out = Vec::new();
    let mut story = Story::new(PLAIN, &mut out);
    story.iteration(1, 1, None);
    story.delta(Tag::Ai, "half");
    story.delta(Tag::Ai, " a line");
    assert!(story.face.writer.ends_with(b"\n"));
    let before = story.face.writer.len();
    story.delta(Tag::Ai, "\n");
    assert_eq!(&story.face.writer[before..], "     AI │ half a line\n".as_bytes());
}

#[test]
fn the_status_line_comes_and_goes() {
    let mut out = Vec::new();
    let mut story = Story::new(LIVE, &mut out);
    assert_eq!(story.face.wants_tick(), None);
    story.iteration(1, 1, None);
    assert_eq!(story.face.wants_tick(), Some(Duration::from_millis(250)));
    story.face.writer.clear();
    story.wait(83_500);
    story.tick();
    story.delta(Tag::Ai, "Hello");
    story.wait(250);
    story.tick();
    story.delta(Tag::Ai, " world");
    story.start_tool("a", "Bash", json!({"command": "cargo test"}));
    story.said(TranscriptEvent::Usage { usage: usage() });
    story.tick();
    story.start_tool("b", "Read", json!({"file_path": "a"}));
    story.end_iteration(
        IterationOutcome::Continued { rejected_by: None },
        Usage::default(),
    );
    story.tick();
    story.tell(RunEvent::Waiting {
        why: Pause::RateLimit,
        wait_ms: 754_000,
    });
    assert_eq!(story.face.wants_tick(), Some(Duration::from_secs(1)));
    story.wait(1000);
    story.tick();
    story.wait(753_000);
    story.tell(RunEvent::WaitEnded);
    assert_eq!(story.face.wants_tick(), None);
    let text = shown(&String::from_utf8_lossy(story.face.writer));
    insta::assert_snapshot!(text, @"
    ⠼ 1:23 · working␍␛[K     AI │ Hello
    ⠼ 1:23 · working␍␛[K␛[A␛[16G
    ⠴ 1:23 · working␍␛[K␛[A␛[16G world
    ⠴ 1:23 · working␍␛[K␛[A␛[22G
       TOOL │ ▸ Bash cargo test
    ⠴ 1:23 · running Bash cargo test␍␛[K⠴ 1:23 · running Bash cargo test · 46.2k tokens · $0.12␍␛[K   TOOL │ ▸ Read a
    ⠴ 1:23 · running Read a +1 · 46.2k tokens · $0.12␍␛[K        │
    ACTIONS │ ? Bash cargo test
            │ ? Read a
     REPORT │ → not done yet, going on
            │ 1m05s
       WAIT │ rate limit: waiting 12m34s, until 08:13
    rate limit: 12:33 left, resumes 08:13 · Ctrl-C stops␍␛[K
    ");
}

#[test]
fn the_status_line_names_gates_and_stopping() {
    let mut out = Vec::new();
    let mut story = Story::new(LIVE, &mut out);
    story.iteration(1, 1, None);
    story.tell(RunEvent::GateStarted {
        iteration: 1,
        name: "tests".into(),
        command: "cargo test".into(),
    });
    let line = |story: &Story<'_>| story.face.face.status_line(story.at);
    assert_eq!(line(&story).as_deref(), Some("⠋ 0:00 · gate tests"));
    story.tell(RunEvent::Stopping {
        reason: "Ctrl-C".into(),
    });
    assert_eq!(
        line(&story).as_deref(),
        Some("⠋ 0:00 · stopping · Ctrl-C again kills")
    );
    story.end(RunOutcome::Interrupted { by: Interrupt::Int }, Usage::default());
    assert_eq!(line(&story), None);
}

#[test]
fn a_face_that_is_dropped_leaves_no_status_line() {
    let text = told(LIVE, |story| {
        story.iteration(1, 1, None);
        story.tick();
    });
    assert!(text.ends_with("\r\x1b[K"), "{text:?}");
}

#[test]
fn a_face_that_is_not_live_never_moves_the_cursor() {
    let text = told(PLAIN, |story| {
        story.iteration(1, 1, None);
        story.tick();
        assert_eq!(story.face.wants_tick(), None);
        deltas(story);
        story.tick();
    });
    assert!(!text.contains(['\x1b', '\r']));
}

#[test]
fn hostile_text_is_only_text() {
    let hostile = "\x1b]0;owned\x07\x1b[2Jfine\r\x1b]52;c;c2VjcmV0\x07over\u{202e}txt.exe\u{9b}31m\x08\0";
    let text = told(LIVE, |story| {
        story.iteration(1, 1, Some(hostile));
        story.meta(Meta::Session {
            session_id: hostile.into(),
            model: Some(hostile.into()),
            version: None,
        });
        story.said(TranscriptEvent::message(Tag::Ai, hostile));
        story.start_tool(hostile, hostile, json!({"command": hostile}));
        story.tick();
        story.end_tool(hostile, ToolStatus::Fail, None);
        story.tell(RunEvent::Notice {
            level: Level::Error,
            text: hostile.into(),
        });
        story.gate(GateResult::TimedOut, hostile);
        story.meta(Meta::Plan {
            items: vec![PlanItem {
                text: hostile.into(),
                status: PlanStatus::Active,
            }],
        });
        story.end_iteration(
            IterationOutcome::AuthRequired {
                message: hostile.into(),
            },
            Usage::default(),
        );
        story.end(
            RunOutcome::Failed {
                reason: hostile.into(),
            },
            Usage::default(),
        );
    });
    insta::assert_snapshot!(shown(&text), @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 · fine overtxt.exe ──────────────────────────────── 08:00 ──
        SYS │ session fine ove · fine overtxt.exe
         AI │ fine
            │ overtxt.exe
       TOOL │ ▸ fine overtxt.exe fine overtxt.exe
    ⠋ 0:00 · running fine overtxt.exe fine overtxt.exe␍␛[K        │ ✗
    ⠋ 0:00 · working␍␛[K  ERROR │ fine
            │ overtxt.exe
    ⠋ 0:00 · working␍␛[K   GATE │ ▸ tests cargo test --quiet
    ⠋ 0:00 · gate tests␍␛[K   GATE │ ✗ tests · 4.2s · timed out
            │   fine
            │   overtxt.exe
    ⠦ 0:04 · working␍␛[K   PLAN │ 0 of 1 done · next: fine overtxt.exe
    ⠦ 0:04 · working␍␛[K        │
       PLAN │ ▸ fine overtxt.exe
    ACTIONS │ ✗ fine overtxt.exe fine overtxt.exe
     REPORT │ ✗ the agent is not logged in: fine
            │ overtxt.exe
            │ 1m05s

    ✗ Gave up: fine overtxt.exe.
      iterations  1 of 100
      time        1m10s
      cost        unknown; the limit of $20.00 was not enforced
      gates       tests failed ×1
      journal     /home/me/parser/.agent/runs/20260301-080000-3f2a
      next        to go on: ralph run --continue 20260301-080000-3f2a
    ");
}

#[test]
fn every_kind_of_meta_is_shown() {
    let text = told(PLAIN, |story| {
        story.iteration(1, 1, None);
        story.session();
        story.session();
        let other = json!({"message": "warming up", "step": 1});
        let item = |text: &str, status| PlanItem {
            text: text.into(),
            status,
        };
        let limit = |status| Meta::RateLimit {
            status,
            resets_at: Some(start() + SignedDuration::from_hours(20)),
            limit: Some("five_hour".into()),
        };
        for meta in [
            Meta::Finished {
                success: false,
                reason: Some("error_max_turns".into()),
                text: Some("Only said at the end.".into()),
                turns: None,
                duration_ms: None,
            },
            Meta::Error {
                class: ErrorClass::Overload,
                message: "try later".into(),
                status: Some(529),
            },
            Meta::Retry {
                attempt: 2,
                max_attempts: Some(10),
                delay_ms: Some(1500),
                class: ErrorClass::Network,
                message: "connection reset".into(),
            },
            limit(RateLimitStatus::Allowed),
            limit(RateLimitStatus::Warning),
            limit(RateLimitStatus::Rejected),
            Meta::Plan {
                items: vec![
                    item("read", PlanStatus::Done),
                    item("write", PlanStatus::Active),
                    item("rest", PlanStatus::Pending),
                ],
            },
            Meta::FileChange {
                path: "src/a.rs".into(),
                change: FileChangeKind::Added,
            },
            Meta::FileChange {
                path: "src/b.rs".into(),
                change: FileChangeKind::Modified,
            },
            Meta::FileChange {
                path: "src/c.rs".into(),
                change: FileChangeKind::Deleted,
            },
            Meta::PermissionDenied { tool: "Bash".into() },
            Meta::ParseError {
                message: "expected value at column 1".into(),
            },
            Meta::Cut { bytes: 300_000_000 },
            Meta::Other(other.as_object().cloned().unwrap_or_default()),
        ] {
            story.meta(meta);
        }
        for tag in [Tag::Sys, Tag::Tool, Tag::Prompt, Tag::User] {
            story.said(TranscriptEvent::message(tag, "one\ntwo\nthree\nfour\nfive"));
        }
        story.end_iteration(IterationOutcome::Interrupted, Usage::default());
    });
    insta::assert_snapshot!(text, @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 ─────────────────────────────────────────────────── 08:00 ──
        SYS │ session 3f2a91bc · claude-opus-4
         AI │ Only said at the end.
      ERROR │ the agent says that it failed: error_max_turns
      ERROR │ service overloaded (HTTP 529): try later
       WARN │ the agent tries again in 1.5s, attempt 2 of 10: network: connection reset
       WARN │ usage limit five_hour almost reached, resets Mon 2 Mar 04:00
      ERROR │ usage limit five_hour reached, resets Mon 2 Mar 04:00
       PLAN │ 1 of 3 done · next: write
       FILE │ added src/a.rs
       FILE │ changed src/b.rs
       FILE │ deleted src/c.rs
       WARN │ the agent was not permitted to use Bash
       WARN │ unreadable line: expected value at column 1
       WARN │ a line of 300.0 MB was cut; the raw file has all of it
        SYS │ warming up
        SYS │ one
            │ two
            │ three
            │ four
            │ five
       TOOL │ one
            │ two
            │ three
            │ …
     PROMPT │ one
            │ two
            │ three
            │ …
       USER │ one
            │ two
            │ three
            │ four
            │ five
            │
       PLAN │ ✓ read
            │ ▸ write
            │ · rest
     REPORT │ ! interrupted
            │ 1m05s
    ");
}

fn live_face(out: &mut Vec<u8>) -> Plain<&mut Vec<u8>> {
    Plain::new(out, PlainOptions { width: 40, ..LIVE })
}

/// The pieces as deltas of one text, nothing of it written before its end.
fn flowed(pieces: &[&str]) -> String {
    let mut out = Vec::new();
    let mut face = live_face(&mut out);
    for piece in pieces {
        let event = TranscriptEvent::Text {
            tag: Tag::Ai,
            text: (*piece).into(),
            flow: Flow::Delta,
            parent: None,
        };
        let event = RunEvent::Transcript { iteration: 1, event };
        let (seq, at) = (1, start());
        face.accept(&Record { seq, at, event })
            .expect("memory can be written");
    }
    drop(face);
    String::from_utf8(out).expect("a face writes text")
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

proptest::proptest! {
    #[test]
    fn wrapping_loses_nothing_and_fits(text in "([a-z]{1,40}|[ \n\t]{1,3}|日本|- |é|👩‍💻){0,60}") {
        let page = flowed(&[&text]);
        let mut body = String::new();
        for row in page.lines() {
            proptest::prop_assert!(row.width() < 40, "{row:?}");
            proptest::prop_assert_eq!(row.trim_end(), row);
            body += row.split_once('│').expect("a gutter").1;
        }
        proptest::prop_assert_eq!(without_blanks(&body), without_blanks(&text));
    }

    #[test]
    fn pieces_look_like_the_whole(words in proptest::collection::vec("[a-zé]{0,12}[ \n]?", 0..40)) {
        let pieces: Vec<&str> = words.iter().map(String::as_str).collect();
        let whole = words.concat();
        let longest = whole.split_whitespace().map(str::len).max().unwrap_or(0);
        proptest::prop_assume!(longest < 29);
        proptest::prop_assert_eq!(flowed(&pieces), flowed(&[&whole]));
    }
}

#[test]
fn a_resumed_run_goes_on_with_its_totals() {
    let mut out = Vec::new();
    let (seq, at) = (0, start());
    let face = Plain::new(&mut out, PLAIN).having_used(&usage());
    let mut story = Story { face, seq, at };
    story.tell(RunEvent::RunStarted(header()));
    story.iteration(2, 1, None);
    story.end_iteration(IterationOutcome::Continued { rejected_by: None }, usage());
    let text = String::from_utf8_lossy(story.face.writer).into_owned();
    assert!(text.contains("$0.25 of $20.00"), "{text}");
}

#[test]
fn a_resumed_run_counts_the_time_that_it_took_before_and_not_the_night_between() {
    let page = told(PLAIN, |story| {
        story.wait(3_600_000);
        story.tell(RunEvent::RunResumed(Box::new(Resumption {
            header: header(),
            iteration: 4,
            attempt: 1,
            iterations: 3,
            usage: Usage::default(),
            elapsed_ms: 60_000,
            changed: Vec::new(),
        })));
        story.iteration(4, 1, None);
        story.wait(5_000);
        story.end_iteration(
            IterationOutcome::Continued { rejected_by: None },
            Usage::default(),
        );
    });
    assert!(page.contains("so far: 1m05s"), "{page}");
}

#[test]
fn a_huge_message_gives_its_memory_back() {
    let mut out = Vec::new();
    let mut story = Story::new(PLAIN, &mut out);
    story.said(TranscriptEvent::message(Tag::Ai, "x".repeat(3 << 20)));
    story.said(TranscriptEvent::message(Tag::Ai, "next"));
    assert!(story.face.face.page.out.capacity() <= 1 << 20);
}

#[test]
fn memory_does_not_grow_with_the_stream() {
    let mut story_out = Vec::new();
    let mut story = Story::new(PLAIN, &mut story_out);
    story.iteration(1, 1, None);
    for call in 0..2000 {
        story.delta(Tag::Think, "a thought that never ends ");
        story.delta(Tag::Ai, "a line that never ends ");
        story.start_tool(
            &call.to_string(),
            &format!("tool{call}"),
            json!({"command": "x".repeat(9000)}),
        );
        story.face.writer.clear();
    }
    let face = &story.face.face;
    assert!(face.page.out.len() <= super::MOST_BUFFERED);
    assert!(face.iteration.thought.len() <= 600);
    assert!(face.iteration.tools.open.len() <= 64);
    assert!(
        face.iteration
            .tools
            .open
            .iter()
            .all(|tool| tool.argument.len() < 1000)
    );
}

#[test]
fn a_run_that_goes_on_and_listens_to_its_user() {
    let page = told(PLAIN, |story| {
        story.tell(RunEvent::RunResumed(Box::new(Resumption {
            header: header(),
            iteration: 4,
            attempt: 2,
            iterations: 3,
            usage: Usage::default(),
            elapsed_ms: 0,
            changed: vec!["event_loop.max_iterations: 10 → 20".into()],
        })));
        for order in [
            Order::Message {
                text: "use the \u{1b}[2Jnew API".into(),
            },
            Order::Pause,
            Order::Resume,
            Order::Wake,
            Order::StopIteration,
        ] {
            story.tell(RunEvent::Told {
                id: "1.json".into(),
                order,
            });
        }
        for unchanged in [0, 1, 2] {
            story.tell(RunEvent::Progress {
                iteration: 4,
                fingerprint: "0123".into(),
                unchanged,
            });
        }
        story.tell(RunEvent::Paused);
        story.tell(RunEvent::WaitEnded);
        story.tell(RunEvent::Asking);
    });
    insta::assert_snapshot!(page, @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00
       NOTE │ going on with iteration 4
       NOTE │ changed: event_loop.max_iterations: 10 → 20
       USER │ use the new API
       USER │ pause after this iteration
       USER │ go on
       USER │ wait no longer
       USER │ stop this iteration, go on with the next
       WARN │ nothing has changed in the last iteration
       WARN │ nothing has changed in the last 2 iterations
       WAIT │ paused; to go on: ralph tell --resume
       WAIT │ go on? Enter: yes · a: yes, and do not ask again · q: quit
    ");
}
