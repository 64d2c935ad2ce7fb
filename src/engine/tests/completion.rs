//! A table of small transcripts and their verdicts, with the known causes of false and missed completion.
//!
//! A transcript has one step per line: `ai TEXT` is a message, `+TEXT` more of it in the same line, `line TEXT` the next
//! line of it, `think`, `prompt`, `user`, `sys`, `nested` a text from another source, `tool` a tool call,
//! `out TEXT` its output, `end` its end, `stderr TEXT`, `ok TEXT` the terminal event of success with the final
//! message that it repeats, `bad TEXT` that of failure, `error TEXT` an error on the way, `exit N`. `\n` in a text
//! is a line break. The default exit code is 0. A structured format ends with `ok` unless a step or `cut` prevents it.

mod cases;

use super::{header, policy};
use crate::engine::*;
use crate::event::{ErrorClass, Flow, Meta, Tag, ToolEnd, ToolRef, ToolStart, ToolStatus};

use cases::CASES;

/// The agent's output format: messages and a terminal event, or lines only.
#[derive(Clone, Copy)]
enum OutputFormat {
    Structured,
    Plain,
}

use OutputFormat::Plain;

/// The expected result of a case.
#[derive(Debug, PartialEq, Eq)]
enum CaseOutcome {
    Yes,
    /// Not done; no marker was found.
    No,
    /// A marker was found but does not count; the reason contains this text.
    Ignored(&'static str),
    /// The agent gave a failure marker.
    DeclaredFailure,
    Failed,
}

use CaseOutcome::{DeclaredFailure, Failed, Ignored, No, Yes};

const TASK: &str = "Fix the bug.\nWhen everything is done, print:\nLOOP_COMPLETE\n";

fn text(tag: Tag, text: &str, flow: Flow, parent: Option<&str>) -> Input {
    Input::Transcript(TranscriptEvent::Text {
        tag,
        text: text.into(),
        flow,
        parent: parent.map(Into::into),
    })
}

fn finished(success: bool, text: &str) -> Input {
    Input::Transcript(TranscriptEvent::meta(Meta::Finished {
        success,
        reason: None,
        text: (!text.is_empty()).then(|| text.to_owned()),
        turns: None,
        duration_ms: None,
    }))
}

/// The inputs of one line of a transcript.
fn inputs(line: &str) -> Vec<Input> {
    if let Some(more) = line.strip_prefix('+') {
        return vec![text(Tag::Ai, &unescape(more), Flow::Delta, None)];
    }
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = unescape(rest);
    let id = || "tool".to_owned();
    vec![match word {
        "ai" => text(Tag::Ai, &rest, Flow::Message, None),
        "line" => text(Tag::Ai, &rest, Flow::Line, None),
        "many" => {
            let line = || text(Tag::Ai, &rest, Flow::Line, None);
            return std::iter::repeat_with(line).take(25).collect();
        }
        "think" => text(Tag::Think, &rest, Flow::Message, None),
        "prompt" => text(Tag::Prompt, &rest, Flow::Message, None),
        "user" => text(Tag::User, &rest, Flow::Message, None),
        "sys" => text(Tag::Sys, &rest, Flow::Message, None),
        "nested" => text(Tag::Ai, &rest, Flow::Message, Some("task")),
        "tool" => Input::Transcript(TranscriptEvent::ToolStart {
            tool: ToolStart {
                id: id(),
                name: "shell".into(),
                input: None,
                parent: None,
            },
        }),
        "out" => Input::Transcript(TranscriptEvent::ToolOutput {
            tool: ToolRef { id: id() },
            text: rest,
        }),
        "end" => Input::Transcript(TranscriptEvent::ToolEnd {
            tool: ToolEnd {
                id: id(),
                status: ToolStatus::Ok,
                duration_ms: None,
            },
        }),
        "stderr" => Input::Stderr(rest),
        "ok" => finished(true, &rest),
        "bad" => finished(false, &rest),
        "error" => Input::Transcript(TranscriptEvent::meta(Meta::Error {
            class: ErrorClass::Other,
            message: rest,
            status: None,
        })),
        other => panic!("no such step: {other}"),
    }]
}

fn unescape(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\r", "\r")
}

/// Plays one iteration and returns its result.
fn verdict(format: OutputFormat, transcript: &str) -> CaseOutcome {
    let mut rules = policy();
    if let Plain = format {
        rules.agents.rules[0].transcript = TranscriptFeatures {
            messages: MessageBoundaries::LinesOnly,
            end: EndSignal::ExitOnly,
        };
    }
    let mut engine = Engine::new(rules);
    let mut emitted = Vec::new();
    let mut step_engine = |input: Input| {
        for action in engine.step(Duration::from_secs(1), input) {
            if let Action::Emit(event) = action {
                emitted.push(event);
            }
        }
    };
    step_engine(Input::Started(Box::new(header())));
    step_engine(Input::Prompt(Ok(TASK.into())));
    let (mut code, mut ended) = (0, matches!(format, Plain));
    for line in transcript.lines() {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("exit", number) => code = number.parse().expect("an exit code"),
            ("cut", _) => ended = true,
            (word, _) => {
                ended |= ["ok", "bad"].contains(&word);
                inputs(line).into_iter().for_each(&mut step_engine);
            }
        }
    }
    if !ended {
        step_engine(finished(true, ""));
    }
    step_engine(Input::AgentEnded {
        end: ProcessEnd::Exited { code }.into(),
        swept: 0,
    });
    let reason = emitted.iter().find_map(|event| match event {
        RunEvent::MarkerIgnored { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    let outcome = emitted.iter().find_map(|event| match event {
        RunEvent::IterationEnded { outcome, .. } => Some(outcome),
        _ => None,
    });
    match outcome.expect("the iteration has ended") {
        IterationOutcome::Completed { .. } => Yes,
        IterationOutcome::Continued { .. } => match reason {
            Some(reason) => Ignored(String::leak(reason)),
            None => No,
        },
        IterationOutcome::Failed {
            failure: IterationFailure::Declared { .. },
        } => DeclaredFailure,
        IterationOutcome::Failed { .. } => Failed,
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_cases_have_the_expected_outcome() {
    const { assert!(CASES.len() >= 60) };
    let mut wrong = Vec::new();
    for (format, transcript, expected) in CASES {
        let found = verdict(*format, transcript);
        let right = match (&found, expected) {
            (Ignored(reason), Ignored(part)) => reason.contains(part),
            (found, expected) => found == expected,
        };
        if !right {
            wrong.push(format!("{transcript:?}: {found:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
