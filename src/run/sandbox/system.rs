//! The system outside of the home directory: temporary directories, sockets of services, and where programs are installed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{Access, PathRule};

use super::home::{Home, rule};

/// Parts of `/run` that contain files and no sockets.
const RUN_FILES: &[&str] = &[
    "/run/current-system",
    "/run/booted-system",
    "/run/opengl-driver",
    "/run/wrappers",
];
/// Top-level directories of the system, which stay readable in `strict`.
const SYSTEM_DIRECTORIES: &[&str] = &[
    "bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "opt", "nix", "gnu", "dev", "proc",
    "sys", "tmp", "run", "boot",
];
/// Secrets of the system, which root could read.
const SYSTEM_SECRETS: &[&str] = &[
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/ssh",
    "/etc/ssl/private",
];

/// Private temporary directories, and no sockets of services.
pub(super) fn rules(scratch: Option<&Path>) -> Vec<PathRule> {
    let scratch = scratch.and_then(|path| path.canonicalize().ok());
    let private = [("/tmp", scratch), ("/var/tmp", None)];
    let mut rules: Vec<PathRule> = Vec::new();
    for (path, source) in private {
        let real = real(path);
        rules.extend(real.and_then(|path| rule(path, Access::Private(source))));
    }
    let hidden = ["/run", "/var/run"].iter().chain(SYSTEM_SECRETS);
    rules.extend(hidden.filter_map(|path| rule(real(path)?, Access::Hidden)));
    // Names are resolved with it, and on many systems it is a link into /run.
    let resolver = real("/etc/resolv.conf").filter(|path| path.starts_with("/run"));
    let files = RUN_FILES.iter().filter_map(|path| real(path)).chain(resolver);
    rules.extend(files.filter_map(|path| rule(path, Access::Read)));
    rules
}

fn real(path: &str) -> Option<PathBuf> {
    Path::new(path).canonicalize().ok()
}

/// Hides everything outside of the system directories.
pub(super) fn only_the_system() -> Vec<PathRule> {
    let entries = fs::read_dir("/").into_iter().flatten().flatten();
    let foreign = entries.filter(|entry| {
        let name = entry.file_name();
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        is_directory && !SYSTEM_DIRECTORIES.iter().any(|known| name == *known)
    });
    foreign
        .filter_map(|entry| rule(entry.path(), Access::Hidden))
        .collect()
}

/// The directories of `PATH`. With `…/bin`, programs also need what lies beside it, unless that is the home directory or another
/// place for everything.
pub(super) fn program_directories(home: &Home) -> Vec<PathBuf> {
    let path = home.variable("PATH").unwrap_or_default();
    let mut found = Vec::new();
    for directory in std::env::split_paths(&path).filter(|path| path.is_absolute()) {
        let Some(directory) = outside(home, &directory) else {
            continue;
        };
        let is_part = directory.ends_with("bin") || directory.ends_with("shims");
        let parent = directory.parent().filter(|_| is_part);
        let is_specific = |parent: &&Path| {
            let depth = home.path.as_deref().map(|home| parent.strip_prefix(home));
            match depth {
                Some(Ok(below)) => below.components().count() > 0 && below != Path::new(".local"),
                Some(Err(_)) | None => {
                    let is_dotted = parent
                        .file_name()
                        .is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
                    is_dotted || parent.components().count() > 3
                }
            }
        };
        let place = parent.filter(is_specific).map(Path::to_owned);
        found.push(place.unwrap_or(directory));
    }
    found
}

/// The real path, unless jobs can write there.
fn outside(home: &Home, path: &Path) -> Option<PathBuf> {
    let real = home.resolver.real(path)?;
    (!home.resolver.is_writable(&real)).then_some(real)
}

/// Where a program is installed: the directory of its name, and that of the file that it links to, or the outermost
/// `node_modules` around it.
pub(super) fn installation(home: &Home, program: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    found.extend(program.parent().and_then(|parent| outside(home, parent)));
    if let Some(real) = outside(home, program) {
        let modules = real
            .ancestors()
            .filter(|path| path.ends_with("node_modules"))
            .last();
        found.extend(modules.or(real.parent()).map(Path::to_owned));
        found.push(real);
    }
    found.retain(|path| path.components().count() > 2);
    found
}
