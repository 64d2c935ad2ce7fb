//! Hats: roles of the agent, and the rules that route topics to them.
//!
//! `queue` holds queued events and the active hat, `activation` connects it to the engine, `graph` validates a set of
//! hats, and `history` restores the queue of a resumed run.

mod activation;
mod graph;
mod history;
mod queue;

pub use graph::{HatEdge, HatFinding, HatSeverity, check_hats, hat_edges};
pub use history::HatHistory;
pub(super) use queue::{ActivationEnd, HatQueue, ReroutedEvent};

use crate::policy::Hat;
#[cfg(test)]
use crate::policy::START_TOPIC;

/// The trigger of the hat that takes all topics that no other hat claims.
pub(crate) const WILDCARD: &str = "*";

/// A valid set of hats. If it is empty, the agent runs without hats.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hats {
    rules: Vec<Hat>,
    /// The index of the hat that takes unclaimed topics.
    default: usize,
    /// The topic of the run's first event.
    start_topic: String,
}

/// Why a set of hats cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HatError {
    #[error("two hats claim the topic `{trigger}`: `{first}` and `{second}`")]
    DuplicateTrigger {
        trigger: String,
        first: String,
        second: String,
    },
    #[error("no hat takes the first event: none is triggered by `{start_topic}` or `{WILDCARD}`")]
    NoDefaultHat { start_topic: String },
}

impl Hats {
    /// Like `starting_with`, with the default topic of the first event.
    #[cfg(test)]
    pub(crate) fn new(rules: Vec<Hat>) -> Result<Self, HatError> {
        Self::starting_with(START_TOPIC, rules)
    }

