//! The callouts at the end of an iteration: PLAN, ACTIONS, REPORT. Each is drawn only from events that came.

use std::time::Duration;

use jiff::Timestamp;

use super::page::Label;
use super::renderer::{PlainRenderer, labels};
use super::status::Activity;
use crate::event::{CostSource, IterationOutcome, PlanStatus, Usage};
use crate::ui::{Tone, describe, units};

/// How many plan items, and rows of thought in place of a plan, are shown.
const PLAN_ITEMS: usize = 10;
const THOUGHT_ROWS: usize = 2;
const THOUGHT_SENTENCES: usize = 2;

impl PlainRenderer {
    pub(super) fn iteration_ended(
        &mut self,
        outcome: &IterationOutcome,
        duration_ms: u64,
        usage: &Usage,
        at: Timestamp,
    ) {
        self.activity = Activity::Nothing;
        self.iteration.tools.end_all();
        self.used.add(usage);
        self.page.close();
        self.page.divide();
        self.plan_callout();
        self.actions_callout();
        let verdict = describe::iteration_verdict(outcome, at, &self.zone);
        self.page.begin(labels::REPORT, None);
        self.page.text(verdict.tone, verdict.mark);
        self.page.text(Tone::Plain, &format!(" {}\n", verdict.sentence));
        let took = units::duration(Duration::from_millis(duration_ms));
        self.page.text(Tone::Plain, &figures(&took, usage, None));
        self.page.text(Tone::Plain, "\n");
        self.running_total(at);
        self.page.close();
    }

    fn plan_callout(&mut self) {
        if !self.iteration.plan.is_empty() {
            return self.plan_items();
        }
        let thought = first_sentences(&self.iteration.thought, THOUGHT_SENTENCES);
        if !thought.is_empty() {
            let thought = thought.to_owned();
            self.page.begin(labels::PLAN, None);
            self.page.shorten(THOUGHT_ROWS);
            self.page.text(Tone::Plain, &thought);
            self.page.close();
        }
    }

    /// The plan as the agent last gave it.
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
        self.and_more(items.len().saturating_sub(PLAN_ITEMS) as u64, "");
        self.iteration.plan = items;
    }

    fn actions_callout(&mut self) {
        let tools = std::mem::take(&mut self.iteration.tools);
        let mut label = labels::ACTIONS;
        if !tools.lists_all() {
            let named: u64 = tools.by_name.iter().map(|(_, count)| count).sum();
            let mut groups: Vec<String> = tools
                .by_name
                .iter()
                .map(|(name, count)| format!("{name} ×{count}"))
                .collect();
            if named < tools.ended {
                groups.push(format!("others ×{}", tools.ended - named));
            }
            let calls = units::count(tools.ended, "call");
            self.page.begin(label, None);
            let text = format!(
                "{calls}, {} failed: {}",
                units::grouped(tools.failed),
                groups.join(" · ")
            );
            self.page.text(Tone::Plain, &text);
            label = Label::SAME;
        }
        let shown = if tools.lists_all() {
            &tools.listed
        } else {
            &tools.failures
        };
        for tool in shown {
            self.page.line(label);
            self.ended_tool(tool, true);
            label = Label::SAME;
        }
        if !tools.lists_all() {
            self.and_more(tools.failed - tools.failures.len() as u64, " failed");
        }
    }

    fn and_more(&mut self, count: u64, what: &str) {
        if count > 0 {
            self.page.line(Label::SAME);
            self.page.put(
                Tone::Faint,
                &format!("… and {} more{what}", units::grouped(count)),
            );
            self.page.end_row();
        }
    }

    /// What the run has used; left out where it would only repeat the first iteration.
    fn running_total(&mut self, at: Timestamp) {
        let budget = self.header.as_ref().and_then(|header| header.max_cost_usd);
        let is_first = self.iteration.number <= 1 && self.iteration.attempt <= 1;
        if is_first && (budget.is_none() || self.used.cost_usd.is_none()) {
            return;
        }
        let took = units::duration(units::since(self.run_started, at));
        let total = figures(&format!("so far: {took}"), &self.used, budget);
        self.page.text(Tone::Faint, &total);
    }
}

/// `4m05s · 45.2k tokens (38.0k cached) · $0.12 reported`, as far as known.
fn figures(took: &str, usage: &Usage, budget: Option<f64>) -> String {
    let mut text = took.to_owned();
    if let Some(tokens) = usage.tokens() {
        text += &format!(" · {} tokens", units::tokens(tokens));
        if let Some(cached) = usage.cached_tokens.filter(|cached| *cached > 0) {
            text += &format!(" ({} cached)", units::tokens(cached));
        }
    }
    if let Some(cost) = cost_words(usage, budget) {
        text += &format!(" · {cost}");
    }
    text
}

/// `$0.12 reported`, `$0.25 of $20.00`; nothing when nobody knows.
fn cost_words(usage: &Usage, budget: Option<f64>) -> Option<String> {
    let cost = units::dollars(usage.cost_usd?);
    Some(match budget {
        Some(budget) => format!("{cost} of {}", units::dollars(budget)),
        None => format!("{cost}{}", source_words(usage)),
    })
}

/// Whose figure the dollars are.
pub(super) fn source_words(usage: &Usage) -> &'static str {
    match usage.cost_source {
        Some(CostSource::Reported) => " reported",
        Some(CostSource::Priced) => " priced",
        None => "",
    }
}

/// The beginning of a text up to the end of its so-manyth sentence.
fn first_sentences(text: &str, sentences: usize) -> &str {
    let text = text.trim();
    let ends = text
        .char_indices()
        .zip(text.chars().skip(1))
        .filter(|((_, c), next)| matches!(c, '.' | '!' | '?') && next.is_whitespace())
        .map(|((at, _), _)| at + 1);
    ends.take(sentences)
        .nth(sentences - 1)
        .map_or(text, |end| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::first_sentences;

    #[test]
    fn sentences_end_at_a_stop_before_white_space() {
        assert_eq!(
            first_sentences("Look at v1.2 first. Then fix! Then rest.", 2),
            "Look at v1.2 first. Then fix!"
        );
        assert_eq!(first_sentences(" no stop at all", 2), "no stop at all");
        assert_eq!(first_sentences("One. 日本", 2), "One. 日本");
        assert_eq!(first_sentences("", 2), "");
    }
}
