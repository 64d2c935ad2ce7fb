//! Secrets are redacted, files are private, and names do not lead out of their directory.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::sandbox::{Sandbox, claude};

const KEY: &str = "kf-0123456789-very-private";
const KEY_BY_FORMAT: &str = "sk-ant-api03-Zz0123456789abcdefghijklmnop";

/// Returns an agent that prints two keys: one of the environment, and one with a recognizable format.
fn agent_that_prints_keys() -> Sandbox {
    let script = [
        claude::init(),
        claude::message("m1", &format!("the key is {KEY}, the other one {KEY_BY_FORMAT}.")),
        claude::tool("m2", "t1", &format!("curl -H 'x-api-key: {KEY}' localhost")),
        claude::tool_result("t1", &format!("ANTHROPIC_API_KEY={KEY_BY_FORMAT}\n")),
        format!("err using {KEY}\n"),
        claude::message("m3", "LOOP_COMPLETE"),
        claude::result("LOOP_COMPLETE"),
    ];
    Sandbox::new()
        .with_agent("claude")
        .with_file(
            "ralph.yml",
            "hooks: { on_iteration: \"cat >> hooks.json\", on_complete: \"cat >> hooks.json\" }\n",
        )
        .with_script("default", &script.concat())
}

#[test]
fn secrets_are_in_the_raw_output_and_nowhere_else() {
    let sandbox = agent_that_prints_keys();
    let mut command = sandbox.command(&["run", "--json", "-p", "x"]);
    command
        .env("SERVICE_API_KEY", KEY)
        .env("PATH", path_with_tools(&sandbox));
    let output = crate::sandbox::Running::start(&mut command)
        .finish()
        .exits_with(0);

    let raw = String::from_utf8_lossy(&sandbox.iteration_file("0001", "stdout.raw")).into_owned();
    assert!(raw.contains(KEY) && raw.contains(KEY_BY_FORMAT));
    let mut searched = 0;
    each_file(&sandbox.path("state"), &mut |path| {
        if path.extension().is_some_and(|extension| extension == "raw") {
            return;
        }
        let text = String::from_utf8_lossy(&fs::read(path).expect("a readable file")).into_owned();
        assert!(
            !text.contains(KEY) && !text.contains(KEY_BY_FORMAT),
            "{}: {text}",
            path.display()
        );
        searched += 1;
    });
    assert!(searched >= 4, "only {searched} files");
    let hook_input = fs::read_to_string(sandbox.work().join("hooks.json")).expect("the input of the hooks");
    assert_eq!(hook_input.lines().count(), 2);
    for text in [&output.stdout, &output.stderr, &hook_input] {
        assert!(!text.contains(KEY) && !text.contains(KEY_BY_FORMAT), "{text}");
    }
    assert_eq!(
        output.stdout.matches("[redacted]").count(),
        5,
        "{}",
        output.stdout
    );
}

#[test]
fn only_the_user_can_read_the_files_of_a_run() {
    let sandbox = agent_that_prints_keys();
    let mut command = sandbox.command(&["run", "-p", "x"]);
    command.env("PATH", path_with_tools(&sandbox));
    crate::sandbox::Running::start(&mut command)
        .finish()
        .exits_with(0);
    let runs = sandbox.runs();
    let mut seen = 0;
    each_file(&runs, &mut |path| {
        seen += 1;
        let of = |path: &Path| fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
        assert_eq!(of(path), 0o600, "{}", path.display());
        let directory = path.parent().expect("a directory");
        assert_eq!(of(directory), 0o700, "{}", directory.display());
    });
    assert!(seen >= 6, "only {seen} files");
}

/// Names of runs and drivers that would leave their directory are refused, and nothing is read or written there.
#[test]
fn no_name_leads_out_of_its_directory() {
    let sandbox = agent_that_prints_keys();
    fs::create_dir_all(sandbox.path("outside")).expect("a directory");
    fs::write(sandbox.path("outside/events.jsonl"), "").expect("a file");
    for name in ["../../../outside", "..", "../..", ".", ""] {
        for words in [
            vec!["tell", name, "hello"],
            vec!["run", "--continue", name, "-p", "x"],
        ] {
            let output = sandbox.ralph(&words);
            assert!(
                matches!(output.code(), Some(1..=2)),
                "{words:?}: {}",
                output.stderr
            );
        }
    }
    for driver in ["../../outside/evil", "/etc/passwd", "..", "a/b"] {
        let output = sandbox.ralph(&["run", "--agent", &format!("driver:{driver}"), "-p", "x"]);
        assert_eq!(output.code(), Some(2), "{driver}: {}", output.stderr);
        let output = sandbox.ralph(&["drivers", "new", driver]);
        assert_eq!(output.code(), Some(2), "{driver}: {}", output.stderr);
    }
    let left: Vec<_> = fs::read_dir(sandbox.path("outside"))
        .expect("a directory")
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// Every user of the machine can read arguments, so a key of the environment must not be in those of ralph, supervisor or agent.
#[test]
fn no_key_is_in_any_arguments() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", "hang\n");
    let mut command = sandbox.command(&["run", "-p", "x", "--agent", "claude"]);
    command.env("ANTHROPIC_API_KEY", KEY);
    let running = crate::sandbox::Running::start(&mut command);
    sandbox.wait_for_processes(1);
    let agent = sandbox.pids()[0];
    for pid in [running.pid(), parent_of(agent), agent] {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).expect("arguments");
        let text = String::from_utf8_lossy(&arguments).into_owned();
        assert!(!text.is_empty() && !text.contains(KEY), "{text}");
    }
}

