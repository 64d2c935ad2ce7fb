//! Computes the event graph of a set of hats and validates it, for `ralph hats` and the configuration check.

use serde::Serialize;

use super::{Hat, HatError, WILDCARD, claiming_hat, default_hat, duplicate_triggers, glob_matches, is_glob};

/// A problem in a set of hats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HatFinding {
    pub severity: HatSeverity,
    pub kind: &'static str,
    /// The message for the user.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HatSeverity {
    /// The set cannot be used.
    Error,
    Warning,
}

/// A topic that one hat publishes and another takes. `from` is `None` for the start of the run, `to` if no hat takes
/// the topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HatEdge {
    pub from: Option<String>,
    pub topic: String,
    pub to: Option<String>,
    /// Whether `to` claims the topic; false if it takes it as the default hat.
    pub claimed: bool,
}

/// All edges of the event graph.
pub fn hat_edges(rules: &[Hat], start_topic: &str) -> Vec<HatEdge> {
    let edge = |from: Option<&Hat>, topic: &str| {
        let claiming_hat = claiming_hat(rules, topic);
        let to = claiming_hat.or_else(|| default_hat(rules, start_topic));
        HatEdge {
            from: from.map(|rule| rule.name.clone()),
            topic: topic.to_owned(),
            to: to.map(|index| rules[index].name.clone()),
            claimed: claiming_hat.is_some(),
        }
    };
    let mut edges = vec![edge(None, start_topic)];
    for rule in rules {
        edges.extend(rule.topics().map(|topic| edge(Some(rule), topic)));
    }
    edges
}

/// All problems, errors first.
pub fn check_hats(rules: &[Hat], start_topic: &str) -> Vec<HatFinding> {
    if rules.is_empty() {
        return Vec::new();
    }
    let mut findings: Vec<HatFinding> = duplicate_triggers(rules)
        .into_iter()
        .map(|error| finding(HatSeverity::Error, "claimed_twice", error.to_string()))
        .collect();
    if default_hat(rules, start_topic).is_none() {
        let start_topic = start_topic.to_owned();
        let text = HatError::NoDefaultHat { start_topic }.to_string();
        findings.push(finding(HatSeverity::Error, "no_default_hat", text));
    }
    let edges = hat_edges(rules, start_topic);
    findings.extend(unreachable(rules, &edges, start_topic));
    findings.extend(unclaimed(&edges));
    findings.extend(never_published(rules, &edges));
    findings
}

fn finding(severity: HatSeverity, kind: &'static str, text: String) -> HatFinding {
    HatFinding { severity, kind, text }
}

fn warning(kind: &'static str, text: String) -> HatFinding {
    finding(HatSeverity::Warning, kind, text)
}

fn unreachable(rules: &[Hat], edges: &[HatEdge], start_topic: &str) -> Vec<HatFinding> {
    let mut reached: Vec<&str> = Vec::new();
    let mut next: Vec<Option<&str>> = vec![None];
    while let Some(from) = next.pop() {
        for edge in edges.iter().filter(|edge| edge.from.as_deref() == from) {
            if let Some(to) = edge.to.as_deref().filter(|to| !reached.contains(to)) {
                reached.push(to);
                next.push(Some(to));
            }
        }
    }
    rules
        .iter()
        .filter(|rule| !reached.contains(&rule.name.as_str()))
        .map(|rule| {
            let text = format!(
                "`{}` is never activated: no event leads to it from `{start_topic}`",
                rule.name
            );
            warning("unreachable", text)
        })
        .collect()
}

fn unclaimed(edges: &[HatEdge]) -> impl Iterator<Item = HatFinding> {
    edges.iter().filter(|edge| !edge.claimed).filter_map(|edge| {
        let from = edge.from.as_ref()?;
        let instead = match &edge.to {
            Some(to) => format!("it would go to the default hat `{to}`"),
            None => "it would not be delivered".to_owned(),
        };
        let text = format!(
            "`{from}` publishes `{}`, which no hat claims; {instead}",
            edge.topic
        );
        Some(warning("unclaimed_topic", text))
    })
}

fn never_published(rules: &[Hat], edges: &[HatEdge]) -> Vec<HatFinding> {
    let published = |trigger: &str| {
        edges.iter().any(|edge| {
            edge.topic == trigger
                || is_glob(trigger) && glob_matches(trigger, &edge.topic)
                || trigger == WILDCARD
        })
    };
    let triggers = rules
        .iter()
        .flat_map(|rule| rule.triggers.iter().map(move |trigger| (rule, trigger)));
    triggers
        .filter(|(_, trigger)| !published(trigger))
        .map(|(rule, trigger)| {
            let text = format!(
                "`{}` is triggered by `{trigger}`, which no hat publishes",
                rule.name
            );
            warning("never_published", text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::hats::tests::hat;
    use crate::policy::START_TOPIC;

    fn findings(rules: &[Hat]) -> Vec<(&'static str, String)> {
        check_hats(rules, START_TOPIC)
            .into_iter()
            .map(|finding| (finding.kind, finding.text))
            .collect()
    }

    #[test]
    fn closed_cycle_has_no_findings() {
        let rules = [
            hat("builder", &["plan.ready"], &["build.done"]),
            hat("planner", &[START_TOPIC, "build.*"], &["plan.ready"]),
        ];
        assert_eq!(findings(&rules), []);
        assert_eq!(findings(&[]), []);
    }

    #[test]
    fn all_problems_are_found() {
        let rules = [hat("a", &["x"], &["unwanted"]), hat("b", &["x", "never.*"], &[])];
        let expected = [
            ("claimed_twice", "two hats claim the topic `x`: `a` and `b`"),
            (
                "no_default_hat",
                "no hat takes the first event: none is triggered by `task.start` or `*`",
            ),
            (
                "unreachable",
                "`a` is never activated: no event leads to it from `task.start`",
            ),
            (
                "unreachable",
                "`b` is never activated: no event leads to it from `task.start`",
            ),
            (
                "unclaimed_topic",
                "`a` publishes `unwanted`, which no hat claims; it would not be delivered",
            ),
            (
                "never_published",
                "`a` is triggered by `x`, which no hat publishes",
            ),
            (
                "never_published",
                "`b` is triggered by `x`, which no hat publishes",
            ),
            (
                "never_published",
                "`b` is triggered by `never.*`, which no hat publishes",
            ),
        ];
        assert_eq!(
            findings(&rules),
            expected.map(|(kind, text)| (kind, text.to_owned()))
        );
    }

    #[test]
    fn unclaimed_topic_goes_to_the_default_hat() {
        let rules = [hat("any", &["*"], &["odd"]), hat("lost", &["lost"], &[])];
        assert_eq!(hat_edges(&rules, START_TOPIC)[1].to.as_deref(), Some("any"));
        assert_eq!(
            findings(&rules),
            [
                (
                    "unreachable",
                    "`lost` is never activated: no event leads to it from `task.start`".to_owned()
                ),
                (
                    "never_published",
                    "`lost` is triggered by `lost`, which no hat publishes".to_owned()
                ),
            ]
        );
    }
}
