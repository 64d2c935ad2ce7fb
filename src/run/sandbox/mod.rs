//! The sandbox of a run: decides for each job what it may see, change and reach. [`RunSandbox::confine`] is the only way from the
//! settings to a [`Confinement`].

mod home;
mod protected;
mod repository;
mod resolver;
mod settings;
mod system;

pub use settings::{SandboxSetup, SandboxUnavailable};

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::agent::{AgentAccess, ResolvedAgent};
use crate::policy::{Gate, HostRule, NetworkAccess, Sandbox, SandboxMode};
use crate::process::{Access, Confinement, Environment, Network, PathRule};
use crate::runner::JobSandbox;
use crate::store::Run;

use home::{HiddenCredentials, Home, rule};

/// The port of the proxy inside a network of its own.
pub const PROXY_PORT: u16 = 3128;
/// The temporary directory in a sandbox.
const TEMPORARY: &str = "/tmp";

/// What is confined.
pub(super) enum SandboxJob<'a> {
    Agent {
        agent: &'a ResolvedAgent,
        hat: Option<&'a str>,
        /// The directory of the attempt, with the prompt.
        files: &'a Path,
        /// The checkout of a reviewer.
        checkout: Option<&'a Path>,
    },
    Gate {
        gate: &'a Gate,
        /// Its clean checkout, unless it runs in the workspace.
        checkout: Option<&'a Path>,
    },
}

impl<'a> SandboxJob<'a> {
    /// The directory of its own in which a job works, unless that is the workspace.
    fn checkout(&self) -> Option<&'a Path> {
        match self {
            Self::Agent { checkout, .. } | Self::Gate { checkout, .. } => *checkout,
        }
    }
}

/// The sandbox of a run.
#[derive(Debug)]
pub(super) struct RunSandbox {
    setup: SandboxSetup,
    home: Home,
    /// The project root and the directory in which the agent starts.
    workspaces: Vec<PathBuf>,
    state: PathBuf,
    run: PathBuf,
    inbox: PathBuf,
    /// Files of the project that agents must not change.
    protected: Vec<PathBuf>,
}

impl RunSandbox {
    pub(super) fn new(setup: SandboxSetup, run: &Run, workspace: &Path, gates: &[Gate]) -> Self {
        let mut home = Home::new(&setup.environment, &AgentAccess::all_files());
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let root = real(run.project().root());
        let mut workspaces = vec![root.clone()];
        let workspace = real(workspace);
        if workspace != root {
            workspaces.push(workspace);
        }
        home.resolver.add_writable(workspaces.iter().cloned());
        let named: Vec<PathBuf> = setup
            .writable_paths(gates)
            .filter_map(|path| home.expand(path))
            .collect();
        home.resolver.add_writable(named);
        let mut protected = protected::configuration(&workspaces, &setup.commands, &home.resolver);
        protected.extend(protected::of_gates(&root, gates, &home.resolver));
        Self {
            home,
            state: real(run.project().state().path()),
            run: real(run.directory()),
            inbox: real(run.agent_inbox().directory()),
            setup,
            workspaces,
            protected,
        }
    }

    /// Confines a job and adapts its environment; `None` if its sandbox is off. `scratch` holds its temporary files.
    pub(super) fn confine(
        &self,
        job: &SandboxJob<'_>,
        scratch: Option<&Path>,
        environment: &mut Environment,
    ) -> Option<JobSandbox> {
        let settings = self.settings_of(job);
        let mode = settings.effective_mode();
        let access = match job {
            SandboxJob::Agent { agent, .. } => agent.access(),
            SandboxJob::Gate { .. } => Vec::new(),
        };
        self.filter_variables(mode, &access, environment);
        environment
            .set
            .extend(scratch.map(|path| ("TMPDIR".into(), path.into())));
        if mode == SandboxMode::Off {
            return None;
        }
        let (network, hosts) = network(&settings.net, &access);
        let rules = self.rules(job, &settings, &access, scratch);
        let confinement = Confinement::new(rules, network);
        set_variables(&confinement, &self.home, environment);
        environment
            .set
            .push(("RALPH_INBOX".into(), self.inbox.clone().into()));
        Some(JobSandbox { confinement, hosts })
    }

