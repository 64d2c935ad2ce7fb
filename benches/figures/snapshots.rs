//! F12: snapshots of large projects over many iterations, against what git needs for the same changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ralph::process::Supervisors;
use ralph::snapshot::{SnapshotRules, SnapshotStore, SnapshotTaker};

use crate::sample::{Figure, median, quantile, scratch, sync_disk, time};

const ITERATIONS: usize = 200;
/// git is measured in every tenth iteration.
const GIT_EVERY: usize = 10;
/// Files that an iteration changes.
const CHANGED: usize = 5;

/// A project of `files` files of `bytes` bytes each.
struct Size {
    label: &'static str,
    files: usize,
    bytes: usize,
    target: &'static str,
}

const SIZES: [Size; 3] = [
    Size {
        label: "14 MB in 700 files",
        files: 700,
        bytes: 20_000,
        target: "≤ 40 ms",
    },
    Size {
        label: "200 MB in 2,000 files",
        files: 2_000,
        bytes: 100_000,
        target: "",
    },
    Size {
        label: "50,000 files",
        files: 50_000,
        bytes: 1_000,
        target: "≤ 1.5 s",
    },
];

pub(crate) fn over_many_iterations() -> Vec<Figure> {
    SIZES.iter().flat_map(measure).collect()
}

fn measure(size: &Size) -> Vec<Figure> {
    let base = scratch().join(format!("snapshots-{}", size.files));
    // A file that is missing makes the figure wrong, which is visible.
    let _ = fs::remove_dir_all(&base);
    let root = base.join("work");
    create(&root, size);
    let supervisors = Supervisors::at(env!("CARGO_BIN_EXE_ralph"));
    let store = SnapshotStore::at(base.join("snapshots.git"), &supervisors);
    let rules = SnapshotRules {
        max_mb: 4096,
        ..SnapshotRules::default()
    };
    let mut taker = SnapshotTaker::new(store.clone(), "20260101-000000-bench", &root, rules);
    let first = timed(|| drop(taker.take()));
    let (before, git_before) = (store.size(), git_size(&root));
    let (mut ours, mut stash, mut add) = (Vec::new(), Vec::new(), Vec::new());
    let mut objects = 0;
    for iteration in 1..=ITERATIONS {
        change(&root, size, iteration);
        let started = Instant::now();
        assert!(taker.take().is_ok_and(|taken| taken.changes.len() == CHANGED));
        ours.push(started.elapsed());
        if iteration % GIT_EVERY == 0 {
            stash.push(time(git(&root).args(["stash", "create"])));
            add.push(time(git(&root).args(["add", "-A"])));
            objects += 1;
        }
    }
    let unchanged = timed(|| drop(taker.take()));
    let each = (store.size() - before) / ITERATIONS as u64;
    let git_each = (git_size(&root).saturating_sub(git_before)) / objects.max(1);
    supervisors.shut_down();
    let _ = fs::remove_dir_all(&base);
    let label = size.label;
    vec![
        Figure::plain(&format!("first snapshot of {label}"), millis(first), ""),
        Figure::times(
            &format!("snapshot of {label}, against `git stash create`"),
            median(ours.clone()),
            median(stash),
            size.target,
        ),
        Figure::times("… against `git add -A`", median(ours.clone()), median(add), ""),
        Figure::plain("… 99th percentile", millis(quantile(ours, 0.99)), ""),
        Figure::plain("… without changes", millis(unchanged), ""),
        Figure::plain(
            "… growth of the store per iteration, and of git's for a tenth of them",
            format!("{each} bytes, {git_each} bytes"),
            "",
        ),
    ]
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn path(root: &Path, file: usize) -> PathBuf {
    root.join(format!("d{:03}", file % 250))
        .join(format!("f{file}.txt"))
}

/// Text that compresses about as well as source code.
fn text(seed: usize, bytes: usize) -> String {
    let mut random = fastrand::Rng::with_seed(seed as u64);
    let mut text = String::with_capacity(bytes + 64);
    while text.len() < bytes {
        let (name, number) = (random.u32(..5_000), random.u32(..100));
        text.push_str(&format!("    let value_{name} = compute({number});\n"));
    }
    text
}

fn create(root: &Path, size: &Size) {
    for file in 0..size.files {
        let path = path(root, file);
        let _ = path.parent().map(fs::create_dir_all);
        let _ = fs::write(path, text(file, size.bytes));
    }
    for args in [
        &["init", "--quiet"][..],
        &["add", "-A"],
        &["commit", "--quiet", "-m", "first"],
    ] {
        time(git(root).args(args));
    }
    sync_disk();
}

fn change(root: &Path, size: &Size, iteration: usize) {
    for number in 0..CHANGED {
        let file = (iteration * 37 + number * 101) % size.files;
        let text = text(file + iteration * size.files, size.bytes);
        let _ = fs::write(path(root, file), text);
    }
}

fn git(root: &Path) -> Command {
    let mut command = Command::new("git");
    command.args([
        "-c",
        "user.name=b",
        "-c",
        "user.email=b@localhost",
        "-c",
        "gc.auto=0",
    ]);
    command.current_dir(root);
    command
}

fn git_size(root: &Path) -> u64 {
    let mut pending = vec![root.join(".git/objects")];
    let mut size = 0;
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => pending.push(entry.path()),
                Ok(metadata) => size += metadata.len(),
                Err(_) => {}
            }
        }
    }
    size
}
