//! The end of a run in the transcript: the verdict, what changed, what was verified, what it cost, and what to do next.

use std::rc::Rc;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::event::RunOutcome;
use crate::ui::clean::clean;
use crate::ui::tui::document::DocumentItem;
use crate::ui::tui::layout::LayoutSource;
use crate::ui::tui::model::{AttemptEntry, GateBlock, RunActivity, TuiState};
use crate::ui::tui::text::{LineBreak, Margin, Row, wrap};
use crate::ui::tui::view::{BlockId, View};
use crate::ui::{Tone, gate_failure, next_step, run_verdict, units};

const LABEL_COLUMNS: usize = 12;
/// Files that are listed.
const MAX_FILES: usize = 8;

/// The end of a run that is over; otherwise nothing.
pub(in crate::ui::tui) fn end_items(source: LayoutSource<'_>, view: &View) -> Vec<Rc<DocumentItem>> {
    let LayoutSource { state, files } = source;
    let RunActivity::Ended { outcome, took } = &state.activity else {
        return Vec::new();
    };
    let width = view.cache.width().min(100);
    let rows = EndRows {
        state,
        task: files.task(),
        view,
        width,
        rows: Vec::new(),
    };
    let rows = rows.of(outcome, *took);
    let id = BlockId::in_section(state.entries.len() + 1, 0).item();
    vec![Rc::new(DocumentItem { id, rows })]
}

struct EndRows<'a> {
    state: &'a TuiState,
    task: Option<&'a str>,
    view: &'a View,
    width: usize,
    rows: Vec<Row>,
}

impl EndRows<'_> {
    fn of(mut self, outcome: &RunOutcome, took: std::time::Duration) -> Vec<Row> {
        let (state, theme) = (self.state, self.view.theme);
        let verdict = run_verdict(outcome, &state.transcript.passed_gates);
        self.rule();
        let margin = Margin {
            first: vec![
                Span::raw(" "),
                Span::styled(verdict.mark, theme.tone(verdict.tone)),
                Span::raw(" "),
            ],
            rest: vec![Span::raw("   ")],
        };
        let sentence = clean(&verdict.sentence).replace('\n', " ");
        let lines = wrap(
            &[(sentence, theme.tone(Tone::Strong))],
            &margin,
            self.width,
            LineBreak::Words,
        );
        self.rows.extend(lines.into_iter().map(Row::from));
        self.rows.push(Row::default());
        if let Some(task) = self.task {
            self.line("task", &clean(task).replace('\n', " "), Style::new());
        }
        self.changes();
        self.gates();
        self.figures(took);
        // The files of a run without a directory, or of a demo, do not exist afterwards.
        if let Some(header) = state
            .header
            .as_ref()
            .filter(|header| header.kept_directory().is_some())
        {
            let run = &header.run_id;
            let changed = state.entries.iter().any(|entry| changed_files(entry) > 0);
            let steps = [
                next_step(outcome, run),
                changed.then(|| format!("review: ralph diff {run} · undo: ralph restore {run}@0")),
                Some(format!("share: ralph export {run} -o run.html")),
            ];
            for (index, step) in steps.into_iter().flatten().enumerate() {
                let label = if index == 0 { "next" } else { "" };
                self.line(label, &step, theme.tone(Tone::Accent));
            }
        }
        self.rule();
        self.rows
    }

    fn rule(&mut self) {
        let style = self.view.theme.tone(Tone::Faint);
        let rule = format!(" {}", "─".repeat(self.width.saturating_sub(2)));
        self.rows.push(Row::from(Line::styled(rule, style)));
    }

    /// A label and a text, which may wrap.
    fn line(&mut self, label: &str, text: &str, style: Style) {
        let faint = self.view.theme.tone(Tone::Faint);
        let margin = Margin {
            first: vec![Span::styled(format!("   {label:<LABEL_COLUMNS$}"), faint)],
            rest: vec![Span::raw(" ".repeat(LABEL_COLUMNS + 3))],
        };
        let lines = wrap(&[(text.to_owned(), style)], &margin, self.width, LineBreak::Words);
        self.rows.extend(lines.into_iter().map(Row::from));
    }

    fn changes(&mut self) {
        let entries = &self.state.entries;
        if entries.iter().all(|entry| entry.changes.is_none()) {
            return;
        }
        let mut files: Vec<&str> = Vec::new();
        let (mut added, mut removed) = (0, 0);
        for changes in entries.iter().filter_map(|entry| entry.changes.as_ref()) {
            added += changes.added;
            removed += changes.removed;
            for file in &changes.files {
                if !files.contains(&file.path.as_str()) {
                    files.push(&file.path);
                }
            }
        }
        if files.is_empty() {
            self.line("changed", "nothing", Style::new());
            return;
        }
        let names = clean(&files[..files.len().min(MAX_FILES)].join(", ")).into_owned();
        let more = match files.len().saturating_sub(MAX_FILES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let count = units::count(files.len() as u64, "file");
        let text = format!("{count}, +{added} −{removed}: {names}{more}");
        self.line("changed", &text, Style::new());
    }

    /// The gates of the last iteration.
    fn gates(&mut self) {
        let theme = self.view.theme;
        let gates: Vec<&GateBlock> = self.state.transcript.gates().map(|(_, gate)| gate).collect();
        if gates.is_empty() {
            let text = "no gates ran in the last iteration";
            self.line("verified", text, theme.tone(Tone::Warning));
        }
        for (index, gate) in gates.into_iter().enumerate() {
            let label = if index == 0 { "verified" } else { "" };
            let (mark, tone, text) = match gate.end {
                None => ("?", Tone::Warning, "not ended".to_owned()),
                Some((result, took)) => match gate_failure(result) {
                    None => ("✓", Tone::Good, units::duration(took)),
                    Some(why) => ("✗", Tone::Bad, why),
                },
            };
            let command = match gate.command == gate.name {
                true => String::new(),
                false => format!(" · {}", gate.command),
            };
            let text = format!("{mark} {}{command} · {text}", gate.name);
            self.line(label, &text, theme.tone(tone));
        }
    }

    fn figures(&mut self, took: std::time::Duration) {
        let state = self.state;
        let used = state.used();
        let iterations = state.entries.last().map_or(0, |entry| entry.id.iteration);
        let mut figures = vec![units::count(iterations, "iteration"), units::duration(took)];
        figures.extend(
            used.tokens()
                .map(|tokens| format!("{} tokens", units::tokens(tokens))),
        );
        figures.extend(used.cost_usd.map(units::dollars));
        self.line("cost", &figures.join(" · "), Style::new());
    }
}

fn changed_files(entry: &AttemptEntry) -> u64 {
    entry.changes.as_ref().map_or(0, |changes| changes.count)
}
