//! Checkpoints against a bare repository, without an engine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

struct Hub {
    root: tempfile::TempDir,
    base: String,
}

impl Hub {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().to_owned();
        let git = Git::new(&path);
        git.run(&["init", "--quiet", "--bare", "hub.git"]).unwrap();
        git.run(&["init", "--quiet", "-b", "main", "seed"]).unwrap();
        let seed = Git::new(&path.join("seed"));
        fs::write(path.join("seed/README"), "hello\n").unwrap();
        fs::write(path.join("seed/.gitignore"), "cache\n").unwrap();
        seed.run(&["add", "."]).unwrap();
        seed.run(&["commit", "--quiet", "-m", "first"]).unwrap();
        let hub = path.join("hub.git").display().to_string();
        seed.run(&["push", "--quiet", &hub, "main"]).unwrap();
        let base = seed.run(&["rev-parse", "HEAD"]).unwrap();
        Self { root, base }
    }

    fn remote(&self) -> String {
        self.root.path().join("hub.git").display().to_string()
    }

    fn host(&self, name: &str, attempt: u32) -> Provisioned {
        let remote = self.remote();
        let ship = ["cache".to_owned()];
        let source = TaskSource {
            remote: &remote,
            name: "plan/task",
            branch: "ralph/plan/task",
            integration: Some("ralph/plan"),
            base: &self.base,
            run_id: "20261115-204501-plan-task",
            ship: &ship,
            worker: name,
            attempt,
        };
        prepare(&self.root.path().join(name), &source).unwrap()
    }
}

/// Everything that a checkpoint must keep.
#[derive(Debug, Clone, PartialEq)]
struct Contents {
    head: String,
    files: BTreeMap<PathBuf, String>,
    run: BTreeMap<PathBuf, String>,
}

fn files_below(directory: &Path, left_out: &[&str]) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            let relative = path.strip_prefix(directory).unwrap().to_owned();
            if left_out.iter().any(|name| relative.starts_with(name)) {
                continue;
            }
            match path.is_dir() {
                true => pending.push(path),
                false => drop(found.insert(relative, fs::read_to_string(&path).unwrap())),
            }
        }
    }
    found
}

fn contents(host: &Provisioned) -> Contents {
    Contents {
        head: Git::new(&host.copy.workspace)
            .run(&["rev-parse", "HEAD"])
            .unwrap(),
        files: files_below(&host.copy.workspace, &[".git"]),
        run: files_below(&host.copy.run_directory, &[]),
    }
}

/// A generator of numbers that every run of the test repeats.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn act(host: &Provisioned, numbers: &mut Numbers, seq: &mut u64) {
    let work = &host.copy.workspace;
    let git = Git::new(work);
    let file = work.join(format!("file-{}", numbers.below(4)));
    match numbers.below(6) {
        0 => fs::write(file, format!("text {}\n", numbers.below(1000))).unwrap(),
        1 => drop(fs::remove_file(file)),
        2 => {
            git.run(&["add", "--all"]).unwrap();
            git.run(&["commit", "--quiet", "--allow-empty", "-m", "agent"])
                .unwrap();
        }
        3 => fs::write(work.join("cache"), format!("cached {}\n", numbers.below(1000))).unwrap(),
        4 => {
            let iterations = host.copy.run_directory.join(format!("iterations/{seq:04}"));
            fs::create_dir_all(&iterations).unwrap();
            fs::write(iterations.join("stdout.raw"), "output\n").unwrap();
        }
        _ => {
            *seq += 1;
            let journal = host.copy.run_directory.join("events.jsonl");
            fs::create_dir_all(&host.copy.run_directory).unwrap();
            let mut text = fs::read_to_string(&journal).unwrap_or_default();
            text.push_str(&format!("{{\"seq\":{seq},\"type\":\"note\"}}\n"));
            fs::write(journal, text).unwrap();
        }
    }
}

