//! Data of the displayed iteration that is read from the run's files: an earlier transcript, a prompt, a screen.
//!
//! Only one iteration is held in memory; moving to another one drops it.

use std::io;

use super::agent_screen::AgentScreen;
use super::model::{Transcript, TuiState};
use super::run_files::{AttemptId, RunFiles};
use super::view::{Tab, View};

/// Bytes of an agent's output that are read at once.
const CHUNK: usize = 1 << 20;
/// Only the last chunk of a longer output is read.
const MAX_OUTPUT: u64 = 4 << 20;

#[derive(Default)]
pub(super) struct LoadedFiles {
    id: Option<AttemptId>,
    /// Transcript of an iteration that is not the newest.
    earlier: Option<Transcript>,
    empty: Transcript,
    prompt: Option<String>,
    screen: Option<AgentScreen>,
    bytes_read: u64,
    error: Option<String>,
}

impl LoadedFiles {
    /// Reads the data that the open tab needs and that is not loaded yet.
    pub(super) fn load(&mut self, view: &View, state: &TuiState, run_files: &dyn RunFiles) {
        let Some(index) = view.entry_index(state) else {
            return;
        };
        let id = state.entries[index].id;
        if self.id != Some(id) {
            *self = Self {
                id: Some(id),
                ..Self::default()
            };
        }
        self.error = None;
        let is_newest = index + 1 == state.entries.len();
        if is_newest {
            self.earlier = None;
        }
        let loaded = match view.tab {
            _ if !is_newest && self.earlier.is_none() => self.read_transcript(index, state, run_files),
            Tab::Prompt if self.prompt.is_none() => {
                run_files.prompt(id).map(|prompt| self.prompt = Some(prompt))
            }
            Tab::Terminal => self.read_screen(id, run_files),
            Tab::Transcript | Tab::Tools | Tab::Events | Tab::Prompt | Tab::Usage => Ok(()),
        };
        if let Err(error) = loaded {
            self.error = Some(format!("Cannot read the file: {error}."));
        }
    }

    fn read_transcript(
        &mut self,
        index: usize,
        state: &TuiState,
        run_files: &dyn RunFiles,
    ) -> io::Result<()> {
        let entry = &state.entries[index];
        let mut transcript = Transcript::default();
        let read = run_files.replay(entry.first_seq..=entry.last_seq, &mut |record| {
            transcript.apply(record, &state.context);
        });
        self.earlier = Some(transcript);
        read
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

    /// The displayed transcript.
    pub(super) fn transcript<'a>(&'a self, view: &View, state: &'a TuiState) -> &'a Transcript {
        match view.entry {
            None => &state.transcript,
            Some(_) => self.earlier.as_ref().unwrap_or(&self.empty),
        }
    }

    pub(super) fn prompt(&self) -> Option<&str> {
        self.prompt.as_deref()
    }

    pub(super) fn screen(&self) -> Option<&AgentScreen> {
        self.screen.as_ref().filter(|screen| screen.is_screen())
    }

    pub(super) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }
}
