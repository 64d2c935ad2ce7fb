//! Resolves a `driver:NAME` backend to an agent whose command lines a driver script builds.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::{OutputFormat, Settings};

use super::driver::{
    Driver, DriverDirs, DriverError, DriverHost, DriverQuery, DriverVariables, HOOK_TIMEOUT, Supported,
    check_tools,
};
use super::invocation::{FilterCode, PromptDelivery};
use super::{
    AGENTS, Agent, AgentError, CUSTOM, GENERAL_LIMIT_PHRASES, Probe, PromptQuirk, ResolvedAgent, Terminal,
};

/// Files that mark a project root. Drivers are searched for from the working directory up to the root.
const ROOT_MARKERS: &[&str] = &[".git", "ralph.yml", ".ralph", ".ralphrc"];

/// The directories in which drivers are searched for.
pub fn driver_dirs(settings: &Settings, cwd: &Path) -> DriverDirs {
    let is_root = |directory: &Path| ROOT_MARKERS.iter().any(|name| directory.join(name).exists());
    let depth = cwd.ancestors().position(is_root).unwrap_or(0);
    DriverDirs {
        configured: settings.cli.driver_dir.clone(),
        projects: cwd.ancestors().take(depth + 1).map(Path::to_owned).collect(),
    }
}

/// Sources a driver script and reads its description. The caller has already checked that the script is trusted.
pub fn load_driver(
    name: &str,
    settings: &Settings,
    probe: &dyn Probe,
    query: DriverQuery,
) -> Result<Driver, DriverError> {
    let (supervisors, cwd) = probe.script_host().ok_or(DriverError::NoBash)?;
    let script = driver_dirs(settings, &cwd).find(name)?;
    let host = DriverHost {
        bash: probe.find("bash").ok_or(DriverError::NoBash)?,
        supervisors,
        cwd: cwd.clone(),
        timeout: HOOK_TIMEOUT,
    };
    Driver::load(
        &script,
        host,
        DriverVariables::from_settings(settings, ralphrc(&cwd).as_deref()),
        query,
    )
}

fn ralphrc(cwd: &Path) -> Option<PathBuf> {
    let names = [".ralph/.ralphrc", ".ralphrc"];
    names
        .iter()
        .map(|name| cwd.join(name))
        .find(|path| path.is_file())
}

pub(super) fn driver_agent(
    name: &str,
    settings: &Settings,
    probe: &dyn Probe,
) -> Result<ResolvedAgent, AgentError> {
    let driver = load_driver(name, settings, probe, DriverQuery::Describe)?;
    let program = probe.find(&driver.binary).ok_or_else(|| DriverError::NoProgram {
        name: name.to_owned(),
        binary: driver.binary.clone(),
    })?;
    let mut warnings: Vec<String> = check_tools(
        &driver,
        settings.driver.allowed_tools.as_deref().unwrap_or_default(),
    )
    .into_iter()
    .collect();
    warnings.extend(driver.source_warning.clone());
    let builtin = driver.builtin_agent();
    let (format, filter) = transcript_format(&driver, settings, &mut warnings);
    Ok(ResolvedAgent {
        name: format!("driver:{name}"),
        display_name: driver.display_name.clone(),
        program,
        version: None,
        format,
        terminal: if settings.cli.pty_mode {
            Terminal::Pty
        } else {
            builtin.map_or(Terminal::Pipe, |agent| agent.terminal)
        },
        auth_hint: builtin.map_or("", |agent| agent.auth_hint).to_owned(),
        limit_phrases: builtin
            .map_or(&[][..], |agent| agent.limit_phrases)
            .iter()
            .chain(GENERAL_LIMIT_PHRASES)
            .copied()
            .collect(),
        environment: Vec::new(),
        filter,
        warnings,
        args: settings.cli.extra_args.clone(),
        usage_flag: None,
        delivery: PromptDelivery::Driver(Arc::new(driver)),
        resume: None,
        prompt_quirk: PromptQuirk::Nothing,
        prompt_limit: None,
    })
}

impl Driver {
    /// The built-in agent whose program this driver starts, if it is one.
    pub fn builtin_agent(&self) -> Option<&'static Agent> {
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

/// The transcript format of the driver's output, and the jq filter for it.
fn transcript_format(
    driver: &Driver,
    settings: &Settings,
    warnings: &mut Vec<String>,
) -> (String, Option<FilterCode>) {
    if let Some(named) = &settings.cli.transcript {
        return (named.clone(), None);
    }
    // Output that is not a JSON stream is plain text.
    let is_text = settings.driver.output_format == OutputFormat::Text;
    if driver.supports.live_output == Supported::No || is_text {
        return ("plain".to_owned(), None);
    }
    let structured = driver.builtin_agent().and_then(|agent| agent.structured.as_ref());
    let native = structured.map(|structured| structured.format);
    if native.is_none() && driver.filter.is_none() {
        warnings.push(format!(
            "driver {} defines no driver_stream_filter; the output is read as plain text",
            driver.location
        ));
        return ("plain".to_owned(), None);
    }
    let filter = FilterCode::Driver {
        code: driver.filter.clone().unwrap_or_else(|| "empty".to_owned()),
        script: driver.location.clone(),
    };
    (native.unwrap_or("jq").to_owned(), Some(filter))
}

/// The name of the agent's settings under `adapters`.
pub(super) fn adapter_name(driver: &Driver) -> &'static str {
    driver.builtin_agent().map_or(CUSTOM, |agent| agent.name)
}
