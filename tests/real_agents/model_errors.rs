//! What goes wrong at the model's end has its own outcome and its own words, whatever the program makes of it.

use jiff::Timestamp;
use ralph::event::{
    ErrorClass, Failure, IterationOutcome, Level, Meta, RunEvent, TimeLimit, TranscriptEvent,
};

use crate::fixture::{Ended, Fixture};
use crate::model::{Model, Reply, Trouble, nobody, say};
use crate::programs::Program;
use crate::proven_with;

proven_with!(
    a_refused_key_ends_the_run,
    a_forbidden_account_ends_the_run,
    a_bad_request_fails
);
proven_with!(
    a_prompt_too_long_for_the_model_fails,
    an_overloaded_model_recovers,
    nobody_listens
);
proven_with!(a_rate_limit_is_waited_for, a_stated_reset_is_waited_for);

/// One failed iteration ends the run; and where a program's patience can be shortened, it is.
fn impatient(fixture: Fixture) -> Fixture {
    fixture
        .with_env("CLAUDE_CODE_MAX_RETRIES", "1")
        .with_config("event_loop:\n  max_consecutive_failures: 1")
}

fn refused_with(cli: Program, trouble: Trouble) -> Ended {
    let model = Model::new(move |_| Reply::Trouble(trouble.clone()));
    impatient(Fixture::new(cli, &model.url())).run("Do it.\n")
}

fn assert_auth_required(ended: &Ended) {
    ended.assert_code(1);
    assert!(
        matches!(ended.outcomes()[..], [IterationOutcome::AuthRequired { .. }]),
        "{}",
        ended.story()
    );
}

fn a_refused_key_ends_the_run(cli: Program) {
    let ended = refused_with(cli, Trouble::status(401));
    assert_auth_required(&ended);
    let hint = ralph::agent::AGENTS
        .iter()
        .find(|agent| agent.name == cli.name())
        .expect("a row")
        .auth_hint;
    assert!(ended.stdout.contains(hint), "no hint\n{}", ended.story());
}

fn a_forbidden_account_ends_the_run(cli: Program) {
    assert_auth_required(&refused_with(cli, Trouble::status(403)));
}

fn failure(ended: &Ended) -> &Failure {
    ended.assert_code(1);
    match ended.outcomes()[..] {
        [IterationOutcome::Failed { failure }] => failure,
        _ => panic!("{}", ended.story()),
    }
}

fn message(failure: &Failure) -> &str {
    match failure {
        Failure::Exit { message, .. } | Failure::AgentError { message } => message,
        Failure::Declared { .. }
        | Failure::NoOutput
        | Failure::NoTerminalEvent
        | Failure::OutsideAllowedPaths { .. } => "",
    }
}

fn a_bad_request_fails(cli: Program) {
    let ended = refused_with(cli, Trouble::status(400).saying("tools.3: unknown field zebra"));
    assert!(message(failure(&ended)).contains("zebra"), "{}", ended.story());
}

fn a_prompt_too_long_for_the_model_fails(cli: Program) {
    // One of them would try to make it shorter for ever.
    let ended = refused_with(cli, Trouble::status(400));
    let said = message(failure(&ended)).to_lowercase();
    let telling = ["too long", "context window", "exceeds the maximum"];
    assert!(
        telling.iter().any(|words| said.contains(words)),
        "{}",
        ended.story()
    );
}

/// Two refusals, then an answer: the program tries again by itself, and the iteration is a good one.
fn an_overloaded_model_recovers(cli: Program) {
    let model = Model::new(|asked| match asked.number {
        0 | 1 => Reply::Trouble(Trouble::status(529)),
        _ => Reply::Blocks(vec![say("Recovered.\nLOOP_COMPLETE")]),
    });
    let ended = Fixture::new(cli, &model.url()).run("Do it.\n");
    ended.assert_code(0);
    let completed = ended
        .outcomes()
        .iter()
        .filter(|outcome| matches!(outcome, IterationOutcome::Completed { .. }))
        .count();
    assert_eq!(completed, 1, "{}", ended.story());
}

fn nobody_listens(cli: Program) {
    if cli == Program::Codex {
        let waited = [12, 60, 180]
            .iter()
            .any(|seconds| waits_for_the_network(cli, *seconds));
        assert!(waited, "it said nothing of waiting");
        return;
    }
    let ended = impatient(Fixture::new(cli, &nobody())).run("Do it.\n");
    let said = message(failure(&ended)).to_lowercase();
    let telling = ["connect", "refused", "fetch", "network", "sending request"];
    assert!(
        telling.iter().any(|words| said.contains(words)),
        "{said}\n{}",
        ended.story()
    );
}

