//! The real agents as servers of the Agent Client Protocol.

use std::fs;

use ralph::event::{IterationOutcome, RunEvent, ToolStatus, TranscriptEvent, Usage};

use crate::fixture::{Ended, Fixture};
use crate::model::{
    ErrorReply, INPUT_TOKENS, Model, ModelRequest, OUTPUT_TOKENS, Reply, Role, call_shell, say,
};
use crate::programs::Program;
use crate::tests_for_programs;

macro_rules! tests_for_servers {
    ($($function:ident),+) => {
        tests_for_programs! { $(
            $function: gemini => Gemini, opencode => Opencode, copilot => Copilot, qwen => Qwen, kimi => Kimi;
        )+ }
    };
}

tests_for_servers!(
    acp_session_continues_with_tool_and_usage,
    acp_prompt_ends_with_ctrl_c,
    acp_agent_passes_its_test,
    acp_refused_key_ends_the_run
);

fn fixture(cli: Program, model: &Model) -> Fixture {
    Fixture::new(cli, &model.url()).with_backend(&format!("acp:{}", cli.name()))
}

/// A tool call and a word, then the end if the conversation contains that word.
fn pelican(request: &ModelRequest) -> Reply {
    Reply::Blocks(if request.contains(Role::Model, "pelican") {
        vec![say("I remember.\n\nLOOP_COMPLETE")]
    } else if request.turn == 0 {
        let call = call_shell("echo from the tool > made.txt && cat made.txt");
        vec![say("I will write it."), call]
    } else {
        vec![say("The word is pelican. There is more to do.")]
    })
}

fn tokens(ended: &Ended) -> Vec<(u64, u64)> {
    let figures = |usage: &Usage| {
        (
            usage.prompt_tokens.unwrap_or(0),
            usage.completion_tokens.unwrap_or(0),
        )
    };
    let usages = ended.records.iter().filter_map(|record| match &record.event {
        RunEvent::IterationEnded { usage, .. } => Some(figures(usage)),
        _ => None,
    });
    usages.collect()
}

fn acp_session_continues_with_tool_and_usage(cli: Program) {
    let model = Model::new(pelican);
    let fixture = fixture(cli, &model).with_config("session: continue");
    let ended = fixture.run("Find the word.\n");
    if let Program::Gemini = cli {
        // It often does not find the session of an earlier process. The run must continue with a new one.
        let resumed = ended
            .outcomes()
            .last()
            .is_some_and(|outcome| matches!(outcome, IterationOutcome::Completed { .. }));
        let restarted = ended
            .describe()
            .contains("could not resume its session; starting a new one");
        assert!(resumed || restarted, "{}", ended.describe());
        return;
    }
    ended.assert_code(0);
    let made = fs::read_to_string(fixture.project().join("made.txt"));
    assert_eq!(
        made.ok().as_deref(),
        Some("from the tool\n"),
        "{}",
        ended.describe()
    );
    assert!(
        matches!(
            ended.outcomes()[..],
            [
                IterationOutcome::Continued { .. },
                IterationOutcome::Completed { .. }
            ]
        ),
        "{}",
        ended.describe()
    );
    let good_tools = ended
        .transcript()
        .filter(|event| matches!(event, TranscriptEvent::ToolEnd { tool } if tool.status == ToolStatus::Ok));
    assert_eq!(good_tools.count(), 1, "{}", ended.describe());
    let last = model.requests().pop().expect("a request");
    let prompts = last.history.iter().filter(|(role, texts)| {
        *role == Role::User && texts.iter().any(|text| text.contains("Find the word."))
    });
    assert_eq!(prompts.count(), 2, "both prompts are in the second conversation");
    // OpenCode reports its last request only, and Kimi nothing: no figure is better than a wrong one.
    let of_requests = |count: u64| (count * INPUT_TOKENS, count * OUTPUT_TOKENS);
    let expected = match cli {
        Program::Opencode | Program::Kimi => [(0, 0), (0, 0)],
        _ => [of_requests(2), of_requests(1)],
    };
    assert_eq!(tokens(&ended), expected, "{}", ended.describe());
    fixture.assert_nothing_survives();
}

fn acp_prompt_ends_with_ctrl_c(cli: Program) {
    let model = Model::with_conversations(vec![vec![
        vec![call_shell("tail -f /dev/null")],
        vec![say("Waited.")],
    ]]);
    let fixture = fixture(cli, &model);
    let running = fixture.start(b"Wait.\n");
    running.wait_until("the tool", || {
        fixture
            .processes()
            .iter()
            .any(|line| line.starts_with("tail -f /dev/null"))
    });
    running.interrupt();
    let ended = running.end();
    ended.assert_code(130);
    assert!(
        matches!(ended.outcomes()[..], [IterationOutcome::Interrupted]),
        "{}",
        ended.describe()
    );
    fixture.assert_nothing_survives();
}

fn acp_agent_passes_its_test(cli: Program) {
    let model = Model::with_conversations(vec![vec![vec![say("pelican4711")]]]);
    let fixture = fixture(cli, &model);
    let name = format!("acp:{}", cli.name());
    let ended = fixture.ralph(&["agents", "test", &name, "--timeout", "240"]);
    ended.assert_code(0);
    // Qwen also asks the model for a title.
    let prompts = model.requests().len();
    assert!(
        prompts == 1 || (cli == Program::Qwen && prompts == 2),
        "{prompts}"
    );
    fixture.assert_nothing_survives();
}

fn acp_refused_key_ends_the_run(cli: Program) {
    let model = Model::new(|_| Reply::Error(ErrorReply::status(401)));
    let fixture = fixture(cli, &model).with_config("event_loop:\n  max_consecutive_failures: 1");
    let ended = fixture.run("Do it.\n");
    ended.assert_code(1);
    assert!(
        matches!(ended.outcomes()[..], [IterationOutcome::AuthRequired { .. }]),
        "{}",
        ended.describe()
    );
    fixture.assert_nothing_survives();
}
