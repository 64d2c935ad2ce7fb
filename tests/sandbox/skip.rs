//! Reports tests that cannot run on this machine.

use std::fs::File;
use std::io::Write;
use std::panic::Location;

/// Reports that the running test checks nothing here, or fails it if `RALPH_REQUIRE_ALL` is 1.
///
/// The line goes to stderr, past the output capture of libtest, and to the file that `RALPH_SKIP_LOG` names. `.ci/run` prints
/// that file at its end.
#[track_caller]
pub(crate) fn skip(reason: &str) {
    let thread = std::thread::current();
    // With `--test-threads 1` tests run on the main thread, which has no test's name.
    let test = match thread.name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => Location::caller().to_string(),
    };
    let line = format!("SKIPPED {test}: {reason}");
    assert!(
        std::env::var_os("RALPH_REQUIRE_ALL").is_none_or(|value| value != "1"),
        "{line}, but RALPH_REQUIRE_ALL=1"
    );
    let _ = writeln!(std::io::stderr(), "{line}");
    if let Some(path) = std::env::var_os("RALPH_SKIP_LOG") {
        let mut log = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .expect("the file of RALPH_SKIP_LOG");
        log.write_all(format!("{line}\n").as_bytes())
            .expect("a line in the file of RALPH_SKIP_LOG");
    }
}
