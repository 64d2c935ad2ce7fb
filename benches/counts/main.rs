//! Instruction counts of the hot paths, measured by valgrind: `cargo bench --bench counts`. Counts do not depend on the
//! load of the machine, so they are compared with the committed `baseline.json`: a count more than 5 % above it is a
//! failure. `cargo bench --bench counts -- --save` writes the new counts to the baseline.
//!
//! The program starts itself under valgrind to run one workload (see `workloads.rs`).

mod workloads;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The allowed growth of a count, as a factor.
const TOLERANCE: f64 = 1.05;

/// Instructions by workload.
type Counts = BTreeMap<String, u64>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["workload", name] => return workloads::run(name),
        ["--save"] => count_all().and_then(|counts| save(&counts)),
        [] => count_all().and_then(|counts| compare(&counts)),
        _ => Err(io::Error::other("usage: cargo bench --bench counts [-- --save]")),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn count_all() -> io::Result<Counts> {
    if Command::new("valgrind")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        let message = "valgrind is not installed; install it (Debian: apt install valgrind)";
        return Err(io::Error::other(message));
    }
    let this = std::env::current_exe()?;
    let nothing = count(&this, &["workload", "nothing"])?;
    let mut counts = Counts::new();
    for name in workloads::names() {
        let all = count(&this, &["workload", &name])?;
        counts.insert(name, all.saturating_sub(nothing));
    }
    let ralph = Path::new(env!("CARGO_BIN_EXE_ralph"));
    counts.insert("start: ralph --version".to_owned(), count(ralph, &["--version"])?);
    Ok(counts)
}

/// The number of instructions that a command executes.
fn count(program: &Path, arguments: &[&str]) -> io::Result<u64> {
    let out = scratch()?.join("callgrind.out");
    let status = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(io::Error::other(format!(
            "{arguments:?} under valgrind: {status}"
        )));
    }
    let report = std::fs::read_to_string(&out)?;
    let total = report
        .lines()
        .find_map(|line| line.strip_prefix("summary: ").or(line.strip_prefix("totals: ")));
    total
        .and_then(|total| total.trim().parse().ok())
        .ok_or_else(|| io::Error::other(format!("no total in {}", out.display())))
}

fn compare(counts: &Counts) -> io::Result<ExitCode> {
    let known: Counts = serde_json::from_slice(&std::fs::read(baseline())?)?;
    let mut out = io::stdout();
    writeln!(
        out,
        "| workload | instructions | baseline | change |\n|---|---|---|---|"
    )?;
    let mut grown = Vec::new();
    for (workload, count) in counts {
        let before = known.get(workload).copied().unwrap_or(*count);
        let ratio = *count as f64 / before as f64;
        let percent = (ratio - 1.0) * 100.0;
        writeln!(out, "| {workload} | {count} | {before} | {percent:+.1} % |")?;
        if ratio > TOLERANCE {
            grown.push(format!("{workload} by {percent:.1} %"));
        }
    }
    if grown.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "\nmore than 5 % above the baseline: {}", grown.join(", "))?;
    writeln!(
        out,
        "to accept the new counts: cargo bench --bench counts -- --save"
    )?;
    Ok(ExitCode::FAILURE)
}

fn save(counts: &Counts) -> io::Result<ExitCode> {
    std::fs::write(baseline(), serde_json::to_string_pretty(counts)? + "\n")?;
    writeln!(io::stdout(), "{}", baseline().display())?;
    Ok(ExitCode::SUCCESS)
}

fn baseline() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/counts/baseline.json")
}

/// The directory for temporary files.
fn scratch() -> io::Result<PathBuf> {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("counts");
    std::fs::create_dir_all(&path)?;
    Ok(path)
}
