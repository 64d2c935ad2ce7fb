//! A tool, then completion: the loop as it is meant to be.

use std::fs;

use ralph::event::{IterationOutcome, ToolStatus, TranscriptEvent};

use crate::fixture::Fixture;
use crate::model::{Model, call_named, call_shell, say, think};
use crate::programs::Program;
use crate::proven_with;

proven_with!(
    two_iterations_write_a_file_and_complete,
    a_question_to_a_person_is_not_waited_for
);

fn two_iterations_write_a_file_and_complete(cli: Program) {
    let model = Model::playing(vec![
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
        ended.story()
    );
    let tools = ended
        .transcript()
        .filter(|event| matches!(event, TranscriptEvent::ToolEnd { tool } if tool.status == ToolStatus::Ok));
    assert_eq!(tools.count(), 1, "{}", ended.story());
    let shows_output = ended.transcript().any(
        |event| matches!(event, TranscriptEvent::ToolOutput { text, .. } if text.contains("from the tool")),
    );
    assert!(shows_output, "{}", ended.story());
    let spent = ended
        .transcript()
        .any(|event| matches!(event, TranscriptEvent::Usage { usage } if usage.tokens() > Some(0)));
    assert!(spent, "no usage\n{}", ended.story());
    fixture.assert_nothing_survives();
}

/// Nobody is there to answer: the tool is refused or not there, and the model goes on.
fn a_question_to_a_person_is_not_waited_for(cli: Program) {
    let tool = match cli {
        Program::Claude => "AskUserQuestion",
        Program::Codex => "request_user_input",
        Program::Gemini | Program::Copilot => "ask_user",
        Program::Opencode => "question",
    };
    let option = serde_json::json!({ "label": "Red", "description": "A colour." });
    let question = serde_json::json!({ "id": "colour", "header": "Colour", "question": "Which one?", "type": "choice",
        "multiSelect": false, "options": [option, { "label": "Blue", "description": "Another." }] });
    let arguments = serde_json::json!({ "question": "Which one?", "questions": [question] });
    let model = Model::playing(vec![vec![
        vec![call_named(tool, arguments)],
        vec![say("Then I decide myself.\nLOOP_COMPLETE")],
    ]]);
    let fixture = Fixture::new(cli, &model.url())
        .with_config(&format!("adapters:\n  {}:\n    timeout: 240", cli.name()));
    fixture.run("Choose a colour.\n").assert_code(0);
}
