//! The agents of a run: which agent, model and arguments each role has, resolved before the run starts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::agent::{self, AGENTS, Probe, ResolvedAgent};
use crate::config::{Mode, Settings};
use crate::engine::{GateReviewer, Reviewers};
use crate::files::{self, ReadRule};
use crate::policy::{Gate, Session};
use crate::transcript::Format;
use crate::transcript::jq::Filter;

use super::agent_mode;
use super::error::CliError;
use super::review_error::ReviewError;
use super::transcript_format::resolve_format;

/// One agent of the run, with its model and arguments.
#[derive(Debug)]
pub(super) struct PlannedAgent {
    pub(super) agent: ResolvedAgent,
    pub(super) format: &'static Format,
    pub(super) filter: Option<Filter>,
    /// The configured model, if any.
    pub(super) model: Option<String>,
    /// The agent and its model. Unique in the run.
    pub(super) label: String,
    pub(super) mode: Mode,
}

/// The agents of the run. The first one works without a hat, and with every hat that names no agent.
#[derive(Debug)]
pub(super) struct PlannedAgents {
    pub(super) agents: Vec<PlannedAgent>,
    /// The agents of the hats that name one.
    pub(super) by_hat: BTreeMap<String, usize>,
    /// The agents of `cli.fallback` that are installed.
    pub(super) fallback: Vec<usize>,
    pub(super) reviewers: Reviewers,
    /// About agents that are not installed.
    pub(super) warnings: Vec<String>,
}

/// What a role asks for. Whatever it leaves out is that of the run's agent.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoleRequest<'a> {
    /// The key of the role, for error messages.
    pub(super) key: &'a str,
    pub(super) agent: Option<&'a str>,
    pub(super) model: Option<&'a str>,
    pub(super) args: &'a [String],
}

impl PlannedAgents {
    pub(super) fn new(settings: &Settings, probe: &Arc<dyn Probe>) -> Result<Self, CliError> {
        let mut planned = Self::without_hats(settings, probe)?;
        for (name, hat) in &settings.hats {
            let key = format!("hats.{name}");
            let request = RoleRequest {
                key: &key,
                agent: hat.agent.as_deref(),
                model: hat.model.as_deref(),
                args: &hat.args,
            };
            let index = planned.add(settings, probe, request)?;
            planned.by_hat.insert(name.clone(), index);
        }
        for gate in settings.gates.iter().filter(|gate| gate.is_review()) {
            let reviewers = planned.reviewers_of(settings, probe, gate)?;
            planned.reviewers.by_gate.insert(gate.name.clone(), reviewers);
        }
        Ok(planned)
    }

    /// The reviewers of a gate. None of them may be an agent that does the work.
    fn reviewers_of(
        &mut self,
        settings: &Settings,
        probe: &Arc<dyn Probe>,
        gate: &Gate,
    ) -> Result<Vec<GateReviewer>, CliError> {
        let mut reviewers = Vec::new();
        for reviewer in gate.all_reviewers() {
            let key = match gate.reviewers.is_empty() {
                true => format!("gates.{}", gate.name),
                false => format!("gates.{}.reviewers.{}", gate.name, reviewer.name),
            };
            let request = RoleRequest {
                key: &key,
                agent: reviewer.agent.as_deref(),
                model: reviewer.model.as_deref(),
                args: &reviewer.args,
            };
            let index = self.add_reviewer(settings, probe, request)?;
            if let Some(worker) = self.worker_like(index).filter(|_| !gate.same) {
                let agent = self.agents[worker].label.clone();
                return Err(ReviewError::OwnWork { key, agent }.into());
            }
            let instructions = reviewer
                .prompt_file
                .as_deref()
                .map(read_instructions)
                .transpose()?;
            reviewers.push(GateReviewer {
                name: reviewer.name,
                agent: index,
                instructions,
            });
        }
        Ok(reviewers)
    }

