//! A run written down to be passed on: a Markdown text, or one HTML page. Both tell the same story; neither trusts a
//! word of what the agent said.

mod html;
mod markdown;
mod sections;

pub use html::Html;
pub use markdown::Markdown;

use super::{AttemptSummary, Verdict, units};
use std::time::Duration;

/// What stands before the story.
#[derive(Debug)]
pub struct Cover<'a> {
    pub id: &'a str,
    pub verdict: Verdict,
    /// Names and values.
    pub facts: Vec<(&'static str, String)>,
    pub prompt: Option<&'a str>,
    pub turns: &'a [AttemptSummary],
    pub final_message: &'a str,
}

/// `12.3s · 5 tools · 12.3k tokens · $0.02`, as far as known.
fn figures(turn: &AttemptSummary) -> String {
    let tools = (turn.tools > 0).then(|| units::count(turn.tools, "tool call"));
    let files = (!turn.files.is_empty()).then(|| units::count(turn.files.len() as u64, "file"));
    let tokens = turn
        .usage
        .tokens()
        .map(|tokens| format!("{} tokens", units::tokens(tokens)));
    let cost = turn.usage.cost_usd.map(units::dollars);
    let took = Some(units::duration(Duration::from_millis(turn.duration_ms)));
    let known = [took, tools, files, tokens, cost];
    known.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
