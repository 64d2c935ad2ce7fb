//! `ralph understand`: runs a loop that explores the codebase and writes codebase_map.md.

use crate::config::PartialSettings;
use crate::engine::AskPolicy;
use crate::run::Host;
use crate::ui::Terminal;

use super::args::UnderstandArguments;
use super::error::CliError;
use super::exit::Exit;
use super::run_request::{DryRun, RunRequest};
use crate::trust::Consent;

/// The one file that the agent may change.
pub(super) const MAP: &str = "codebase_map.md";
const ITERATIONS: u64 = 5;

const PROMPT: &str = "\
Get to know this codebase and describe it for a developer who will work on it tomorrow.

Write your findings to codebase_map.md in the current directory, and change no other file: do not edit, create, move,
delete, format, install or commit anything else. Running commands that only read is fine.

If codebase_map.md already exists, it is your own work from an earlier iteration: check it against the code, correct what
is wrong, and go deeper where it is thin. Do not start over.

The map should describe, in plain language and with paths:

1. what the project does, and for whom;
2. the parts it consists of: for each directory that matters, what lives there and what does not;
3. how one typical request, command or job travels through the code, file by file;
4. how to build, test, run and check it: the exact commands, tried out where that changes nothing;
5. the conventions that a newcomer would otherwise break: naming, errors, tests, generated files;
6. where the difficult or fragile places are, and why;
7. what you could not find out.

Prefer what you have seen in the code to what a README claims, and note where the two disagree. Keep it under 400 lines.
";

/// Adds the prompt and limits to the flags.
pub(super) fn overrides(mut flags: PartialSettings, iterations: Option<u64>) -> PartialSettings {
    flags.event_loop.prompt = Some(PROMPT.to_owned());
    flags.event_loop.prompt_file = None;
    flags.event_loop.max_iterations = Some(iterations.unwrap_or(ITERATIONS));
    flags.event_loop.allowed_paths = Some(vec![MAP.to_owned()]);
    // Gates verify the code, which does not change here.
    flags.gates = Some(Vec::new());
    flags
}

pub(super) fn understand(
    arguments: &UnderstandArguments,
    terminal: &Terminal,
    host: &Host,
) -> Result<Exit, CliError> {
    let request = RunRequest {
        flags: overrides(arguments.choice.overrides()?, arguments.iterations),
        config: arguments.choice.config.as_ref(),
        asking: AskPolicy::Never,
        run_id: None,
        consent: Consent::of(arguments.choice.trust),
        dry_run_mode: if arguments.dry_run {
            DryRun::Call
        } else {
            DryRun::None
        },
        show: arguments.show.clone(),
    };
    request.execute(terminal, host)
}
