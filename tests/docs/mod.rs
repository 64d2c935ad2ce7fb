//! Checks the documentation: links resolve, configurations load, command lines parse, code blocks are valid.

mod markdown;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::cli::{exists, parses};
use crate::sandbox::Sandbox;
use crate::sandbox::skip::skip;
use crate::schema::config_violation;
use markdown::{Block, Page};

/// Reads README.md, the pages next to it, and everything in docs/.
fn pages() -> Vec<Page> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .iter()
        .map(|name| root.join(name))
        .collect();
    let mut directories = vec![root.join("docs")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                paths.push(path);
            }
        }
    }
    paths.iter().map(|path| Page::read(path)).collect()
}

fn blocks() -> Vec<Block> {
    pages().into_iter().flat_map(|page| page.blocks).collect()
}

/// Fails with all problems at once.
#[track_caller]
fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_link_resolves() {
    let pages = pages();
    let mut wrong = Vec::new();
    let mut links = 0;
    for page in &pages {
        for (line, target) in &page.links {
            let outside = ["http://", "https://", "mailto:"];
            if outside.iter().any(|scheme| target.starts_with(scheme)) {
                continue;
            }
            links += 1;
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = match path {
                "" => page.path.clone(),
                path => page.path.parent().expect("a directory").join(path),
            };
            let location = format!("{}:{line}: {target}", page.path.display());
            let Ok(path) = path.canonicalize() else {
                wrong.push(format!("{location}: no such file"));
                continue;
            };
            if anchor.is_empty() {
                continue;
            }
            let known = Page::read(&path).anchors;
            if !known.iter().any(|known| known == anchor) {
                wrong.push(format!("{location}: no such heading among {known:?}"));
            }
        }
    }
    assert_none(&wrong);
    assert!(links > 20, "{links} links");
}

/// The real program loads each configuration, and the schema accepts it. Blocks marked `yaml fragment` and `yaml tasks` are not
/// configurations.
#[test]
fn every_configuration_loads_and_matches_the_schema() {
    let mut seen = 0;
    for block in blocks().iter().filter(|block| block.language() == "yaml") {
        if block.info.contains("fragment") || block.info.contains("tasks") {
            continue;
        }
        let location = block.location();
        let first = block.text.lines().find(|line| !line.starts_with('#'));
        let sandbox = if first.is_some_and(|line| line.starts_with("models:")) {
            Sandbox::new()
                .with_file("prices.yml", &block.text)
                .with_file("ralph.yml", "pricing: prices.yml\n")
        } else {
            assert_eq!(config_violation(&block.text), None, "{location}");
            let wrong = format!("{}\nnonsense: 1\n", block.text);
            assert!(
                config_violation(&wrong).is_some(),
                "{location}, with an unknown key"
            );
            Sandbox::new().with_file("ralph.yml", &block.text)
        };
        let sandbox = sandbox.with_agent("claude").with_agent("ollama");
        let output = sandbox.ralph(&["config", "show", "--json"]);
        assert_eq!((output.exit(), output.stderr.as_str()), (0, ""), "{location}");
        let output = sandbox.ralph(&["hats", "validate"]);
        assert_eq!(output.exit(), 0, "{location}: {output:?}");
        seen += 1;
    }
    assert!(seen >= 6, "{seen} configurations");
}

#[test]
fn every_command_line_parses() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for page in pages() {
        let shell = |block: &&Block| ["sh", "bash", "console"].contains(&block.language());
        let blocks = page.blocks.iter().filter(shell);
        let lines =
            blocks.flat_map(|block| block.text.lines().map(|line| (block.location(), line.to_owned())));
        // Inline code is a command line too, unless it contains a placeholder.
        let has_placeholder = |text: &str| text.contains(['[', '…', '{', '<']) || text.contains("...");
        let quoted = page.quoted.iter().filter(|(_, text)| !has_placeholder(text));
        let quoted = quoted.map(|(line, text)| (format!("{}:{line}", page.path.display()), text.clone()));
        let whole = lines.map(|(location, line)| (location, line, parses as fn(&str) -> Result<(), String>));
        let named = quoted.map(|(location, line)| (location, line, exists as fn(&str) -> Result<(), String>));
        for (location, line, check) in whole.chain(named) {
            for call in calls_of(&line) {
                seen += 1;
                if let Err(error) = check(&call) {
                    let error = error.lines().next().unwrap_or_default().to_owned();
                    wrong.push(format!("{location}: {call}\n    {error}"));
                }
            }
        }
    }
    assert_none(&wrong);
    assert!(seen > 60, "{seen} command lines");
}

