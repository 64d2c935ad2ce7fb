//! A small run to look at, told in records; and a screen in memory to look at it on.

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
    Command, FORMAT_VERSION, GateResult, IterationOutcome, Json, Meta, PlanItem, PlanStatus, ProcessEnd,
    Record, Resumption, RunEvent, RunHeader, Tag, ToolEnd, ToolRef, ToolStart, ToolStatus, TopicEvent,
    TranscriptEvent, Usage,
};
use crate::ui::tui::commands::{CommandSender, SupportedCommands, UserCommand, UserCommandKind};
use crate::ui::tui::draw::{self, Scene};
use crate::ui::tui::files::Files;
use crate::ui::tui::keys::{KeyAction, KeyContext};
use crate::ui::tui::model::State;
use crate::ui::tui::run_files::{Attempt, RunFiles};
use crate::ui::tui::theme::{Colour, Theme};
use crate::ui::tui::view::{Role, View};

/// Records with their times, a second apart where nothing else is said.
pub(super) struct Story {
    pub(super) records: Vec<Record>,
    pub(super) now: Timestamp,
}

impl Story {
    pub(super) fn new() -> Self {
        let now: Timestamp = "2026-11-15T20:45:01Z".parse().expect("a time");
        let mut story = Self {
            records: Vec::new(),
            now,
        };
        story.tell(RunEvent::RunStarted(Box::new(RunHeader {
            version: FORMAT_VERSION,
            run_id: "20261115-204501-k3f9".into(),
            ralph: "0.1.0".into(),
            agent: "claude".into(),
            agent_version: Some("2.1.197".into()),
            transcript: "claude".into(),
            workspace: "/w".into(),
            max_iterations: 10,
            max_runtime_seconds: None,
            max_tokens: None,
            max_cost_usd: Some(5.0),
        })));
        story
    }

