//! Detects which built-in agents are installed and usable.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};

use crate::config::Settings;
use crate::event::ProcessEnd;
use crate::failpoint;

use super::{AGENTS, Agent, AgentError, Probe};

/// The agent that detection selected.
#[derive(Debug, Clone)]
pub struct DetectedAgent {
    pub agent: &'static Agent,
    pub program: PathBuf,
    pub version: String,
}

/// The reason why an agent cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("not found in PATH")]
    NotFound,
    #[error("disabled in the configuration")]
    Disabled,
    #[error("`--version` failed with {end}")]
    Refused { end: ProcessEnd },
    #[error("`--version` timed out after {seconds}s")]
    TimedOut { seconds: u64 },
    #[error("failed to start: {reason}")]
    CouldNotStart { reason: String },
}

/// The result of checking one agent.
#[derive(Debug, Clone)]
pub struct AgentCheck {
    pub agent: &'static Agent,
    pub program: Option<PathBuf>,
    /// The output of `--version`.
    pub version: Result<String, Unusable>,
}

pub(super) fn enabled(agent: &Agent, settings: &Settings) -> bool {
    settings
        .adapters
        .get(agent.name)
        .is_none_or(|adapter| adapter.enabled)
}

/// Returns the first usable agent in table order. All agents are probed in parallel; the result is returned as soon
/// as no earlier agent can still turn out to be usable.
pub fn detect(probe: &Arc<dyn Probe>, settings: &Settings) -> Result<DetectedAgent, AgentError> {
    let mut detection = Detection::start(probe, settings);
    for (index, agent) in AGENTS.iter().enumerate() {
        let checked = detection.wait_for(index);
        if let (Some(program), Ok(version)) = (&checked.program, &checked.version) {
            return Ok(DetectedAgent {
                agent,
                program: program.clone(),
                version: version.clone(),
            });
        }
    }
    Err(AgentError::NoneFound {
        checked: detection.finish(),
    })
}

/// Checks every agent and returns the results in table order.
pub fn check_all(probe: &Arc<dyn Probe>, settings: &Settings) -> Vec<AgentCheck> {
    Detection::start(probe, settings).finish()
}

/// Parallel `--version` probes and the results received so far.
struct Detection {
    checks: BTreeMap<usize, AgentCheck>,
    incoming: mpsc::Receiver<(usize, AgentCheck)>,
}

impl Detection {
    fn start(probe: &Arc<dyn Probe>, settings: &Settings) -> Self {
        let (sender, incoming) = mpsc::channel();
        let panics = probe.panics();
        let mut checks = BTreeMap::new();
        for (index, agent) in AGENTS.iter().enumerate() {
            let program = agent.programs.iter().find_map(|program| probe.find(program));
            let rejected = |program, why| AgentCheck {
                agent,
                program,
                version: Err(why),
            };
            match program {
                None => drop(checks.insert(index, rejected(None, Unusable::NotFound))),
                program if !enabled(agent, settings) => {
                    checks.insert(index, rejected(program, Unusable::Disabled));
                }
                Some(program) => {
                    let (probe, sender, scope) = (Arc::clone(probe), sender.clone(), panics.clone());
                    let check_program = program.clone();
                    let check = move || {
                        let program = check_program;
                        failpoint!(scope, Detection);
                        let version = probe.version(&program);
                        // The receiver is gone if an earlier agent has already been selected.
                        let _ = sender.send((
                            index,
                            AgentCheck {
                                agent,
                                program: Some(program),
                                version,
                            },
                        ));
                    };
                    if let Err(error) = panics.spawn("detection", check) {
                        let reason = error.to_string();
                        checks.insert(index, rejected(Some(program), Unusable::CouldNotStart { reason }));
                    }
                }
            }
        }
        Self { checks, incoming }
    }

