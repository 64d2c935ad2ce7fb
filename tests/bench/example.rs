//! The suite in `examples/bench`: six tasks, two scripted agents, three repeats.

use crate::bench::{comparable, example, start_and_end_counts, without_times};
use crate::sandbox::Sandbox;

#[test]
fn the_example_suite_gives_the_expected_table() {
    let sandbox = Sandbox::new();
    let output = sandbox.bench(&["run", &example(), "--trust"]).exits_with(0);
    let table: String = without_times(&sandbox.redact_paths(&output.stdout));
    let table = table.split_once("\n\n").expect("a title").1;
    let table = table.split_once("\nFiles:").expect("an end").0;
    insta::assert_snapshot!(table, @"
    TASK AGENT PASSED CLAIMED DONE ITERATIONS TIME TOKENS COST
    greet careful 3/3 3/3 1 T 2,100 $0.0200
    sloppy 0/3 3/3 1 T 1,100 $0.0100
    hello careful 3/3 3/3 1 T 2,100 $0.0200
    sloppy 3/3 3/3 1 T 1,100 $0.0100
    count careful 3/3 3/3 1 T 2,100 $0.0200
    sloppy 3/3 3/3 1 T 1,100 $0.0100
    commit careful 3/3 3/3 1 T 2,100 $0.0200
    sloppy 0/3 3/3 1 T 1,100 $0.0100
    fizz careful 3/3 3/3 2 T 4,200 $0.0400
    sloppy 0/3 0/3 3 T 3,300 $0.0300
    slug careful 3/3 3/3 1 T 2,100 $0.0200
    sloppy 0/3 3/3 1 T 1,100 $0.0100

    TOTAL PASSED CLAIMED DONE ITERATIONS TIME TOKENS COST
    careful 18/18 18/18 21 T 44.1k $0.42
    sloppy 6/18 15/18 24 T 26.4k $0.24

    Not passed:
    ✗ greet · sloppy #1 #2 #3: claimed done, but verify failed: exit code 1: FAILED greet : wanted 'Hello, world!', got 'Hello, !'
    ✗ commit · sloppy #1 #2 #3: claimed done, but verify failed: exit code 1: notes.txt was not committed
    ✗ fizz · sloppy #1 #2 #3: Stopped at the limit of 3 iterations. verify failed: exit code 1: fizz.sh printed: fizz
    ✗ slug · sloppy #1 #2 #3: claimed done, but verify failed: exit code 1: there is no slug.sh
    ");
    let cells = start_and_end_counts(&sandbox.results());
    assert_eq!(cells.len(), 36);
    assert!(cells.values().all(|counts| *counts == (1, 1)), "{cells:?}");
    let lines = output.stderr.lines().count();
    assert_eq!(
        lines, 37,
        "a line at the start and one for each cell:\n{}",
        output.stderr
    );
    // `bench report` prints the same from the stored results.
    let report = sandbox.bench(&["report", "latest"]).exits_with(0);
    assert_eq!(report.stdout, output.stdout);
}

#[test]
fn the_json_report_has_every_cell_and_figure() {
    let sandbox = Sandbox::new();
    let output = sandbox.bench(&[
        "run",
        &example(),
        "--trust",
        "--json",
        "--repeat",
        "1",
        "--only",
        "fizz,slug",
    ]);
    let report = output.exits_with(0).json();
    assert_eq!(report["complete"], true);
    assert_eq!(report["cells"].as_array().map(Vec::len), Some(4));
    let [careful, sloppy] = &report["agents"].as_array().expect("agents")[..] else {
        panic!("{report}");
    };
    assert_eq!(
        (&careful["passed"], &careful["false_done"]),
        (&2.into(), &0.into())
    );
    assert_eq!((&sloppy["passed"], &sloppy["false_done"]), (&0.into(), &1.into()));
    assert_eq!(careful["figures"]["cost_usd"], 0.06);
    assert_eq!(careful["figures"]["tokens"], 6300.0);
    let fizz = &report["rows"][0];
    assert_eq!(
        (&fizz["task"], &fizz["figures"]["iterations"]),
        (&"fizz".into(), &2.0.into())
    );
    let again = sandbox.bench(&["report", "--json"]).exits_with(0).json();
    assert_eq!(comparable(again), comparable(report));
}

/// Guards the on-disk format: new fields need defaults and a new golden directory.
#[test]
fn a_bench_of_version_1_is_readable() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/bench.v1");
    let output = Sandbox::new().bench(&["report", golden]).exits_with(0);
    insta::assert_snapshot!(output.stdout.replace(env!("CARGO_MANIFEST_DIR"), "[ROOT]"), @"
    Bench bench.v1 · /home/ada/tasks.yml
    Figures per task are medians over the repeats; totals per agent are sums.

    TASK  AGENT  PASSED  CLAIMED DONE  ITERATIONS  TIME  TOKENS  COST
    one   opus   1/2     2/2           1           4.0s  11      $0.50

    TOTAL  PASSED  CLAIMED DONE  ITERATIONS  TIME  TOKENS  COST
    opus   1/2     2/2           2           8.1s  22      $1.00

    Not passed:
      ✗ one · opus #2: said done, but verify failed: exit code 1: no

    Files: [ROOT]/tests/golden/bench.v1
    ");
}
