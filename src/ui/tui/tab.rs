//! The tabs of the TUI. The right pane of a wide terminal shows some of them beside the transcript.

use super::document::Scroll;
use super::loaded_files::LoadedFiles;
use super::model::TuiState;
use super::view::View;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Transcript,
    Changes,
    Plan,
    Tools,
    Gates,
    Events,
    Prompt,
    Terminal,
    Usage,
}

impl Tab {
    pub(super) const COUNT: usize = 9;

    /// All tabs, in the order of their numbers.
    pub(super) const ALL: [Self; Self::COUNT] = [
        Self::Transcript,
        Self::Changes,
        Self::Plan,
        Self::Tools,
        Self::Gates,
        Self::Events,
        Self::Prompt,
        Self::Terminal,
        Self::Usage,
    ];

    /// The tabs that the right pane can show.
    pub(super) const PANE: [Self; 5] = [Self::Changes, Self::Plan, Self::Tools, Self::Gates, Self::Usage];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Transcript => "Transcript",
            Self::Changes => "Changes",
            Self::Plan => "Plan",
            Self::Tools => "Tools",
            Self::Gates => "Gates",
            Self::Events => "Events",
            Self::Prompt => "Prompt",
            Self::Terminal => "Terminal",
            Self::Usage => "Usage",
        }
    }

    pub(super) fn index(self) -> usize {
        self as usize
    }

    /// Whether this tab shows a single iteration.
    pub(super) fn is_per_iteration(self) -> bool {
        match self {
            Self::Transcript
            | Self::Changes
            | Self::Plan
            | Self::Tools
            | Self::Gates
            | Self::Prompt
            | Self::Terminal => true,
            Self::Events | Self::Usage => false,
        }
    }

    /// The scroll position before any key is pressed.
    pub(super) fn first_scroll(self) -> Scroll {
        match self {
            Self::Transcript | Self::Events => Scroll::End,
            Self::Changes
            | Self::Plan
            | Self::Tools
            | Self::Gates
            | Self::Prompt
            | Self::Terminal
            | Self::Usage => Scroll::START,
        }
    }

    /// The figure beside the tab's name; `None` if the tab has nothing to show.
    pub(super) fn count(self, view: &View, state: &TuiState, files: &LoadedFiles) -> Option<u64> {
        let entry = view.entry_index(state).and_then(|index| state.entries.get(index));
        let transcript = files.transcript(view, state);
        let some = |count: u64| Some(count).filter(|count| *count > 0);
        match self {
            Self::Transcript | Self::Events => Some(0),
            Self::Changes => some(entry?.changes.as_ref()?.count),
            Self::Plan => some(transcript.plan.len() as u64),
            Self::Tools => some(transcript.tool_calls),
            Self::Gates => some(transcript.gates().count() as u64),
            Self::Prompt => entry.map(|_| 0),
            Self::Terminal => files.has_screen(view, state).then_some(0),
            Self::Usage => entry.map(|_| 0),
        }
    }
}

impl View {
    /// The tabs that have content, and the open one.
    pub(super) fn visible_tabs(&self, state: &TuiState, files: &LoadedFiles) -> Vec<Tab> {
        let has_content = |tab: &Tab| *tab == self.tab || tab.count(self, state, files).is_some();
        Tab::ALL.into_iter().filter(has_content).collect()
    }

    /// The pages that the right pane can show now.
    pub(super) fn pane_tabs(&self, state: &TuiState, files: &LoadedFiles) -> Vec<Tab> {
        let has_content = |tab: &Tab| *tab != self.tab && tab.count(self, state, files).is_some();
        Tab::PANE.into_iter().filter(has_content).collect()
    }

    /// The page in the right pane: the chosen one, or the first.
    pub(super) fn pane_tab(&self, state: &TuiState, files: &LoadedFiles) -> Option<Tab> {
        let tabs = self.pane_tabs(state, files);
        let chosen = self.pane.filter(|chosen| tabs.contains(chosen));
        chosen.or(tabs.first().copied())
    }
}
