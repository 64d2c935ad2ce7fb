//! Draws a frame from the state and the view. Pure: time and files are arguments.

mod body;
mod changes;
mod end;
mod footer;
mod header;
mod help;
mod pages;
mod section;
mod side;

pub(super) use end::end_items;
pub(super) use pages::dropped_blocks_item;
pub(super) use section::section_heading;

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::loaded_files::LoadedFiles;
use super::model::{AttemptEntry, Transcript, TuiState};
use super::view::{Overlay, View};
use crate::ui::Tone;

/// Minimum size in columns and rows.
const MIN_SIZE: (u16, u16) = (40, 10);
/// Minimum width for the right column: the list of iterations and a pane.
const SIDE_MIN_WIDTH: u16 = 100;

/// The data that a frame shows.
pub(super) struct DrawContext<'a> {
    pub(super) state: &'a TuiState,
    pub(super) files: &'a LoadedFiles,
    pub(super) now: Timestamp,
}

impl DrawContext<'_> {
    /// The displayed entry.
    fn entry(&self, view: &View) -> Option<&AttemptEntry> {
        self.state.entries.get(view.entry_index(self.state)?)
    }

    fn transcript(&self, view: &View) -> &Transcript {
        self.files.transcript(view, self.state)
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, context: &DrawContext<'_>, view: &mut View) {
    let area = frame.area();
    if area.width < MIN_SIZE.0 || area.height < MIN_SIZE.1 {
        return too_small(frame, area);
    }
    // Computed by hand: ratatui's layout solver would take a third of the frame time.
    let band = |below: u16, height: u16| Rect {
        y: area.y + below,
        height,
        ..area
    };
    let (head, tabs, rule) = (band(0, 2), band(2, 1), band(3, 1));
    let (middle, foot) = (band(4, area.height - 5), band(area.height - 1, 1));
    let side_width = side_width(area.width);
    view.pane_visible = side_width > 0;
    let width = middle.width - side_width;
    let main = Rect { width, ..middle };
    let side = Rect {
        x: middle.x + width,
        width: side_width,
        ..middle
    };
    header::draw(frame, head, context, view);
    body::draw(frame, main, context, view);
    header::tabs(frame, tabs, context, view);
    divider(frame, rule, side_width, view);
    if side_width > 0 {
        side::draw(frame, side, context, view);
    }
    footer::draw(frame, foot, context, view);
    if let Overlay::Help(first) = view.overlay {
        help::draw(frame, middle, first, view);
    }
}

fn side_width(width: u16) -> u16 {
    match width {
        0..SIDE_MIN_WIDTH => 0,
        SIDE_MIN_WIDTH..120 => 36,
        120..160 => 46,
        _ => width * 2 / 5,
    }
}

fn divider(frame: &mut Frame<'_>, area: Rect, side: u16, view: &View) {
    let mut rule = "─".repeat(usize::from(area.width));
    if side > 0 {
        let left = usize::from(area.width - side);
        rule = format!("{}┬{}", "─".repeat(left), "─".repeat(usize::from(side) - 1));
    }
    frame.render_widget(Span::styled(rule, view.theme.tone(Tone::Faint)), area);
}

fn too_small(frame: &mut Frame<'_>, area: Rect) {
    let (width, height) = MIN_SIZE;
    let text = vec![
        Line::from(if area.width > 20 {
            "terminal too small"
        } else {
            "too small"
        }),
        Line::from(format!("{}×{}, needs {width}×{height}", area.width, area.height)),
        Line::from("the run continues"),
    ];
    let top = area.height.saturating_sub(3) / 2;
    let middle = Rect {
        y: area.y + top,
        height: area.height - top,
        ..area
    };
    frame.render_widget(Paragraph::new(text).alignment(Alignment::Center), middle);
}

/// A line with left- and right-aligned parts. The left part is clipped first.
pub(super) fn both_ends(left: &[Span<'static>], right: Vec<Span<'static>>, width: u16) -> Line<'static> {
    let width = usize::from(width);
    let right = super::text::clip(&right, width);
    let right_width: usize = right.iter().map(Span::width).sum();
    let mut spans = super::text::clip(left, width.saturating_sub(right_width + 2));
    let used: usize = spans.iter().map(Span::width).sum();
    spans.push(Span::raw(" ".repeat(width.saturating_sub(used + right_width))));
    spans.extend(right);
    Line::from(spans)
}

/// The spinner of a running activity, two steps per second.
fn spinner(now: Timestamp) -> &'static str {
    const STEPS: [&str; 4] = ["◐", "◓", "◑", "◒"];
    let half_seconds = now.as_millisecond() / 500;
    STEPS[usize::try_from(half_seconds.rem_euclid(4)).unwrap_or(0)]
}
