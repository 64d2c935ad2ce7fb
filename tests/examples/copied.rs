//! An example, copied into a sandbox as a user would copy it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::sandbox::history::json;
use crate::sandbox::{Running, Sandbox, Told};

/// What the scripts of the examples use besides what every sandbox has.
const TOOLS: &[&str] = &[
    "bash", "env", "awk", "sed", "head", "tail", "tr", "wc", "ls", "mv", "rm", "curl", "uname",
];

pub(super) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// The example in a git repository of its own, with `ralph` on the PATH.
pub(super) fn copied(name: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    copy(&directory().join(name), &sandbox.work());
    for tool in TOOLS {
        if let Ok(found) = which::which(tool) {
            put_on_path(&sandbox, tool, &found);
        }
    }
    put_on_path(&sandbox, "ralph", Path::new(env!("CARGO_BIN_EXE_ralph")));
    sandbox.git(&["init", "--quiet"]);
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "--quiet", "-m", "as copied"]);
    sandbox
}

pub(super) fn put_on_path(sandbox: &Sandbox, name: &str, program: &Path) {
    symlink(program, sandbox.path("bin").join(name)).expect("a program on the PATH");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("an example") {
        let entry = entry.expect("a file of the example");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("its type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

/// The command that the example's README tells the user to type: its one block of shell.
pub(super) fn command_of(name: &str) -> String {
    let readme = fs::read_to_string(directory().join(name).join("README.md")).expect("a README");
    let blocks: Vec<&str> = readme.split("```sh\n").skip(1).collect();
    assert_eq!(blocks.len(), 1, "{name}/README.md names one command");
    let (block, _) = blocks[0].split_once("```").expect("the end of the block");
    block.to_owned()
}

/// Types the command of the README.
pub(super) fn typed(sandbox: &Sandbox, name: &str) -> Told {
    let mut shell = sandbox.command_of("/bin/sh");
    shell.arg("-ec").arg(command_of(name));
    Running::start(&mut shell).finish()
}

/// The outcome of one iteration, as its file has it.
pub(super) fn outcome(sandbox: &Sandbox, iteration: &str) -> Value {
    let path = sandbox.only_run().join("iterations").join(iteration);
    json(&path.join("outcome.json"))
}

/// A file that the agent wrote.
pub(super) fn written(sandbox: &Sandbox, name: &str) -> String {
    let path = sandbox.work().join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The real interpreter, not a shim that needs the user's environment; none where there is no Python 3.
pub(super) fn python() -> Option<PathBuf> {
    let mut command = Command::new("python3");
    command.args(["-c", "import sys; print(sys.executable)"]);
    let output = command.output().ok().filter(|output| output.status.success())?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    path.is_file().then_some(path)
}