    /// A working agent with the same name and model. Fallbacks work too.
    fn worker_like(&self, reviewer: usize) -> Option<usize> {
        let workers = std::iter::once(0)
            .chain(self.by_hat.values().copied())
            .chain(self.fallback.iter().copied());
        let reviewer = &self.agents[reviewer];
        workers
            .into_iter()
            .find(|worker| self.agents[*worker].is_same_model(reviewer))
    }

    /// Finds or adds the agent of a reviewer. It is never interactive and never resumes a session.
    fn add_reviewer(
        &mut self,
        settings: &Settings,
        probe: &Arc<dyn Probe>,
        request: RoleRequest<'_>,
    ) -> Result<usize, CliError> {
        let first = self.first().agent.name.clone();
        let settings = settings_of_reviewer(settings, &first, request)?;
        Ok(self.insert(PlannedAgent::resolve(&settings, probe)?))
    }

    /// A reviewer without a run: the agent of the run need not be installed.
    pub(super) fn reviewer(
        settings: &Settings,
        probe: &Arc<dyn Probe>,
        request: RoleRequest<'_>,
    ) -> Result<PlannedAgent, CliError> {
        let settings = settings_of_reviewer(settings, &settings.cli.backend, request)?;
        PlannedAgent::resolve(&settings, probe)
    }

    /// The agent of the run and its fallbacks. The first fallback takes the place of a missing agent; a missing fallback
    /// is left out.
    fn without_hats(settings: &Settings, probe: &Arc<dyn Probe>) -> Result<Self, CliError> {
        let mut planned = Self {
            agents: Vec::new(),
            by_hat: BTreeMap::new(),
            fallback: Vec::new(),
            reviewers: Reviewers::default(),
            warnings: Vec::new(),
        };
        let mut missing = None;
        match PlannedAgent::resolve(settings, probe) {
            Ok(first) => planned.agents.push(first),
            Err(error) if error.is_missing_agent() && !settings.cli.fallback.is_empty() => {
                planned
                    .warnings
                    .push(format!("{error}; it is replaced by an agent of cli.fallback"));
                missing = Some(error);
            }
            Err(error) => return Err(error),
        }
        for name in &settings.cli.fallback {
            let own = settings_of_agent(settings, name);
            match PlannedAgent::resolve(&own, probe) {
                Ok(fallback) => {
                    let index = planned.insert(fallback);
                    planned.fallback.push(index);
                }
                Err(error) if error.is_missing_agent() => {
                    planned.warnings.push(format!("cli.fallback: {error}"));
                }
                Err(error) => return Err(error),
            }
        }
        match missing {
            Some(error) if planned.agents.is_empty() => Err(error),
            Some(_) | None => Ok(planned),
        }
    }

    pub(super) fn first(&self) -> &PlannedAgent {
        &self.agents[0]
    }

    /// Tools of a hat can be forbidden only if the output of its agent shows them.
    pub(super) fn check_disallowed_tools(&self, settings: &Settings) -> Result<(), CliError> {
        for (name, hat) in &settings.hats {
            let planned = self.of_hat(Some(name));
            if !hat.disallowed_tools.is_empty() && !planned.format.capabilities.tools {
                return Err(CliError::ToolsNotReported {
                    hat: name.clone(),
                    agent: planned.agent.display_name.clone(),
                });
            }
        }
        Ok(())
    }

    /// The agent that a hat works with, or that works without one.
    pub(super) fn of_hat(&self, hat: Option<&str>) -> &PlannedAgent {
        let index = hat.and_then(|hat| self.by_hat.get(hat)).copied().unwrap_or(0);
        &self.agents[index]
    }

    /// Finds or adds the agent of a role; returns its index.
    fn add(
        &mut self,
        settings: &Settings,
        probe: &Arc<dyn Probe>,
        request: RoleRequest<'_>,
    ) -> Result<usize, CliError> {
        if request.agent.is_none() && request.model.is_none() && request.args.is_empty() {
            return Ok(0);
        }
        let first = &self.first().agent;
        let settings = settings_of_role(settings, &first.name, request)?;
        Ok(self.insert(PlannedAgent::resolve(&settings, probe)?))
    }