/// Returns the calls of ralph in a shell command line, each without pipes, redirections and comments.
fn calls_of(line: &str) -> Vec<String> {
    let mut calls = vec![String::new()];
    let mut quote = None;
    let mut before = ' ';
    for character in line.trim_start_matches("$ ").chars() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), character) if open == character => quote = None,
            (None, '#') if before == ' ' => break,
            (None, '|' | '>' | '<' | ';' | '&' | '(' | ')') => calls.push(String::new()),
            _ => {}
        }
        if let Some(call) = calls.last_mut()
            && (quote.is_some() || !"|><;&()".contains(character))
        {
            call.push(character);
        }
        before = character;
    }
    let calls = calls.iter().map(|call| call.trim().to_owned());
    calls.filter(|call| call.starts_with("ralph ")).collect()
}

#[test]
fn every_json_block_is_valid() {
    let language = |block: &&Block| ["json", "jsonl"].contains(&block.language());
    for block in blocks().iter().filter(language) {
        let whole = serde_json::from_str::<Value>(&block.text).is_ok();
        let mut lines = block.text.lines().filter(|line| !line.trim().is_empty());
        let by_line = lines.all(|line| serde_json::from_str::<Value>(line).is_ok());
        assert!(whole || by_line, "{}:\n{}", block.location(), block.text);
    }
}

#[test]
fn every_script_block_is_valid() {
    for (languages, program, arguments) in [
        (["sh", "bash"].as_slice(), "bash", ["-n"].as_slice()),
        (
            &["python"],
            "python3",
            &["-c", "import ast, sys; ast.parse(sys.stdin.read())"],
        ),
    ] {
        if which::which(program).is_err() {
            skip(&format!("{program} is not installed"));
            continue;
        }
        for block in blocks()
            .iter()
            .filter(|block| languages.contains(&block.language()))
        {
            let mut child = Command::new(program)
                .args(arguments)
                .stdin(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("an interpreter");
            let mut stdin = child.stdin.take().expect("stdin");
            std::io::Write::write_all(&mut stdin, block.text.as_bytes()).expect("the script");
            drop(stdin);
            let output = child.wait_with_output().expect("the interpreter exits");
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {stderr}", block.location());
        }
    }
}

/// Returns whether inline code looks like the name of a test: at least five words in lower case.
fn is_test_name(code: &str) -> bool {
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    // Hooks of driver scripts have long names, too.
    code.matches('_').count() >= 4 && code.chars().all(letters) && !code.starts_with("driver_")
}

#[test]
fn every_test_that_the_documentation_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut code = String::new();
    let mut directories = vec![root.join("src"), root.join("tests")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                code += &std::fs::read_to_string(&path).expect("a source file");
            }
        }
    }
    let functions: Vec<&str> = code
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("fn ")?.split('(').next())
        .collect();
    let mut named = 0;
    let mut wrong = Vec::new();
    for page in pages() {
        for (line, code) in &page.quoted {
            // A name may be shortened.
            let name = code.trim_end_matches('…');
            if is_test_name(name) {
                named += 1;
                if !functions.iter().any(|function| function.contains(name)) {
                    wrong.push(format!("{}:{line}: no test is named {name}", page.path.display()));
                }
            }
        }
    }
    assert_none(&wrong);
    assert!(named > 50, "only {named} names were found");
}

#[test]
fn calls_are_found_in_a_line_of_shell() {
    assert_eq!(
        calls_of("cd x && ralph run -p \"a | b\" | tee log # ralph"),
        ["ralph run -p \"a | b\""]
    );
    assert_eq!(
        calls_of("source <(ralph completions bash)"),
        ["ralph completions bash"]
    );
    assert_eq!(calls_of("cargo run -- demo"), Vec::<String>::new());
}
