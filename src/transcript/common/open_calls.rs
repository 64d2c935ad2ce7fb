//! The running tool calls of one session: constant time per call, in bounded memory.

use std::collections::HashMap;

use crate::event::{ToolEnd, ToolStatus, TranscriptEvent};

/// The running calls by their id.
#[derive(Debug, Default)]
pub(in crate::transcript) struct OpenCalls {
    calls: HashMap<String, OpenCall>,
    started: u64,
}

#[derive(Debug)]
struct OpenCall {
    name: String,
    /// The position among all started calls.
    order: u64,
}

/// No agent runs so many tools at once. Calls beyond it come from output that reports no results.
pub(in crate::transcript) const MAX_OPEN_CALLS: usize = 1024;

impl OpenCalls {
    /// Adds a call. The older half of the running calls ends with an unknown status if there are too many.
    pub(in crate::transcript) fn insert(&mut self, id: String, name: String, out: &mut Vec<TranscriptEvent>) {
        if self.calls.len() >= MAX_OPEN_CALLS {
            self.close_oldest(MAX_OPEN_CALLS / 2, out);
        }
        self.started += 1;
        let order = self.started;
        self.calls.insert(id, OpenCall { name, order });
    }

    /// Removes a call; returns whether it was running.
    pub(in crate::transcript) fn remove(&mut self, id: &str) -> bool {
        self.calls.remove(id).is_some()
    }

    pub(in crate::transcript) fn contains(&self, id: &str) -> bool {
        self.calls.contains_key(id)
    }

    /// The tool name of a running call.
    pub(in crate::transcript) fn name_of(&self, id: &str) -> Option<&str> {
        self.calls.get(id).map(|call| call.name.as_str())
    }

    /// Ends all calls with an unknown status, in the order of their start.
    pub(in crate::transcript) fn close_all(&mut self, out: &mut Vec<TranscriptEvent>) {
        self.close_oldest(self.calls.len(), out);
    }

    fn close_oldest(&mut self, count: usize, out: &mut Vec<TranscriptEvent>) {
        let mut by_age: Vec<(u64, String)> = self
            .calls
            .iter()
            .map(|(id, call)| (call.order, id.clone()))
            .collect();
        by_age.sort_unstable();
        by_age.truncate(count);
        for (_, id) in by_age {
            self.calls.remove(&id);
            out.push(unknown_end(id));
        }
    }
}

/// The end of a call whose result is not known.
pub(in crate::transcript) fn unknown_end(id: String) -> TranscriptEvent {
    TranscriptEvent::ToolEnd {
        tool: ToolEnd {
            id,
            status: ToolStatus::Unknown,
            duration_ms: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_without_results_end_once_in_order_and_never_exceed_the_limit() {
        let (mut calls, mut out) = (OpenCalls::default(), Vec::new());
        let ids: Vec<String> = (0..48_000).map(|id| format!("toolu_{id}")).collect();
        for id in &ids {
            calls.insert(id.clone(), "Bash".into(), &mut out);
            assert!(calls.calls.len() <= MAX_OPEN_CALLS && calls.contains(id));
        }
        calls.close_all(&mut out);
        assert_eq!(out, ids.into_iter().map(unknown_end).collect::<Vec<_>>());
    }
}
