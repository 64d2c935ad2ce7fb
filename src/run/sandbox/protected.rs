//! Files of the project that decide what ralph runs outside of the sandbox, or what its gates accept.

use std::path::{Path, PathBuf};

use crate::config::PathPattern;
use crate::policy::Gate;

use super::resolver::Resolver;

/// Configuration of ralph, of drivers and of what ralph imports.
const CONFIGURATION: &[&str] = &["ralph.yml", ".ralph", ".ralphrc", ".ralphex", "ralph.toml"];
/// A project has fewer protected files, or protects whole directories.
const MAX_FILES: usize = 1000;
/// Files that are compared with the patterns.
const MAX_SCANNED: usize = 50_000;

/// The existing configuration files, and the files that the user's commands name.
pub(super) fn configuration(
    workspaces: &[PathBuf],
    commands: &[String],
    resolver: &Resolver,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for workspace in workspaces {
        let configured = CONFIGURATION.iter().map(|name| workspace.join(name));
        let words = commands.iter().flat_map(|command| command.split_whitespace());
        let words = words.map(|word| word.trim_matches(['"', '\'', ';']));
        let named = words
            .filter(|word| !word.is_empty() && *word != ".")
            .map(|word| workspace.join(word));
        let named = named.filter(|path| path.is_file());
        let inside = configured.chain(named).filter_map(|path| resolver.real(&path));
        found.extend(inside.filter(|path| path.starts_with(workspace) && path != workspace));
    }
    found
}

/// The existing files that gates protect.
pub(super) fn of_gates(root: &Path, gates: &[Gate], resolver: &Resolver) -> Vec<PathBuf> {
    let patterns: Vec<&String> = gates.iter().flat_map(|gate| &gate.protect).collect();
    let mut found = Vec::new();
    let mut others = Vec::new();
    for pattern in patterns {
        let directory = pattern.strip_suffix("/**").unwrap_or(pattern);
        match directory.contains(['*', '?', '[', '{', '!']) {
            false => found.extend(resolver.real(&root.join(directory))),
            true => others.extend(pattern.parse::<PathPattern>().ok()),
        }
    }
    if !others.is_empty() {
        let walk = ignore::WalkBuilder::new(root)
            .hidden(false)
            .require_git(false)
            .build();
        let files = walk.flatten().take(MAX_SCANNED);
        let files = files.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
        found.extend(files.map(ignore::DirEntry::into_path).filter(|path| {
            let below = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
            others.iter().any(|pattern| pattern.matches(&below))
        }));
    }
    found.retain(|path| path.starts_with(root) && path != root);
    found.truncate(MAX_FILES);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_hooks_and_gates_name_are_protected() {
        let base = tempfile::tempdir().expect("a directory");
        let root = base.path().canonicalize().expect("a path");
        for path in [
            "tests/a.rs",
            "src/b_test.go",
            "src/b.go",
            "notify.sh",
            "ralph.yml",
        ] {
            std::fs::create_dir_all(root.join(path).parent().expect("a parent")).expect("a directory");
            std::fs::write(root.join(path), "").expect("a file");
        }
        let hooks = ["sh ./notify.sh done".to_owned()];
        let resolver = Resolver::default();
        let names = |paths: Vec<PathBuf>| -> Vec<String> {
            let below = paths
                .iter()
                .map(|path| path.strip_prefix(&root).expect("a path in the root"));
            below.map(|path| path.display().to_string()).collect()
        };
        let configuration = configuration(std::slice::from_ref(&root), &hooks, &resolver);
        assert_eq!(names(configuration), ["ralph.yml", "notify.sh"]);
        let gate = Gate {
            protect: vec!["tests/**".to_owned(), "**/*_test.go".to_owned()],
            ..Gate::new("tests", "true")
        };
        assert_eq!(
            names(of_gates(&root, &[gate], &resolver)),
            ["tests", "src/b_test.go"]
        );
    }
}
