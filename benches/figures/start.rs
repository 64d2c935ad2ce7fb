//! F1: how long it takes to begin; F9: how much there is to load.

use crate::sample::{Figure, interleaved, part, ralph, time, workspace};

const REPEATS: usize = 41;

pub(crate) fn start_up() -> Vec<Figure> {
    let nothing = || time(&mut part("nothing"));
    let (version, floor) = interleaved(REPEATS, || time(ralph().arg("--version")), nothing);
    let place = workspace("start", &["nothing"], "plain");
    let dry_run = || {
        time(
            ralph()
                .args(["run", "--dry-run", "-p", "x y"])
                .current_dir(&place),
        )
    };
    let (dry, dry_floor) = interleaved(REPEATS, dry_run, nothing);
    vec![
        Figure::times("`ralph --version`", version, floor, "≤ 1.5×"),
        Figure::times("`ralph run --dry-run`", dry, dry_floor, "≤ 4×"),
    ]
}

/// F9: how large the program is, as users get it: the profile of benches inherits that of releases, and no package is built
/// with more in it for the tests' sake than some that weigh nothing. How long it takes to build is measured by hand.
pub(crate) fn size() -> Vec<Figure> {
    let bytes = std::fs::metadata(env!("CARGO_BIN_EXE_ralph")).map_or(0, |file| file.len());
    vec![Figure::plain(
        "the program, stripped",
        format!("{:.2} MB", bytes as f64 / 1e6),
        "≤ 12 MB",
    )]
}
