//! Tests for gates, which check completion claims.

use super::*;
use crate::policy::GatePlace;

#[test]
fn output_of_a_failed_gate_is_in_the_next_prompt() {
    let mut run = TestRun::launched(Policy {
        gates: vec![gate("test"), gate("lint")],
        ..policy()
    });
    assert_eq!(run.iteration(1, "LOOP_COMPLETE"), [Action::RunGate(gate("test"))]);
    let failed = Some(ProcessEnd::Exited { code: 101 });
    let ended = Input::GateEnded(GateEnd {
        end: failed,
        output: "2 tests failed".into(),
        ..GateEnd::default()
    });
    assert_eq!(run.step(3, ended), [Action::ReadPrompt]);
    assert_eq!(
        *run.last_outcome(),
        IterationOutcome::Continued {
            rejected_by: Some("test".into())
        }
    );
    let prompt = run.launch(3, 2, 1);
    assert!(
        prompt.contains("exit code 101 after 2 s") && prompt.contains("2 tests failed"),
        "{prompt}"
    );

    assert_eq!(run.iteration(4, "LOOP_COMPLETE"), [Action::RunGate(gate("test"))]);
    let passed = || {
        Input::GateEnded(GateEnd {
            end: Some(OK),
            output: String::new(),
            ..GateEnd::default()
        })
    };
    assert_eq!(run.step(5, passed()), [Action::RunGate(gate("lint"))]);
    assert_eq!(run.step(6, passed()), complete());
}

#[test]
fn gates_can_time_out_fail_to_start_and_be_interrupted() {
    let gated = || Policy {
        gates: vec![gate("test")],
        ..policy()
    };
    let mut run = TestRun::launched(gated());
    run.iteration(1, "LOOP_COMPLETE");
    assert_eq!(run.engine.deadline(), Some(secs(61)));
    assert_eq!(run.step(61, Input::Tick), stop());
    let end = Some(ProcessEnd::Signaled { signal: 15 });
    assert_eq!(
        run.step(
            62,
            Input::GateEnded(GateEnd {
                end,
                output: String::new(),
                ..GateEnd::default()
            })
        ),
        [Action::ReadPrompt]
    );
    assert!(run.launch(62, 2, 1).contains("which timed out"));

    run.iteration(63, "LOOP_COMPLETE");
    assert_eq!(
        run.step(
            64,
            Input::GateEnded(GateEnd {
                end: None,
                output: "no such file".into(),
                ..GateEnd::default()
            })
        ),
        [Action::ReadPrompt]
    );
    assert!(run.launch(64, 3, 1).contains("could not be started"));

    run.iteration(65, "LOOP_COMPLETE");
    assert_eq!(run.step(66, stop_by(Interrupt::Int)), stop());
    let over = [Action::Finish(RunOutcome::Interrupted { by: Interrupt::Int })];
    assert_eq!(
        run.step(
            67,
            Input::GateEnded(GateEnd {
                end: Some(OK),
                output: String::new(),
                ..GateEnd::default()
            })
        ),
        over
    );
}

fn failed(output: &str) -> Input {
    Input::GateEnded(GateEnd {
        end: Some(ProcessEnd::Exited { code: 1 }),
        output: output.into(),
        ..GateEnd::default()
    })
}

fn passed(output: &str) -> Input {
    Input::GateEnded(GateEnd {
        end: Some(OK),
        output: output.into(),
        ..GateEnd::default()
    })
}

const PYTEST: &str = "progress\n____ test_b ____\n\nE   assert 1 == 2\n\ntest_a.py:7: AssertionError\n\
                      ==== 1 failed, 3 passed in 0.1s ====\n";

