//! What still works in a sandbox, what gates may do in it, and what happens where it cannot be enforced.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::breakouts::is_running;
use crate::sandbox::skip::skip;
use crate::sandbox::{CommandOutput, Sandbox, command_output};

const JOBS: &str = include_str!("sandboxed_jobs.sh");

/// A sandbox outside of the temporary directory, with all programs of the machine.
fn fixture(agent: &str, settings: &str) -> Sandbox {
    let sandbox = Sandbox::new_in(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let config = format!(
        "cli: {{backend: custom, command: sh, args: [agent.sh], prompt_mode: stdin, transcript: plain}}\n\
         event_loop: {{prompt: x, max_iterations: 1, max_no_progress: 0}}\nsandbox: {{mode: workspace}}\n{settings}\n"
    );
    let sandbox = sandbox
        .with_file("ralph.yml", &config)
        .with_file("agent.sh", agent);
    sandbox.git(&["init", "--quiet", "--initial-branch=main"]);
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "--quiet", "-m", "x"]);
    sandbox
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> CommandOutput {
    let mut command = sandbox.command(&["run", "--no-tui"]);
    let path = std::env::join_paths([sandbox.path("bin")].into_iter().chain(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    )));
    command
        .args(arguments)
        .env_remove("RALPH_SANDBOX")
        .env("PATH", path.expect("a PATH"));
    for name in ["RUSTUP_HOME", "CARGO_HOME"] {
        let home = std::env::var_os("HOME")
            .map(std::path::PathBuf::from)
            .unwrap_or_default();
        let default = home.join(if name == "CARGO_HOME" { ".cargo" } else { ".rustup" });
        command.env(name, std::env::var_os(name).map_or(default, Into::into));
    }
    command_output(command.output().expect("ralph runs"))
}

#[track_caller]
fn is_possible() -> bool {
    let namespaces = Command::new("unshare")
        .args(["-r", "-m", "-p", "-n", "-f", "true"])
        .status();
    let able = namespaces.is_ok_and(|status| status.success());
    if !able {
        skip("user namespaces are not available");
    }
    able
}

#[test]
fn ordinary_jobs_of_developers_succeed_in_a_workspace_sandbox() {
    if !is_possible() {
        return;
    }
    let sandbox = fixture(JOBS, "");
    let output = run(&sandbox, &[]);
    let raw = String::from_utf8_lossy(&sandbox.iteration_file("0001", "stdout.raw")).into_owned();
    let failed: Vec<&str> = raw.lines().filter(|line| line.starts_with("failed ")).collect();
    assert!(failed.is_empty(), "{failed:#?}\n{output:?}");
    assert!(
        raw.lines().filter(|line| line.starts_with("ok ")).count() > 20,
        "{raw}"
    );
    assert!(output.stdout.contains("sandbox workspace: "), "{output:?}");
}

#[test]
fn a_gate_runs_in_the_sandbox_except_with_a_mode_of_its_own() {
    if !is_possible() {
        return;
    }
    let gate = |name: &str, sandbox: &str| {
        format!("  - {{name: {name}, run: 'echo x > ../outside-{name}'{sandbox}}}\n")
    };
    let gates = format!(
        "gates:\n{}{}",
        gate("free", ", sandbox: {mode: 'off'}"),
        gate("confined", "")
    );
    let sandbox = fixture("echo LOOP_COMPLETE", &gates);
    let output = run(&sandbox, &[]).exits_with(3);
    assert!(sandbox.path("outside-free").exists(), "{output:?}");
    assert!(!sandbox.path("outside-confined").exists(), "{output:?}");
    assert!(output.stdout.contains("Read-only file system"), "{output:?}");
}

#[test]
fn files_that_a_gate_protects_are_read_only_for_the_agent() {
    if !is_possible() {
        return;
    }
    let gates = "gates: [{name: tests, run: 'grep -q right tests/expected', protect: ['tests/**']}]";
    let sandbox = fixture("echo wrong > tests/expected || echo LOOP_COMPLETE", gates);
    fs::create_dir(sandbox.work().join("tests")).expect("a directory");
    fs::write(sandbox.work().join("tests/expected"), "right\n").expect("a file");
    let output = run(&sandbox, &[]).exits_with(0);
    let text = fs::read_to_string(sandbox.work().join("tests/expected")).expect("a file");
    assert_eq!(text, "right\n", "{output:?}");
}

