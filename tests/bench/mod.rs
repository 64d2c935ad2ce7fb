//! Tests of `ralph bench` with the real binary, the real loop and scripted agents.

mod cells;
mod errors;
mod example;
mod interrupted;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::process::helpers::fake_agent;
use crate::sandbox::{CommandOutput, Sandbox};

/// Returns the path of the example's tasks file.
fn example() -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("examples/bench/tasks.yml")
        .to_string_lossy()
        .into_owned()
}

const COST: &str =
    r#"@@RALPH@@ {"type":"usage","usage":{"prompt_tokens":100,"completion_tokens":10,"cost_usd":0.25}}"#;

/// Creates a tasks file for the fake agent, which runs `script` in every cell.
fn fake(script: &str, tasks: &str) -> Sandbox {
    let sandbox = Sandbox::new().with_script("default", script);
    let text = format!(
        "agents:\n  - name: fake\n    command: {}\n    prompt_mode: stdin\n    transcript: rtf1\n{tasks}",
        fake_agent().display()
    );
    sandbox.with_file("tasks.yml", &text)
}

impl Sandbox {
    fn bench(&self, arguments: &[&str]) -> CommandOutput {
        self.ralph(&[&["bench"], arguments].concat())
    }

    /// Returns the directory of the only bench.
    fn bench_directory(&self) -> PathBuf {
        let benches = self.path("state/bench");
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

/// Returns how often each cell was started and ended.
fn start_and_end_counts(results: &[Value]) -> BTreeMap<String, (usize, usize)> {
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

/// Removes the values of a report that differ between equal benches.
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

/// Replaces times by `T` and collapses whitespace, because times change the column widths.
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
