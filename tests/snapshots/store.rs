//! What a snapshot contains, and what it costs.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use ralph::snapshot::{ChangeKind, SnapshotError, SnapshotRules};

use super::helpers::{Project, contents, git};

#[test]
fn a_checkout_equals_the_project_in_content_mode_links_and_empty_directories() {
    let project = Project::new();
    project.write("plain", "text\n");
    project.write("crlf.txt", "a\r\nb\r\n");
    project.write("run.sh", "true");
    project.set_mode("run.sh", 0o755);
    project.write("secret", "x");
    project.set_mode("secret", 0o600);
    project.write("deep/er/file", "");
    project.write("name with \"quotes\" and \\ é\nnewline", "y");
    project.write("large", &"0123456789".repeat(300_000));
    fs::write(project.root().join(OsStr::from_bytes(b"\xff\xfe")), "bytes").unwrap();
    fs::write(project.path("binary"), [0, 159, 146, 150]).unwrap();
    fs::create_dir_all(project.path("empty/inner")).unwrap();
    project.set_mode("empty", 0o700);
    symlink("deep/er", project.path("link")).unwrap();
    symlink("/dev/null", project.path("absolute")).unwrap();
    // git would convert the line endings and run the filter.
    project.write(".gitattributes", "* text=auto eol=lf filter=x ident\n");
    let taken = project.take();
    assert_eq!(taken.files, 12);
    assert_eq!(project.contents_of(taken.id), contents(&project.root()));
    assert_eq!(taken.skipped, []);
}

#[test]
fn submodules_and_nested_repositories_are_recorded_file_by_file() {
    let project = Project::in_git();
    let other = Project::in_git();
    other.write("lib.rs", "fn f() {}");
    other.git(&["add", "-A"]);
    other.git(&["commit", "--quiet", "-m", "x"]);
    let url = other.root().display().to_string();
    project.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        &url,
        "module",
    ]);
    fs::create_dir(project.path("nested")).unwrap();
    git(&project.path("nested"), &["init", "--quiet"]);
    project.write("nested/a.rs", "a");
    project.write("nested/skipped.log", "a");
    project.write("nested/.git/info/exclude", "*.log\n");
    let files = project.files();
    assert_eq!(files, [".gitmodules", "module/lib.rs", "nested/a.rs"]);
}

#[test]
fn ignored_files_are_left_out_unless_they_are_tracked_included_or_were_recorded_before() {
    let project = Project::in_git();
    project.write(".gitignore", "*.log\n/target/\n!keep.log\n");
    project.write("sub/.gitignore", "*.tmp\n");
    project.write(".git/info/exclude", "private\n");
    for name in [
        "a.log",
        "keep.log",
        "target/out",
        "sub/x.tmp",
        "x.tmp",
        "private",
        "tracked.log",
    ] {
        project.write(name, name);
    }
    project.git(&["add", "--force", "tracked.log"]);
    let files = [".gitignore", "keep.log", "sub/.gitignore", "tracked.log", "x.tmp"];
    assert_eq!(project.files(), files);
    let rules = SnapshotRules {
        include: vec!["target/**".parse().unwrap()],
        max_mb: 1000,
        ..SnapshotRules::default()
    };
    let mut taker = project.taker_with(rules);
    let first = taker.take().unwrap();
    assert_eq!(first.files, 6, "target/out is included");
    project.write(".gitignore", "*\n");
    project.write("x.tmp", "changed");
    project.write("new", "ignored from the start");
    let second = taker.take().unwrap();
    let changed: Vec<&[u8]> = second.changes.iter().map(|change| &*change.path).collect();
    assert_eq!(changed, [&b".gitignore"[..], b"x.tmp"], "{second:?}");
}

