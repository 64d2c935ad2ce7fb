//! `ralph run --dry-run`: prints the command line of the first iteration without running it.

use std::io::IsTerminal;
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

use crate::agent::{NESTED_SESSION, ResolvedAgent, StdinSource, Terminal as AgentTerminal};
use crate::engine::Policy;
use crate::event::Secrets;
use crate::policy::{CostAvailability, Gate, Hooks, Seconds, Session};
use crate::run::PromptSource;
use crate::ui::Terminal;

use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::policy::policy;
use super::roles::PlannedAgent;
use super::run_plan::RunPlan;

/// The first iteration's command line, environment and limits.
#[derive(Debug, Serialize)]
struct DryRunCall {
    agent: String,
    agent_version: Option<String>,
    program: String,
    args: Vec<String>,
    cwd: String,
    stdin: String,
    /// `pipe`, `pty`, or `screen` if the user sees the agent's TUI.
    stdout: &'static str,
    environment_set: Vec<String>,
    environment_removed: Vec<&'static str>,
    transcript: &'static str,
    session: String,
    prompt: PromptFacts,
    limits: LimitFacts,
    /// Globs; empty allows everything.
    allowed_paths: Vec<String>,
    /// Which agent works in which role, if the run has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    roles: Vec<RoleFacts>,
    gates: Vec<String>,
    hooks: Vec<String>,
}

/// The agent of one role.
#[derive(Debug, Serialize)]
struct RoleFacts {
    role: String,
    agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    program: String,
    args: Vec<String>,
}

#[derive(Debug, Serialize)]
struct PromptFacts {
    source: String,
    bytes: usize,
}

#[derive(Debug, Serialize)]
struct LimitFacts {
    max_iterations: u64,
    max_runtime_seconds: u64,
    max_cost_usd: Option<f64>,
    /// Whether the agent reports costs, or they can be calculated.
    max_cost_enforceable: bool,
    max_tokens: Option<u64>,
    max_consecutive_failures: u64,
    /// 0 means no limit.
    max_no_progress: u64,
    cooldown_seconds: u64,
    wall_seconds: Option<u64>,
    idle_seconds: Option<u64>,
    idle_in_tool_seconds: Option<u64>,
}

