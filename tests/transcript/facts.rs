//! What a reader of the events must learn, checked against what the program itself said.

use ralph::event::{ErrorClass, Flow, Meta, Tag, ToolStatus, TranscriptEvent, Usage, UsageScope};

use serde_json::Value;

use super::fixtures::{Fixture, all, one};

/// What someone who follows the events knows at the end.
#[derive(Debug, Default)]
struct Picture {
    session: Option<String>,
    /// The text since the last message began or the last tool was called.
    last_message: String,
    tools: Vec<(String, Option<ToolStatus>, String)>,
    usage: Usage,
    success: Option<bool>,
    errors: Vec<ErrorClass>,
}

fn picture(title: &str) -> Picture {
    Picture::of(&one(title))
}

impl Picture {
    fn of(fixture: &Fixture) -> Self {
        let mut picture = Self::default();
        for event in fixture.read() {
            picture.take(event);
        }
        picture
    }

    fn take(&mut self, event: TranscriptEvent) {
        match event {
            TranscriptEvent::Text {
                tag: Tag::Ai,
                text,
                flow,
                parent: None,
            } => {
                match flow {
                    Flow::Message => self.last_message.clear(),
                    Flow::Line if !self.last_message.is_empty() => self.last_message.push('\n'),
                    Flow::Line | Flow::Delta => {}
                }
                self.last_message.push_str(&text);
            }
            TranscriptEvent::ToolStart { tool } => {
                self.last_message.clear();
                self.tools.push((tool.id, None, String::new()));
            }
            TranscriptEvent::ToolOutput { tool, text } => self.tool(&tool.id).2.push_str(&text),
            TranscriptEvent::ToolEnd { tool } => self.tool(&tool.id).1 = Some(tool.status),
            TranscriptEvent::Usage { usage } => match usage.scope {
                UsageScope::Step => self.usage.add(&usage),
                UsageScope::Iteration | UsageScope::Session => self.usage = *usage,
            },
            TranscriptEvent::Meta { meta } => self.note(meta),
            TranscriptEvent::Text { .. } => {}
        }
    }

    fn note(&mut self, meta: Meta) {
        match meta {
            Meta::Session { session_id, .. } => self.session = Some(session_id),
            Meta::Finished { success, .. } => self.success = Some(success),
            Meta::Error { class, .. } => self.errors.push(class),
            _ => {}
        }
    }

    fn tool(&mut self, id: &str) -> &mut (String, Option<ToolStatus>, String) {
        let found = self.tools.iter_mut().rev().find(|(known, ..)| known == id);
        found.expect("a tool that was started")
    }

    fn outcomes(&self) -> Vec<(Option<ToolStatus>, &str)> {
        self.tools
            .iter()
            .map(|(_, status, output)| (*status, output.as_str()))
            .collect()
    }
}

const OK: Option<ToolStatus> = Some(ToolStatus::Ok);
const FAIL: Option<ToolStatus> = Some(ToolStatus::Fail);

const LAST_OF_TOOL: &str = "Created hello.txt.\nLOOP_COMPLETE";
const LAST_OF_MULTI: &str =
    "Everything is in place.\n\n<event topic=\"build.done\">ok</event>\nLOOP_COMPLETE";

/// The two sessions that every program was captured in: one tool call, and five of which at least one fails.
struct Program {
    tool: &'static str,
    multi: &'static str,
    statuses: [Option<ToolStatus>; 5],
    /// What a successful command is shown to have printed.
    printed: &'static str,
}

const PROGRAMS: &[Program] = &[
    Program {
        tool: "claude.stream-json.tool.stdout",
        multi: "claude.stream-json.multi.stdout",
        statuses: [OK, OK, OK, FAIL, OK],
        printed: "one\ntwo",
    },
    Program {
        tool: "claude.stream-json-partial.tool.stdout",
        multi: "claude.stream-json-partial.multi.stdout",
        statuses: [OK, OK, OK, FAIL, OK],
        printed: "one\ntwo",
    },
    Program {
        tool: "codex.json.tool.stdout",
        multi: "codex.json.multi.stdout",
        statuses: [OK, OK, OK, FAIL, OK],
        printed: "one\ntwo\n",
    },
    Program {
        tool: "codex-text.human.tool.stderr",
        multi: "codex-text.human.multi.stderr",
        statuses: [OK, OK, OK, FAIL, OK],
        printed: "one\ntwo\n",
    },
    // Gemini calls a command that failed a success, and says no more.
    Program {
        tool: "gemini.stream-json.tool.stdout",
        multi: "gemini.stream-json.multi.stdout",
        statuses: [OK, OK, OK, OK, OK],
        printed: "one\ntwo",
    },
    Program {
        tool: "opencode.json.tool.stdout",
        multi: "opencode.json.multi.stdout",
        statuses: [OK, OK, OK, FAIL, OK],
        printed: "one\ntwo\n",
    },
    // Copilot would not make the missing directory, and so had no file to read.
    Program {
        tool: "copilot.json.tool.stdout",
        multi: "copilot.json.multi.stdout",
        statuses: [OK, FAIL, OK, FAIL, FAIL],
        printed: "one\ntwo\n<shellId: 1 completed with exit code 0>",
    },
];

