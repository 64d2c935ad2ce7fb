//! `ralph bench` as a user gets it: the real binary, the real loop in every cell, scripted agents.

mod cells;
mod errors;
mod example;
mod interrupted;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::process::stage::fake_agent;
use crate::sandbox::{Sandbox, Told};

/// What the example's tasks file is called.
fn example() -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("examples/bench/tasks.yml")
        .to_string_lossy()
        .into_owned()
}

const COST: &str =
    r#"@@RALPH@@ {"type":"usage","usage":{"prompt_tokens":100,"completion_tokens":10,"cost_usd":0.25}}"#;

/// A bench of the fake agent, which plays `script` in every cell; `tasks` are the lines of its tasks.
fn fake(script: &str, tasks: &str) -> Sandbox {
    let sandbox = Sandbox::new().playing("default", script);
    let text = format!(
        "agents:\n  - name: fake\n    command: {}\n    prompt_mode: stdin\n    transcript: rtf1\n{tasks}",
        fake_agent().display()
    );
    sandbox.with_file("tasks.yml", &text)
}

impl Sandbox {
    fn bench(&self, arguments: &[&str]) -> Told {
        self.ralph(&[&["bench"], arguments].concat())
    }

    /// Where the only bench of this sandbox is.
    fn bench_directory(&self) -> PathBuf {
        let benches = self.path("home").join(".local/state/ralph/bench");
        let mut found = fs::read_dir(&benches).expect("benches").flatten();
        let only = found.next().expect("a bench").path();
        assert!(found.next().is_none(), "there is more than one bench");
        only
    }

    fn results(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.bench_directory().join("results.jsonl")).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }
}

/// How often each cell has begun, and ended.
fn begun_and_ended(results: &[Value]) -> BTreeMap<String, (usize, usize)> {
    let mut cells: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for entry in results {
        let cell = format!("{} {} {}", entry["task"], entry["agent"], entry["repeat"]);
        let counts = cells.entry(cell).or_default();
        match entry["type"].as_str() {
            Some("started") => counts.0 += 1,
            Some("ended") => counts.1 += 1,
            other => panic!("{other:?}"),
        }
    }
    cells
}

/// A report without what no two benches have in common.
fn comparable(mut report: Value) -> Value {
    for key in ["bench", "directory", "began", "spent_usd"] {
        report[key] = Value::Null;
    }
    for table in ["rows", "agents"] {
        for row in report[table].as_array_mut().into_iter().flatten() {
            row["figures"]["duration_ms"] = Value::Null;
        }
    }
    for cell in report["cells"].as_array_mut().into_iter().flatten() {
        for key in ["at", "attempt", "directory", "duration_ms"] {
            cell[key] = Value::Null;
        }
    }
    report
}

/// Text without times, whose columns are as wide as they are, and the sandbox's places.
fn without_times(text: &str) -> String {
    let is_time = |word: &str| {
        let figure = word.trim_end_matches("ms").trim_end_matches('s');
        figure.len() < word.len() && figure.parse::<f64>().is_ok()
    };
    let line = |line: &str| {
        let words = line
            .split_whitespace()
            .map(|word| if is_time(word) { "T" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(|each| line(each) + "\n").collect()
}
