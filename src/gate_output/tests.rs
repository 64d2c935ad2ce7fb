//! Output that the real tools printed, and what is found in it.

use super::parse;

/// Counts, then one line for each failure with the first line of its message.
fn found(output: &str) -> String {
    let report = parse(output).expect("a known format");
    let failures = report.failures.iter().map(|failure| {
        let message = failure.message.lines().collect::<Vec<_>>().join(" ⏎ ");
        format!("\n{} · {message}", failure.heading())
    });
    format!("{report}{}", failures.collect::<String>())
}

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../tests/fixtures/gate-output/", $name))
    };
}

#[test]
fn cargo() {
    insta::assert_snapshot!(found(fixture!("cargo-test.txt")), @r#"
    4 failed, 1 passed, 1 skipped
    tests::subtracts at src/lib.rs:10 · assertion `left == right` failed: one minus two ⏎   left: -1 ⏎  right: 3
    returns_error · Error: "broken pipe"
    panics_deep at tests/whole.rs:2 · index out of bounds: the len is 0 but the index is 3
    src/lib.rs - (line 1) at src/lib.rs:5 · assertion `left == right` failed ⏎   left: 3 ⏎  right: 4
    "#);
    insta::assert_snapshot!(found(fixture!("cargo-build.txt")), @"
    no tests ran
    src/lib.rs:4 · error[E0425]: cannot find value `c` in this scope ⏎   | ⏎ 4 | pub fn add(a: i32, b: i32) -> i32 { a + c } ⏎   |                                         ^ ⏎   | ⏎ help: a local variable with a similar name exists ⏎   | ⏎ 4 - pub fn add(a: i32, b: i32) -> i32 { a + c } ⏎ 4 + pub fn add(a: i32, b: i32) -> i32 { a + a } ⏎   |
    ");
}

#[test]
fn pytest() {
    insta::assert_snapshot!(found(fixture!("pytest.txt")), @"
    3 failed, 2 passed, 1 skipped
    setup of test_uses_fixture at test_calc.py:21 · RuntimeError: no database
    test_subtracts at test_calc.py:8 · AssertionError: one minus two ⏎ assert -1 == 3 ⏎  +  where -1 = add(1, -2)
    TestDeep.test_nested[2] at test_calc.py:28 · ValueError: bad 2
    ");
    assert_eq!(found(fixture!("pytest-q.txt")), found(fixture!("pytest.txt")));
    assert_eq!(found(fixture!("pytest-short.txt")), found(fixture!("pytest.txt")));
    insta::assert_snapshot!(found(fixture!("pytest-line.txt")), @"
    3 failed, 2 passed, 1 skipped
    setup of test_uses_fixture · RuntimeError: no database
    test_subtracts at test_calc.py · AssertionError: one minus two
    TestDeep.test_nested[2] at test_calc.py · ValueError: bad 2
    ");
    insta::assert_snapshot!(found(fixture!("pytest-collect.txt")), @"
    1 failed
    collecting test_bad.py at test_bad.py:1 · ModuleNotFoundError: No module named 'nothing_here'
    ");
    insta::assert_snapshot!(found(fixture!("pytest-syntax.txt")), @r#"
    1 failed
    collecting test_bad.py at /home/user/py/test_bad.py:1 · File "/home/user/py/test_bad.py", line 1 ⏎     def broken(: ⏎                ^ ⏎ SyntaxError: invalid syntax
    "#);
}

#[test]
fn jest() {
    insta::assert_snapshot!(found(fixture!("jest.txt")), @"
    2 failed, 1 passed, 1 skipped
    arithmetic › subtracts at sum.test.js:5 · expect(received).toBe(expected) // Object.is equality ⏎  ⏎ Expected: 3 ⏎ Received: -1
    throws at sum.test.js:9 · no database
    Test suite failed to run at bad.test.js:1 · Cannot find module './missing' from 'bad.test.js'
    ");
    insta::assert_snapshot!(found(fixture!("jest-color.txt")), @"
    2 failed, 1 passed, 1 skipped
    arithmetic › subtracts at sum.test.js:5 · expect(received).toBe(expected) // Object.is equality ⏎  ⏎ Expected: 3 ⏎ Received: -1
    throws at sum.test.js:9 · no database
    ");
}

#[test]
fn go() {
    insta::assert_snapshot!(found(fixture!("go.txt")), @"
    3 failed
    TestSubtracts at add_test.go:13 · got -1, want 3
    TestSubtracts/nested at add_test.go:15 · nested failure
    TestPanics at /home/user/gom/add/add_test.go:19 · runtime error: invalid memory address or nil pointer dereference [recovered, repanicked]
    ");
    insta::assert_snapshot!(found(fixture!("go-v.txt")), @"
    2 failed, 1 passed, 1 skipped
    TestSubtracts at add_test.go:13 · got -1, want 3
    TestSubtracts/nested at add_test.go:15 · nested failure
    ");
    insta::assert_snapshot!(found(fixture!("go-plain.txt")), @"
    2 failed
    TestSubtracts at add_test.go:13 · got -1, want 3
    TestSubtracts/nested at add_test.go:15 · nested failure
    ");
    insta::assert_snapshot!(found(fixture!("go-build.txt")), @"
    no tests ran
    add/add.go:3 · undefined: c
    ");
}

#[test]
fn tap() {
    insta::assert_snapshot!(found(fixture!("tap-perl.txt")), @"
    1 failed, 1 passed, 1 skipped
    subtracts at t/calc.t:3 · got: '-1' ⏎ expected: '3'
    ");
    insta::assert_snapshot!(found(fixture!("tap-node.txt")), @"
    1 failed, 1 passed, 1 skipped
    subtracts at /home/user/jest/node.test.mjs:4 · Expected values to be strictly equal: ⏎  ⏎ -1 !== 3
    ");
    insta::assert_snapshot!(found(fixture!("prove.txt")), @"
    1 failed, 2 passed
    subtracts at t/calc.t:3 · got: '-1' ⏎ expected: '3'
    ");
    insta::assert_snapshot!(found(fixture!("prove-v.txt")), @"
    1 failed, 1 passed, 1 skipped
    subtracts at t/calc.t:3 · got: '-1' ⏎ expected: '3'
    ");
}

#[test]
fn junit() {
    insta::assert_snapshot!(found(fixture!("pytest.xml")), @r#"
    3 failed, 2 passed, 1 skipped
    test_calc.test_subtracts at test_calc.py:8 · AssertionError: one minus two ⏎ assert -1 == 3 ⏎  +  where -1 = add(1, -2)
    test_calc.TestDeep.test_nested[2] at test_calc.py:13 · ValueError: bad 2
    test_calc.test_uses_fixture at test_calc.py:21 · failed on setup with "RuntimeError: no database"
    "#);
    insta::assert_snapshot!(found(fixture!("jest.xml")), @"
    2 failed, 1 passed, 1 skipped
    arithmetic subtracts at /home/user/jest/sum.test.js:5 · Error: expect(received).toBe(expected) // Object.is equality ⏎  ⏎ Expected: 3 ⏎ Received: -1 ⏎     at Object.toBe (/home/user/jest/sum.test.js:5:24) ⏎     at Promise.finally.completed (/home/user/jest/node_modules/jest-circus/build/jestAdapterInit.js:1834:28) ⏎     at new Promise (<anonymous>) ⏎     at callAsyncCircusFn (/home/user/jest/node_modules/jest-circus/build/jestAdapterInit.js:1774:10) ⏎     at _callCircusTest (/home/user/jest/node_modules/jest-circus/build/jestAdapterInit.js:1167:40) ⏎     at _runTestInContext (/home/user/jest/node_modules/jest-circus/build/jestAdapterInit.js:1103:3) ⏎     at runTestWithContext (/home/user/jest/node_modules/jest-circus/build/jestAdapterInit.js:996:5) ⏎     at _runTestsForDescribeBlockOnce (/home/user/jest/node_modules/jest-circus/build/jestAdapterInit.js:1008:11) ⏎ […] ⏎ uild/jestAdapterInit.js:789:3) ⏎     at runAndTransformResultsToJestFormat (/home/user/jest/node_modules/jest-circus/build/jestAdapterInit.js:2300:21) ⏎     at jestAdapter (/home/user/jest/node_modules/jest-circus/build/runner.js:111:19) ⏎     at runTestInternal (/home/user/jest/node_modules/jest-runner/build/index.js:247:16) ⏎     at runTest (/home/user/jest/node_modules/jest-runner/build/index.js:315:7)
    throws at /home/user/jest/sum.test.js:9 · Error: no database ⏎     at Object.<anonymous> (/home/user/jest/sum.test.js:9:30) ⏎     at Promise.finally.completed (/home/user/jest/node_modules/jest-circus/build/jestAdapterInit.js:1834:28) ⏎     at new Promise (<anonymous>) ⏎     at callAsyncCircusFn (/home/user/jest/node_modules/jest-circus/build/jestAdapterInit.js:1774:10) ⏎     at _callCircusTest (/home/user/jest/node_modules/jest-circus/build/jestAdapterInit.js:1167:40) ⏎     at _runTestInContext (/home/user/jest/node_modules/jest-circus/build/jestAdapterInit.js:1103:3) ⏎     at runTestWithContext (/home/user/jest/node_modules/jest-circus/build/jestAdapterInit.js:996:5) ⏎     at _runTestsForDescribeBlockOnce (/home/user/jest/node_modules/jest-circus/build/jestAdapterInit.js:1008:11) ⏎     at _runTestsForDescribeBlock (/home/user/jest/node_modules/je ⏎ […] ⏎ uild/jestAdapterInit.js:789:3) ⏎     at runAndTransformResultsToJestFormat (/home/user/jest/node_modules/jest-circus/build/jestAdapterInit.js:2300:21) ⏎     at jestAdapter (/home/user/jest/node_modules/jest-circus/build/runner.js:111:19) ⏎     at runTestInternal (/home/user/jest/node_modules/jest-runner/build/index.js:247:16) ⏎     at runTest (/home/user/jest/node_modules/jest-runner/build/index.js:315:7)
    ");
}

#[test]
fn ordinary_text_is_no_report() {
    for text in [
        "",
        "ok\n",
        "make: *** [test] Error 1\n",
        "error: no such file\n",
        "FAIL\n",
        "3 of 4 passed in total\n",
        "Tests: see below\n",
        "1. first\n2. second\n",
        "\u{1b}",
        "\u{1b}[",
        "\u{1b}]0;title",
    ] {
        assert_eq!(parse(text), None, "{text:?}");
    }
}

#[test]
fn cut_output_never_panics() {
    for output in [
        fixture!("cargo-test.txt"),
        fixture!("pytest.txt"),
        fixture!("jest-color.txt"),
        fixture!("go.txt"),
        fixture!("tap-node.txt"),
        fixture!("prove-v.txt"),
        fixture!("pytest.xml"),
        fixture!("jest.xml"),
    ] {
        for (index, _) in output.char_indices().step_by(7) {
            let (_, _) = (parse(&output[..index]), parse(&output[index..]));
        }
    }
}

#[test]
fn number_and_size_of_failures_are_limited() {
    let failures: String = (0..50)
        .map(|n| format!("---- t{n} stdout ----\n{}\n", "long ".repeat(1000)))
        .collect();
    let report = parse(&format!(
        "{failures}\ntest result: FAILED. 0 passed; 50 failed; 0 ignored"
    ))
    .expect("a report");
    assert_eq!(
        (report.failures.len(), report.more_failures, report.failed),
        (20, 30, 50)
    );
    assert!(report.failures.iter().all(|failure| failure.message.len() < 1300));
}
