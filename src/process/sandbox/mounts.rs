//! The file system of a confined child: everything is read-only, and each rule gets a mount of its own.
//!
//! The sources of all rules are cloned before anything is covered. A clone keeps its write access when the original becomes
//! read-only. Mounts that the child makes in namespaces of its own cannot uncover anything, because the kernel locks these.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount_change, move_mount, open_tree,
};

use super::{Access, ConfinementStep, PathRule};
use crate::process::launch;

/// Device files that every program may use.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Links in `/dev`.
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// Parts of `/proc` with which root controls the whole system.
const SYSTEM_CONTROLS: [&str; 7] = ["sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi"];

type StepResult<T> = Result<T, (ConfinementStep, io::Error)>;

fn at(step: ConfinementStep) -> impl Fn(Errno) -> (ConfinementStep, io::Error) {
    move |error| (step, error.into())
}

/// Whether the child's user is root in the parent namespace too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum User {
    Root,
    Ordinary,
}

/// A clone of what a rule shows.
struct Source<'a> {
    number: u16,
    rule: &'a PathRule,
    tree: Option<OwnedFd>,
    is_directory: bool,
}

/// Arranges the file system of this process. `terminal` is the child's stdout.
pub(super) fn arrange(rules: &[PathRule], user: User, terminal: BorrowedFd<'_>) -> StepResult<()> {
    let mounts = at(ConfinementStep::Mounts);
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).map_err(&mounts)?;
    let mut sources = Vec::new();
    for (number, rule) in rules.iter().enumerate() {
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        sources.extend(source(number, rule).map_err(at(ConfinementStep::Rule(number)))?);
    }
    let devices = clone_devices(terminal);
    if !writes_everywhere(rules) {
        launch::set_mount_attributes(
            CWD,
            c"/",
            launch::Mounts::WithSubmounts,
            launch::MountAccess::ReadOnly,
        )
        .map_err(|error| (ConfinementStep::Mounts, error))?;
    }
    mount_devices(devices).map_err(at(ConfinementStep::Devices))?;
    mount_proc(user).map_err(at(ConfinementStep::Processes))?;
    // Directories in memory that become read-only once everything in them is mounted.
    let mut hidden = Vec::new();
    for source in &sources {
        let step = ConfinementStep::Rule(source.number);
        let mounted = mount(source).map_err(|error| (step, error))?;
        hidden.extend(mounted);
    }
    for tree in &hidden {
        launch::set_mount_attributes(tree, c"", launch::Mounts::One, launch::MountAccess::ReadOnly)
            .map_err(|error| (ConfinementStep::Mounts, error))?;
    }
    Ok(())
}

/// Whether the root directory has a rule of its own, which is not a mount.
fn writes_everywhere(rules: &[PathRule]) -> bool {
    rules
        .iter()
        .any(|rule| rule.path == Path::new("/") && rule.access == Access::Write)
}

/// Clones what a rule shows; `None` if the path does not exist and nothing has to be mounted.
fn source(number: u16, rule: &PathRule) -> Result<Option<Source<'_>>, Errno> {
    let shown = match &rule.access {
        Access::Private(Some(other)) => other,
        Access::Write | Access::Read | Access::Hidden | Access::Private(None) => &rule.path,
    };
    let Ok(metadata) = fs::metadata(shown) else {
        return Ok(None);
    };
    if rule.path == Path::new("/") {
        return Ok(None);
    }
    let tree = match (&rule.access, metadata.is_dir()) {
        (Access::Write | Access::Read | Access::Private(Some(_)), _) => Some(clone_tree(shown)?),
        (Access::Hidden | Access::Private(None), true) => None,
        (Access::Hidden | Access::Private(None), false) => Some(clone_tree(Path::new("/dev/null"))?),
    };
    Ok(Some(Source {
        number,
        rule,
        tree,
        is_directory: metadata.is_dir(),
    }))
}

/// Clones what is at a path. Rules name real paths; a link that another process has just put there is refused.
fn clone_tree(path: &Path) -> Result<OwnedFd, Errno> {
    let place = openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    )?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(place, "", flags)
}

