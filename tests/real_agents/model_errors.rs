//! Errors of the model have the same outcome with every program.

use jiff::Timestamp;
use ralph::event::{
    ErrorClass, IterationFailure, IterationOutcome, Meta, NoticeLevel, RunEvent, TimeLimit, TranscriptEvent,
};

use crate::fixture::{Ended, Fixture};
use crate::model::{ErrorReply, Model, Reply, say, unreachable_url};
use crate::programs::Program;
use crate::tests_for_programs;

tests_for_programs!(all: a_refused_key_ends_the_run);
tests_for_programs!(a_forbidden_account_ends_the_run, a_bad_request_fails);
tests_for_programs!(
    a_prompt_too_long_for_the_model_fails,
    an_overloaded_model_recovers,
    an_unreachable_model_fails
);
tests_for_programs!(a_rate_limit_is_waited_for, a_stated_reset_is_waited_for);

/// One failed iteration ends the run; programs retry less if they can be configured to.
fn with_few_retries(fixture: Fixture) -> Fixture {
    fixture
        .with_env("CLAUDE_CODE_MAX_RETRIES", "1")
        .with_config("event_loop:\n  max_consecutive_failures: 1")
}

fn refused_with(cli: Program, error: ErrorReply) -> Ended {
    let model = Model::new(move |_| Reply::Error(error.clone()));
    with_few_retries(Fixture::new(cli, &model.url())).run("Do it.\n")
}

fn assert_auth_required(ended: &Ended) {
    ended.assert_code(1);
    assert!(
        matches!(ended.outcomes()[..], [IterationOutcome::AuthRequired { .. }]),
        "{}",
        ended.describe()
    );
}

fn a_refused_key_ends_the_run(cli: Program) {
    let ended = refused_with(cli, ErrorReply::status(401));
    assert_auth_required(&ended);
    let hint = ralph::agent::AGENTS
        .iter()
        .find(|agent| agent.name == cli.name())
        .expect("a row")
        .auth_hint;
    assert!(ended.stdout.contains(hint), "no hint\n{}", ended.describe());
}

fn a_forbidden_account_ends_the_run(cli: Program) {
    assert_auth_required(&refused_with(cli, ErrorReply::status(403)));
}

fn failure(ended: &Ended) -> &IterationFailure {
    ended.assert_code(1);
    match ended.outcomes()[..] {
        [IterationOutcome::Failed { failure }] => failure,
        _ => panic!("{}", ended.describe()),
    }
}

fn message(failure: &IterationFailure) -> &str {
    match failure {
        IterationFailure::Exit { message, .. }
        | IterationFailure::AgentError { message }
        | IterationFailure::Refused { message } => message,
        IterationFailure::Declared { .. }
        | IterationFailure::NoOutput
        | IterationFailure::NoTerminalEvent
        | IterationFailure::DisallowedTool { .. }
        | IterationFailure::TooMuchOutput { .. }
        | IterationFailure::PathsNotChecked { .. }
        | IterationFailure::OutsideAllowedPaths { .. } => "",
    }
}

fn a_bad_request_fails(cli: Program) {
    let ended = refused_with(
        cli,
        ErrorReply::status(400).with_message("tools.3: unknown field zebra"),
    );
    assert!(message(failure(&ended)).contains("zebra"), "{}", ended.describe());
}

fn a_prompt_too_long_for_the_model_fails(cli: Program) {
    // Without a limit one of the programs compacts the prompt forever.
    let ended = refused_with(cli, ErrorReply::status(400));
    let message = message(failure(&ended)).to_lowercase();
    let expected = ["too long", "context window", "exceeds the maximum"];
    assert!(
        expected.iter().any(|words| message.contains(words)),
        "{}",
        ended.describe()
    );
}

/// Two errors, then a reply: the program retries and the iteration completes.
fn an_overloaded_model_recovers(cli: Program) {
    let model = Model::new(|request| match request.number {
        0 | 1 => Reply::Error(ErrorReply::status(529)),
        _ => Reply::Blocks(vec![say("Recovered.\nLOOP_COMPLETE")]),
    });
    let ended = Fixture::new(cli, &model.url()).run("Do it.\n");
    ended.assert_code(0);
    let completed = ended
        .outcomes()
        .iter()
        .filter(|outcome| matches!(outcome, IterationOutcome::Completed { .. }))
        .count();
    assert_eq!(completed, 1, "{}", ended.describe());
}

