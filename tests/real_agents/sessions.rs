//! `session: continue`: an iteration goes on in the agent's own session of the one before it.

use ralph::event::{IterationOutcome, RunEvent};

use crate::fixture::{Ended, Fixture};
use crate::model::{Asked, Model, Reply, Role, say};
use crate::programs::Program;
use crate::proven_with;

proven_with!(
    the_second_iteration_remembers_the_first,
    a_lost_session_is_replaced_by_a_fresh_one
);
proven_with!(fresh_sessions_remember_nothing);

/// Says a word when it is first asked, and is done when it finds that word in the conversation.
fn pelican(asked: &Asked) -> Reply {
    let done = asked.remembers(Role::Model, "pelican");
    let text = if done {
        "I remember.\nLOOP_COMPLETE"
    } else {
        "The word is pelican. There is more to do."
    };
    Reply::Blocks(vec![say(text)])
}

/// Tokens of each iteration.
fn used(ended: &Ended) -> Vec<Option<u64>> {
    let used = ended.records.iter().filter_map(|record| match &record.event {
        RunEvent::IterationEnded { usage, .. } => Some(usage.tokens()),
        _ => None,
    });
    used.collect()
}

fn the_second_iteration_remembers_the_first(cli: Program) {
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
        ended.story()
    );
    let asked = model.asked();
    let last = asked.last().expect("a question");
    let prompts = last.history.iter().filter(|(role, texts)| {
        *role == Role::User && texts.iter().any(|text| text.contains("Find the word."))
    });
    assert_eq!(prompts.count(), 2, "both prompts are in the second conversation");
    // The session's figure grows; each iteration's own does not.
    assert!(used(&ended)[0] > Some(0), "{}", ended.story());
    assert_eq!(used(&ended)[0], used(&ended)[1], "{}", ended.story());
    fixture.assert_nothing_survives();
}

fn fresh_sessions_remember_nothing(cli: Program) {
    let model = Model::new(pelican);
    let ended = Fixture::new(cli, &model.url())
        .with_arguments(&["-n", "2"])
        .run("Find the word.\n");
    ended.assert_code(3);
    assert!(
        !model
            .asked()
            .iter()
            .any(|asked| asked.remembers(Role::Model, "pelican"))
    );
}

/// The first claim to be done is refused by a gate, which also throws away all sessions.
fn a_lost_session_is_replaced_by_a_fresh_one(cli: Program) {
    let model = Model::playing(vec![vec![vec![say("Done.\nLOOP_COMPLETE")]]]);
    let stores = "$HOME/.claude/projects $HOME/.codex/sessions $HOME/.codex/*.sqlite* $HOME/.gemini/tmp \
                  $HOME/.local/share/opencode $HOME/.copilot/session-state";
    let fixture = Fixture::new(cli, &model.url())
        .with_config("session: continue\ngates:\n  - name: memory")
        .with_config(&format!(
            "    run: \"test -e gone || {{ touch gone; rm -rf {stores}; exit 1; }}\""
        ));
    let ended = fixture.run("Do it.\n");
    ended.assert_code(0);
    let said = ended.records.iter().filter(|record| {
        matches!(&record.event, RunEvent::Notice { text, .. } if text.contains("could not resume its session"))
    });
    assert_eq!(said.count(), 1, "{}", ended.story());
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
    assert_eq!(numbers, [(1, 1), (2, 1), (2, 2)], "{}", ended.story());
}
