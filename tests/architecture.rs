//! Checks the module structure: dependencies between top-level modules, `super::` paths, unique type names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The modules that each top-level module uses, in dependency order (`.ci/modules` prints them). An entry that is no longer needed fails the test.
const ALLOWED: &[(&str, &str)] = &[
    ("debug_log", ""),
    ("panic_hook", "debug_log"),
    ("signals", "panic_hook"),
    ("files", ""),
    ("event", ""),
    ("policy", "event"),
    ("config", "files policy"),
    ("process", "event panic_hook"),
    ("transcript", "event"),
    ("agent", "config event files panic_hook policy process"),
    ("gate_output", "event"),
    ("engine", "event gate_output policy"),
    ("store", "event files policy"),
    ("ui", "event panic_hook signals"),
    ("trust", "agent config event files process store"),
    ("runner", "agent event policy process"),
    ("snapshot", "config files process"),
    (
        "run",
        "agent config debug_log engine event files panic_hook policy process runner signals snapshot store transcript ui",
    ),
    (
        "plan",
        "agent config event files policy process run signals store ui",
    ),
    (
        "bench",
        "agent config event files plan policy process run signals store transcript ui",
    ),
    ("serve", "event files plan process run signals snapshot store ui"),
    (
        "doctor",
        "agent config engine event policy process run transcript trust",
    ),
    (
        "cli",
        "agent bench config debug_log doctor engine event files plan policy process run serve snapshot store transcript trust ui",
    ),
];