#[test]
fn prompt_lists_failed_tests_instead_of_the_output() {
    let mut run = TestRun::launched(Policy {
        gates: vec![gate("test")],
        ..policy()
    });
    run.iteration(1, "LOOP_COMPLETE");
    run.step(3, failed(PYTEST));
    let prompt = run.launch(3, 2, 1);
    let expected = "`run test`, which failed with exit code 1 after 2 s. Tests: 1 failed, 3 passed.\n\n\
                    - test_b at test_a.py:7\n```\nassert 1 == 2\n```";
    assert!(prompt.contains(expected), "{prompt}");
    assert!(!prompt.contains("progress"), "{prompt}");
    let report = run.emitted.iter().find_map(|event| match event {
        RunEvent::GateEnded { details, .. } => details.report.clone(),
        _ => None,
    });
    assert_eq!(report.map(|report| (report.passed, report.failed)), Some((3, 1)));
}

#[test]
fn long_lists_of_failures_are_limited() {
    let mut run = TestRun::launched(Policy {
        gates: vec![gate("test")],
        ..policy()
    });
    run.iteration(1, "LOOP_COMPLETE");
    let sections: String = (0..60)
        .map(|n| format!("____ test_{n} ____\nE   {}\na.py:{n}: X\n", "long ".repeat(300)))
        .collect();
    run.step(3, failed(&format!("{sections}==== 60 failed in 0.1s ====")));
    let prompt = run.launch(3, 2, 1);
    assert!(prompt.len() < 12_000, "{}", prompt.len());
    assert!(prompt.contains("\n\nand 54 more."), "{prompt}");
}

#[test]
fn hidden_gate_reveals_neither_its_command_nor_its_output() {
    let hidden = Gate {
        hidden: true,
        ..gate("acceptance")
    };
    let mut run = TestRun::with(Policy {
        gates: vec![gate("test"), hidden.clone()],
        ..policy()
    });
    run.step(0, Input::Started(Box::new(header())));
    let prompt = run.launch(0, 1, 1);
    assert!(
        prompt.contains("`run test`") && !prompt.contains("run acceptance"),
        "{prompt}"
    );
    run.iteration(1, "LOOP_COMPLETE");
    assert_eq!(run.step(2, passed("")), [Action::RunGate(hidden)]);
    run.step(3, failed(PYTEST));
    let prompt = run.launch(3, 2, 1);
    assert!(prompt.contains("a hidden check failed"), "{prompt}");
    let visible = format!("{prompt}{:?}", run.emitted);
    for secret in ["run acceptance", "test_b", "assert 1 == 2"] {
        assert!(!visible.contains(secret), "{secret}: {visible}");
    }
}

fn fails_first(name: &str) -> Gate {
    Gate {
        must_fail_first: true,
        ..gate(name)
    }
}

#[test]
fn gate_that_must_fail_first_runs_before_the_first_iteration() {
    let mut run = TestRun::with(Policy {
        gates: vec![gate("lint"), fails_first("test"), fails_first("e2e")],
        ..policy()
    });
    let begin = run.step(0, Input::Started(Box::new(header())));
    assert_eq!(begin, [Action::RunGate(fails_first("test"))]);
    assert_eq!(run.step(1, failed("")), [Action::RunGate(fails_first("e2e"))]);
    // A gate that times out does not pass.
    assert_eq!(run.step(61, Input::Tick), stop());
    assert_eq!(run.step(62, failed("")), [Action::ReadPrompt]);
    run.launch(62, 1, 1);
    assert_eq!(
        run.iteration(63, "LOOP_COMPLETE"),
        [Action::RunGate(gate("lint"))]
    );
    assert_eq!(run.step(64, passed("")), [Action::RunGate(fails_first("test"))]);
    assert_eq!(run.step(65, passed("")), [Action::RunGate(fails_first("e2e"))]);
    assert_eq!(run.step(66, passed("")), complete());
    let verification = run.emitted.iter().find_map(|event| match event {
        RunEvent::Verification { verified, gates, .. } => Some((*verified, gates.join(" "))),
        _ => None,
    });
    assert_eq!(verification, Some((true, "lint test e2e".to_owned())));
}

