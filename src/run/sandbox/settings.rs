//! The settings of a run's sandbox, and whether this machine can enforce them.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::config::Settings;
use crate::event::NoticeLevel;
use crate::policy::{EnvironmentRules, Gate, NetworkAccess, PartialSandbox, Sandbox, SandboxMode};
use crate::process::{Network, ProcessError, SandboxSupport, sandbox_support};
use crate::run::host::Host;

/// The first version of Landlock that keeps a job away from abstract sockets.
const SCOPES_SINCE: u32 = 6;

/// The settings of a run's sandbox.
#[derive(Debug, Clone, Default)]
pub struct SandboxSetup {
    pub(super) settings: Sandbox,
    pub(super) variables: EnvironmentRules,
    pub(super) adapters: BTreeMap<String, PartialSandbox>,
    pub(super) hats: BTreeMap<String, PartialSandbox>,
    /// The environment that children inherit.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// Commands of the user that run outside of the sandbox.
    pub(super) commands: Vec<String>,
    /// What is enforced.
    pub(in crate::run) notice: Option<(NoticeLevel, String)>,
}

/// A sandbox was requested that this machine cannot enforce.
#[derive(Debug, thiserror::Error)]
#[error("the sandbox `{}` is not available: {source}", mode.as_str())]
pub struct SandboxUnavailable {
    pub mode: SandboxMode,
    #[source]
    pub source: ProcessError,
}

impl SandboxSetup {
    /// A requested mode that this machine cannot enforce is an error.
    pub fn resolve(settings: &Settings, host: &Host) -> Result<Self, SandboxUnavailable> {
        let sandboxes = |named: Vec<(&String, &PartialSandbox)>| -> BTreeMap<String, PartialSandbox> {
            named
                .into_iter()
                .map(|(name, own)| (name.clone(), own.clone()))
                .collect()
        };
        let adapters = sandboxes(
            settings
                .adapters
                .iter()
                .map(|(name, own)| (name, &own.sandbox))
                .collect(),
        );
        let hats = sandboxes(
            settings
                .hats
                .iter()
                .map(|(name, own)| (name, &own.sandbox))
                .collect(),
        );
        let gates = settings.gates.iter().map(|gate| &gate.sandbox);
        let changes: Vec<&PartialSandbox> = adapters.values().chain(hats.values()).chain(gates).collect();
        let own = settings.sandbox.clone();
        let jobs = changes
            .iter()
            .map(|changes| own.with(changes))
            .chain([own.clone()]);
        let confined: Vec<Sandbox> = jobs
            .filter(|job| job.effective_mode() != SandboxMode::Off)
            .collect();
        let notice = match confined.first() {
            None => None,
            Some(first) => {
                let network = network_of(confined.iter().map(|job| &job.net));
                let support = sandbox_support(host.supervisors(), network);
                Some(decide(&own, first.effective_mode(), support)?)
            }
        };
        Ok(Self {
            settings: own,
            variables: settings.env.clone(),
            adapters,
            hats,
            environment: host.environment().to_vec(),
            commands: commands(settings),
            notice,
        })
    }
}

impl SandboxSetup {
    /// The paths that some job may write.
    pub(super) fn writable_paths<'a>(&'a self, gates: &'a [Gate]) -> impl Iterator<Item = &'a String> {
        let gates = gates.iter().map(|gate| &gate.sandbox);
        let changes = self.adapters.values().chain(self.hats.values()).chain(gates);
        let changed = changes.filter_map(|changes| changes.write.as_ref()).flatten();
        self.settings.write.iter().chain(changed)
    }
}

/// A network of its own if any job gets one.
fn network_of<'a>(mut nets: impl Iterator<Item = &'a NetworkAccess>) -> Network {
    match nets.all(|net| *net == NetworkAccess::Open) {
        true => Network::Open,
        false => Network::Own {
            ports: Vec::new(),
            line: None,
        },
    }
}

/// Returns what is enforced.
fn decide(
    own: &Sandbox,
    requested: SandboxMode,
    support: SandboxSupport,
) -> Result<(NoticeLevel, String), SandboxUnavailable> {
    let landlock = support.landlock.unwrap_or(0);
    match support.confinement {
        Ok(()) => Ok((
            NoticeLevel::Info,
            enforced(own.effective_mode(), &own.net, landlock),
        )),
        Err(source) => Err(SandboxUnavailable {
            mode: requested,
            source,
        }),
    }
}

/// One line about what the sandbox enforces.
fn enforced(mode: SandboxMode, net: &NetworkAccess, landlock: u32) -> String {
    let files = match mode {
        SandboxMode::Off => return "sandbox: off, except where hats, agents or gates set it".to_owned(),
        SandboxMode::Workspace => {
            "writable are the project, caches and the agent's own files; credentials are hidden"
        }
        SandboxMode::Strict => {
            "visible are the system, the project, caches and the agent's own files; only its own keys are passed on"
        }
    };
    let network = match net {
        NetworkAccess::Open if landlock >= SCOPES_SINCE => "network open".to_owned(),
        NetworkAccess::Open => "network open, including abstract sockets".to_owned(),
        NetworkAccess::None => "no network".to_owned(),
        NetworkAccess::Hosts(hosts) => {
            let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
            match &*hosts {
                [] => "network: the agent's service".to_owned(),
                hosts => format!("network: the agent's service, {}", hosts.join(", ")),
            }
        }
    };
    format!("sandbox {}: {files}; own processes; {network}", mode.as_str())
}

/// Commands that ralph runs outside of the sandbox.
fn commands(settings: &Settings) -> Vec<String> {
    let hooks = &settings.hooks;
    let commands = [
        &hooks.on_start,
        &hooks.on_iteration,
        &hooks.on_complete,
        &hooks.on_fail,
        &hooks.on_rate_limit,
        &hooks.on_ask,
        &settings.worktree.setup,
    ];
    let driver = settings.cli.driver_dir.as_ref();
    let driver = driver.map(|directory| directory.display().to_string());
    commands.into_iter().flatten().cloned().chain(driver).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::ConfinementStep;

    fn support(landlock: Option<u32>, works: bool) -> SandboxSupport {
        let error = || ProcessError::Confinement {
            program: "agent".into(),
            step: ConfinementStep::Namespaces,
            rule: None,
            source: std::io::Error::from_raw_os_error(1),
        };
        SandboxSupport {
            confinement: if works { Ok(()) } else { Err(error()) },
            landlock,
        }
    }

    #[test]
    fn one_line_states_what_is_enforced() {
        let own = Sandbox {
            mode: Some(SandboxMode::Workspace),
            ..Sandbox::default()
        };
        let (level, text) = decide(&own, SandboxMode::Workspace, support(Some(7), true)).expect("a decision");
        assert_eq!(level, NoticeLevel::Info);
        assert!(
            text.starts_with("sandbox workspace: ") && text.ends_with("network open"),
            "{text}"
        );
    }

    #[test]
    fn a_limited_network_requires_a_sandbox() {
        let own = Sandbox {
            net: NetworkAccess::None,
            ..Sandbox::default()
        };
        assert_eq!(own.effective_mode(), SandboxMode::Workspace);
        assert_eq!(Sandbox::default().effective_mode(), SandboxMode::Off);
    }

    #[test]
    fn a_requested_sandbox_that_cannot_be_enforced_is_an_error() {
        for mode in [SandboxMode::Workspace, SandboxMode::Strict] {
            let own = Sandbox::default();
            let error = decide(&own, mode, support(None, false)).expect_err("an error");
            assert!(error.to_string().contains(mode.as_str()), "{error}");
        }
    }
}