    pub(super) fn tell(&mut self, event: RunEvent) -> &mut Self {
        let seq = self.records.len() as u64 + 1;
        self.records.push(Record {
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

    pub(super) fn begin(&mut self, iteration: u64, attempt: u64) -> &mut Self {
        self.tell(RunEvent::IterationStarted {
            iteration,
            attempt,
            hat: Some("builder".into()),
            prompt_bytes: 9,
        })
    }

    pub(super) fn event(&mut self, event: TranscriptEvent) -> &mut Self {
        self.tell(RunEvent::Transcript { iteration: 1, event })
    }

    pub(super) fn say(&mut self, tag: Tag, text: &str) -> &mut Self {
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

    pub(super) fn end(&mut self, iteration: u64, attempt: u64, outcome: IterationOutcome) -> &mut Self {
        let usage = usage(40_000 + 9000 * iteration);
        self.tell(RunEvent::IterationEnded {
            iteration,
            attempt,
            outcome,
            duration_ms: 72_000,
            usage: Box::new(usage),
        })
    }

    /// One iteration that a gate refused, and a second one at work on a tool.
    pub(super) fn at_work() -> Self {
        let mut story = Self::new();
        story.begin(1, 1).say(Tag::Think, "Let me look at the tests.");
        story
            .start_tool("a", "Read", json!({"file_path": "/w/src/lib.rs"}))
            .end_tool("a", "fn one() {}\nfn two() {}\n", ToolStatus::Ok);
        story
            .say(Tag::Ai, "All done.\n\nLOOP_COMPLETE")
            .gate("test", 101)
            .end(
                1,
                1,
                IterationOutcome::Continued {
                    rejected_by: Some("test".into()),
                },
            );
        story.begin(2, 1).event(TranscriptEvent::meta(Meta::Session {
            session_id: "0a1b2c3d4e5f".into(),
            model: Some("opus".into()),
            version: None,
        }));
        story.say(
            Tag::Think,
            &"The gate says that two of the tests fail, so there is something that I have not seen. "
                .repeat(5),
        );
        story.event(TranscriptEvent::meta(Meta::Plan {
            items: vec![
                item("read the failing test", PlanStatus::Done),
                item("mend the parser", PlanStatus::Active),
                item("run everything", PlanStatus::Pending),
            ],
        }));
        story.start_tool(
            "b",
            "Bash",
            json!({"command": "cargo test parser", "timeout": 60}),
        );
        story.end_tool("b", "running 2 tests\ntest parser::empty ... ok\ntest parser::quotes ... FAILED\n\nfailures:\n    parser::quotes\n", ToolStatus::Fail);
        story.say(Tag::Ai, "## What is wrong\n\nThe parser drops the **closing** quote:\n\n```rust\nlet end = text.find('\"');\n```\n\n- `find` gives the first one\n- it should be the last one, which means that the whole of the rest has to be looked at before");
        story.tell(RunEvent::Topic {
            iteration: 2,
            event: TopicEvent {
                topic: "bug.found".into(),
                target: Some("tester".into()),
                payload: "closing quote".into(),
            },
        });
        story
            .start_tool(
                "c",
                "Edit",
                json!({"file_path": "/w/src/parser.rs", "old_string": "find", "new_string": "rfind"}),
            )
            .end_tool("c", "", ToolStatus::Ok);
        story.event(TranscriptEvent::usage(usage(52_345)));
        story
            .start_tool("d", "Bash", json!({"command": "cargo test --all"}))
            .wait(11_000);
        story
    }

    /// A run that was broken off, and goes on an hour later.
    pub(super) fn resumed() -> Self {
        let mut story = Self::at_work();
        let Some(RunEvent::RunStarted(header)) = story.records.first().map(|first| first.event.clone())
        else {
            return story;
        };
        story
            .wait(3_600_000)
            .tell(RunEvent::RunResumed(Box::new(Resumption {
                header: *header,
                iteration: 2,
                attempt: 2,
                iterations: 1,
                usage: usage(49_000),
                elapsed_ms: 0,
                changed: vec!["event_loop.max_iterations: 5 → 10".into()],
            })));
        story
            .tell(RunEvent::Progress {
                iteration: 2,
                fingerprint: "f".into(),
                unchanged: 1,
            })
            .begin(2, 2)
            .tell(RunEvent::TopicRerouted {
                iteration: 2,
                topic: "bug.found".into(),
                hat: Some("builder".into()),
                reason: "no hat claims it".into(),
            });
        story
    }

    /// What the user told the run.
    pub(super) fn order(&mut self, order: Command) -> &mut Self {
        self.tell(RunEvent::CommandReceived {
            id: "1.json".into(),
            order,
        })
    }

    pub(super) fn gate(&mut self, name: &str, code: i32) -> &mut Self {
        let command = format!("cargo {name}");
        self.tell(RunEvent::GateStarted {
            iteration: 1,
            name: name.into(),
            command,
        })
        .tell(RunEvent::GateEnded {
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
        })
    }

    pub(super) fn state(&self) -> State {
        let mut state = State::new(TimeZone::UTC);
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
        cost_usd: Some(1.25),
        model: Some("opus".into()),
        ..Usage::default()
    }
}

/// Somebody in front of a screen.
pub(super) struct Watcher<'a> {
    pub(super) story: &'a Story,
    pub(super) view: View,
    pub(super) files: Files,
    pub(super) size: (u16, u16),
}

impl<'a> Watcher<'a> {
    pub(super) fn of(story: &'a Story, width: u16, height: u16) -> Self {
        let mut view = View::new(Theme::new(Colour::Used), Role::Driver);
        view.powers = SupportedCommands::of(&EveryWish);
        Self {
            story,
            view,
            files: Files::default(),
            size: (width, height),
        }
    }

    /// What is on the screen.
    pub(super) fn look(&mut self) -> String {
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
        let state = self.story.state();
        let shelf = Told {
            records: &self.story.records,
        };
        self.files.fetch(&self.view, &state, &shelf);
        let mut terminal = Terminal::new(TestBackend::new(self.size.0, self.size.1)).expect("a screen");
        let (files, view) = (&self.files, &mut self.view);
        let scene = Scene {
            state: &state,
            files,
            now: self.story.now,
        };
        terminal
            .draw(|frame| draw::draw(frame, &scene, view))
            .expect("a frame");
        terminal
    }

    /// Presses keys as they are written, one by one, and looks after each; gives what the last one asked for.
    pub(super) fn press(&mut self, keys: &[KeyCode]) -> Option<KeyAction> {
        self.look();
        let mut deed = None;
        for key in keys {
            deed = self.hear(&Event::Key(KeyEvent::new(*key, KeyModifiers::NONE)));
        }
        deed
    }

    pub(super) fn letters(&mut self, text: &str) -> Option<KeyAction> {
        let keys: Vec<KeyCode> = text.chars().map(KeyCode::Char).collect();
        self.press(&keys)
    }

    pub(super) fn hear(&mut self, event: &Event) -> Option<KeyAction> {
        let state = self.story.state();
        let transcript = self.files.transcript(&self.view, &state);
        let deed = self.view.hear(
            event,
            &KeyContext {
                state: &state,
                transcript,
            },
        );
        self.look();
        deed
    }
}

struct Told<'a> {
    records: &'a [Record],
}

impl RunFiles for Told<'_> {
    fn replay(&self, seqs: RangeInclusive<u64>, hear: &mut dyn FnMut(&Record)) -> io::Result<()> {
        self.records
            .iter()
            .filter(|record| seqs.contains(&record.seq))
            .for_each(hear);
        Ok(())
    }

    fn prompt(&self, which: Attempt) -> io::Result<String> {
        Ok(format!(
            "# Task {}\n\nMake `cargo test` pass.\n\n1. read\n2. mend\n",
            which.iteration
        ))
    }

    fn output(&self, _which: Attempt, from: u64, _most: usize) -> io::Result<(Vec<u8>, u64)> {
        let bytes = b"\x1b]0;evil\x07\x1b]52;c;AAAA\x07\x1b[6n\x1b[2J\x1b[HHello\n\x1b[1;32mgreen\x1b[0m and\r\nplain \xe6\x97\xa5";
        let from = usize::try_from(from).expect("a small number").min(bytes.len());
        Ok((bytes[from..].to_vec(), bytes.len() as u64))
    }

    fn keep(&self, name: &str, _text: &str) -> io::Result<PathBuf> {
        Ok(PathBuf::from(name))
    }
}

/// A door that understands everything.
struct EveryWish;

impl CommandSender for EveryWish {
    fn send(&self, _wish: UserCommand) -> Result<(), String> {
        Ok(())
    }

    fn understands(&self, _kind: UserCommandKind) -> bool {
        true
    }
}
