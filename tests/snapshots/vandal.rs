//! An agent that changes the project in every possible way, and a restore of each of its iterations.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use ralph::snapshot::{RestoreRequest, Restorer, SnapshotId, SnapshotRules};
use tempfile::TempDir;

use super::helpers::{Project, contents};

const NAMES: [&str; 12] = [
    "a.txt",
    "b.txt",
    "src/lib.rs",
    "src/deep/x",
    "src",
    "d/e/f",
    "name with space",
    "é\n",
    "bin",
    "link",
    "d",
    "big",
];

/// Changes the project in one random way.
fn vandalize(project: &Project, random: &mut Rng) {
    let name = NAMES[random.usize(..NAMES.len())];
    let path = project.path(name);
    let text = random.u64(..).to_string().repeat(random.usize(1..50));
    let parent = path.parent().expect("a parent");
    // An error is part of the game: a parent may be a file, or a file a directory.
    let _ = match random.u8(0..16) {
        0..4 => fs::create_dir_all(parent).and_then(|()| fs::write(&path, text)),
        4 => shell(project, &format!("sed -i s/1/2/ '{name}'")),
        5 => fs::rename(&path, project.path(NAMES[random.usize(..NAMES.len())])),
        6 => shell(
            project,
            &format!("chmod {:o} '{name}'", random.u32(0o400..0o1000) | 0o400),
        ),
        7 => {
            let _ = fs::remove_file(&path);
            symlink(NAMES[random.usize(..NAMES.len())], &path)
        }
        8 => fs::write(&path, random.u64(..).to_le_bytes().repeat(100)),
        9 => fs::write(&path, vec![random.u8(..); random.usize(1_000_000..3_000_000)]),
        10 => fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path)),
        11 => fs::create_dir_all(&path),
        12 => shell(
            project,
            "git add -A; git commit -qm x; git stash -q; git gc -q --prune=now",
        ),
        13 => shell(project, "git reset -q --hard; git checkout -q -- ."),
        14 if random.u8(..) < 40 => fs::remove_dir_all(project.path(".git")),
        14 => shell(
            project,
            "git init -q . 2>/dev/null; git add -A; git stash -q; git stash pop -q",
        ),
        _ => {
            let nested = project.path("nested");
            fs::create_dir_all(&nested).and_then(|()| {
                let _ = Command::new("git")
                    .args(["init", "-q"])
                    .current_dir(&nested)
                    .output();
                fs::write(nested.join("inner"), text)
            })
        }
    };
}

fn shell(project: &Project, script: &str) -> std::io::Result<()> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).current_dir(project.root());
    let identity = [
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
    ];
    command.envs(identity.map(|name| (name, "vandal")));
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().map(drop)
}

/// Everything that belongs to a snapshot.
fn recorded(root: &Path) -> BTreeMap<Vec<u8>, String> {
    let mut found = contents(root);
    found.retain(|path, _| !path.starts_with(b"ignored") && !path.starts_with(b"bystander"));
    // The directory of a nested repository is not removed, because its `.git` belongs to no snapshot.
    found.remove(&b"nested"[..]);
    found
}

fn copy(project: &Project, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(project.root()).arg(to).output();
    assert!(copied.expect("cp").status.success());
}

/// A process that writes files meanwhile.
struct Bystander {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Bystander {
    fn start(directory: PathBuf) -> Self {
        fs::create_dir_all(&directory).expect("a directory");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let write = move || {
            for number in 0_u64.. {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let _ = fs::write(directory.join((number % 20).to_string()), number.to_string());
                std::thread::yield_now();
            }
        };
        let thread = Some(std::thread::spawn(write));
        Self { stop, thread }
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the bystander");
        }
    }
}

/// Lets a vandal work; returns the snapshot and a copy of each iteration.
fn iterations_of_a_vandal(
    project: &Project,
    random: &mut Rng,
    (iterations, operations): (usize, usize),
    copies: &Path,
) -> Vec<(SnapshotId, PathBuf)> {
    project.write(".gitignore", "/ignored\n");
    project.write("a.txt", "one\n");
    project.write("src/lib.rs", "fn f() {}\n");
    project.git(&["add", "-A"]);
    project.git(&["commit", "-qm", "first"]);
    let _bystander = Bystander::start(project.path("ignored"));
    let mut taker = project.taker();
    let record = |iteration: usize| {
        for _ in 0..operations * iteration.min(1) {
            vandalize(project, random);
        }
        let git_before = repository(project);
        let id = taker.take().expect("a snapshot").id;
        assert_eq!(
            git_before,
            repository(project),
            "a snapshot does not change the repository"
        );
        let to = copies.join(iteration.to_string());
        copy(project, &to);
        (id, to)
    };
    (0..=iterations).map(record).collect()
}

fn repository(project: &Project) -> Option<BTreeMap<Vec<u8>, String>> {
    let git = project.path(".git");
    git.is_dir().then(|| contents(&git))
}

fn vandal_run(seed: u64, size: (usize, usize), restores: usize) {
    let mut random = Rng::with_seed(seed);
    let project = Project::in_git();
    let copies = TempDir::new().expect("a directory");
    let snapshots = iterations_of_a_vandal(&project, &mut random, size, copies.path());
    let rules = SnapshotRules {
        max_mb: 1000,
        ..SnapshotRules::default()
    };
    let last = snapshots[snapshots.len() - 1].0;
    for round in 0..restores {
        // Recorded by no snapshot of the run, so it stays.
        project.write(&format!("bystander-{round}"), "mine");
        let (target, copied) = &snapshots[random.usize(..snapshots.len())];
        let git_before = repository(&project);
        let name = format!("2026010{round}-restore");
        let mut restorer = Restorer::new(project.store(), &name, &project.root(), rules.clone());
        let request = RestoreRequest {
            target: *target,
            recorded: vec![last],
            paths: Vec::new(),
        };
        let plan = restorer.plan(request).expect("a plan");
        assert_eq!(plan.unrecorded, Vec::<Vec<u8>>::new(), "seed {seed}");
        restorer.carry_out(plan).expect("a restore");
        let (found, expected) = (recorded(&project.root()), recorded(copied));
        let paths = found.keys().chain(expected.keys());
        let differing: Vec<&Vec<u8>> = paths
            .filter(|path| found.get(*path) != expected.get(*path))
            .collect();
        assert_eq!(differing, Vec::<&Vec<u8>>::new(), "seed {seed}, round {round}");
        assert_eq!(
            git_before,
            repository(&project),
            "the user's repository is not changed"
        );
        for earlier in 0..=round {
            let path = project.path(&format!("bystander-{earlier}"));
            assert_eq!(fs::read_to_string(path).expect("the bystander's file"), "mine");
        }
        let ignored = fs::read_dir(project.path("ignored")).expect("the bystander's directory");
        assert!(ignored.count() > 0);
    }
}

#[test]
fn every_iteration_of_a_vandal_is_restored() {
    vandal_run(1, (8, 10), 5);
}

#[test]
#[ignore = "takes minutes: just slow"]
fn every_iteration_of_many_vandals_is_restored() {
    for seed in 0..20 {
        vandal_run(seed, (20, 15), 20);
    }
}
