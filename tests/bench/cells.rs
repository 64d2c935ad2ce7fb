//! Cells of a bench: isolated workspaces, verification and cost limits.

use std::fs;

use ralph::store::StateDirectory;

use crate::bench::{COST, fake};
use crate::sandbox::Sandbox;

const DONE: &str = "read-stdin\nwrite out.txt made\nsay LOOP_COMPLETE\n";

fn done_for_25_cents() -> String {
    format!("read-stdin\nsay {COST}\nsay LOOP_COMPLETE\n")
}

#[test]
fn the_exit_status_of_verify_decides_the_verdict() {
    let tasks =
        "limits: {max_iterations: 1}\ntasks:\n  - {name: silent, prompt: p, verify: test -f out.txt}\n";
    let sandbox = fake("read-stdin\nwrite out.txt made\nsay still at it\n", tasks);
    let report = sandbox
        .bench(&["run", "tasks.yml", "--json"])
        .exits_with(0)
        .json();
    let cell = &report["cells"][0];
    assert_eq!(cell["verdict"], "passed", "{cell}");
    assert_eq!((&cell["done"], &cell["ended"]), (&false.into(), &"limit".into()));
}

#[test]
fn a_failed_setup_gives_no_verdict_and_runs_again() {
    let tasks = "tasks:\n  - {name: one, prompt: p, setup: 'echo no seed; test -f \"$RALPH_BENCH_DIR/seed\"', verify: 'true'}\n";
    let sandbox = fake(DONE, tasks);
    let output = sandbox.bench(&["run", "tasks.yml"]).exits_with(1);
    assert!(
        output
            .stderr
            .contains("! one · fake · 0 iterations · 0ms · setup failed: exit code 1: no seed"),
        "{}",
        output.stderr
    );
    assert!(output.stdout.contains("0/0 (+1 no verdict)"), "{}", output.stdout);
    assert!(!sandbox.was_called(1));
    fs::write(sandbox.work().join("seed"), "").expect("a seed");
    let output = sandbox.bench(&["run", "--continue"]).exits_with(0);
    assert!(output.stdout.contains("fake   1/1"), "{}", output.stdout);
}

#[test]
fn a_workspace_is_isolated() {
    let sandbox = fake(
        DONE,
        "tasks:\n  - {name: one, prompt: do this, verify: '! git status'}\n",
    );
    // The bench is inside a repository, which the cells must not see.
    sandbox.git(&["init", "--quiet"]);
    let own = sandbox.path("home").join(".config/ralph");
    fs::create_dir_all(&own).expect("a directory");
    let settings = "hooks:\n  on_complete: touch hooked\ngates:\n  - {name: never, run: 'false'}\nhats:\n  other:\n    triggers: [task.start]\n";
    fs::write(own.join("ralph.yml"), settings).expect("a configuration");
    fs::write(sandbox.work().join("ralph.yml"), settings).expect("a configuration");
    let mut command = sandbox.command(&["bench", "run", "tasks.yml", "--dir", "benches", "--json"]);
    command
        .env("RALPH_AGENT", "gemini")
        .env("RALPH_MAX_ITERATIONS", "77");
    let report = crate::sandbox::Running::start(&mut command)
        .finish()
        .exits_with(0)
        .json();
    assert_eq!(report["cells"][0]["verdict"], "passed", "{report}");
    let place = std::path::PathBuf::from(report["directory"].as_str().expect("a directory"));
    let workspace = place.join("cells/one/1-fake/1/workspace");
    assert_eq!(sandbox.recorded("1.cwd"), workspace.to_string_lossy());
    assert!(workspace.join("out.txt").exists() && !sandbox.work().join("out.txt").exists());
    assert!(!workspace.join("hooked").exists());
    assert_eq!(
        sandbox.agent_variable(1, "RALPH_BENCH_DIR"),
        None,
        "the agent does not know the directory of the checks"
    );
    assert!(sandbox.prompt(1).contains("do this"));
    let log = fs::read_to_string(place.join("cells/one/1-fake/1/ralph.log")).expect("a log");
    assert_eq!(log, "", "no warnings either");
}

#[test]
fn a_clone_is_checked_out_and_has_no_remote() {
    let sandbox = fake(
        DONE,
        "tasks:\n  - {name: one, prompt: p, clone: repo, ref: old, verify: 'cat a.txt; git remote; grep -qx one a.txt && test -z \"$(git remote)\"'}\n",
    );
    fs::write(sandbox.work().join("a.txt"), "one\n").expect("a file");
    sandbox.git(&["init", "--quiet", "repo"]);
    for (text, branch) in [("one\n", "old"), ("two\n", "new")] {
        fs::write(sandbox.work().join("repo/a.txt"), text).expect("a file");
        sandbox.git(&["-C", "repo", "checkout", "--quiet", "-b", branch]);
        sandbox.git(&["-C", "repo", "add", "a.txt"]);
        sandbox.git(&["-C", "repo", "commit", "--quiet", "-m", branch]);
    }
    let report = sandbox
        .bench(&["run", "tasks.yml", "--json"])
        .exits_with(0)
        .json();
    assert_eq!(report["cells"][0]["verdict"], "passed", "{report}");
    assert!(!sandbox.work().join("repo/out.txt").exists());
}

