//! An agent that is called as a driver script says.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::Settings;

use super::driver::{Asking, Driver, DriverError, Globals, HOOK_TIMEOUT, Host, Places, Support, check_tools};
use super::invocation::{FilterCode, PromptDelivery};
use super::{AGENTS, Agent, AgentError, CUSTOM, GENERAL_LIMITS, Probe, PromptQuirk, ResolvedAgent, Terminal};

/// What marks the directory of a project; drivers are looked for up to there.
const ROOTS: &[&str] = &[".git", "ralph.yml", ".ralph", ".ralphrc"];

/// Where this configuration's drivers are looked for.
pub fn driver_places(settings: &Settings, cwd: &Path) -> Places {
    let is_root = |directory: &Path| ROOTS.iter().any(|name| directory.join(name).exists());
    let depth = cwd.ancestors().position(is_root).unwrap_or(0);
    Places {
        named: settings.cli.driver_dir.clone(),
        projects: cwd.ancestors().take(depth + 1).map(Path::to_owned).collect(),
    }
}

/// Sources a driver and asks it. The caller has made sure that it may be run.
pub fn load_driver(
    name: &str,
    settings: &Settings,
    probe: &dyn Probe,
    asking: Asking,
) -> Result<Driver, DriverError> {
    let (supervisors, cwd) = probe.place().ok_or(DriverError::NoBash)?;
    let script = driver_places(settings, &cwd).find(name)?;
    let host = Host {
        bash: probe.find("bash").ok_or(DriverError::NoBash)?,
        supervisors,
        cwd: cwd.clone(),
        timeout: HOOK_TIMEOUT,
    };
    Driver::load(
        &script,
        host,
        Globals::of(settings, ralphrc(&cwd).as_deref()),
        asking,
    )
}

fn ralphrc(cwd: &Path) -> Option<PathBuf> {
    let names = [".ralph/.ralphrc", ".ralphrc"];
    names
        .iter()
        .map(|name| cwd.join(name))
        .find(|path| path.is_file())
}

pub(super) fn driven(
    name: &str,
    settings: &Settings,
    probe: &dyn Probe,
) -> Result<ResolvedAgent, AgentError> {
    let driver = load_driver(name, settings, probe, Asking::Describe)?;
    let program = probe.find(&driver.binary).ok_or_else(|| DriverError::NoProgram {
        name: name.to_owned(),
        binary: driver.binary.clone(),
    })?;
    let mut warnings: Vec<String> = check_tools(
        &driver,
        settings.driver.allowed_tools.as_deref().unwrap_or_default(),
    )?
    .into_iter()
    .collect();
    warnings.extend(driver.complaint.clone());
    let known = driver.drives();
    let (format, filter) = reading(&driver, settings, &mut warnings);
    Ok(ResolvedAgent {
        name: format!("driver:{name}"),
        display_name: driver.display_name.clone(),
        program,
        version: None,
        format,
        terminal: if settings.cli.pty_mode {
            Terminal::Pty
        } else {
            known.map_or(Terminal::Pipe, |agent| agent.terminal)
        },
        auth_hint: known.map_or("", |agent| agent.auth_hint).to_owned(),
        limits: known
            .map_or(&[][..], |agent| agent.limits)
            .iter()
            .chain(GENERAL_LIMITS)
            .copied()
            .collect(),
        environment: Vec::new(),
        filter,
        warnings,
        args: settings.cli.extra_args.clone(),
        usage_flag: None,
        delivery: PromptDelivery::Driver(Arc::new(driver)),
        resume: None,
        misreads: PromptQuirk::Nothing,
        prompt_limit: None,
    })
}

impl Driver {
    /// The built-in agent whose program this driver starts, if we know it.
    pub fn drives(&self) -> Option<&'static Agent> {
        let program = Path::new(&self.binary)
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let by_program = |agent: &&Agent| {
            agent
                .programs
                .iter()
                .any(|known| Some(*known) == program.as_deref())
        };
        let by_name = |agent: &&Agent| {
            let rest = self.name.strip_prefix(agent.name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        AGENTS
            .iter()
            .find(by_program)
            .or_else(|| AGENTS.iter().find(by_name))
    }
}

/// The format in which to read, and the filter for it.
fn reading(driver: &Driver, settings: &Settings, warnings: &mut Vec<String>) -> (String, Option<FilterCode>) {
    if let Some(named) = &settings.cli.transcript {
        return (named.clone(), None);
    }
    // What is not a stream of JSON is what it looks like.
    if driver.supports.live_output == Support::No {
        return ("plain".to_owned(), None);
    }
    let structured = driver.drives().and_then(|agent| agent.structured.as_ref());
    let native = structured.map(|structured| structured.format);
    if native.is_none() && driver.filter.is_none() {
        warnings.push(format!(
            "the driver {} defines no driver_stream_filter: nothing that its agent says will be seen",
            driver.place
        ));
    }
    let filter = FilterCode::Driver {
        code: driver.filter.clone().unwrap_or_else(|| "empty".to_owned()),
        place: driver.place.clone(),
    };
    (native.unwrap_or("jq").to_owned(), Some(filter))
}

/// Under which name an agent's settings are found in `adapters`.
pub(super) fn adapter_name(driver: &Driver) -> &'static str {
    driver.drives().map_or(CUSTOM, |agent| agent.name)
}
