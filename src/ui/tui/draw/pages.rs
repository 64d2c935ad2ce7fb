//! The documents of the views other than the transcript.

use std::cmp::Reverse;
use std::rc::Rc;
use std::time::Duration;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::event::ToolStatus;
use crate::ui::clean::clean;
use crate::ui::plain::one_line;
use crate::ui::tui::document::{Document, Piece};
use crate::ui::tui::model::{Block, State, Tool, ToolState, Transcript};
use crate::ui::tui::text::{Margin, Row, clip, markdown, note_rows};
use crate::ui::tui::theme::Theme;
use crate::ui::tui::view::{ToolOrder, View};
use crate::ui::{Tone, units};

fn piece(id: u64, rows: Vec<Row>) -> Rc<Piece> {
    Rc::new(Piece { id, rows })
}

/// What stands at the beginning of a transcript that is too long to be kept whole.
pub(in crate::ui::tui) fn left_out(pieces: u64, theme: Theme) -> Rc<Piece> {
    let pieces = units::count(pieces, "earlier piece");
    let text = format!("   … {pieces} no longer kept here; the journal has all of it");
    piece(0, vec![Row::from(Line::styled(text, theme.tone(Tone::Faint)))])
}

pub(super) fn tools_heading() -> String {
    "   started      took   lines  tool".to_owned()
}

pub(super) fn tools(transcript: &Transcript, view: &View, width: usize) -> Document {
    let first = transcript.tools().next().map(|(_, tool)| tool.started);
    let mut tools: Vec<(&Block, &Tool)> = transcript.tools().collect();
    match view.order {
        ToolOrder::Started => {}
        ToolOrder::Longest => tools.sort_by_key(|(_, tool)| Reverse(took(tool))),
    }
    let row = |(block, tool): (&Block, &Tool)| {
        let (mark, tone) = match tool.state {
            ToolState::Running => ("◌", Tone::Accent),
            ToolState::Lost => ("?", Tone::Warning),
            ToolState::Ended { status, .. } => match status {
                ToolStatus::Ok => ("✓", Tone::Good),
                ToolStatus::Fail => ("✗", Tone::Bad),
                ToolStatus::Unknown => ("?", Tone::Warning),
            },
        };
        let start = first.map(|first| units::countdown(units::since(first, tool.started)));
        let took = took(tool).map(units::duration).unwrap_or_default();
        let lines = match tool.output.lines() {
            0 => String::new(),
            lines => units::grouped(lines),
        };
        let spans = [
            Span::raw(" "),
            Span::styled(mark, view.theme.tone(tone)),
            Span::raw(format!(
                " {:>7}  {took:>8}  {lines:>6}  ",
                start.unwrap_or_default()
            )),
            Span::styled(tool.name.clone(), view.theme.tone(Tone::Accent)),
            Span::raw(format!("  {}", tool.argument)),
        ];
        let mut row = Row::from(Line::from(clip(&spans, width.saturating_sub(8))));
        row.live = (tool.state == ToolState::Running).then_some(tool.started);
        piece(block.id, vec![row])
    };
    Document::new(tools.into_iter().map(row).collect())
}

fn took(tool: &Tool) -> Option<Duration> {
    match tool.state {
        ToolState::Ended { took, .. } => took,
        ToolState::Running | ToolState::Lost => None,
    }
}

pub(super) fn events(state: &State, view: &View, width: usize) -> Document {
    let zone = &state.setting.zone;
    let pieces = state.events.iter().map(|event| {
        let time = event.at.to_zoned(zone.clone()).strftime("%H:%M:%S").to_string();
        let mut rows = note_rows(&event.note, 10, width, view.theme);
        if let Some(first) = rows.first_mut().and_then(|row| row.line.spans.first_mut()) {
            *first = Span::styled(format!(" {time} "), view.theme.tone(Tone::Faint));
        }
        piece(event.id, rows)
    });
    Document::new(pieces.collect())
}

