//! Tests of `ralph agents test` with the real programs.

use serde_json::Value;

use crate::fixture::{Ended, Fixture};
use crate::model::{ErrorReply, Model, Reply, say};
use crate::programs::Program;
use crate::tests_for_programs;

tests_for_programs!(a_good_agent_passes_its_test, a_refused_key_fails_the_test);

fn test(fixture: &Fixture) -> Ended {
    fixture.ralph(&["agents", "test", fixture.cli.name(), "--json", "--timeout", "240"])
}

fn finding<'a>(report: &'a Value, subject: &str) -> &'a Value {
    let findings = report["findings"].as_array().expect("findings");
    let found = findings.iter().find(|finding| finding["subject"] == subject);
    found.unwrap_or(&Value::Null)
}

fn a_good_agent_passes_its_test(cli: Program) {
    let model = Model::with_conversations(vec![vec![vec![say("pelican4711")]]]);
    let fixture = Fixture::new(cli, &model.url());
    let ended = test(&fixture);
    ended.assert_code(0);
    let report: Value = serde_json::from_str(&ended.stdout).expect("a report");
    assert_eq!(report["verdict"], "works");
    for subject in [
        "program",
        "end",
        "stdin",
        "terminal",
        "prompt",
        "transcript",
        "session",
        "used",
    ] {
        assert_eq!(
            finding(&report, subject)["state"],
            "good",
            "{subject}: {}",
            ended.stdout
        );
    }
    assert_eq!(model.requests().len(), 1, "exactly one prompt");
    fixture.assert_nothing_survives();
}

fn a_refused_key_fails_the_test(cli: Program) {
    let model = Model::new(|_| Reply::Error(ErrorReply::status(401)));
    let fixture = Fixture::new(cli, &model.url()).with_env("CLAUDE_CODE_MAX_RETRIES", "1");
    let ended = test(&fixture);
    ended.assert_code(1);
    let report: Value = serde_json::from_str(&ended.stdout).expect("a report");
    assert_eq!(report["verdict"], "broken");
    let row = ralph::agent::AGENTS.iter().find(|agent| agent.name == cli.name());
    assert_eq!(
        finding(&report, "end")["remedy"],
        row.expect("a row").auth_hint,
        "{}",
        ended.stdout
    );
    fixture.assert_nothing_survives();
}
