//! Limits, gates, hats and hooks in `--dry-run` and `ralph doctor`.

use crate::sandbox::Sandbox;

const CONFIG: &str = "event_loop:\n  prompt: x\n  max_iterations: 7\n  max_cost_usd: 5\n  max_tokens: 900\n  \
                      max_no_progress: 2\n  cooldown_seconds: 4\n  allowed_paths: ['src/**', '*.md']\n\
                      gates: [{name: t, run: make test}, {name: l, run: make lint}]\n\
                      hooks: {on_start: 'echo hi', on_fail: 'mail me'}\n";

#[test]
fn a_dry_run_shows_every_limit_that_applies() {
    let sandbox = Sandbox::scripted("say never", CONFIG);
    let output = sandbox.ralph(&["run", "--dry-run"]).exits_with(0);
    let shown: Vec<&str> = output
        .stdout
        .lines()
        .skip_while(|line| !line.starts_with("limits"))
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    limits       7 iterations, runtime 4h, cost $5, 900 tokens, 5 failures in a row, 2 iterations without progress, 30m without output, 1h without output in a tool, cooldown 4s
    paths        only these files may change: src/** *.md
    gates        make test
                 make lint
    hooks        on_start: echo hi
                 on_fail: mail me
    ");
    let facts = sandbox
        .ralph(&["run", "--dry-run", "--json"])
        .exits_with(0)
        .json();
    assert_eq!(facts["limits"]["max_no_progress"], 2);
    assert_eq!(facts["allowed_paths"], serde_json::json!(["src/**", "*.md"]));
    assert_eq!(facts["hooks"][1], "on_fail: mail me");
    assert!(!sandbox.was_called(1));
    let bare = Sandbox::scripted("say never", "event_loop: {prompt: x, max_no_progress: 0}\n");
    let output = bare.ralph(&["run", "--dry-run"]).exits_with(0);
    assert!(
        output
            .stdout
            .contains("gates        none: completion is not verified\n"),
        "{output:?}"
    );
    assert!(
        output.stdout.contains("no limit of iterations without progress"),
        "{output:?}"
    );
}

#[test]
fn the_doctor_checks_hats_gates_and_hooks() {
    let config = "hats:\n  ada: {triggers: [task.start], publishes: [lost.topic]}\n  eve: {triggers: [never.said]}\n\
                  gates:\n  - {name: good, run: git --version}\n  - {name: bad, run: mkae test}\n  \
                  - {name: nowhere, run: 'true', cwd: nowhere}\nhooks: {on_fail: nosuch-mailer me}\n";
    let sandbox = Sandbox::scripted("say never", config);
    let output = sandbox.ralph(&["doctor"]).exits_with(1);
    let shown = sandbox.redact_paths(&output.stdout);
    // Other tests cover the other sections.
    let shown = shown.split("\ntrust\n").next().unwrap_or_default();
    let shown = &shown[shown.find("\nhats\n").expect("hats")..];
    insta::assert_snapshot!(shown, @"

    hats
      ! hats             `eve` is never activated: no event leads to it from `task.start`
                         → to show the graph: ralph hats graph
      ! hats             `ada` publishes `lost.topic`, which no hat claims; it would go to the default hat `ada`
                         → to show the graph: ralph hats graph
      ! hats             `eve` is triggered by `never.said`, which no hat publishes
                         → to show the graph: ralph hats graph

    gates
      ✓ good             git --version
      ! bad              mkae test (`mkae` not found)
                         → install it, or fix the gate's `run`; to test it: ralph gates run bad
      ✗ nowhere          [WORKSPACE]/nowhere is not a directory; the gate can never pass
                         → create the directory, or fix the gate's `cwd`

    hooks
      ! on_fail          nosuch-mailer me (`nosuch-mailer` not found)
                         → install it, or fix hooks.on_fail
    ");
    assert!(!sandbox.was_called(1));

    sandbox.configure("hats:\n  ada: {triggers: [task.start, x]}\n  bob: {triggers: [x]}\n");
    let output = sandbox.ralph(&["doctor"]).exits_with(1);
    assert!(
        output
            .stdout
            .contains("✗ hats             two hats claim the topic `x`"),
        "{output:?}"
    );
}
