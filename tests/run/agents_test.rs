//! `ralph agents test`: the truth about an agent, before a night is trusted to it.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::sandbox::{DEADLINE, Sandbox, Told, claude, words};

/// Times and places differ from call to call.
fn shown(sandbox: &Sandbox, told: &Told) -> String {
    let text = sandbox.without_places(&told.stdout);
    let lines = text.lines().map(|line| match line.split_once(", after ") {
        Some((before, _)) => format!("{before}, after T s"),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// An agent of the user's own: a script for `sh`, whose first argument is the prompt.
fn own(script: &str) -> Sandbox {
    Sandbox::new().with_file("agent.sh", script)
}

const TEST: &[&str] = &["agents", "test", "custom", "--agent-cmd", "sh agent.sh"];

fn test(sandbox: &Sandbox, more: &[&str]) -> Told {
    sandbox.ralph(&[TEST, more].concat())
}

fn json(told: &Told) -> Value {
    serde_json::from_str(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told:?}"))
}

/// The state of one finding.
fn state<'a>(report: &'a Value, subject: &str) -> &'a str {
    let findings = report["findings"].as_array().expect("findings");
    let found = findings.iter().find(|finding| finding["subject"] == subject);
    found
        .and_then(|finding| finding["state"].as_str())
        .unwrap_or("not there")
}

const ANSWERS: &str = "case \"$1\" in *pelican*4711*) echo 'Pelican4711.' ;; esac\n";

#[test]
fn a_good_command_works() {
    let sandbox = own(ANSWERS);
    let told = test(&sandbox, &[]).exits_with(0);
    insta::assert_snapshot!(shown(&sandbox, &told), @"
    Calling sh once, as `ralph run` would, with a prompt of 166 bytes, and, if no answer comes, up to twice more in other ways.
    A call may take 60 s.

    findings
      ✓ program          [SANDBOX]/bin/sh
      ✓ end              exit code 0, after T s
      ✓ stdin            empty, and it does not wait for it
      ✓ terminal         it needs none
      ✓ prompt           arrived, and was answered
      ✓ transcript       plain fits
      · session          it tells no id: `session: continue` is not possible
      · used             not told

    sh works; the prompt was sent once.
    ");
    assert_eq!(told.stderr, "");
    let report = json(&test(&sandbox, &["--json"]).exits_with(0));
    assert_eq!(report["verdict"], "works");
    assert_eq!(report["calls"].as_array().map(Vec::len), Some(1));
}

#[test]
fn one_that_waits_for_its_prompt_on_stdin_is_found_out() {
    let script = "read -r line\ncase \"$line\" in *pelican*) echo pelican4711 ;; *) echo 'no prompt' >&2; exit 1 ;; esac\n";
    let sandbox = own(script);
    let told = test(&sandbox, &[]).exits_with(1);
    insta::assert_snapshot!(shown(&sandbox, &told), @"
    Calling sh once, as `ralph run` would, with a prompt of 166 bytes, and, if no answer comes, up to twice more in other ways.
    A call may take 60 s.

    findings
      ✓ program          [SANDBOX]/bin/sh
      ✗ end              exit code 1: no prompt
                         → see what it says by hand: [SANDBOX]/bin/sh agent.sh hello
      ✗ stdin            it waits for its prompt there, and is given it as an argument
                         → in ralph.yml: cli.prompt_mode: stdin
      · terminal         not known
      ✓ prompt           arrived, and was answered, once it came on stdin
      ✓ transcript       plain fits
      · session          it tells no id: `session: continue` is not possible
      · used             not told

    sh does not work as it is configured; the prompt was sent 2 times.
    ");
    let sandbox = sandbox.with_file(
        "ralph.yml",
        "cli: {backend: custom, command: sh, args: [agent.sh], prompt_mode: stdin}\n",
    );
    let report = json(&sandbox.ralph(&["agents", "test", "--json"]).exits_with(0));
    assert_eq!(
        (&report["agent"], state(&report, "stdin")),
        (&Value::from("custom"), "good")
    );
}

#[test]
fn one_that_takes_an_empty_stdin_for_its_prompt_is_found_out() {
    let sandbox = own("echo \"You said: $(cat)\"\n");
    let report = json(&test(&sandbox, &["--json"]).exits_with(1));
    assert_eq!(state(&report, "stdin"), "broken");
    assert_eq!(state(&report, "terminal"), "good");
}

#[test]
fn one_that_needs_a_terminal_is_found_out() {
    let sandbox = own(&format!(
        "test -t 1 || {{ echo 'stdout is not a terminal' >&2; exit 1; }}\n{ANSWERS}"
    ));
    let told = test(&sandbox, &[]).exits_with(1);
    insta::assert_snapshot!(shown(&sandbox, &told), @"
    Calling sh once, as `ralph run` would, with a prompt of 166 bytes, and, if no answer comes, up to twice more in other ways.
    A call may take 60 s.

    findings
      ✓ program          [SANDBOX]/bin/sh
      ✗ end              exit code 1: stdout is not a terminal
                         → see what it says by hand: [SANDBOX]/bin/sh agent.sh hello
      ✓ stdin            empty, and it does not wait for it
      ✗ terminal         it works with one, and not without
                         → in ralph.yml: cli.pty_mode: true
      ✓ prompt           arrived, and was answered, once there was a terminal
      ✓ transcript       plain fits
      · session          it tells no id: `session: continue` is not possible
      · used             not told

    sh does not work as it is configured; the prompt was sent 3 times.
    ");
    let sandbox = sandbox.with_file(
        "ralph.yml",
        "cli: {backend: custom, command: sh, args: [agent.sh], pty_mode: true}\n",
    );
    sandbox.ralph(&["agents", "test"]).exits_with(0);
}

#[test]
fn one_that_never_ends_is_stopped_with_all_that_it_started() {
    let sandbox = Sandbox::new()
        .with_agent("my-agent")
        .playing("default", "ignore TERM\nfork-setsid 1000\nhang\n");
    let began = Instant::now();
    let told = sandbox.ralph(&[
        "agents",
        "test",
        "custom",
        "--agent-cmd",
        "my-agent",
        "--timeout",
        "1",
    ]);
    let told = told.exits_with(1);
    assert!(began.elapsed() < DEADLINE / 2, "{:?}", began.elapsed());
    insta::assert_snapshot!(shown(&sandbox, &told), @"
    Calling my-agent once, as `ralph run` would, with a prompt of 166 bytes, and, if no answer comes, up to twice more in other ways.
    A call may take 1 s.

    findings
      ✓ program          [SANDBOX]/bin/my-agent
      ✗ end              did not end within 1 s, and was stopped
                         → find the flag that makes it work without a person, or give it more time: --timeout
      ✓ stdin            empty; that is not what it waits for
      · terminal         with one it works no better
      ✗ prompt           nothing was printed on stdout
                         → without an answer every iteration fails; find the flag that makes it print one
      · transcript       nothing to read
      · session          it tells no id: `session: continue` is not possible
      · used             not told

    my-agent does not work as it is configured; the prompt was sent 2 times.
    ");
    sandbox.wait_until_all_are_gone(Duration::from_secs(2));
}

#[test]
fn one_that_answers_and_never_ends_does_not_work() {
    let sandbox = own(&format!("{ANSWERS}exec sleep 1000\n"));
    let told = test(&sandbox, &["--timeout", "1"]).exits_with(1);
    assert!(
        told.stdout
            .contains("did not end within 1 s, and was stopped, though it had answered"),
        "{}",
        told.stdout
    );
}

#[test]
fn one_that_prints_nothing_is_found_out() {
    let sandbox = own("echo 'I am on stderr' >&2\n");
    let told = test(&sandbox, &[]).exits_with(1);
    insta::assert_snapshot!(shown(&sandbox, &told), @"
    Calling sh once, as `ralph run` would, with a prompt of 166 bytes, and, if no answer comes, up to twice more in other ways.
    A call may take 60 s.

    findings
      ✓ program          [SANDBOX]/bin/sh
      ✓ end              exit code 0, after T s
      ✓ stdin            empty, and it does not wait for it
      · terminal         with one it works no better
      ✗ prompt           nothing was printed on stdout; on stderr: I am on stderr
                         → without an answer every iteration fails; find the flag that makes it print one
      · transcript       nothing to read
      · session          it tells no id: `session: continue` is not possible
      · used             not told

    sh does not work as it is configured; the prompt was sent 3 times.
    ");
}

#[test]
fn one_that_heeds_no_prompt_is_not_called_good() {
    let sandbox = own("echo hello\n");
    let told = test(&sandbox, &[]).exits_with(1);
    insta::assert_snapshot!(shown(&sandbox, &told), @"
    Calling sh once, as `ralph run` would, with a prompt of 166 bytes, and, if no answer comes, up to twice more in other ways.
    A call may take 60 s.

    findings
      ✓ program          [SANDBOX]/bin/sh
      ✓ end              exit code 0, after T s
      ✓ stdin            empty, and it does not wait for it
      ✓ terminal         it needs none
      ! prompt           nothing shows that it arrived; it printed: hello
                         → check how it takes a prompt: cli.prompt_mode, cli.prompt_flag
      ✓ transcript       plain fits
      · session          it tells no id: `session: continue` is not possible
      · used             not told

    sh may work, but that is not proven; the prompt was sent 2 times.
    ");
    let report = json(&test(&sandbox, &["--json"]).exits_with(1));
    assert_eq!(report["verdict"], "unproven");
}

#[test]
fn one_that_does_not_exist_is_named() {
    let sandbox = Sandbox::new();
    let told = sandbox.ralph(&["agents", "test", "custom", "--agent-cmd", "nowhere"]);
    insta::assert_snapshot!(shown(&sandbox, &told.exits_with(4)), @"
    findings
      ✗ program          the custom command `nowhere` was not found
                         → check its spelling, or give its full path

    custom does not work as it is configured; nothing was called.
    ");
    let told = sandbox
        .ralph(&["agents", "test", "codex", "--json"])
        .exits_with(4);
    assert_eq!(state(&json(&told), "program"), "broken");
    let told = sandbox.ralph(&["agents", "test", "claud"]).exits_with(2);
    insta::assert_snapshot!(told.stderr, @"
    error: unknown agent `claud`
      did you mean `claude`?
      known agents: auto, claude, kiro, gemini, codex, amp, opencode, copilot, cursor, custom
    ");
}

#[test]
fn what_it_prints_is_compared_with_the_known_formats() {
    let sandbox = Sandbox::new()
        .with_agent("my-agent")
        .playing("default", &claude::session("pelican4711"));
    let test = ["agents", "test", "custom", "--agent-cmd", "my-agent"];
    let told = sandbox.ralph(&test).exits_with(0);
    insta::assert_snapshot!(shown(&sandbox, &told), @"
    Calling my-agent once, as `ralph run` would, with a prompt of 166 bytes, and, if no answer comes, up to twice more in other ways.
    A call may take 60 s.

    findings
      ✓ program          [SANDBOX]/bin/my-agent
      ✓ end              exit code 0, after T s
      ✓ stdin            empty, and it does not wait for it
      ✓ terminal         it needs none
      ✓ prompt           arrived, and was answered
      ! transcript       is read as plain, and looks like claude
                         → in ralph.yml: cli.transcript: claude
      · session          it tells no id: `session: continue` is not possible
      · used             not told

    my-agent works; the prompt was sent once.
    ");
    let better = [&test[..], &["--transcript", "claude", "--json"]].concat();
    let report = json(&sandbox.ralph(&better).exits_with(0));
    assert_eq!(
        ["transcript", "session", "used"].map(|subject| state(&report, subject)),
        ["good"; 3]
    );
}

#[test]
fn a_built_in_agent_is_called_once_and_as_a_run_would() {
    let script = format!("{}fork-setsid 1000\n", claude::session("pelican4711"));
    let sandbox = Sandbox::new().with_agent("claude").playing("default", &script);
    let told = sandbox.ralph(&["agents", "test", "claude"]).exits_with(0);
    insta::assert_snapshot!(shown(&sandbox, &told), @"
    Calling Claude Code once, as `ralph run` would, with a prompt of 166 bytes.
    A call may take 60 s.

    findings
      ✓ program          [SANDBOX]/bin/claude, fake-agent 9.9.9
      ✓ end              exit code 0, after T s
      ✓ stdin            empty, and it does not wait for it
      ✓ terminal         its stdout is one
      ✓ prompt           arrived, and was answered
      ✓ transcript       claude fits
      ✓ session          it tells its id
      ! leftovers        a process outlived it and had to be stopped, as in every run
      ✓ used             110 tokens, $0.0100

    Claude Code works; the prompt was sent once.
    ");
    let recorded = sandbox.recorded("1.argv");
    let argv = words(&recorded);
    assert_eq!(argv[..2], ["--dangerously-skip-permissions", "--output-format"]);
    assert!(!sandbox.path("play").join("2.argv").exists(), "called once");
    sandbox.wait_until_all_are_gone(Duration::from_secs(2));
}

#[test]
fn a_built_in_agent_that_is_not_logged_in_is_told_how() {
    let failed = serde_json::json!({
        "type": "result", "subtype": "success", "is_error": true, "num_turns": 1, "session_id": "s-1",
        "api_error_status": 401, "result": "Invalid API key · Please run /login",
    });
    let script = format!("{}{}exit 1\n", claude::init(), claude::say(&failed));
    let sandbox = Sandbox::new().with_agent("claude").playing("default", &script);
    let told = sandbox.ralph(&["agents", "test"]).exits_with(1);
    insta::assert_snapshot!(shown(&sandbox, &told), @"
    Calling Claude Code once, as `ralph run` would, with a prompt of 166 bytes.
    A call may take 60 s.

    findings
      ✓ program          [SANDBOX]/bin/claude, fake-agent 9.9.9
      ✗ end              exit code 1: Invalid API key · Please run /login
                         → Run `claude` once and log in, or set ANTHROPIC_API_KEY.
      ✓ stdin            empty, and it does not wait for it
      ✓ terminal         its stdout is one
      · prompt           not known, since it failed
      ✓ transcript       claude fits
      ✓ session          it tells its id
      · used             not told

    Claude Code does not work as it is configured; the prompt was sent once.
    ");
}

#[test]
fn what_an_agent_says_reaches_no_terminal_as_it_is() {
    let sandbox = own("printf '\\033[31mred\\033]0;title\\007\\n'; exit 3\n");
    let told = test(&sandbox, &[]).exits_with(1);
    assert!(!told.stdout.contains('\u{1b}'), "{:?}", told.stdout);
}

#[test]
fn without_a_subcommand_the_agents_are_listed_as_ever() {
    let sandbox = Sandbox::new().with_agent("codex");
    let plain = sandbox.ralph(&["agents"]).exits_with(0);
    assert!(plain.stdout.contains("→  codex"), "{}", plain.stdout);
    sandbox
        .ralph(&["agents", "--agent", "codex", "--json"])
        .exits_with(0);
}