/// Includes the files that do not belong to a run: locks, inbox, trust decisions, temporary directories.
#[test]
fn files_of_ralph_are_private_under_any_umask() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script(
            "default",
            &format!("wait-for go\n{}", claude::session("LOOP_COMPLETE")),
        )
        .with_file("ralph.yml", "gates: [{ name: g, run: 'true' }]\n");
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let masked = |words: &str| {
        let mut command = sandbox.command_for("/bin/sh");
        command.arg("-c").arg(format!("umask 000; exec {ralph} {words}"));
        command.env("PATH", path_with_tools(&sandbox));
        crate::sandbox::Running::start(&mut command)
    };
    masked("trust --yes").finish();
    let running = masked("run -p x");
    sandbox.wait_for_processes(1);
    masked("tell latest hello").finish().exits_with(0);
    let of = |path: &Path| fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
    let scratch: Vec<_> = fs::read_dir(sandbox.path("tmp"))
        .expect("a directory")
        .flatten()
        .collect();
    assert!(!scratch.is_empty());
    for entry in &scratch {
        assert_eq!(of(&entry.path()) & 0o077, 0, "{}", entry.path().display());
    }
    let check = |seen: &mut usize| {
        for place in [sandbox.path("state"), sandbox.path("home")] {
            each_file(&place, &mut |path| {
                *seen += 1;
                assert_eq!(of(path) & 0o077, 0, "{}", path.display());
                assert_eq!(
                    of(path.parent().expect("a directory")) & 0o022,
                    0,
                    "{}",
                    path.display()
                );
            });
        }
    };
    let mut seen = 0;
    check(&mut seen);
    fs::write(sandbox.path("agent/go"), "").expect("a file");
    running.finish().exits_with(0);
    check(&mut seen);
    assert!(seen >= 12, "only {seen} files");
}

/// A repository can contain symbolic links.
#[test]
fn nothing_is_written_through_a_symbolic_link_of_the_repository() {
    for name in ["lock", "runs/20200101-000000-aaaa/events.jsonl"] {
        let sandbox = Sandbox::new()
            .with_agent("claude")
            .with_script("default", &claude::session("LOOP_COMPLETE"));
        let victim = sandbox.path("home/.profile");
        fs::write(&victim, "export PRECIOUS=1\n").expect("a file");
        let link = sandbox.work().join(".agent").join(name);
        fs::create_dir_all(link.parent().expect("a directory")).expect("a directory");
        std::os::unix::fs::symlink(&victim, &link).expect("a link");
        for words in [
            &["run", "-p", "x"][..],
            &["run", "--continue", "20200101"],
            &["tell", "20200101", "x"],
        ] {
            sandbox.ralph(words);
        }
        assert_eq!(
            fs::read_to_string(&victim).expect("a file"),
            "export PRECIOUS=1\n",
            "{name}"
        );
    }
}

/// Names of hats and published topics are never used as paths or as part of a command.
#[test]
fn names_of_hats_and_topics_are_not_used_as_paths() {
    let event = r#"<event topic="../../../outside/$(touch owned)">../../../outside/x; touch owned</event>"#;
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("LOOP_COMPLETE"))
        .with_script("1", &claude::session(event))
        .with_file(
            "ralph.yml",
            "hats:\n  '../../../outside/hat':\n    description: x\n    \
             triggers: [task.start, '../../../outside/*']\n    instructions: y\n    publishes: [done]\n\
             hooks: { on_iteration: 'cat > /dev/null' }\nevent_loop: { cooldown_seconds: 0 }\n",
        );
    fs::create_dir_all(sandbox.path("outside")).expect("a directory");
    let output = sandbox.ralph(&["run", "-p", "x", "-n", "3"]);
    assert_eq!(output.code(), Some(0), "{}", output.text());
    let empty = fs::read_dir(sandbox.path("outside"))
        .expect("a directory")
        .next()
        .is_none();
    assert!(empty, "something was written outside");
    assert!(!sandbox.work().join("owned").exists());
    let names: Vec<String> = fs::read_dir(sandbox.work())
        .expect("a directory")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !matches!(name.as_str(), ".agent" | "ralph.yml"))
        .collect();
    assert_eq!(names, [""; 0]);
}

#[test]
fn no_command_deletes_or_changes_files_outside_of_the_runs_directory() {
    let sandbox = agent_that_prints_keys();
    let outside = sandbox.path("outside");
    fs::create_dir_all(outside.join("iterations")).expect("a directory");
    fs::write(outside.join("events.jsonl"), "{}\n").expect("a file");
    fs::create_dir_all(sandbox.runs()).expect("a directory");
    for name in ["../../../outside", "..", "../../.."] {
        for words in [
            vec!["clean", name, "--yes"],
            vec!["show", name],
            vec!["logs", name],
            vec!["export", name],
            vec!["attach", name],
            vec!["tell", name, "x"],
        ] {
            let output = sandbox.ralph(&words);
            assert_ne!(output.code(), Some(0), "{words:?}: {}", output.text());
        }
    }
    let left = fs::read_to_string(outside.join("events.jsonl")).expect("still there");
    assert_eq!(left, "{}\n");
    assert_eq!(fs::read_dir(&outside).expect("a directory").count(), 2);
}

fn parent_of(pid: i32) -> i32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line.and_then(|number| number.trim().parse().ok())
        .expect("a parent")
}

fn path_with_tools(sandbox: &Sandbox) -> String {
    format!("{}:/usr/bin:/bin", sandbox.path("bin").display())
}

fn each_file(directory: &Path, visit: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let kind = entry.file_type().expect("a type");
        if kind.is_dir() {
            each_file(&entry.path(), visit);
        } else if kind.is_file() {
            visit(&entry.path());
        }
    }
}