#[test]
fn wherever_a_host_is_cut_off_the_next_one_has_the_last_checkpoint() {
    for seed in 1..=4 {
        let (hub, mut numbers, mut seq) = (Hub::new(), Numbers(seed), 0);
        let mut host = hub.host("h1", 1);
        let mut saved = contents(&host);
        for attempt in 2..=6 {
            for _ in 0..numbers.below(5) {
                for _ in 0..numbers.below(6) {
                    act(&host, &mut numbers, &mut seq);
                }
                save(&host.file).unwrap();
                saved = contents(&host);
            }
            for _ in 0..numbers.below(6) {
                act(&host, &mut numbers, &mut seq);
            }
            host = hub.host(&format!("h{attempt}"), attempt);
            let mut restored = contents(&host);
            // Empty directories do not exist for git, and a file without a line is not journaled yet.
            restored.run.retain(|path, _| saved.run.contains_key(path));
            assert_eq!(restored, saved, "seed {seed}, attempt {attempt}");
            assert_eq!(host.is_known, saved.run.contains_key(Path::new("events.jsonl")));
        }
    }
}

#[test]
fn a_copy_that_slept_cannot_overwrite_its_successor() {
    let hub = Hub::new();
    let old = hub.host("old", 1);
    fs::write(old.copy.workspace.join("a"), "old").unwrap();
    save(&old.file).unwrap();
    let new = hub.host("new", 2);
    fs::write(new.copy.workspace.join("a"), "new").unwrap();
    save(&new.file).unwrap();
    fs::write(old.copy.workspace.join("a"), "late").unwrap();
    assert_eq!(save(&old.file), Err(ProvisionError::Fenced));
    assert_eq!(save(&old.file), Err(ProvisionError::Fenced), "it stays fenced");
    let third = hub.host("third", 3);
    assert_eq!(fs::read_to_string(third.copy.workspace.join("a")).unwrap(), "new");
    save(&new.file).unwrap();
}

#[test]
fn two_copies_that_start_at_once_have_one_line_of_checkpoints() {
    let hub = Hub::new();
    let (one, two) = (hub.host("one", 1), hub.host("two", 1));
    save(&one.file).unwrap();
    assert_eq!(save(&two.file), Err(ProvisionError::Fenced));
}

#[test]
fn a_remote_that_cannot_be_reached_or_refuses_is_not_a_fence() {
    let hub = Hub::new();
    let host = hub.host("h", 1);
    save(&host.file).unwrap();
    let (hub_path, away) = (hub.root.path().join("hub.git"), hub.root.path().join("away.git"));
    fs::rename(&hub_path, &away).unwrap();
    let lost = save(&host.file);
    assert!(matches!(lost, Err(ProvisionError::NotSaved { .. })), "{lost:?}");
    fs::rename(&away, &hub_path).unwrap();
    let hook = hub_path.join("hooks/pre-receive");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let refused = save(&host.file);
    assert!(
        matches!(refused, Err(ProvisionError::NotSaved { .. })),
        "{refused:?}"
    );
    fs::remove_file(hook).unwrap();
    save(&host.file).unwrap();
}

#[test]
fn the_journal_travels_in_segments() {
    let hub = Hub::new();
    let host = hub.host("h", 1);
    fs::create_dir_all(&host.copy.run_directory).unwrap();
    let journal = host.copy.run_directory.join("events.jsonl");
    let line = |seq: u64, rest: &str| format!("{{\"seq\":{seq},{rest}}}\n");
    let ended = r#""type":"iteration_ended","iteration":1,"usage":{"cost_usd":0.25}"#;
    let first = line(1, ended) + "{\"seq\":2,\"ty";
    fs::write(&journal, &first).unwrap();
    let saved = save(&host.file).unwrap();
    assert_eq!((saved.summary.iteration, saved.summary.cost_usd), (1, 0.25));
    let recorded = line(2, r#""type":"told","id":"order-7""#);
    fs::write(&journal, line(1, ended) + &recorded).unwrap();
    assert_eq!(save(&host.file).unwrap().summary.received, ["order-7"]);
    let copy = Copy::read(&host.file).unwrap();
    assert_eq!(copy.segments.len(), 2);
    let next = hub.host("next", 2);
    assert_eq!(next.copy.summary, copy.summary);
    assert_eq!(
        fs::read_to_string(next.copy.run_directory.join("events.jsonl")).unwrap(),
        line(1, ended) + &recorded
    );
}

#[test]
fn passwords_in_urls_are_not_shown() {
    let text = "fatal: unable to access 'https://me:secret@example.org/a.git/': no";
    assert_eq!(
        redacted(text),
        "fatal: unable to access 'https://example.org/a.git/': no"
    );
}
