//! Rejects phrases that the style guide bans, in the comments and strings of the code, in the documentation and in snapshots, and
//! words that it bans in names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rust_source::comments_and_strings;

mod rust_source;

/// Banned phrases and their replacements. A phrase matches whole words, in any case, within one line. Only list phrases that have no
/// legitimate use.
const BANNED: &[(&str, &str)] = &[
    ("afresh", "again"),
    ("anew", "again"),
    ("anybody", "name the person or the process"),
    ("at work", "running"),
    ("by the way", "delete it"),
    ("cannot be mended", "cannot be fixed"),
    ("cut short", "stopped, ended early"),
    ("errand", "spawn request"),
    ("everybody", "name the persons or the processes"),
    ("give back", "return, restore"),
    ("given back", "returned, restored"),
    ("go on with", "continue, resume"),
    ("goes on", "continues"),
    ("goes on with", "continues, resumes"),
    ("gone on with", "resumed"),
    ("heard", "received, read"),
    ("hears", "receives, reads"),
    ("hereby", "delete it"),
    ("in vain", "without effect"),
    ("is there already", "already exists"),
    ("is told", "receives, is notified"),
    ("keeper", "supervisor"),
    ("keepers", "supervisors"),
    ("lent", "borrowed, passed"),
    ("lest", "so that … not"),
    ("mended", "fixed"),
    ("mends", "fixes"),
    ("mishap", "panic"),
    ("nobody", "no process, no reader, no hat"),
    ("painted", "drawn, written"),
    ("paints", "draws, writes"),
    ("refuge", "fallback"),
    ("rehearse", "trigger, simulate"),
    ("reins", "control"),
    ("says so", "reports it"),
    ("shelf", "index, list"),
    ("sitting", "session"),
    ("so much the", "delete it"),
    ("so-manyth", "nth"),
    ("somebody", "name the person or the process"),
    ("taken back", "restored"),
    ("takes back", "restores"),
    ("telephone", "phone"),
    ("that is to say", "delete it"),
    ("the door", "the command line"),
    ("the house", "the code base"),
    ("thereof", "of it"),
    ("those who", "name the persons"),
    ("to whom", "name the person"),
    ("was said", "was printed, was reported"),
    ("was told", "received, was notified"),
    ("wears", "activates"),
    ("whoever", "name the person or the process"),
    ("wish", "command, request"),
    ("wishes", "commands, requests"),
    ("worn", "activated"),
];

/// Words that are banned as a part of a name, such as a function, a type, a variable or a file. Strings are not checked, so that a
/// serialized name can stay the same.
const BANNED_IN_NAMES: &[&str] = &[
    "anew", "errand", "heard", "hears", "keeper", "lent", "mishap", "nobody", "refuge", "rehearse", "reins",
    "said", "says", "shelf", "sitting", "somebody", "teller", "tells", "told", "wears", "whoever", "wish",
    "wishes", "worn",
];

/// Files that contain a banned phrase for a reason. An entry that is no longer needed fails the test.
const EXCEPTIONS: &[Exception] = &[
    Exception {
        file: "CONTRIBUTING.md",
        phrase: "nobody",
        reason: "the style guide quotes it as an example",
    },
    Exception {
        file: "CONTRIBUTING.md",
        phrase: "worn",
        reason: "the style guide quotes it as an example",
    },
];

struct Exception {
    /// Relative to the root of the repository.
    file: &'static str,
    phrase: &'static str,
    reason: &'static str,
}

struct CheckedFile {
    /// Relative to the root of the repository.
    name: String,
    text: String,
    /// The text without the parts that are not checked; lines keep their numbers.
    prose: String,
}