fn allowed() -> BTreeMap<&'static str, Vec<&'static str>> {
    ALLOWED
        .iter()
        .map(|(module, uses)| (*module, uses.split_whitespace().collect()))
        .collect()
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

/// Splits a source file into its code and its unit tests.
fn split_tests(source: &str) -> (&str, &str) {
    let start = source.find("#[cfg(test)]\nmod tests {").unwrap_or(source.len());
    source.split_at(start)
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// Returns the modules that a source file names through `crate::`. `super::` paths never leave a top-level module.
fn modules_used<'a>(source: &str, modules: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let code: String = source.lines().filter(|line| !is_comment(line)).collect();
    let code = code.replace(' ', "");
    let is_named = |module: &str| {
        let direct = [format!("crate::{module}::"), format!("crate::{module};")];
        direct.iter().any(|path| code.contains(path))
            || code.split("crate::{").skip(1).any(|group| {
                let group = group.split(';').next().unwrap_or_default();
                group.split([',', '{']).any(|name| {
                    name.trim_end_matches('}') == module || name.starts_with(&format!("{module}::"))
                })
            })
    };
    modules.filter(|module| is_named(module)).collect()
}

/// Returns the lines with a `super::super::` path, or a `super::` path that leaves the top-level module of a file at this depth.
fn climbing_paths(source: &str, depth: usize) -> Vec<&str> {
    let (code, tests) = split_tests(source);
    let climbs = |line: &str, depth: usize| {
        let code = line.replace(' ', "");
        code.contains(&"super::".repeat(depth.min(2))) && !is_comment(line)
    };
    // The module `tests` is one level deeper than its file.
    let code = code.lines().filter(|line| climbs(line, depth));
    let tests = tests.lines().filter(|line| climbs(line, depth + 1));
    code.chain(tests).collect()
}

/// Returns the name of the type that a line defines at the top level of a file.
fn defined_type(line: &str) -> Option<&str> {
    let item = match line.strip_prefix("pub") {
        Some(rest) => rest.split_once(' ')?.1,
        None => line,
    };
    let (keyword, rest) = item.split_once(' ')?;
    let mut words = rest.split(|character: char| !character.is_alphanumeric() && character != '_');
    let name = words.next()?;
    ["struct", "enum", "trait", "type"]
        .contains(&keyword)
        .then_some(name)
}

/// Returns whether a file contains only unit tests.
fn is_test_file(file: &Path) -> bool {
    let relative = file.strip_prefix(source_directory()).expect("a file in src");
    let mut parts = relative.components().map(|part| part.as_os_str());
    parts.any(|part| part == "tests" || part == "tests.rs")
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
        for file in files.into_iter().filter(|file| !is_test_file(file)) {
            let text = fs::read_to_string(&file).expect("a source file");
            // Unit tests may compare a rule with the data of another module.
            let (code, _) = split_tests(&text);
            for other in modules_used(code, allowed.keys().copied()) {
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

/// Returns the modules that lib.rs declares, and those that its documentation lists, both in order.
fn modules_of_the_library() -> (Vec<String>, Vec<String>) {
    let library = fs::read_to_string(source_directory().join("lib.rs")).expect("lib.rs");
    let mut declared: Vec<String> = library
        .lines()
        .filter_map(|line| line.split_once("mod ")?.1.strip_suffix(';'))
        .map(str::to_owned)
        .collect();
    // Some modules are declared twice, with and without the feature `test-support`.
    declared.dedup();
    let documented = library.split("//! # Modules").nth(1).unwrap_or_default();
    let documented = documented
        .lines()
        .filter_map(|line| line.strip_prefix("//! - [`")?.split_once("`] "))
        // `bench` is also the name of an attribute.
        .map(|(module, _)| module.trim_start_matches("mod@").to_owned());
    (declared, documented.collect())
}

#[test]
fn every_module_of_the_library_has_an_entry() {
    let (declared, _) = modules_of_the_library();
    let modules = allowed();
    assert_eq!(declared.len(), modules.len());
    assert!(
        declared
            .iter()
            .all(|module| modules.contains_key(module.as_str())),
        "{declared:?}"
    );
}

#[test]
fn crate_documentation_lists_the_modules_in_dependency_order() {
    let (declared, documented) = modules_of_the_library();
    assert_eq!(
        documented, declared,
        "list every module in the documentation of lib.rs"
    );
    let position = |module: &str| declared.iter().position(|other| other == module);
    for (module, permitted) in allowed() {
        for other in permitted {
            assert!(position(other) < position(module), "list {other} before {module}");
        }
    }
}

#[test]
fn the_architecture_page_has_a_row_for_each_module_in_dependency_order() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/architecture.md");
    let page = fs::read_to_string(page).expect("the page");
    let table = page.split("| module | responsibility |").nth(1);
    let table = table.expect("the table of the modules");
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let documented: Vec<&str> = rows
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(module, _)| module)
        .collect();
    assert_eq!(documented, modules_of_the_library().0);
}

/// Returns the name of a static that can change after it was initialized, if the line defines one.
fn mutable_static(line: &str) -> Option<&str> {
    const INTERIOR: &[&str] = &["Atomic", "Cell<", "Mutex", "OnceLock", "RwLock"];
    let (before, rest) = line.split_once("static ")?;
    let before = before.trim();
    let is_item = before.is_empty() || before.starts_with("pub");
    let (name, kind) = rest.trim_start_matches("mut ").split_once(": ")?;
    let is_mutable = rest.starts_with("mut ") || INTERIOR.iter().any(|word| kind.contains(word));
    (is_item && is_mutable).then_some(name)
}

#[test]
fn no_static_changes_after_it_was_initialized() {
    // Two runs in a process would share it. The fuel of a jq filter is set before each evaluation and not read after it.
    let exceptions = [
        "transcript/jq/fuel.rs: REMAINING",
        "transcript/jq/fuel.rs: STACK_START",
    ];
    let mut files = Vec::new();
    collect_sources(&source_directory(), &mut files);
    let mut found = Vec::new();
    for file in files.iter().filter(|file| !is_test_file(file)) {
        let text = fs::read_to_string(file).expect("a source file");
        let relative = file.strip_prefix(source_directory()).expect("a file in src");
        let names = split_tests(&text).0.lines().filter_map(mutable_static);
        found.extend(names.map(|name| format!("{}: {name}", relative.display())));
    }
    found.sort();
    assert_eq!(found, exceptions, "make it a part of `run::Host`");
}

#[test]
fn mutable_statics_are_detected() {
    assert_eq!(mutable_static("static mut COUNT: u8 = 0;"), Some("COUNT"));
    assert_eq!(
        mutable_static("pub(crate) static KNOWN: Mutex<u8> = Mutex::new(0);"),
        Some("KNOWN")
    );
    assert_eq!(
        mutable_static("    static DEPTH: Cell<u8> = const { Cell::new(0) };"),
        Some("DEPTH")
    );
    assert_eq!(mutable_static("pub static AGENTS: &[Agent] = &["), None);
    assert_eq!(mutable_static("// static KNOWN: Mutex<u8>"), None);
    assert_eq!(
        mutable_static("fn name() -> &'static str { \"static a: Mutex\" }"),
        None
    );
}

#[test]
fn every_form_of_path_is_detected() {
    let modules = || ["run", "ui", "event"].into_iter();
    assert_eq!(modules_used("use crate::ui::FrontEnd;", modules()), ["ui"]);
    assert_eq!(
        modules_used("use crate::{event::Record, run};", modules()),
        ["run", "event"]
    );
    assert_eq!(modules_used("let x = crate::run::drive();", modules()), ["run"]);
    assert!(modules_used("use super::ui::FrontEnd;", modules()).is_empty());
    assert_eq!(
        modules_used("// crate::run is not code\nuse crate::event::Tag;", modules()),
        ["event"]
    );
}

#[test]
fn no_path_leaves_its_top_level_module_or_has_two_supers() {
    let mut violations = Vec::new();
    for module in allowed().keys() {
        let mut files = Vec::new();
        collect_sources(&source_directory().join(module), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).expect("a source file");
            for line in climbing_paths(&text, depth(&file)) {
                violations.push(format!("{}: {} (write `crate::`)", file.display(), line.trim()));
            }
        }
    }
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn climbing_paths_are_detected() {
    let twice = "use super::super::ui::FrontEnd;";
    assert_eq!(climbing_paths(twice, 2), [twice]);
    assert_eq!(climbing_paths(twice, 3), [twice]);
    assert_eq!(climbing_paths("let x = super::run::drive();", 1).len(), 1);
    assert!(climbing_paths("let x = super::drive();", 2).is_empty());
    assert!(climbing_paths("// super::super::ui is not code", 2).is_empty());
    // The module `tests` is one level deeper than its file.
    assert!(climbing_paths("#[cfg(test)]\nmod tests {\n    use super::Run;\n}", 1).is_empty());
    let tests = "#[cfg(test)]\nmod tests {\n    use super::super::Run;\n}";
    assert_eq!(climbing_paths(tests, 1).len(), 1);
}

#[test]
fn type_names_are_unique_within_a_top_level_module() {
    let mut violations = Vec::new();
    for module in allowed().keys() {
        let mut files = Vec::new();
        collect_sources(&source_directory().join(module), &mut files);
        let mut definitions: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for file in files.iter().filter(|file| !is_test_file(file)) {
            let text = fs::read_to_string(file).expect("a source file");
            for (index, line) in split_tests(&text).0.lines().enumerate() {
                if let Some(name) = defined_type(line) {
                    let place = format!("{}:{}", file.display(), index + 1);
                    definitions.entry(name.to_owned()).or_default().push(place);
                }
            }
        }
        for (name, places) in definitions.iter().filter(|(_, places)| places.len() > 1) {
            violations.push(format!("{module} defines {name} at {}", places.join(" and ")));
        }
    }
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn type_definitions_are_recognized() {
    assert_eq!(defined_type("pub(crate) struct Record<'a> {"), Some("Record"));
    assert_eq!(defined_type("pub enum Tag {"), Some("Tag"));
    assert_eq!(defined_type("trait Sink: Send {"), Some("Sink"));
    assert_eq!(defined_type("struct Unit;"), Some("Unit"));
    assert_eq!(defined_type("pub type Digest = [u8; 32];"), Some("Digest"));
    assert_eq!(defined_type("    struct Local;"), None);
    assert_eq!(defined_type("pub(crate) fn record() {"), None);
    assert_eq!(defined_type("// struct Comment"), None);
}

/// Returns the modules of `cli` that `dispatch` calls: one per subcommand.
fn subcommands(source: &str) -> BTreeSet<&str> {
    let start = source.find("fn dispatch(").expect("the function `dispatch`");
    let body = &source[start..];
    let body = &body[..body.find("\n}\n").expect("the end of `dispatch`")];
    body.lines()
        .filter_map(|line| line.split_once("=> ")?.1.split_once("::"))
        .map(|(module, _)| module)
        .filter(|module| {
            module
                .chars()
                .all(|letter| letter.is_lowercase() || letter == '_')
        })
        .collect()
}

/// Returns the subcommands that a file of `cli` at this depth uses.
fn subcommands_used<'a>(source: &str, depth: usize, subcommands: &BTreeSet<&'a str>) -> Vec<&'a str> {
    // Below a subcommand's own directory, `super::` does not reach the other subcommands.
    let parent = "super::".repeat(depth.saturating_sub(1).max(1));
    let code = source
        .replace("crate::cli::", "SIBLING")
        .replace(&parent, "SIBLING");
    let code = code.replace("crate::", "other::").replace("SIBLING", "crate::");
    modules_used(&code, subcommands.iter().copied())
}

#[test]
fn no_subcommand_is_used_by_another_file_of_the_command_line() {
    let directory = source_directory().join("cli");
    let root = fs::read_to_string(directory.join("mod.rs")).expect("cli/mod.rs");
    let subcommands = subcommands(&root);
    assert!(subcommands.len() > 20, "{subcommands:?}");
    let mut files = Vec::new();
    collect_sources(&directory, &mut files);
    files.retain(|file| *file != directory.join("mod.rs"));
    let mut violations = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file");
        let relative = file.strip_prefix(&directory).expect("a file of cli");
        let first = relative.components().next().expect("a file name").as_os_str();
        let own = Path::new(first).with_extension("");
        for used in subcommands_used(split_tests(&text).0, depth(&file), &subcommands) {
            if Path::new(used) != own {
                violations.push(format!("{} uses the subcommand {used}", file.display()));
            }
        }
    }
    assert!(
        violations.is_empty(),
        "move what they share to a file that is no subcommand: {violations:#?}"
    );
}

#[test]
fn every_use_of_a_subcommand_is_detected() {
    let root = "fn dispatch(command) {\n    match command {\n        CliCommand::Runs(x) => runs::runs(x),\n        \
                CliCommand::Show(x) => show::show(x),\n    }\n}\n";
    let subcommands = subcommands(root);
    assert_eq!(subcommands, BTreeSet::from(["runs", "show"]));
    let used = |source: &str, depth| subcommands_used(source, depth, &subcommands);
    assert_eq!(used("use super::runs::date;", 2), ["runs"]);
    assert_eq!(used("use super::{runs, show};", 2), ["runs", "show"]);
    assert_eq!(used("let x = crate::cli::show::text();", 3), ["show"]);
    assert_eq!(used("use super::super::show::text;", 3), ["show"]);
    assert!(used("use super::show::text;", 3).is_empty());
    assert!(used("use crate::runs::date;", 2).is_empty());
}
