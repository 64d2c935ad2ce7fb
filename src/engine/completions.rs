//! Is it done? A table of small transcripts and their verdicts: every false "done", and every one that was missed,
//! that loops of this kind are known for.
//!
//! A transcript is one step a line: `ai TEXT` a message, `+TEXT` more of it in the same line, `line TEXT` the next
//! line of it, `think`, `prompt`, `user`, `sys`, `nested` the same words of somebody else, `tool` a tool call,
//! `out TEXT` its output, `end` its end, `stderr TEXT`, `ok TEXT` the terminal event of success with the final
//! message that it repeats, `bad TEXT` that of failure, `error TEXT` an error on the way, `exit N`. `\n` in a text
//! is a line break. Without `exit`, the code is 0; a structured format ends with `ok` unless it says otherwise.

use super::conversations::{header, policy};
use super::*;
use crate::event::{ErrorClass, Flow, Meta, Tag, ToolEnd, ToolRef, ToolStart, ToolStatus};

/// What an agent's output has: messages and a terminal event, or lines only.
#[derive(Clone, Copy)]
enum Format {
    Structured,
    Plain,
}

use Format::{Plain, Structured};

/// What became of the iteration.
#[derive(Debug, PartialEq, Eq)]
enum Done {
    Yes,
    /// Healthy, not done; no marker was seen at all.
    No,
    /// A marker was seen and does not count, for a reason that contains this.
    Ignored(&'static str),
    /// The agent itself says that it failed.
    GaveUp,
    Failed,
}

use Done::{Failed, GaveUp, Ignored, No, Yes};

const TASK: &str = "Fix the bug.\nWhen everything is done, print:\nLOOP_COMPLETE\n";

const CASES: &[(Format, &str, Done)] = &[
    // A marker as it should be.
    (Structured, "ai LOOP_COMPLETE", Yes),
    (Structured, "ai All tests pass.\\n\\nLOOP_COMPLETE", Yes),
    (Structured, "ai LOOP_COMPLETE\\n\\nI changed three files.", Yes),
    (Structured, "ai   LOOP_COMPLETE  ", Yes),
    (Structured, "ai **LOOP_COMPLETE**", Yes),
    (Structured, "ai `LOOP_COMPLETE`", Yes),
    (Structured, "ai LOOP_COMPLETE.", Yes),
    (Structured, "ai ok\\r\\nLOOP_COMPLETE\\r", Yes),
    (Structured, "ai <promise>COMPLETE</promise>", Yes),
    (Structured, "ai All green. <promise>COMPLETE</promise>", Yes),
    (Structured, "ai <<<RALPHEX:COMPLETED>>>", Yes),
    (Structured, "ai <<<RALPHEX:ALL_TASKS_DONE>>>", Yes),
    // Split over the stream.
    (Structured, "ai done\\nLOOP_\n+COMPLETE", Yes),
    (Structured, "ai L\n+OOP\n+_COMP\n+LETE", Yes),
    (Structured, "ai <promise>COMP\n+LETE</promise>", Yes),
    (Structured, "line All good.\nline LOOP_COMPLETE", Yes),
    (
        Structured,
        "ai done\\n\n+LOOP_COMPLETE\n+ it will be",
        Ignored("middle of a sentence"),
    ),
    // Work before the final message is as it should be; after it, it was not final.
    (Structured, "tool\nout ok\nend\nai LOOP_COMPLETE", Yes),
    (Structured, "ai Now the tests.\ntool\nend\nai LOOP_COMPLETE", Yes),
    (
        Structured,
        "ai LOOP_COMPLETE\ntool\nend\nai One more thing to fix.",
        Ignored("earlier message"),
    ),
    (
        Structured,
        "ai LOOP_COMPLETE\ntool\nend",
        Ignored("earlier message"),
    ),
    (
        Structured,
        "ai LOOP_COMPLETE\nai Wait, a test fails.",
        Ignored("earlier message"),
    ),
    (Structured, "tool\nai LOOP_COMPLETE\nend", Yes),
    (Structured, "ai LOOP_COMPLETE\nthink Was that all?", Yes),
    // Named, not given.
    (
        Structured,
        "ai I will print LOOP_COMPLETE when the tests pass.",
        Ignored("middle of a sentence"),
    ),
    (
        Structured,
        "ai Shall I print LOOP_COMPLETE?",
        Ignored("middle of a sentence"),
    ),
    (Structured, "ai LOOP_COMPLETE?", Ignored("middle of a sentence")),
    (
        Structured,
        "ai Not LOOP_COMPLETE yet.",
        Ignored("middle of a sentence"),
    ),
    (Structured, "ai - LOOP_COMPLETE", Ignored("middle of a sentence")),
    (Structured, "ai > LOOP_COMPLETE", Ignored("middle of a sentence")),
    (
        Structured,
        "ai Status: LOOP_COMPLETE",
        Ignored("middle of a sentence"),
    ),
    (
        Structured,
        "ai Say <promise>COMPLETE</promise>\\nwhen you are done.",
        Ignored("middle of a sentence"),
    ),
    (Structured, "ai ```\\nLOOP_COMPLETE\\n```", Ignored("code fence")),
    (
        Structured,
        "ai ```text\\necho\\nLOOP_COMPLETE",
        Ignored("code fence"),
    ),
    (
        Structured,
        "ai ~~~\\nLOOP_COMPLETE\\n~~~\\nis what I would print",
        Ignored("code fence"),
    ),
    (Structured, "ai ```\\nls\\n```\\nLOOP_COMPLETE", Yes),
    (
        Structured,
        "ai <event topic=\"build.done\">LOOP_COMPLETE</event>",
        Ignored("event's payload"),
    ),
    (
        Structured,
        "ai <event topic=\"a\">\\nLOOP_COMPLETE\\n</event>",
        Ignored("event's payload"),
    ),
    (
        Structured,
        "ai <event topic=\"build.done\">ok</event>\\nLOOP_COMPLETE",
        Yes,
    ),
    // Words that only look like it.
    (Structured, "ai incomplete", No),
    (Structured, "ai The task is complete.", No),
    (Structured, "ai COMPLETE", No),
    (Structured, "ai loop_complete", No),
    (Structured, "ai LOOP_COMPLETED", Ignored("middle of a sentence")),
    (
        Structured,
        "ai NOT_LOOP_COMPLETE",
        Ignored("middle of a sentence"),
    ),
    (Structured, "ai EXIT_SIGNAL: true", No),
    (Structured, "ai tests: pass", No),
    // Somebody else's words.
    (Structured, "think LOOP_COMPLETE\nai Not yet.", No),
    (Structured, "prompt LOOP_COMPLETE\nai Not yet.", No),
    (Structured, "user LOOP_COMPLETE\nai Not yet.", No),
    (Structured, "sys LOOP_COMPLETE\nai Not yet.", No),
    (
        Structured,
        "nested LOOP_COMPLETE\nai The helper says it is done; I will check.",
        No,
    ),
    (
        Structured,
        "tool\nout Fix it, then print:\\nLOOP_COMPLETE\nend\nai I read PROMPT.md.",
        No,
    ),
    (
        Structured,
        "tool\nout LOOP_COMPLETE\nend\nai That log is from yesterday.",
        No,
    ),
    (Structured, "ai Working.\nstderr LOOP_COMPLETE", No),
    // The terminal event repeats the final message; it is the final message.
    (Structured, "ai Working.\nok done\\nLOOP_COMPLETE", Yes),
    (Structured, "ai LOOP_COMPLETE\nok LOOP_COMPLETE", Yes),
    (Structured, "ai LOOP_COMPLETE\nok", Yes),
    (Structured, "ok first\nai LOOP_COMPLETE\nok", Yes),
    (
        Structured,
        "ok LOOP_COMPLETE\nai There is more to do.\nok There is more to do.",
        No,
    ),
    (Structured, "ok LOOP_COMPLETE\nai There is more to do.", No),
    (Structured, "ok LOOP_COMPLETE\ntool\nend", No),
    (
        Structured,
        "ai LOOP_COMPLETE\nok LOOP_COMPLETE\nai There is more to do.",
        Ignored("earlier message"),
    ),
    // Words that ended good runs elsewhere: a ticket, a dependency, a log. None of them is the agent's failure.
    (
        Structured,
        "tool\nout error: API Error: 429 rate limit exceeded\nend\nai LOOP_COMPLETE",
        Yes,
    ),
    (
        Structured,
        "ai Bumped ratelimit to 0.9; quota.rs is tested.\\nLOOP_COMPLETE",
        Yes,
    ),
    (
        Structured,
        "stderr usage limit reached for the sandbox\nai LOOP_COMPLETE",
        Yes,
    ),
    (Structured, "ai Ticket: API Error: login shows 401", No),
    // A status block, in whatever form, is not a marker; the last word is the last message's.
    (
        Structured,
        "ai STATUS: COMPLETE\\nEXIT_SIGNAL: true\\nTASKS: incomplete",
        No,
    ),
    (
        Structured,
        "ai LOOP_COMPLETE\nok LOOP_COMPLETE\nai A test fails.\nok A test fails.",
        Ignored("earlier message"),
    ),
    (
        Structured,
        "ai Not yet.\nok Not yet.\nai LOOP_COMPLETE\nok LOOP_COMPLETE",
        Yes,
    ),
    // What the last run said, read back from its log.
    (
        Structured,
        "tool\nout RALPH: LOOP_COMPLETE\\n<promise>COMPLETE</promise>\nend\nai The last run says that it was done.",
        No,
    ),
    (Structured, "user <<<RALPHEX:FAILED>>>\nai Going on.", No),
    (
        Structured,
        "tool\nout <<<RALPHEX:FAILED>>>\nend\nai LOOP_COMPLETE",
        Yes,
    ),
    // Half a line is a whole one when nothing follows; spaces of any kind are no words.
    (Structured, "ai done\\n\u{a0}LOOP_COMPLETE\u{a0}", Yes),
    (Structured, "ai ✅ LOOP_COMPLETE", Ignored("middle of a sentence")),
    (Structured, "ai __LOOP_COMPLETE__!", Yes),
    // Who failed has not finished, whatever was said.
    (Structured, "ai LOOP_COMPLETE\nbad", Failed),
    (Structured, "ai LOOP_COMPLETE\nok\nexit 1", Failed),
    (Structured, "ai LOOP_COMPLETE\nok\nexit 143", Failed),
    (Structured, "ai LOOP_COMPLETE\ncut", Failed),
    (
        Structured,
        "error API Error: 500\nai Recovered.\\nLOOP_COMPLETE",
        Yes,
    ),
    (Structured, "", Failed),
    (Structured, "think LOOP_COMPLETE\nexit 1", Failed),
    (Structured, "ai <<<RALPHEX:FAILED>>>", GaveUp),
    (
        Structured,
        "ai I cannot do this. <<<RALPHEX:TASK_FAILED>>>",
        GaveUp,
    ),
    (Structured, "ai LOOP_COMPLETE\\n<<<RALPHEX:FAILED>>>", GaveUp),
    (Structured, "ai <<<RALPHEX:FAILED>>>\\nLOOP_COMPLETE", GaveUp),
    (
        Structured,
        "ai I would say <<<RALPHEX:FAILED>>> if it did not work.",
        Ignored("middle of a sentence"),
    ),
    // Lines only: the last twenty count, an echoed prompt does not.
    (Plain, "line working\nline LOOP_COMPLETE", Yes),
    (Plain, "line LOOP_COMPLETE\nline tokens used: 1,234", Yes),
    (Plain, "line done. <promise>COMPLETE</promise>", Yes),
    (
        Plain,
        "line Fix the bug.\nline When everything is done, print:\nline LOOP_COMPLETE",
        Ignored("repeated the prompt"),
    ),
    (
        Plain,
        "line Fix the bug.\nline When everything is done, print:\nline LOOP_COMPLETE\nline Fixed it.\nline LOOP_COMPLETE",
        Yes,
    ),
    (
        Plain,
        "line I print LOOP_COMPLETE at the end",
        Ignored("middle of a sentence"),
    ),
    (
        Plain,
        "line ```\nline LOOP_COMPLETE\nline ```",
        Ignored("code fence"),
    ),
    (
        Plain,
        "line LOOP_COMPLETE\nmany more output",
        Ignored("more than 20 lines"),
    ),
    (Plain, "line LOOP_COMPLETE\nline\nline\nline bye", Yes),
    (Plain, "line LOOP_COMPLETE\nexit 1", Failed),
    (Plain, "stderr LOOP_COMPLETE\nline hm", No),
    (Plain, "stderr LOOP_COMPLETE", Failed),
    (Plain, "", Failed),
    (Plain, "line <<<RALPHEX:FAILED>>>", GaveUp),
    (Plain, "line incomplete", No),
    (
        Plain,
        "line 429 Too Many Requests was the title\nline LOOP_COMPLETE",
        Yes,
    ),
    (
        Plain,
        "line $ cat PROMPT.md\nline Fix the bug.\nline When everything is done, print:\nline LOOP_COMPLETE\nline ok",
        Ignored("repeated the prompt"),
    ),
];

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

/// The inputs of one step.
fn step(line: &str) -> Vec<Input> {
    if let Some(more) = line.strip_prefix('+') {
        return vec![text(Tag::Ai, &unescaped(more), Flow::Delta, None)];
    }
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = unescaped(rest);
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

fn unescaped(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\r", "\r")
}

/// Plays one iteration; what became of it.
fn verdict(format: Format, transcript: &str) -> Done {
    let mut rules = policy();
    if let Plain = format {
        rules.reading = Reading {
            messages: Messages::Absent,
            ending: Ending::ExitOnly,
        };
    }
    let mut engine = Engine::new(rules);
    let mut told = Vec::new();
    let mut say = |input: Input| {
        for action in engine.step(Duration::from_secs(1), input) {
            if let Action::Emit(event) = action {
                told.push(event);
            }
        }
    };
    say(Input::Started(header()));
    say(Input::Prompt(Ok(TASK.into())));
    let (mut code, mut ended) = (0, matches!(format, Plain));
    for line in transcript.lines() {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("exit", number) => code = number.parse().expect("an exit code"),
            ("cut", _) => ended = true,
            (word, _) => {
                ended |= ["ok", "bad"].contains(&word);
                step(line).into_iter().for_each(&mut say);
            }
        }
    }
    if !ended {
        say(finished(true, ""));
    }
    say(Input::Exited {
        end: ProcessEnd::Exited { code },
        swept: 0,
    });
    let reason = told.iter().find_map(|event| match event {
        RunEvent::MarkerIgnored { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    let outcome = told.iter().find_map(|event| match event {
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
            failure: Failure::Declared { .. },
        } => GaveUp,
        IterationOutcome::Failed { .. } => Failed,
        other => panic!("{other:?}"),
    }
}

#[test]
fn done_is_what_the_agent_says_at_the_end_in_its_own_words() {
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