/// Files under these directories contain output that agents printed.
const CAPTURED_OUTPUT: &[&str] = &["tests/snapshots/transcript", "tests/fixtures"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the files with this extension below a directory of the repository.
fn files(directory: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![root().join(directory)];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("a directory entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().unwrap_or_default() == extension {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn relative(path: &Path) -> String {
    let path = path.strip_prefix(root()).expect("a file of the repository");
    path.to_string_lossy().into_owned()
}

/// Returns whether a line contains a phrase as whole words, in any case.
fn contains_phrase(line: &str, phrase: &str) -> bool {
    let line = line.to_lowercase();
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(phrase).any(|(start, found)| {
        let before = line[..start].chars().next_back();
        let after = line[start + found.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// The directories that are searched for files with text that people wrote, with the extensions of these files. An empty
/// extension stands for files without one.
const CHECKED: &[(&str, &[&str])] = &[
    (".ci", &[""]),
    (".github", &["md", "yml"]),
    ("benches", &["rs"]),
    ("docs", &["md", "sh"]),
    ("drivers", &["sh"]),
    ("examples", &["bash", "md", "py", "rs", "sh", "txt", "yml"]),
    ("fleet/src", &["rs"]),
    ("fleet/tests", &["sh"]),
    ("fuzz/fuzz_targets", &["rs"]),
    ("fuzz/src", &["rs"]),
    ("src", &["rs", "snap"]),
    ("tests", &["rs", "sh", "snap"]),
];

const CHECKED_FILES: &[&str] = &[
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.toml",
    "Dockerfile",
    "README.md",
    "SECURITY.md",
    "deny.toml",
    "fleet/README.md",
    "justfile",
];

fn checked_files() -> Vec<CheckedFile> {
    let is_excluded = |path: &PathBuf| {
        let name = relative(path);
        // This file contains the phrases.
        name == "tests/prose.rs"
            || CAPTURED_OUTPUT
                .iter()
                .any(|directory| name.starts_with(directory))
    };
    let in_directories = CHECKED.iter().flat_map(|(directory, extensions)| {
        extensions
            .iter()
            .flat_map(|extension| files(directory, extension))
    });
    let single = CHECKED_FILES.iter().map(|name| root().join(name));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a text file");
        let is_code = path.extension().is_some_and(|extension| extension == "rs");
        CheckedFile {
            name: relative(&path),
            prose: if is_code {
                comments_and_strings(&text)
            } else {
                text.clone()
            },
            text,
        }
    };
    in_directories
        .chain(single)
        .filter(|path| !is_excluded(path))
        .map(read)
        .collect()
}

fn exception_for(file: &str, phrase: &str) -> Option<usize> {
    EXCEPTIONS
        .iter()
        .position(|exception| exception.file == file && exception.phrase == phrase)
}

#[test]
fn no_banned_phrase_is_used() {
    let files = checked_files();
    let mut used = BTreeSet::new();
    let mut problems = Vec::new();
    for file in &files {
        let name = &file.name;
        for (index, (line, original)) in file.prose.lines().zip(file.text.lines()).enumerate() {
            let number = index + 1;
            for (phrase, instead) in BANNED.iter().filter(|(phrase, _)| contains_phrase(line, phrase)) {
                match exception_for(name, phrase) {
                    Some(exception) => _ = used.insert(exception),
                    None => {
                        let line = original.trim();
                        problems.push(format!("{name}:{number}: `{phrase}` (write: {instead}): {line}"));
                    }
                }
            }
        }
    }
    for (index, Exception { file, phrase, reason }) in EXCEPTIONS.iter().enumerate() {
        if !used.contains(&index) {
            problems.push(format!(
                "{file}: the exception for `{phrase}` ({reason}) is not needed any more"
            ));
        }
    }
    assert!(
        problems.is_empty(),
        "{} banned phrases:\n{}",
        problems.len(),
        problems.join("\n")
    );
    assert!(files.len() > 100, "only {} files were checked", files.len());
}

/// Returns the lowercase words that a name consists of: `RunState` and `run_state` are `run` and `state`.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for character in name.chars() {
        if !character.is_alphanumeric() || character.is_uppercase() {
            words.push(String::new());
        }
        if character.is_alphanumeric() {
            words.last_mut().expect("a word").extend(character.to_lowercase());
        }
    }
    words
}

/// Returns the lines of code with a name that contains a banned word, with the name.
fn banned_names(code: &str) -> Vec<(usize, &str)> {
    let prose = comments_and_strings(code);
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    let mut found = Vec::new();
    for (index, (line, prose)) in code.lines().zip(prose.lines()).enumerate() {
        let names = line.split(|character| !is_name(character));
        let banned = names.filter(|name| {
            words_of(name)
                .iter()
                .any(|word| BANNED_IN_NAMES.contains(&word.as_str()))
        });
        found.extend(
            banned
                .filter(|name| !contains_phrase(prose, &name.to_lowercase()))
                .map(|name| (index + 1, name)),
        );
    }
    found
}

#[test]
fn no_name_contains_a_banned_word() {
    let mut problems = Vec::new();
    for file in checked_files() {
        let path = Path::new(&file.name);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        if words_of(&stem)
            .iter()
            .any(|word| BANNED_IN_NAMES.contains(&word.as_str()))
        {
            problems.push(format!("{}: the name of the file", file.name));
        }
        if path.extension().is_some_and(|extension| extension == "rs") {
            let names = banned_names(&file.text);
            problems.extend(
                names
                    .into_iter()
                    .map(|(line, name)| format!("{}:{line}: {name}", file.name)),
            );
        }
    }
    assert!(problems.is_empty(), "rename:\n{}", problems.join("\n"));
}

#[test]
fn banned_words_are_found_in_names_and_not_in_strings() {
    assert_eq!(
        banned_names("fn tell() {}\nfn who_is_told() {}\n"),
        [(2, "who_is_told")]
    );
    assert_eq!(banned_names("enum X { NobodyReads }"), [(1, "NobodyReads")]);
    assert!(banned_names("#[serde(rename = \"told\")] // told\nstruct Listener;").is_empty());
}

#[test]
fn every_source_file_starts_with_a_sentence_about_its_contents() {
    let is_source = |file: &CheckedFile| {
        Path::new(&file.name)
            .extension()
            .is_some_and(|extension| extension == "rs")
    };
    let mut violations = Vec::new();
    for file in checked_files().iter().filter(|file| is_source(file)) {
        let lines = file.text.lines().map_while(|line| line.strip_prefix("//! "));
        let paragraph = lines.collect::<Vec<_>>().join(" ");
        if !paragraph.contains(['.', ':']) {
            violations.push(format!("{}: start with `//! ` and a sentence", file.name));
        }
    }
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn phrases_match_whole_words_in_any_case() {
    assert!(contains_phrase("It is At Work.", "at work"));
    assert!(contains_phrase("keeper", "keeper"));
    assert!(!contains_phrase("housekeeper, keepers, keeper_of", "keeper"));
    assert!(!contains_phrase("that workspace", "at work"));
}
