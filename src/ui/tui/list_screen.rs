//! A full-screen list from which the user chooses a row, such as the runs of `ralph top`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::draw::both_ends;
use super::input_thread::InputThread;
use super::render_loop::RenderMsg;
use super::text::clip;
use super::theme::{Background, ColorMode, Theme, ThemeChoice};
use super::tty::{TerminalGuard, Tty};
use crate::ui::{Tone, UiHost};

/// Spaces between two columns.
const GAP: usize = 2;

/// What the list shows.
#[derive(Debug, Clone, Default)]
pub struct ListPage {
    /// The left and the right part of the first line.
    pub title: [String; 2],
    pub header: Vec<&'static str>,
    pub rows: Vec<Vec<(String, Tone)>>,
    /// Shown if there are no rows.
    pub empty: String,
}

/// What the user did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum ListEvent {
    /// Chose the row with this index.
    Chosen(usize),
    Closed,
    /// Nothing; the page should be refreshed.
    Refresh,
}

pub struct ListScreen {
    tty: Tty,
    messages: Receiver<RenderMsg>,
    _input: InputThread,
    state: ListState,
}

/// The position of the user in the list.
struct ListState {
    theme: Theme,
    choice: ThemeChoice,
    selected: usize,
}

impl ListScreen {
    pub fn open(
        color: bool,
        choice: ThemeChoice,
        guard: Option<TerminalGuard>,
        host: &UiHost,
    ) -> io::Result<Self> {
        let mut tty = Tty::take_over(guard, &host.panics, |_| {})?;
        let (sender, messages) = mpsc::channel();
        let input = InputThread::start(sender, &Arc::new(AtomicBool::new(false)), host)?;
        if color && choice == ThemeChoice::Auto {
            tty.ask_for_background()?;
        }
        Ok(Self {
            tty,
            messages,
            _input: input,
            state: ListState {
                theme: Theme::new(ColorMode::of(color)).on(choice.background()),
                choice,
                selected: 0,
            },
        })
    }

    /// Shows a page until the user chooses a row or closes the list, at most for `refresh_after`.
    pub fn show(&mut self, page: &ListPage, refresh_after: Duration) -> io::Result<ListEvent> {
        let until = Instant::now() + refresh_after;
        loop {
            self.state.selected = self.state.selected.min(page.rows.len().saturating_sub(1));
            let state = &self.state;
            self.tty.terminal.draw(|frame| state.draw(frame, page))?;
            let left = until.saturating_duration_since(Instant::now());
            let message = match self.messages.recv_timeout(left) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => return Ok(ListEvent::Refresh),
                Err(RecvTimeoutError::Disconnected) => return Ok(ListEvent::Closed),
            };
            match message {
                RenderMsg::Key(Event::Resize(..)) => self.tty.resize()?,
                RenderMsg::Key(event) => match self.state.on_event(&event, page) {
                    Some(KeyEffect::Event(event)) => return Ok(event),
                    Some(KeyEffect::Suspend) => self.tty.suspend()?,
                    None => {}
                },
                RenderMsg::Background(background) => self.state.set_background(background),
                RenderMsg::ShutdownRequested | RenderMsg::Shutdown => return Ok(ListEvent::Closed),
                RenderMsg::TerminalClosed => return Err(io::ErrorKind::BrokenPipe.into()),
                RenderMsg::Changed
                | RenderMsg::SetCommands(_)
                | RenderMsg::SetOnClose(_)
                | RenderMsg::RecordsEnded => {}
            }
        }
    }
}

enum KeyEffect {
    Event(ListEvent),
    Suspend,
}

impl ListState {
    fn set_background(&mut self, background: Background) {
        if self.choice == ThemeChoice::Auto {
            self.theme = self.theme.on(background);
        }
    }

