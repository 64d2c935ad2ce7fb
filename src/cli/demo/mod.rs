//! `ralph demo`: runs the loop on a temporary project with a built-in scripted agent. Needs no agent, network or setup.

mod agent;

pub(super) use agent::run_agent_if_requested;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::event::TEMPORARY_STATE;
use crate::run::{FrontEnds, Host};
use crate::store::StateDirectory;
use crate::ui::tui::OnEnd;
use crate::ui::{Terminal, Verbosity};

use super::args::DemoArguments;
use super::context::{Context, settings_of};
use super::error::CliError;
use super::exit::Exit;
use super::front_end::{self, TuiChoice};
use super::run_plan::RunPlan;

/// The script to fix: its greeting fails the test.
const GREET: &str = "#!/bin/sh\n# Prints a greeting.\necho \"hello $1\"\n";
const TEST: &str = r#"#!/bin/sh
# The project's test: a greeting with a name, and one without.
failed=0
expect() {
    got=$(sh greet.sh "$@")
    if [ "$got" = "$want" ]; then
        echo "ok       greet $*"
    else
        echo "FAILED   greet $*: wanted '$want', got '$got'"
        failed=1
    fi
}
want='Hello, Ada!' expect Ada
want='Hello, world!' expect
exit $failed
"#;
const PROMPT: &str = "Make the project's test pass: run `sh test.sh` and fix greet.sh until it passes.\n";

pub(super) fn demo(arguments: &DemoArguments, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    let project = crate::process::scratch("ralph-demo-").map_err(failed("create a directory"))?;
    // Without --keep, nothing remains of the demo's run either.
    let state = crate::process::scratch(TEMPORARY_STATE).map_err(failed("create a directory"))?;
    let directory = project.path().to_owned();
    create_project(&directory)?;
    print(
        terminal,
        "Running the loop on a small project with a failing test, using a scripted agent.\n\n",
    )?;
    let context = Context {
        cwd: directory.clone(),
        host: host.clone(),
        state: (!arguments.keep).then(|| StateDirectory::at(state.path().to_owned())),
    };
    // Read only the demo's own `ralph.yml`.
    let plan = RunPlan::new(&context, settings_of(&directory.join("ralph.yml"))?)?;
    let verbosity = if arguments.verbose {
        Verbosity::Verbose
    } else {
        Verbosity::Normal
    };
    let choice = TuiChoice::of(arguments.tui, arguments.no_tui).unless(arguments.verbose);
    let visible = match choice.use_tui(terminal)? {
        true => front_end::driver_tui(OnEnd::StayOpen, front_end::theme_here(host), terminal, host)?,
        false => terminal.plain_front_end(verbosity),
    };
    let front_ends = FrontEnds {
        visible,
        record_file: None,
        traces: None,
    };
    let exit = plan.execute(&context, front_ends);
    if arguments.keep {
        let path = project.keep();
        print(terminal, &format!("\nThe project is in {}\n", path.display()))?;
    }
    let exit = exit?;
    if exit == Exit::Success {
        print(
            terminal,
            "\nTo try it on your own project: cd into it, then  ralph run -p \"make the tests pass\"\n",
        )?;
    }
    Ok(exit)
}

fn create_project(directory: &Path) -> Result<(), CliError> {
    let ralph = std::env::current_exe().map_err(failed("find this program"))?;
    let command = serde_json::to_string(&ralph.display().to_string()).unwrap_or_default();
    let config = format!(
        "cli:\n  backend: custom\n  command: {command}\n  args: [{}]\n  prompt_mode: stdin\n  transcript: rtf1\n\
         gates:\n  - name: test\n    run: sh test.sh\nevent_loop:\n  max_iterations: 5\n",
        agent::AGENT_ARGUMENT
    );
    let files = [
        ("greet.sh", GREET),
        ("test.sh", TEST),
        ("PROMPT.md", PROMPT),
        ("ralph.yml", &config),
    ];
    for (name, text) in files {
        fs::write(directory.join(name), text).map_err(failed("write its files"))?;
    }
    git(directory, &["init", "--quiet"])?;
    git(directory, &["add", "."])?;
    git(
        directory,
        &[
            "commit",
            "--quiet",
            "--message",
            "Add a greeting with a failing test",
        ],
    )
}

/// Runs git in the demo project, ignoring the user's git configuration.
fn git(directory: &Path, arguments: &[&str]) -> Result<(), CliError> {
    let identity = [
        "-c",
        "user.name=ralph demo",
        "-c",
        "user.email=demo@localhost",
        "-c",
        "commit.gpgSign=false",
    ];
    let output = Command::new("git")
        .args(identity)
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .stdin(Stdio::null())
        .output()
        .map_err(failed("run git"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(CliError::Demo(format!(
        "git {}: {}",
        arguments[0],
        String::from_utf8_lossy(&output.stderr).trim()
    )))
}

fn failed(what: &'static str) -> impl FnOnce(std::io::Error) -> CliError {
    move |error| CliError::Demo(format!("cannot {what}: {error}"))
}

fn print(terminal: &Terminal, text: &str) -> Result<(), CliError> {
    terminal.print(text).map_err(CliError::Output)
}
