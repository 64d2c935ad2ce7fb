//! Which of the built-in agents can be used here.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;

use crate::config::Settings;
use crate::event::ProcessEnd;
use crate::panic_hook;

use super::{AGENTS, Agent, AgentError, Probe};

/// An agent that answered.
#[derive(Debug, Clone)]
pub struct Found {
    pub agent: &'static Agent,
    pub program: PathBuf,
    pub version: String,
}

/// Why an agent cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("not found in PATH")]
    NotFound,
    #[error("disabled in the configuration")]
    Disabled,
    #[error("`--version` ended with {end}")]
    Refused { end: ProcessEnd },
    #[error("`--version` did not answer within {seconds} s")]
    TimedOut { seconds: u64 },
    #[error("could not be started: {reason}")]
    CouldNotStart { reason: String },
}

/// What was found out about one agent.
#[derive(Debug, Clone)]
pub struct Checked {
    pub agent: &'static Agent,
    pub program: Option<PathBuf>,
    pub answer: Result<String, Unusable>,
}

pub(super) fn enabled(agent: &Agent, settings: &Settings) -> bool {
    settings
        .adapters
        .get(agent.name)
        .is_none_or(|adapter| adapter.enabled)
}

/// The first usable agent in the table's order. All are asked at the same time; the answer is given as soon as no
/// earlier one can still answer.
pub fn detect(probe: &Arc<dyn Probe>, settings: &Settings) -> Result<Found, AgentError> {
    let mut survey = Survey::start(probe, settings);
    for (index, agent) in AGENTS.iter().enumerate() {
        let checked = survey.wait_for(index);
        if let (Some(program), Ok(version)) = (&checked.program, &checked.answer) {
            return Ok(Found {
                agent,
                program: program.clone(),
                version: version.clone(),
            });
        }
    }
    Err(AgentError::NoneFound {
        checked: survey.finish(),
    })
}

/// What there is to know about every agent, in the table's order.
pub fn survey(probe: &Arc<dyn Probe>, settings: &Settings) -> Vec<Checked> {
    Survey::start(probe, settings).finish()
}

/// Questions that are out, and answers that are in.
struct Survey {
    answers: BTreeMap<usize, Checked>,
    incoming: mpsc::Receiver<(usize, Checked)>,
}

impl Survey {
    fn start(probe: &Arc<dyn Probe>, settings: &Settings) -> Self {
        let (sender, incoming) = mpsc::channel();
        let mut answers = BTreeMap::new();
        for (index, agent) in AGENTS.iter().enumerate() {
            let program = agent.programs.iter().find_map(|program| probe.find(program));
            let settled = |program, why| Checked {
                agent,
                program,
                answer: Err(why),
            };
            match program {
                None => drop(answers.insert(index, settled(None, Unusable::NotFound))),
                program if !enabled(agent, settings) => {
                    answers.insert(index, settled(program, Unusable::Disabled));
                }
                Some(program) => {
                    let (probe, sender) = (Arc::clone(probe), sender.clone());
                    thread::spawn(move || {
                        panic_hook::failpoint("detection");
                        let answer = probe.version(&program);
                        // Nobody waits for an answer that came too late to matter.
                        let _ = sender.send((
                            index,
                            Checked {
                                agent,
                                program: Some(program),
                                answer,
                            },
                        ));
                    });
                }
            }
        }
        Self { answers, incoming }
    }

    fn wait_for(&mut self, index: usize) -> &Checked {
        while !self.answers.contains_key(&index) {
            let reason = "the question was lost".to_owned();
            let lost = Checked {
                agent: &AGENTS[index],
                program: None,
                answer: Err(Unusable::CouldNotStart { reason }),
            };
            let (answered, checked) = self.incoming.recv().unwrap_or((index, lost));
            self.answers.insert(answered, checked);
        }
        &self.answers[&index]
    }

    fn finish(mut self) -> Vec<Checked> {
        for index in 0..AGENTS.len() {
            self.wait_for(index);
        }
        self.answers.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AdapterSettings;
    use std::path::Path;
    use std::sync::Mutex;

    /// Knows some programs; a program named in `slow` never answers.
    #[derive(Default)]
    struct Fake {
        present: Vec<&'static str>,
        broken: Vec<&'static str>,
        slow: Vec<&'static str>,
        asked: Mutex<Vec<String>>,
    }

    impl Probe for Fake {
        fn find(&self, program: &str) -> Option<PathBuf> {
            self.present
                .contains(&program)
                .then(|| Path::new("/bin").join(program))
        }

        fn version(&self, program: &Path) -> Result<String, Unusable> {
            let name = program.file_name().unwrap().to_string_lossy().into_owned();
            self.asked.lock().unwrap().push(name.clone());
            if self.slow.contains(&name.as_str()) {
                thread::park();
            }
            if self.broken.contains(&name.as_str()) {
                return Err(Unusable::Refused {
                    end: ProcessEnd::Exited { code: 1 },
                });
            }
            Ok("1.2.3".into())
        }
    }

    fn detected(fake: Fake, settings: &Settings) -> Result<&'static str, AgentError> {
        let probe: Arc<dyn Probe> = Arc::new(fake);
        detect(&probe, settings).map(|found| found.agent.name)
    }

    #[test]
    fn the_first_usable_agent_in_order_wins() {
        let settings = Settings::default();
        let fake = |present: &[&'static str]| Fake {
            present: present.to_vec(),
            ..Fake::default()
        };
        assert_eq!(
            detected(fake(&["codex", "gemini", "claude"]), &settings).unwrap(),
            "claude"
        );
        assert_eq!(detected(fake(&["amp", "kiro-cli"]), &settings).unwrap(), "kiro");
        assert_eq!(detected(fake(&["cursor-agent"]), &settings).unwrap(), "cursor");
    }

    #[test]
    fn disabling_one_agent_disables_no_other() {
        let mut settings = Settings::default();
        let off = AdapterSettings {
            enabled: false,
            ..AdapterSettings::default()
        };
        settings.adapters.insert("claude".into(), off);
        let fake = Fake {
            present: vec!["claude", "opencode"],
            ..Fake::default()
        };
        assert_eq!(detected(fake, &settings).unwrap(), "opencode");
    }

    #[test]
    fn a_later_agent_that_never_answers_is_not_waited_for() {
        let fake = Fake {
            present: vec!["claude", "gemini"],
            slow: vec!["gemini"],
            ..Fake::default()
        };
        assert_eq!(detected(fake, &Settings::default()).unwrap(), "claude");
    }

    #[test]
    fn when_none_is_usable_every_reason_is_given() {
        let fake = Fake {
            present: vec!["claude"],
            broken: vec!["claude"],
            ..Fake::default()
        };
        let Err(AgentError::NoneFound { checked }) = detected(fake, &Settings::default()) else {
            panic!()
        };
        assert_eq!(checked.len(), AGENTS.len());
        assert_eq!(
            checked[0].answer,
            Err(Unusable::Refused {
                end: ProcessEnd::Exited { code: 1 }
            })
        );
        assert!(
            checked[1..]
                .iter()
                .all(|checked| checked.answer == Err(Unusable::NotFound))
        );
    }
}
