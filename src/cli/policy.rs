//! From settings to the engine's rules.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::config::{
    AdapterSettings, Cli, CompletionMatch, EventLoop, Gate, Mode, ModelPrice, OnFailure, Session, Settings,
};
use crate::engine::{
    CostFigures, CostRules, Ending, GateRule, Limits, Markers, Messages, OnDeclaredFailure, Placement,
    Policy, Price, Prices, Reading, SessionRule, Timing,
};
use crate::transcript::Capabilities;

use super::run::Plan;

/// Silence that is too long: for structured streams, for plain text, while a tool runs.
const IDLE_STRUCTURED: Duration = Duration::from_secs(600);
const IDLE_PLAIN: Duration = Duration::from_secs(1800);
const IDLE_IN_TOOL: Duration = Duration::from_secs(3600);

pub(super) fn policy(plan: &Plan, started_at: Timestamp) -> Policy {
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
        zone: TimeZone::system(),
        seed: fastrand::u64(..),
        limits: limits(event_loop),
        costs: costs(plan, &adapter),
        timing: watched_timing(&plan.settings.cli, timing(event_loop, &adapter, capabilities)),
        markers: markers(event_loop),
        gates: gates(&plan.settings),
        hats: plan.hats.clone(),
        reading: Reading {
            messages: match plan.settings.cli.default_mode {
                Mode::Interactive => Messages::Watched,
                Mode::Autonomous if capabilities.messages => Messages::Delimited,
                Mode::Autonomous => Messages::Absent,
            },
            ending: if capabilities.terminal_event {
                Ending::TerminalEvent
            } else {
                Ending::ExitOnly
            },
        },
        auth_hint: plan.agent.auth_hint.clone(),
        limit_phrases: plan.agent.limits.clone(),
        on_declared_failure: match event_loop.on_declared_failure {
            OnFailure::Stop => OnDeclaredFailure::Stop,
            OnFailure::Retry => OnDeclaredFailure::Retry,
        },
        session: match plan.settings.session {
            Session::Fresh => SessionRule::Fresh,
            Session::Continue => SessionRule::Continue,
        },
    }
}

fn limits(event_loop: &EventLoop) -> Limits {
    Limits {
        iterations: event_loop.max_iterations,
        runtime: Duration::from_secs(event_loop.max_runtime_seconds),
        cost_usd: event_loop.max_cost_usd,
        tokens: event_loop.max_tokens,
        consecutive_failures: event_loop.max_consecutive_failures,
        no_progress: event_loop.max_no_progress,
    }
}

fn costs(plan: &Plan, adapter: &AdapterSettings) -> CostRules {
    let prices = plan.prices.as_ref().map(|list| {
        let rows = list.iter().map(|(model, price)| (model.clone(), row(*price)));
        Prices::new(rows)
    });
    let name = &plan.agent.display_name;
    let impossible = |why: &str| CostFigures::Impossible {
        why: format!("{name} {why}"),
    };
    let Capabilities { costs, usage, .. } = plan.format.capabilities;
    let figures = match (costs, usage, &prices) {
        (true, _, _) | (false, true, Some(_)) => CostFigures::Possible,
        (false, true, None) => {
            impossible("does not report what it costs, and there is no price list (`pricing` in ralph.yml)")
        }
        (false, false, _) => impossible("reports neither what it costs nor how many tokens it uses"),
    };
    let model = plan.settings.cli.model.clone().or_else(|| adapter.model.clone());
    CostRules {
        prices,
        model,
        figures,
    }
}

fn row(price: ModelPrice) -> Price {
    let ModelPrice {
        input,
        output,
        cache_read,
        cache_write,
    } = price;
    Price {
        input,
        output,
        cache_read,
        cache_write,
    }
}

/// What the user says about silence holds always; what ralph assumes depends on what the agent is doing.
fn timing(event_loop: &EventLoop, adapter: &AdapterSettings, capabilities: Capabilities) -> Timing {
    let assumed = if capabilities.terminal_event {
        IDLE_STRUCTURED
    } else {
        IDLE_PLAIN
    };
    let told = adapter
        .idle_timeout
        .map(|seconds| (seconds > 0).then(|| Duration::from_secs(seconds)));
    Timing {
        wall: adapter.timeout.map(Duration::from_secs),
        idle: told.unwrap_or(Some(assumed)),
        idle_in_tool: told.unwrap_or(Some(IDLE_IN_TOOL)),
        after_result: Duration::from_secs(event_loop.result_grace_seconds),
        stop_grace: Duration::from_secs(event_loop.stop_grace_seconds),
        cooldown: Duration::from_secs(event_loop.cooldown_seconds),
    }
}

/// Somebody who watches sees more than a rule of thumb: only what was said about interactive mode holds.
fn watched_timing(cli: &Cli, timing: Timing) -> Timing {
    match cli.default_mode {
        Mode::Autonomous => timing,
        Mode::Interactive => {
            let idle = (cli.idle_timeout_secs > 0).then(|| Duration::from_secs(cli.idle_timeout_secs));
            Timing {
                idle,
                idle_in_tool: idle,
                ..timing
            }
        }
    }
}

fn markers(event_loop: &EventLoop) -> Markers {
    let placement = match event_loop.completion_match {
        CompletionMatch::Line => Placement::Line,
        CompletionMatch::Anywhere => Placement::Anywhere,
    };
    Markers::new(event_loop.completion_promise.clone(), placement)
}

pub(super) fn gates(settings: &Settings) -> Vec<GateRule> {
    settings.gates.iter().map(gate).collect()
}

fn gate(gate: &Gate) -> GateRule {
    GateRule {
        name: gate.name.clone(),
        command: gate.run.clone(),
        timeout: Duration::from_secs(gate.timeout),
        cwd: gate.cwd.clone(),
        environment: gate.env.clone().into_iter().collect(),
    }
}
