//! F1: start-up time; F9: size of the binary.

use crate::sample::{Figure, helper, interleaved, ralph, time, workspace};

const REPEATS: usize = 41;

pub(crate) fn start_up() -> Vec<Figure> {
    let nothing = || time(&mut helper("nothing"));
    let (version, version_baseline) = interleaved(REPEATS, || time(ralph().arg("--version")), nothing);
    let directory = workspace("start", &["nothing"], "plain");
    let dry_run = || {
        time(
            ralph()
                .args(["run", "--dry-run", "-p", "x y"])
                .current_dir(&directory),
        )
    };
    let (dry, dry_baseline) = interleaved(REPEATS, dry_run, nothing);
    vec![
        Figure::times("`ralph --version`", version, version_baseline, "≤ 1.5×"),
        Figure::times("`ralph run --dry-run`", dry, dry_baseline, "≤ 4×"),
    ]
}

/// F9: the size of the binary that users get. The bench profile inherits the release profile, and the features that tests
/// enable add almost nothing. The build time is measured by hand.
pub(crate) fn size() -> Vec<Figure> {
    let bytes = std::fs::metadata(env!("CARGO_BIN_EXE_ralph")).map_or(0, |file| file.len());
    vec![Figure::plain(
        "binary, stripped",
        format!("{:.2} MB", bytes as f64 / 1e6),
        "≤ 12 MB",
    )]
}