#[test]
fn a_bench_stops_at_its_cost_limit_and_resumes_with_a_higher_one() {
    let tasks =
        "repeat: 5\nlimits: {max_cost_usd: 0.4}\ntasks:\n  - {name: one, prompt: p, verify: 'true'}\n";
    let sandbox = fake(&done_for_25_cents(), tasks);
    let output = sandbox
        .bench(&["run", "tasks.yml", "--max-cost", "0.75"])
        .exits_with(3);
    assert!(
        output
            .stdout
            .contains("Incomplete: 2 not run yet, 1 without a verdict"),
        "{}",
        output.stdout
    );
    insta::assert_snapshot!(output.stderr.lines().skip(4).collect::<Vec<_>>().join("\n"), @"
    warning: stopped: $0.75 of $0.75 spent
      to resume with a higher limit: ralph bench run --continue --max-cost 1.5
    ");
    // The third cell got only the remainder and exhausted it before it ended.
    let report = sandbox
        .bench(&["run", "--continue", "--max-cost", "9", "--json"])
        .exits_with(0)
        .json();
    assert_eq!(
        (&report["spent_usd"], &report["complete"]),
        (&1.5.into(), &true.into())
    );
}

#[test]
fn a_cell_that_exhausts_the_budget_gets_no_verdict() {
    let tasks = "repeat: 2\ntasks:\n  - {name: one, prompt: p, verify: 'false'}\n";
    let sandbox = fake(&format!("read-stdin\nsay {COST}\nsleep 600000\n"), tasks);
    let output = sandbox
        .bench(&["run", "tasks.yml", "--max-cost", "0.2", "--json"])
        .exits_with(3);
    let report = output.json();
    assert_eq!(report["cells"][0]["verdict"], "out_of_budget", "{report}");
    assert_eq!(report["agents"][0]["failed"], 0);
}

#[test]
fn an_unenforceable_cost_limit_is_reported() {
    let sandbox = fake(
        DONE,
        "max_cost_usd: 1\ntasks:\n  - {name: one, prompt: p, verify: 'true'}\n",
    );
    let output = sandbox.bench(&["run", "tasks.yml"]).exits_with(0);
    assert!(
        output
            .stdout
            .contains("The limit of $1.00 is not enforced for fake: no costs were reported"),
        "{}",
        output.stdout
    );
}

#[test]
fn a_discarded_workspace_keeps_its_journal() {
    let sandbox = fake(
        DONE,
        "tasks:\n  - {name: one, prompt: p, verify: test -f out.txt}\n",
    );
    let output = sandbox.bench(&["run", "tasks.yml", "--discard"]).exits_with(0);
    let cell = sandbox.bench_directory().join("cells/one/1-fake/1");
    assert!(!cell.join("workspace").exists(), "{}", output.stdout);
    let projects = StateDirectory::at(cell.join("state")).projects();
    assert_eq!(projects.len(), 1);
    assert!(projects[0].find_run("latest").is_ok());
}

#[test]
fn benches_are_listed() {
    let sandbox = fake(DONE, "tasks:\n  - {name: one, prompt: p, verify: 'true'}\n");
    let none = sandbox.bench(&["list"]).exits_with(0).stdout;
    assert_eq!(none, "No benches yet. To start one: ralph bench run tasks.yml\n");
    assert_eq!(
        sandbox.bench(&["list", "--json"]).exits_with(0).json(),
        serde_json::json!([])
    );
    sandbox.bench(&["run", "tasks.yml"]).exits_with(0);
    let listed = sandbox.bench(&["list", "--json"]).exits_with(0).json();
    assert_eq!((&listed[0]["passed"], &listed[0]["open"]), (&1.into(), &0.into()));
    let id = listed[0]["id"].as_str().expect("an id");
    let table = sandbox.bench(&["list"]).exits_with(0).stdout;
    assert!(table.starts_with("BENCH") && table.contains(id), "{table}");
    sandbox.bench(&["report", id]).exits_with(0);
}

#[test]
fn an_agent_without_login_gets_no_verdict() {
    let line = r#"say {"type":"result","subtype":"success","is_error":true,"result":"Invalid API key · Please run /login"}"#;
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &format!("{line}\nexit 1\n"))
        .with_file(
            "tasks.yml",
            "tasks:\n  - {name: one, prompt: p, verify: 'true'}\n",
        );
    let output = sandbox
        .bench(&["run", "tasks.yml", "--agent", "claude@opus", "--json"])
        .exits_with(1);
    let cell = &output.json()["cells"][0];
    assert_eq!(
        (&cell["verdict"], &cell["ended"]),
        (&"broken".into(), &"auth".into()),
        "{cell}"
    );
    assert!(
        sandbox.recorded("1.argv").contains("--model\0opus"),
        "{}",
        sandbox.recorded("1.argv")
    );
}
