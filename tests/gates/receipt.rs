//! Receipts: what a run has verified can be checked again, in another clone and on another machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::process::helpers::wait_until;
use crate::sandbox::{CommandOutput, DEADLINE, Running, Sandbox};

const CONFIG: &str = "event_loop: {prompt: x, max_iterations: 2}\ncli: {transcript: plain}\ngates:\n  \
                      - {name: greeting, run: grep hello a.txt}\n  - {name: other, run: 'test -f b.txt', in: clean}\n";

/// A repository in which a run has completed, with everything committed.
fn verified_run() -> Sandbox {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script(
            "default",
            "write a.txt hello\\n\nwrite b.txt two\nsay LOOP_COMPLETE\n",
        )
        .with_file("ralph.yml", CONFIG)
        .with_file(".gitignore", ".agent\n");
    git(&sandbox, &sandbox.work(), &["init", "--quiet"]);
    sandbox.ralph(&["run", "-q"]).exits_with(0);
    git(&sandbox, &sandbox.work(), &["add", "-A"]);
    git(&sandbox, &sandbox.work(), &["commit", "--quiet", "-m", "done"]);
    sandbox
}

fn git(sandbox: &Sandbox, directory: &Path, args: &[&str]) {
    let mut command = sandbox.command_for("git");
    let user = ["-c", "user.name=u", "-c", "user.email=u@localhost"];
    command.current_dir(directory).args(user).args(args);
    let output = command.output().expect("git");
    assert!(output.status.success(), "git {args:?}: {output:?}");
}

/// Another machine: a clone, an empty state directory, and a copy of the receipt in the clone.
fn clone_with_receipt(sandbox: &Sandbox) {
    let receipt = sandbox.path("receipt.json");
    let arguments = ["receipt", "-o", receipt.to_str().expect("a path")];
    sandbox.ralph(&arguments).exits_with(0);
    git(
        sandbox,
        &sandbox.path("."),
        &["clone", "--quiet", "work", "clone"],
    );
    fs::rename(receipt, sandbox.path("clone/receipt.json")).expect("a copy");
}

fn clone_into(sandbox: &Sandbox, name: &str) {
    git(sandbox, &sandbox.path("."), &["clone", "--quiet", "work", name]);
}

fn verify_clone(sandbox: &Sandbox, options: &[&str]) -> CommandOutput {
    verify_in(sandbox, "clone", options)
}

fn verify_in(sandbox: &Sandbox, clone: &str, options: &[&str]) -> CommandOutput {
    let mut command = sandbox.command(&["verify", "receipt.json"]);
    command.args(options).current_dir(sandbox.path(clone));
    command.env("RALPH_STATE_DIR", sandbox.path("other-state"));
    Running::start(&mut command).finish()
}

fn change(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).expect("a file");
    assert!(text.contains(from), "{from} in {text}");
    fs::write(path, text.replacen(from, to, 1)).expect("a file");
}

#[test]
fn receipt_names_agent_tree_gates_and_journal() {
    let sandbox = verified_run();
    let receipt: Value =
        serde_json::from_slice(&fs::read(sandbox.newest_run().join("receipt.json")).expect("a receipt"))
            .expect("JSON");
    let verification = &sandbox.records("verification")[0];
    assert_eq!(receipt["tree"]["snapshot"], verification["tree"]);
    assert_eq!(receipt["verified"], true);
    assert_eq!(receipt["outcome"], "complete");
    assert_eq!(receipt["agents"][0]["name"], "claude");
    assert_eq!(receipt["gates"][0]["definition"]["run"], "grep hello a.txt");
    assert_eq!(receipt["gates"][0]["result"], "passed");
    assert_eq!(
        receipt["gates"][0]["output_sha256"].as_str().map(str::len),
        Some(64)
    );
    assert_eq!(receipt["snapshots"].as_array().map(Vec::len), Some(2));
    let chain = sandbox.ralph(&["verify", "--json"]).exits_with(0).json();
    assert_eq!(receipt["journal"]["head"], chain["head"]);
    assert_eq!(receipt["journal"]["records"], chain["records"]);
    let text = sandbox.ralph(&["receipt"]).exits_with(0).stdout;
    assert!(
        text.contains("All gates passed (greeting, other)") && text.contains("4 files"),
        "{text}"
    );
}

