//! Checks a driver script, for `ralph drivers check` and `ralph doctor`.

use std::io::Write;

use crate::agent::driver::{Driver, DriverError, DriverQuery, Supported, check_tools};
use crate::agent::{self, Probe};
use crate::config::Settings;
use crate::doctor::{Finding, FindingState};
use crate::transcript::jq::Filter;

use super::hints::driver_hints;

const AREA: &str = "drivers";

/// Checks a driver by running its hooks; the caller must have checked that it is trusted.
pub(super) fn check_driver(name: &str, settings: &Settings, probe: &dyn Probe) -> Vec<Finding> {
    let finding = |state, detail: String, remedy: Option<String>| Finding {
        area: AREA,
        subject: name.to_owned(),
        state,
        detail,
        remedy,
    };
    let driver = match agent::load_driver(name, settings, probe, DriverQuery::Check) {
        Ok(driver) => driver,
        Err(error) => {
            let remedy = driver_hints(&error).into_iter().next();
            return vec![finding(FindingState::Broken, error.to_string(), remedy)];
        }
    };
    let mut findings = vec![finding(FindingState::Good, summary(&driver), None)];
    findings.extend(
        driver
            .source_warning
            .clone()
            .map(|warning| finding(FindingState::Warning, warning, Some("fix the script".to_owned()))),
    );
    match &driver.filter {
        None => findings.push(finding(
            FindingState::Warning,
            "no driver_stream_filter defined".to_owned(),
            Some("define one; without it, output is shown only if ralph knows its format".to_owned()),
        )),
        Some(filter) => {
            if let Err(error) = Filter::compile(filter) {
                findings.push(finding(
                    FindingState::Broken,
                    error.to_string(),
                    Some("fix driver_stream_filter".to_owned()),
                ));
            }
        }
    }
    let tools = settings.driver.allowed_tools.as_deref().unwrap_or_default();
    findings.extend(check_tools(&driver, tools).map(|warning| finding(FindingState::Warning, warning, None)));
    if let Err(error) = check_command(&driver) {
        findings.push(finding(
            FindingState::Broken,
            error.to_string(),
            driver_hints(&error).into_iter().next(),
        ));
    }
    findings.extend(
        check_program(&driver, probe)
            .map(|(detail, remedy)| finding(FindingState::Warning, detail, Some(remedy))),
    );
    findings
}

/// Builds a command line for a sample prompt.
fn check_command(driver: &Driver) -> Result<(), DriverError> {
    let unreadable = |source| DriverError::Unreadable {
        path: std::env::temp_dir(),
        source,
    };
    let mut prompt = tempfile::NamedTempFile::new().map_err(unreadable)?;
    prompt.write_all(b"a prompt\n").map_err(unreadable)?;
    driver.command(prompt.path(), "").map(drop)
}

fn summary(driver: &Driver) -> String {
    let supports = driver.supports;
    let features = [
        (supports.live_output, "live output"),
        (supports.sessions, "sessions"),
        (supports.tool_allowlist, "allowed tools"),
    ];
    let supported: Vec<&str> = features
        .iter()
        .filter(|(support, _)| *support == Supported::Yes)
        .map(|(_, word)| *word)
        .collect();
    format!(
        "{} ({}): {}",
        driver.display_name,
        driver.location,
        supported.join(", ")
    )
}

/// Checks that the driver's program is installed and recent enough; returns the problem and the remedy.
fn check_program(driver: &Driver, probe: &dyn Probe) -> Option<(String, String)> {
    let remedy = "install or update it".to_owned();
    let program = probe.find(&driver.binary);
    let (Some(program), true) = (program, driver.available.unwrap_or(true)) else {
        return Some((format!("`{}` is not available", driver.binary), remedy));
    };
    let required = semver::Version::parse(driver.min_version.as_deref()?).ok()?;
    let answer = probe.version(&program).ok()?;
    let words = answer.split(|c: char| c.is_whitespace() || c == ',');
    let found = words
        .filter_map(|word| semver::Version::parse(word.trim_start_matches('v')).ok())
        .next()?;
    (found < required).then(|| {
        (
            format!(
                "{} is version {found}; the driver requires {required}",
                driver.binary
            ),
            remedy,
        )
    })
}
