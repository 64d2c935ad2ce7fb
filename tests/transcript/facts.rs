//! What a reader of the events must learn, checked against what the program itself said.

use ralph::event::{ErrorClass, Flow, Meta, Tag, ToolStatus, TranscriptEvent, Usage, UsageScope};

use super::fixtures::one;

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
    let mut picture = Picture::default();
    for event in one(title).read() {
        picture.take(event);
    }
    picture
}

impl Picture {
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
                UsageScope::Iteration | UsageScope::Session => self.usage = usage,
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

    fn tokens(&self) -> (Option<u64>, Option<u64>) {
        (self.usage.prompt_tokens, self.usage.completion_tokens)
    }
}

const OK: Option<ToolStatus> = Some(ToolStatus::Ok);
const FAIL: Option<ToolStatus> = Some(ToolStatus::Fail);

const LAST_OF_TOOL: &str = "Created hello.txt.\nLOOP_COMPLETE";
const LAST_OF_MULTI: &str =
    "Everything is in place.\n\n<event topic=\"build.done\">ok</event>\nLOOP_COMPLETE";

#[test]
fn claude_is_understood_whole_and_in_pieces() {
    for stream in ["stream-json", "stream-json-partial"] {
        let tool = picture(&format!("claude.{stream}.tool.stdout"));
        assert_eq!(tool.outcomes(), [(OK, "hello")]);
        assert_eq!(tool.tokens(), (Some(2401 + 600), Some(171)));
        assert_eq!(tool.last_message, LAST_OF_TOOL);
        assert!(tool.session.is_some());
        assert_eq!(tool.success, Some(true));

        let multi = picture(&format!("claude.{stream}.multi.stdout"));
        let statuses: Vec<_> = multi.outcomes().iter().map(|(status, _)| *status).collect();
        assert_eq!(statuses, [OK, OK, OK, FAIL, OK]);
        assert_eq!(multi.outcomes()[2].1, "one\ntwo");
        assert_eq!(multi.tokens(), (Some(6010 + 1500), Some(435)));
        assert_eq!(multi.usage.cost_usd, Some(0.049_950_000_000_000_01));
        assert_eq!(multi.last_message, LAST_OF_MULTI);
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
];

#[test]
fn failures_are_failures_and_of_the_right_class() {
    for (title, class) in FAILURES {
        let picture = picture(title);
        assert_ne!(picture.success, Some(true), "{title}");
        assert_eq!(picture.errors.last().copied(), *class, "{title}");
    }
}
