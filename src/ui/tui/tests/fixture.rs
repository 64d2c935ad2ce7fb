//! Test fixtures: the records of a small run, and a TUI that draws into memory.

use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;

use crate::event::{
    ChangedFile, Command, FORMAT_VERSION, FileChangeKind, GateResult, IterationOutcome, Json, Meta, PlanItem,
    PlanStatus, ProcessEnd, Record, Resumption, RunEvent, RunHeader, SnapshotMoment, SnapshotRecord, Tag,
    ToolEnd, ToolRef, ToolStart, ToolStatus, TopicEvent, TranscriptEvent, Usage,
};
use crate::ui::tui::draw::{self, DrawContext};
use crate::ui::tui::keys::{KeyAction, KeyContext};
use crate::ui::tui::loaded_files::LoadedFiles;
use crate::ui::tui::model::TuiState;
use crate::ui::tui::run_files::{AttemptId, RunFiles};
use crate::ui::tui::theme::{ColorMode, Theme};
use crate::ui::tui::view::{CommandAccess, Role, View};

/// The records of a run, one second apart by default.
pub(super) struct RunFixture {
    pub(super) records: Vec<Record>,
    pub(super) now: Timestamp,
}

impl RunFixture {
    pub(super) fn new() -> Self {
        let now: Timestamp = "2026-11-15T20:45:01Z".parse().expect("a time");
        let mut run = Self {
            records: Vec::new(),
            now,
        };
        run.record(RunEvent::RunStarted(Box::new(RunHeader {
            version: FORMAT_VERSION,
            run_id: "20261115-204501-k3f9".into(),
            ralph: "0.1.0".into(),
            agent: "claude".into(),
            agent_version: Some("2.1.197".into()),
            transcript: "claude".into(),
            workspace: "/w".into(),
            project_root: None,
            directory: Some("/state/runs/20261115-204501-k3f9".into()),
            max_iterations: 10,
            max_runtime_seconds: None,
            max_tokens: None,
            max_cost_usd: Some(5.0),
            settings_sha256: None,
            forked_from: None,
        })));
        run
    }

    pub(super) fn record(&mut self, event: RunEvent) -> &mut Self {
        let seq = self.records.len() as u64 + 1;
        self.records.push(Record {
            chain: None,
            seq,
            at: self.now,
            event,
        });
        self.wait(1000)
    }

    pub(super) fn wait(&mut self, millis: u64) -> &mut Self {
        self.now += SignedDuration::try_from(Duration::from_millis(millis)).expect("a duration");
        self
    }

    pub(super) fn start_iteration(&mut self, iteration: u64, attempt: u64) -> &mut Self {
        self.record(RunEvent::IterationStarted {
            iteration,
            attempt,
            hat: Some("builder".into()),
            agent: None,
            prompt_bytes: 9,
        })
    }

    pub(super) fn event(&mut self, event: TranscriptEvent) -> &mut Self {
        self.record(RunEvent::Transcript { iteration: 1, event })
    }

    pub(super) fn text(&mut self, tag: Tag, text: &str) -> &mut Self {
        self.event(TranscriptEvent::message(tag, text))
    }

    pub(super) fn start_tool(&mut self, id: &str, name: &str, input: serde_json::Value) -> &mut Self {
        let tool = ToolStart {
            id: id.into(),
            name: name.into(),
            input: Some(Json::from(input)),
            parent: None,
        };
        self.event(TranscriptEvent::ToolStart { tool })
    }

    pub(super) fn end_tool(&mut self, id: &str, output: &str, status: ToolStatus) -> &mut Self {
        let tool = ToolRef { id: id.into() };
        self.event(TranscriptEvent::ToolOutput {
            tool,
            text: output.into(),
        });
        let tool = ToolEnd {
            id: id.into(),
            status,
            duration_ms: Some(1234),
        };
        self.event(TranscriptEvent::ToolEnd { tool })
    }

    pub(super) fn end_iteration(
        &mut self,
        iteration: u64,
        attempt: u64,
        outcome: IterationOutcome,
    ) -> &mut Self {
        let usage = usage(40_000 + 9000 * iteration);
        self.record(RunEvent::IterationEnded {
            iteration,
            attempt,
            outcome,
            duration_ms: 72_000,
            usage: Box::new(usage),
        })
    }

    /// A snapshot before the first iteration, or after one that changed two files.
    pub(super) fn snapshot(&mut self, iteration: u64, moment: SnapshotMoment) -> &mut Self {
        let changed = |path: &str, change, added, removed| ChangedFile {
            path: path.into(),
            change,
            added: Some(added),
            removed: Some(removed),
        };
        let changes = match moment {
            SnapshotMoment::Start | SnapshotMoment::Restored => Vec::new(),
            SnapshotMoment::End => vec![
                changed("notes.md", FileChangeKind::Added, 1, 0),
                changed("src/parser.rs", FileChangeKind::Modified, 2, 1),
            ],
        };
        self.record(RunEvent::Snapshot(Box::new(SnapshotRecord {
            iteration,
            moment,
            id: format!("{iteration:064}"),
            files: changes.len() as u64,
            added: 3,
            removed: 1,
            bytes: 100,
            total_files: 9,
            changes,
        })))
    }

