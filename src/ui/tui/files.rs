//! What was read back from the run's files for the view that is open: an earlier transcript, a prompt, a screen.
//! One iteration's at a time; going to another lets it go.

use std::io;

use super::agent_screen::Screen;
use super::model::{State, Transcript};
use super::run_files::{Attempt, RunFiles};
use super::view::{Tab, View};

/// How much of an agent's output is read at once, and how much of a long one is read at all.
const PIECE: usize = 1 << 20;
const LONGEST: u64 = 4 << 20;

#[derive(Default)]
pub(super) struct Files {
    whose: Option<Attempt>,
    /// Of an iteration that is not the newest.
    earlier: Option<Transcript>,
    nothing: Transcript,
    prompt: Option<String>,
    screen: Option<Screen>,
    read: u64,
    trouble: Option<String>,
}

impl Files {
    /// Reads what the view needs and has not got.
    pub(super) fn fetch(&mut self, view: &View, state: &State, shelf: &dyn RunFiles) {
        let Some(index) = view.entry_index(state) else {
            return;
        };
        let which = state.entries[index].which;
        if self.whose != Some(which) {
            *self = Self {
                whose: Some(which),
                ..Self::default()
            };
        }
        self.trouble = None;
        let is_newest = index + 1 == state.entries.len();
        if is_newest {
            self.earlier = None;
        }
        let fetched = match view.tab {
            _ if !is_newest && self.earlier.is_none() => self.read_back(index, state, shelf),
            Tab::Prompt if self.prompt.is_none() => {
                shelf.prompt(which).map(|prompt| self.prompt = Some(prompt))
            }
            Tab::Terminal => self.watch(which, shelf),
            Tab::Transcript | Tab::Tools | Tab::Events | Tab::Prompt | Tab::Usage => Ok(()),
        };
        if let Err(error) = fetched {
            self.trouble = Some(format!("It cannot be read: {error}."));
        }
    }

    fn read_back(&mut self, index: usize, state: &State, shelf: &dyn RunFiles) -> io::Result<()> {
        let entry = &state.entries[index];
        let mut transcript = Transcript::default();
        let read = shelf.replay(entry.first_seq..=entry.last_seq, &mut |record| {
            transcript.apply(record, &state.setting);
        });
        self.earlier = Some(transcript);
        read
    }

    fn watch(&mut self, which: Attempt, shelf: &dyn RunFiles) -> io::Result<()> {
        let screen = self.screen.get_or_insert_with(Screen::new);
        let (bytes, length) = shelf.output(which, self.read, PIECE)?;
        // Of a long output only the end can still be on a screen.
        if self.read == 0 && length > LONGEST {
            screen.feed(&bytes[..bytes.len().min(16)]);
            self.read = length - PIECE as u64;
            return self.watch(which, shelf);
        }
        screen.feed(&bytes);
        self.read += bytes.len() as u64;
        Ok(())
    }

    /// The transcript that is looked at.
    pub(super) fn transcript<'a>(&'a self, view: &View, state: &'a State) -> &'a Transcript {
        match view.entry {
            None => &state.transcript,
            Some(_) => self.earlier.as_ref().unwrap_or(&self.nothing),
        }
    }

    pub(super) fn prompt(&self) -> Option<&str> {
        self.prompt.as_deref()
    }

    pub(super) fn screen(&self) -> Option<&Screen> {
        self.screen.as_ref().filter(|screen| screen.is_one())
    }

    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}
