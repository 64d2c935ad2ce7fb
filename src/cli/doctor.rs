//! `ralph doctor`: looks at everything that a run stands on, and lets the `doctor` room judge it.

use std::io::IsTerminal;
use std::path::Path;

use jiff::Timestamp;

use crate::agent::{self, DRIVER};
use crate::config::{Loaded, Origin, Settings};
use crate::doctor::{
    self, Clock, Disk, DoctorInput, Environment, Finding, Git, GitIgnored, Screen, Size, State, Workspace,
};
use crate::store::{Lock, RunIndex, size_of, time_of};
use crate::ui::{Terminal, Tone, clean, units};

use super::agents::json;
use super::args::ListArguments;
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::trust::{self, Consent};
use super::{config, drivers, hats};

/// Where ralph keeps its things in a workspace.
const STATE: &str = ".agent";

pub(super) fn doctor(arguments: &ListArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let context = Context::here()?;
    let loaded = context.load(arguments.choice.overrides()?, arguments.choice.config.as_ref());
    let (loaded, problem) = match loaded {
        Ok(loaded) => (Some(loaded), None),
        Err(CliError::Config(problem)) => (None, Some(problem)),
        Err(error) => return Err(error),
    };
    let defaults = Settings::default();
    let settings = loaded.as_ref().map_or(&defaults, |loaded| &loaded.settings);
    let agents = agent::survey(&context.probe(), settings);
    let configuration = match (&loaded, &problem) {
        (Some(loaded), _) => Ok(loaded),
        (None, Some(problem)) => Err(problem),
        (None, None) => return Ok(Exit::Failed),
    };
    let overridden = loaded.as_ref().map(overridden).unwrap_or_default();
    let mut findings = doctor::examine(&DoctorInput {
        configuration,
        overridden: &overridden,
        agents: &agents,
    });
    if let Some(loaded) = &loaded {
        let consent = Consent::of(arguments.choice.trust);
        findings.extend(hats::findings(&loaded.settings));
        findings.extend(doctor::check_commands(&loaded.settings, context.probe().as_ref()));
        findings.extend(driver_findings(&context, loaded, consent)?);
        findings.extend(trust::findings(&context, loaded, consent));
    }
    findings.extend(doctor::check_environment(&environment(&context)));
    let text = if arguments.json {
        json(&findings)
    } else {
        doctor_text(&findings, terminal)
    };
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(if doctor::is_broken(&findings) {
        Exit::Failed
    } else {
        Exit::Success
    })
}

/// Settings that differ from their defaults, with their origin.
fn overridden(loaded: &Loaded) -> Vec<(String, Origin)> {
    let settings = serde_json::to_value(&loaded.settings).unwrap_or_default();
    let mut rows = Vec::new();
    config::flatten("", &settings, &mut rows);
    let overridden = rows.into_iter().map(|(key, _)| {
        let origin = loaded.origin(&key);
        (key, origin)
    });
    overridden
        .filter(|(_, origin)| *origin != Origin::Default)
        .collect()
}

/// The configured driver, if it may be run.
fn driver_findings(context: &Context, loaded: &Loaded, consent: Consent) -> Result<Vec<Finding>, CliError> {
    let Some(name) = loaded.settings.cli.backend.strip_prefix(DRIVER) else {
        return Ok(Vec::new());
    };
    if trust::is_settled(context, loaded, consent)? {
        return Ok(drivers::examine(name, &loaded.settings, context.probe().as_ref()));
    }
    Ok(vec![Finding {
        area: "drivers",
        subject: name.to_owned(),
        state: State::Warning,
        detail: "not asked: it is not allowed yet".to_owned(),
        remedy: Some("to see what it would run, and to allow it: ralph trust --show, ralph trust".to_owned()),
    }])
}

fn environment(context: &Context) -> Environment {
    let index = RunIndex::of(&context.cwd);
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
    let stdout = std::io::stdout();
    let size = rustix::termios::tcgetwinsize(&stdout).ok();
    Environment {
        workspace: workspace(context),
        terminal: Screen {
            size: size
                .filter(|_| stdout.is_terminal())
                .map(|size| (size.ws_col, size.ws_row)),
            term: variable("TERM"),
            locale,
            no_colour: variable("NO_COLOR").is_some(),
        },
        disk: Disk {
            free: free_space(&context.cwd).map(sized),
            runs: units::count(index.len() as u64, "run"),
            kept: sized(if index.is_empty() {
                0
            } else {
                size_of(&index.runs())
            }),
        },
        clock: Clock {
            now: Timestamp::now(),
            newest_run: index.newest_first().next().and_then(time_of),
        },
    }
}

fn workspace(context: &Context) -> Workspace {
    let state = context.cwd.join(STATE);
    // A run writes into its own directory, once there is one.
    let place = if state.is_dir() { &state } else { &context.cwd };
    let git = trust::git(context);
    let seen = match git.changes(&context.cwd) {
        None => Git::NoRepository,
        Some(Err(why)) => Git::Unreadable(why),
        Some(Ok((branch, changed))) => Git::Repository { branch, changed },
    };
    let exposed =
        matches!(seen, Git::Repository { .. }) && state.is_dir() && !git.ignores(&context.cwd, STATE);
    Workspace {
        writable: tempfile::tempfile_in(place)
            .map(drop)
            .map_err(|error| std::io::Error::from(error.kind()).to_string()),
        path: context.cwd.clone(),
        git: seen,
        holder: Lock::holder(&state.join("lock")).map(|holder| holder.to_string()),
        runs: if exposed { GitIgnored::No } else { GitIgnored::Yes },
    }
}

fn sized(bytes: u64) -> Size {
    let text = units::bytes(bytes);
    Size { bytes, text }
}

fn free_space(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

pub(super) fn doctor_text(findings: &[Finding], terminal: &Terminal) -> String {
    let mut text = String::new();
    let mut area = "";
    for finding in findings {
        if finding.area != area {
            area = finding.area;
            text.push_str(&format!("{}{area}\n", if text.is_empty() { "" } else { "\n" }));
        }
        let (mark, tone) = match finding.state {
            State::Good => ("✓", Tone::Good),
            State::Absent => ("·", Tone::Faint),
            State::Warning => ("!", Tone::Warning),
            State::Broken => ("✗", Tone::Bad),
        };
        let detail = clean::clean(&finding.detail).replace('\n', "\n      ");
        text.push_str(&format!(
            "  {} {:<16} {detail}\n",
            terminal.tinted(mark, tone),
            clean::clean(&finding.subject)
        ));
        if let Some(remedy) = &finding.remedy
            && matches!(finding.state, State::Warning | State::Broken)
        {
            text.push_str(&format!("    {:<16} → {remedy}\n", ""));
        }
    }
    text
}