    /// A run whose first iteration was rejected by a gate and whose second one is running a tool.
    pub(super) fn running() -> Self {
        let mut run = Self::new();
        run.snapshot(0, SnapshotMoment::Start)
            .start_iteration(1, 1)
            .text(Tag::Think, "Let me look at the tests.");
        run.start_tool("a", "Read", json!({"file_path": "/w/src/lib.rs"}))
            .end_tool("a", "fn one() {}\nfn two() {}\n", ToolStatus::Ok);
        run.text(Tag::Ai, "All done.\n\nLOOP_COMPLETE")
            .snapshot(1, SnapshotMoment::End)
            .gate("test", 101)
            .end_iteration(
                1,
                1,
                IterationOutcome::Continued {
                    rejected_by: Some("test".into()),
                },
            );
        run.start_iteration(2, 1)
            .event(TranscriptEvent::meta(Meta::Session {
                session_id: "0a1b2c3d4e5f".into(),
                model: Some("opus".into()),
                version: None,
            }));
        run.text(
            Tag::Think,
            &"The gate reports that two of the tests fail, so there is something that I have missed. "
                .repeat(5),
        );
        run.event(TranscriptEvent::meta(Meta::Plan {
            items: vec![
                item("read the failing test", PlanStatus::Done),
                item("fix the parser", PlanStatus::Active),
                item("run everything", PlanStatus::Pending),
            ],
        }));
        run.start_tool(
            "b",
            "Bash",
            json!({"command": "cargo test parser", "timeout": 60}),
        );
        run.end_tool("b", "running 2 tests\ntest parser::empty ... ok\ntest parser::quotes ... FAILED\n\nfailures:\n    parser::quotes\n", ToolStatus::Fail);
        run.text(Tag::Ai, "## What is wrong\n\nThe parser drops the **closing** quote:\n\n```rust\nlet end = text.find('\"');\n```\n\n- `find` gives the first one\n- it should be the last one, which means that the whole of the rest has to be looked at before");
        run.record(RunEvent::Topic {
            iteration: 2,
            event: TopicEvent {
                topic: "bug.found".into(),
                target: Some("tester".into()),
                payload: "closing quote".into(),
            },
        });
        run.start_tool(
            "c",
            "Edit",
            json!({"file_path": "/w/src/parser.rs", "old_string": "find", "new_string": "rfind"}),
        )
        .end_tool("c", "", ToolStatus::Ok);
        run.event(TranscriptEvent::usage(usage(52_345)));
        run.start_tool("d", "Bash", json!({"command": "cargo test --all"}))
            .wait(11_000);
        run
    }

    /// A run that was interrupted and resumed an hour later.
    pub(super) fn resumed() -> Self {
        let mut run = Self::running();
        let Some(RunEvent::RunStarted(header)) = run.records.first().map(|first| first.event.clone()) else {
            return run;
        };
        run.wait(3_600_000)
            .record(RunEvent::RunResumed(Box::new(Resumption {
                header: *header,
                iteration: 2,
                attempt: 2,
                iterations: 1,
                usage: usage(49_000),
                elapsed_ms: 0,
                changed: vec!["event_loop.max_iterations: 5 → 10".into()],
            })));
        run.record(RunEvent::Progress {
            iteration: 2,
            fingerprint: "f".into(),
            unchanged: 1,
        })
        .start_iteration(2, 2)
        .record(RunEvent::TopicRerouted {
            iteration: 2,
            topic: "bug.found".into(),
            hat: Some("builder".into()),
            reason: "no hat claims it".into(),
        });
        run
    }

    /// Records a command of the user.
    pub(super) fn command(&mut self, order: Command) -> &mut Self {
        self.record(RunEvent::CommandReceived {
            id: "1.json".into(),
            command: order,
        })
    }

    pub(super) fn gate(&mut self, name: &str, code: i32) -> &mut Self {
        let command = format!("cargo {name}");
        self.record(RunEvent::GateStarted {
            iteration: 1,
            name: name.into(),
            command,
        })
        .record(RunEvent::GateEnded {
            iteration: 1,
            name: name.into(),
            result: if code == 0 {
                GateResult::Passed
            } else {
                GateResult::Failed {
                    end: ProcessEnd::Exited { code },
                }
            },
            duration_ms: 4200,
            output: "running 12 tests\ntest parser::quotes ... FAILED\n".into(),
            details: Box::default(),
        })
    }

    pub(super) fn state(&self) -> TuiState {
        let mut state = TuiState::new(TimeZone::UTC);
        self.records.iter().for_each(|record| state.apply(record));
        state
    }
}

fn item(text: &str, status: PlanStatus) -> PlanItem {
    PlanItem {
        text: text.into(),
        status,
    }
}

