//! Tests of the manifest: what counts as a change, what is left out, and when a file is read again.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use super::*;
use crate::files::Head;

struct Tree(tempfile::TempDir);

impl Tree {
    fn new(files: &[&str]) -> Self {
        let tree = Self(tempfile::tempdir().expect("a directory"));
        files.iter().for_each(|name| tree.write(name, "x"));
        tree
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, text).expect("a file");
    }

    fn scan(&self, rules: &IgnoreRules, earlier: &Manifest) -> Manifest {
        Manifest::scan(self.0.path(), rules, earlier).expect("a manifest")
    }

    fn rules(&self, tracked: &[&str]) -> IgnoreRules {
        let tracked: Vec<&[u8]> = tracked.iter().map(|name| name.as_bytes()).collect();
        IgnoreRules::read(
            self.0.path(),
            b".agent",
            &[self.path(".git/info/exclude")],
            &tracked,
        )
    }

    /// The changes that `change` makes, under the rules before it.
    fn changes(&self, tracked: &[&str], change: impl FnOnce()) -> Vec<String> {
        let rules = self.rules(tracked);
        let before = self.scan(&rules, &Manifest::default());
        change();
        let after = self.scan(&rules, &before);
        let names = before.differences(&after);
        names
            .into_iter()
            .map(|name| String::from_utf8(name).expect("text"))
            .collect()
    }
}

#[test]
fn new_changed_and_removed_files_are_changes_and_ralphs_own_are_not() {
    let tree = Tree::new(&["same", "changed", "removed", "mode", ".agent/runs/journal"]);
    let changes = tree.changes(&[], || {
        tree.write("changed", "y");
        tree.write("sub/new", "x");
        tree.write(".agent/runs/journal", "more");
        fs::remove_file(tree.path("removed")).expect("a file");
        fs::set_permissions(tree.path("mode"), fs::Permissions::from_mode(0o755)).expect("a mode");
        tree.write("same", "x");
    });
    assert_eq!(changes, ["changed", "mode", "removed", "sub/new"]);
}

#[test]
fn a_change_of_the_same_size_with_the_old_modification_time_is_seen() {
    let tree = Tree::new(&["file"]);
    let changes = tree.changes(&[], || {
        let old = fs::metadata(tree.path("file"))
            .and_then(|file| file.modified())
            .expect("a time");
        tree.write("file", "y");
        let file = fs::File::options()
            .write(true)
            .open(tree.path("file"))
            .expect("a file");
        file.set_modified(old).expect("a time");
    });
    assert_eq!(changes, ["file"]);
}

#[test]
fn links_are_compared_by_their_target_and_special_files_are_not_opened() {
    let tree = Tree::new(&["a", "b"]);
    symlink("a", tree.path("link")).expect("a link");
    let changes = tree.changes(&[], || {
        fs::remove_file(tree.path("link")).expect("a link");
        symlink("b", tree.path("link")).expect("a link");
        symlink("/dev/zero", tree.path("zero")).expect("a link");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, tree.path("fifo"), kind, mode, 0).expect("a FIFO");
    });
    assert_eq!(changes, ["fifo", "link", "zero"]);
}

#[test]
fn ignored_files_are_left_out_unless_git_tracks_them() {
    let tree = Tree::new(&[
        "target/out",
        "vendor/lib.rs",
        "a.log",
        "keep.log",
        "src/a.rs",
        "sub/b.tmp",
    ]);
    tree.write(".gitignore", "/target\nvendor/\n*.log\n!keep.log\n");
    tree.write("sub/.gitignore", "*.tmp\n");
    let changes = tree.changes(&["vendor/lib.rs", "src/a.rs"], || {
        for name in [
            "target/out",
            "vendor/lib.rs",
            "a.log",
            "keep.log",
            "src/a.rs",
            "sub/b.tmp",
            "target/new",
        ] {
            tree.write(name, "changed");
        }
    });
    assert_eq!(changes, ["keep.log", "src/a.rs", "vendor/lib.rs"]);
}