    /// Adds an agent, unless it is already known; returns its index.
    fn insert(&mut self, mut planned: PlannedAgent) -> usize {
        if let Some(known) = self.agents.iter().position(|known| known.is_same_call(&planned)) {
            return known;
        }
        let alike = |label: &str| self.agents.iter().any(|known| known.label == label);
        if alike(&planned.label) {
            // Only the arguments differ.
            let mut number = 2;
            while alike(&format!("{} #{number}", planned.label)) {
                number += 1;
            }
            planned.label = format!("{} #{number}", planned.label);
        }
        self.agents.push(planned);
        self.agents.len() - 1
    }
}

impl PlannedAgent {
    fn resolve(settings: &Settings, probe: &Arc<dyn Probe>) -> Result<Self, CliError> {
        let agent = agent::resolve(settings, probe)?;
        let mut agent = agent_mode::agent_in_mode(agent, settings)?;
        let (format, filter) = resolve_format(&mut agent)?;
        let resumes = agent.resume.is_some() || agent.driver().is_some();
        if settings.session == Session::Continue && !resumes {
            let agent = agent.display_name;
            return Err(CliError::ResumeUnsupported { agent });
        }
        let adapter = settings.adapters.get(agent.adapter());
        let model = settings.cli.model.clone();
        let model = model.or_else(|| adapter.and_then(|adapter| adapter.model.clone()));
        let label = match &model {
            Some(model) => format!("{} ({model})", agent.name),
            None => agent.name.clone(),
        };
        Ok(Self {
            agent,
            format,
            filter,
            model,
            label,
            mode: settings.cli.default_mode,
        })
    }

    fn is_same_call(&self, other: &Self) -> bool {
        let (own, other_agent) = (&self.agent, &other.agent);
        own.name == other_agent.name
            && self.model == other.model
            && self.mode == other.mode
            && own.args() == other_agent.args()
    }

    /// Whether the same model of the same agent works. The model of a custom agent is unknown, so its program decides.
    fn is_same_model(&self, other: &Self) -> bool {
        let (own, other_agent) = (&self.agent, &other.agent);
        let is_same_agent = own.name == other_agent.name && own.program == other_agent.program;
        is_same_agent && self.model == other.model
    }
}

/// What a reviewer looks for.
fn read_instructions(path: &Path) -> Result<String, CliError> {
    let bytes = files::read(path, ReadRule::PROMPT).map_err(|source| ReviewError::Prompt {
        path: path.to_owned(),
        source,
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The settings for another agent than that of the run, whose model, transcript format and extra arguments mean nothing
/// to it.
fn settings_of_agent(settings: &Settings, name: &str) -> Settings {
    let mut own = settings.clone();
    name.clone_into(&mut own.cli.backend);
    (own.cli.model, own.cli.transcript, own.cli.jq_filter) = (None, None, None);
    own.cli.extra_args.clear();
    own
}

/// A reviewer is never interactive and never resumes a session.
fn settings_of_reviewer(
    settings: &Settings,
    first: &str,
    request: RoleRequest<'_>,
) -> Result<Settings, CliError> {
    let mut own = settings_of_role(settings, first, request)?;
    own.session = Session::Fresh;
    own.cli.default_mode = Mode::Autonomous;
    Ok(own)
}

/// The settings with which the agent of a role is resolved.
fn settings_of_role(
    settings: &Settings,
    first: &str,
    request: RoleRequest<'_>,
) -> Result<Settings, CliError> {
    let name = request.agent.unwrap_or(first);
    let mut own = match name == first || name == settings.cli.backend {
        true => settings.clone(),
        false => settings_of_agent(settings, name),
    };
    if let Some(model) = request.model {
        let takes_no_model = match AGENTS.iter().find(|agent| agent.name == name) {
            Some(agent) => agent.model_flag.is_none(),
            None => true,
        };
        if takes_no_model {
            return Err(CliError::RoleWithoutModel {
                key: request.key.to_owned(),
                agent: name.to_owned(),
            });
        }
        own.cli.model = Some(model.to_owned());
    }
    own.cli.extra_args.extend(request.args.iter().cloned());
    Ok(own)
}
