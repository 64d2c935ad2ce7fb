//! Tests of misbehaving driver scripts with the real program: each run ends with an error message and an exit code.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::fixture::COMPLETE_DRIVER;
use super::sandbox::Sandbox;

const DONE: &str = "say {\"type\":\"text\",\"text\":\"LOOP_COMPLETE\"}";
const FILTER: &str = "driver_stream_filter() { echo '.text + \"\\n\"'; }";

fn project(faulty: &str) -> Sandbox {
    let script = format!("{COMPLETE_DRIVER}\n{FILTER}\n{faulty}\n");
    Sandbox::new()
        .agent("x-cli", DONE)
        .file("project/.ralph/drivers/x.sh", script)
        .file("project/PROMPT.md", b"caf\xe9 \xff do it\n")
}

/// Script lines, the expected exit code, and the expected text in the output.
#[test]
fn each_faulty_script_has_an_exit_code_and_a_message() {
    for (faulty, code, expected) in [
        (
            "driver_build_command() { exit 3; }",
            2,
            "driver_build_command called `exit 3`",
        ),
        (
            "driver_valid_tools() { exit 3; }",
            2,
            "driver_valid_tools called `exit 3`",
        ),
        ("exit 3", 2, "the script called `exit 3`"),
        ("driver_name() { while :; do sleep 1; done; }", 2, "driver_name"),
        ("echo noise; echo more noise >&2; printf 'a\\0b'", 0, ""),
        ("driver_display_name() { echo \"X $NOT_SET_ANYWHERE\"; }", 0, ""),
        (
            "set -euo pipefail; driver_valid_tools() { set -e; false; VALID_TOOL_PATTERNS=(a); }",
            0,
            "",
        ),
        ("cat() { echo shadow; }; printf() { echo shadow; }", 0, ""),
        (
            "driver_display_name() { head -c 10000000 /dev/zero | tr '\\0' x; }",
            2,
            "driver_display_name",
        ),
        ("driver_display_name() { printf 'The\\0 X'; }", 0, ""),
        (
            "driver_build_command() { CLAUDE_CMD_ARGS=(rm -rf .); return 1; }",
            2,
            "driver_build_command",
        ),
        ("unfinished() {", 0, "syntax error"),
    ] {
        let sandbox = project(faulty);
        let config = "event_loop: {max_consecutive_failures: 1}\n";
        let sandbox = sandbox.file("project/ralph.yml", config);
        let done = sandbox.ralph(&["run", "--agent", "driver:x", "-n", "1"]);
        let output = format!("{}{}", done.stdout, done.stderr);
        assert_eq!(done.code, code, "{faulty}: {output}");
        assert!(output.contains(expected), "{faulty}: {output}");
        assert_eq!(sandbox.was_called(), code == 0, "{faulty}: {output}");
        assert!(sandbox.project().join("PROMPT.md").exists(), "{faulty}");
    }
}

#[test]
fn unsafe_driver_file_is_not_sourced() {
    let run = |sandbox: &Sandbox, name: &str| {
        let agent = format!("driver:{name}");
        let done = sandbox.ralph(&["run", "--agent", &agent, "-n", "1"]);
        assert_eq!(done.code, 2, "{name}: {done:?}");
        assert!(
            !sandbox.project().join("evil").exists() && !sandbox.was_called(),
            "{name}"
        );
        done.stderr
    };
    let evil = "touch evil";
    let sandbox = project(evil);
    assert!(run(&sandbox, "../drivers/x").contains("../drivers/x"));
    assert!(run(&sandbox, "").contains("driver"));

    let path = sandbox.project().join(".ralph/drivers/x.sh");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o646)).unwrap();
    assert!(run(&sandbox, "x").contains("chmod o-w"));

    let elsewhere = sandbox.path("elsewhere.sh");
    fs::rename(&path, &elsewhere).unwrap();
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o644)).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert!(run(&sandbox, "x").contains("copy the file into the directory"));
}
