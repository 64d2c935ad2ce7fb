//! Attacks by a cloned repository or an unpacked archive: none of them runs a command without confirmation.

mod allowed_paths;
#[cfg(target_os = "linux")]
mod breakouts;
mod chain;
mod money;
mod processes;
#[cfg(target_os = "linux")]
mod sandboxed;
mod special_files;
mod state;
mod supervisor;
mod trust;

use std::fs;

use crate::sandbox::Sandbox;

/// Writes what `git init --bare` writes, as far as git needs it to take the directory for a repository.
fn pose_as_bare_repository(sandbox: &Sandbox, directory: &str) {
    let path = sandbox.work().join(directory);
    for name in ["objects", "refs"] {
        fs::create_dir_all(path.join(name)).expect("a directory");
        fs::write(path.join(name).join(".keep"), "").expect("a file that can be committed");
    }
    fs::write(path.join("HEAD"), "ref: refs/heads/main\n").expect("a HEAD");
    fs::write(
        path.join("config"),
        "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
    )
    .expect("a config");
}

fn commit_as_if_cloned(sandbox: &Sandbox) {
    sandbox.git(&["init", "--quiet", "--initial-branch=main"]);
    sandbox.git(&["add", "--force", "."]);
    sandbox.git(&["commit", "--quiet", "-m", "x"]);
    sandbox.git(&["remote", "add", "origin", "https://example.invalid/x.git"]);
}

#[test]
fn a_committed_bare_repository_does_not_make_its_configuration_the_users() {
    let sandbox = Sandbox::new();
    pose_as_bare_repository(&sandbox, ".ralph");
    let command = "CLAUDE_CODE_CMD=\"sh -c 'touch PWNED'\"\n";
    fs::write(sandbox.work().join(".ralph/.ralphrc"), command).expect("a configuration");
    commit_as_if_cloned(&sandbox);
    let output = sandbox.ralph(&["run", "-q", "-p", "hi", "-n", "1"]).exits_with(2);
    assert!(!sandbox.work().join("PWNED").exists(), "{output:?}");
    assert!(output.stderr.contains("ralph trust"), "{output:?}");
}

#[test]
fn a_subdirectory_that_poses_as_a_bare_repository_is_not_trusted() {
    let sandbox = Sandbox::new();
    pose_as_bare_repository(&sandbox, "sub");
    let config = "cli: {backend: custom, command: touch, args: [PWNED]}\nevent_loop: {prompt: go, max_iterations: 1}\n";
    fs::write(sandbox.work().join("sub/ralph.yml"), config).expect("a configuration");
    commit_as_if_cloned(&sandbox);
    let mut command = sandbox.command(&["run", "-q"]);
    let output = command
        .current_dir(sandbox.work().join("sub"))
        .output()
        .expect("ralph runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(!sandbox.work().join("sub/PWNED").exists());
}

#[test]
fn filters_in_the_configuration_of_a_repository_do_not_run() {
    let sandbox = Sandbox::scripted(
        "say LOOP_COMPLETE",
        "event_loop: {prompt: go, max_iterations: 1}\n",
    );
    fs::write(sandbox.work().join(".gitattributes"), "* filter=evil\n").expect("attributes");
    fs::write(sandbox.work().join("a.txt"), "a\n").expect("a file");
    sandbox.git(&["init", "--quiet", "--initial-branch=main"]);
    sandbox.git(&["add", "a.txt", ".gitattributes"]);
    sandbox.git(&["commit", "--quiet", "-m", "x"]);
    let touched = sandbox.path("PWNED");
    let clean = format!("sh -c 'touch {}; cat'", touched.display());
    sandbox.git(&["config", "filter.evil.clean", &clean]);
    // A changed file of the same size makes git read it, and so run the filter.
    fs::write(sandbox.work().join("a.txt"), "b\n").expect("a changed file");
    sandbox.ralph(&["doctor"]);
    assert!(!touched.exists(), "ralph doctor ran the filter");
    sandbox.ralph(&["run", "-q"]);
    assert!(sandbox.was_called(1));
    assert!(!touched.exists(), "ralph run ran the filter");
}