    fn wait_for(&mut self, index: usize) -> &AgentCheck {
        while !self.checks.contains_key(&index) {
            let reason = "the version probe crashed".to_owned();
            let lost = AgentCheck {
                agent: &AGENTS[index],
                program: None,
                version: Err(Unusable::CouldNotStart { reason }),
            };
            let (received, check) = self.incoming.recv().unwrap_or((index, lost));
            self.checks.insert(received, check);
        }
        &self.checks[&index]
    }

    fn finish(mut self) -> Vec<AgentCheck> {
        for index in 0..AGENTS.len() {
            self.wait_for(index);
        }
        self.checks.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AdapterSettings;
    use std::path::Path;
    use std::sync::Mutex;

    /// A probe with a fixed set of programs. Programs in `slow` never respond.
    #[derive(Default)]
    struct FakeProbe {
        present: Vec<&'static str>,
        broken: Vec<&'static str>,
        slow: Vec<&'static str>,
        probed: Mutex<Vec<String>>,
    }

    impl Probe for FakeProbe {
        fn find(&self, program: &str) -> Option<PathBuf> {
            self.present
                .contains(&program)
                .then(|| Path::new("/bin").join(program))
        }

        fn version(&self, program: &Path) -> Result<String, Unusable> {
            let name = program.file_name().unwrap().to_string_lossy().into_owned();
            self.probed.lock().unwrap().push(name.clone());
            if self.slow.contains(&name.as_str()) {
                std::thread::park();
            }
            if self.broken.contains(&name.as_str()) {
                return Err(Unusable::Refused {
                    end: ProcessEnd::Exited { code: 1 },
                });
            }
            Ok("1.2.3".into())
        }
    }

    fn detected(fake: FakeProbe, settings: &Settings) -> Result<&'static str, AgentError> {
        let probe: Arc<dyn Probe> = Arc::new(fake);
        detect(&probe, settings).map(|found| found.agent.name)
    }

    #[test]
    fn first_usable_agent_in_table_order_is_selected() {
        let settings = Settings::default();
        let fake = |present: &[&'static str]| FakeProbe {
            present: present.to_vec(),
            ..FakeProbe::default()
        };
        assert_eq!(
            detected(fake(&["codex", "gemini", "claude"]), &settings).unwrap(),
            "claude"
        );
        assert_eq!(detected(fake(&["amp", "kiro-cli"]), &settings).unwrap(), "kiro");
        assert_eq!(detected(fake(&["cursor-agent"]), &settings).unwrap(), "cursor");
    }

    #[test]
    fn disabled_agent_is_skipped() {
        let mut settings = Settings::default();
        let off = AdapterSettings {
            enabled: false,
            ..AdapterSettings::default()
        };
        settings.adapters.insert("claude".into(), off);
        let fake = FakeProbe {
            present: vec!["claude", "opencode"],
            ..FakeProbe::default()
        };
        assert_eq!(detected(fake, &settings).unwrap(), "opencode");
    }

    #[test]
    fn detection_does_not_wait_for_a_later_agent() {
        let fake = FakeProbe {
            present: vec!["claude", "gemini"],
            slow: vec!["gemini"],
            ..FakeProbe::default()
        };
        assert_eq!(detected(fake, &Settings::default()).unwrap(), "claude");
    }

    #[test]
    fn without_a_usable_agent_every_reason_is_reported() {
        let fake = FakeProbe {
            present: vec!["claude"],
            broken: vec!["claude"],
            ..FakeProbe::default()
        };
        let Err(AgentError::NoneFound { checked }) = detected(fake, &Settings::default()) else {
            panic!()
        };
        assert_eq!(checked.len(), AGENTS.len());
        assert_eq!(
            checked[0].version,
            Err(Unusable::Refused {
                end: ProcessEnd::Exited { code: 1 }
            })
        );
        assert!(
            checked[1..]
                .iter()
                .all(|checked| checked.version == Err(Unusable::NotFound))
        );
    }
}