pub(super) fn usage(tokens: u64) -> Usage {
    Usage {
        prompt_tokens: Some(tokens - 2000),
        completion_tokens: Some(2000),
        cached_tokens: Some(tokens / 2),
        cost_usd: crate::event::Usd::new(1.25),
        model: Some("opus".into()),
        ..Usage::default()
    }
}

/// A TUI with an in-memory terminal.
pub(super) struct TestTui<'a> {
    pub(super) run: &'a RunFixture,
    pub(super) view: View,
    pub(super) files: LoadedFiles,
    pub(super) size: (u16, u16),
}

impl<'a> TestTui<'a> {
    pub(super) fn of(run: &'a RunFixture, width: u16, height: u16) -> Self {
        let mut view = View::new(Theme::new(ColorMode::On), Role::Driver);
        view.commands = CommandAccess::Available;
        Self {
            run,
            view,
            files: LoadedFiles::default(),
            size: (width, height),
        }
    }

    /// The text on the screen.
    pub(super) fn screen(&mut self) -> String {
        let terminal = self.draw();
        let buffer = terminal.backend().buffer().clone();
        let rows = buffer.content().chunks(usize::from(self.size.0));
        let rows: Vec<String> = rows
            .map(|row| {
                row.iter()
                    .map(|cell| cell.symbol())
                    .collect::<String>()
                    .trim_end()
                    .to_owned()
            })
            .collect();
        rows.join("\n")
    }

    pub(super) fn draw(&mut self) -> Terminal<TestBackend> {
        let state = self.run.state();
        let run_files = FixtureFiles {
            records: &self.run.records,
        };
        self.files.load(&mut self.view, &state, &run_files);
        let mut terminal = Terminal::new(TestBackend::new(self.size.0, self.size.1)).expect("a screen");
        let (files, view) = (&self.files, &mut self.view);
        let context = DrawContext {
            state: &state,
            files,
            now: self.run.now,
        };
        terminal
            .draw(|frame| draw::draw(frame, &context, view))
            .expect("a frame");
        terminal
    }

    /// Presses keys one by one, draws after each, and returns the action of the last one.
    pub(super) fn press(&mut self, keys: &[KeyCode]) -> Option<KeyAction> {
        self.screen();
        let mut action = None;
        for key in keys {
            action = self.send(&Event::Key(KeyEvent::new(*key, KeyModifiers::NONE)));
        }
        action
    }

    pub(super) fn type_text(&mut self, text: &str) -> Option<KeyAction> {
        let keys: Vec<KeyCode> = text.chars().map(KeyCode::Char).collect();
        self.press(&keys)
    }

    pub(super) fn send(&mut self, event: &Event) -> Option<KeyAction> {
        let state = self.run.state();
        let (state, files) = (&state, &self.files);
        let action = self.view.on_event(event, KeyContext { state, files });
        self.screen();
        action
    }
}

/// The changes of the first iteration.
const PATCH: &str = "diff --git a/src/parser.rs b/src/parser.rs\nindex 1..2 100644\n--- a/src/parser.rs\n+++ b/src/parser.rs\n@@ -10,3 +10,4 @@ fn parse(text: &str) {\n // Finds the end.\n-let end = text.find('\"');\n+let end = text.rfind('\"');\n+let rest = &text[end..];\ndiff --git a/notes.md b/notes.md\nnew file mode 100644\n--- /dev/null\n+++ b/notes.md\n@@ -0,0 +1 @@\n+# Notes\n";

struct FixtureFiles<'a> {
    records: &'a [Record],
}

impl RunFiles for FixtureFiles<'_> {
    fn replay(&self, seqs: RangeInclusive<u64>, on_record: &mut dyn FnMut(&Record)) -> io::Result<()> {
        self.records
            .iter()
            .filter(|record| seqs.contains(&record.seq))
            .for_each(on_record);
        Ok(())
    }

    fn prompt(&self, id: AttemptId) -> io::Result<String> {
        Ok(format!(
            "# Task {}\n\nMake `cargo test` pass.\n\n1. read\n2. fix\n",
            id.iteration
        ))
    }

    fn output(&self, _id: AttemptId, from: u64, _limit: usize) -> io::Result<(Vec<u8>, u64)> {
        let bytes = b"\x1b]0;evil\x07\x1b]52;c;AAAA\x07\x1b[6n\x1b[2J\x1b[HHello\n\x1b[1;32mgreen\x1b[0m and\r\nplain \xe6\x97\xa5";
        let from = usize::try_from(from).expect("a small number").min(bytes.len());
        Ok((bytes[from..].to_vec(), bytes.len() as u64))
    }

    fn patch(&self, _from: &str, _to: &str) -> io::Result<String> {
        Ok(PATCH.to_owned())
    }

    fn save(&self, name: &str, _text: &str) -> io::Result<PathBuf> {
        Ok(PathBuf::from(name))
    }
}
