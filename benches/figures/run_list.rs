//! F8: time to list 10,000 runs and to resume a run with a journal of 1 GB.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use crate::sample::{Figure, helper, interleaved, median, ralph, scratch, time, workspace};

pub(crate) const RUNS: usize = 10_000;
const REPEATS: usize = 11;
const JOURNAL: u64 = 1 << 30;
/// The last run to be written; if it exists, all others do.
const LAST: &str = "20261231-000000-0000";

pub(crate) fn run_list() -> Vec<Figure> {
    vec![
        // No run has this outcome, so every run is read.
        ten_thousand_runs(
            "`ralph runs --outcome failed`, 10,000 runs",
            &["--outcome", "failed"],
        ),
        ten_thousand_runs("`ralph runs -n 0`, 10,000 runs, all shown", &["-n", "0"]),
        ten_thousand_runs("`ralph runs`, 10,000 runs, the newest shown", &[]),
        resume_gigabyte(),
    ]
}

fn ten_thousand_runs(label: &str, arguments: &[&str]) -> Figure {
    let directory = scratch().join("runs");
    if !directory.join(".agent/runs").join(LAST).exists() {
        write_runs(&directory.join(".agent/runs"));
    }
    let measure = || time(ralph().arg("runs").args(arguments).current_dir(&directory));
    let (ours, baseline) = interleaved(REPEATS, measure, || time(&mut helper("nothing")));
    Figure::times(label, ours, baseline, "≤ 150 ms")
}

pub(crate) fn write_runs(runs: &Path) {
    for number in 0..RUNS {
        let (day, rest) = (1 + number % 28, number / 28);
        let (hour, minute) = (rest / 60 % 24, rest % 60);
        let id = format!("202611{day:02}-{hour:02}{minute:02}00-{number:04}");
        write_run(&runs.join(&id), &id, 20);
    }
    write_run(&runs.join(LAST), LAST, 1);
}

/// Writes the files of a run whose journal has this many transcript records.
fn write_run(run: &Path, id: &str, lines: usize) {
    let _ = fs::create_dir_all(run.join("iterations/0001"));
    let _ = fs::write(
        run.join("iterations/0001/prompt.md"),
        "Make the tests pass.\n\nAll of them.\n",
    );
    let mut text = header(id);
    for seq in 2..lines + 2 {
        text.push_str(&text_record(seq, 400));
    }
    text.push_str(&format!(
        "{{\"seq\":{},\"at\":\"2026-11-15T20:45:09Z\",\"type\":\"run_ended\",\"outcome\":\"complete\",\"marker\":\"LOOP_COMPLETE\",\
         \"iterations\":2,\"duration_ms\":4800,\"usage\":{{\"prompt_tokens\":2810,\"completion_tokens\":238,\"cost_usd\":0.12}}}}\n",
        lines + 2
    ));
    let _ = fs::write(run.join("events.jsonl"), text);
}

fn header(id: &str) -> String {
    format!(
        "{{\"seq\":1,\"at\":\"2026-11-15T20:45:01Z\",\"type\":\"run_started\",\"version\":1,\"run_id\":\"{id}\",\"ralph\":\"0.1.0\",\
         \"agent\":\"claude\",\"transcript\":\"claude\",\"workspace\":\"/home/me/project\",\"max_iterations\":100}}\n"
    )
}

fn text_record(seq: usize, length: usize) -> String {
    format!(
        "{{\"seq\":{seq},\"at\":\"2026-11-15T20:45:02Z\",\"type\":\"transcript\",\"iteration\":1,\"event\":{{\"type\":\"text\",\
         \"tag\":\"AI\",\"text\":\"{}\"}}}}\n",
        "x".repeat(length)
    )
}

/// Resumes a run that was interrupted after 1 GB of journal and completes in one iteration.
fn resume_gigabyte() -> Figure {
    let directory = workspace("gigabyte", &["nothing"], "plain");
    let id = "20261115-204501-aaaa";
    let run = directory.join(".agent/runs").join(id);
    let _ = fs::create_dir_all(run.join("iterations"));
    let template = run.join("template");
    let written = File::create(&template).and_then(|file| {
        let mut writer = BufWriter::new(file);
        writer.write_all(header(id).as_bytes())?;
        let mut length = 0;
        for seq in 2.. {
            let line = text_record(seq, 1000);
            length += line.len() as u64;
            writer.write_all(line.as_bytes())?;
            if length >= JOURNAL {
                break;
            }
        }
        writer.flush()
    });
    assert!(written.is_ok(), "a journal of a gigabyte");
    let journal = run.join("events.jsonl");
    let samples = (0..3).map(|_| {
        let _ = fs::copy(&template, &journal);
        let start = Instant::now();
        let call = ["run", "--continue", id, "--yes", "-q", "-n", "1", "-p", "x"];
        time(ralph().args(call).current_dir(&directory));
        start.elapsed()
    });
    let measured = median(samples.collect());
    let _ = fs::remove_dir_all(&directory);
    let (baseline, target) = (time(&mut helper("nothing")), "≤ 1 s");
    Figure::times(
        "`ralph run --continue` on a journal of 1 GB, one iteration",
        measured,
        baseline,
        target,
    )
}
