//! A request for a new run: loads the configuration, then runs the loop or prints what it would do.

use std::path::PathBuf;

use crate::agent;
use crate::config::{PartialSettings, Settings};
use crate::engine::AskPolicy;
use crate::run::Host;
use crate::store::NewRunId;
use crate::trust::Consent;
use crate::ui::Terminal;

use super::agent_mode;
use super::args::DisplayArguments;
use super::consent;
use super::context::Context;
use super::dry_run;
use super::error::CliError;
use super::exit::Exit;
use super::front_end;
use super::prompt;
use super::run_plan::RunPlan;

/// What a dry run prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DryRun {
    None,
    /// The first iteration's command line.
    Call,
    /// The first iteration's prompt.
    Prompt,
}

/// A request for a new run, from the command line.
pub(super) struct RunRequest<'a> {
    pub(super) flags: PartialSettings,
    pub(super) config: Option<&'a PathBuf>,
    pub(super) consent: Consent,
    pub(super) asking: AskPolicy,
    /// The id of the run; `None` for a generated one.
    pub(super) run_id: Option<NewRunId>,
    pub(super) dry_run_mode: DryRun,
    pub(super) show: DisplayArguments,
}

impl RunRequest<'_> {
    pub(super) fn execute(self, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
        let context = Context::here(host)?;
        let mut loaded = context.load(self.flags.clone(), self.config)?;
        loaded
            .warnings
            .iter()
            .try_for_each(|warning| terminal.warn(warning))
            .map_err(CliError::Output)?;
        // A dry run executes only a driver's script.
        let runs_commands = self.dry_run_mode == DryRun::None || names_driver(&loaded.settings);
        if runs_commands {
            consent::require(&context, &loaded, self.consent, terminal)?;
        }
        if self.dry_run_mode == DryRun::None {
            agent_mode::fall_back_to_autonomous(&mut loaded.settings, &self.show, terminal)?;
        }
        let hook_directory = context.command_directory(&loaded, "hooks");
        let mut plan = RunPlan::new(&context, loaded.settings)?;
        plan.hook_directory = Some(hook_directory);
        plan.show_warnings(terminal)?;
        (plan.flags, plan.asking, plan.run_id) = (self.flags, self.asking, self.run_id);
        match self.dry_run_mode {
            DryRun::None => {}
            DryRun::Call => return dry_run::show(&plan, &context, self.show.json_on_stdout(), terminal),
            DryRun::Prompt => return dry_run::show_prompt(&plan, terminal),
        }
        prompt::refuse_template(&plan.prompt)?;
        let show = agent_mode::force_line_output(&plan.settings, self.show);
        // Warn before the front ends start, because the TUI owns the terminal from then on, but not before an error.
        front_end::wants_tui(&show, terminal)?;
        if plan.settings.gates.is_empty() && !show.json_on_stdout() {
            let text =
                "no gates are configured, so ralph cannot verify that the work is done (see docs/gates.md)";
            terminal.warn(text).map_err(CliError::Output)?;
        }
        let front_ends = front_end::front_ends_for(&show, &plan.settings, &context.host, terminal)?;
        plan.execute(&context, front_ends)
    }
}

/// Whether the agent of any role is a driver script.
fn names_driver(settings: &Settings) -> bool {
    let hats = settings.hats.values().filter_map(|hat| hat.agent.as_ref());
    hats.chain([&settings.cli.backend])
        .chain(&settings.cli.fallback)
        .any(|agent| agent.starts_with(agent::DRIVER))
}