/// Mounts what a rule shows. Returns the directory in memory that hides a path.
fn mount(source: &Source<'_>) -> io::Result<Option<OwnedFd>> {
    let target = &source.rule.path;
    make_target(target, source.is_directory)?;
    match (&source.tree, &source.rule.access) {
        (Some(tree), Access::Read | Access::Hidden) => {
            attach(tree, target)?;
            launch::set_mount_attributes(
                tree,
                c"",
                launch::Mounts::WithSubmounts,
                launch::MountAccess::ReadOnly,
            )?;
            Ok(None)
        }
        (Some(tree), Access::Write | Access::Private(_)) => {
            attach(tree, target)?;
            Ok(None)
        }
        (None, Access::Private(_)) => {
            attach(&memory("1777")?, target)?;
            Ok(None)
        }
        (None, Access::Write | Access::Read | Access::Hidden) => {
            let tree = memory("0755")?;
            attach(&tree, target)?;
            Ok(Some(tree))
        }
    }
}

/// Creates the place of a mount where an outer rule shows an empty directory.
fn make_target(target: &Path, is_directory: bool) -> io::Result<()> {
    if target.symlink_metadata().is_ok() {
        return Ok(());
    }
    let directory = if is_directory {
        Some(target)
    } else {
        target.parent()
    };
    if let Some(directory) = directory {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(directory)?;
    }
    if !is_directory {
        fs::File::create(target)?;
    }
    Ok(())
}

fn attach(tree: &OwnedFd, target: &Path) -> Result<(), Errno> {
    move_mount(tree, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

/// A new directory in memory.
fn memory(mode: &str) -> Result<OwnedFd, Errno> {
    file_system("tmpfs", &[("mode", mode)])
}

fn file_system(kind: &str, options: &[(&str, &str)]) -> Result<OwnedFd, Errno> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(context.as_fd(), *key, *value)?;
    }
    fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// A `/proc` that shows only processes of the namespace. In a container that masks parts of `/proc`, the kernel refuses it; the
/// old one then stays, in which the child can neither trace nor signal anything, because the users differ.
fn mount_proc(user: User) -> Result<(), Errno> {
    let proc = Path::new("/proc");
    match file_system("proc", &[]) {
        Ok(tree) => attach(&tree, proc)?,
        Err(Errno::PERM) => return Ok(()),
        Err(error) => return Err(error),
    }
    if user == User::Ordinary {
        return Ok(());
    }
    for name in SYSTEM_CONTROLS {
        let path = proc.join(name);
        if !path.exists() {
            continue;
        }
        let tree = clone_tree(&path)?;
        attach(&tree, &path)?;
        launch::set_mount_attributes(&tree, c"", launch::Mounts::One, launch::MountAccess::ReadOnly)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    }
    Ok(())
}

/// Clones of the device files, with the path that each gets.
fn clone_devices(terminal: BorrowedFd<'_>) -> Vec<(PathBuf, OwnedFd)> {
    let dev = Path::new("/dev");
    let devices = DEVICES.iter().map(|name| (dev.join(name), dev.join(name)));
    // Programs find the name of their terminal there.
    let name = rustix::termios::ttyname(terminal, Vec::new()).ok();
    let console = name.map(|name| {
        let name = String::from_utf8_lossy(name.as_bytes()).into_owned();
        (dev.join("console"), PathBuf::from(name))
    });
    let all = devices.chain(console);
    all.filter_map(|(target, source)| Some((target, clone_tree(&source).ok()?)))
        .collect()
}

/// Mounts a `/dev` with terminals and shared memory of its own.
fn mount_devices(devices: Vec<(PathBuf, OwnedFd)>) -> Result<(), Errno> {
    let dev = Path::new("/dev");
    let failed = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    attach(&memory("0755")?, dev)?;
    for (target, tree) in devices {
        fs::File::create(&target).map_err(failed)?;
        attach(&tree, &target)?;
    }
    for (name, target) in DEVICE_LINKS {
        symlink(target, dev.join(name)).map_err(failed)?;
    }
    for name in ["pts", "shm"] {
        fs::create_dir(dev.join(name)).map_err(failed)?;
    }
    let terminals = file_system("devpts", &[("ptmxmode", "0666"), ("mode", "0620")])?;
    attach(&terminals, &dev.join("pts"))?;
    attach(&memory("1777")?, &dev.join("shm"))
}
