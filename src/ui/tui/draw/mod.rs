//! The screen, drawn from what is known and where the watcher is. Pure: time and files come as arguments.

mod body;
mod footer;
mod header;
mod help;
mod pages;
mod side;

pub(super) use pages::left_out;

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::files::Files;
use super::model::{Entry, State, Transcript};
use super::view::{Overlay, Tab, View};
use crate::ui::Tone;

/// Less than this is too little to be of use.
const SMALLEST: (u16, u16) = (40, 10);
/// From here on there is room for the list of iterations.
const WIDE: u16 = 100;

/// All that is shown.
pub(super) struct Scene<'a> {
    pub(super) state: &'a State,
    pub(super) files: &'a Files,
    pub(super) now: Timestamp,
}

impl Scene<'_> {
    /// The entry that is looked at.
    fn entry(&self, view: &View) -> Option<&Entry> {
        self.state.entries.get(view.entry_index(self.state)?)
    }

    fn transcript(&self, view: &View) -> &Transcript {
        self.files.transcript(view, self.state)
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, scene: &Scene<'_>, view: &mut View) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        return too_small(frame, area);
    }
    // By hand: solving for it would take a third of the time of a frame.
    let band = |below: u16, height: u16| Rect {
        y: area.y + below,
        height,
        ..area
    };
    let (head, tabs, rule) = (band(0, 2), band(2, 1), band(3, 1));
    let (middle, foot) = (band(4, area.height - 5), band(area.height - 1, 1));
    let side_width = side_width(area.width);
    let width = middle.width - side_width;
    let main = Rect { width, ..middle };
    let side = Rect {
        x: middle.x + width,
        width: side_width,
        ..middle
    };
    header::draw(frame, head, scene, view);
    body::draw(frame, main, scene, view);
    header::tabs(frame, tabs, scene, view);
    divide(frame, rule, side_width, view);
    if side_width > 0 {
        side::draw(frame, side, scene, view);
    }
    footer::draw(frame, foot, scene, view);
    if let Overlay::Help(first) = view.overlay {
        help::draw(frame, middle, first, view);
    }
}

fn side_width(width: u16) -> u16 {
    match width {
        0..WIDE => 0,
        WIDE..160 => 32,
        _ => 40,
    }
}

fn divide(frame: &mut Frame<'_>, area: Rect, side: u16, view: &View) {
    let mut rule = "─".repeat(usize::from(area.width));
    if side > 0 {
        let left = usize::from(area.width - side);
        rule = format!("{}┬{}", "─".repeat(left), "─".repeat(usize::from(side) - 1));
    }
    frame.render_widget(Span::styled(rule, view.theme.tone(Tone::Faint)), area);
}

fn too_small(frame: &mut Frame<'_>, area: Rect) {
    let (width, height) = SMALLEST;
    let text = vec![
        Line::from(if area.width > 20 {
            "ralph needs more room"
        } else {
            "needs more room"
        }),
        Line::from(format!("{width}×{height}, not {}×{}", area.width, area.height)),
        Line::from("the run goes on"),
    ];
    let top = area.height.saturating_sub(3) / 2;
    let middle = Rect {
        y: area.y + top,
        height: area.height - top,
        ..area
    };
    frame.render_widget(Paragraph::new(text).alignment(Alignment::Center), middle);
}

/// A line with something on the left and something on the right, which is the last to give way.
fn both_ends(left: &[Span<'static>], right: Vec<Span<'static>>, width: u16) -> Line<'static> {
    let width = usize::from(width);
    let right = super::text::clip(&right, width);
    let taken: usize = right.iter().map(Span::width).sum();
    let mut spans = super::text::clip(left, width.saturating_sub(taken + 2));
    let used: usize = spans.iter().map(Span::width).sum();
    spans.push(Span::raw(" ".repeat(width.saturating_sub(used + taken))));
    spans.extend(right);
    Line::from(spans)
}

/// What turns while something is going on; one step a second.
fn spinner(now: Timestamp) -> &'static str {
    const STEPS: [&str; 4] = ["◐", "◓", "◑", "◒"];
    let half_seconds = now.as_millisecond() / 500;
    STEPS[usize::try_from(half_seconds.rem_euclid(4)).unwrap_or(0)]
}

/// Whether this view is about one iteration.
fn is_about_one(tab: Tab) -> bool {
    match tab {
        Tab::Transcript | Tab::Tools | Tab::Prompt | Tab::Terminal => true,
        Tab::Events | Tab::Usage => false,
    }
}
