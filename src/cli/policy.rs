//! Converts settings to the engine's policy.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use crate::config::{AdapterSettings, Cli, EventLoop, Mode};
use crate::engine::{
    Check, EndSignal, HookKind, Markers, MessageBoundaries, Policy, SessionSource, TranscriptFeatures,
    WorkspaceChecks,
};
use crate::policy::{CostAvailability, CostRules, Hooks, Limits, Prices, Seconds, Timing};
use crate::transcript::Capabilities;

use super::run_plan::RunPlan;

/// Default idle timeouts: for structured streams, for plain text, while a tool runs.
const IDLE_STRUCTURED: Duration = Duration::from_secs(600);
const IDLE_PLAIN: Duration = Duration::from_secs(1800);
const IDLE_IN_TOOL: Duration = Duration::from_secs(3600);

pub(super) fn policy(plan: &RunPlan, started_at: Timestamp) -> Policy {
    let event_loop = &plan.settings.event_loop;
    let adapter = plan
        .settings
        .adapters
        .get(plan.agent.adapter())
        .cloned()
        .unwrap_or_default();
    let capabilities = plan.format.capabilities;
    Policy {
        started_at,
        zone: crate::ui::local_time_zone(),
        seed: fastrand::u64(..),
        limits: limits(event_loop),
        costs: costs(plan, &adapter),
        timing: interactive_timing(&plan.settings.cli, timing(event_loop, &adapter, capabilities)),
        markers: Markers::new(event_loop.completion_promise.clone(), event_loop.completion_match),
        gates: plan.settings.gates.clone(),
        hats: plan.hats.clone(),
        transcript: TranscriptFeatures {
            messages: match plan.settings.cli.default_mode {
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
        auth_hint: plan.agent.auth_hint.clone(),
        limit_phrases: plan.agent.limit_phrases.clone(),
        on_declared_failure: event_loop.on_declared_failure,
        session: plan.settings.session,
        session_source: match plan.agent.driver() {
            Some(driver) if driver.resumes_sessions() => SessionSource::Driver,
            Some(_) | None => SessionSource::Transcript,
        },
        permission_denial_help: plan
            .agent
            .driver()
            .map(|driver| driver.permission_denial_help.clone()),
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
        hooks: configured_hooks(&plan.settings.hooks),
    }
}

fn configured_hooks(hooks: &Hooks) -> BTreeSet<HookKind> {
    let commands = [
        (HookKind::Start, &hooks.on_start),
        (HookKind::Iteration, &hooks.on_iteration),
        (HookKind::Complete, &hooks.on_complete),
        (HookKind::Fail, &hooks.on_fail),
        (HookKind::RateLimit, &hooks.on_rate_limit),
    ];
    let configured = commands.into_iter().filter(|(_, command)| command.is_some());
    configured.map(|(kind, _)| kind).collect()
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
    }
}

fn costs(plan: &RunPlan, adapter: &AdapterSettings) -> CostRules {
    let prices = plan.prices.clone().map(Prices::new);
    let name = &plan.agent.display_name;
    let impossible = |why: &str| CostAvailability::Unavailable {
        reason: format!("{name} {why}"),
    };
    let Capabilities { costs, usage, .. } = plan.format.capabilities;
    let availability = match (costs, usage, &prices) {
        (true, _, _) | (false, true, Some(_)) => CostAvailability::Available,
        (false, true, None) => {
            impossible("does not report costs, and no price list is configured (`pricing` in ralph.yml)")
        }
        (false, false, _) => impossible("reports neither costs nor tokens"),
    };
    let model = plan.settings.cli.model.clone().or_else(|| adapter.model.clone());
    CostRules {
        prices,
        model,
        availability,
    }
}

/// A configured idle timeout always applies; the defaults depend on whether a tool is running.
fn timing(event_loop: &EventLoop, adapter: &AdapterSettings, capabilities: Capabilities) -> Timing {
    let default = if capabilities.terminal_event {
        IDLE_STRUCTURED
    } else {
        IDLE_PLAIN
    };
    let configured = adapter.idle_timeout.map(Seconds::nonzero);
    Timing {
        wall: adapter.timeout.map(Seconds::duration),
        idle: configured.unwrap_or(Some(default)),
        idle_in_tool: configured.unwrap_or(Some(IDLE_IN_TOOL)),
        after_result: event_loop.result_grace_seconds.duration(),
        stop_grace: event_loop.stop_grace_seconds.duration(),
        cooldown: event_loop.cooldown_seconds.duration(),
    }
}

/// In interactive mode the user sees the agent, so only `cli.idle_timeout_secs` applies.
fn interactive_timing(cli: &Cli, timing: Timing) -> Timing {
    match cli.default_mode {
        Mode::Autonomous => timing,
        Mode::Interactive => {
            let idle = cli.idle_timeout_secs.nonzero();
            Timing {
                idle,
                idle_in_tool: idle,
                ..timing
            }
        }
    }
}
