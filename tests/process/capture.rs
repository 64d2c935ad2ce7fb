//! Tests of `capture`, which runs a short program and returns its output.

use std::time::{Duration, Instant};

use ralph::event::ProcessEnd;
use ralph::process::{Bounds, Captured, Omitted, capture};

use super::helpers::{ChildFixture, DEADLINE, supervisors};

const BOUNDS: Bounds = Bounds {
    timeout: DEADLINE,
    grace: DEADLINE,
    max_bytes: 1 << 20,
};

#[test]
fn output_and_end_are_captured() {
    let fixture = ChildFixture::with_script("").with_args(&["--version"]);
    let expected = Captured {
        end: Some(ProcessEnd::Exited { code: 0 }),
        stdout: b"fake-agent 9.9.9\n".to_vec(),
        stderr: Vec::new(),
        stdout_omitted: None,
        stderr_omitted: None,
        swept: 0,
    };
    assert_eq!(capture(&supervisors(), &fixture.spec, BOUNDS).unwrap(), expected);

    let fixture = ChildFixture::with_script("say out\nerr err\nexit 3");
    let captured = capture(&supervisors(), &fixture.spec, BOUNDS).unwrap();
    assert_eq!(captured.end, Some(ProcessEnd::Exited { code: 3 }));
    assert_eq!(
        (captured.stdout, captured.stderr),
        (b"out\n".to_vec(), b"err\n".to_vec())
    );
}

#[test]
fn a_program_that_takes_too_long_is_stopped() {
    let fixture = ChildFixture::with_script("ignore TERM\nsay so far\nhang");
    let since = Instant::now();
    let bounds = Bounds {
        timeout: Duration::from_secs(1),
        grace: Duration::from_millis(50),
        ..BOUNDS
    };
    let captured = capture(&supervisors(), &fixture.spec, bounds).unwrap();
    assert!(since.elapsed() < DEADLINE);
    assert_eq!(captured.end, None);
    assert_eq!(captured.stdout, b"so far\n");
    fixture.assert_no_process_is_left();
}

#[test]
fn head_and_tail_of_long_output_are_kept() {
    let fixture = ChildFixture::with_script("print head\nrepeat 100000 middle\nprint tail");
    let captured = capture(
        &supervisors(),
        &fixture.spec,
        Bounds {
            max_bytes: 8,
            ..BOUNDS
        },
    )
    .unwrap();
    assert_eq!(captured.stdout, b"headtail");
    assert_eq!(
        captured.stdout_omitted,
        Some(Omitted {
            at: 4,
            bytes: 700_000
        })
    );
}
