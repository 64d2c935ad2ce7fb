//! Whole small sessions, told by records with a fixed clock, as they look on the page.
#![expect(
    clippy::too_many_lines,
    reason = "a story and the page that it gives are read together"
)]

mod full_runs;
mod live;
mod pages;
mod robustness;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde_json::json;
use unicode_width::UnicodeWidthStr;

use super::{Plain, PlainOptions, Verbosity};
use crate::event::*;
use crate::ui::FrontEnd as _;

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
        story.tell(RunEvent::RunStarted(Box::new(header())));
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
            usage: Box::new(usage),
        });
    }

    fn end(&mut self, outcome: RunOutcome, usage: Usage) {
        self.tell(RunEvent::RunEnded {
            outcome,
            iterations: 1,
            duration_ms: 70_000,
            usage: Box::new(usage),
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
fn a_resumed_run_goes_on_with_its_totals() {
    let mut out = Vec::new();
    let (seq, at) = (0, start());
    let face = Plain::new(&mut out, PLAIN).having_used(&usage());
    let mut story = Story { face, seq, at };
    story.tell(RunEvent::RunStarted(Box::new(header())));
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
            Command::Message {
                text: "use the \u{1b}[2Jnew API".into(),
            },
            Command::Pause,
            Command::Resume,
            Command::Wake,
            Command::StopIteration,
        ] {
            story.tell(RunEvent::CommandReceived {
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