#[test]
fn gate_that_passes_before_any_work_is_a_configuration_error() {
    for (ended, expected) in [
        (passed(""), "passes before any work"),
        (Input::GateEnded(GateEnd::default()), "could not be started"),
    ] {
        let mut run = TestRun::with(Policy {
            gates: vec![fails_first("test")],
            ..policy()
        });
        run.step(0, Input::Started(Box::new(header())));
        match &run.step(1, ended)[..] {
            [Action::Finish(RunOutcome::Misconfigured { reason })] => {
                assert!(reason.contains(expected) && reason.contains("`test`"), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn check_before_the_first_iteration_can_be_interrupted() {
    let mut run = TestRun::with(Policy {
        gates: vec![fails_first("test")],
        ..policy()
    });
    run.step(0, Input::Started(Box::new(header())));
    assert_eq!(run.step(1, stop_by(Interrupt::Int)), stop());
    let over = [Action::Finish(RunOutcome::Interrupted { by: Interrupt::Int })];
    assert_eq!(run.step(2, failed("")), over);
}

#[test]
fn too_few_passed_tests_reject_the_claim() {
    let counted = Gate {
        min_tests: Some(3),
        ..gate("test")
    };
    let mut run = TestRun::launched(Policy {
        gates: vec![counted.clone()],
        ..policy()
    });
    for (seconds, output) in [(2, ""), (4, "==== 2 passed, 4 skipped in 0.1s ====")] {
        run.iteration(seconds, "LOOP_COMPLETE");
        assert_eq!(run.step(seconds, passed(output)), [Action::ReadPrompt]);
        let prompt = run.launch(seconds, 1 + seconds / 2, 1);
        assert!(prompt.contains("passed tests, fewer than required"), "{prompt}");
    }
    run.iteration(6, "LOOP_COMPLETE");
    // The report file takes precedence over the output.
    let report = "<testsuite><testcase name='a'/><testcase name='b'/><testcase name='c'/></testsuite>";
    let ended = Input::GateEnded(GateEnd {
        end: Some(OK),
        report: Some(report.into()),
        ..GateEnd::default()
    });
    assert_eq!(run.step(7, ended), complete());
}

#[test]
fn run_without_gates_is_unverified() {
    let mut run = TestRun::launched(policy());
    assert_eq!(run.iteration(1, "LOOP_COMPLETE"), complete());
    assert!(run.emitted.contains(&RunEvent::Verification {
        verified: false,
        gates: Vec::new(),
        tree: None,
        changed_checks: Vec::new(),
    }));
}

fn protecting(name: &str) -> Gate {
    Gate {
        protect: vec!["tests/**".into()],
        ..gate(name)
    }
}

/// A gate that ended in a clean checkout.
fn ended_clean(code: i32, protected_changes: &[&str]) -> Input {
    Input::GateEnded(GateEnd {
        end: Some(ProcessEnd::Exited { code }),
        tree: Some("t1".into()),
        protected_changes: protected_changes.iter().map(|path| (*path).to_owned()).collect(),
        ..GateEnd::default()
    })
}

fn tree(changed: &[&str], changed_checks: &[&str]) -> Input {
    let owned = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
    Input::TreeChecked(Ok(CheckedTree {
        tree: "t1".into(),
        changed: owned(changed),
        changed_checks: owned(changed_checks),
    }))
}

fn last_gate(run: &TestRun) -> (GateResult, Vec<String>) {
    let ended = run.emitted.iter().rev().find_map(|event| match event {
        RunEvent::GateEnded { result, details, .. } => Some((*result, details.paths.clone())),
        _ => None,
    });
    ended.expect("a gate has ended")
}

#[test]
fn gate_that_passes_only_with_changed_protected_files_is_tampered() {
    let rule = protecting("test");
    let mut run = TestRun::launched(Policy {
        gates: vec![rule.clone()],
        ..policy()
    });
    assert_eq!(run.iteration(1, "LOOP_COMPLETE"), [Action::RunGate(rule.clone())]);
    let again = run.step(2, ended_clean(0, &["tests/a.py"]));
    assert_eq!(again, [Action::RunProtectedGate(rule.clone())]);
    assert_eq!(run.step(3, ended_clean(1, &["tests/a.py"])), [Action::ReadPrompt]);
    assert_eq!(
        last_gate(&run),
        (GateResult::Tampered, vec!["tests/a.py".to_owned()])
    );
    let prompt = run.launch(3, 2, 1);
    assert!(
        prompt.contains("Your changes to these files do not count: tests/a.py"),
        "{prompt}"
    );

    // New tests that pass, beside a fix that passes the original ones.
    assert_eq!(run.iteration(4, "LOOP_COMPLETE"), [Action::RunGate(rule.clone())]);
    assert_eq!(
        run.step(5, ended_clean(0, &["tests/b.py"])),
        [Action::RunProtectedGate(rule)]
    );
    let check = [Action::CheckTree {
        tree: Some("t1".into()),
    }];
    assert_eq!(run.step(6, ended_clean(0, &["tests/b.py"])), check);
    assert_eq!(run.step(7, tree(&[], &["tests/b.py"])), complete());
    let checks = run.emitted.iter().find_map(|event| match event {
        RunEvent::Verification {
            tree, changed_checks, ..
        } => Some((tree.clone(), changed_checks.clone())),
        _ => None,
    });
    assert_eq!(
        checks,
        Some((Some("t1".to_owned()), vec!["tests/b.py".to_owned()]))
    );
}

#[test]
fn gate_that_fails_as_left_is_not_run_again() {
    let mut run = TestRun::launched(Policy {
        gates: vec![protecting("test")],
        ..policy()
    });
    run.iteration(1, "LOOP_COMPLETE");
    assert_eq!(run.step(2, ended_clean(1, &["tests/a.py"])), [Action::ReadPrompt]);
    assert!(matches!(last_gate(&run), (GateResult::Failed { .. }, paths) if paths.is_empty()));
}

#[test]
fn protected_files_that_change_while_the_gate_runs_reject_the_claim() {
    let mut run = TestRun::launched(Policy {
        gates: vec![protecting("test")],
        ..policy()
    });
    run.iteration(1, "LOOP_COMPLETE");
    let ended = Input::GateEnded(GateEnd {
        end: Some(OK),
        tree: Some("t1".into()),
        altered: vec!["tests/a.py".into()],
        ..GateEnd::default()
    });
    assert_eq!(run.step(2, ended), [Action::ReadPrompt]);
    assert_eq!(
        last_gate(&run),
        (GateResult::Tampered, vec!["tests/a.py".to_owned()])
    );
}

#[test]
fn project_that_changes_after_a_clean_gate_is_not_done() {
    let rule = Gate {
        place: Some(GatePlace::Clean),
        ..gate("test")
    };
    for (seconds, checked) in [
        (1, tree(&["src/a.py"], &[])),
        (2, Input::TreeChecked(Err("git is gone".into()))),
    ] {
        let mut run = TestRun::launched(Policy {
            gates: vec![rule.clone()],
            ..policy()
        });
        run.iteration(seconds, "LOOP_COMPLETE");
        run.step(seconds, ended_clean(0, &[]));
        assert_eq!(run.step(seconds, checked), [Action::ReadPrompt]);
        assert_eq!(last_gate(&run).0, GateResult::Outdated);
        assert!(
            run.launch(seconds, 2, 1)
                .contains("changed after `run test` had passed")
        );
    }
}

#[test]
fn check_of_the_project_can_be_interrupted() {
    let rule = Gate {
        place: Some(GatePlace::Clean),
        ..gate("test")
    };
    let mut run = TestRun::launched(Policy {
        gates: vec![rule],
        ..policy()
    });
    run.iteration(1, "LOOP_COMPLETE");
    run.step(2, ended_clean(0, &[]));
    assert!(run.engine.deadline().is_some());
    let over = [Action::Finish(RunOutcome::Interrupted { by: Interrupt::Int })];
    assert_eq!(run.step(3, stop_by(Interrupt::Int)), over);
    assert_eq!(run.step(4, tree(&[], &[])), []);
}
