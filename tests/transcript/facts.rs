//! Compares the events of the captures with the data that the programs themselves report.

use ralph::event::{ErrorClass, Flow, Meta, Tag, ToolStatus, TranscriptEvent, Usage, UsageScope, Usd};

use serde_json::Value;

use super::fixtures::{Fixture, all, fixture};

/// The data that the events of a session contain.
#[derive(Debug, Default)]
struct Summary {
    session: Option<String>,
    /// The text since the start of the last message or the last tool call.
    last_message: String,
    tools: Vec<(String, Option<ToolStatus>, String)>,
    usage: Usage,
    success: Option<bool>,
    errors: Vec<ErrorClass>,
}

fn summary(title: &str) -> Summary {
    Summary::from_fixture(&fixture(title))
}

impl Summary {
    fn from_fixture(fixture: &Fixture) -> Self {
        let mut summary = Self::default();
        for event in fixture.read() {
            summary.add_event(event);
        }
        summary
    }

    fn add_event(&mut self, event: TranscriptEvent) {
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
            TranscriptEvent::Meta { meta } => self.add_meta(meta),
            TranscriptEvent::Text { .. } => {}
        }
    }

    fn add_meta(&mut self, meta: Meta) {
        match meta {
            Meta::Session { session_id, .. } => self.session = Some(session_id),
            Meta::Finished { success, .. } => self.success = Some(success),
            Meta::Error { class, .. } => self.errors.push(class),
            _ => {}
        }
    }

    fn tool(&mut self, id: &str) -> &mut (String, Option<ToolStatus>, String) {
        let found = self.tools.iter_mut().rev().find(|(tool_id, ..)| tool_id == id);
        found.expect("the tool call was started")
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

const TOOL_FINAL_MESSAGE: &str = "Created hello.txt.\nLOOP_COMPLETE";
const MULTI_FINAL_MESSAGE: &str =
    "Everything is in place.\n\n<event topic=\"build.done\">ok</event>\nLOOP_COMPLETE";

/// The two captured sessions of a program: one with a single tool call, and one with five tool calls.
struct Program {
    tool: &'static str,
    multi: &'static str,
    statuses: [Option<ToolStatus>; 5],
    /// The output of the third tool call.
    output: &'static str,
}

const PROGRAMS: &[Program] = &[
    Program {
        tool: "claude.stream-json.tool.stdout",
        multi: "claude.stream-json.multi.stdout",
        statuses: [OK, OK, OK, FAIL, OK],
        output: "one\ntwo",
    },
    Program {
        tool: "claude.stream-json-partial.tool.stdout",
        multi: "claude.stream-json-partial.multi.stdout",
        statuses: [OK, OK, OK, FAIL, OK],
        output: "one\ntwo",
    },
    Program {
        tool: "codex.json.tool.stdout",
        multi: "codex.json.multi.stdout",
        statuses: [OK, OK, OK, FAIL, OK],
        output: "one\ntwo\n",
    },
    Program {
        tool: "codex-text.human.tool.stderr",
        multi: "codex-text.human.multi.stderr",
        statuses: [OK, OK, OK, FAIL, OK],
        output: "one\ntwo\n",
    },
    // Gemini reports a failed command as a success.
    Program {
        tool: "gemini.stream-json.tool.stdout",
        multi: "gemini.stream-json.multi.stdout",
        statuses: [OK, OK, OK, OK, OK],
        output: "one\ntwo",
    },
    Program {
        tool: "opencode.json.tool.stdout",
        multi: "opencode.json.multi.stdout",
        statuses: [OK, OK, OK, FAIL, OK],
        output: "one\ntwo\n",
    },
    // Copilot did not create the missing directory, so the file to read did not exist.
    Program {
        tool: "copilot.json.tool.stdout",
        multi: "copilot.json.multi.stdout",
        statuses: [OK, FAIL, OK, FAIL, FAIL],
        output: "one\ntwo\n<shellId: 1 completed with exit code 0>",
    },
    Program {
        tool: "qwen.json.tool.stdout",
        multi: "qwen.json.multi.stdout",
        statuses: [OK, OK, OK, FAIL, OK],
        output: "one\ntwo",
    },
    // The scripted model called the tools of the next three with wrong parameters.
    Program {
        tool: "pi.json.tool.stdout",
        multi: "pi.json.multi.stdout",
        statuses: [OK, FAIL, OK, FAIL, FAIL],
        output: "one\ntwo\n",
    },
    Program {
        tool: "kimi.json.tool.stdout",
        multi: "kimi.json.multi.stdout",
        statuses: [OK, FAIL, OK, FAIL, FAIL],
        output: "one\ntwo\n",
    },
    Program {
        tool: "cline.json.tool.stdout",
        multi: "cline.json.multi.stdout",
        statuses: [OK, FAIL, OK, FAIL, FAIL],
        output: "one\ntwo\n",
    },
];

#[test]
fn tools_messages_and_results_are_parsed() {
    for program in PROGRAMS {
        let tool = summary(program.tool);
        assert_eq!(tool.tools.len(), 1, "{}", program.tool);
        assert_eq!(tool.tools[0].1, OK, "{}", program.tool);
        assert_eq!(tool.tools[0].2.lines().next(), Some("hello"), "{}", program.tool);
        assert_eq!(tool.last_message, TOOL_FINAL_MESSAGE, "{}", program.tool);
        assert_eq!(tool.success, Some(true), "{}", program.tool);

        let multi = summary(program.multi);
        let statuses: Vec<_> = multi.outcomes().iter().map(|(status, _)| *status).collect();
        assert_eq!(statuses, program.statuses, "{}", program.multi);
        assert_eq!(multi.outcomes()[2].1, program.output, "{}", program.multi);
        assert_eq!(multi.last_message, MULTI_FINAL_MESSAGE, "{}", program.multi);
        assert_eq!(multi.success, Some(true), "{}", program.multi);
    }
}

/// The objects of a JSON stream, parsed with serde.
fn objects(fixture: &Fixture) -> Vec<Value> {
    fixture
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// The prompt and completion tokens that the program reports at the end.
fn reported_usage(fixture: &Fixture) -> Option<(u64, u64)> {
    let number = |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_u64);
    let mut sum: Option<(u64, u64)> = None;
    for object in objects(fixture) {
        let kind = object["type"].as_str().unwrap_or_default();
        let figures = match (fixture.format.as_str(), kind) {
            ("claude", "result") if object["model_usage_since_last_result"].is_object() => {
                let models = object["model_usage_since_last_result"].as_object()?;
                let sum = |names: &[&str]| -> u64 {
                    let figures = models
                        .values()
                        .flat_map(|model| names.iter().map(|name| &model[*name]));
                    figures.filter_map(Value::as_u64).sum()
                };
                Some((
                    sum(&["inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"]),
                    sum(&["outputTokens"]),
                ))
            }
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
            let (prompt_sum, completion_sum) = sum.unwrap_or_default();
            sum = Some((prompt_sum + prompt, completion_sum + completion));
        }
    }
    // A session that failed before the first answer reports zeros.
    sum.filter(|figures| *figures != (0, 0))
}

#[test]
fn usage_equals_the_reported_usage() {
    let mut checked = 0;
    for fixture in all() {
        let Some((prompt, completion)) = reported_usage(&fixture) else {
            continue;
        };
        let usage = Summary::from_fixture(&fixture).usage;
        let found = (usage.prompt_tokens, usage.completion_tokens);
        assert_eq!(found, (Some(prompt), Some(completion)), "{}", fixture.title());
        checked += 1;
    }
    assert!(checked > 60, "only {checked} captures report usage");
}

/// The session id that the program reports, except that of a session that could not be resumed.
fn reported_session(fixture: &Fixture) -> Option<String> {
    let names = [
        "session_id",
        "thread_id",
        "sessionID",
        "sessionId",
        "conversation_id",
        "taskId",
    ];
    let named = |object: &Value| {
        let id = names
            .iter()
            .find_map(|name| object[*name].as_str().map(str::to_owned));
        let is_pi = fixture.format == "pi" && object["type"] == "session";
        let in_result = || object["result"]["sessionId"].as_str().map(str::to_owned);
        id.or_else(|| object["id"].as_str().filter(|_| is_pi).map(str::to_owned))
            .or_else(in_result)
    };
    objects(fixture)
        .iter()
        .filter(|object| object["is_error"] != Value::Bool(true))
        .find_map(named)
}

#[test]
fn session_ids_are_parsed() {
    for fixture in all().iter().filter(|fixture| fixture.text.starts_with('{')) {
        assert_eq!(
            Summary::from_fixture(fixture).session,
            reported_session(fixture),
            "{}",
            fixture.title()
        );
    }
}

#[test]
fn reported_costs_are_parsed() {
    let multi = summary("claude.stream-json.multi.stdout");
    assert_eq!(multi.usage.cost_usd, Usd::new(0.049_950_000_000_000_01));
    let unpriced = summary("opencode.json.multi.stdout");
    assert_eq!(unpriced.usage.cost_usd, None);
}

/// Claude Code reports the cost of a resumed session as a total of all its processes.
#[test]
fn cost_of_a_resumed_session_is_counted_once() {
    for name in ["session-first", "session-resume-2", "session-resume-3"] {
        let usage = summary(&format!("claude.2.1.327.{name}.stdout")).usage;
        assert_eq!(usage.cost_usd, Usd::new(0.00656), "{name}");
        assert_eq!(
            (usage.prompt_tokens, usage.completion_tokens),
            (Some(1500), Some(85))
        );
    }
}

#[test]
fn usage_includes_subagents() {
    let usage = summary("claude.2.1.327.stream-json.sub.stdout").usage;
    assert_eq!(
        (usage.prompt_tokens, usage.completion_tokens),
        (Some(7502), Some(427))
    );
    assert_eq!(usage.cost_usd, Usd::new(0.032848));
}

/// The results of both turns arrive at the end.
#[test]
fn answers_of_earlier_turns_are_shown_once_and_in_order() {
    let mut answers = Vec::new();
    let mut repeated = Vec::new();
    for event in fixture("claude.2.1.327.stream-json.sub.stdout").read() {
        match event {
            TranscriptEvent::Text {
                tag: Tag::Ai,
                text,
                parent: None,
                ..
            } => answers.push(text),
            TranscriptEvent::Meta {
                meta: Meta::Finished { text, .. },
            } => repeated.push(text),
            _ => {}
        }
    }
    let last = "The helper said 77 indeed.\nLOOP_COMPLETE";
    assert_eq!((answers.len(), answers[2].as_str()), (3, last));
    assert_eq!(answers[0], "Delegating.");
    assert_eq!(repeated.len(), 2);
    assert_eq!(repeated[1].as_deref(), Some(last));
}

#[test]
fn background_tasks_are_reported() {
    let events = fixture("claude.2.1.327.stream-json.bgbash.stdout").read();
    let tasks: Vec<Vec<String>> = events
        .iter()
        .filter_map(|event| match event {
            TranscriptEvent::Meta {
                meta: Meta::BackgroundTasks { tasks },
            } => Some(tasks.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(tasks, [vec!["run tests".to_owned()], Vec::new()]);
    let notes: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            TranscriptEvent::Text {
                tag: Tag::Sys, text, ..
            } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        notes,
        ["Background command \"run tests\" completed (exit code 0)"]
    );
}

/// Without a result, only the figure at the start of each message is known, and it is not the number of its tokens.
#[test]
fn completion_tokens_of_an_interrupted_session_are_unknown() {
    let usage = summary("claude.hangmid.sigterm.stdout").usage;
    assert_eq!(
        (usage.prompt_tokens.is_some(), usage.completion_tokens),
        (true, None)
    );
}

#[test]
fn prompt_is_not_part_of_the_answer() {
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

/// Captures of failed sessions and the class of their last error.
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
    (
        "claude.2.1.327.stream-json.refusal.stdout",
        Some(ErrorClass::Refused),
    ),
    (
        "claude.2.1.327.stream-json.maxtok.stdout",
        Some(ErrorClass::Other),
    ),
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
    ("agy.documented.error.stdout", Some(ErrorClass::RateLimit)),
    ("qwen.json.err400.stdout", Some(ErrorClass::TooLong)),
    ("qwen.json.err401.stdout", Some(ErrorClass::Auth)),
    ("qwen.json.empty.stdout", Some(ErrorClass::Other)),
    ("pi.json.err400.stdout", Some(ErrorClass::TooLong)),
    ("pi.json.err401.stdout", Some(ErrorClass::Auth)),
    ("pi.json.err429.stdout", Some(ErrorClass::RateLimit)),
    ("pi.json.abort.stdout", Some(ErrorClass::Network)),
    ("pi.json.empty.stdout", None),
    ("cline.json.err401.stdout", Some(ErrorClass::Auth)),
    ("cline.json.empty.stdout", Some(ErrorClass::Other)),
];

#[test]
fn failed_sessions_are_failures_of_the_right_class() {
    let fixtures = all();
    for (title, class) in FAILURES {
        let fixture = fixtures.iter().find(|fixture| fixture.title() == *title);
        let summary = Summary::from_fixture(fixture.unwrap_or_else(|| panic!("no fixture {title}")));
        assert_ne!(summary.success, Some(true), "{title}");
        assert_eq!(summary.errors.last().copied(), *class, "{title}");
    }
}
