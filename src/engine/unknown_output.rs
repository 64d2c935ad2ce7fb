//! Counts the parts of an agent's output that ralph does not know, and reports them at the end of a run.

use std::collections::BTreeMap;

use crate::event::{Meta, RunEvent, TranscriptEvent, UnknownOutput, UnknownPart};

/// More names than this are not counted.
const MAX_NAMES: usize = 64;

/// The version of an agent, and the one with which ralph was tested.
#[derive(Debug, Clone, Default)]
pub struct AgentVersions {
    /// The output of its version command, if it was called.
    pub installed: Option<String>,
    pub tested: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct UnknownCounts {
    /// The version that the agent reported.
    version: Option<String>,
    event_types: BTreeMap<String, u64>,
    fields: BTreeMap<String, u64>,
}

/// Whether an event is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Recording {
    Record,
    /// It repeats what was recorded and is counted.
    CountOnly,
}

impl UnknownCounts {
    pub(super) fn note(&mut self, event: &TranscriptEvent) -> Recording {
        match event {
            TranscriptEvent::Meta {
                meta:
                    Meta::Session {
                        version: Some(version),
                        ..
                    },
            } => self.version = Some(version.clone()),
            TranscriptEvent::Meta {
                meta: Meta::Unknown { part, name },
            } => {
                let counts = match part {
                    UnknownPart::EventType => &mut self.event_types,
                    UnknownPart::Field => &mut self.fields,
                };
                if let Some(count) = counts.get_mut(name) {
                    *count += 1;
                    return Recording::CountOnly;
                }
                if counts.len() >= MAX_NAMES {
                    return Recording::CountOnly;
                }
                counts.insert(name.clone(), 1);
            }
            _ => {}
        }
        Recording::Record
    }

    /// The report, if anything was unknown.
    pub(super) fn report(&self, agent: &str, versions: &AgentVersions) -> Option<RunEvent> {
        if self.event_types.is_empty() && self.fields.is_empty() {
            return None;
        }
        let version = self
            .version
            .as_deref()
            .or(versions.installed.as_deref())
            .and_then(number);
        let tested = versions.tested.as_deref().and_then(number);
        let newer_than =
            tested.filter(|tested| version.is_some_and(|version| parts(version) > parts(tested)));
        Some(RunEvent::UnknownOutput(Box::new(UnknownOutput {
            agent: agent.to_owned(),
            version: version.map(str::to_owned),
            newer_than: newer_than.map(str::to_owned),
            event_types: self.event_types.clone(),
            fields: self.fields.clone(),
        })))
    }
}

/// The first version number in the output of a version command, such as `tool v1.2.3 (build)`.
fn number(text: &str) -> Option<&str> {
    let mut words = text.split(|c: char| c.is_whitespace() || c == ',');
    let number = words.find(|word| {
        word.trim_start_matches('v')
            .starts_with(|c: char| c.is_ascii_digit())
    })?;
    Some(number.trim_start_matches('v'))
}

fn parts(version: &str) -> Vec<u64> {
    version
        .split(['.', '-', '+'])
        .map_while(|part| part.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(name: &str) -> TranscriptEvent {
        let (part, name) = (UnknownPart::EventType, name.to_owned());
        TranscriptEvent::meta(Meta::Unknown { part, name })
    }

    fn versions(installed: &str) -> AgentVersions {
        AgentVersions {
            installed: Some(installed.into()),
            tested: Some("2.1.327".into()),
        }
    }

    fn reported(counts: &UnknownCounts, version: &str) -> UnknownOutput {
        match counts.report("claude", &versions(version)) {
            Some(RunEvent::UnknownOutput(report)) => *report,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_name_is_recorded_once_and_counted() {
        let mut counts = UnknownCounts::default();
        assert_eq!(counts.report("claude", &versions("2.1.400")), None);
        assert_eq!(counts.note(&unknown("a")), Recording::Record);
        assert_eq!(counts.note(&unknown("a")), Recording::CountOnly);
        assert_eq!(counts.note(&unknown("b")), Recording::Record);
        let report = reported(&counts, "2.1.400 (Claude Code)");
        let counted = [("a".to_owned(), 2), ("b".to_owned(), 1)];
        assert_eq!(report.event_types, counted.into_iter().collect());
        assert_eq!(report.version.as_deref(), Some("2.1.400"));
        assert_eq!(report.newer_than.as_deref(), Some("2.1.327"));
    }

    #[test]
    fn versions_are_compared_by_number() {
        let mut counts = UnknownCounts::default();
        let _ = counts.note(&unknown("a"));
        for (version, newer) in [
            ("2.1.327 (Claude Code)", false),
            ("2.1.99", false),
            ("2.1.1000", true),
            ("v2.2.0", true),
            ("10.0.0", true),
            ("unknown", false),
        ] {
            assert_eq!(
                reported(&counts, version).newer_than.is_some(),
                newer,
                "{version}"
            );
        }
    }

    #[test]
    fn the_number_of_names_is_bounded() {
        let mut counts = UnknownCounts::default();
        for index in 0..1000 {
            let _ = counts.note(&unknown(&index.to_string()));
        }
        assert_eq!(reported(&counts, "3.0.0").event_types.len(), MAX_NAMES);
    }
}
