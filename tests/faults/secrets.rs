//! What must stay private: keys, and everything that a run writes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::sandbox::{Sandbox, claude};

const KEY: &str = "kf-0123456789-very-private";
const SHAPED: &str = "sk-ant-api03-Zz0123456789abcdefghijklmnop";

/// An agent that says and does things with two keys, one of the environment and one that it found somewhere.
fn indiscreet() -> Sandbox {
    let script = [
        claude::init(),
        claude::message("m1", &format!("the key is {KEY}, the other one {SHAPED}.")),
        claude::tool("m2", "t1", &format!("curl -H 'x-api-key: {KEY}' localhost")),
        claude::tool_result("t1", &format!("ANTHROPIC_API_KEY={SHAPED}\n")),
        format!("err using {KEY}\n"),
        claude::message("m3", "LOOP_COMPLETE"),
        claude::result("LOOP_COMPLETE"),
    ];
    Sandbox::new()
        .with_agent("claude")
        .with_file(
            "ralph.yml",
            "hooks: { on_iteration: \"cat >> told.json\", on_complete: \"cat >> told.json\" }\n",
        )
        .playing("default", &script.concat())
}

#[test]
fn secrets_are_in_the_raw_output_and_nowhere_else() {
    let sandbox = indiscreet();
    let mut command = sandbox.command(&["run", "--json", "-p", "x"]);
    command
        .env("SERVICE_API_KEY", KEY)
        .env("PATH", path_with_tools(&sandbox));
    let told = crate::sandbox::Running::start(&mut command)
        .finish()
        .exits_with(0);

    let raw = String::from_utf8_lossy(&sandbox.iteration_file("0001", "stdout.raw")).into_owned();
    assert!(raw.contains(KEY) && raw.contains(SHAPED));
    let mut searched = 0;
    each_file(&sandbox.work().join(".agent"), &mut |path| {
        if path.extension().is_some_and(|extension| extension == "raw") {
            return;
        }
        let text = String::from_utf8_lossy(&fs::read(path).expect("a readable file")).into_owned();
        assert!(
            !text.contains(KEY) && !text.contains(SHAPED),
            "{}: {text}",
            path.display()
        );
        searched += 1;
    });
    assert!(searched >= 4, "only {searched} files");
    let heard = fs::read_to_string(sandbox.work().join("told.json")).expect("what the hooks were told");
    assert_eq!(heard.lines().count(), 2);
    for text in [&told.stdout, &told.stderr, &heard] {
        assert!(!text.contains(KEY) && !text.contains(SHAPED), "{text}");
    }
    assert_eq!(told.stdout.matches("[redacted]").count(), 5, "{}", told.stdout);
}

#[test]
fn whatever_a_run_writes_is_its_users_alone() {
    let sandbox = indiscreet();
    let mut command = sandbox.command(&["run", "-p", "x"]);
    command.env("PATH", path_with_tools(&sandbox));
    crate::sandbox::Running::start(&mut command)
        .finish()
        .exits_with(0);
    let runs = sandbox.work().join(".agent/runs");
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

/// Names that would lead out of their directory are refused, whoever says them, and nothing is read or written there.
#[test]
fn no_name_leads_out_of_its_directory() {
    let sandbox = indiscreet();
    fs::create_dir_all(sandbox.path("outside")).expect("a directory");
    fs::write(sandbox.path("outside/events.jsonl"), "").expect("a file");
    for name in ["../../../outside", "..", "../..", ".", ""] {
        for words in [
            vec!["tell", name, "hello"],
            vec!["run", "--continue", name, "-p", "x"],
        ] {
            let told = sandbox.ralph(&words);
            assert!(matches!(told.code(), Some(1..=2)), "{words:?}: {}", told.stderr);
        }
    }
    for driver in ["../../outside/evil", "/etc/passwd", "..", "a/b"] {
        let told = sandbox.ralph(&["run", "--agent", &format!("driver:{driver}"), "-p", "x"]);
        assert_eq!(told.code(), Some(2), "{driver}: {}", told.stderr);
        let told = sandbox.ralph(&["drivers", "new", driver]);
        assert_eq!(told.code(), Some(2), "{driver}: {}", told.stderr);
    }
    let left: Vec<_> = fs::read_dir(sandbox.path("outside"))
        .expect("a directory")
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// Every user of the machine can read arguments: a key of the environment is not in those of ralph, keeper or agent.
#[test]
fn no_key_is_in_any_arguments() {
    let sandbox = Sandbox::new().with_agent("claude").playing("default", "hang\n");
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

fn parent_of(pid: i32) -> i32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line.and_then(|number| number.trim().parse().ok())
        .expect("a parent")
}

fn path_with_tools(sandbox: &Sandbox) -> String {
    format!("{}:/usr/bin:/bin", sandbox.path("bin").display())
}

fn each_file(directory: &Path, look: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let kind = entry.file_type().expect("a type");
        if kind.is_dir() {
            each_file(&entry.path(), look);
        } else if kind.is_file() {
            look(&entry.path());
        }
    }
}