pub(super) fn prompt(text: Option<&str>, view: &View, width: usize) -> Document {
    let Some(text) = text else {
        return Document::default();
    };
    let blank = || vec![Span::raw("  ")];
    let margin = Margin {
        first: blank(),
        rest: blank(),
    };
    let rows = markdown(&clean(text), &margin, width, view.theme);
    Document::new(vec![piece(1, rows.into_iter().map(Row::from).collect())])
}

pub(super) fn usage_heading(width: usize) -> String {
    if width < 76 {
        "   iteration      time   tokens       cost".to_owned()
    } else {
        "   iteration      time   tokens       in   cached      out    think       cost".to_owned()
    }
}

pub(super) fn usage(state: &State, view: &View, width: usize) -> Document {
    let most = state
        .entries
        .iter()
        .filter_map(|entry| entry.usage.tokens())
        .max()
        .unwrap_or(0);
    let figure = |count: Option<u64>| count.map(units::tokens).unwrap_or_else(|| "–".to_owned());
    let mut pieces: Vec<Rc<Piece>> = Vec::new();
    for (index, entry) in state.entries.iter().enumerate() {
        let (mark, tone, took) = match &entry.end {
            Some(end) => (end.mark, end.tone, units::duration(end.took)),
            None => ("▸", Tone::Accent, "…".to_owned()),
        };
        let usage = &entry.usage;
        let again = if entry.which.attempt > 1 {
            format!(".{}", entry.which.attempt)
        } else {
            String::new()
        };
        let name = format!("{}{again}", entry.which.iteration);
        let cost = usage.cost_usd.map_or_else(|| "–".to_owned(), units::dollars);
        let mut text = format!(" {name:>9}  {took:>8} {:>8}", figure(usage.tokens()));
        if width >= 76 {
            let parts = [
                usage.prompt_tokens,
                usage.cached_tokens,
                usage.completion_tokens,
                usage.reasoning_tokens,
            ];
            text += &parts.map(|part| format!(" {:>8}", figure(part))).concat();
        }
        text += &format!(" {cost:>10}  ");
        let room = width.saturating_sub(text.chars().count() + 4).min(40);
        let bar = bar(usage.tokens().unwrap_or(0), most, room);
        let spans = vec![
            Span::raw(" "),
            Span::styled(mark, view.theme.tone(tone)),
            Span::raw(text),
            Span::styled(bar, view.theme.tone(Tone::Accent)),
        ];
        pieces.push(piece(index as u64 + 1, vec![Row::from(Line::from(spans))]));
    }
    pieces.extend(totals(state, view).map(|rows| piece(u64::MAX, rows)));
    Document::new(pieces)
}

fn totals(state: &State, view: &View) -> Option<Vec<Row>> {
    state.entries.first()?;
    let used = state.used();
    let line = |name: &str, value: String| {
        Row::from(Line::from(vec![
            Span::styled(format!("   {name:<10}"), view.theme.tone(Tone::Faint)),
            Span::styled(value, Style::new()),
        ]))
    };
    let mut rows = vec![Row::default()];
    if let Some(tokens) = used.tokens() {
        rows.push(line("tokens", units::grouped(tokens)));
    }
    let budget = state.header.as_ref().and_then(|header| header.max_cost_usd);
    match (used.cost_usd, budget) {
        (Some(cost), Some(budget)) => {
            let share = (cost / budget.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 0 and 1000"
            )]
            let filled = bar((share * 1000.0) as u64, 1000, 30);
            let text = format!("{} of {}  {filled}", units::dollars(cost), units::dollars(budget));
            rows.push(line("cost", text));
        }
        (Some(cost), None) => rows.push(line("cost", format!("{}, no limit set", units::dollars(cost)))),
        (None, _) => rows.push(line("cost", "the agent does not tell it".to_owned())),
    }
    if let Some(model) = &used.model {
        rows.push(line("model", one_line(model, 60).0));
    }
    Some(rows)
}

/// A bar of eighths.
fn bar(part: u64, whole: u64, room: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = part
        .saturating_mul(room as u64 * 8)
        .checked_div(whole)
        .unwrap_or(0);
    let eighths = usize::try_from(eighths).unwrap_or(0).min(room * 8);
    let least = usize::from(part > 0 && eighths == 0);
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[(eighths + least) % 8])
}
