//! Tests that driver scripts need only bash 3.2, and that other shells are rejected.

use std::os::unix::fs::symlink;

use crate::sandbox::Sandbox;

/// Syntax that bash 3.2 does not support.
const NEWER_SYNTAX: &[&str] = &[
    ",,}",
    "^^}",
    "mapfile",
    "readarray",
    "coproc",
    "declare -A",
    "local -A",
    "typeset -A",
    "declare -n",
    "local -n",
    "declare -g",
    "&>>",
    "|&",
    ";;&",
    ";&",
    "[[ -v",
    "[ -v",
    "@Q}",
    "@U}",
    "@L}",
    "@A}",
    "wait -n",
    "globstar",
    "lastpipe",
    "inherit_errexit",
    "[-1]",
    "EPOCHSECONDS",
    "EPOCHREALTIME",
    "SRANDOM",
    "BASHPID",
    "exec {",
    "read -N",
    "read -i",
    "%(",
    "${ ",
];

const SCRIPTS: &[(&str, &str)] = &[
    ("host.sh", include_str!("../../src/agent/driver/host.sh")),
    ("claude-code.sh", include_str!("../../drivers/claude-code.sh")),
    ("codex.sh", include_str!("../../drivers/codex.sh")),
    ("copilot.sh", include_str!("../../drivers/copilot.sh")),
    ("cursor.sh", include_str!("../../drivers/cursor.sh")),
    ("opencode.sh", include_str!("../../drivers/opencode.sh")),
    ("skeleton.sh", include_str!("../../src/cli/drivers/skeleton.sh")),
];

/// A textual check for systems without bash 3.2. On macOS, every driver test runs with bash 3.2.
#[test]
fn scripts_use_only_bash_3_2_syntax() {
    for (name, text) in SCRIPTS {
        let code = text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line.trim_start()));
        for (number, line) in code.filter(|(_, line)| !line.starts_with('#')) {
            for newer in NEWER_SYNTAX {
                assert!(!line.contains(newer), "{name}:{number}: `{newer}` in {line}");
            }
        }
    }
}

#[test]
fn without_bash_a_driver_is_rejected_with_a_hint() {
    let sandbox = Sandbox::new()
        .with_agent("codex")
        .with_script("default", "say never");
    let call = ["run", "--agent", "driver:codex", "-p", "x"];
    let output = sandbox.ralph(&call).exits_with(2);
    insta::assert_snapshot!(sandbox.redact_paths(&output.stderr), @"
    error: driver scripts require bash, but `bash` is not in PATH
    hint: install bash (3.2 or newer), or use a built-in agent: ralph agents
    ");
    // Another shell named `bash`.
    let others: Vec<_> = ["dash", "busybox"]
        .iter()
        .filter_map(|shell| which::which(shell).ok())
        .collect();
    if others.is_empty() {
        return crate::sandbox::skip::skip("neither dash nor busybox is installed");
    }
    for found in others {
        let sandbox = Sandbox::new()
            .with_agent("codex")
            .with_script("default", "say never");
        symlink(found, sandbox.path("bin/bash")).expect("a link");
        let output = sandbox.ralph(&call).exits_with(2);
        assert!(output.stderr.contains("is not a usable bash"), "{output:?}");
        assert!(
            output.stderr.contains("install bash (3.2 or newer)"),
            "{output:?}"
        );
        assert!(sandbox.pids().is_empty());
    }
}
