//! Findings of `ralph doctor` about trust: which commands would run, and whether they are allowed.

use std::path::Path;

use crate::config::LoadedConfig;
use crate::trust::{Consent, FileTrust, Trust, TrustError, TrustScope, TrustStatus, commands_to_run};

use super::{Finding, FindingState};

const AREA: &str = "trust";

/// Lists the files with commands that `ralph run` would execute, and whether they are allowed.
pub fn check_trust(
    trust: Result<Trust, TrustError>,
    loaded: &LoadedConfig,
    cwd: &Path,
    consent: Consent,
) -> Vec<Finding> {
    let found = commands_to_run(loaded, cwd, TrustScope::Command);
    let checked = trust.and_then(|trust| trust.check(found));
    match checked {
        Ok(files) if files.is_empty() => vec![Finding {
            area: AREA,
            subject: "commands".to_owned(),
            state: FindingState::Good,
            detail: "no gates, hooks or custom commands configured".to_owned(),
            remedy: None,
        }],
        Ok(files) => files
            .iter()
            .map(|file| file_finding(cwd, file, consent))
            .collect(),
        Err(error) => vec![unknown_trust(&error.to_string())],
    }
}

fn file_finding(cwd: &Path, file: &FileTrust, consent: Consent) -> Finding {
    let path = file.path.strip_prefix(cwd).unwrap_or(&file.path);
    let commands = file.commands.join("; ").replace('\n', " ");
    let (state, status) = match (file.status, consent) {
        (TrustStatus::Own, _) => (FindingState::Good, "yours"),
        (TrustStatus::Allowed, _) => (FindingState::Good, "allowed"),
        (TrustStatus::Unknown, Consent::Given) => (FindingState::Good, "allowed for this command"),
        (TrustStatus::Unknown, Consent::Required) => (FindingState::Warning, "not allowed yet"),
    };
    Finding {
        area: AREA,
        subject: path.display().to_string(),
        state,
        detail: format!("{status} ({}); would run: {commands}", file.why),
        remedy: match state {
            FindingState::Good | FindingState::Absent => None,
            FindingState::Warning | FindingState::Broken => {
                Some("review it with ralph trust --show, then allow it with ralph trust".to_owned())
            }
        },
    }
}

fn unknown_trust(why: &str) -> Finding {
    Finding {
        area: AREA,
        subject: "commands".to_owned(),
        state: FindingState::Warning,
        detail: why.to_owned(),
        remedy: Some(
            "fix or remove trust/trust.json in the state directory; removing it revokes all trust".to_owned(),
        ),
    }
}