#[test]
fn without_namespaces_a_request_is_refused() {
    if !is_possible() {
        return;
    }
    let sandbox = fixture("echo LOOP_COMPLETE", "");
    let forbidden = |arguments: &[&str]| {
        // No user namespace can be created below this one.
        let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
        let mut command = sandbox.command_for("/usr/bin/env");
        let ralph = [
            "unshare",
            "-r",
            "sh",
            "-c",
            script,
            "sh",
            env!("CARGO_BIN_EXE_ralph"),
            "run",
            "--no-tui",
        ];
        command
            .args(ralph)
            .args(arguments)
            .env_remove("RALPH_SANDBOX")
            .env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command_output(command.output().expect("ralph runs"))
    };
    for arguments in [
        &["--sandbox", "workspace"][..],
        &[],
        &["--sandbox", "strict"],
        &["--net", "none"],
    ] {
        let output = forbidden(arguments).exits_with(2);
        assert!(
            output.stderr.contains("is not available: cannot confine"),
            "{output:?}"
        );
        assert!(output.stderr.contains("ralph doctor"), "{output:?}");
    }
    forbidden(&["--sandbox", "off"]).exits_with(0);
}

#[test]
fn variables_are_dropped_and_passed_on_as_configured() {
    let agent = "env | grep SETTING_ | sort; echo LOOP_COMPLETE";
    let sandbox = fixture(agent, "env: {drop: ['SETTING_*'], pass: [SETTING_B]}");
    let mut command = sandbox.command(&["run", "-q"]);
    command.env("SETTING_A", "first").env("SETTING_B", "second");
    let path = format!("{}:/usr/bin:/bin", sandbox.path("bin").display());
    command_output(command.env("PATH", path).output().expect("ralph runs")).exits_with(0);
    let raw = String::from_utf8_lossy(&sandbox.iteration_file("0001", "stdout.raw")).into_owned();
    assert!(
        raw.contains("SETTING_B=second") && !raw.contains("SETTING_A"),
        "{raw}"
    );
}

/// Replaces itself by others in sessions of their own, which ignore every request to end. At most 12 at a time, for one minute.
const RESPAWN: &str = r#"
trap '' TERM HUP INT
ulimit -u 4000
slot=1
until mkdir "slots/$slot" 2> /dev/null; do
    slot=$((slot + 1))
    [ "$slot" -le 12 ] || exit 0
done
setsid sh "$0" &
setsid sh "$0" &
second=0
while [ "$second" -lt 60 ]; do
    sleep 1
    second=$((second + 1))
done
"#;

#[test]
fn processes_that_multiply_and_ignore_signals_end_with_the_agent() {
    if !is_possible() {
        return;
    }
    let agent = "mkdir slots; setsid sh \"$PWD/respawn.sh\" & while [ ! -d slots/12 ]; do sleep 0.1; done; echo LOOP_COMPLETE";
    let sandbox = fixture(agent, "").with_file("respawn.sh", RESPAWN);
    run(&sandbox, &[]).exits_with(0);
    let script = sandbox.work().join("respawn.sh");
    let script = script.canonicalize().expect("the script");
    assert!(!is_running(&script.to_string_lossy()), "a process has survived");
}

#[test]
fn links_that_one_run_has_planted_show_nothing_to_the_next() {
    if !is_possible() {
        return;
    }
    let agent = "cat ~/.ssh/key >> seen; ls -A ~/.ssh >> seen\n\
        mkdir -p .git/modules/x; echo x > .git/modules/x/HEAD\n\
        ln -sfn ~/.ssh/key .git/config.worktree; ln -sfn ~/.ssh .git/modules/x/hooks\n\
        for name in amp opencode; do ln -sfn ~/.ssh ~/.cache/$name; done\n\
        test -L .git/config.worktree -a -L ~/.cache/amp && echo planted >> seen; echo LOOP_COMPLETE\n";
    let sandbox = fixture(agent, "");
    let keys = sandbox.path("home").join(".ssh");
    fs::create_dir_all(&keys).expect("a directory");
    fs::write(keys.join("key"), "a secret").expect("a key");
    for _ in 0..2 {
        run(&sandbox, &[]).exits_with(0);
    }
    let seen = fs::read_to_string(sandbox.work().join("seen")).expect("what the agent saw");
    assert_eq!(seen.matches("planted").count(), 2, "{seen}");
    assert!(!seen.contains("secret") && !seen.contains("key"), "{seen}");
}
