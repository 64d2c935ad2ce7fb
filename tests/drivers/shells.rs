//! Which shell: any bash from 3.2 on, and nothing else.

use std::os::unix::fs::symlink;

use crate::sandbox::Sandbox;

/// What bash has learnt since 3.2.
const NEWER: &[&str] = &[
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

/// A check by eye, for where there is no bash so old to try it with; on macOS every test of a driver is that trial.
#[test]
fn nothing_newer_than_bash_3_2_is_used() {
    for (name, text) in SCRIPTS {
        let code = text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line.trim_start()));
        for (number, line) in code.filter(|(_, line)| !line.starts_with('#')) {
            for newer in NEWER {
                assert!(!line.contains(newer), "{name}:{number}: `{newer}` in {line}");
            }
        }
    }
}

#[test]
fn without_bash_a_driver_is_refused_and_says_what_helps() {
    let sandbox = Sandbox::new().with_agent("codex").playing("default", "say never");
    let call = ["run", "--agent", "driver:codex", "-p", "x"];
    let told = sandbox.ralph(&call).exits_with(2);
    insta::assert_snapshot!(sandbox.without_places(&told.stderr), @"
    error: driver scripts need bash, and `bash` is not in PATH
      install bash (3.2 or newer), or use a built-in agent: ralph agents
    ");
    // Another shell under that name.
    for shell in ["dash", "busybox"] {
        let Ok(found) = which::which(shell) else { continue };
        let sandbox = Sandbox::new().with_agent("codex").playing("default", "say never");
        symlink(found, sandbox.path("bin/bash")).expect("a link");
        let told = sandbox.ralph(&call).exits_with(2);
        assert!(told.stderr.contains("is not a bash"), "{told:?}");
        assert!(told.stderr.contains("install bash (3.2 or newer)"), "{told:?}");
        assert!(sandbox.pids().is_empty());
    }
}
