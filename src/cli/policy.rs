//! Converts settings to the engine's policy.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use crate::agent::{AGENTS, AgentAccount, Evidence, ResolvedAgent};
use crate::config::{AdapterSettings, Cli, EventLoop, Mode, Settings};
use crate::engine::{
    AgentRules, AgentVersions, Agents, Check, EndSignal, HookKind, Markers, MessageBoundaries, Policy,
    QuestionInstructions, QuestionRules, SessionSource, StatusBlock, TranscriptFeatures, WorkspaceChecks,
};
use crate::policy::{
    AttemptTimeouts, CostAvailability, CostRules, Gate, Hooks, Limits, Notify, NotifyEvent, Prices,
    QuotaRules, Seconds, Timing,
};
use crate::run::RunAccounts;
use crate::store::AccountName;
use crate::transcript::Capabilities;

use super::roles::{PlannedAgent, PlannedAgents};
use super::run_plan::RunPlan;

/// Default idle timeouts: for structured streams, for plain text, while a tool runs.
const IDLE_STRUCTURED: Duration = Duration::from_secs(600);
const IDLE_PLAIN: Duration = Duration::from_secs(1800);
const IDLE_IN_TOOL: Duration = Duration::from_secs(3600);

pub(super) fn policy(plan: &RunPlan, started_at: Timestamp) -> Policy {
    let event_loop = &plan.settings.event_loop;
    Policy {
        started_at,
        zone: crate::ui::local_time_zone(),
        seed: fastrand::u64(..),
        limits: limits(event_loop),
        budgets: plan.settings.budgets.clone(),
        timing: timing(event_loop),
        markers: Markers::new(event_loop.completion_promise.clone(), event_loop.completion_match)
            .with_status_block(match event_loop.completion_status_block {
                true => StatusBlock::Claims,
                false => StatusBlock::Ignored,
            }),
        gates: plan.settings.gates.clone(),
        hats: plan.hats.clone(),
        required_events: event_loop.required_events.clone(),
        guardrails: event_loop.guardrails.clone(),
        agents: Agents {
            rules: plan
                .agents
                .agents
                .iter()
                .map(|agent| agent_rules(plan, agent))
                .collect(),
            by_hat: plan.agents.by_hat.clone(),
            fallback: plan.agents.fallback.clone(),
            fallback_after: plan.settings.cli.fallback_after.duration(),
        },
        reviewers: plan.agents.reviewers.clone(),
        on_declared_failure: event_loop.on_declared_failure,
        on_limit: event_loop.on_limit,
        checkpoint: checkpoint(event_loop),
        on_rejected: event_loop.on_rejected,
        session: plan.settings.session,
        workspace_checks: WorkspaceChecks {
            progress: match event_loop.max_no_progress {
                0 => Check::Off,
                _ => Check::On,
            },
            allowed_paths: match plan.settings.event_loop.allowed_paths.is_empty() {
                true => Check::Off,
                false => Check::On,
            },
        },
        snapshots: match plan.settings.snapshots.enabled {
            true => Check::On,
            false => Check::Off,
        },
        questions: questions(&plan.settings),
        hooks: configured_hooks(&plan.settings.hooks, &plan.settings.notify),
    }
}

/// The rules of one agent of the run.
fn agent_rules(plan: &RunPlan, planned: &PlannedAgent) -> AgentRules {
    let agent = &planned.agent;
    let adapter = plan
        .settings
        .adapters
        .get(agent.adapter())
        .cloned()
        .unwrap_or_default();
    let capabilities = planned.format.capabilities;
    AgentRules {
        name: agent.name.clone(),
        label: planned.label.clone(),
        account: account_of(&plan.settings, agent).map(|account| account.label()),
        costs: costs(plan, planned),
        timeouts: timeouts(&plan.settings.cli, planned.mode, &adapter, capabilities),
        transcript: TranscriptFeatures {
            messages: match planned.mode {
                Mode::Interactive => MessageBoundaries::Screen,
                Mode::Autonomous if capabilities.messages => MessageBoundaries::Delimited,
                Mode::Autonomous => MessageBoundaries::LinesOnly,
            },
            end: if capabilities.terminal_event {
                EndSignal::TerminalEvent
            } else {
                EndSignal::ExitOnly
            },
        },
        auth_hint: agent.auth_hint.clone(),
        limit_phrases: agent.limit_phrases.clone(),
        session_source: match agent.driver() {
            Some(driver) if driver.resumes_sessions() => SessionSource::Driver,
            Some(_) | None => SessionSource::Transcript,
        },
        permission_denial_help: agent.driver().map(|driver| driver.permission_denial_help.clone()),
        versions: versions(agent),
    }
}

/// The account of an agent, if other runs can share it.
fn account_of(settings: &Settings, agent: &ResolvedAgent) -> Option<AccountName> {
    let found = agent.account(&|name| std::env::var_os(name));
    let account = match (&settings.quota.account, &found) {
        (Some(name), _) | (None, AgentAccount::Named(name)) => Some(name.as_str()),
        (None, AgentAccount::Default) => None,
        (None, AgentAccount::Unknown) => return None,
    };
    Some(AccountName::new(&agent.name, account))
}