#[test]
fn changes_are_counted_by_file_and_line() {
    let project = Project::new();
    project.write("same", "x");
    project.write("changed", "a\nb\nc\n");
    project.write("removed", "1\n2\n");
    project.write("sub/becomes-file", "x\n");
    project.write("becomes-directory", "x\n");
    let mut taker = project.taker();
    let first = taker.take().unwrap();
    assert_eq!((first.files, first.changes.len()), (5, 0));
    project.write("changed", "a\nB\nc\nd\n");
    fs::remove_file(project.path("removed")).unwrap();
    fs::remove_dir_all(project.path("sub")).unwrap();
    project.write("sub", "now a file\n");
    fs::remove_file(project.path("becomes-directory")).unwrap();
    project.write("becomes-directory/deep/inner", "y\n");
    fs::write(project.path("binary"), [0, 1]).unwrap();
    project.set_mode("same", 0o755);
    let second = taker.take().unwrap();
    let changes: Vec<_> = second
        .changes
        .iter()
        .map(|change| {
            (
                std::str::from_utf8(&change.path).unwrap(),
                change.kind,
                change.lines,
            )
        })
        .collect();
    use ChangeKind::{Added, Modified, Removed};
    let expected = [
        ("becomes-directory", Removed, Some((0, 1))),
        ("becomes-directory/deep/inner", Added, Some((1, 0))),
        ("binary", Added, None),
        ("changed", Modified, Some((2, 1))),
        ("removed", Removed, Some((0, 2))),
        ("same", Modified, Some((0, 0))),
        ("sub", Added, Some((1, 0))),
        ("sub/becomes-file", Removed, Some((0, 1))),
    ];
    assert_eq!(changes, expected);
    assert_eq!(project.contents_of(second.id), contents(&project.root()));
    assert_eq!(
        project.store().changed_paths(first.id, second.id).unwrap(),
        second.changes
    );
    let patch = project
        .store()
        .diff(first.id, second.id, &[b"changed".to_vec()])
        .unwrap();
    let patch = String::from_utf8(patch).unwrap();
    assert!(
        patch.contains("--- a/changed\n+++ b/changed\n") && patch.contains("\n-b\n+B\n"),
        "{patch}"
    );
    assert!(!patch.contains("removed"), "{patch}");
}

#[test]
fn an_unchanged_project_has_the_same_id_and_stores_nothing() {
    let project = Project::new();
    project.write("a", "x");
    let mut taker = project.taker();
    let first = taker.take().unwrap();
    let size = project.store().size();
    let second = taker.take().unwrap();
    assert_eq!(
        (second.id, second.bytes, project.store().size()),
        (first.id, 0, size)
    );
    project.write("a", "x");
    assert_eq!(
        taker.take().unwrap().id,
        first.id,
        "written again with the same content"
    );
    assert_eq!(project.store().size(), size);
    project.set_mode("a", 0o600);
    let third = taker.take().unwrap();
    assert_ne!(third.id, first.id);
    assert_eq!(third.changes, [], "git does not see these permissions");
    assert_eq!(project.contents_of(third.id), contents(&project.root()));
    project.set_mode("a", 0o644);
    assert_eq!(taker.take().unwrap().id, first.id);
}

#[test]
fn the_users_repository_is_not_changed() {
    let project = Project::in_git();
    project.write("a", "x");
    project.git(&["add", "a"]);
    project.git(&["commit", "--quiet", "-m", "x"]);
    project.write("a", "y");
    project.write("b", "z");
    let repository = contents_with_git(&project);
    let mut taker = project.taker();
    let first = taker.take().unwrap();
    project.write("b", "zz");
    taker.take().unwrap();
    project.write("b", "z");
    assert_eq!(contents_with_git(&project), repository);
    project.contents_of(first.id);
    assert_eq!(contents_with_git(&project), repository);
}