    /// Expects rules sorted by name; the order decides between equally specific globs.
    pub fn starting_with(start_topic: &str, rules: Vec<Hat>) -> Result<Self, HatError> {
        let start_topic = start_topic.to_owned();
        if rules.is_empty() {
            return Ok(Self {
                start_topic,
                ..Self::default()
            });
        }
        if let Some(twice) = duplicate_triggers(&rules).into_iter().next() {
            return Err(twice);
        }
        let Some(default) = default_hat(&rules, &start_topic) else {
            return Err(HatError::NoDefaultHat { start_topic });
        };
        Ok(Self {
            rules,
            default,
            start_topic,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The name of the first active hat.
    pub fn first(&self) -> Option<&str> {
        let first = self.claiming_hat(&self.start_topic).unwrap_or(self.default);
        self.rules.get(first).map(|rule| rule.name.as_str())
    }

    pub(crate) fn start_topic(&self) -> &str {
        &self.start_topic
    }

    /// Whether a hat names this topic among its triggers.
    pub(crate) fn names(&self, topic: &str) -> bool {
        self.rules
            .iter()
            .any(|rule| rule.triggers.iter().any(|trigger| trigger == topic))
    }

    pub(crate) fn len(&self) -> usize {
        self.rules.len()
    }

    pub(crate) fn rule(&self, index: usize) -> &Hat {
        &self.rules[index]
    }

    pub(crate) fn default_index(&self) -> usize {
        self.default
    }

    pub(crate) fn index_of(&self, name: &str) -> Option<usize> {
        self.rules.iter().position(|rule| rule.name == name)
    }

    pub(crate) fn claiming_hat(&self, topic: &str) -> Option<usize> {
        claiming_hat(&self.rules, topic)
    }
}

/// All triggers that more than one hat has.
pub(super) fn duplicate_triggers(rules: &[Hat]) -> Vec<HatError> {
    let mut found = Vec::new();
    for (index, first) in rules.iter().enumerate() {
        for second in &rules[index + 1..] {
            let shared = first
                .triggers
                .iter()
                .filter(|trigger| second.triggers.contains(trigger));
            found.extend(shared.map(|trigger| HatError::DuplicateTrigger {
                trigger: trigger.clone(),
                first: first.name.clone(),
                second: second.name.clone(),
            }));
        }
    }
    found
}

/// The hat with the wildcard trigger, or else the hat that takes the start topic.
pub(super) fn default_hat(rules: &[Hat], start_topic: &str) -> Option<usize> {
    let has_wildcard = |rule: &Hat| rule.triggers.iter().any(|trigger| trigger == WILDCARD);
    rules
        .iter()
        .position(has_wildcard)
        .or_else(|| claiming_hat(rules, start_topic))
}

/// The hat that claims a topic: the one that names it, or else the one whose glob has the most literal characters.
pub(super) fn claiming_hat(rules: &[Hat], topic: &str) -> Option<usize> {
    let exact = |rule: &Hat| rule.triggers.iter().any(|trigger| trigger == topic);
    if let Some(index) = rules.iter().position(exact) {
        return Some(index);
    }
    let mut best: Option<(usize, usize)> = None;
    for (index, rule) in rules.iter().enumerate() {
        let globs = rule
            .triggers
            .iter()
            .filter(|trigger| is_glob(trigger) && glob_matches(trigger, topic));
        let literals = globs.map(|glob| glob.chars().filter(|c| *c != '*').count()).max();
        if let Some(literals) = literals
            && best.is_none_or(|(most, _)| literals > most)
        {
            best = Some((literals, index));
        }
    }
    best.map(|(_, index)| index)
}

pub(super) fn is_glob(trigger: &str) -> bool {
    trigger.contains('*')
}

/// Whether a glob matches a topic; `*` matches any characters, including dots.
pub(super) fn glob_matches(glob: &str, topic: &str) -> bool {
    let mut parts = glob.split('*');
    let Some(mut rest) = parts.next().and_then(|first| topic.strip_prefix(first)) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::engine) fn hat(name: &str, triggers: &[&str], publishes: &[&str]) -> Hat {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        Hat {
            name: name.into(),
            triggers: owned(triggers),
            publishes: owned(publishes),
            ..Hat::default()
        }
    }

    fn hat_for(hats: &Hats, topic: &str) -> String {
        let hat_for = hats
            .claiming_hat(topic)
            .map(|index| hats.rule(index).name.clone());
        hat_for.unwrap_or_else(|| "none".into())
    }

    #[test]
    fn globs_match_any_characters() {
        for (glob, topic) in [
            ("*", "anything.at.all"),
            ("build.*", "build.done"),
            ("build.*", "build."),
            ("*.done", "build.done"),
            ("a*c*e", "abcde"),
            ("a*c*e", "ace"),
        ] {
            assert!(glob_matches(glob, topic), "{glob} {topic}");
        }
        for (glob, topic) in [
            ("build.*", "build"),
            ("build.*", "rebuild.done"),
            ("*.done", "done"),
            ("a*c*e", "abcd"),
            ("ab*ba", "aba"),
            ("plain", "plainer"),
        ] {
            assert!(!glob_matches(glob, topic), "{glob} {topic}");
        }
    }

    #[test]
    fn exact_trigger_wins_over_globs_and_longer_globs_win() {
        let hats = Hats::new(vec![
            hat("any", &["*"], &[]),
            hat("builds", &["build.*"], &[]),
            hat("failures", &["build.fail*"], &[]),
            hat("reviewer", &["build.failed.hard"], &[]),
        ])
        .expect("a usable set");
        assert_eq!(hat_for(&hats, "build.failed.hard"), "reviewer");
        assert_eq!(hat_for(&hats, "build.failed"), "failures");
        assert_eq!(hat_for(&hats, "build.done"), "builds");
        assert_eq!(hat_for(&hats, "else"), "any");
    }

    #[test]
    fn equally_specific_globs_are_ordered_by_name() {
        let hats = Hats::new(vec![
            hat("first", &["a*", START_TOPIC], &[]),
            hat("second", &["*b"], &[]),
        ]);
        assert_eq!(hat_for(&hats.expect("a usable set"), "ab"), "first");
    }

    #[test]
    fn duplicate_trigger_error_names_both_hats() {
        let rules = vec![hat("ada", &["x", START_TOPIC], &[]), hat("bob", &["x"], &[])];
        let error = Hats::new(rules).expect_err("claimed twice");
        assert_eq!(error.to_string(), "two hats claim the topic `x`: `ada` and `bob`");
    }

    #[test]
    fn default_hat_has_the_wildcard_or_the_start_topic() {
        let named = |rules| Hats::new(rules).map(|hats| hats.rule(hats.default_index()).name.clone());
        let starter = hat("starter", &[START_TOPIC], &[]);
        let any = hat("zebra", &["*"], &[]);
        assert_eq!(named(vec![starter.clone(), any]), Ok("zebra".to_owned()));
        assert_eq!(named(vec![starter]), Ok("starter".to_owned()));
        assert_eq!(named(vec![hat("t", &["task.*"], &[])]), Ok("t".to_owned()));
        let start_topic = START_TOPIC.to_owned();
        assert_eq!(
            named(vec![hat("t", &["x"], &[])]),
            Err(HatError::NoDefaultHat { start_topic })
        );
    }

    #[test]
    fn configured_first_event_selects_the_first_and_the_default_hat() {
        let rules = vec![hat("builder", &["build.start"], &[]), hat("qa", &["built"], &[])];
        assert!(Hats::new(rules.clone()).is_err());
        let hats = Hats::starting_with("build.start", rules).expect("a usable set");
        assert_eq!(hats.first(), Some("builder"));
        assert_eq!(hats.default_index(), 0);
    }
}
