//! Attempts of an agent to change files outside `allowed_paths` and hide it from git: all of them fail the iteration.

use std::fs;

use crate::sandbox::Sandbox;

/// Runs one iteration whose agent executes `attack`; returns the files that were reported.
fn violations(attack: &str) -> String {
    let config =
        "event_loop: {prompt: x, max_iterations: 1, max_no_progress: 0, allowed_paths: ['src/**']}\n";
    let sandbox = Sandbox::new();
    let script = format!("{attack}\necho LOOP_COMPLETE\n");
    fs::write(sandbox.path("attack.sh"), script).expect("a script");
    let agent = format!(
        "cli: {{backend: custom, command: sh, args: [{}], prompt_mode: stdin, transcript: plain}}\n{config}",
        sandbox.path("attack.sh").display()
    );
    fs::write(sandbox.work().join("ralph.yml"), agent).expect("a configuration");
    fs::write(sandbox.work().join("secret.txt"), "original\n").expect("a file");
    fs::create_dir(sandbox.work().join("src")).expect("a directory");
    fs::write(sandbox.work().join("src/a.txt"), "a\n").expect("a file");
    sandbox.init_git_repository();
    let output = sandbox.ralph(&["run", "-q"]).exits_with(3);
    let ended = &sandbox.records("iteration_ended")[0];
    let why = ended["failure"]["why"].as_str();
    assert!(
        matches!(why, Some("outside_allowed_paths" | "paths_not_checked")),
        "{attack}: {ended} {output:?}"
    );
    ended["failure"].to_string()
}

#[test]
fn changes_that_git_is_configured_to_overlook_are_seen() {
    for attack in [
        "git update-index --assume-unchanged secret.txt; echo x > secret.txt",
        "git update-index --skip-worktree secret.txt; echo x > secret.txt",
        "echo x > secret.txt; rm .git/HEAD",
        "echo x > secret.txt; rm -rf .git",
        "git config core.worktree /tmp; echo x > secret.txt",
        "echo secret2.txt >> .git/info/exclude; echo x > secret2.txt; echo x > secret.txt",
        "git config core.fileMode false; chmod +x secret.txt; echo x > secret.txt",
        "git config core.ignoreStat true; git config core.trustctime false; echo x > secret.txt",
        "echo 'secret.txt filter=x' > .git/info/attributes; echo x > secret.txt",
    ] {
        let files = violations(attack);
        assert!(
            files.contains("secret.txt") || files.contains("paths_not_checked"),
            "{attack}: {files}"
        );
    }
}

#[test]
fn a_change_that_is_committed_and_reverted_in_the_workspace_is_seen() {
    let commit = "echo x > secret.txt; git -c user.name=a -c user.email=a@b commit -qam x";
    assert!(violations(commit).contains("secret.txt"));
    let hidden = format!("{commit}; git show HEAD^:secret.txt > secret.txt");
    assert!(violations(&hidden).contains("secret.txt"));
    let replaced = format!("{hidden}; git replace HEAD HEAD^");
    assert!(violations(&replaced).contains("secret.txt"));
}

#[test]
fn planted_hooks_and_nested_repositories_are_seen() {
    let hook = "mkdir -p .git/hooks; echo true > .git/hooks/pre-commit";
    assert!(violations(hook).contains(".git/hooks/pre-commit"));
    assert!(violations("git config core.hooksPath /tmp/x").contains(".git/config"));
    let nested = violations("git init -q lib; echo x > lib/file");
    assert!(
        nested.contains("lib/file") && nested.contains("lib/.git/config"),
        "{nested}"
    );
    let ignored = violations("mkdir lib; echo '*' > lib/.gitignore; echo x > lib/file");
    assert!(
        ignored.contains("lib/file") && ignored.contains("lib/.gitignore"),
        "{ignored}"
    );
}

#[test]
fn a_change_with_the_old_size_and_modification_time_is_seen() {
    let attack =
        "touch -r secret.txt /tmp/$$; echo origiNal > secret.txt; touch -r /tmp/$$ secret.txt; rm /tmp/$$";
    assert!(violations(attack).contains("secret.txt"));
}
