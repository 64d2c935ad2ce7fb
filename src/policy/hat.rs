//! A hat: a role of the agent that topics activate.

use serde::Serialize;

/// The definition of one hat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Hat {
    /// The key under which the hat is configured.
    #[serde(skip)]
    pub name: String,
    pub description: String,
    /// Topics or globs that activate this hat.
    pub triggers: Vec<String>,
    /// Topics that the prompt lists for this hat. Not enforced.
    pub publishes: Vec<String>,
    pub instructions: String,
    /// The topic that ralph publishes for the hat if it publishes none itself.
    pub default_publishes: Option<String>,
    pub max_activations: Option<u64>,
}

impl Hat {
    /// A hat with this name and no triggers.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
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
