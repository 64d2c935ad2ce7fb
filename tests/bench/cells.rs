//! What a cell is: a workspace of its own, the real loop, the task's own verdict, within what it may cost.

use std::fs;

use crate::bench::{COST, fake};
use crate::sandbox::Sandbox;

const DONE: &str = "read-stdin\nwrite out.txt made\nsay LOOP_COMPLETE\n";

fn done_for_a_quarter() -> String {
    format!("read-stdin\nsay {COST}\nsay LOOP_COMPLETE\n")
}

#[test]
fn only_the_exit_status_of_verify_decides() {
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
fn a_setup_that_fails_is_not_the_agents_fault_and_is_tried_again() {
    let tasks = "tasks:\n  - {name: one, prompt: p, setup: 'echo no seed; test -f \"$RALPH_BENCH_DIR/seed\"', verify: 'true'}\n";
    let sandbox = fake(DONE, tasks);
    let told = sandbox.bench(&["run", "tasks.yml"]).exits_with(1);
    assert!(
        told.stderr
            .contains("! one · fake · 0 iterations · 0ms · setup failed: exit code 1: no seed"),
        "{}",
        told.stderr
    );
    assert!(told.stdout.contains("0/0 (+1 not judged)"), "{}", told.stdout);
    assert!(!sandbox.was_called(1));
    fs::write(sandbox.work().join("seed"), "").expect("a seed");
    let told = sandbox.bench(&["run", "--continue"]).exits_with(0);
    assert!(told.stdout.contains("fake   1/1"), "{}", told.stdout);
}

#[test]
fn a_workspace_is_apart_from_everything_else() {
    let sandbox = fake(
        DONE,
        "tasks:\n  - {name: one, prompt: do this, verify: '! git status'}\n",
    );
    // The bench is kept inside a repository, above which nothing may be seen.
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
        "where the checks are is not told"
    );
    assert!(sandbox.prompt(1).contains("do this"));
    let log = fs::read_to_string(place.join("cells/one/1-fake/1/ralph.log")).expect("a log");
    assert_eq!(log, "", "no warnings either");
}

#[test]
fn a_clone_is_checked_out_and_has_no_way_back() {
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
fn the_bench_stops_at_its_cost_says_so_and_goes_on_with_more() {
    let tasks =
        "repeat: 5\nlimits: {max_cost_usd: 0.4}\ntasks:\n  - {name: one, prompt: p, verify: 'true'}\n";
    let sandbox = fake(&done_for_a_quarter(), tasks);
    let told = sandbox
        .bench(&["run", "tasks.yml", "--max-cost", "0.75"])
        .exits_with(3);
    assert!(
        told.stdout
            .contains("Not complete: 2 not tried yet, 1 could not be judged"),
        "{}",
        told.stdout
    );
    insta::assert_snapshot!(told.stderr.lines().skip(4).collect::<Vec<_>>().join("\n"), @"
    warning: stopped: $0.75 of $0.75 are spent
      to go on with more: ralph bench run --continue --max-cost 1.5
    ");
    // The third had only the rest, and used it up before its end was seen.
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
fn a_cell_whose_money_ran_out_is_not_judged() {
    let tasks = "repeat: 2\ntasks:\n  - {name: one, prompt: p, verify: 'false'}\n";
    let sandbox = fake(&format!("read-stdin\nsay {COST}\nsleep 600000\n"), tasks);
    let told = sandbox
        .bench(&["run", "tasks.yml", "--max-cost", "0.2", "--json"])
        .exits_with(3);
    let report = told.json();
    assert_eq!(report["cells"][0]["verdict"], "out_of_budget", "{report}");
    assert_eq!(report["agents"][0]["failed"], 0);
}

#[test]
fn a_limit_that_cannot_be_held_is_said_to_be_none() {
    let sandbox = fake(
        DONE,
        "max_cost_usd: 1\ntasks:\n  - {name: one, prompt: p, verify: 'true'}\n",
    );
    let told = sandbox.bench(&["run", "tasks.yml"]).exits_with(0);
    assert!(
        told.stdout
            .contains("The limit of $1.00 does not hold for fake: no costs were reported"),
        "{}",
        told.stdout
    );
}

#[test]
fn of_a_discarded_workspace_the_journal_stays() {
    let sandbox = fake(
        DONE,
        "tasks:\n  - {name: one, prompt: p, verify: test -f out.txt}\n",
    );
    let told = sandbox.bench(&["run", "tasks.yml", "--discard"]).exits_with(0);
    let cell = sandbox.bench_directory().join("cells/one/1-fake/1");
    assert!(!cell.join("workspace").exists(), "{}", told.stdout);
    let runs = fs::read_dir(cell.join(".agent/runs")).expect("runs").count();
    assert_eq!(runs, 1);
}

#[test]
fn benches_are_listed_and_nothing_is_there_before_the_first() {
    let sandbox = fake(DONE, "tasks:\n  - {name: one, prompt: p, verify: 'true'}\n");
    let none = sandbox.bench(&["list"]).exits_with(0).stdout;
    assert_eq!(
        none,
        "There is no bench yet. To begin one: ralph bench run tasks.yml\n"
    );
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
fn an_agent_that_is_not_logged_in_is_not_judged() {
    let said = r#"say {"type":"result","subtype":"success","is_error":true,"result":"Invalid API key · Please run /login"}"#;
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing("default", &format!("{said}\nexit 1\n"))
        .with_file(
            "tasks.yml",
            "tasks:\n  - {name: one, prompt: p, verify: 'true'}\n",
        );
    let told = sandbox
        .bench(&["run", "tasks.yml", "--agent", "claude@opus", "--json"])
        .exits_with(1);
    let cell = &told.json()["cells"][0];
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
