//! What this machine can enforce.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{Confinement, Network};
use crate::process::{
    Bounds, Environment, ProcessError, ProcessSpec, Stdin, Supervisors, Transport, capture,
};

/// Longer than creating namespaces takes.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What this machine can enforce.
#[derive(Debug)]
pub struct SandboxSupport {
    /// Why a child cannot be confined.
    pub confinement: Result<(), ProcessError>,
    /// The version of Landlock. From version 6 on, abstract Unix sockets of other programs are out of reach.
    pub landlock: Option<u32>,
}

/// Tries to create namespaces; takes a few milliseconds.
pub fn sandbox_support(supervisors: &Supervisors, network: Network) -> SandboxSupport {
    let spec = ProcessSpec {
        // A confined child without a program ends once everything is set up.
        program: PathBuf::new(),
        args: Vec::new(),
        environment: Environment::default(),
        cwd: PathBuf::from("/"),
        stdin: Stdin::Null,
        stdout: Transport::Pipe,
        confinement: Some(Arc::new(Confinement::new([], network))),
    };
    let bounds = Bounds {
        timeout: TIMEOUT,
        grace: Duration::ZERO,
        max_bytes: 0,
    };
    SandboxSupport {
        confinement: capture(supervisors, &spec, bounds).map(drop),
        landlock: landlock_version(),
    }
}

#[cfg(target_os = "linux")]
fn landlock_version() -> Option<u32> {
    crate::process::launch::landlock_version()
}

#[cfg(not(target_os = "linux"))]
fn landlock_version() -> Option<u32> {
    None
}
