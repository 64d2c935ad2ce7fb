//! Copies an example into a sandbox, as a user would.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::sandbox::history::json;
use crate::sandbox::{CommandOutput, Running, Sandbox};

/// Tools that the examples' scripts need in addition to those of every sandbox.
const TOOLS: &[&str] = &[
    "bash", "env", "awk", "sed", "head", "tail", "tr", "wc", "ls", "mv", "rm", "curl", "uname",
];

pub(super) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// Copies an example into its own git repository, with `ralph` on the PATH.
pub(super) fn copy_example(name: &str) -> Sandbox {
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

/// Returns the command in the example's README: its only shell block.
pub(super) fn readme_command(name: &str) -> String {
    let readme = fs::read_to_string(directory().join(name).join("README.md")).expect("a README");
    let blocks: Vec<&str> = readme.split("```sh\n").skip(1).collect();
    assert_eq!(blocks.len(), 1, "{name}/README.md has one shell block");
    let (block, _) = blocks[0].split_once("```").expect("the end of the block");
    block.to_owned()
}

/// Runs the command of the README.
pub(super) fn run_readme_command(sandbox: &Sandbox, name: &str) -> CommandOutput {
    let mut shell = sandbox.command_for("/bin/sh");
    shell.arg("-ec").arg(readme_command(name));
    Running::start(&mut shell).finish()
}

/// Reads outcome.json of an iteration.
pub(super) fn outcome(sandbox: &Sandbox, iteration: &str) -> Value {
    let path = sandbox.only_run().join("iterations").join(iteration);
    json(&path.join("outcome.json"))
}

/// Reads a file that the agent wrote.
pub(super) fn read_file(sandbox: &Sandbox, name: &str) -> String {
    let path = sandbox.work().join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the real interpreter instead of a shim that needs the user's environment; `None` without Python 3.
pub(super) fn python() -> Option<PathBuf> {
    let mut command = Command::new("python3");
    command.args(["-c", "import sys; print(sys.executable)"]);
    let output = command.output().ok().filter(|output| output.status.success())?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    path.is_file().then_some(path)
}