fn an_unreachable_model_fails(cli: Program) {
    if cli == Program::Codex {
        let waited = [12, 60, 180]
            .iter()
            .any(|seconds| waits_for_the_network(cli, *seconds));
        assert!(waited, "no retry was reported");
        return;
    }
    let ended = with_few_retries(Fixture::new(cli, &unreachable_url())).run("Do it.\n");
    let message = message(failure(&ended)).to_lowercase();
    let expected = ["connect", "refused", "fetch", "network", "sending request"];
    assert!(
        expected.iter().any(|words| message.contains(words)),
        "{message}\n{}",
        ended.describe()
    );
}

/// Codex retries until the time limit. Returns whether it reported a retry before that.
fn waits_for_the_network(cli: Program, seconds: u64) -> bool {
    let ended = with_few_retries(Fixture::new(cli, &unreachable_url()))
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
        ended.describe()
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

/// A rate limit without a reset time starts a wait.
fn a_rate_limit_is_waited_for(cli: Program) {
    let model = Model::new(|_| Reply::Error(ErrorReply::status(429)));
    let fixture = with_few_retries(Fixture::new(cli, &model.url()));
    let running = fixture.start(b"Do it.\n");
    running.wait_until_journal_contains("rate_limited");
    running.interrupt();
    let ended = running.end();
    ended.assert_code(130);
    assert!(
        matches!(ended.outcomes()[..], [IterationOutcome::RateLimited { .. }]),
        "{}",
        ended.describe()
    );
    fixture.assert_nothing_survives();
}

/// Returns the error with which each service reports when its limit ends.
fn limited_until(cli: Program, reset: Timestamp) -> ErrorReply {
    let seconds = reset.duration_since(Timestamp::now()).as_secs().max(1);
    let error = ErrorReply::status(429);
    match cli {
        Program::Claude => error
            .header("anthropic-ratelimit-unified-status", "rejected")
            .header("anthropic-ratelimit-unified-reset", reset.as_second())
            .header("anthropic-ratelimit-unified-representative-claim", "five_hour")
            .header("retry-after", seconds),
        Program::Codex => error
            .with("type", "usage_limit_reached")
            .with("resets_at", reset.as_second()),
        Program::Gemini
        | Program::Opencode
        | Program::Copilot
        | Program::Qwen
        | Program::Pi
        | Program::Kimi => error.header("retry-after", seconds),
    }
}

/// Returns a time in the near future, on the minute for codex, which prints no seconds.
fn near_reset(cli: Program) -> Timestamp {
    let now = Timestamp::now().as_second();
    let reset = match cli {
        Program::Codex => (now + 30).div_euclid(60) * 60 + 60,
        Program::Claude
        | Program::Gemini
        | Program::Opencode
        | Program::Copilot
        | Program::Qwen
        | Program::Pi
        | Program::Kimi => now + 40,
    };
    Timestamp::from_second(reset).expect("a time")
}

fn a_stated_reset_is_waited_for(cli: Program) {
    let reset = near_reset(cli);
    let model = Model::new(move |_| {
        if Timestamp::now() < reset {
            Reply::Error(limited_until(cli, reset))
        } else {
            Reply::Blocks(vec![say("Free again.\nLOOP_COMPLETE")])
        }
    });
    let mut fixture = Fixture::new(cli, &model.url());
    if cli == Program::Claude {
        // Claude reports the reset time to subscribers only.
        fixture = fixture
            .without_env("ANTHROPIC_API_KEY")
            .with_env("CLAUDE_CODE_OAUTH_TOKEN", "not-a-token");
    }
    let ended = fixture.run("Do it.\n");
    ended.assert_code(0);
    assert!(
        matches!(ended.outcomes().last(), Some(IterationOutcome::Completed { .. })),
        "{}",
        ended.describe()
    );
    assert!(Timestamp::now() >= reset);
    let warned = ended.records.iter().any(|record| {
        matches!(
            &record.event,
            RunEvent::Notice {
                level: NoticeLevel::Error,
                ..
            }
        )
    });
    assert!(!warned, "{}", ended.describe());
    let stated = ended.outcomes().iter().any(|outcome| {
        matches!(outcome, IterationOutcome::RateLimited { resets_at: Some(at), .. } if at.as_second() == reset.as_second())
    });
    if matches!(cli, Program::Claude | Program::Codex) {
        assert!(stated, "{}", ended.describe());
    }
}
