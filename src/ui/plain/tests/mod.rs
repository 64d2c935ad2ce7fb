//! Renders records with fixed timestamps and compares the output with snapshots.
#![expect(
    clippy::too_many_lines,
    reason = "a scenario and its output are read together"
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
    color: false,
    live: false,
    width: 80,
    verbosity: Verbosity::Normal,
};
const LIVE: PlainOptions = PlainOptions { live: true, ..PLAIN };

/// Sends events to a plain front end.
struct PlainScenario<'a> {
    front_end: Plain<&'a mut Vec<u8>>,
    seq: u64,
    at: Timestamp,
}

impl<'a> PlainScenario<'a> {
    fn new(options: PlainOptions, out: &'a mut Vec<u8>) -> Self {
        let mut scenario = Self {
            front_end: Plain::new(out, options).in_zone(TimeZone::UTC),
            seq: 0,
            at: start(),
        };
        scenario.emit(RunEvent::RunStarted(Box::new(header())));
        scenario
    }

    fn emit(&mut self, event: RunEvent) {
        self.seq += 1;
        let record = Record {
            chain: None,
            seq: self.seq,
            at: self.at,
            event,
        };
        self.front_end
            .accept(&record)
            .expect("writing to memory succeeds");
        self.front_end.flush().expect("flushing memory succeeds");
    }

    fn wait(&mut self, millis: i64) {
        self.at += SignedDuration::from_millis(millis);
    }

    fn tick(&mut self) {
        self.front_end.tick(self.at).expect("writing to memory succeeds");
    }

    fn iteration(&mut self, iteration: u64, attempt: u64, hat: Option<&str>) {
        self.emit(RunEvent::IterationStarted {
            iteration,
            attempt,
            hat: hat.map(str::to_owned),
            agent: None,
            prompt_bytes: 1200,
        });
        self.emit(RunEvent::AgentStarted {
            iteration,
            identity: None,
            pid: Some(4242),
            command: vec!["claude".into(), "-p".into(), "Fix it".into()],
        });
    }

    fn transcript(&mut self, event: TranscriptEvent) {
        self.emit(RunEvent::Transcript { iteration: 1, event });
    }

    fn meta(&mut self, meta: Meta) {
        self.transcript(TranscriptEvent::meta(meta));
    }