    fn on_event(&mut self, event: &Event, page: &ListPage) -> Option<KeyEffect> {
        let Event::Key(key) = event else { return None };
        if key.kind == KeyEventKind::Release {
            return None;
        }
        let last = page.rows.len().saturating_sub(1);
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Some(KeyEffect::Event(ListEvent::Closed));
            }
            KeyCode::Char('z') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Some(KeyEffect::Suspend);
            }
            KeyCode::Char('q') | KeyCode::Esc => return Some(KeyEffect::Event(ListEvent::Closed)),
            KeyCode::Enter if !page.rows.is_empty() => {
                return Some(KeyEffect::Event(ListEvent::Chosen(self.selected)));
            }
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.selected = (self.selected + 1).min(last),
            KeyCode::Home | KeyCode::Char('g') => self.selected = 0,
            KeyCode::End | KeyCode::Char('G') => self.selected = last,
            _ => {}
        }
        None
    }

    fn draw(&self, frame: &mut Frame<'_>, page: &ListPage) {
        let area = frame.area();
        if area.height < 5 || area.width < 20 {
            return;
        }
        let faint = self.theme.tone(Tone::Faint);
        let line = |y: u16| Rect {
            y: area.y + y,
            height: 1,
            ..area
        };
        let [left, right] = &page.title;
        let left = [
            Span::styled(" ralph ", self.theme.highlighted()),
            Span::styled(format!("  {left}"), self.theme.tone(Tone::Strong)),
        ];
        let title = both_ends(&left, vec![Span::styled(format!("{right} "), faint)], area.width);
        frame.render_widget(title, line(0));
        frame.render_widget(Span::styled("─".repeat(usize::from(area.width)), faint), line(1));
        let keys = [("↑↓", "select"), ("Enter", "attach"), ("q", "quit")];
        let keys: Vec<Span<'_>> = keys
            .into_iter()
            .flat_map(|(key, word)| {
                [
                    Span::styled(format!(" {key}"), self.theme.tone(Tone::Strong)),
                    Span::styled(format!(" {word} "), faint),
                ]
            })
            .collect();
        frame.render_widget(Line::from(keys), line(area.height - 1));
        if page.rows.is_empty() {
            frame.render_widget(Span::styled(format!(" {}", page.empty), faint), line(3));
            return;
        }
        let widths = column_widths(page);
        let header = page.header.iter().map(|name| ((*name).to_owned(), Tone::Faint));
        frame.render_widget(self.row(header.collect(), &widths, area.width), line(2));
        let height = usize::from(area.height) - 4;
        let first = (self.selected + 1).saturating_sub(height);
        for (index, y) in (first..page.rows.len()).zip(3..area.height - 1) {
            let row = self.row(page.rows[index].clone(), &widths, area.width);
            frame.render_widget(row, line(y));
            if index == self.selected {
                frame
                    .buffer_mut()
                    .set_string(area.x, area.y + y, "▌", self.theme.tone(Tone::Accent));
                frame
                    .buffer_mut()
                    .set_style(line(y), self.theme.tone(Tone::Strong));
            }
        }
    }

    fn row(&self, cells: Vec<(String, Tone)>, widths: &[usize], width: u16) -> Line<'static> {
        let mut spans = vec![Span::raw(" ")];
        for ((text, tone), width) in cells.into_iter().zip(widths) {
            let span = Span::styled(text, self.theme.tone(tone));
            let gap = (width + GAP).saturating_sub(span.width());
            spans.extend([span, Span::raw(" ".repeat(gap))]);
        }
        Line::from(clip(&spans, usize::from(width)))
    }
}

fn column_widths(page: &ListPage) -> Vec<usize> {
    let width = |text: &str| Span::raw(text.to_owned()).width();
    let of_column = |(index, name): (usize, &&str)| {
        let cells = page.rows.iter().filter_map(|row| row.get(index));
        cells
            .map(|(text, _)| width(text))
            .max()
            .unwrap_or(0)
            .max(width(name))
    };
    page.header.iter().enumerate().map(of_column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn page() -> ListPage {
        let cell = |text: &str| (text.to_owned(), Tone::Plain);
        ListPage {
            title: ["2 runs".into(), "10:00:00".into()],
            header: vec!["PROJECT", "STATE"],
            rows: vec![
                vec![cell("web"), cell("working · Bash")],
                vec![cell("日本語 api"), cell("waiting for the usage limit")],
            ],
            empty: "No run is active.".into(),
        }
    }

    fn state() -> ListState {
        ListState {
            theme: Theme::new(ColorMode::On),
            choice: ThemeChoice::Auto,
            selected: 0,
        }
    }

    fn screen(state: &ListState, page: &ListPage) -> String {
        let mut terminal = Terminal::new(TestBackend::new(50, 8)).unwrap();
        terminal.draw(|frame| state.draw(frame, page)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let rows = buffer.content().chunks(50);
        let text = |row: &[ratatui::buffer::Cell]| row.iter().map(|cell| cell.symbol()).collect::<String>();
        rows.map(|row| text(row).trim_end().to_owned())
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn rows_are_aligned_and_the_selected_one_is_marked() {
        insta::assert_snapshot!(screen(&state(), &page()));
        let empty = ListPage {
            rows: Vec::new(),
            ..page()
        };
        assert!(screen(&state(), &empty).contains("No run is active."));
    }

    #[test]
    fn keys_select_and_choose() {
        let mut state = state();
        let mut press = |code: KeyCode| match state.on_event(&Event::Key(code.into()), &page()) {
            Some(KeyEffect::Event(event)) => Some(event),
            _ => None,
        };
        assert_eq!(press(KeyCode::Down), None);
        assert_eq!(press(KeyCode::Down), None);
        assert_eq!(press(KeyCode::Enter), Some(ListEvent::Chosen(1)));
        assert_eq!(press(KeyCode::Char('k')), None);
        assert_eq!(press(KeyCode::Enter), Some(ListEvent::Chosen(0)));
        assert_eq!(press(KeyCode::Char('q')), Some(ListEvent::Closed));
    }
}
