//! Module boundaries: a top-level module uses only the modules that it is allowed to depend on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The modules that each top-level module uses. An entry that is no longer needed fails the test.
fn allowed() -> BTreeMap<&'static str, Vec<&'static str>> {
    BTreeMap::from([
        ("panic_hook", vec![]),
        ("event", vec![]),
        ("config", vec![]),
        ("process", vec!["event", "panic_hook"]),
        ("transcript", vec!["event"]),
        ("engine", vec!["event"]),
        ("store", vec!["event"]),
        ("ui", vec!["event", "panic_hook"]),
        ("agent", vec!["config", "event", "panic_hook", "process"]),
        (
            "run",
            vec![
                "agent",
                "config",
                "engine",
                "event",
                "panic_hook",
                "process",
                "store",
                "transcript",
                "ui",
            ],
        ),
        ("doctor", vec!["agent", "config", "event", "run", "transcript"]),
        (
            "cli",
            vec![
                "agent",
                "config",
                "doctor",
                "engine",
                "event",
                "panic_hook",
                "process",
                "run",
                "store",
                "transcript",
                "ui",
            ],
        ),
    ])
}

fn source_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn collect_sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a source directory") {
        let path = entry.expect("a directory entry").path();
        if path.is_dir() {
            collect_sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// How many modules a file is below the crate root: `src/event/mod.rs` is 1, `src/event/run.rs` is 2.
fn depth(file: &Path) -> usize {
    let relative = file.strip_prefix(source_directory()).expect("a file in src");
    let is_mod = relative.file_name().is_some_and(|name| name == "mod.rs");
    relative.components().count() - usize::from(is_mod)
}

/// The modules that a source file names: through `crate::`, or through as many `super::` as lead to the crate root.
fn modules_used<'a>(source: &str, depth: usize, modules: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let code: String = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let code = code.replace(' ', "");
    let roots = ["crate::".to_owned(), "super::".repeat(depth)];
    let names = |module: &str, root: &str| {
        let direct = [format!("{root}{module}::"), format!("{root}{module};")];
        let group = format!("{root}{{");
        direct.iter().any(|path| code.contains(path))
            || code.split(&group).skip(1).any(|group| {
                let group = group.split(';').next().unwrap_or_default();
                group.split([',', '{']).any(|name| {
                    name.trim_end_matches('}') == module || name.starts_with(&format!("{module}::"))
                })
            })
    };
    modules
        .filter(|module| roots.iter().any(|root| names(module, root)))
        .collect()
}

#[test]
fn modules_use_exactly_the_modules_they_are_allowed_to() {
    let allowed = allowed();
    let mut violations = Vec::new();
    for (module, permitted) in &allowed {
        let mut files = Vec::new();
        collect_sources(&source_directory().join(module), &mut files);
        assert!(!files.is_empty(), "the module {module} has no files");
        let mut used = BTreeSet::new();
        for file in files {
            let text = fs::read_to_string(&file).expect("a source file");
            // Unit tests may compare a rule with the data of another module.
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            for other in modules_used(code, depth(&file), allowed.keys().copied()) {
                used.insert(other);
                if other != *module && !permitted.contains(&other) {
                    violations.push(format!("{} uses {other}", file.display()));
                }
            }
        }
        let unused = permitted.iter().filter(|other| !used.contains(*other));
        violations.extend(unused.map(|other| format!("{module} may use {other}, but does not")));
    }
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn every_module_of_the_library_has_an_entry() {
    let library = fs::read_to_string(source_directory().join("lib.rs")).expect("lib.rs");
    let modules = allowed();
    let declared: Vec<&str> = library
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .collect();
    assert_eq!(declared.len(), modules.len());
    assert!(
        declared.iter().all(|module| modules.contains_key(module)),
        "{declared:?}"
    );
}

#[test]
fn every_form_of_path_is_detected() {
    let modules = || ["run", "ui", "event"].into_iter();
    assert_eq!(modules_used("use crate::ui::FrontEnd;", 2, modules()), ["ui"]);
    assert_eq!(
        modules_used("use crate::{event::Record, run};", 2, modules()),
        ["run", "event"]
    );
    assert_eq!(
        modules_used("let x = crate::run::drive();", 2, modules()),
        ["run"]
    );
    assert_eq!(
        modules_used("use super::super::ui::FrontEnd;", 2, modules()),
        ["ui"]
    );
    assert!(modules_used("use super::ui::FrontEnd;", 2, modules()).is_empty());
    assert_eq!(
        modules_used("// crate::run is not code\nuse crate::event::Tag;", 2, modules()),
        ["event"]
    );
}
