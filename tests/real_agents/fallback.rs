//! Claude reaches its limit, codex works in the meantime, and claude continues after the reset.

use jiff::Timestamp;
use ralph::event::{AgentChangeReason, IterationOutcome, RunEvent};

use crate::fixture::Fixture;
use crate::model::{ErrorReply, Model, Reply, say};
use crate::programs::Program;

/// Rejects requests of claude until the reset.
fn limited_until(reset: Timestamp) -> Model {
    Model::new(
        move |request| match (request.is_of_claude(), Timestamp::now() < reset) {
            (true, true) => Reply::Error(
                ErrorReply::status(429)
                    .header("anthropic-ratelimit-unified-status", "rejected")
                    .header("anthropic-ratelimit-unified-reset", reset.as_second())
                    .header("anthropic-ratelimit-unified-representative-claim", "five_hour")
                    .header("retry-after", 40),
            ),
            (true, false) => Reply::Blocks(vec![say("All of it works.\nLOOP_COMPLETE")]),
            (false, _) => {
                // One iteration of codex lasts until after the reset.
                let left = reset.duration_since(Timestamp::now()).as_secs().max(0) + 2;
                std::thread::sleep(std::time::Duration::from_secs(left.unsigned_abs()));
                Reply::Blocks(vec![say("Half of it works.")])
            }
        },
    )
}

#[test]
#[ignore = "needs the real programs: just real-agents"]
fn codex_takes_over_until_the_limit_of_claude_resets() {
    let reset = Timestamp::from_second(Timestamp::now().as_second() + 40).expect("a time");
    let model = limited_until(reset);
    let fixture = Fixture::new(Program::Claude, &model.url())
        .with_program(Program::Codex, &model.url())
        .without_env("ANTHROPIC_API_KEY")
        .with_env("CLAUDE_CODE_OAUTH_TOKEN", "not-a-token")
        .with_config("cli: {fallback: [codex], fallback_after: 1s}");
    let ended = fixture.run("Do it.\n");
    ended.assert_code(0);
    let changes: Vec<(&str, &str, AgentChangeReason)> = ended
        .records
        .iter()
        .filter_map(|record| match &record.event {
            RunEvent::AgentChanged { from, to, why, .. } => Some((from.as_str(), to.as_str(), *why)),
            _ => None,
        })
        .collect();
    assert_eq!(
        changes,
        [
            ("claude", "codex", AgentChangeReason::Limit),
            ("codex", "claude", AgentChangeReason::Available),
        ],
        "{}",
        ended.describe()
    );
    assert!(
        matches!(
            ended.outcomes()[..],
            [
                IterationOutcome::RateLimited { .. },
                IterationOutcome::Continued { .. },
                IterationOutcome::Completed { .. }
            ]
        ),
        "{}",
        ended.describe()
    );
    let (mut sum, mut total) = (0, None);
    for record in &ended.records {
        match &record.event {
            RunEvent::IterationEnded { usage, .. } => sum += usage.tokens().unwrap_or(0),
            RunEvent::RunEnded { usage, .. } => total = usage.tokens(),
            _ => {}
        }
    }
    assert_eq!(Some(sum), total, "the usage of both agents: {}", ended.describe());
}
