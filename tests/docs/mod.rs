//! What is written down is true: links lead somewhere, configurations load, command lines parse, code is code.

mod markdown;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::cli::{exists, parses};
use crate::sandbox::Sandbox;
use crate::schema::config_refused;
use markdown::{Block, Page};

/// README, what stands beside it, and everything in docs/.
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

/// All that is wrong at once: who writes documentation wants to see it all.
#[track_caller]
fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_link_leads_somewhere() {
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
            let place = format!("{}:{line}: {target}", page.path.display());
            let Ok(path) = path.canonicalize() else {
                wrong.push(format!("{place}: there is no such file"));
                continue;
            };
            if anchor.is_empty() {
                continue;
            }
            let known = Page::read(&path).anchors;
            if !known.iter().any(|known| known == anchor) {
                wrong.push(format!("{place}: no such heading among {known:?}"));
            }
        }
    }
    none(&wrong);
    assert!(links > 20, "{links} links");
}

/// A configuration is loaded as it stands there, by the real program, and looked at as an editor would. `yaml fragment`
/// and `yaml tasks` are other things.
#[test]
fn every_configuration_loads_and_is_as_the_schema_says() {
    let mut seen = 0;
    for block in blocks().iter().filter(|block| block.language() == "yaml") {
        if block.info.contains("fragment") || block.info.contains("tasks") {
            continue;
        }
        let place = block.place();
        let first = block.text.lines().find(|line| !line.starts_with('#'));
        let sandbox = if first.is_some_and(|line| line.starts_with("models:")) {
            Sandbox::new()
                .with_file("prices.yml", &block.text)
                .with_file("ralph.yml", "pricing: prices.yml\n")
        } else {
            assert_eq!(config_refused(&block.text), None, "{place}");
            let wrong = format!("{}\nnonsense: 1\n", block.text);
            assert!(config_refused(&wrong).is_some(), "{place}, with a key too many");
            Sandbox::new().with_file("ralph.yml", &block.text)
        };
        let sandbox = sandbox.with_agent("claude").with_agent("ollama");
        let told = sandbox.ralph(&["config", "show", "--json"]);
        assert_eq!((told.exit(), told.stderr.as_str()), (0, ""), "{place}");
        let told = sandbox.ralph(&["hats", "validate"]);
        assert_eq!(told.exit(), 0, "{place}: {told:?}");
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
        let lines = blocks.flat_map(|block| block.text.lines().map(|line| (block.place(), line.to_owned())));
        // What a sentence quotes is a command line too, unless it is a sketch of one.
        let sketch = |text: &str| text.contains(['[', '…', '{', '<']) || text.contains("...");
        let quoted = page.quoted.iter().filter(|(_, text)| !sketch(text));
        let quoted = quoted.map(|(line, text)| (format!("{}:{line}", page.path.display()), text.clone()));
        let whole = lines.map(|(place, line)| (place, line, parses as fn(&str) -> Result<(), String>));
        let named = quoted.map(|(place, line)| (place, line, exists as fn(&str) -> Result<(), String>));
        for (place, line, check) in whole.chain(named) {
            for call in calls_of(&line) {
                seen += 1;
                if let Err(error) = check(&call) {
                    let error = error.lines().next().unwrap_or_default().to_owned();
                    wrong.push(format!("{place}: {call}\n    {error}"));
                }
            }
        }
    }
    none(&wrong);
    assert!(seen > 60, "{seen} command lines");
}

/// The calls of ralph in a line of shell, without what follows a pipe, a redirection or a comment.
fn calls_of(line: &str) -> Vec<String> {
    let mut calls = vec![String::new()];
    let mut quote = None;
    let mut before = ' ';
    for sign in line.trim_start_matches("$ ").chars() {
        match (quote, sign) {
            (None, '\'' | '"') => quote = Some(sign),
            (Some(open), sign) if open == sign => quote = None,
            (None, '#') if before == ' ' => break,
            (None, '|' | '>' | '<' | ';' | '&' | '(' | ')') => calls.push(String::new()),
            _ => {}
        }
        if let Some(call) = calls.last_mut()
            && (quote.is_some() || !"|><;&()".contains(sign))
        {
            call.push(sign);
        }
        before = sign;
    }
    let calls = calls.iter().map(|call| call.trim().to_owned());
    calls.filter(|call| call.starts_with("ralph ")).collect()
}

#[test]
fn every_piece_of_json_is_json() {
    let language = |block: &&Block| ["json", "jsonl"].contains(&block.language());
    for block in blocks().iter().filter(language) {
        let whole = serde_json::from_str::<Value>(&block.text).is_ok();
        let mut lines = block.text.lines().filter(|line| !line.trim().is_empty());
        let by_line = lines.all(|line| serde_json::from_str::<Value>(line).is_ok());
        assert!(whole || by_line, "{}:\n{}", block.place(), block.text);
    }
}

#[test]
fn every_script_is_one() {
    for (languages, program, arguments) in [
        (["sh", "bash"].as_slice(), "bash", ["-n"].as_slice()),
        (
            &["python"],
            "python3",
            &["-c", "import ast, sys; ast.parse(sys.stdin.read())"],
        ),
    ] {
        if which::which(program).is_err() {
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
            let mut stdin = child.stdin.take().expect("its stdin");
            std::io::Write::write_all(&mut stdin, block.text.as_bytes()).expect("the script");
            drop(stdin);
            let output = child.wait_with_output().expect("its end");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {said}", block.place());
        }
    }
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
