//! A hat: a role of the agent that topics activate.

use super::PartialSandbox;
use super::section::section;

/// The default topic of a run's first event.
pub const START_TOPIC: &str = "task.start";
/// The topic with which an agent asks the user a question. No hat receives it.
pub(crate) const QUESTION_TOPIC: &str = "ask";

section! {
    /// The definition of one hat.
    Hat, PartialHat, "hats.NAME" {
        /// The name that the prompt and listings show. Default: the key.
        display_name: String,
        /// A one-sentence description of the role.
        description: String = String::new(),
        /// The topics, or topic patterns (`build.*`, `*`), that activate the hat.
        #[check(inner(length(min = 1)))]
        triggers: Vec<String> = Vec::new(),
        /// The topics that the hat may publish.
        #[check(inner(length(min = 1)))]
        publishes: Vec<String> = Vec::new(),
        /// Text that is added to the prompt while the hat is active.
        instructions: String = String::new(),
        /// The topic to publish if the hat publishes none.
        #[check(length(min = 1))]
        default_publishes: String,
        /// Tools that the hat must not use, by the names that the agent's transcript has for them. An iteration that
        /// uses one fails.
        #[check(inner(length(min = 1)))]
        disallowed_tools: Vec<String> = Vec::new(),
        /// Maximum number of activations per run.
        #[check(range(min = 1))]
        max_activations: u64,
        /// The agent that works with this hat: the name of a built-in agent, `custom`, or `driver:NAME`. Default: the
        /// agent of the run.
        #[check(length(min = 1))]
        agent: String,
        /// The model that the agent of this hat should use.
        #[check(length(min = 1))]
        model: String,
        /// Additional arguments for the agent of this hat.
        args: Vec<String> = Vec::new(),
        /// What differs from the sandbox of the run.
        sandbox: PartialSandbox = PartialSandbox::default(),
    } and {
        /// The key under which the hat is configured.
        name: String,
    }
}

impl Hat {
    /// A hat with this name and no triggers.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// The name to show.
    pub fn shown_name(&self) -> &str {
        self.display_name.as_deref().unwrap_or(&self.name)
    }

    /// All topics that the hat may publish.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        let listed = self.publishes.iter().map(String::as_str);
        let own = self
            .default_publishes
            .as_deref()
            .filter(|topic| !self.publishes.iter().any(|listed| listed == topic));
        listed.chain(own)
    }
}
