//! The home directory in a sandbox: credentials are hidden, caches are writable.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::process::{Access, PathRule};

use super::resolver::Resolver;

/// Keys and sessions of other services. `sandbox.read` can name exceptions.
const CREDENTIALS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".1password",
    ".oci",
    ".fly",
    ".vault-token",
    ".password-store",
    ".pgpass",
    ".my.cnf",
    ".s3cfg",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".terraform.d/credentials.tfrc.json",
    ".config/gcloud",
    ".config/doctl",
    ".config/rclone",
    ".config/op",
    ".config/1Password",
    ".config/Bitwarden",
    ".config/sops",
    ".config/containers/auth.json",
    ".config/hcloud",
    ".config/heroku",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    "snap/firefox",
    "snap/chromium",
    "Library/Keychains",
    "Library/Cookies",
    "Library/Application Support/Google/Chrome",
    "Library/Application Support/Firefox",
];
/// Keys that developers' tools use. Hidden in `strict` only.
const TOOL_CREDENTIALS: &[&str] = &[
    ".netrc",
    ".git-credentials",
    ".config/gh",
    ".config/hub",
    ".npmrc",
];
/// Files in `~/.ssh` without secrets that git needs.
const SSH_FILES: &[&str] = &[".ssh/known_hosts", ".ssh/config"];

/// A directory in which tools keep what they can download or compute again.
struct Cache {
    path: &'static str,
    /// If this program is installed, the directory is created.
    program: Option<&'static str>,
}

const fn cache(path: &'static str, program: &'static str) -> Cache {
    Cache {
        path,
        program: Some(program),
    }
}

const fn known(path: &'static str) -> Cache {
    Cache { path, program: None }
}

/// Ralph's own cache, which no job can create or replace.
const OWN_CACHE: &str = ".cache/ralph";

const CACHES: &[Cache] = &[
    cache(".cache", "sh"),
    cache(".npm", "npm"),
    cache(".cargo/registry", "cargo"),
    cache(".cargo/git", "cargo"),
    cache("go/pkg", "go"),
    cache(".m2/repository", "mvn"),
    known(".cargo/.package-cache"),
    known(".cargo/.package-cache-mutate"),
    known(".cargo/.global-cache"),
    known(".gradle/caches"),
    known(".gradle/daemon"),
    known(".gradle/wrapper"),
    known(".nuget/packages"),
    known(".local/share/NuGet"),
    known(".local/share/pnpm/store"),
    known(".pnpm-store"),
    known(".yarn/berry"),
    known(".bun/install/cache"),
    known(".ccache"),
    known(".composer/cache"),
    known(".pub-cache"),
    known(".hex"),
    known(".ivy2"),
    known(".sbt"),
    known(".cabal/packages"),
    known(".stack/pantry"),
    known(".node-gyp"),
    known("Library/Caches"),
];
/// Variables that name such directories.
const CACHE_VARIABLES: &[(&str, &str)] = &[
    ("XDG_CACHE_HOME", ""),
    ("CARGO_HOME", "registry"),
    ("CARGO_HOME", "git"),
    ("CARGO_HOME", ".package-cache"),
    ("CARGO_HOME", ".package-cache-mutate"),
    ("CARGO_TARGET_DIR", ""),
    ("GOCACHE", ""),
    ("GOMODCACHE", ""),
    ("GOPATH", "pkg"),
    ("npm_config_cache", ""),
    ("PIP_CACHE_DIR", ""),
    ("UV_CACHE_DIR", ""),
    ("SCCACHE_DIR", ""),
    ("CCACHE_DIR", ""),
    ("GRADLE_USER_HOME", "caches"),
];

/// The user's home directory and environment.
#[derive(Debug, Clone)]
pub(super) struct Home {
    /// Absolute and without symbolic links.
    pub(super) path: Option<PathBuf>,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) resolver: Resolver,
}

