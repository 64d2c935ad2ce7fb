//! Hats: roles that the agent takes on, and which of them takes which topic. Rules only; the events that wait for
//! a hat are in `post`, what is wrong with a set of hats is in `wiring`.

mod activation;
mod graph;
mod history;
mod queue;

pub use graph::{Edge, HatFinding, HatSeverity, check, edges};
pub use history::HatHistory;
pub(super) use queue::{Ended, HatQueue, Rerouted};

/// The topic with which every run begins.
pub(crate) const START: &str = "task.start";
/// The trigger of the hat that takes whatever nobody else takes.
pub(crate) const ANYTHING: &str = "*";

/// One role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HatRule {
    pub name: String,
    pub description: String,
    /// Topics, or globs of topics, that this hat takes.
    pub triggers: Vec<String>,
    /// Topics that it means to publish; what it is told, not what it is held to.
    pub publishes: Vec<String>,
    pub instructions: String,
    /// Published for it when it publishes nothing.
    pub default_publishes: Option<String>,
    pub max_activations: Option<u64>,
}

impl HatRule {
    /// All the topics that it may bring up.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        let listed = self.publishes.iter().map(String::as_str);
        let own = self
            .default_publishes
            .as_deref()
            .filter(|topic| !self.publishes.iter().any(|listed| listed == topic));
        listed.chain(own)
    }
}

/// A set of hats with which a run can be made. Empty: the agent works without hats.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hats {
    rules: Vec<HatRule>,
    /// Takes what nobody claims.
    default: usize,
}

/// Why a set of hats cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HatError {
    #[error("two hats claim the topic `{trigger}`: `{first}` and `{second}`")]
    ClaimedTwice {
        trigger: String,
        first: String,
        second: String,
    },
    #[error("no hat takes the first event: none is triggered by `{START}` or `{ANYTHING}`")]
    NoDefault,
}

impl Hats {
    /// The rules in an order that does not change, by name; it decides between globs that are equally specific.
    pub fn new(rules: Vec<HatRule>) -> Result<Self, HatError> {
        if rules.is_empty() {
            return Ok(Self::default());
        }
        if let Some(twice) = claimed_twice(&rules).into_iter().next() {
            return Err(twice);
        }
        let default = default_hat(&rules).ok_or(HatError::NoDefault)?;
        Ok(Self { rules, default })
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The name of the hat with which a run begins.
    pub fn first(&self) -> Option<&str> {
        let first = self.claimant(START).unwrap_or(self.default);
        self.rules.get(first).map(|rule| rule.name.as_str())
    }

    pub(crate) fn len(&self) -> usize {
        self.rules.len()
    }

    pub(crate) fn rule(&self, index: usize) -> &HatRule {
        &self.rules[index]
    }

    pub(crate) fn default_index(&self) -> usize {
        self.default
    }

    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        self.rules.iter().position(|rule| rule.name == name)
    }

    pub(crate) fn claimant(&self, topic: &str) -> Option<usize> {
        claimant(&self.rules, topic)
    }
}

/// Every trigger that more than one hat has.
pub(super) fn claimed_twice(rules: &[HatRule]) -> Vec<HatError> {
    let mut found = Vec::new();
    for (index, first) in rules.iter().enumerate() {
        for second in &rules[index + 1..] {
            let shared = first
                .triggers
                .iter()
                .filter(|trigger| second.triggers.contains(trigger));
            found.extend(shared.map(|trigger| HatError::ClaimedTwice {
                trigger: trigger.clone(),
                first: first.name.clone(),
                second: second.name.clone(),
            }));
        }
    }
    found
}

/// The hat that is triggered by everything, or else the one that takes the start.
pub(super) fn default_hat(rules: &[HatRule]) -> Option<usize> {
    let takes_anything = |rule: &HatRule| rule.triggers.iter().any(|trigger| trigger == ANYTHING);
    rules
        .iter()
        .position(takes_anything)
        .or_else(|| claimant(rules, START))
}

