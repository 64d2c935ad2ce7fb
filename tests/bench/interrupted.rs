//! Interrupted benches: no process is left, no result is lost, and no cell is repeated.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;

use crate::bench::{COST, comparable, example, fake, start_and_end_counts};
use crate::process::helpers::wait_until;
use crate::sandbox::{DEADLINE, Sandbox};

const TWO: &str =
    "tasks:\n  - {name: one, prompt: p, verify: 'true'}\n  - {name: two, prompt: p, verify: 'false'}\n";

fn ended(sandbox: &Sandbox) -> usize {
    let is_end = |entry: &&serde_json::Value| entry["type"] == "ended";
    sandbox.results().iter().filter(is_end).count()
}

/// Returns the processes that refer to this sandbox's bench.
fn processes_of(sandbox: &Sandbox) -> Vec<String> {
    let place = sandbox.bench_directory().to_string_lossy().into_owned();
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let of = |name: &str, process: &fs::DirEntry| {
        let text = fs::read(process.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&text).replace('\0', " ")
    };
    processes
        .map(|process| format!("{} {}", of("cmdline", &process), of("environ", &process)))
        .filter(|text| text.contains(&place))
        .collect()
}

#[test]
fn a_killed_and_resumed_bench_gives_the_same_table() {
    let undisturbed = Sandbox::new();
    let expected = undisturbed
        .bench(&["run", &example(), "--trust", "--json"])
        .exits_with(0)
        .json();

    let sandbox = Sandbox::new();
    let running = sandbox.start(&["bench", "run", &example(), "--trust", "--json"]);
    let benches = sandbox.path("state/bench");
    wait_until("a third of the results", DEADLINE, || {
        benches.exists()
            && fs::read_dir(&benches).is_ok_and(|mut all| all.next().is_some())
            && ended(&sandbox) >= 12
    });
    running.kill();
    let before = ended(&sandbox);
    assert!((12..36).contains(&before), "{before} had ended");
    wait_until("the end of all that it had started", DEADLINE, || {
        processes_of(&sandbox).is_empty()
    });

    let report = sandbox.bench(&["run", "--continue", "--json"]).exits_with(0);
    assert!(report.stderr.contains("already done"), "{}", report.stderr);
    let cells = start_and_end_counts(&sandbox.results());
    assert_eq!(cells.len(), 36);
    assert!(
        cells.values().all(|(_, ended)| *ended == 1),
        "each has ended once: {cells:?}"
    );
    let restarted = cells.values().filter(|(started, _)| *started == 2).count();
    assert!(restarted <= 2, "only running cells start again: {cells:?}");
    assert!(cells.values().all(|(started, _)| *started <= 2));
    assert_eq!(comparable(report.json()), comparable(expected));
    // All cells are done.
    let again = sandbox.bench(&["run", "--continue"]).exits_with(0);
    assert_eq!(start_and_end_counts(&sandbox.results()), cells);
    assert!(again.stdout.contains("careful  18/18"), "{}", again.stdout);
}

#[test]
fn a_kill_leaves_no_agent_running_and_keeps_its_cost() {
    let sandbox = fake(
        &format!("read-stdin\nsay {COST}\nfork-setsid 600\nsleep 600000\n"),
        TWO,
    );
    let running = sandbox.start(&["bench", "run", "tasks.yml", "--jobs", "2"]);
    sandbox.wait_for_processes(4);
    let spent =
        |sandbox: &Sandbox| sandbox.bench(&["report", "--json"]).exits_with(0).json()["spent_usd"].as_f64();
    wait_until("both have spent something", DEADLINE, || {
        spent(&sandbox) == Some(0.5)
    });
    running.kill();
    sandbox.wait_until_processes_exit(DEADLINE);
    assert_eq!(spent(&sandbox), Some(0.5));
    sandbox.script("default", &format!("read-stdin\nsay {COST}\nsay LOOP_COMPLETE\n"));
    let output = sandbox
        .bench(&["run", "tasks.yml", "--continue", "--json"])
        .exits_with(0);
    assert_eq!(output.json()["spent_usd"], 1.0);
    assert_eq!(
        output.json()["agents"][0]["figures"]["cost_usd"],
        0.5,
        "only the attempts with a verdict"
    );
}

#[test]
fn ctrl_c_stops_every_cell_and_records_no_result() {
    let sandbox = fake("read-stdin\nfork-setsid 600\nsleep 600000\n", TWO);
    let running = sandbox.start(&["bench", "run", "tasks.yml", "--jobs", "2"]);
    sandbox.wait_for_processes(4);
    running.signal(Signal::INT);
    let output = running.finish().exits_with(130);
    assert!(
        sandbox.processes_exit_within(Duration::ZERO),
        "ralph waited for all processes"
    );
    assert_eq!(ended(&sandbox), 0);
    assert!(
        output.stdout.contains(
            "Incomplete: 2 not run yet, 0 without a verdict. To resume: ralph bench run --continue"
        ),
        "{}",
        output.stdout
    );
    // A second process cannot resume a running bench.
    let running = sandbox.start(&["bench", "run", "--continue"]);
    sandbox.wait_for_processes(6);
    let output = sandbox.bench(&["run", "--continue"]).exits_with(5);
    assert!(
        output.stderr.contains("another ralph is running"),
        "{}",
        output.stderr
    );
    running.signal(Signal::TERM);
    running.finish().exits_with(143);
}
