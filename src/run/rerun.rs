//! Runs the gates of a receipt again, on a clean checkout of the files that it names.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::engine::GateVersion;
use crate::event::GateResult;
use crate::policy::Gate;
use crate::process::scratch;
use crate::snapshot::{SnapshotId, SnapshotStore};

use super::Host;
use super::clean_gate::CleanGates;
use super::gate::{GateReport, GateRun, own_environment};

/// Time for a gate to exit after its timeout before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// What is checked again.
pub struct Rerun {
    pub store: SnapshotStore,
    /// The files that the gates check.
    pub tree: SnapshotId,
    /// The files at the start of the run, whose protected files count; `None` if they are not available.
    pub first: Option<SnapshotId>,
    /// The project whose files these are. Gates do not use its programs.
    pub root: PathBuf,
    pub gates: Vec<RerunGate>,
}

/// A gate, and the protected files that the run changed.
pub struct RerunGate {
    pub gate: Gate,
    pub protected_changes: Vec<String>,
}

/// How a gate ended when it ran again.
#[derive(Debug)]
pub enum RerunEnd {
    Ran(GateReport),
    /// The result is unknown for this reason.
    Impossible(String),
}

impl RerunEnd {
    pub fn passed(&self) -> bool {
        matches!(self, Self::Ran(report) if report.result == GateResult::Passed)
    }
}

impl Rerun {
    /// Runs the gates one after the other and calls `on_end` for each.
    pub fn run(&self, host: &Host, mut on_end: impl FnMut(&RerunGate, RerunEnd)) -> io::Result<()> {
        let directory = scratch("ralph-verify-")?;
        let first = self.first.unwrap_or(self.tree);
        let gates: Vec<Gate> = self.gates.iter().map(|gate| gate.gate.clone()).collect();
        let mut clean = CleanGates::new(directory.path().join("checkouts"), &self.root, first, &gates);
        for gate in &self.gates {
            let end = self.run_gate(host, &mut clean, gate);
            on_end(gate, end);
        }
        Ok(())
    }

    fn run_gate(&self, host: &Host, clean: &mut CleanGates, checked: &RerunGate) -> RerunEnd {
        if self.first.is_none() && !checked.protected_changes.is_empty() {
            return RerunEnd::Impossible(format!(
                "the original version of {} is not available here",
                checked.protected_changes.join(", ")
            ));
        }
        match self.run_version(host, clean, &checked.gate, GateVersion::AsLeft) {
            Ok(report) if report.result.passed() && !checked.protected_changes.is_empty() => {
                let report = self.run_version(host, clean, &checked.gate, GateVersion::Protected);
                report.map_or_else(RerunEnd::Impossible, RerunEnd::Ran)
            }
            Ok(report) => RerunEnd::Ran(report),
            Err(reason) => RerunEnd::Impossible(reason),
        }
    }

    fn run_version(
        &self,
        host: &Host,
        clean: &mut CleanGates,
        gate: &Gate,
        version: GateVersion,
    ) -> Result<GateReport, String> {
        let prepared = clean.prepare(&self.store, self.tree, gate, version)?;
        let environment = clean.environment(own_environment());
        let gate_run = GateRun::clean(gate.clone(), prepared);
        let mut report = gate_run.report(host.supervisors(), environment, GRACE);
        if report.result.passed() && !report.altered.is_empty() {
            report.result = GateResult::Tampered;
        }
        Ok(report)
    }
}

/// The path of a run's snapshots. A run's directory is `projects/NAME/runs/ID`.
pub fn snapshots_of(run: &Path) -> PathBuf {
    run.ancestors().nth(2).unwrap_or(run).join("snapshots.git")
}