/// Who takes a topic: whoever names it; else the most specific glob, the one with the most letters of its own.
pub(super) fn claimant(rules: &[HatRule], topic: &str) -> Option<usize> {
    let exact = |rule: &HatRule| rule.triggers.iter().any(|trigger| trigger == topic);
    if let Some(index) = rules.iter().position(exact) {
        return Some(index);
    }
    let mut best: Option<(usize, usize)> = None;
    for (index, rule) in rules.iter().enumerate() {
        let globs = rule
            .triggers
            .iter()
            .filter(|trigger| is_glob(trigger) && matches(trigger, topic));
        let letters = globs.map(|glob| glob.chars().filter(|c| *c != '*').count()).max();
        if let Some(letters) = letters
            && best.is_none_or(|(most, _)| letters > most)
        {
            best = Some((letters, index));
        }
    }
    best.map(|(_, index)| index)
}

pub(super) fn is_glob(trigger: &str) -> bool {
    trigger.contains('*')
}

/// `*` stands for any run of characters, dots included.
pub(super) fn matches(glob: &str, topic: &str) -> bool {
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

    pub(in crate::engine) fn hat(name: &str, triggers: &[&str], publishes: &[&str]) -> HatRule {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        HatRule {
            name: name.into(),
            triggers: owned(triggers),
            publishes: owned(publishes),
            ..HatRule::default()
        }
    }

    fn taker(hats: &Hats, topic: &str) -> String {
        let taker = hats.claimant(topic).map(|index| hats.rule(index).name.clone());
        taker.unwrap_or_else(|| "nobody".into())
    }

    #[test]
    fn globs_match_any_run_of_characters() {
        for (glob, topic) in [
            ("*", "anything.at.all"),
            ("build.*", "build.done"),
            ("build.*", "build."),
            ("*.done", "build.done"),
            ("a*c*e", "abcde"),
            ("a*c*e", "ace"),
        ] {
            assert!(matches(glob, topic), "{glob} {topic}");
        }
        for (glob, topic) in [
            ("build.*", "build"),
            ("build.*", "rebuild.done"),
            ("*.done", "done"),
            ("a*c*e", "abcd"),
            ("ab*ba", "aba"),
            ("plain", "plainer"),
        ] {
            assert!(!matches(glob, topic), "{glob} {topic}");
        }
    }

    #[test]
    fn a_named_topic_beats_a_glob_and_the_longer_glob_the_shorter() {
        let hats = Hats::new(vec![
            hat("any", &["*"], &[]),
            hat("builds", &["build.*"], &[]),
            hat("failures", &["build.fail*"], &[]),
            hat("reviewer", &["build.failed.hard"], &[]),
        ])
        .expect("a usable set");
        assert_eq!(taker(&hats, "build.failed.hard"), "reviewer");
        assert_eq!(taker(&hats, "build.failed"), "failures");
        assert_eq!(taker(&hats, "build.done"), "builds");
        assert_eq!(taker(&hats, "else"), "any");
    }

    #[test]
    fn equally_specific_globs_go_by_name() {
        let hats = Hats::new(vec![
            hat("first", &["a*", START], &[]),
            hat("second", &["*b"], &[]),
        ]);
        assert_eq!(taker(&hats.expect("a usable set"), "ab"), "first");
    }

    #[test]
    fn two_claims_to_one_topic_are_an_error_that_names_both() {
        let rules = vec![hat("ada", &["x", START], &[]), hat("bob", &["x"], &[])];
        let error = Hats::new(rules).expect_err("claimed twice");
        assert_eq!(error.to_string(), "two hats claim the topic `x`: `ada` and `bob`");
    }

    #[test]
    fn the_default_hat_takes_everything_or_else_the_start() {
        let named = |rules| Hats::new(rules).map(|hats| hats.rule(hats.default_index()).name.clone());
        let starter = hat("starter", &[START], &[]);
        let any = hat("zebra", &["*"], &[]);
        assert_eq!(named(vec![starter.clone(), any]), Ok("zebra".to_owned()));
        assert_eq!(named(vec![starter]), Ok("starter".to_owned()));
        assert_eq!(named(vec![hat("t", &["task.*"], &[])]), Ok("t".to_owned()));
        assert_eq!(named(vec![hat("t", &["x"], &[])]), Err(HatError::NoDefault));
    }
}
