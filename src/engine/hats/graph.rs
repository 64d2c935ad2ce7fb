//! How a set of hats hangs together: who hands what to whom, and what is wrong with it. For people who look at a
//! configuration; a run needs none of it.

use serde::Serialize;

use super::{ANYTHING, HatError, HatRule, START, claimant, claimed_twice, default_hat, is_glob, matches};

/// What is wrong with a set of hats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HatFinding {
    pub severity: HatSeverity,
    pub kind: &'static str,
    /// In words for the user.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HatSeverity {
    /// No run can be made with it.
    Error,
    Warning,
}

/// One topic on its way. `from` is `None` for the start of the run, `to` when nobody is there to take it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edge {
    pub from: Option<String>,
    pub topic: String,
    pub to: Option<String>,
    /// Whether the one who takes it claims the topic, or only takes what is left.
    pub claimed: bool,
}

/// Every way that an event can take by its topic.
pub fn edges(rules: &[HatRule]) -> Vec<Edge> {
    let edge = |from: Option<&HatRule>, topic: &str| {
        let claimant = claimant(rules, topic);
        let to = claimant.or_else(|| default_hat(rules));
        Edge {
            from: from.map(|rule| rule.name.clone()),
            topic: topic.to_owned(),
            to: to.map(|index| rules[index].name.clone()),
            claimed: claimant.is_some(),
        }
    };
    let mut edges = vec![edge(None, START)];
    for rule in rules {
        edges.extend(rule.topics().map(|topic| edge(Some(rule), topic)));
    }
    edges
}

/// All that is wrong, errors first.
pub fn check(rules: &[HatRule]) -> Vec<HatFinding> {
    if rules.is_empty() {
        return Vec::new();
    }
    let mut findings: Vec<HatFinding> = claimed_twice(rules)
        .into_iter()
        .map(|error| finding(HatSeverity::Error, "claimed_twice", error.to_string()))
        .collect();
    if default_hat(rules).is_none() {
        let text = HatError::NoDefault.to_string();
        findings.push(finding(HatSeverity::Error, "no_default_hat", text));
    }
    let edges = edges(rules);
    findings.extend(unreachable(rules, &edges));
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

fn unreachable(rules: &[HatRule], edges: &[Edge]) -> Vec<HatFinding> {
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
                "`{}` is never worn: no event leads to it from `{START}`",
                rule.name
            );
            warning("unreachable", text)
        })
        .collect()
}

fn unclaimed(edges: &[Edge]) -> impl Iterator<Item = HatFinding> {
    edges.iter().filter(|edge| !edge.claimed).filter_map(|edge| {
        let from = edge.from.as_ref()?;
        let instead = match &edge.to {
            Some(to) => format!("it would go to the default hat `{to}`"),
            None => "it would go to nobody".to_owned(),
        };
        let text = format!(
            "`{from}` publishes `{}`, which no hat claims; {instead}",
            edge.topic
        );
        Some(warning("unclaimed_topic", text))
    })
}

fn never_published(rules: &[HatRule], edges: &[Edge]) -> Vec<HatFinding> {
    let published = |trigger: &str| {
        edges.iter().any(|edge| {
            edge.topic == trigger || is_glob(trigger) && matches(trigger, &edge.topic) || trigger == ANYTHING
        })
    };
    let triggers = rules
        .iter()
        .flat_map(|rule| rule.triggers.iter().map(move |trigger| (rule, trigger)));
    triggers
        .filter(|(_, trigger)| !published(trigger))
        .map(|(rule, trigger)| {
            let text = format!("`{}` waits for `{trigger}`, which no hat publishes", rule.name);
            warning("never_published", text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::hat;
    use super::*;

    fn kinds(rules: &[HatRule]) -> Vec<(&'static str, String)> {
        check(rules)
            .into_iter()
            .map(|finding| (finding.kind, finding.text))
            .collect()
    }

    #[test]
    fn a_closed_circle_has_nothing_wrong() {
        let rules = [
            hat("builder", &["plan.ready"], &["build.done"]),
            hat("planner", &[START, "build.*"], &["plan.ready"]),
        ];
        assert_eq!(kinds(&rules), []);
        assert_eq!(kinds(&[]), []);
    }

    #[test]
    fn every_fault_is_found() {
        let rules = [
            hat("a", &["x"], &["nobody.wants"]),
            hat("b", &["x", "never.*"], &[]),
        ];
        let expected = [
            ("claimed_twice", "two hats claim the topic `x`: `a` and `b`"),
            (
                "no_default_hat",
                "no hat takes the first event: none is triggered by `task.start` or `*`",
            ),
            (
                "unreachable",
                "`a` is never worn: no event leads to it from `task.start`",
            ),
            (
                "unreachable",
                "`b` is never worn: no event leads to it from `task.start`",
            ),
            (
                "unclaimed_topic",
                "`a` publishes `nobody.wants`, which no hat claims; it would go to nobody",
            ),
            ("never_published", "`a` waits for `x`, which no hat publishes"),
            ("never_published", "`b` waits for `x`, which no hat publishes"),
            (
                "never_published",
                "`b` waits for `never.*`, which no hat publishes",
            ),
        ];
        assert_eq!(
            kinds(&rules),
            expected.map(|(kind, text)| (kind, text.to_owned()))
        );
    }

    #[test]
    fn an_unclaimed_topic_leads_to_the_default_hat() {
        let rules = [hat("any", &["*"], &["odd"]), hat("lost", &["lost"], &[])];
        assert_eq!(edges(&rules)[1].to.as_deref(), Some("any"));
        assert_eq!(
            kinds(&rules),
            [
                (
                    "unreachable",
                    "`lost` is never worn: no event leads to it from `task.start`".to_owned()
                ),
                (
                    "never_published",
                    "`lost` waits for `lost`, which no hat publishes".to_owned()
                ),
            ]
        );
    }
}