#[test]
fn a_receipt_is_verified_where_it_was_written_and_in_a_second_clone() {
    let sandbox = verified_run();
    let path = sandbox.newest_run().join("receipt.json");
    let here = sandbox
        .ralph(&["verify", path.to_str().expect("a path")])
        .exits_with(0);
    assert!(
        here.stdout.contains("✓ journal: ") && here.stdout.contains("✓ gate greeting: passed"),
        "{here:?}"
    );
    clone_with_receipt(&sandbox);
    let untrusted = verify_clone(&sandbox, &[]).exits_with(2);
    assert!(untrusted.stderr.contains("ralph trust"), "{untrusted:?}");
    let there = verify_clone(&sandbox, &["--trust"]).exits_with(0);
    assert!(
        there.stdout.contains("– journal: not on this machine"),
        "{there:?}"
    );
    assert!(
        there.stdout.contains("✓ tree: ") && there.stdout.contains("✓ gate other: passed"),
        "{there:?}"
    );
    assert!(there.stdout.contains("Verified."), "{there:?}");
}

#[test]
fn a_changed_tree_is_refused_and_its_file_is_named() {
    let sandbox = verified_run();
    clone_with_receipt(&sandbox);
    fs::write(sandbox.path("clone/a.txt"), "hello!\n").expect("a file");
    let output = verify_clone(&sandbox, &[]).exits_with(1);
    assert!(
        output.stdout.contains("✗ tree: ") && output.stdout.contains("a.txt"),
        "{output:?}"
    );
    assert!(
        !output.stdout.contains("gate greeting"),
        "no gate runs: {output:?}"
    );
}

#[test]
fn a_changed_gate_is_refused_and_named() {
    let sandbox = verified_run();
    clone_with_receipt(&sandbox);
    change(&sandbox.path("clone/receipt.json"), "grep hello", "grep hell");
    let output = verify_clone(&sandbox, &["--trust"]).exits_with(1);
    assert!(
        output.stdout.contains("✗ receipt: changed since it was written"),
        "{output:?}"
    );

    let stored = sandbox.newest_run().join("receipt.json");
    change(&stored, "grep hello", "grep hell");
    let output = sandbox
        .ralph(&["verify", stored.to_str().expect("a path")])
        .exits_with(1);
    assert!(
        output.stdout.contains(
            "gates[0].definition.run: \"grep hell a.txt\" in the receipt, \"grep hello a.txt\" here"
        ),
        "{output:?}"
    );
}

#[test]
fn a_gate_that_nothing_confirms_runs_only_on_request() {
    let sandbox = verified_run();
    let gate = "grep two b.txt";
    sandbox.ralph(&["run", "-q", "--gate", gate]).exits_with(0);
    clone_with_receipt(&sandbox);
    let refused = verify_clone(&sandbox, &[]).exits_with(1);
    assert!(
        refused
            .stdout
            .contains("it is not configured here; to run it nevertheless, pass --trust"),
        "{refused:?}"
    );
    let allowed = verify_clone(&sandbox, &["--trust"]).exits_with(0);
    assert!(
        allowed.stdout.contains("✓ gate grep two b.txt: passed"),
        "{allowed:?}"
    );
}

#[test]
fn a_journal_that_came_with_the_receipt_confirms_no_command() {
    let sandbox = verified_run();
    let gate = "grep two b.txt";
    sandbox.ralph(&["run", "-q", "--gate", gate]).exits_with(0);
    clone_into(&sandbox, "clone");
    let (run, sent) = (sandbox.newest_run(), sandbox.path("projects/sent/runs/1"));
    fs::create_dir_all(sent.parent().expect("a parent")).expect("a directory");
    let copy = |from: &Path, to: &Path| {
        let copied = Command::new("cp").arg("-a").args([from, to]).status();
        assert!(copied.expect("cp").success());
    };
    copy(&run, &sent);
    copy(
        &sandbox.project().directory().join("snapshots.git"),
        &sandbox.path("projects/sent/snapshots.git"),
    );
    let receipt = sent.join("receipt.json");
    let mut command = sandbox.command(&["verify", receipt.to_str().expect("a path")]);
    command.current_dir(sandbox.path("clone"));
    command.env("RALPH_STATE_DIR", sandbox.path("other-state"));
    let output = Running::start(&mut command).finish().exits_with(1);
    assert!(
        output.stdout.contains("✓ journal: ") && output.stdout.contains("it is not configured here"),
        "{output:?}"
    );
}