pub(super) fn show(
    plan: &RunPlan,
    context: &Context,
    json: bool,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let call = describe(plan, context)?;
    let text = if json {
        serde_json::to_string_pretty(&call).unwrap_or_default() + "\n"
    } else {
        call.as_text()
    };
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

/// Prints the exact prompt of the first iteration.
pub(super) fn show_prompt(plan: &RunPlan, terminal: &Terminal) -> Result<Exit, CliError> {
    let (mut prompt, _) = plan.first_call(Path::new("prompt.md"))?;
    // Keep the shell's prompt on its own line.
    if std::io::stdout().is_terminal() && !prompt.ends_with('\n') {
        prompt.push('\n');
    }
    terminal.print(&prompt).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

fn describe(plan: &RunPlan, context: &Context) -> Result<DryRunCall, CliError> {
    let policy = policy(plan, Timestamp::UNIX_EPOCH);
    let prompt_file = context.project()?.runs().join("RUN/iterations/0001/prompt.md");
    let (prompt, invocation) = plan.first_call(&prompt_file)?;
    let planned = plan.agents.of_hat(plan.hats.first());
    let own = environment_of(&planned.agent);
    let hat = plan.hats.first().map(|hat| format!("RALPH_HAT={hat}"));
    let set = [
        "RALPH_RUN_ID=RUN",
        "RALPH_ITERATION=1",
        "RALPH_BIN=(this program)",
        "TMPDIR=(a fresh directory)",
    ];
    Ok(DryRunCall {
        agent: planned.agent.name.clone(),
        agent_version: planned.agent.version.clone(),
        program: invocation.program.display().to_string(),
        args: invocation
            .args
            .iter()
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect(),
        cwd: context.cwd.display().to_string(),
        stdin: match invocation.stdin {
            StdinSource::Null => "/dev/null".to_owned(),
            StdinSource::PromptFile(path) => path.display().to_string(),
            StdinSource::Terminal => "screen".to_owned(),
            StdinSource::Protocol => "messages of the Agent Client Protocol".to_owned(),
        },
        stdout: match invocation.terminal {
            AgentTerminal::Pipe => "pipe",
            AgentTerminal::Pty => "pty",
            AgentTerminal::Interactive => "screen",
        },
        environment_set: own.into_iter().chain(set.map(str::to_owned)).chain(hat).collect(),
        environment_removed: NESTED_SESSION.to_vec(),
        transcript: planned.format.name,
        session: match plan.settings.session {
            Session::Fresh => "fresh".to_owned(),
            Session::Continue => match planned.agent.resume {
                Some(resume) => format!("continue (later iterations add: {})", resume.args("ID").join(" ")),
                None => "continue (the driver receives the id)".to_owned(),
            },
        },
        prompt: PromptFacts {
            source: match &plan.prompt {
                PromptSource::Text(_) => "given".to_owned(),
                PromptSource::File(path) => path.display().to_string(),
            },
            bytes: prompt.len(),
        },
        limits: LimitFacts::of(&policy),
        roles: roles(plan),
        allowed_paths: plan.settings.event_loop.allowed_paths.clone(),
        gates: policy.gates.iter().map(Gate::shown_command).collect(),
        hooks: hooks(&plan.settings.hooks),
    })
}

/// The variables that the agent's settings set, without secret values.
fn environment_of(agent: &ResolvedAgent) -> Vec<String> {
    let own = agent.environment.iter();
    let secrets = Secrets::from_env(own.clone().map(|(name, value)| (name.into(), value.into())));
    own.map(|(name, value)| secrets.redact_text(format!("{name}={value}")))
        .collect()
}

/// Every role with its agent; empty if one agent does all the work.
fn roles(plan: &RunPlan) -> Vec<RoleFacts> {
    if plan.agents.agents.len() == 1 {
        return Vec::new();
    }
    let of_hat = |hat: &String| (format!("hat {hat}"), plan.agents.of_hat(Some(hat.as_str())));
    let hats = plan.settings.hats.keys().map(of_hat);
    let fallbacks = plan.agents.fallback.iter();
    let fallbacks = fallbacks.map(|index| ("fallback".to_owned(), &plan.agents.agents[*index]));
    let facts = |(role, planned): (String, &PlannedAgent)| RoleFacts {
        role,
        agent: planned.agent.name.clone(),
        model: planned.model.clone(),
        program: planned.agent.program.display().to_string(),
        args: planned.agent.args().to_vec(),
    };
    let reviewers = plan
        .agents
        .reviewers
        .by_gate
        .iter()
        .flat_map(|(gate, reviewers)| {
            reviewers.iter().map(move |reviewer| {
                let role = match *gate == reviewer.name {
                    true => format!("review {gate}"),
                    false => format!("review {gate}: {}", reviewer.name),
                };
                (role, &plan.agents.agents[reviewer.agent])
            })
        });
    hats.chain(fallbacks).chain(reviewers).map(facts).collect()
}

impl RoleFacts {
    fn as_text(&self) -> String {
        let model = self.model.iter().map(|model| format!(" ({model})"));
        let args = self.args.iter().map(|argument| format!(" {}", quoted(argument)));
        format!(
            "{}: {}{} · {}{}",
            self.role,
            self.agent,
            model.collect::<String>(),
            self.program,
            args.collect::<String>()
        )
    }
}

fn hooks(hooks: &Hooks) -> Vec<String> {
    let Hooks {
        on_start,
        on_iteration,
        on_complete,
        on_fail,
        on_rate_limit,
        on_ask,
        timeout: _,
    } = hooks;
    let named = [
        ("on_start", on_start),
        ("on_iteration", on_iteration),
        ("on_complete", on_complete),
        ("on_fail", on_fail),
        ("on_rate_limit", on_rate_limit),
        ("on_ask", on_ask),
    ];
    named
        .into_iter()
        .filter_map(|(name, command)| command.as_ref().map(|command| format!("{name}: {command}")))
        .collect()
}

impl DryRunCall {
    fn as_text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: &str| text.push_str(&format!("{name:<12} {value}\n"));
        let version = self
            .agent_version
            .iter()
            .map(|version| format!(" ({version})"))
            .collect::<String>();
        line("agent", &format!("{}{version}", self.agent));
        line("program", &self.program);
        self.args.iter().for_each(|argument| line("", &quoted(argument)));
        line("cwd", &self.cwd);
        line("stdin", &self.stdin);
        line("stdout", self.stdout);
        self.environment_set
            .iter()
            .enumerate()
            .for_each(|(i, set)| line(if i == 0 { "set" } else { "" }, set));
        line("unset", &self.environment_removed.join(" "));
        line("transcript", self.transcript);
        line("session", &self.session);
        line(
            "prompt",
            &format!("{} ({} bytes)", self.prompt.source, self.prompt.bytes),
        );
        line("limits", &self.limits.as_text());
        let paths = match self.allowed_paths.as_slice() {
            [] => "any file may change".to_owned(),
            globs => format!("only these files may change: {}", globs.join(" ")),
        };
        line("paths", &paths);
        let mut list = |name: &str, items: &[String]| {
            let names = std::iter::once(name).chain(std::iter::repeat(""));
            items.iter().zip(names).for_each(|(item, name)| line(name, item));
        };
        list(
            "roles",
            &self.roles.iter().map(RoleFacts::as_text).collect::<Vec<_>>(),
        );
        list("gates", &self.gates);
        if self.gates.is_empty() {
            list("gates", &["none: completion is not verified".to_owned()]);
        }
        list("hooks", &self.hooks);
        text
    }
}

impl LimitFacts {
    fn of(policy: &Policy) -> Self {
        let seconds = |time: Option<std::time::Duration>| time.map(|time| time.as_secs());
        let agent = &policy.agents.rules[policy.agents.of_hat(policy.hats.first())];
        Self {
            max_iterations: policy.limits.iterations,
            max_runtime_seconds: policy.limits.runtime.as_secs(),
            max_cost_usd: policy.limits.cost_usd,
            max_cost_enforceable: agent.costs.availability == CostAvailability::Available,
            max_tokens: policy.limits.tokens,
            max_consecutive_failures: policy.limits.consecutive_failures,
            max_no_progress: policy.limits.no_progress,
            cooldown_seconds: policy.timing.cooldown.as_secs(),
            wall_seconds: seconds(agent.timeouts.wall),
            idle_seconds: seconds(agent.timeouts.idle),
            idle_in_tool_seconds: seconds(agent.timeouts.idle_in_tool),
        }
    }

    fn as_text(&self) -> String {
        let time = |limit: Option<u64>, what: &str| limit.map(|limit| format!("{} {what}", Seconds(limit)));
        let note = match self.max_cost_enforceable {
            true => "",
            false => " (cannot be enforced)",
        };
        let budget = self.max_cost_usd.map(|cost| format!("cost ${cost}{note}"));
        let tokens = self.max_tokens.map(|tokens| format!("{tokens} tokens"));
        [
            format!("{} iterations", self.max_iterations),
            format!("runtime {}", Seconds(self.max_runtime_seconds)),
        ]
        .into_iter()
        .chain(budget)
        .chain(tokens)
        .chain([
            format!("{} failures in a row", self.max_consecutive_failures),
            match self.max_no_progress {
                0 => "no limit of iterations without progress".to_owned(),
                most => format!("{most} iterations without progress"),
            },
        ])
        .chain(time(self.wall_seconds, "per iteration"))
        .chain(time(self.idle_seconds, "without output"))
        .chain(time(self.idle_in_tool_seconds, "without output in a tool"))
        .chain((self.cooldown_seconds > 0).then(|| format!("cooldown {}", Seconds(self.cooldown_seconds))))
        .collect::<Vec<_>>()
        .join(", ")
    }
}

/// Quotes an argument for a shell, on one line.
fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    if argument.chars().any(char::is_control) {
        return format!("$'{}'", argument.escape_default());
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        for (argument, shown) in [
            ("--json", "--json"),
            ("", "''"),
            ("it's", r"'it'\''s'"),
            ("a b", "'a b'"),
            ("a\nb", r"$'a\nb'"),
        ] {
            assert_eq!(quoted(argument), shown);
        }
    }
}
