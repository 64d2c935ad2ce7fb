//! `ralph worker`, `ralph fleet` and `ralph plan … --engine`: start `ralph-fleet`, which runs plans on many machines.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use crate::run::Host;
use crate::ui::{ColorChoice, Terminal};

use super::error::CliError;
use super::exit::Exit;
use super::fleet_error::{FleetError, PROGRAM};

/// The variable that names the engine.
const ENGINE: &str = "RALPH_FLEET_ENGINE";
/// The subcommands of `ralph plan` that an engine knows.
const OF_ENGINE: [&str; 8] = ["run", "status", "tell", "retry", "skip", "stop", "logs", "resume"];

/// Hands `ralph plan …` over if it names an engine. Its options are those of `ralph-fleet`, so it is not parsed here.
pub(super) fn start_if_requested(host: &Host) -> Option<ExitCode> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let has_default = host
        .environment()
        .iter()
        .any(|(name, value)| name == ENGINE && !value.is_empty());
    if !is_for_engine(&words, has_default.then_some(ENGINE)) {
        return None;
    }
    let error = match start(&words) {
        Ok(never) => match never {},
        Err(error) => CliError::Fleet(error),
    };
    let terminal = Terminal::new(ColorChoice::Auto, host.ui());
    // If printing fails, only the exit code can report it.
    let _ = terminal.print_error(&error, &error.hints());
    Some(ExitCode::from(error.exit()))
}

fn is_for_engine(words: &[OsString], default: Option<&str>) -> bool {
    let is_known = |word: &OsString| OF_ENGINE.iter().any(|known| word == known);
    let names_engine =
        |word: &OsString| word == "--engine" || word.as_encoded_bytes().starts_with(b"--engine=");
    words.first().is_some_and(|word| word == "plan")
        && words.get(1).is_some_and(is_known)
        && (default.is_some() || words.iter().any(names_engine))
}

/// `ralph worker -h` is `ralph help worker`, because all options after `worker` are those of `ralph-fleet`, which may be missing.
pub(super) fn with_own_help(mut words: Vec<OsString>) -> Vec<OsString> {
    let is_fleet = |word: &OsString| word == "worker" || word == "fleet";
    let is_help = |word: &OsString| word == "-h" || word == "--help";
    if words.len() == 3 && is_fleet(&words[1]) && is_help(&words[2]) {
        words[2] = "help".into();
        words.swap(1, 2);
    }
    words
}

/// `ralph worker …`.
pub(super) fn worker(words: &[OsString]) -> Result<Exit, CliError> {
    let words: Vec<OsString> = [OsString::from("worker")]
        .into_iter()
        .chain(words.iter().cloned())
        .collect();
    match start(&words) {
        Ok(never) => match never {},
        Err(error) => Err(CliError::Fleet(error)),
    }
}

/// `ralph fleet …`.
pub(super) fn fleet(words: &[OsString]) -> Result<Exit, CliError> {
    match start(words) {
        Ok(never) => match never {},
        Err(error) => Err(CliError::Fleet(error)),
    }
}

/// Replaces this process by `ralph-fleet`; returns only if that is impossible.
fn start(words: &[OsString]) -> Result<std::convert::Infallible, FleetError> {
    let path = find().ok_or(FleetError::Missing)?;
    let asked = Command::new(&path)
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let output = asked.map_err(|source| {
        let path = path.clone();
        FleetError::NotStarted { path, source }
    })?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = text.split_whitespace().nth(1).unwrap_or("unknown").to_owned();
    if found != env!("CARGO_PKG_VERSION") {
        return Err(FleetError::OtherVersion { path, found });
    }
    let mut command = Command::new(&path);
    if let Ok(own) = std::env::current_exe() {
        command.env("RALPH_BIN", own);
    }
    let source = command.args(words).exec();
    Err(FleetError::NotStarted { path, source })
}

/// The program beside this one, or on PATH.
fn find() -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    let beside = own.and_then(|own| Some(own.parent()?.join(PROGRAM)));
    beside
        .filter(|path| path.is_file())
        .or_else(|| which::which(PROGRAM).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plan_commands_with_an_engine_are_handed_over() {
        let is_for_engine = |line: &str, default| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            super::is_for_engine(&words, default)
        };
        assert!(is_for_engine("plan run a.md --engine temporal://h", None));
        assert!(is_for_engine("plan status a --engine=temporal://h", None));
        assert!(is_for_engine("plan status a", Some(ENGINE)));
        assert!(!is_for_engine("plan status a", None));
        assert!(!is_for_engine(
            "plan check a.md --engine temporal://h",
            Some(ENGINE)
        ));
        assert!(!is_for_engine("run --engine x", Some(ENGINE)));
    }
}
