//! Draws the main area: the document of the open tab, or the agent's screen.

use std::borrow::Cow;
use std::rc::Rc;

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use unicode_width::UnicodeWidthStr;

use super::{DrawContext, changes, pages, spinner};
use crate::ui::tui::document::{Document, matches};
use crate::ui::tui::layout::LayoutSource;
use crate::ui::tui::tab::Tab;
use crate::ui::tui::text::Row;
use crate::ui::tui::view::View;
use crate::ui::{Tone, units};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, context: &DrawContext<'_>, view: &mut View) {
    // Leave one column free before the side list.
    let width = usize::from(area.width).saturating_sub(1);
    let area = match view.tab {
        Tab::Tools => heading(frame, area, pages::tools_heading(), view),
        Tab::Usage => heading(frame, area, pages::usage_heading(width), view),
        _ => area,
    };
    view.height = usize::from(area.height);
    let document = match view.tab {
        Tab::Transcript => {
            let (state, files) = (context.state, context.files);
            view.lay_out(LayoutSource { state, files }, width)
        }
        tab => page(tab, context, view, width),
    };
    view.document = Rc::new(document);
    match context.files.screen().filter(|_| view.tab == Tab::Terminal) {
        Some(screen) => screen.draw(frame, area, view.pan, view.theme),
        None if view.document.total() == 0 => placeholder(frame, area, context, view),
        None => rows(frame.buffer_mut(), area, context.now, view),
    }
}

/// The document of every tab but the transcript and the terminal. The right pane shows some of them too.
pub(super) fn page(tab: Tab, context: &DrawContext<'_>, view: &View, width: usize) -> Document {
    match tab {
        Tab::Changes => changes::changes(context, view, width),
        Tab::Plan => pages::plan(context.transcript(view), view, width),
        Tab::Tools => pages::tools(context, view, width),
        Tab::Gates => pages::gates(context.transcript(view), view, width),
        Tab::Events => pages::events(context.state, view, width),
        Tab::Prompt => pages::prompt(context.files.prompt(), view, width),
        Tab::Usage => pages::usage(context.state, view, width),
        Tab::Transcript | Tab::Terminal => Document::default(),
    }
}

fn heading(frame: &mut Frame<'_>, area: Rect, text: String, view: &View) -> Rect {
    let line = Rect { height: 1, ..area };
    frame.render_widget(Span::styled(text, view.theme.tone(Tone::Faint)), line);
    Rect {
        y: area.y + 1,
        height: area.height - 1,
        ..area
    }
}

fn placeholder(frame: &mut Frame<'_>, area: Rect, context: &DrawContext<'_>, view: &View) {
    let text = match view.tab {
        Tab::Transcript => "No output yet.",
        Tab::Tools => "No tool calls in this iteration.",
        Tab::Changes => "No files have changed in this iteration.",
        Tab::Plan => "The agent has reported no plan in this iteration.",
        Tab::Gates => "No gates have run in this iteration.",
        Tab::Events => "No events yet.",
        Tab::Prompt => context.files.error().unwrap_or("No prompt sent yet."),
        Tab::Terminal => context
            .files
            .error()
            .unwrap_or("This agent has no screen of its own. Its output is in the transcript."),
        Tab::Usage => "No iterations yet.",
    };
    let area = Rect {
        x: area.x + 1,
        y: area.y + 1,
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(1),
    };
    let text = Paragraph::new(text.to_owned()).style(view.theme.tone(Tone::Faint));
    frame.render_widget(text.wrap(ratatui::widgets::Wrap { trim: true }), area);
}

fn rows(buffer: &mut Buffer, area: Rect, now: Timestamp, view: &View) {
    let top = view.document.top(view.scroll(), view.height);
    let selected = view.selected();
    for (index, (id, row)) in view.document.rows(top, view.height).enumerate() {
        let y = area.y + u16::try_from(index).unwrap_or(u16::MAX);
        let line = Rect { y, height: 1, ..area };
        let shown = live(row, now, line.width, view);
        buffer.set_line(line.x, y, &shown, line.width);
        if selected == Some(id) && row.line.width() > 0 {
            buffer.set_string(line.x, y, "▌", view.theme.tone(Tone::Accent));
        }
        highlight(buffer, line, &shown, view);
    }
}

/// Adds the spinner and the elapsed time to the row of a running tool or gate.
pub(super) fn live<'a>(row: &'a Row, now: Timestamp, width: u16, view: &View) -> Cow<'a, Line<'static>> {
    let Some(since) = row.live else {
        return Cow::Borrowed(&row.line);
    };
    let mut line = row.line.clone();
    if let Some(mark) = line.spans.get_mut(1) {
        mark.content = spinner(now).into();
    }
    let time = units::countdown(units::since(since, now));
    let gap = usize::from(width).saturating_sub(line.width() + time.len() + 1);
    line.spans.push(Span::raw(" ".repeat(gap)));
    line.spans.push(Span::styled(time, view.theme.tone(Tone::Faint)));
    Cow::Owned(line)
}

fn highlight(buffer: &mut Buffer, area: Rect, line: &Line<'_>, view: &View) {
    if view.query.is_empty() {
        return;
    }
    let text = line.to_string();
    for found in matches(&text, &view.query) {
        let column = u16::try_from(text[..found.start].width()).unwrap_or(u16::MAX);
        let columns = u16::try_from(text[found].width()).unwrap_or(0);
        if column < area.width {
            let width = columns.min(area.width - column);
            let style: Style = view.theme.search_match();
            buffer.set_style(
                Rect {
                    x: area.x + column,
                    width,
                    ..area
                },
                style,
            );
        }
    }
}