#[test]
fn tools_messages_and_endings_are_understood() {
    for program in PROGRAMS {
        let tool = picture(program.tool);
        assert_eq!(tool.tools.len(), 1, "{}", program.tool);
        assert_eq!(tool.tools[0].1, OK, "{}", program.tool);
        assert_eq!(tool.tools[0].2.lines().next(), Some("hello"), "{}", program.tool);
        assert_eq!(tool.last_message, LAST_OF_TOOL, "{}", program.tool);
        assert_eq!(tool.success, Some(true), "{}", program.tool);

        let multi = picture(program.multi);
        let statuses: Vec<_> = multi.outcomes().iter().map(|(status, _)| *status).collect();
        assert_eq!(statuses, program.statuses, "{}", program.multi);
        assert_eq!(multi.outcomes()[2].1, program.printed, "{}", program.multi);
        assert_eq!(multi.last_message, LAST_OF_MULTI, "{}", program.multi);
        assert_eq!(multi.success, Some(true), "{}", program.multi);
    }
}

/// The objects of a JSON stream, read the slow way.
fn objects(fixture: &Fixture) -> Vec<Value> {
    fixture
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Prompt and completion tokens as the program itself gives them at the end.
fn own_figures(fixture: &Fixture) -> Option<(u64, u64)> {
    let number = |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_u64);
    let mut sum: Option<(u64, u64)> = None;
    for object in objects(fixture) {
        let kind = object["type"].as_str().unwrap_or_default();
        let figures = match (fixture.format.as_str(), kind) {
            ("claude", "result") => Some((
                number(&object, "/usage/input_tokens")?
                    + number(&object, "/usage/cache_read_input_tokens")?
                    + number(&object, "/usage/cache_creation_input_tokens")?,
                number(&object, "/usage/output_tokens")?,
            )),
            ("codex", "turn.completed") => Some((
                number(&object, "/usage/input_tokens")?,
                number(&object, "/usage/output_tokens")?,
            )),
            ("gemini", "result") => Some((
                number(&object, "/stats/input_tokens")?,
                number(&object, "/stats/output_tokens")?,
            )),
            ("opencode", "step_finish") => Some((
                number(&object, "/part/tokens/input")? + number(&object, "/part/tokens/cache/read")?,
                number(&object, "/part/tokens/output")?,
            )),
            _ => None,
        };
        if let Some((prompt, completion)) = figures {
            let (so_far, done) = sum.unwrap_or_default();
            sum = Some((so_far + prompt, done + completion));
        }
    }
    // A session that failed before any model answered has no figures worth the name.
    sum.filter(|figures| *figures != (0, 0))
}

#[test]
fn totals_are_the_programs_own() {
    let mut checked = 0;
    for fixture in all() {
        let Some((prompt, completion)) = own_figures(&fixture) else {
            continue;
        };
        let usage = Picture::of(&fixture).usage;
        let found = (usage.prompt_tokens, usage.completion_tokens);
        assert_eq!(found, (Some(prompt), Some(completion)), "{}", fixture.title());
        checked += 1;
    }
    assert!(checked > 60, "only {checked} captures have figures");
}

/// The name of the session wherever a program writes it; not that of one that could not be resumed.
fn own_session(fixture: &Fixture) -> Option<String> {
    let names = ["session_id", "thread_id", "sessionID", "sessionId"];
    let named = |object: &Value| {
        names
            .iter()
            .find_map(|name| object[*name].as_str().map(str::to_owned))
    };
    objects(fixture)
        .iter()
        .filter(|object| object["is_error"] != Value::Bool(true))
        .find_map(named)
}

#[test]
fn sessions_are_found() {
    for fixture in all().iter().filter(|fixture| fixture.text.starts_with('{')) {
        assert_eq!(
            Picture::of(fixture).session,
            own_session(fixture),
            "{}",
            fixture.title()
        );
    }
}

#[test]
fn reported_costs_are_kept() {
    let multi = picture("claude.stream-json.multi.stdout");
    assert_eq!(multi.usage.cost_usd, Some(0.049_950_000_000_000_01));
    let unpriced = picture("opencode.json.multi.stdout");
    assert_eq!(unpriced.usage.cost_usd, None);
}

#[test]
fn no_word_of_the_prompt_is_taken_for_an_answer() {
    for fixture in all().iter().filter(|fixture| fixture.format != "plain") {
        for event in fixture.read() {
            if let TranscriptEvent::Text {
                tag: Tag::Ai, text, ..
            } = event
            {
                assert!(!text.contains("described in README.md"), "{}", fixture.title());
            }
        }
    }
}

