//! Complete loops: a tool call, then a completion marker.

use std::fs;

use ralph::event::{IterationOutcome, ToolStatus, TranscriptEvent};

use crate::fixture::Fixture;
use crate::model::{Model, call_named, call_shell, say, think};
use crate::programs::Program;
use crate::tests_for_programs;

tests_for_programs!(all: two_iterations_write_a_file_and_complete);
tests_for_programs!(a_question_to_the_user_does_not_block);

fn two_iterations_write_a_file_and_complete(cli: Program) {
    let model = Model::with_conversations(vec![
        vec![
            vec![
                think("A file is wanted."),
                say("I will write it."),
                call_shell("echo from the tool > made.txt && cat made.txt"),
            ],
            vec![say("The file is there; one thing is left to check.")],
        ],
        vec![vec![say("All is checked.\n\nLOOP_COMPLETE")]],
    ]);
    let fixture = Fixture::new(cli, &model.url());
    let ended = fixture.run("Write made.txt, then check it.\n");
    ended.assert_code(0);
    let made = fs::read_to_string(fixture.project().join("made.txt")).expect("the tool's file");
    assert_eq!(made, "from the tool\n");
    assert!(
        matches!(
            ended.outcomes()[..],
            [
                IterationOutcome::Continued { rejected_by: None },
                IterationOutcome::Completed { .. }
            ]
        ),
        "{}",
        ended.describe()
    );
    let tools = ended
        .transcript()
        .filter(|event| matches!(event, TranscriptEvent::ToolEnd { tool } if tool.status == ToolStatus::Ok));
    assert_eq!(tools.count(), 1, "{}", ended.describe());
    let shows_output = ended.transcript().any(
        |event| matches!(event, TranscriptEvent::ToolOutput { text, .. } if text.contains("from the tool")),
    );
    assert!(shows_output, "{}", ended.describe());
    let has_usage = ended
        .transcript()
        .any(|event| matches!(event, TranscriptEvent::Usage { usage } if usage.tokens() > Some(0)));
    // Kimi reports no tokens.
    assert!(
        has_usage || cli == Program::Kimi,
        "no usage\n{}",
        ended.describe()
    );
    fixture.assert_nothing_survives();
}

/// No user can answer: the program refuses or lacks the tool, and the model continues.
fn a_question_to_the_user_does_not_block(cli: Program) {
    let tool = match cli {
        Program::Claude => "AskUserQuestion",
        Program::Codex => "request_user_input",
        Program::Gemini | Program::Copilot => "ask_user",
        Program::Opencode => "question",
        Program::Qwen | Program::Pi | Program::Kimi => "ask_user_question",
    };
    let option = serde_json::json!({ "label": "Red", "description": "A color." });
    let question = serde_json::json!({ "id": "color", "header": "Color", "question": "Which one?", "type": "choice",
        "multiSelect": false, "options": [option, { "label": "Blue", "description": "Another." }] });
    let arguments = serde_json::json!({ "question": "Which one?", "questions": [question] });
    let model = Model::with_conversations(vec![vec![
        vec![call_named(tool, arguments)],
        vec![say("Then I decide myself.\nLOOP_COMPLETE")],
    ]]);
    let fixture = Fixture::new(cli, &model.url())
        .with_config(&format!("adapters:\n  {}:\n    timeout: 240", cli.name()));
    fixture.run("Choose a color.\n").assert_code(0);
}