/// The accounts of all agents, and the rules for sharing them.
pub(super) fn accounts(settings: &Settings, agents: &PlannedAgents) -> RunAccounts {
    let agents = || agents.agents.iter().map(|planned| &planned.agent);
    RunAccounts {
        of_agents: agents().map(|agent| account_of(settings, agent)).collect(),
        agents: agents().map(|agent| agent.name.clone()).collect(),
        rules: QuotaRules {
            reserve: settings.quota.reserve,
            parallel: settings.quota.parallel,
            longest_wait: settings.event_loop.max_wait_seconds.duration(),
        },
        budgets: settings.budgets.clone(),
        zone: crate::ui::local_time_zone(),
    }
}

fn versions(agent: &ResolvedAgent) -> AgentVersions {
    let row = AGENTS.iter().find(|row| row.name == agent.name);
    AgentVersions {
        installed: agent.version.clone(),
        tested: row.and_then(|row| match row.tested_with {
            Evidence::Version(version) | Evidence::Captured(version) => Some(version.to_owned()),
            Evidence::Documentation => None,
        }),
    }
}

/// The prompt explains questions only if the user has prepared for them.
fn questions(settings: &Settings) -> QuestionRules {
    let event_loop = &settings.event_loop;
    let is_prepared = event_loop.ask_timeout.is_some()
        || settings.hooks.on_ask.is_some()
        || settings.notify.includes(NotifyEvent::Ask);
    QuestionRules {
        timeout: event_loop.ask_timeout.map(Seconds::duration),
        default: Some(event_loop.ask_default.clone()).filter(|answer| answer != "stop"),
        instructions: match is_prepared {
            true => QuestionInstructions::InPrompt,
            false => QuestionInstructions::Omitted,
        },
    }
}

fn checkpoint(event_loop: &EventLoop) -> Option<Gate> {
    let command = event_loop.checkpoint.as_ref()?;
    Some(Gate {
        timeout: event_loop.checkpoint_timeout,
        ..Gate::new("checkpoint", command)
    })
}

fn configured_hooks(hooks: &Hooks, notify: &Notify) -> BTreeSet<HookKind> {
    let commands = [
        (HookKind::Start, &hooks.on_start),
        (HookKind::Iteration, &hooks.on_iteration),
        (HookKind::Complete, &hooks.on_complete),
        (HookKind::Fail, &hooks.on_fail),
        (HookKind::RateLimit, &hooks.on_rate_limit),
        (HookKind::Ask, &hooks.on_ask),
    ];
    let configured = commands.into_iter().filter(|(_, command)| command.is_some());
    let notified = HookKind::NOTIFIED.into_iter();
    let notified = notified.filter(|(_, event)| notify.includes(*event));
    let configured = configured.map(|(kind, _)| kind);
    configured.chain(notified.map(|(kind, _)| kind)).collect()
}

fn limits(event_loop: &EventLoop) -> Limits {
    Limits {
        iterations: event_loop.max_iterations,
        runtime: event_loop.max_runtime_seconds.duration(),
        cost_usd: event_loop.max_cost_usd,
        tokens: event_loop.max_tokens,
        consecutive_failures: event_loop.max_consecutive_failures,
        limit_wait: event_loop.max_wait_seconds.duration(),
        no_progress: event_loop.max_no_progress,
        output_bytes: event_loop.max_output_bytes,
        free_disk_bytes: event_loop.min_free_disk_bytes,
    }
}

fn costs(plan: &RunPlan, planned: &PlannedAgent) -> CostRules {
    let prices = plan.prices.clone().map(Prices::new);
    let name = &planned.agent.display_name;
    let impossible = |why: &str| CostAvailability::Unavailable {
        reason: format!("{name} {why}"),
    };
    let Capabilities { costs, usage, .. } = planned.format.capabilities;
    let availability = match (costs, usage, &prices) {
        (true, _, _) | (false, true, Some(_)) => CostAvailability::Available,
        (false, true, None) => {
            impossible("does not report costs, and no price list is configured (`pricing` in ralph.yml)")
        }
        (false, false, _) => impossible("reports neither costs nor tokens"),
    };
    CostRules {
        prices,
        model: planned.model.clone(),
        availability,
    }
}

fn timing(event_loop: &EventLoop) -> Timing {
    Timing {
        after_result: event_loop.result_grace_seconds.duration(),
        stop_grace: event_loop.stop_grace_seconds.duration(),
        cooldown: event_loop.cooldown_seconds.duration(),
    }
}

/// A configured idle timeout always applies; the defaults depend on whether a tool is running. In interactive mode the
/// user sees the agent, so only `cli.idle_timeout_secs` applies.
fn timeouts(cli: &Cli, mode: Mode, adapter: &AdapterSettings, capabilities: Capabilities) -> AttemptTimeouts {
    let default = if capabilities.terminal_event {
        IDLE_STRUCTURED
    } else {
        IDLE_PLAIN
    };
    let configured = match mode {
        Mode::Autonomous => adapter.idle_timeout.map(Seconds::nonzero),
        Mode::Interactive => Some(cli.idle_timeout_secs.nonzero()),
    };
    AttemptTimeouts {
        wall: adapter.timeout.map(Seconds::duration),
        idle: configured.unwrap_or(Some(default)),
        idle_in_tool: configured.unwrap_or(Some(IDLE_IN_TOOL)),
    }
}