    fn delta(&mut self, tag: Tag, text: &str) {
        self.transcript(TranscriptEvent::Text {
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
        self.transcript(TranscriptEvent::ToolStart {
            tool: ToolStart {
                id: id.into(),
                name: name.into(),
                input: Some(Json::from(input)),
                parent: parent.map(str::to_owned),
            },
        });
    }

    fn tool_output(&mut self, id: &str, text: &str) {
        self.transcript(TranscriptEvent::ToolOutput {
            tool: ToolRef { id: id.into() },
            text: text.into(),
        });
    }

    fn end_tool(&mut self, id: &str, status: ToolStatus, duration_ms: Option<u64>) {
        self.transcript(TranscriptEvent::ToolEnd {
            tool: ToolEnd {
                id: id.into(),
                status,
                duration_ms,
            },
        });
    }

    fn end_agent(&mut self, end: ProcessEnd, swept: u64) {
        self.emit(RunEvent::AgentEnded {
            iteration: 1,
            end: end.into(),
            duration_ms: 61_000,
            swept,
        });
    }

    fn gate(&mut self, result: GateResult, output: &str) {
        self.emit(RunEvent::GateStarted {
            iteration: 1,
            name: "tests".into(),
            command: "cargo test --quiet".into(),
        });
        self.wait(4200);
        self.emit(RunEvent::GateEnded {
            iteration: 1,
            name: "tests".into(),
            result,
            duration_ms: 4200,
            output: output.into(),
            details: Box::default(),
        });
    }

    fn end_iteration(&mut self, outcome: IterationOutcome, usage: Usage) {
        self.emit(RunEvent::IterationEnded {
            iteration: 1,
            attempt: 1,
            outcome,
            duration_ms: 65_200,
            usage: Box::new(usage),
        });
    }

    fn end(&mut self, outcome: RunOutcome, usage: Usage) {
        self.emit(RunEvent::RunEnded {
            outcome,
            iterations: 1,
            duration_ms: 70_000,
            usage: Box::new(usage),
        });
    }
}

fn start() -> Timestamp {
    Timestamp::from_second(1_772_352_000).expect("valid timestamp")
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
        project_root: Some("/home/me/parser".into()),
        directory: Some("/home/me/.local/state/ralph/projects/parser-12/runs/20260301-080000-3f2a".into()),
        max_iterations: 100,
        max_runtime_seconds: Some(14_400),
        max_tokens: None,
        max_cost_usd: Some(20.0),
        settings_sha256: None,
        forked_from: None,
    }
}

fn usage() -> Usage {
    Usage {
        prompt_tokens: Some(45_000),
        completion_tokens: Some(1_200),
        cached_tokens: Some(38_000),
        cost_usd: crate::event::Usd::new(0.1234),
        cost_source: Some(CostSource::Reported),
        ..Usage::default()
    }
}

fn rendered(options: PlainOptions, run: impl FnOnce(&mut PlainScenario<'_>)) -> String {
    let mut out = Vec::new();
    run(&mut PlainScenario::new(options, &mut out));
    String::from_utf8(out).expect("output is UTF-8")
}

/// Replaces escape characters with visible symbols.
fn visible(text: &str) -> String {
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

fn single_iteration(scenario: &mut PlainScenario<'_>) {
    scenario.iteration(1, 1, None);
    scenario.session();
    scenario.transcript(TranscriptEvent::message(
        Tag::Think,
        "The parser drops the last line when it has no newline. I should look at the reader first. \
         Then I will write a test that fails, and only then change the code, because the bug may well \
         be somewhere else entirely and a test tells me so at once. Let me begin.",
    ));
    scenario.transcript(TranscriptEvent::message(
        Tag::Ai,
        "I'll look at the code first.\n\nThree things matter:\n- the reader, which cuts the stream into lines and keeps the rest\n- the parser",
    ));
    scenario.start_tool("t1", "Read", json!({"file_path": "/home/me/parser/src/lib.rs"}));
    scenario.wait(12);
    scenario.tool_output("t1", "one\ntwo\nthree");
    scenario.end_tool("t1", ToolStatus::Ok, None);
    scenario.start_tool(
        "t2",
        "Bash",
        json!({"command": "cargo test --workspace --all-features -- --test-threads=1 --nocapture 2>&1 | tail -50"}),
    );
    scenario.wait(48_000);
    scenario.tool_output("t2", "running 3 tests\nfailed\n");
    scenario.end_tool("t2", ToolStatus::Fail, Some(48_123));
    scenario.transcript(TranscriptEvent::message(Tag::Ai, "Fixed.\n\nLOOP_COMPLETE\n"));
    scenario.meta(Meta::Finished {
        success: true,
        reason: Some("end_turn".into()),
        text: Some("Fixed.\n\nLOOP_COMPLETE".into()),
        turns: Some(3),
        duration_ms: None,
    });
    scenario.end_agent(exit(0), 0);
    scenario.end_iteration(
        IterationOutcome::Completed {
            marker: "LOOP_COMPLETE".into(),
        },
        usage(),
    );
    scenario.end(complete(), usage());
}

#[test]
fn resumed_run_continues_its_totals() {
    let page = rendered(PLAIN, |scenario| {
        scenario.emit(RunEvent::RunResumed(Box::new(Resumption {
            header: header(),
            iteration: 2,
            attempt: 1,
            iterations: 1,
            usage: usage(),
            elapsed_ms: 60_000,
            changed: Vec::new(),
        })));
        scenario.iteration(2, 1, None);
        scenario.end_iteration(IterationOutcome::Continued { rejected_by: None }, usage());
    });
    assert!(page.contains("$0.25 of $20.00"), "{page}");
}

#[test]
fn resumed_run_counts_earlier_time_but_not_the_time_between() {
    let page = rendered(PLAIN, |scenario| {
        scenario.wait(3_600_000);
        scenario.emit(RunEvent::RunResumed(Box::new(Resumption {
            header: header(),
            iteration: 4,
            attempt: 1,
            iterations: 3,
            usage: Usage::default(),
            elapsed_ms: 60_000,
            changed: Vec::new(),
        })));
        scenario.iteration(4, 1, None);
        scenario.wait(5_000);
        scenario.end_iteration(
            IterationOutcome::Continued { rejected_by: None },
            Usage::default(),
        );
    });
    assert!(page.contains("so far: 1m05s"), "{page}");
}

#[test]
fn resumed_run_shows_changes_and_user_commands() {
    let page = rendered(PLAIN, |scenario| {
        scenario.emit(RunEvent::RunResumed(Box::new(Resumption {
            header: header(),
            iteration: 4,
            attempt: 2,
            iterations: 3,
            usage: Usage::default(),
            elapsed_ms: 0,
            changed: vec!["event_loop.max_iterations: 10 → 20".into()],
        })));
        for command in [
            Command::Message {
                text: "use the \u{1b}[2Jnew API".into(),
            },
            Command::Pause,
            Command::Resume,
            Command::Wake,
            Command::StopIteration,
        ] {
            scenario.emit(RunEvent::CommandReceived {
                id: "1.json".into(),
                command,
            });
        }
        for unchanged in [0, 1, 2] {
            scenario.emit(RunEvent::Progress {
                iteration: 4,
                fingerprint: "0123".into(),
                unchanged,
            });
        }
        scenario.emit(RunEvent::Paused);
        scenario.emit(RunEvent::WaitEnded);
        scenario.emit(RunEvent::Asking);
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
       NOTE │ resuming with iteration 4, attempt 2
            │ changed: event_loop.max_iterations: 10 → 20
       USER │ use the new API
       USER │ pause after this iteration
       USER │ resume
       USER │ end the wait
       USER │ stop this iteration, continue with the next
       WARN │ no changes in the last iteration
       WARN │ no changes in the last 2 iterations
       WAIT │ paused; to resume: ralph tell --resume
       WAIT │ continue? Enter: yes · a: yes, do not ask again · q: quit
    ");
}
