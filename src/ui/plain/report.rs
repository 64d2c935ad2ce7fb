//! Renders the header of a run and the final report.

use std::time::Duration;

use jiff::Timestamp;

use super::callouts::cost_source_label;
use super::renderer::PlainRenderer;
use super::status::PlainActivity;
use crate::event::{RunHeader, RunOutcome, Usage};
use crate::ui::{Tone, next_step, run_verdict, units, unknown_cost};

impl PlainRenderer {
    pub(super) fn run_started(&mut self, header: &RunHeader, at: Timestamp) {
        self.run_started = at;
        let version = header.agent_version.as_ref().map(|version| format!(" {version}"));
        let limits = [
            Some(units::count(header.max_iterations, "iteration")),
            header
                .max_runtime_seconds
                .map(|seconds| units::duration(Duration::from_secs(seconds))),
            header.max_cost_usd.map(units::dollars),
            header.max_tokens.map(|tokens| units::count(tokens, "token")),
        ];
        let limits = limits.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        self.page.line_without_gutter(
            Tone::Strong,
            &format!("ralph {} · run {}", header.ralph, header.run_id),
        );
        self.field(
            "agent",
            &format!("{}{}", header.agent, version.unwrap_or_default()),
        );
        self.field("limits", &limits);
        self.field("workspace", &header.workspace);
        let started = at.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M");
        self.field("started", &started.to_string());
        self.header = Some(header.clone());
    }

    pub(super) fn run_ended(
        &mut self,
        outcome: &RunOutcome,
        iterations: u64,
        duration_ms: u64,
        usage: &Usage,
    ) {
        self.activity = PlainActivity::Idle;
        self.page.close();
        let header = self.header.take();
        // With `--quiet`, the report is the only output and needs no empty line before it.
        if !std::mem::take(&mut self.page.silent) {
            self.page.line_without_gutter(Tone::Plain, "");
        }
        let verdict = run_verdict(outcome, &self.passed_gates);
        self.page.close();
        self.page.put_untruncated(verdict.tone, verdict.mark);
        self.page
            .put_untruncated(Tone::Strong, &format!(" {}", verdict.sentence));
        self.page.end_row();
        if let Some(changes) = self.changes.summary() {
            self.field("changed", &changes);
        }
        let of = header
            .as_ref()
            .map(|header| format!(" of {}", units::grouped(header.max_iterations)));
        self.field(
            "iterations",
            &format!("{}{}", units::grouped(iterations), of.unwrap_or_default()),
        );
        self.field("time", &units::duration(Duration::from_millis(duration_ms)));
        if let Some(tokens) = format_tokens(usage) {
            self.field("tokens", &tokens);
        }
        let budget = header.as_ref().and_then(|header| header.max_cost_usd);
        if let Some(cost) = usage.cost_usd {
            let budget = budget.map(|budget| format!(" of {}", units::dollars(budget)));
            let source = cost_source_label(usage).map(|source| format!(" ({source})"));
            let (budget, source) = (budget.unwrap_or_default(), source.unwrap_or_default());
            self.field("cost", &format!("{}{budget}{source}", units::dollars(cost)));
        } else if let Some(budget) = budget {
            self.field("cost", &unknown_cost(budget));
        }
        if self.roles.has_several_roles() {
            let names = std::iter::once("by role").chain(std::iter::repeat(""));
            for (line, name) in self.roles.lines().iter().zip(names) {
                self.field(name, line);
            }
        }
        self.gate_fields();
        if let Some(header) = &header {
            if let Some(directory) = header.kept_directory() {
                self.field("journal", directory);
            }
            if self.changes.any()
                && header.kept_directory().is_some()
                && matches!(outcome, RunOutcome::Complete { .. })
            {
                self.field("review", &format!("ralph diff {}", header.run_id));
            }
            if let Some(advice) = next_step(outcome, &header.run_id) {
                self.field("next", &advice);
            }
        }
        self.header = header;
    }

    /// Prints a name and a value. The value is never truncated, because users copy paths and commands.
    fn field(&mut self, name: &str, value: &str) {
        self.page.close();
        self.page.put_untruncated(Tone::Faint, &format!("  {name:<12}"));
        self.page.put_untruncated(Tone::Plain, value);
        self.page.end_row();
    }

    /// The gates, and the snapshot that they verified.
    fn gate_fields(&mut self) {
        let gates = self.gate_summary();
        self.field("gates", &gates);
        if let Some(snapshot) = self.passed_gates.tree() {
            let snapshot = snapshot.get(..12).unwrap_or(snapshot).to_owned();
            self.field("snapshot", &snapshot);
        }
    }

    fn gate_summary(&self) -> String {
        if self.gates.is_empty() {
            return "none".into();
        }
        let counts = self.gates.iter().map(|gate| match (gate.passed, gate.failed) {
            (passed, 0) => format!("{} passed ×{passed}", gate.name),
            (0, failed) => format!("{} failed ×{failed}", gate.name),
            (passed, failed) => format!("{} passed ×{passed}, failed ×{failed}", gate.name),
        });
        counts.collect::<Vec<_>>().join(" · ")
    }
}

/// `90,400 (88,000 input, 76,000 of them cached; 2,400 output)`; leaves out unknown figures.
fn format_tokens(usage: &Usage) -> Option<String> {
    let total = units::grouped(usage.tokens()?);
    let cached = usage.cached_tokens.filter(|cached| *cached > 0);
    let cached = cached.map(|cached| format!(", {} of them cached", units::grouped(cached)));
    let prompt = usage
        .prompt_tokens
        .map(|prompt| format!("{} input", units::grouped(prompt)));
    let prompt = prompt.map(|prompt| prompt + &cached.unwrap_or_default());
    let completion = usage
        .completion_tokens
        .map(|tokens| format!("{} output", units::grouped(tokens)));
    let parts: Vec<String> = prompt.into_iter().chain(completion).collect();
    Some(match parts.is_empty() {
        true => total,
        false => format!("{total} ({})", parts.join("; ")),
    })
}