#[test]
fn a_changed_configuration_is_a_changed_tree() {
    let sandbox = verified_run();
    clone_with_receipt(&sandbox);
    let clone = sandbox.path("clone");
    let receipt = fs::read(clone.join("receipt.json")).expect("a receipt");
    change(&sandbox.work().join("ralph.yml"), "grep hello", "grep -q hello");
    sandbox.ralph(&["run", "-q"]).exits_with(0);
    git(&sandbox, &sandbox.work(), &["commit", "-qam", "another gate"]);
    clone_into(&sandbox, "later");
    fs::write(sandbox.path("later/receipt.json"), receipt).expect("a copy");
    let output = verify_in(&sandbox, "later", &["--trust"]).exits_with(1);
    assert!(
        output.stdout.contains("✗ tree: ") && output.stdout.contains("ralph.yml"),
        "{output:?}"
    );
}

#[test]
fn a_changed_journal_is_refused() {
    let sandbox = verified_run();
    let run = sandbox.newest_run();
    change(&run.join("events.jsonl"), "\"iteration\":1", "\"iteration\":2");
    let receipt = run.join("receipt.json");
    let output = sandbox
        .ralph(&["verify", receipt.to_str().expect("a path")])
        .exits_with(1);
    assert!(
        output.stdout.contains("✗ journal: ") && output.stdout.contains("was changed"),
        "{output:?}"
    );
}

#[test]
fn a_signed_receipt_needs_an_allowed_signer() {
    let sandbox = verified_run();
    let Ok(program) = which::which("ssh-keygen") else {
        crate::sandbox::skip::skip("ssh-keygen is not installed");
        return;
    };
    std::os::unix::fs::symlink(program, sandbox.path("bin/ssh-keygen")).expect("a tool");
    let key = |name: &str| {
        let file = sandbox.path(name);
        let mut command = sandbox.command_for("ssh-keygen");
        command
            .args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"])
            .arg(&file);
        assert!(command.status().expect("ssh-keygen").success());
        let public = fs::read_to_string(file.with_extension("pub")).expect("a public key");
        fs::write(
            sandbox.path(&format!("{name}.signers")),
            format!("me@localhost {public}"),
        )
        .expect("signers");
        file
    };
    let (own, _) = (key("own"), key("other"));
    let own = own.to_str().expect("a path").to_owned();
    sandbox.ralph(&["receipt", "--sign", &own]).exits_with(0);
    let receipt = sandbox.newest_run().join("receipt.json");
    let verify = |signers: &str| {
        let signers = sandbox.path(signers);
        let arguments = [Path::new("verify"), &receipt, Path::new("--signers"), &signers];
        let arguments: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
        sandbox.ralph(&arguments)
    };
    let good = verify("own.signers").exits_with(0);
    assert!(
        good.stdout.contains("✓ signature: signed by me@localhost"),
        "{good:?}"
    );
    let bad = verify("other.signers").exits_with(1);
    assert!(
        bad.stdout
            .contains("✗ signature: the key is not among the allowed signers"),
        "{bad:?}"
    );
}

#[test]
fn a_run_that_did_not_complete_has_a_receipt_that_does_not_verify() {
    let config = "event_loop: {prompt: x, max_iterations: 1}\ngates:\n  - {name: never, run: 'false'}\n";
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", config);
    sandbox.ralph(&["run", "-q"]).exits_with(3);
    let receipt = sandbox.newest_run().join("receipt.json");
    wait_until("the receipt", DEADLINE, || receipt.exists());
    let output = sandbox
        .ralph(&["verify", receipt.to_str().expect("a path")])
        .exits_with(1);
    assert!(
        output.stdout.contains("does not say that gates passed"),
        "{output:?}"
    );
    let text = sandbox.ralph(&["receipt"]).exits_with(0).stdout;
    assert!(text.contains("gate      never: exit code 1"), "{text}");
}
