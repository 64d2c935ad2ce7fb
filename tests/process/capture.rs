//! Short programs whose output is wanted whole.

use std::time::{Duration, Instant};

use ralph::event::ProcessEnd;
use ralph::process::{Bounds, Captured, Omitted, capture};

use super::stage::{DEADLINE, Stage, supervisors};

const BOUNDS: Bounds = Bounds {
    timeout: DEADLINE,
    grace: DEADLINE,
    max_bytes: 1 << 20,
};

#[test]
fn output_and_end_are_captured() {
    let stage = Stage::playing("").with_args(&["--version"]);
    let expected = Captured {
        end: Some(ProcessEnd::Exited { code: 0 }),
        stdout: b"fake-agent 9.9.9\n".to_vec(),
        stderr: Vec::new(),
        stdout_omitted: None,
        stderr_omitted: None,
        swept: 0,
    };
    assert_eq!(capture(&supervisors(), &stage.spec, BOUNDS).unwrap(), expected);

    let stage = Stage::playing("say out\nerr err\nexit 3");
    let captured = capture(&supervisors(), &stage.spec, BOUNDS).unwrap();
    assert_eq!(captured.end, Some(ProcessEnd::Exited { code: 3 }));
    assert_eq!(
        (captured.stdout, captured.stderr),
        (b"out\n".to_vec(), b"err\n".to_vec())
    );
}

#[test]
fn a_program_that_takes_too_long_is_stopped() {
    let stage = Stage::playing("ignore TERM\nsay so far\nhang");
    let since = Instant::now();
    let bounds = Bounds {
        timeout: Duration::from_secs(1),
        grace: Duration::from_millis(50),
        ..BOUNDS
    };
    let captured = capture(&supervisors(), &stage.spec, bounds).unwrap();
    assert!(since.elapsed() < DEADLINE);
    assert_eq!(captured.end, None);
    assert_eq!(captured.stdout, b"so far\n");
    stage.assert_all_are_gone();
}

#[test]
fn of_too_much_output_head_and_tail_are_kept() {
    let stage = Stage::playing("print head\nrepeat 100000 middle\nprint tail");
    let captured = capture(
        &supervisors(),
        &stage.spec,
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
