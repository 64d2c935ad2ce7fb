//! `session: continue`: an iteration resumes the agent session of the previous one.

use ralph::event::{IterationOutcome, RunEvent};

use crate::fixture::{Ended, Fixture};
use crate::model::{Model, ModelRequest, Reply, Role, say};
use crate::programs::Program;
use crate::tests_for_programs;

tests_for_programs!(all: the_second_iteration_has_the_conversation_of_the_first);
tests_for_programs!(a_lost_session_is_replaced_by_a_fresh_one);
tests_for_programs!(fresh_sessions_have_no_earlier_conversation);

/// Answers with a word first, and completes when the conversation contains that word.
fn pelican(request: &ModelRequest) -> Reply {
    let done = request.contains(Role::Model, "pelican");
    let text = if done {
        "I remember.\nLOOP_COMPLETE"
    } else {
        "The word is pelican. There is more to do."
    };
    Reply::Blocks(vec![say(text)])
}

/// Returns the tokens of each iteration.
fn used(ended: &Ended) -> Vec<Option<u64>> {
    let used = ended.records.iter().filter_map(|record| match &record.event {
        RunEvent::IterationEnded { usage, .. } => Some(usage.tokens()),
        _ => None,
    });
    used.collect()
}

fn the_second_iteration_has_the_conversation_of_the_first(cli: Program) {
    let model = Model::new(pelican);
    let fixture = Fixture::new(cli, &model.url()).with_config("session: continue");
    let ended = fixture.run("Find the word.\n");
    ended.assert_code(0);
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
    let requests = model.requests();
    let last = requests.last().expect("a request");
    let prompts = last.history.iter().filter(|(role, texts)| {
        *role == Role::User && texts.iter().any(|text| text.contains("Find the word."))
    });
    assert_eq!(prompts.count(), 2, "both prompts are in the second conversation");
    // The total of the session grows; the usage of each iteration does not.
    // Kimi reports no tokens.
    assert!(
        used(&ended)[0] > Some(0) || cli == Program::Kimi,
        "{}",
        ended.describe()
    );
    assert_eq!(used(&ended)[0], used(&ended)[1], "{}", ended.describe());
    fixture.assert_nothing_survives();
}

fn fresh_sessions_have_no_earlier_conversation(cli: Program) {
    let model = Model::new(pelican);
    let ended = Fixture::new(cli, &model.url())
        .with_arguments(&["-n", "2"])
        .run("Find the word.\n");
    ended.assert_code(3);
    assert!(
        !model
            .requests()
            .iter()
            .any(|request| request.contains(Role::Model, "pelican"))
    );
}

/// A gate rejects the first completion and deletes all sessions.
fn a_lost_session_is_replaced_by_a_fresh_one(cli: Program) {
    let model = Model::with_conversations(vec![vec![vec![say("Done.\nLOOP_COMPLETE")]]]);
    let stores = "$HOME/.claude/projects $HOME/.codex/sessions $HOME/.codex/*.sqlite* $HOME/.gemini/tmp \
                  $HOME/.local/share/opencode $HOME/.copilot/session-state";
    let fixture = Fixture::new(cli, &model.url())
        .with_config("session: continue\ngates:\n  - name: memory")
        .with_config(&format!(
            "    run: \"test -e gone || {{ touch gone; rm -rf {stores}; exit 1; }}\""
        ));
    let ended = fixture.run("Do it.\n");
    ended.assert_code(0);
    let notices = ended.records.iter().filter(|record| {
        matches!(&record.event, RunEvent::Notice { text, .. } if text.contains("could not resume its session"))
    });
    assert_eq!(notices.count(), 1, "{}", ended.describe());
    let numbers: Vec<(u64, u64)> = ended
        .records
        .iter()
        .filter_map(|record| match &record.event {
            RunEvent::IterationStarted {
                iteration, attempt, ..
            } => Some((*iteration, *attempt)),
            _ => None,
        })
        .collect();
    assert_eq!(numbers, [(1, 1), (2, 1), (2, 2)], "{}", ended.describe());
}
