//! `ralph doctor`: collects facts about agents, configuration and environment, and prints the findings of `doctor`.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::agent::{self, CUSTOM, DRIVER};
use crate::config::{LoadedConfig, Origin, Settings, flatten};
use crate::doctor::{
    self, ByteSize, ClockFacts, DiskFacts, DoctorInput, EnvironmentFacts, Finding, FindingState, GitStatus,
    SandboxFacts, TerminalFacts, WorkspaceFacts,
};
use crate::files::free_space;
use crate::process::{Network, sandbox_support};
use crate::run::Host;
use crate::store::{Project, RunIndex, directory_size, time_from_id};
use crate::trust::Consent;
use crate::ui::{ColorChoice, Terminal, pretty_json, units};

use super::args::DoctorArguments;
use super::common::{Overwrite, findings_text, write_private_file};
use super::consent;
use super::context::Context;
use super::doctor_bundle::bundle_text;
use super::driver_check::check_driver;
use super::error::CliError;
use super::exit::Exit;

pub(super) fn doctor(
    arguments: &DoctorArguments,
    terminal: &Terminal,
    host: &Host,
) -> Result<Exit, CliError> {
    let DoctorArguments {
        list: arguments,
        bundle,
        force,
    } = arguments;
    let context = Context::here(host)?;
    let loaded = context.load(arguments.choice.overrides()?, arguments.choice.config.as_ref());
    let (loaded, problem) = match loaded {
        Ok(loaded) => (Some(loaded), None),
        Err(CliError::Config(problem)) => (None, Some(problem)),
        Err(error) => return Err(error),
    };
    let defaults = Settings::default();
    let settings = loaded.as_ref().map_or(&defaults, |loaded| &loaded.settings);
    let agents = agent::check_all(&context.probe(), settings);
    let configuration = match (&loaded, &problem) {
        (Some(loaded), _) => Ok(loaded),
        (None, Some(problem)) => Err(problem),
        (None, None) => return Ok(Exit::Failed),
    };
    let overridden = loaded.as_ref().map(overridden).unwrap_or_default();
    let consent = Consent::of(arguments.choice.trust);
    let missing = configured_problem(&context, loaded.as_ref(), consent)?;
    let mut findings = doctor::check_config_and_agents(&DoctorInput {
        configuration,
        overridden: &overridden,
        agents: &agents,
        configured_problem: missing.as_deref(),
    });
    if let Some(loaded) = &loaded {
        findings.extend(settings_findings(&context, loaded, consent)?);
    }
    findings.extend(doctor::check_environment(&environment(&context)));
    findings.extend(doctor::check_sandbox(&sandbox(&context)));
    if let Some(path) = bundle {
        return write_bundle(
            path,
            Overwrite::from_flag(*force),
            &context,
            loaded.as_ref(),
            &findings,
        );
    }
    let text = if arguments.json {
        pretty_json(&findings)
    } else {
        findings_text(&findings, terminal)
    };
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(if doctor::is_broken(&findings) {
        Exit::Failed
    } else {
        Exit::Success
    })
}

/// The findings about hats, commands, the driver and trust.
fn settings_findings(
    context: &Context,
    loaded: &LoadedConfig,
    consent: Consent,
) -> Result<Vec<Finding>, CliError> {
    let mut findings = doctor::check_hats(&loaded.settings);
    findings.extend(doctor::check_commands(&loaded.settings, context.probe().as_ref()));
    findings.extend(driver_findings(context, loaded, consent)?);
    findings.extend(doctor::check_trust(
        context.trust(),
        loaded,
        &context.cwd,
        consent,
    ));
    Ok(findings)
}

