//! Exports a run as Markdown or as a single HTML page. Both treat all text of the agent as untrusted.

mod blocks;
mod html;
mod live;
mod markdown;
mod markdown_html;
mod otlp;
mod sections;

pub use html::Html;
pub use live::{LiveBlocks, PageBlock};
pub use markdown::Markdown;
pub use otlp::{Otlp, Spans};

use super::{AttemptSummary, Verdict, units};
use std::time::Duration;

/// The facts at the top of an export.
#[derive(Debug)]
pub struct ExportHeader<'a> {
    pub id: &'a str,
    pub verdict: Verdict,
    /// Name and value pairs.
    pub facts: Vec<(&'static str, String)>,
    pub prompt: Option<&'a str>,
    pub attempts: &'a [AttemptSummary],
    pub final_message: &'a str,
    /// The changes of the attempts as patches, by iteration and attempt.
    pub patches: Vec<((u64, u64), String)>,
}

/// `12.3s · 5 tool calls · 2 files · 12.3k tokens · $0.02`; leaves out unknown figures.
fn figures(attempt: &AttemptSummary) -> String {
    let tools = (attempt.tools > 0).then(|| units::count(attempt.tools, "tool call"));
    let files = (!attempt.files.is_empty()).then(|| match &attempt.changes {
        Some(changes) => {
            let files = units::count(changes.files, "file");
            format!("{files} +{} −{}", changes.added, changes.removed)
        }
        None => units::count(attempt.files.len() as u64, "file"),
    });
    let tokens = attempt
        .usage
        .tokens()
        .map(|tokens| format!("{} tokens", units::tokens(tokens)));
    let cost = attempt.usage.cost_usd.map(units::dollars);
    let duration = Some(units::duration(Duration::from_millis(attempt.duration_ms)));
    let known = [duration, tools, files, tokens, cost];
    known.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