/// Captures of failures: none may look like a success, and the reason must lead to the right policy.
const FAILURES: &[(&str, Option<ErrorClass>)] = &[
    ("claude.stream-json.err400.stdout", Some(ErrorClass::TooLong)),
    ("claude.stream-json.err401.stdout", Some(ErrorClass::Auth)),
    ("claude.stream-json.err403.stdout", Some(ErrorClass::Auth)),
    ("claude.stream-json.err429.stdout", Some(ErrorClass::RateLimit)),
    ("claude.stream-json.err500.stdout", Some(ErrorClass::Overload)),
    (
        "claude.stream-json.err529-maxretries1.stdout",
        Some(ErrorClass::Overload),
    ),
    ("claude.fallback-model.stdout", Some(ErrorClass::Overload)),
    ("claude.stream-json.abort.stdout", Some(ErrorClass::Network)),
    (
        "claude.stream-json.hang-apitimeout.stdout",
        Some(ErrorClass::Network),
    ),
    ("claude.stream-json.empty.stdout", None),
    ("claude.slash-prompt.stdout", None),
    ("claude.max-turns.stdout", Some(ErrorClass::MaxTurns)),
    ("claude.max-budget.stdout", Some(ErrorClass::Budget)),
    ("claude.sleeptool.sigint.stdout", Some(ErrorClass::Other)),
    ("claude.sleeptool.sigterm.stdout", None),
    ("claude.hangmid.sigterm.stdout", None),
    ("claude.session-resume-othercwd.stdout", Some(ErrorClass::Other)),
    ("amp.documented.error.stdout", Some(ErrorClass::Auth)),
    ("codex.json.err400.stdout", Some(ErrorClass::TooLong)),
    ("codex.json.err401.stdout", Some(ErrorClass::Auth)),
    ("codex.json.err429.stdout", Some(ErrorClass::RateLimit)),
    ("codex.json.err500.stdout", Some(ErrorClass::Overload)),
    ("codex.json.err529.stdout", Some(ErrorClass::Overload)),
    ("codex.nokey.stdout", Some(ErrorClass::Auth)),
    ("codex.sleeptool.sigint.stdout", None),
    ("codex-text.human.err401.stderr", Some(ErrorClass::Auth)),
    ("codex-text.human.err429ra.stderr", Some(ErrorClass::RateLimit)),
    ("codex-text.human.empty.stderr", None),
    ("gemini.stream-json.err400.stdout", Some(ErrorClass::Auth)),
    ("gemini.stream-json.err401.stdout", Some(ErrorClass::Auth)),
    ("gemini.stream-json.err403.stdout", Some(ErrorClass::Auth)),
    ("gemini.stream-json.err429.stdout", Some(ErrorClass::RateLimit)),
    ("gemini.stream-json.err529.stdout", Some(ErrorClass::Overload)),
    ("gemini.stream-json.abort.stdout", Some(ErrorClass::Network)),
    ("gemini.stream-json.midstream.stdout", Some(ErrorClass::Network)),
    ("gemini.stream-json.loop.stdout", None),
    ("gemini.stream-json.repeat.stdout", None),
    ("gemini.hangmid.sigterm.stdout", None),
    ("gemini.sleeptool.sigterm.stdout", None),
    ("opencode.json.err400.stdout", Some(ErrorClass::TooLong)),
    ("opencode.json.err401.stdout", Some(ErrorClass::Auth)),
    ("opencode.json.err403.stdout", Some(ErrorClass::Auth)),
    ("opencode.json.err429.stdout", Some(ErrorClass::RateLimit)),
    ("opencode.json.abort.stdout", Some(ErrorClass::Network)),
    ("opencode.json.midstream.stdout", Some(ErrorClass::Overload)),
    ("opencode.json.empty.stdout", None),
    ("opencode.badmodel.stdout", Some(ErrorClass::Other)),
    ("opencode.sleeptool.sigint.stdout", None),
    ("copilot.json.err400.stdout", Some(ErrorClass::TooLong)),
    ("copilot.json.err401.stdout", Some(ErrorClass::Auth)),
    ("copilot.json.err403.stdout", Some(ErrorClass::Auth)),
    ("copilot.json.err429.stdout", Some(ErrorClass::RateLimit)),
    ("copilot.json.err500.stdout", Some(ErrorClass::Overload)),
    ("copilot.json.err529.stdout", Some(ErrorClass::Overload)),
    ("copilot.json.midstream.stdout", Some(ErrorClass::Overload)),
    ("copilot.json.empty.stdout", Some(ErrorClass::Other)),
    ("copilot.sleeptool.sigterm-group.stdout", None),
];

#[test]
fn failures_are_failures_and_of_the_right_class() {
    let fixtures = all();
    for (title, class) in FAILURES {
        let fixture = fixtures.iter().find(|fixture| fixture.title() == *title);
        let picture = Picture::of(fixture.unwrap_or_else(|| panic!("no fixture {title}")));
        assert_ne!(picture.success, Some(true), "{title}");
        assert_eq!(picture.errors.last().copied(), *class, "{title}");
    }
}
