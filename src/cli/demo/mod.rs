//! `ralph demo`: the real loop on a throw-away project, with a built-in scripted agent. No agent, no network, no
//! setup; what passes in the end is a test that really runs.

mod agent;

pub(super) use agent::play_if_asked;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::process::Supervisors;
use crate::ui::tui::OnEnd;
use crate::ui::{Terminal, Verbosity};

use super::args::DemoArguments;
use super::context::{Context, settings_of};
use super::error::CliError;
use super::exit::Exit;
use super::front_end::{self, TuiChoice};
use super::run::Plan;

/// Greets, but not as its test wants it.
const GREET: &str = "#!/bin/sh\n# Prints a greeting.\necho \"hello $1\"\n";
const TEST: &str = r#"#!/bin/sh
# The project's test: a greeting for a name, and one for nobody in particular.
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
const PROMPT: &str = "Make the project's test pass: run `sh test.sh` and mend greet.sh until it does.\n";

pub(super) fn demo(arguments: &DemoArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let project = crate::process::scratch("ralph-demo-").map_err(failed("make a directory"))?;
    let place = project.path().to_owned();
    lay_out(&place)?;
    say(
        terminal,
        "A small project with a failing test, a scripted agent, and the real loop.\n\n",
    )?;
    let context = Context {
        cwd: place.clone(),
        supervisors: Supervisors::current(),
    };
    // The demo's own `ralph.yml` is read, and nothing else.
    let plan = Plan::make(&context, settings_of(&place.join("ralph.yml"))?)?;
    let verbosity = if arguments.verbose {
        Verbosity::Verbose
    } else {
        Verbosity::Normal
    };
    let wanted = TuiChoice::of(arguments.tui, arguments.no_tui).unless(arguments.verbose);
    let mut front_end = match wanted.is_granted(terminal)? {
        true => front_end::driver(&place, OnEnd::Stay, terminal)?,
        false => terminal.plain_face(verbosity),
    };
    let exit = plan.execute(&context, front_end.as_mut());
    drop(front_end);
    if arguments.keep {
        let kept = project.keep();
        say(terminal, &format!("\nThe project is in {}\n", kept.display()))?;
    }
    let exit = exit?;
    if exit == Exit::Success {
        say(
            terminal,
            "\nNow with your own: cd into a project, then  ralph run -p \"make the tests pass\"\n",
        )?;
    }
    Ok(exit)
}

fn lay_out(place: &Path) -> Result<(), CliError> {
    let ralph = std::env::current_exe().map_err(failed("find this program"))?;
    let command = serde_json::to_string(&ralph.display().to_string()).unwrap_or_default();
    let config = format!(
        "cli:\n  backend: custom\n  command: {command}\n  args: [{}]\n  prompt_mode: stdin\n  transcript: rtf1\n\
         gates:\n  - name: test\n    run: sh test.sh\nevent_loop:\n  max_iterations: 5\n",
        agent::ASKED
    );
    let files = [
        ("greet.sh", GREET),
        ("test.sh", TEST),
        ("PROMPT.md", PROMPT),
        ("ralph.yml", &config),
    ];
    for (name, text) in files {
        fs::write(place.join(name), text).map_err(failed("write its files"))?;
    }
    git(place, &["init", "--quiet"])?;
    git(place, &["add", "."])?;
    git(
        place,
        &[
            "commit",
            "--quiet",
            "--message",
            "A greeting that is not right yet",
        ],
    )
}

/// In the demo's own project only, and untouched by the user's git configuration.
fn git(place: &Path, arguments: &[&str]) -> Result<(), CliError> {
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
        .current_dir(place)
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

fn say(terminal: &Terminal, text: &str) -> Result<(), CliError> {
    terminal.print(text).map_err(CliError::Output)
}
