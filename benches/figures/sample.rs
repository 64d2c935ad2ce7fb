//! Sampling, medians and the rows of the report.

use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// One row of the report.
pub(crate) struct Figure {
    pub(crate) label: String,
    pub(crate) measured: String,
    pub(crate) baseline: String,
    pub(crate) ratio: Option<f64>,
    pub(crate) target: &'static str,
}

impl Figure {
    /// Two durations and their ratio.
    pub(crate) fn times(label: &str, measured: Duration, baseline: Duration, target: &'static str) -> Self {
        Self {
            label: label.to_owned(),
            measured: format!("{:.2} ms", measured.as_secs_f64() * 1e3),
            baseline: format!("{:.2} ms", baseline.as_secs_f64() * 1e3),
            ratio: Some(measured.as_secs_f64() / baseline.as_secs_f64()),
            target,
        }
    }

    /// Two rates and their ratio.
    pub(crate) fn rates(label: &str, measured: f64, baseline: f64, target: &'static str) -> Self {
        Self {
            label: label.to_owned(),
            measured: format!("{measured:.0} MB/s"),
            baseline: format!("{baseline:.0} MB/s"),
            ratio: Some(measured / baseline),
            target,
        }
    }

    /// A figure without a baseline.
    pub(crate) fn plain(label: &str, measured: String, target: &'static str) -> Self {
        Self {
            label: label.to_owned(),
            measured,
            baseline: String::new(),
            ratio: None,
            target,
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ratio = self.ratio.map(|ratio| format!("{ratio:.2}×")).unwrap_or_default();
        write!(
            f,
            "{} | {} | {} | {ratio} | {}",
            self.label, self.measured, self.baseline, self.target
        )
    }
}

pub(crate) fn json(figures: &[(&str, Figure)]) -> String {
    let rows: Vec<serde_json::Value> = figures
        .iter()
        .map(|(name, figure)| {
            serde_json::json!({ "figure": name, "label": figure.label, "measured": figure.measured,
                "baseline": figure.baseline, "ratio": figure.ratio, "target": figure.target })
        })
        .collect();
    serde_json::json!({ "load": load(), "figures": rows }).to_string()
}

pub(crate) fn median<T: Copy + PartialOrd>(mut samples: Vec<T>) -> T {
    samples.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    samples[samples.len() / 2]
}

pub(crate) fn quantile<T: Copy + PartialOrd>(mut samples: Vec<T>, part: f64) -> T {
    samples.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index within the samples"
    )]
    let index = ((samples.len() - 1) as f64 * part) as usize;
    samples[index]
}

/// The medians of two measurements that alternate, so that a disturbance affects both.
pub(crate) fn interleaved<T: Copy + PartialOrd>(
    repeats: usize,
    mut measured: impl FnMut() -> T,
    mut baseline: impl FnMut() -> T,
) -> (T, T) {
    let (mut ours, mut baselines) = (Vec::new(), Vec::new());
    for _ in 0..repeats {
        baselines.push(baseline());
        ours.push(measured());
    }
    (median(ours), median(baselines))
}

/// The wall time of a command.
pub(crate) fn time(command: &mut Command) -> Duration {
    let start = Instant::now();
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.is_ok(), "{command:?}");
    start.elapsed()
}

pub(crate) fn ralph() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ralph"))
}

/// This program, started as a helper.
pub(crate) fn helper(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap_or_default());
    command.arg(name);
    command
}

/// The directory for temporary files.
pub(crate) fn scratch() -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("figures");
    let _ = std::fs::create_dir_all(&path);
    path
}

/// A new workspace in which a helper of this program is the agent.
pub(crate) fn workspace(name: &str, agent: &[&str], transcript: &str) -> PathBuf {
    let path = scratch().join(name);
    let _ = std::fs::remove_dir_all(&path);
    let _ = std::fs::create_dir_all(&path);
    let program = std::env::current_exe().unwrap_or_default();
    let args: Vec<String> = agent.iter().map(|word| format!("{word:?}")).collect();
    let config = format!(
        "cli:\n  command: {:?}\n  args: [{}]\n  prompt_mode: stdin\n  transcript: {transcript}\nevent_loop:\n  max_iterations: 2000\n  max_no_progress: 0\n",
        program.display().to_string(),
        args.join(", "),
    );
    let _ = std::fs::write(path.join("ralph.yml"), config);
    sync_disk();
    path
}

/// Flushes pending writes and deletions of the last sample, so that they do not slow down the next one.
pub(crate) fn sync_disk() {
    rustix::fs::sync();
}

pub(crate) fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').take(3).collect::<Vec<_>>().join(" ")
}