    /// Removes files with which an agent could redirect git, and returns them.
    pub(super) fn remove_planted_files(&self) -> Vec<PathBuf> {
        if self.setup.settings.effective_mode() == SandboxMode::Off {
            return Vec::new();
        }
        let planted = repository::planted_files(&self.workspaces[0]);
        planted
            .into_iter()
            .filter(|path| std::fs::remove_file(path).is_ok())
            .collect()
    }

    fn settings_of(&self, job: &SandboxJob<'_>) -> Sandbox {
        let setup = &self.setup;
        match job {
            SandboxJob::Agent { agent, hat, .. } => {
                let own = setup.adapters.get(agent.adapter());
                let of_hat = hat.and_then(|hat| setup.hats.get(hat));
                let changes = own.into_iter().chain(of_hat);
                changes.fold(setup.settings.clone(), |settings, changes| settings.with(changes))
            }
            SandboxJob::Gate { gate, .. } => setup.settings.with(&gate.sandbox),
        }
    }

    fn filter_variables(&self, mode: SandboxMode, access: &[AgentAccess], environment: &mut Environment) {
        let own: Vec<&str> = access
            .iter()
            .flat_map(|access| access.variables)
            .copied()
            .collect();
        let dropped = self
            .setup
            .environment
            .iter()
            .map(|(name, _)| name)
            .filter(|name| {
                let text = name.to_string_lossy();
                !self.setup.variables.passes(&text, mode, &own)
            });
        environment.remove.extend(dropped.cloned());
    }

    /// Later rules for the same path take precedence, so what the user names comes last.
    fn rules(
        &self,
        job: &SandboxJob<'_>,
        settings: &Sandbox,
        access: &[AgentAccess],
        scratch: Option<&Path>,
    ) -> Vec<PathRule> {
        let mut rules = system::rules(scratch);
        let is_strict = settings.mode == Some(SandboxMode::Strict);
        let hidden = match is_strict {
            false => HiddenCredentials::OfServices,
            true => HiddenCredentials::All,
        };
        if is_strict {
            rules.extend(system::only_the_system());
            rules.extend(self.home.path.clone().and_then(|home| rule(home, Access::Hidden)));
        }
        rules.extend(self.home.credentials(hidden));
        rules.extend(self.home.caches());
        rules.extend(self.home.agent_files(&files_of(access), access.len()));
        rules.extend(self.state_rules(job));
        rules.extend(self.program_rules(job, &rules));
        rules.extend(self.project_rules(job, settings));
        let read = settings.read.iter().filter_map(|path| self.home.expand(path));
        rules.extend(read.filter_map(|path| rule(path, Access::Read)));
        rules
    }

    /// Ralph's own files are out of sight, except those that the job needs.
    fn state_rules(&self, job: &SandboxJob<'_>) -> Vec<PathRule> {
        let mut rules = vec![
            PathRule {
                path: self.state.clone(),
                access: Access::Private(None),
            },
            PathRule {
                path: self.inbox.clone(),
                access: Access::Write,
            },
        ];
        rules.extend(rule(self.run.join("bin"), Access::Read));
        if let SandboxJob::Agent { agent, files, .. } = job {
            let files = files.canonicalize().unwrap_or_else(|_| files.to_path_buf());
            rules.extend(rule(files.clone(), Access::Read));
            if let Some(usage) = agent.usage_file(&files.join("prompt.md")) {
                // The agent cannot create it.
                let _ = std::fs::File::create_new(&usage);
                rules.extend(rule(usage, Access::Write));
            }
        }
        rules
    }

    /// Keeps programs readable that lie where other rules hide everything.
    fn program_rules(&self, job: &SandboxJob<'_>, rules: &[PathRule]) -> Vec<PathRule> {
        let is_hidden = |path: &Path| {
            let mut outer = rules.iter().filter(|rule| path.starts_with(&rule.path));
            outer.any(|rule| matches!(rule.access, Access::Hidden | Access::Private(_)))
        };
        let mut paths = system::program_directories(&self.home);
        if let SandboxJob::Agent { agent, .. } = job {
            paths.extend(system::installation(&self.home, &agent.program));
        }
        paths.extend(std::env::current_exe().ok());
        let credentials = |path: &PathBuf| {
            let mut same = rules.iter().filter(|rule| rule.path == *path);
            same.next_back().is_some_and(|rule| rule.access == Access::Hidden)
        };
        let needed = paths
            .into_iter()
            .filter(|path| is_hidden(path) && !credentials(path));
        needed.filter_map(|path| rule(path, Access::Read)).collect()
    }

