//! A bench that is cut off: nothing is left running, nothing is lost, nothing is done twice.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;

use crate::bench::{COST, begun_and_ended, comparable, example, fake};
use crate::process::stage::wait_until;
use crate::sandbox::{DEADLINE, Sandbox};

const TWO: &str =
    "tasks:\n  - {name: one, prompt: p, verify: 'true'}\n  - {name: two, prompt: p, verify: 'false'}\n";

fn ended(sandbox: &Sandbox) -> usize {
    let is_end = |entry: &&serde_json::Value| entry["type"] == "ended";
    sandbox.results().iter().filter(is_end).count()
}

/// Processes that work on something in this sandbox.
fn at_work_in(sandbox: &Sandbox) -> Vec<String> {
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
fn killed_in_the_middle_and_gone_on_with_it_comes_to_the_same_table() {
    let undisturbed = Sandbox::new();
    let expected = undisturbed
        .bench(&["run", &example(), "--trust", "--json"])
        .exits_with(0)
        .json();

    let sandbox = Sandbox::new();
    let running = sandbox.start(&["bench", "run", &example(), "--trust", "--json"]);
    let benches = sandbox.path("home").join(".local/state/ralph/bench");
    wait_until("a third of the results", DEADLINE, || {
        benches.exists()
            && fs::read_dir(&benches).is_ok_and(|mut all| all.next().is_some())
            && ended(&sandbox) >= 12
    });
    running.kill();
    let before = ended(&sandbox);
    assert!((12..36).contains(&before), "{before} had ended");
    wait_until("the end of all that it had started", DEADLINE, || {
        at_work_in(&sandbox).is_empty()
    });

    let report = sandbox.bench(&["run", "--continue", "--json"]).exits_with(0);
    assert!(report.stderr.contains("are done already"), "{}", report.stderr);
    let cells = begun_and_ended(&sandbox.results());
    assert_eq!(cells.len(), 36);
    assert!(
        cells.values().all(|(_, ended)| *ended == 1),
        "each has ended once: {cells:?}"
    );
    let cut = cells.values().filter(|(begun, _)| *begun == 2).count();
    assert!(cut <= 2, "only what ran at that moment began again: {cells:?}");
    assert!(cells.values().all(|(begun, _)| *begun <= 2));
    assert_eq!(comparable(report.json()), comparable(expected));
    // There is nothing left to do.
    let again = sandbox.bench(&["run", "--continue"]).exits_with(0);
    assert_eq!(begun_and_ended(&sandbox.results()), cells);
    assert!(again.stdout.contains("careful  18/18"), "{}", again.stdout);
}

#[test]
fn a_kill_leaves_no_agent_behind_and_what_it_had_spent_is_not_forgotten() {
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
    sandbox.wait_until_all_are_gone(DEADLINE);
    assert_eq!(spent(&sandbox), Some(0.5));
    sandbox.script("default", &format!("read-stdin\nsay {COST}\nsay LOOP_COMPLETE\n"));
    let told = sandbox
        .bench(&["run", "tasks.yml", "--continue", "--json"])
        .exits_with(0);
    assert_eq!(told.json()["spent_usd"], 1.0);
    assert_eq!(
        told.json()["agents"][0]["figures"]["cost_usd"],
        0.5,
        "of the tries that count"
    );
}

#[test]
fn ctrl_c_stops_every_cell_says_how_to_go_on_and_records_nothing_half_done() {
    let sandbox = fake("read-stdin\nfork-setsid 600\nsleep 600000\n", TWO);
    let running = sandbox.start(&["bench", "run", "tasks.yml", "--jobs", "2"]);
    sandbox.wait_for_processes(4);
    running.signal(Signal::INT);
    let told = running.finish().exits_with(130);
    assert!(
        sandbox.all_are_gone_within(Duration::ZERO),
        "they were waited for"
    );
    assert_eq!(ended(&sandbox), 0);
    assert!(
        told.stdout.contains(
            "Not complete: 2 not tried yet, 0 could not be judged. To go on: ralph bench run --continue"
        ),
        "{}",
        told.stdout
    );
    // While it runs, nobody else can go on with it.
    let running = sandbox.start(&["bench", "run", "--continue"]);
    sandbox.wait_for_processes(6);
    let told = sandbox.bench(&["run", "--continue"]).exits_with(5);
    assert!(
        told.stderr.contains("another ralph is at work"),
        "{}",
        told.stderr
    );
    running.signal(Signal::TERM);
    running.finish().exits_with(143);
}