#[test]
fn ignore_rules_that_appear_later_hide_nothing() {
    let tree = Tree::new(&["src/a.rs", ".git/HEAD", ".git/info/exclude"]);
    let changes = tree.changes(&[], || {
        tree.write(".git/info/exclude", "*");
        tree.write("evil/.gitignore", "*");
        tree.write("evil/hidden", "x");
        tree.write(".gitignore", "src");
        tree.write("src/a.rs", "changed");
    });
    let expected = [
        ".git/info/exclude",
        ".gitignore",
        "evil/.gitignore",
        "evil/hidden",
        "src/a.rs",
    ];
    assert_eq!(changes, expected);
}

#[test]
fn hooks_and_configuration_of_every_repository_are_watched() {
    let tree = Tree::new(&[".git/HEAD", ".git/config", ".git/index", "sub/README"]);
    let changes = tree.changes(&[], || {
        tree.write(".git/config", "[core]\n\tworktree = /tmp\n");
        tree.write(".git/hooks/pre-commit", "#!/bin/sh\n");
        tree.write(".git/index", "changes with every command");
        tree.write(".git/objects/info/alternates", "/tmp");
        tree.write("sub/.git/HEAD", "ref: refs/heads/main");
        tree.write("sub/.git/config", "");
    });
    let expected = [
        ".git/config",
        ".git/hooks/pre-commit",
        ".git/objects/info/alternates",
        "sub/.git/config",
    ];
    assert_eq!(changes, expected);
}

#[test]
fn the_fingerprint_depends_on_contents_and_not_on_times() {
    let (one, other) = (Tree::new(&["a", "b/c"]), Tree::new(&["b/c", "a"]));
    let fingerprint = |tree: &Tree| {
        tree.scan(&IgnoreRules::default(), &Manifest::default())
            .fingerprint("head")
    };
    assert_eq!(fingerprint(&one), fingerprint(&other));
    other.write("a", "y");
    assert_ne!(fingerprint(&one), fingerprint(&other));
}

#[test]
fn unchanged_files_are_not_read_again() {
    let tree = Tree::new(&["old", "recent"]);
    let rules = IgnoreRules::default();
    let mut before = tree.scan(&rules, &Manifest::default());
    // Simulates a scan long after the last change of one file.
    let entry = |manifest: &Manifest, name: &[u8]| manifest.entries[name].clone();
    before.scanned_at += Duration::from_secs(60).as_secs().cast_signed();
    let fake = [7; 32];
    before.entries.get_mut(&b"old"[..]).expect("an entry").digest = fake;
    let after = tree.scan(&rules, &before);
    assert_eq!(entry(&after, b"old").digest, fake, "taken from the earlier scan");
    before.scanned_at -= 120;
    let after = tree.scan(&rules, &before);
    assert_ne!(
        entry(&after, b"old").digest,
        fake,
        "changed too recently to be sure"
    );
}

#[test]
fn the_head_of_a_repository_is_read_without_git() {
    let tree = Tree::new(&[]);
    let hash = "0123456789abcdef0123456789abcdef01234567";
    let head = || GitDirectory::at(&tree.path(".git")).expect("a repository").head();
    tree.write(".git/HEAD", "ref: refs/heads/main\n");
    assert_eq!(head(), Head::Unborn);
    tree.write(
        ".git/packed-refs",
        &format!("# pack-refs\n{hash} refs/heads/main\n"),
    );
    assert_eq!(head(), Head::Commit(hash.to_owned()));
    tree.write(".git/refs/heads/main", &"f".repeat(40));
    assert_eq!(head(), Head::Commit("f".repeat(40)));
    tree.write(".git/HEAD", "ref: refs/../../secret\n");
    assert_eq!(head(), Head::Broken);
    fs::remove_file(tree.path(".git/HEAD")).expect("a file");
    assert_eq!(head(), Head::Broken);
}

/// Prints the time of a first and a second scan: `MANIFEST_TREE=DIRECTORY cargo test --release manifest -- --ignored`.
#[test]
#[ignore = "measures; it has no expectation"]
fn time_of_a_scan() {
    let Some(root) = std::env::var_os("MANIFEST_TREE").map(PathBuf::from) else {
        return;
    };
    let rules = IgnoreRules::read(&root, b".agent", &[root.join(".git/info/exclude")], &[]);
    let mut earlier = Manifest::default();
    for _ in 0..3 {
        let start = std::time::Instant::now();
        earlier = Manifest::scan(&root, &rules, &earlier).expect("a manifest");
        eprintln!("{} files: {:?}", earlier.len(), start.elapsed());
    }
}