/// One of them waits for the network by itself, for as long as it may, and says so, if it gets so far.
fn waits_for_the_network(cli: Program, seconds: u64) -> bool {
    let ended = impatient(Fixture::new(cli, &nobody()))
        .with_config(&format!("adapters:\n  codex:\n    timeout: {seconds}"))
        .run("Do it.\n");
    ended.assert_code(1);
    assert!(
        matches!(
            ended.outcomes()[..],
            [IterationOutcome::TimedOut {
                limit: TimeLimit::Wall,
                ..
            }]
        ),
        "{}",
        ended.story()
    );
    ended.transcript().any(|event| {
        matches!(
            event,
            TranscriptEvent::Meta {
                meta: Meta::Retry {
                    class: ErrorClass::Network,
                    ..
                }
            }
        )
    })
}

/// Limited once, then free: the same iteration again, not counted.
fn a_rate_limit_is_waited_for(cli: Program) {
    let model = Model::new(|_| Reply::Trouble(Trouble::status(429)));
    let fixture = impatient(Fixture::new(cli, &model.url()));
    let running = fixture.start(b"Do it.\n");
    running.wait_until_journal("rate_limited");
    running.interrupt();
    let ended = running.end();
    ended.assert_code(130);
    assert!(
        matches!(ended.outcomes()[..], [IterationOutcome::RateLimited { .. }]),
        "{}",
        ended.story()
    );
    fixture.assert_nothing_survives();
}

/// The words and headers with which each service says when its limit ends.
fn limited_until(cli: Program, reset: Timestamp) -> Trouble {
    let seconds = reset.duration_since(Timestamp::now()).as_secs().max(1);
    let trouble = Trouble::status(429);
    match cli {
        Program::Claude => trouble
            .header("anthropic-ratelimit-unified-status", "rejected")
            .header("anthropic-ratelimit-unified-reset", reset.as_second())
            .header("anthropic-ratelimit-unified-representative-claim", "five_hour")
            .header("retry-after", seconds),
        Program::Codex => trouble
            .with("type", "usage_limit_reached")
            .with("resets_at", reset.as_second()),
        Program::Gemini | Program::Opencode | Program::Copilot => trouble.header("retry-after", seconds),
    }
}

/// Some time soon; on the minute for the one that tells no seconds.
fn soon(cli: Program) -> Timestamp {
    let soon = Timestamp::now().as_second();
    let reset = match cli {
        Program::Codex => (soon + 30).div_euclid(60) * 60 + 60,
        Program::Claude | Program::Gemini | Program::Opencode | Program::Copilot => soon + 40,
    };
    Timestamp::from_second(reset).expect("a time")
}

fn a_stated_reset_is_waited_for(cli: Program) {
    let reset = soon(cli);
    let model = Model::new(move |_| {
        if Timestamp::now() < reset {
            Reply::Trouble(limited_until(cli, reset))
        } else {
            Reply::Blocks(vec![say("Free again.\nLOOP_COMPLETE")])
        }
    });
    let mut fixture = Fixture::new(cli, &model.url());
    if cli == Program::Claude {
        // Only those who have a subscription are told when it is theirs again.
        fixture = fixture
            .without_env("ANTHROPIC_API_KEY")
            .with_env("CLAUDE_CODE_OAUTH_TOKEN", "not-a-token");
    }
    let ended = fixture.run("Do it.\n");
    ended.assert_code(0);
    assert!(
        matches!(ended.outcomes().last(), Some(IterationOutcome::Completed { .. })),
        "{}",
        ended.story()
    );
    assert!(Timestamp::now() >= reset);
    let warned = ended.records.iter().any(|record| {
        matches!(
            &record.event,
            RunEvent::Notice {
                level: Level::Error,
                ..
            }
        )
    });
    assert!(!warned, "{}", ended.story());
    let stated = ended.outcomes().iter().any(|outcome| {
        matches!(outcome, IterationOutcome::RateLimited { resets_at: Some(at), .. } if at.as_second() == reset.as_second())
    });
    if matches!(cli, Program::Claude | Program::Codex) {
        assert!(stated, "{}", ended.story());
    }
}
