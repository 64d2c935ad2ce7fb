//! Rejects phrases that the style guide bans, in the comments and strings of the code, in the documentation and in snapshots.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Banned phrases and their replacements. A phrase matches whole words, in any case, within one line. Only list phrases that have no
/// legitimate use.
const BANNED: &[(&str, &str)] = &[
    ("anew", "again"),
    ("at work", "running"),
    ("by the way", "delete it"),
    ("cannot be mended", "cannot be fixed"),
    ("errand", "spawn request"),
    ("go on with", "continue, resume"),
    ("goes on with", "continues, resumes"),
    ("gone on with", "resumed"),
    ("is there already", "already exists"),
    ("is told", "receives, is notified"),
    ("hereby", "delete it"),
    ("in vain", "without effect"),
    ("keeper", "supervisor"),
    ("keepers", "supervisors"),
    ("lest", "so that … not"),
    ("mended", "fixed"),
    ("mends", "fixes"),
    ("mishap", "panic"),
    ("nobody", "no process, no reader, no hat"),
    ("somebody", "name the person or the process"),
    ("rehearse", "trigger, simulate"),
    ("reins", "control"),
    ("so much the", "delete it"),
    ("so-manyth", "nth"),
    ("that is to say", "delete it"),
    ("thereof", "of it"),
    ("telephone", "phone"),
    ("the door", "the command line"),
    ("the house", "the code base"),
    ("was said", "was printed, was reported"),
    ("was told", "received, was notified"),
    ("whoever", "name the person or the process"),
];

/// Files that contain a banned phrase for a reason. An entry that is no longer needed fails the test.
const EXCEPTIONS: &[Exception] = &[Exception {
    file: "CONTRIBUTING.md",
    phrase: "nobody",
    reason: "the style guide quotes it as an example",
}];

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

/// Replaces everything except for comments and string literals by spaces; lines keep their numbers.
fn comments_and_strings(code: &str) -> String {
    let mut prose = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let literal = prose_length(rest, prose.chars().next_back());
        if literal > 0 {
            prose.push_str(&rest[..literal]);
            rest = &rest[literal..];
            continue;
        }
        let skipped = character_length(rest).unwrap_or(first.len_utf8());
        // An identifier is kept as one letter, so that `r` and `b` in it are not taken for the prefix of a literal.
        let blank = if first.is_alphanumeric() || first == '_' {
            'x'
        } else {
            ' '
        };
        prose.push(if first == '\n' { '\n' } else { blank });
        rest = &rest[skipped..];
    }
    prose
}

/// Returns the length of the comment or string literal at the start of `rest`, or 0.
fn prose_length(rest: &str, before: Option<char>) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return rest.find("*/").map_or(rest.len(), |end| end + 2);
    }
    if rest.starts_with('"') {
        return string_length(rest);
    }
    // The prefix of a literal does not follow a letter.
    if before == Some('x') {
        return 0;
    }
    let raw = rest.strip_prefix('b').unwrap_or(rest);
    let Some(raw) = raw.strip_prefix('r') else {
        return 0;
    };
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    if !raw[hashes..].starts_with('"') {
        return 0;
    }
    let start = rest.len() - raw.len() + hashes + 1;
    let terminator = format!("\"{}", "#".repeat(hashes));
    rest[start..]
        .find(&terminator)
        .map_or(rest.len(), |end| start + end + terminator.len())
}

fn string_length(rest: &str) -> usize {
    let mut escaped = false;
    for (index, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return index + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Returns the length of a character literal at the start of `rest`. A lifetime is none.
fn character_length(rest: &str) -> Option<usize> {
    let content = rest.strip_prefix('\'')?;
    if content.starts_with('\\') {
        // The escaped character may itself be a quote.
        let end = content
            .char_indices()
            .skip(2)
            .find(|(_, character)| *character == '\'')?;
        return Some(end.0 + 2);
    }
    let first = content.chars().next()?;
    content[first.len_utf8()..]
        .starts_with('\'')
        .then_some(first.len_utf8() + 2)
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
fn only_comments_and_strings_are_checked() {
    let code = concat!(
        "// one\n",
        "let two = \"three \\\" four\"; /* five */ let a: &'static str = br#\"six \" seven\"#;\n",
        "let letter = '\"'; let quote = '\\''; let barr = bar\"\"; // eight\n",
    );
    let prose = comments_and_strings(code);
    assert_eq!(prose.lines().count(), code.lines().count());
    for word in ["one", "three", "four", "five", "six", "seven", "eight"] {
        assert!(contains_phrase(&prose, word), "{word}: {prose}");
    }
    for word in ["two", "letter", "quote", "static"] {
        assert!(!contains_phrase(&prose, word), "{word}: {prose}");
    }
}

#[test]
fn phrases_match_whole_words_in_any_case() {
    assert!(contains_phrase("It is At Work.", "at work"));
    assert!(contains_phrase("keeper", "keeper"));
    assert!(!contains_phrase("housekeeper, keepers, keeper_of", "keeper"));
    assert!(!contains_phrase("that workspace", "at work"));
}