fn contents_with_git(project: &Project) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut pending = vec![project.path(".git")];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).expect("a directory").flatten() {
            match entry.path() {
                path if path.is_dir() => pending.push(path),
                path => found.push((path.clone(), fs::read(&path).expect("a file"))),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_project_that_does_not_fit_is_refused_with_figures() {
    let project = Project::new();
    fs::write(project.path("large"), vec![b'x'; 3 << 20]).unwrap();
    let rules = SnapshotRules {
        max_mb: 2,
        ..SnapshotRules::default()
    };
    let mut taker = project.taker_with(rules);
    let error = taker.take().unwrap_err();
    assert!(
        matches!(
            error,
            SnapshotError::TooLarge {
                needed_mb: 3,
                max_mb: 2
            }
        ),
        "{error}"
    );
    assert_eq!(project.store().size(), 0, "nothing was stored");
    fs::remove_file(project.path("large")).unwrap();
    project.write("small", "x");
    assert_eq!(taker.take().unwrap().files, 1);
}

#[test]
fn a_checkout_is_reused_and_made_equal_again() {
    let project = Project::new();
    project.write("a", "one");
    project.write("sub/b", "two");
    let mut taker = project.taker();
    let first = taker.take().unwrap();
    project.write("a", "changed");
    project.write("sub/c", "three");
    let second = taker.take().unwrap();
    let store = project.store();
    let kept = vec!["target/**".parse().unwrap()];
    let directory = project.root().with_file_name("warm");
    let mut checkout = ralph::snapshot::Checkout::new(&directory, kept);
    assert_eq!(checkout.update(&store, first.id).unwrap(), 3);
    assert_eq!(checkout.update(&store, first.id).unwrap(), 0);
    fs::create_dir(directory.join("target")).unwrap();
    fs::write(directory.join("target/cache"), "kept").unwrap();
    fs::write(directory.join("stray"), "removed").unwrap();
    fs::write(directory.join("sub/b"), "tampered").unwrap();
    checkout.update(&store, second.id).unwrap();
    let mut expected = contents(&project.root());
    let found = contents(&directory);
    expected.insert(b"target".to_vec(), found[&b"target"[..]].clone());
    expected.insert(b"target/cache".to_vec(), found[&b"target/cache"[..]].clone());
    assert_eq!(found, expected);
    assert_eq!(
        store.read_file(first.id, b"a").unwrap().as_deref(),
        Some(&b"one"[..])
    );
    assert_eq!(store.read_file(first.id, b"sub/c").unwrap(), None);
}

#[test]
fn permissions_of_a_directory_that_forbids_writing_are_replaced() {
    let project = Project::new();
    project.write("d/a", "one");
    let mut taker = project.taker();
    let (writable, mut checkout) = (taker.take().unwrap(), project.checkout());
    project.write("d/a", "two");
    project.set_mode("d", 0o555);
    let read_only = taker.take().unwrap();
    for snapshot in [&read_only, &writable, &read_only] {
        checkout.update(&project.store(), snapshot.id).unwrap();
        let mode = fs::metadata(checkout.directory().join("d"))
            .unwrap()
            .permissions()
            .mode();
        let expected = if snapshot.id == writable.id { 0o755 } else { 0o555 };
        assert_eq!(mode & 0o777, expected);
    }
}

#[test]
fn a_checkout_does_not_write_through_links() {
    let project = Project::new();
    project.write("sub/a", "x");
    let id = project.take().id;
    let outside = project.root().with_file_name("outside");
    fs::create_dir(&outside).unwrap();
    let mut checkout = project.checkout();
    fs::create_dir(checkout.directory()).unwrap();
    symlink(&outside, checkout.directory().join("sub")).unwrap();
    checkout.update(&project.store(), id).unwrap();
    assert_eq!(contents(checkout.directory()), contents(&project.root()));
    assert_eq!(contents(&outside).len(), 0);
}

#[test]
fn pruning_keeps_the_snapshots_of_other_runs() {
    let project = Project::new();
    project.write("a", "x");
    let rules = || SnapshotRules {
        max_mb: 1000,
        ..SnapshotRules::default()
    };
    let take = |run: &str| {
        let mut taker = ralph::snapshot::SnapshotTaker::new(project.store(), run, &project.root(), rules());
        taker.take().unwrap().id
    };
    let old = take("20260101-000000-old");
    project.write("a", "y");
    project.write("b", &"z".repeat(1000));
    let new = take("20260102-000000-new");
    let store = project.store();
    store.keep_only(&["20260102-000000-new".to_owned()]).unwrap();
    assert!(store.tree(old).is_err());
    let kept = store.tree(new).unwrap();
    let paths: Vec<&[u8]> = kept.entries.keys().map(Vec::as_slice).collect();
    assert_eq!(paths, [b"a", b"b"]);
}
