//! Signatures with SSH keys, through `ssh-keygen -Y`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process::{Bounds, Captured, Environment, ProcessSpec, Stdin, Transport, capture};
use crate::run::Host;

/// Separates these signatures from those for other purposes.
const NAMESPACE: &str = "ralph-receipt";
const BOUNDS: Bounds = Bounds {
    timeout: Duration::from_secs(60),
    grace: Duration::from_secs(1),
    max_bytes: 1 << 16,
};

/// Who signed a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Signer {
    /// One of the allowed signers.
    Allowed(String),
    /// A key that was not compared with a list; described by ssh-keygen.
    Unknown(String),
}

/// The path of the signature of a file.
pub(super) fn signature_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".sig");
    name.into()
}

/// Signs a text with a key file, or with the agent's key of which the file is the public part.
pub(super) fn sign(text: &[u8], key: &Path, host: &Host) -> Result<Vec<u8>, String> {
    let args = [
        "-Y".into(),
        "sign".into(),
        "-n".into(),
        NAMESPACE.into(),
        "-f".into(),
        key.into(),
    ];
    run(args.into(), Some(text), host).map(|captured| captured.stdout)
}

/// Checks a signature. `signers` is a file with allowed signers, as git uses it.
pub(super) fn check(
    text: &[u8],
    signature: &Path,
    signers: Option<&Path>,
    host: &Host,
) -> Result<Signer, String> {
    let base = |action: &str| -> Vec<OsString> {
        let words = ["-Y", action, "-n", NAMESPACE, "-s"].map(OsString::from);
        words.into_iter().chain([signature.into()]).collect()
    };
    let Some(signers) = signers else {
        let captured = run(base("check-novalidate"), Some(text), host)?;
        return Ok(Signer::Unknown(first_line(&captured.stdout)));
    };
    let with_signers = |action: &str| {
        let mut args = base(action);
        args.extend(["-f".into(), signers.into()]);
        args
    };
    let found = run(with_signers("find-principals"), None, host);
    let found = found.map_err(|_| "the key is not among the allowed signers".to_owned())?;
    let identity = first_line(&found.stdout);
    let mut args = with_signers("verify");
    args.extend(["-I".into(), identity.clone().into()]);
    run(args, Some(text), host).map(|_| Signer::Allowed(identity))
}

fn run(args: Vec<OsString>, stdin: Option<&[u8]>, host: &Host) -> Result<Captured, String> {
    let spec = ProcessSpec {
        program: PathBuf::from("ssh-keygen"),
        args,
        environment: Environment::default(),
        cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        stdin: stdin.map_or(Stdin::Null, |text| Stdin::Bytes(text.to_vec())),
        stdout: Transport::Pipe,
        confinement: None,
    };
    let captured = capture(host.supervisors(), &spec, BOUNDS)
        .map_err(|error| format!("cannot run ssh-keygen: {error}"))?;
    match captured.end {
        Some(end) if end.success() => Ok(captured),
        Some(_) => Err(format!("ssh-keygen: {}", first_line(&captured.stderr))),
        None => Err("ssh-keygen did not end in time".to_owned()),
    }
}

fn first_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.trim().lines().next().unwrap_or_default().to_owned()
}
