//! Data that is read from the run's files: earlier transcripts, and the prompt, the changes and the screen of the displayed
//! iteration.

use std::collections::HashMap;
use std::io;

use super::agent_screen::AgentScreen;
use super::model::{AttemptEntry, Transcript, TuiState};
use super::patch::Patch;
use super::run_files::{AttemptId, RunFiles};
use super::tab::Tab;
use super::text::Fold;
use super::view::View;

/// Bytes of an agent's output that are read at once.
const CHUNK: usize = 1 << 20;
/// Only the last chunk of a longer output is read.
const MAX_OUTPUT: u64 = 4 << 20;

/// Transcripts of earlier iterations that are held in memory.
const MAX_TRANSCRIPTS: usize = 12;

#[derive(Default)]
pub(super) struct LoadedFiles {
    /// Transcripts of earlier iterations, by index.
    earlier: HashMap<usize, Transcript>,
    empty: Transcript,
    /// The task, once the run is over.
    task: Option<String>,
    /// The displayed iteration, to which the other fields belong.
    id: Option<AttemptId>,
    prompt: Option<String>,
    patch: Option<Patch>,
    screen: Option<AgentScreen>,
    bytes_read: u64,
    error: Option<String>,
}

impl LoadedFiles {
    /// Reads the data that the view needs and that is not loaded yet.
    pub(super) fn load(&mut self, view: &mut View, state: &TuiState, run_files: &dyn RunFiles) {
        let Some(index) = view.entry_index(state) else {
            return;
        };
        let entry = &state.entries[index];
        if self.id != Some(entry.id) {
            let (earlier, task) = (std::mem::take(&mut self.earlier), self.task.take());
            *self = Self {
                earlier,
                task,
                id: Some(entry.id),
                ..Self::default()
            };
        }
        self.error = None;
        if self.task.is_none() && state.is_over() {
            // A run without a readable prompt has no task to show.
            let prompt = run_files.prompt(state.entries[0].id).unwrap_or_default();
            self.task = Some(first_line(&prompt));
        }
        let loaded = self
            .load_transcripts(index, view, state, run_files)
            .and_then(|()| match view.tab {
                Tab::Prompt if self.prompt.is_none() => run_files
                    .prompt(entry.id)
                    .map(|prompt| self.prompt = Some(prompt)),
                Tab::Terminal => self.read_screen(entry.id, run_files),
                _ => Ok(()),
            })
            .and_then(|()| self.load_patch(entry, view, run_files));
        if let Err(error) = loaded {
            self.error = Some(format!("Cannot read the file: {error}."));
        }
    }

    /// Reads the transcripts of the displayed iteration and of the unfolded ones, unless they are in memory.
    fn load_transcripts(
        &mut self,
        displayed: usize,
        view: &mut View,
        state: &TuiState,
        run_files: &dyn RunFiles,
    ) -> io::Result<()> {
        let last = state.entries.len() - 1;
        let wanted: Vec<usize> = view
            .unfolded_sections()
            .chain([displayed, last.saturating_sub(1)])
            .filter(|index| *index <= last && self.transcript_of(*index, state).is_none())
            .collect();
        for index in wanted {
            if self.earlier.len() >= MAX_TRANSCRIPTS
                && let Some(farthest) = self
                    .earlier
                    .keys()
                    .copied()
                    .max_by_key(|other| other.abs_diff(displayed))
            {
                self.earlier.remove(&farthest);
                view.set_section_fold(farthest, Fold::Closed);
            }
            let entry = &state.entries[index];
            let mut transcript = Transcript::default();
            let read = run_files.replay(entry.first_seq..=entry.last_seq, &mut |record| {
                transcript.apply(record, &state.context);
            });
            self.earlier.insert(index, transcript);
            read?;
        }
        Ok(())
    }

    /// Reads the changes of the displayed iteration once a page shows them.
    fn load_patch(&mut self, entry: &AttemptEntry, view: &View, run_files: &dyn RunFiles) -> io::Result<()> {
        let Some(changes) = entry.changes.as_ref().filter(|changes| changes.count > 0) else {
            return Ok(());
        };
        let shown = view.tab == Tab::Changes || view.pane_shows_changes();
        let known = self.patch.as_ref().is_some_and(|patch| patch.is_of(&changes.to));
        if known || !shown {
            return Ok(());
        }
        // Remembered even if it fails, so that it is not read again for every frame.
        let text = run_files.patch(&changes.from, &changes.to);
        self.patch = Some(Patch::parse(&changes.to, text.as_deref().unwrap_or_default()));
        text.map(drop)
    }

    fn read_screen(&mut self, id: AttemptId, run_files: &dyn RunFiles) -> io::Result<()> {
        let screen = self.screen.get_or_insert_with(AgentScreen::new);
        let (bytes, length) = run_files.output(id, self.bytes_read, CHUNK)?;
        // Only the end of a long output can still be on the screen. The first bytes determine its kind.
        if self.bytes_read == 0 && length > MAX_OUTPUT {
            screen.feed(&bytes[..bytes.len().min(16)]);
            self.bytes_read = length - CHUNK as u64;
            return self.read_screen(id, run_files);
        }
        screen.feed(&bytes);
        self.bytes_read += bytes.len() as u64;
        Ok(())
    }

    /// The transcript of the displayed iteration.
    pub(super) fn transcript<'a>(&'a self, view: &View, state: &'a TuiState) -> &'a Transcript {
        match view.entry {
            None => &state.transcript,
            Some(entry) => self.transcript_of(entry, state).unwrap_or(&self.empty),
        }
    }

    /// The transcript of an iteration, if it is in memory.
    pub(super) fn transcript_of<'a>(&'a self, index: usize, state: &'a TuiState) -> Option<&'a Transcript> {
        state.transcript_of(index).or_else(|| self.earlier.get(&index))
    }

    /// The first line of the first prompt.
    pub(super) fn task(&self) -> Option<&str> {
        self.task.as_deref().filter(|task| !task.is_empty())
    }

    pub(super) fn prompt(&self) -> Option<&str> {
        self.prompt.as_deref()
    }

    pub(super) fn patch(&self) -> Option<&Patch> {
        self.patch.as_ref()
    }

    pub(super) fn screen(&self) -> Option<&AgentScreen> {
        self.screen.as_ref().filter(|screen| screen.is_screen())
    }

    /// Whether the agent may draw a screen of its own: its output is not parsed into events.
    pub(super) fn has_screen(&self, view: &View, state: &TuiState) -> bool {
        let parsed = !matches!(
            state.header.as_ref().map(|header| header.transcript.as_str()),
            Some("plain") | None
        );
        self.screen().is_some() || (!parsed && view.entry_index(state).is_some())
    }

    pub(super) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }
}

fn first_line(prompt: &str) -> String {
    let mut lines = prompt
        .lines()
        .map(|line| line.trim().trim_start_matches('#').trim());
    let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    crate::ui::plain::one_line(line, 200).0
}
