//! The two ends of a run: its header, and the final report.

use std::time::Duration;

use jiff::Timestamp;

use super::callouts::source_words;
use super::renderer::PlainRenderer;
use super::status::Activity;
use crate::event::{RunHeader, RunOutcome, Usage};
use crate::ui::{Tone, describe, units};

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
        self.page.bare(
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
        self.activity = Activity::Nothing;
        self.page.close();
        let header = self.header.take();
        // The one thing that the quiet face shows, and there with no empty line before it.
        if !std::mem::take(&mut self.page.silent) {
            self.page.bare(Tone::Plain, "");
        }
        let verdict = describe::run_verdict(outcome, &self.passed_gates);
        self.page.plain_row();
        self.page.put_whole(verdict.tone, verdict.mark);
        self.page
            .put_whole(Tone::Strong, &format!(" {}", verdict.sentence));
        self.page.end_row();
        let of = header
            .as_ref()
            .map(|header| format!(" of {}", units::grouped(header.max_iterations)));
        self.field(
            "iterations",
            &format!("{}{}", units::grouped(iterations), of.unwrap_or_default()),
        );
        self.field("time", &units::duration(Duration::from_millis(duration_ms)));
        if let Some(tokens) = token_words(usage) {
            self.field("tokens", &tokens);
        }
        let budget = header.as_ref().and_then(|header| header.max_cost_usd);
        if let Some(cost) = usage.cost_usd {
            let budget = budget.map(|budget| format!(", of {}", units::dollars(budget)));
            let (cost, source) = (units::dollars(cost), source_words(usage));
            self.field("cost", &format!("{cost}{source}{}", budget.unwrap_or_default()));
        } else if let Some(budget) = budget {
            self.field("cost", &describe::blind_budget(budget));
        }
        let gates = self.gate_words();
        self.field("gates", &gates);
        if let Some(header) = &header {
            let journal = format!(
                "{}/.agent/runs/{}",
                header.workspace.trim_end_matches('/'),
                header.run_id
            );
            self.field("journal", &journal);
            if let Some(advice) = describe::run_advice(outcome, &header.run_id) {
                self.field("next", &advice);
            }
        }
        self.header = header;
    }

    /// Never cut: a path or a command is there to be copied.
    fn field(&mut self, name: &str, value: &str) {
        self.page.plain_row();
        self.page.put_whole(Tone::Faint, &format!("  {name:<12}"));
        self.page.put_whole(Tone::Plain, value);
        self.page.end_row();
    }

    fn gate_words(&self) -> String {
        if self.gates.is_empty() {
            return "none ran".into();
        }
        let tallies = self.gates.iter().map(|gate| match (gate.passed, gate.failed) {
            (passed, 0) => format!("{} passed ×{passed}", gate.name),
            (0, failed) => format!("{} failed ×{failed}", gate.name),
            (passed, failed) => format!("{} passed ×{passed}, failed ×{failed}", gate.name),
        });
        tallies.collect::<Vec<_>>().join(" · ")
    }
}

/// `90,400 (88,000 in, 76,000 of them cached; 2,400 out)`, as far as known.
fn token_words(usage: &Usage) -> Option<String> {
    let total = units::grouped(usage.tokens()?);
    let cached = usage.cached_tokens.filter(|cached| *cached > 0);
    let cached = cached.map(|cached| format!(", {} of them cached", units::grouped(cached)));
    let prompt = usage
        .prompt_tokens
        .map(|prompt| format!("{} in", units::grouped(prompt)));
    let prompt = prompt.map(|prompt| prompt + &cached.unwrap_or_default());
    let completion = usage
        .completion_tokens
        .map(|tokens| format!("{} out", units::grouped(tokens)));
    let parts: Vec<String> = prompt.into_iter().chain(completion).collect();
    Some(match parts.is_empty() {
        true => total,
        false => format!("{total} ({})", parts.join("; ")),
    })
}
