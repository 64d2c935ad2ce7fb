//! Renders the callouts at the end of an iteration: PLAN, ACTIONS and REPORT.

use std::time::Duration;

use jiff::Timestamp;

use super::output_buffer::Label;
use super::renderer::{PlainRenderer, labels};
use super::status::PlainActivity;
use crate::event::{CostSource, IterationOutcome, PlanStatus, Usage};
use crate::ui::{Tone, iteration_verdict, units};

/// How many plan items are shown.
const PLAN_ITEMS: usize = 10;

impl PlainRenderer {
    pub(super) fn iteration_ended(
        &mut self,
        outcome: &IterationOutcome,
        duration_ms: u64,
        usage: &Usage,
        at: Timestamp,
    ) {
        self.activity = PlainActivity::Idle;
        self.iteration.tools.end_all();
        self.used.add(usage);
        self.page.close();
        self.page.blank_line();
        self.plan_callout();
        self.actions_callout();
        let verdict = iteration_verdict(outcome, at, &self.zone);
        self.page.begin(labels::REPORT, None);
        self.page.text(verdict.tone, verdict.mark);
        self.page.text(Tone::Plain, &format!(" {}\n", verdict.sentence));
        let duration = units::duration(Duration::from_millis(duration_ms));
        self.page.text(Tone::Plain, &figures(&duration, usage, None));
        self.page.text(Tone::Plain, "\n");
        self.running_total(at);
        self.page.close();
    }

    fn plan_callout(&mut self) {
        if !self.iteration.plan.is_empty() {
            self.plan_items();
        }
    }

    /// Prints the latest plan.
    pub(super) fn plan_items(&mut self) {
        let items = std::mem::take(&mut self.iteration.plan);
        let mut label = labels::PLAN;
        for item in items.iter().take(PLAN_ITEMS) {
            let (mark, tone) = match item.status {
                PlanStatus::Pending => ("·", Tone::Plain),
                PlanStatus::Active => ("▸", Tone::Accent),
                PlanStatus::Done => ("✓", Tone::Good),
            };
            self.page.line(label);
            self.page.put(tone, mark);
            self.page.put_spaced(Tone::Plain, &item.text);
            self.page.end_row();
            label = Label::SAME;
        }
        self.and_more(items.len().saturating_sub(PLAN_ITEMS) as u64);
        self.iteration.plan = items;
    }

    /// The number of calls of each tool. The calls themselves have been printed.
    fn actions_callout(&mut self) {
        let tools = std::mem::take(&mut self.iteration.tools);
        if tools.ended == 0 {
            return;
        }
        let named: u64 = tools.by_name.iter().map(|(_, count)| count).sum();
        let groups = tools.by_name.iter().map(|(name, count)| match count {
            1 => name.clone(),
            count => format!("{name} ×{count}"),
        });
        let mut groups: Vec<String> = groups.collect();
        if named < tools.ended {
            groups.push(format!("others ×{}", tools.ended - named));
        }
        let mut text = units::count(tools.ended, "call");
        if tools.failed > 0 {
            text += &format!(", {} failed", units::grouped(tools.failed));
        }
        self.page.begin(labels::ACTIONS, None);
        self.page
            .text(Tone::Plain, &format!("{text}: {}", groups.join(" · ")));
        self.page.close();
    }

    fn and_more(&mut self, count: u64) {
        if count > 0 {
            self.page.line(Label::SAME);
            self.page
                .put(Tone::Faint, &format!("… and {} more", units::grouped(count)));
            self.page.end_row();
        }
    }

    /// Prints the usage of the run so far, unless it would only repeat the first iteration.
    fn running_total(&mut self, at: Timestamp) {
        let budget = self.header.as_ref().and_then(|header| header.max_cost_usd);
        let is_first = self.iteration.number <= 1 && self.iteration.attempt <= 1;
        if is_first && (budget.is_none() || self.used.cost_usd.is_none()) {
            return;
        }
        let duration = units::duration(units::since(self.run_started, at));
        let total = figures(&format!("so far: {duration}"), &self.used, budget);
        self.page.text(Tone::Faint, &total);
    }
}

/// `4m05s · 45.2k tokens (38.0k cached) · $0.12 (reported)`; leaves out unknown figures.
fn figures(duration: &str, usage: &Usage, budget: Option<f64>) -> String {
    let mut text = duration.to_owned();
    if let Some(tokens) = usage.tokens() {
        text += &format!(" · {} tokens", units::tokens(tokens));
        if let Some(cached) = usage.cached_tokens.filter(|cached| *cached > 0) {
            text += &format!(" ({} cached)", units::tokens(cached));
        }
    }
    if let Some(cost) = format_cost(usage, budget) {
        text += &format!(" · {cost}");
    }
    text
}

/// `$0.12 (reported)` or `$0.25 of $20.00`; `None` if the cost is unknown.
fn format_cost(usage: &Usage, budget: Option<f64>) -> Option<String> {
    let cost = units::dollars(usage.cost_usd?);
    Some(match budget {
        Some(budget) => format!("{cost} of {}", units::dollars(budget)),
        None => match cost_source_label(usage) {
            Some(source) => format!("{cost} ({source})"),
            None => cost,
        },
    })
}

/// Whether the agent reported the cost or ralph calculated it from prices.
pub(super) fn cost_source_label(usage: &Usage) -> Option<&'static str> {
    usage.cost_source.map(|source| match source {
        CostSource::Reported => "reported",
        CostSource::Priced => "priced",
    })
}
