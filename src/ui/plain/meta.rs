//! Renders the agent's reports about its session. Repeated sessions and plans are printed once.

use jiff::Timestamp;

use super::renderer::PlainRenderer;
use crate::event::{Description, Meta, PassedGates, PlanItem};

const MAX_PLAN_ITEMS: usize = 40;

impl PlainRenderer {
    pub(super) fn meta(&mut self, meta: &Meta, at: Timestamp) {
        let description = meta.describe(&self.context(at, &PassedGates::default()));
        match meta {
            Meta::Session { .. } => self.session_line(description),
            Meta::Plan { items } => self.plan(items, description),
            _ => self.describe(description),
        }
    }

    fn session_line(&mut self, description: Option<Description>) {
        let Some(description) = description else { return };
        if !self.iteration.session_line.starts_with(&description.text) {
            self.iteration.session_line.clone_from(&description.text);
            self.describe(Some(description));
        }
    }

    /// Prints one line per change of the plan; the full list follows at the end of the iteration.
    fn plan(&mut self, items: &[PlanItem], description: Option<Description>) {
        let items = &items[..items.len().min(MAX_PLAN_ITEMS)];
        if self.iteration.plan == items {
            return;
        }
        self.iteration.plan = items.to_vec();
        match self.is_verbose() {
            true => self.plan_items(),
            false => self.describe(description),
        }
    }
}
