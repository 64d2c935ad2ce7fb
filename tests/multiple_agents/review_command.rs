//! Tests of `ralph review`.

use super::review::{CLEAN, found, prompt, reviewer};
use super::write_config;
use crate::sandbox::Sandbox;

const CONFIG: &str =
    "cli: {backend: claude}\ngates: [{name: review, agent: codex, prompt_file: REVIEW.md}]\n";

/// A repository with two commits; the second one changes `a.txt`.
fn repository() -> Sandbox {
    let sandbox = Sandbox::new().with_agent("codex");
    write_config(&sandbox, CONFIG);
    std::fs::write(sandbox.work().join("REVIEW.md"), "Look at a.txt.").expect("a file");
    std::fs::write(sandbox.work().join("a.txt"), "one\n").expect("a file");
    sandbox.git(&["init", "--quiet"]);
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "--quiet", "-m", "first"]);
    std::fs::write(sandbox.work().join("a.txt"), "two\n").expect("a file");
    sandbox.git(&["commit", "--quiet", "-am", "count to two"]);
    sandbox
}

#[test]
fn revisions_are_reviewed_without_changing_anything() {
    let sandbox = repository();
    std::fs::write(sandbox.work().join("a.txt"), "not committed\n").expect("a file");
    let before = sandbox.git_state();
    sandbox.script("1", &reviewer(CLEAN));
    let output = sandbox.ralph(&["review", "HEAD~1..HEAD"]).exits_with(0);
    assert!(
        output.stdout.contains("✓ review: no findings · 15 tokens"),
        "{}",
        output.stdout
    );
    let prompt = prompt(&sandbox, 1);
    for expected in ["Look at a.txt.", "count to two", "-one", "+two"] {
        assert!(prompt.contains(expected), "{expected}: {prompt}");
    }
    assert!(sandbox.git_state() == before, "the repository changed");
    assert!(
        !std::path::Path::new(&sandbox.recorded("1.cwd")).exists(),
        "the checkout is removed"
    );
}

#[test]
fn findings_are_printed_as_text_json_and_sarif() {
    let sandbox = repository();
    sandbox.script("default", &reviewer(&found("a b.txt", 7, "wrong number")));
    let range = "HEAD~1..";
    let text = sandbox.ralph(&["review", range]).exits_with(1).stdout;
    for expected in [
        "a b.txt:7 critical · bug\n  wrong number",
        "✗ review: 1 open finding (1 finding in all)",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let json = sandbox.ralph(&["review", range, "--json"]).exits_with(1).json();
    assert_eq!(json["reviews"][0]["findings"][0]["line"], 7, "{json}");
    let sarif = sandbox
        .ralph(&["review", range, "--format", "sarif"])
        .exits_with(1)
        .json();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["level"], "error", "{sarif}");
    assert_eq!(result["ruleId"], "bug", "{sarif}");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "a%20b.txt");
    assert_eq!(place["region"]["startLine"], 7);
    // The same finding has the same fingerprint on another line.
    sandbox.script("default", &reviewer(&found("a b.txt", 9, "Wrong number!")));
    let again = sandbox
        .ralph(&["review", range, "--format", "sarif"])
        .exits_with(1)
        .json();
    let fingerprints =
        |sarif: &serde_json::Value| sarif["runs"][0]["results"][0]["partialFingerprints"].clone();
    assert_eq!(fingerprints(&sarif), fingerprints(&again));
}

#[test]
fn severity_below_the_bar_succeeds_and_no_answer_is_unreviewed() {
    let sandbox = repository();
    let remark = found("a.txt", 1, "style").replace("critical", "medium");
    sandbox.script("default", &reviewer(&remark));
    let output = sandbox.ralph(&["review", "HEAD~1..HEAD"]).exits_with(0);
    assert!(
        output.stdout.contains("1 finding, none of them high or worse"),
        "{}",
        output.stdout
    );
    sandbox
        .ralph(&["review", "HEAD~1..HEAD", "--block", "medium"])
        .exits_with(1);
    sandbox.script("default", &reviewer("LGTM"));
    let output = sandbox.ralph(&["review", "HEAD~1..HEAD"]).exits_with(6);
    assert!(output.stdout.contains("no JSON object"), "{}", output.stdout);
    sandbox.script(
        "default",
        &format!("run /bin/chmod -R u+w . && echo x > a.txt\n{}", reviewer(CLEAN)),
    );
    let output = sandbox.ralph(&["review", "HEAD~1..HEAD"]).exits_with(6);
    assert!(
        output
            .stdout
            .contains("it changed files of its checkout: .ralph-review.patch, REVIEW.md, a.txt"),
        "{}",
        output.stdout
    );
    assert_eq!(
        std::fs::read_to_string(sandbox.work().join("a.txt")).expect("a file"),
        "two\n"
    );
}

#[test]
fn unknown_revisions_gates_and_runs_are_errors() {
    let sandbox = repository();
    for (arguments, expected) in [
        (&["review", "nowhere..HEAD"][..], "no git revision `nowhere`"),
        (
            &["review", "HEAD~1..HEAD", "--gate", "other"][..],
            "known gates: review",
        ),
        (
            &["review", "HEAD~1..HEAD", "--block", "fatal"][..],
            "expected low, medium, high or critical",
        ),
        (&["review"][..], "no runs"),
    ] {
        let output = sandbox.ralph(arguments);
        assert_ne!(output.code(), Some(0), "{arguments:?}");
        assert!(
            output.stderr.contains(expected),
            "{arguments:?}: {}",
            output.stderr
        );
    }
    assert!(!sandbox.was_called(1));
}

#[test]
fn schema_of_an_answer_is_printed() {
    let schema = Sandbox::new().ralph(&["schema", "review"]).exits_with(0).json();
    assert_eq!(schema["required"], serde_json::json!(["findings"]), "{schema}");
}