impl Home {
    /// `agent_files` are those of all agents: what any job of any run could have written.
    pub(super) fn new(environment: &[(OsString, OsString)], agent_files: &[&str]) -> Self {
        let home = variable(environment, "HOME").filter(|home| home.is_absolute());
        let mut home = Self {
            path: home.and_then(|home| home.canonicalize().ok()),
            environment: environment.to_vec(),
            resolver: Resolver::default(),
        };
        let caches = CACHES.iter().map(|cache| cache.path);
        let below = caches.chain(agent_files.iter().copied());
        let below = below.filter_map(|path| Some(home.path.as_ref()?.join(path)));
        let named = CACHE_VARIABLES.iter().filter_map(|(name, below)| {
            let directory = home.variable(name).filter(|path| path.is_absolute())?;
            Some(directory.join(below))
        });
        let writable = below.chain(named).filter_map(|path| path.canonicalize().ok());
        let writable: Vec<PathBuf> = writable.collect();
        home.resolver.add_writable(writable);
        home
    }

    pub(super) fn variable(&self, name: &str) -> Option<PathBuf> {
        variable(&self.environment, name)
    }

    /// An existing path below the home directory.
    fn below(&self, path: &str) -> Option<PathBuf> {
        self.resolver.real(&self.path.as_ref()?.join(path))
    }

    /// Hides credentials.
    pub(super) fn credentials(&self, hide: HiddenCredentials) -> Vec<PathRule> {
        let of_tools = match hide {
            HiddenCredentials::OfServices => &[][..],
            HiddenCredentials::All => TOOL_CREDENTIALS,
        };
        let hidden = CREDENTIALS.iter().chain(of_tools);
        // A link to credentials hides them too, even one that a job has made.
        let credentials = |path: &&str| self.path.as_ref()?.join(path).canonicalize().ok();
        let hidden = hidden.filter_map(|path| rule(credentials(path)?, Access::Hidden));
        let visible = SSH_FILES
            .iter()
            .filter_map(|path| rule(self.below(path)?, Access::Read));
        hidden.chain(visible).collect()
    }

    /// Makes caches writable. Those of installed tools are created, because the tools could not do that.
    pub(super) fn caches(&self) -> Vec<PathRule> {
        let mut paths = Vec::new();
        for Cache { path, program } in CACHES {
            if let (Some(home), Some(program)) = (&self.path, program)
                && self.is_installed(program)
            {
                create(&home.join(path));
            }
            paths.extend(self.below(path));
        }
        for (name, below) in CACHE_VARIABLES {
            let named = self.variable(name).filter(|path| path.is_absolute());
            paths.extend(named.and_then(|path| self.resolver.real(&path.join(below))));
        }
        let rules = paths.into_iter().filter_map(|path| rule(path, Access::Write));
        // The worktrees of other tasks.
        if let Some(home) = &self.path {
            create(&home.join(OWN_CACHE));
        }
        let own = self.below(OWN_CACHE).and_then(|path| rule(path, Access::Read));
        rules.chain(own).collect()
    }

    /// Makes the files of agents writable. The first directory of a single agent is created if it is missing; nothing is created
    /// for a command that may call any of several.
    pub(super) fn agent_files(&self, files: &[&str], agents: usize) -> Vec<PathRule> {
        if let (1, Some(first), Some(home)) = (agents, files.first(), &self.path) {
            create(&home.join(first));
        }
        let existing = files.iter().filter_map(|file| self.below(file));
        existing.filter_map(|path| rule(path, Access::Write)).collect()
    }

    fn is_installed(&self, program: &str) -> bool {
        let path = self.variable("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
    }

    /// The absolute path that a setting names: `~` is the home directory, `$NAME` the value of a variable.
    pub(super) fn expand(&self, text: &str) -> Option<PathBuf> {
        let path = if let Some(name) = text.strip_prefix('$') {
            self.variable(name)?
        } else if text == "~" {
            self.path.clone()?
        } else if let Some(below) = text.strip_prefix("~/") {
            self.path.as_ref()?.join(below)
        } else {
            PathBuf::from(text)
        };
        self.resolver.real(&path)
    }
}

/// Which credentials are out of sight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HiddenCredentials {
    OfServices,
    All,
}

fn variable(environment: &[(OsString, OsString)], name: &str) -> Option<PathBuf> {
    let found = environment.iter().find(|(known, _)| known == OsStr::new(name))?;
    Some(PathBuf::from(&found.1)).filter(|path| !path.as_os_str().is_empty())
}

/// A rule for a path; none for the root directory.
pub(super) fn rule(path: PathBuf, access: Access) -> Option<PathRule> {
    path.parent()?;
    Some(PathRule { path, access })
}

/// Creates a directory of the user. If that fails, the tool reports it.
fn create(path: &Path) {
    use std::os::unix::fs::DirBuilderExt;

    let _ = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path);
}