    fn project_rules(&self, job: &SandboxJob<'_>, settings: &Sandbox) -> Vec<PathRule> {
        let named: Vec<PathBuf> = settings
            .write
            .iter()
            .filter_map(|path| self.home.expand(path))
            .collect();
        let mut rules = Vec::new();
        for workspace in &self.workspaces {
            // With a list, the project is only as writable as the list says.
            let access = match named.is_empty() {
                true => Access::Write,
                false => Access::Read,
            };
            rules.extend(rule(workspace.clone(), access));
        }
        for path in named.iter().chain(&self.workspaces) {
            rules.extend(repository::rules(path, &self.home.resolver));
        }
        if let SandboxJob::Agent { .. } = job {
            let protected = self.protected.iter().cloned();
            rules.extend(protected.filter_map(|path| rule(path, Access::Read)));
        }
        let checkout = job.checkout().and_then(|path| path.canonicalize().ok());
        rules.extend(checkout.and_then(|path| rule(path, Access::Write)));
        rules.extend(named.into_iter().filter_map(|path| {
            (path == Path::new("/"))
                .then(|| PathRule {
                    path: path.clone(),
                    access: Access::Write,
                })
                .or_else(|| rule(path, Access::Write))
        }));
        rules
    }
}

/// The files of the agents.
fn files_of(access: &[AgentAccess]) -> Vec<&'static str> {
    access.iter().flat_map(|access| access.files).copied().collect()
}

/// The network of a job, and the hosts that its proxy allows.
fn network(net: &NetworkAccess, access: &[AgentAccess]) -> (Network, Vec<HostRule>) {
    let hosts = match net {
        NetworkAccess::Open => return (Network::Open, Vec::new()),
        NetworkAccess::None => return (own_network(Vec::new()), Vec::new()),
        NetworkAccess::Hosts(hosts) => hosts,
    };
    let of_agent = access.iter().flat_map(|access| access.hosts);
    let of_agent = of_agent.filter_map(|host| host.parse().ok());
    let hosts: Vec<HostRule> = hosts.iter().cloned().chain(of_agent).collect();
    let mut ports = vec![PROXY_PORT];
    for port in hosts.iter().filter_map(HostRule::loopback_port) {
        if !ports.contains(&port) {
            ports.push(port);
        }
    }
    (own_network(ports), hosts)
}

fn own_network(ports: Vec<u16>) -> Network {
    Network::Own { ports, line: None }
}

/// Points a job to its temporary directory and its proxy, and removes the addresses of sockets that it cannot reach.
fn set_variables(confinement: &Confinement, home: &Home, environment: &mut Environment) {
    environment.set.retain(|(name, _)| name != "TMPDIR");
    environment.set.push(("TMPDIR".into(), TEMPORARY.into()));
    for name in ["XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"] {
        let runtime = home.variable("XDG_RUNTIME_DIR");
        let is_visible = runtime.is_some_and(|path| {
            let rule = confinement.rule_of(&path);
            rule.is_none_or(|rule| rule.access == Access::Read)
        });
        if !is_visible {
            environment.remove.push(name.into());
        }
    }
    let Network::Own { ports, .. } = &confinement.network else {
        return;
    };
    if !ports.contains(&PROXY_PORT) {
        return;
    }
    let proxy = OsString::from(format!("http://127.0.0.1:{PROXY_PORT}"));
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
        environment.set.push((name.into(), proxy.clone()));
    }
    for name in ["NO_PROXY", "no_proxy"] {
        environment
            .set
            .push((name.into(), "localhost,127.0.0.1,::1".into()));
    }
    environment.set.push(("NODE_USE_ENV_PROXY".into(), "1".into()));
}