/// Writes the bundle for a bug report.
fn write_bundle(
    path: &Path,
    overwrite: Overwrite,
    context: &Context,
    loaded: Option<&LoadedConfig>,
    findings: &[Finding],
) -> Result<Exit, CliError> {
    let terminal = Terminal::new(ColorChoice::Never, context.host.ui());
    let text = bundle_text(context, loaded, findings_text(findings, &terminal));
    write_private_file(path, overwrite, |file| Ok(file.write_all(text.as_bytes())))?;
    let wrote = format!(
        "Wrote {}. Read it before you attach it to a bug report.\n",
        path.display()
    );
    terminal.print(&wrote).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

/// Settings that differ from their defaults, with their origin.
fn overridden(loaded: &LoadedConfig) -> Vec<(String, Origin)> {
    let settings = serde_json::to_value(&loaded.settings).unwrap_or_default();
    let rows = flatten(&settings);
    let overridden = rows.into_iter().map(|(key, _)| {
        let origin = loaded.origin(&key);
        (key, origin)
    });
    overridden
        .filter(|(_, origin)| *origin != Origin::Default)
        .collect()
}

/// Why a configured command, wrapper or driver cannot run. Built-in agents have findings of their own.
fn configured_problem(
    context: &Context,
    loaded: Option<&LoadedConfig>,
    consent: Consent,
) -> Result<Option<String>, CliError> {
    let Some(loaded) = loaded else {
        return Ok(None);
    };
    let cli = &loaded.settings.cli;
    let is_driver = cli.backend.starts_with(DRIVER);
    let is_own = is_driver || cli.backend == CUSTOM || cli.claude_command.is_some();
    // Resolving a driver runs its script.
    if !is_own || is_driver && !consent::is_trusted(context, loaded, consent)? {
        return Ok(None);
    }
    let resolved = agent::resolve(&loaded.settings, &context.probe());
    Ok(resolved.err().map(|error| error.to_string()))
}

/// Checks the configured driver if it is trusted.
fn driver_findings(
    context: &Context,
    loaded: &LoadedConfig,
    consent: Consent,
) -> Result<Vec<Finding>, CliError> {
    let Some(name) = loaded.settings.cli.backend.strip_prefix(DRIVER) else {
        return Ok(Vec::new());
    };
    if consent::is_trusted(context, loaded, consent)? {
        return Ok(check_driver(name, &loaded.settings, context.probe().as_ref()));
    }
    Ok(vec![Finding {
        area: "drivers",
        subject: name.to_owned(),
        state: FindingState::Warning,
        detail: "not checked: not allowed yet".to_owned(),
        remedy: Some("review it with ralph trust --show, then allow it with ralph trust".to_owned()),
    }])
}

/// Another program that comes first in PATH under the name of this one.
fn shadowing_program() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?.canonicalize().ok()?;
    let first = which::which("ralph").ok()?;
    let found = first.canonicalize().ok()?;
    // The launcher of the npm package starts this program.
    let is_launcher = found
        .parent()
        .is_some_and(|directory| directory.ends_with("ralph-run"));
    (found != own && !is_launcher).then_some(first)
}

fn environment(context: &Context) -> EnvironmentFacts {
    let project = context.project();
    let index = project
        .as_ref()
        .map(|project| RunIndex::load(project).without_legacy());
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
    let stdout = std::io::stdout();
    let size = rustix::termios::tcgetwinsize(&stdout).ok();
    EnvironmentFacts {
        workspace: workspace(context, project.as_ref()),
        terminal: TerminalFacts {
            size: size
                .filter(|_| stdout.is_terminal())
                .map(|size| (size.ws_col, size.ws_row)),
            term: variable("TERM"),
            locale,
            no_color: variable("NO_COLOR").is_some(),
        },
        disk: DiskFacts {
            free: free_space(&context.cwd).ok().map(byte_size),
            runs: units::count(index.as_ref().map_or(0, RunIndex::len) as u64, "run"),
            kept: byte_size(
                project
                    .as_ref()
                    .map_or(0, |project| directory_size(&project.runs())),
            ),
        },
        clock: ClockFacts {
            now: Timestamp::now(),
            newest_run: index
                .as_ref()
                .ok()
                .and_then(|index| time_from_id(index.newest_first().next()?)),
        },
        shadowed_by: shadowing_program(),
    }
}

fn sandbox(context: &Context) -> SandboxFacts {
    let network = Network::Own {
        ports: Vec::new(),
        line: None,
    };
    let value = |name: &str| {
        let path = Path::new("/proc/sys").join(name.replace('.', "/"));
        std::fs::read_to_string(path)
            .ok()
            .map(|text| text.trim().to_owned())
    };
    let switches = doctor::SWITCHES.iter().map(|(name, ..)| *name);
    SandboxFacts {
        support: sandbox_support(context.host.supervisors(), network),
        switches: switches.filter_map(|name| Some((name, value(name)?))).collect(),
        in_container: ["/.dockerenv", "/run/.containerenv"]
            .iter()
            .any(|path| Path::new(path).exists()),
    }
}

fn workspace(context: &Context, project: Result<&Project, &CliError>) -> WorkspaceFacts {
    let status = match context.git().changes(&context.cwd) {
        None => GitStatus::NoRepository,
        Some(Err(why)) => GitStatus::Unreadable(why),
        Some(Ok((branch, changed))) => GitStatus::Repository { branch, changed },
    };
    let state = match project {
        Ok(project) => writable_state(project.state().path()),
        Err(error) => Err(error.to_string()),
    };
    WorkspaceFacts {
        writable: is_writable(&context.cwd),
        path: context.cwd.clone(),
        git: status,
        holder: project
            .ok()
            .and_then(Project::holder)
            .map(|holder| holder.to_string()),
        state,
    }
}

fn is_writable(directory: &Path) -> Result<(), String> {
    tempfile::tempfile_in(directory)
        .map(drop)
        .map_err(|error| std::io::Error::from(error.kind()).to_string())
}

/// Returns the state directory if runs can be stored there. It may not exist yet.
fn writable_state(path: &Path) -> Result<PathBuf, String> {
    let existing = path.ancestors().find(|directory| directory.exists());
    is_writable(existing.unwrap_or(path))
        .map(|()| path.to_owned())
        .map_err(|why| format!("{}: {why}", path.display()))
}

fn byte_size(bytes: u64) -> ByteSize {
    let text = units::bytes(bytes);
    ByteSize { bytes, text }
}
