//! Tests of `ralph runs`, `show`, `logs`, `clean` and `export`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::process::helpers::wait_until;
use crate::sandbox::{DEADLINE, Running, Sandbox, claude};

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Writes a run directory with a start record of this agent and a last record.
fn write_run(sandbox: &Sandbox, id: &str, agent: &str, last: &Value) {
    let run = sandbox.runs().join(id);
    fs::create_dir_all(run.join("iterations/0001")).expect("a run");
    let (date, time) = (&id[..8], &id[9..15]);
    let at = format!(
        "{}-{}-{}T{}:{}:{}Z",
        &date[..4],
        &date[4..6],
        &date[6..],
        &time[..2],
        &time[2..4],
        &time[4..]
    );
    let start = json!({ "seq": 1, "at": at, "type": "run_started", "version": 1, "run_id": id, "ralph": "0.1.0",
        "agent": agent, "transcript": "plain", "workspace": "/w", "max_iterations": 9 });
    let mut lines = format!("{}\n", journal_line(&start));
    if let Some(kind) = last["type"].as_str() {
        let mut last = last.clone();
        last["seq"] = json!(2);
        last["at"] = json!(at);
        assert!(!kind.is_empty());
        lines.push_str(&format!("{}\n", journal_line(&last)));
    }
    fs::write(run.join("events.jsonl"), lines).expect("a journal");
    fs::write(
        run.join("iterations/0001/prompt.md"),
        format!("\n# Task of {agent}\n\nmore\n"),
    )
    .expect("a prompt");
}

/// Formats a record like the journal: sequence number, time and type first.
fn journal_line(record: &Value) -> String {
    let mut rest = record.as_object().expect("a record").clone();
    let mut head = String::from("{");
    for key in ["seq", "at", "type"] {
        let value = rest.remove(key).expect("a key");
        head.push_str(&format!("\"{key}\":{value},"));
    }
    head + &Value::Object(rest).to_string()[1..]
}

fn ended(outcome: &Value) -> Value {
    let mut end = json!({ "type": "run_ended", "iterations": 3, "duration_ms": 754_000,
        "usage": { "total_tokens": 12_345, "cost_usd": 0.25 } });
    for (key, value) in outcome.as_object().expect("an outcome") {
        end[key] = value.clone();
    }
    end
}

/// Returns a sandbox with a run of every outcome.
fn runs_of_every_outcome() -> Sandbox {
    let sandbox = Sandbox::new();
    let outcomes = [
        (
            "20250101-000000-aaaa",
            "claude",
            ended(&json!({ "outcome": "complete", "marker": "LOOP_COMPLETE" })),
        ),
        (
            "20250102-000000-bbbb",
            "codex",
            ended(&json!({ "outcome": "failed", "reason": "5 failures in a row" })),
        ),
        (
            "20250103-000000-cccc",
            "claude",
            ended(&json!({ "outcome": "auth_required", "message": "log in" })),
        ),
        (
            "20250104-000000-dddd",
            "claude",
            ended(&json!({ "outcome": "limit_reached", "limit": { "limit": "iterations", "max": 9 } })),
        ),
        (
            "20250105-000000-eeee",
            "claude",
            ended(&json!({ "outcome": "interrupted", "by": "int" })),
        ),
        (
            "20250106-000000-ffff",
            "gemini",
            json!({ "type": "notice", "level": "info", "text": "the last record before a crash" }),
        ),
    ];
    for (id, agent, last) in &outcomes {
        write_run(&sandbox, id, agent, last);
    }
    fs::create_dir_all(sandbox.runs().join("20250107-000000-gggg")).expect("a broken run");
    sandbox
}

fn ids(sandbox: &Sandbox, arguments: &[&str]) -> Vec<String> {
    let arguments = [&["runs", "--json"], arguments].concat();
    let rows = parsed(&sandbox.ralph(&arguments).exits_with(0).stdout);
    let rows = rows.as_array().expect("rows").iter();
    rows.map(|row| row["id"].as_str().expect("an id")[16..].to_owned())
        .collect()
}

#[test]
fn runs_of_every_outcome_are_listed_newest_first() {
    let sandbox = runs_of_every_outcome();
    let output = sandbox.ralph(&["runs"]).exits_with(0);
    insta::assert_snapshot!(output.stdout, @"
    RUN                   STARTED           AGENT   OUTCOME          ITERATIONS  TIME    TOKENS  COST   PROMPT
    20250107-000000-gggg  2025-01-07 00:00          ? broken
    20250106-000000-ffff  2025-01-06 00:00  gemini  ✗ died           0           0ms                    Task of gemini
    20250105-000000-eeee  2025-01-05 00:00  claude  ! interrupted    3           12m34s  12.3k   $0.25  Task of claude
    20250104-000000-dddd  2025-01-04 00:00  claude  ! limit          3           12m34s  12.3k   $0.25  Task of claude
    20250103-000000-cccc  2025-01-03 00:00  claude  ✗ not logged in  3           12m34s  12.3k   $0.25  Task of claude
    20250102-000000-bbbb  2025-01-02 00:00  codex   ✗ failed         3           12m34s  12.3k   $0.25  Task of codex
    20250101-000000-aaaa  2025-01-01 00:00  claude  ✓ complete       3           12m34s  12.3k   $0.25  Task of claude
    total: 7 runs · 15 iterations · 61.7k tokens · $1.25
    ");
    assert_eq!(output.stderr, "");
    let rows = parsed(&sandbox.ralph(&["runs", "--json", "-n", "2"]).exits_with(0).stdout);
    assert_eq!(
        (&rows[0]["outcome"], &rows[1]["outcome"]),
        (&json!("broken"), &json!("died"))
    );
    let output = sandbox.ralph(&["runs", "-n", "2"]).exits_with(0);
    assert!(
        output
            .stdout
            .ends_with("\nShowing the newest 2 of 7 runs; -n 0 lists all.\n"),
        "{}",
        output.stdout
    );
}

#[test]
fn runs_are_filtered_by_agent_outcome_and_time() {
    let sandbox = runs_of_every_outcome();
    assert_eq!(ids(&sandbox, &["--agent", "codex"]), ["bbbb"]);
    assert_eq!(
        ids(&sandbox, &["--outcome", "complete", "--outcome", "died"]),
        ["ffff", "aaaa"]
    );
    assert_eq!(
        ids(&sandbox, &["--since", "2025-01-03", "--until", "2025-01-04"]),
        ["dddd", "cccc"]
    );
    assert_eq!(
        ids(&sandbox, &["--until", "2025-01-02T00:00:00"]),
        ["bbbb", "aaaa"]
    );
    assert_eq!(ids(&sandbox, &["--since", "2d"]), Vec::<String>::new());
    assert_eq!(ids(&sandbox, &["--agent", "claude", "-n", "1"]), ["eeee"]);
    assert_eq!(ids(&sandbox, &["-n", "0"]).len(), 7);
    let output = sandbox.ralph(&["runs", "--agent", "amp"]).exits_with(0);
    insta::assert_snapshot!(output.stdout, @"No matching runs (of 7 runs). To list all: ralph runs");
    let output = sandbox.ralph(&["runs", "--since", "soon"]).exits_with(2);
    insta::assert_snapshot!(output.stderr, @"
    error: invalid value 'soon' for '--since <WHEN>': expected an age (2d, 12h, 90m), a date (2026-11-15) or a time (2026-11-15T20:00)

    For more information, try '--help'.
    ");
    let output = Sandbox::new().ralph(&["runs"]).exits_with(0);
    insta::assert_snapshot!(output.stdout, @r#"No runs yet. To start one: ralph run -p "make the tests pass""#);
    assert_eq!(
        Sandbox::new().ralph(&["runs", "--json"]).exits_with(0).stdout,
        "[]\n"
    );
}

/// Returns an agent whose first iteration fails a gate and whose second passes it.
fn two_iterations() -> Sandbox {
    let first = [
        claude::init(),
        claude::message("m1", "I will look."),
        claude::tool("m2", "t1", "ls <b>"),
        claude::tool_result("t1", "a.txt\n<script>alert(1)</script>"),
        claude::message("m3", "Done, I think.\nLOOP_COMPLETE"),
        claude::result("Done, I think.\nLOOP_COMPLETE"),
    ];
    let second = [
        "write proof yes\n".to_owned(),
        claude::session("Now it is done.\n\nLOOP_COMPLETE"),
    ];
    Sandbox::new()
        .with_agent("claude")
        .with_script("1", &first.concat())
        .with_script("default", &second.concat())
        .with_file("ralph.yml", "gates:\n  - {name: proof, run: cat proof}\n")
}

/// Replaces ids, times and durations, which differ from run to run.
fn normalized(sandbox: &Sandbox, text: &str) -> String {
    let run = sandbox.newest_run();
    let id = run.file_name().expect("a name").to_string_lossy();
    let text = sandbox.redact_paths(text).replace(&*id, "[RUN]");
    let mut lines = Vec::new();
    for line in text.lines() {
        let words = line.split(' ').map(|word| {
            let (opening, word) = word.split_at(usize::from(word.starts_with('(')));
            let digits = word.trim_end_matches(['m', 's']);
            let is_time = word.ends_with('s')
                && !digits.is_empty()
                && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
            if is_time {
                format!("{opening}[TIME]")
            } else {
                format!("{opening}{word}")
            }
        });
        let line = words.collect::<Vec<_>>().join(" ");
        let line = match line.trim_start().split_once(' ') {
            Some((name @ ("started" | "ended"), _)) => format!("  {name} [DATE]"),
            Some(("-", fact)) if fact.starts_with("started: ") || fact.starts_with("ended: ") => {
                let name = fact.split(' ').next().unwrap_or(fact);
                format!("- {name} [DATE]")
            }
            _ => line,
        };
        // The width of columns depends on the replaced text.
        lines.push(
            line.split("  ")
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join("  "),
        );
    }
    lines.join("\n")
}

#[test]
fn show_lists_the_iterations_of_a_run() {
    let sandbox = two_iterations();
    sandbox.ralph(&["run", "-p", "make it so"]).exits_with(0);
    let output = sandbox.ralph(&["show"]).exits_with(0);
    insta::assert_snapshot!(normalized(&sandbox, &output.stdout), @"
    Run [RUN]
    ✓ Done. All gates passed (proof).
    agent  claude fake-agent 9.9.9
    workspace  [WORKSPACE]
    started [DATE]
    ended [DATE]
    iterations  2 of 100
    time  [TIME]
    tokens  220
    cost  $0.0200

    #  OUTCOME  TIME  TOOLS  TOKENS  COST  GATES  FILES
    1  ✗ rejected  [TIME]  1  110  $0.0100  ✗ proof
    2  ✓ done  [TIME]  110  $0.0100  ✓ proof  1 +1 −0

    1  ✗ gate proof: exit code 1

    Changed files
    2  proof +1 −0

    Final message
    Now it is done.

    LOOP_COMPLETE

    Files
    [PROJECT]/runs/[RUN]/events.jsonl  event log (JSON lines)
    [PROJECT]/runs/[RUN]/summary.md  final report
    [PROJECT]/runs/[RUN]/iterations  prompt, raw output and outcome of each iteration

    Next
    to read it: ralph logs [RUN]
    to see its changes: ralph diff [RUN]
    to share it: ralph export [RUN] -o [RUN].html
    ");
    let seen = parsed(&sandbox.ralph(&["show", "latest", "--json"]).exits_with(0).stdout);
    assert_eq!(seen["state"], "complete");
    assert_eq!(seen["iterations"][0]["rejected_by"], "proof");
    assert_eq!(
        (&seen["iterations"][0]["tools"], &seen["iterations"][1]["tools"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(seen["iterations"][1]["gates"][0]["result"], "passed");
    assert_eq!(seen["final_message"], "Now it is done.\n\nLOOP_COMPLETE");
    assert_eq!(seen["iteration_count"], 2);
}

#[test]
fn logs_print_the_output_of_a_run_or_a_part_of_it() {
    let sandbox = two_iterations();
    let shown = sandbox.ralph(&["run", "-p", "make it so"]).exits_with(0).stdout;
    assert_eq!(sandbox.ralph(&["logs"]).exits_with(0).stdout, shown);
    assert_eq!(
        sandbox.ralph(&["logs", "-f"]).exits_with(0).stdout,
        shown,
        "the run has already ended"
    );
    let second = sandbox.ralph(&["logs", "--iteration", "2"]).exits_with(0).stdout;
    assert!(
        second.contains("Now it is done.") && !second.contains("I think"),
        "{second}"
    );
    let filtered = sandbox.ralph(&["logs", "--tag", "AI"]).exits_with(0).stdout;
    assert!(
        filtered.contains("I will look.") && !filtered.contains("TOOL") && !filtered.contains("GATE"),
        "{filtered}"
    );
    let records = sandbox
        .ralph(&["logs", "--json", "--tag", "ai", "-i", "2"])
        .exits_with(0)
        .stdout;
    assert_eq!(records.lines().count(), 1);
    let raw = sandbox.ralph(&["logs", "--raw", "-i", "1"]).exits_with(0).stdout;
    assert_eq!(raw.as_bytes(), sandbox.iteration_file("0001", "stdout.raw"));
    let both = sandbox.ralph(&["logs", "--raw"]).exits_with(0).stdout;
    assert!(both.len() > raw.len() && both.starts_with(&raw));
    for flags in [["logs", "-i", "7"].as_slice(), &["logs", "-i", "7", "--raw"]] {
        let output = sandbox.ralph(flags).exits_with(2);
        insta::allow_duplicates! { insta::assert_snapshot!(normalized(&sandbox, &output.stderr), @"
        error: run [RUN] has no iteration 7
        hint: the last iteration is 2; to list all: ralph show [RUN]
        "); }
    }
}

/// Returns a running loop whose agent prints a message and waits for the file `go`.
fn running_loop() -> (Sandbox, Running) {
    let script = [
        claude::init(),
        claude::message("m1", "Here I go."),
        "wait-for go\n".to_owned(),
        claude::message("m2", "There.\nLOOP_COMPLETE"),
        claude::result("There.\nLOOP_COMPLETE"),
    ];
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &script.concat());
    let run = sandbox.start(&["run", "-p", "x"]);
    wait_until("the first message in the journal", DEADLINE, || {
        sandbox.journal_text().contains("Here I go.")
    });
    (sandbox, run)
}

#[test]
fn logs_follow_a_running_loop_to_its_end() {
    let (sandbox, run) = running_loop();
    let rows = parsed(&sandbox.ralph(&["runs", "--json"]).exits_with(0).stdout);
    assert_eq!(rows[0]["outcome"], "running");
    let seen = sandbox.ralph(&["show"]).exits_with(0).stdout;
    assert!(
        seen.contains("▸ Running.") && seen.contains("ralph logs -f"),
        "{seen}"
    );
    let output = sandbox.ralph(&["clean", "--keep", "0", "--yes"]).exits_with(0);
    assert_eq!(output.stdout, "Nothing to remove; 1 run kept.\n");
    let follower = sandbox.start(&["logs", "-f"]);
    fs::write(sandbox.path("agent/go"), "").expect("a file");
    let followed = follower.finish().exits_with(0);
    let shown = run.finish().exits_with(0).stdout;
    assert_eq!((followed.stdout, followed.stderr.as_str()), (shown, ""));
}

#[test]
fn following_ends_when_the_process_of_the_run_dies() {
    let (sandbox, run) = running_loop();
    let follower = sandbox.start(&["logs", "-f"]);
    run.signal(Signal::KILL);
    drop(run);
    let output = follower.finish().exits_with(0);
    assert!(output.stdout.contains("Here I go."), "{}", output.stdout);
    insta::assert_snapshot!(normalized(&sandbox, &output.stderr), @"warning: ralph died (process gone); to resume: ralph run --continue [RUN]");
    let rows = parsed(&sandbox.ralph(&["runs", "--json"]).exits_with(0).stdout);
    assert_eq!(rows[0]["outcome"], "died");
    let seen = sandbox.ralph(&["show"]).exits_with(0).stdout;
    assert!(
        seen.contains("✗ Died") && seen.contains("ralph run --continue"),
        "{seen}"
    );
}

#[test]
fn following_ends_silently_when_stdout_is_closed() {
    let (sandbox, run) = running_loop();
    let mut command = sandbox.command(&["logs", "-f"]);
    let mut child = command.spawn().expect("ralph starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output"));
    lines.read_line(&mut String::new()).expect("a line");
    drop(lines);
    // The run prints nothing more; ralph must notice the closed pipe without writing to it.
    let deadline = Instant::now() + DEADLINE;
    while child.try_wait().expect("a child").is_none() {
        assert!(Instant::now() < deadline, "it follows without a reader");
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().expect("its end");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
    fs::write(sandbox.path("agent/go"), "").expect("a file");
    run.finish().exits_with(0);
}

#[test]
fn an_interrupt_ends_following_and_not_the_run() {
    let (sandbox, run) = running_loop();
    let mut follower = sandbox.start(&["logs", "-f"]);
    wait_until("the signal handler of the follower", DEADLINE, || {
        let status = fs::read_to_string(format!("/proc/{}/status", follower.pid())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        caught.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 0b10 != 0))
    });
    follower.signal(Signal::INT);
    assert!(follower.has_ended_within(Duration::from_secs(30)));
    follower.finish().exits_with(130);
    fs::write(sandbox.path("agent/go"), "").expect("a file");
    run.finish().exits_with(0);
}

#[test]
fn clean_removes_old_runs_and_nothing_else() {
    let sandbox = runs_of_every_outcome();
    let runs = sandbox.runs();
    fs::create_dir(runs.join("notes")).expect("not a run");
    symlink(sandbox.work(), runs.join("20240101-000000-link")).expect("a link");
    let output = sandbox.ralph(&["clean"]).exits_with(0);
    assert_eq!(output.stdout, "Nothing to remove; 7 runs kept.\n");
    let output = sandbox.ralph(&["clean", "--keep", "5"]).exits_with(2);
    insta::assert_snapshot!(output.stderr, @"
    error: refusing to delete 2 runs without confirmation (no terminal)
    hint: pass --yes to delete them
    hint: to list them first: ralph clean --dry-run
    ");
    let output = sandbox
        .ralph(&["clean", "--keep", "5", "--dry-run"])
        .exits_with(0);
    insta::assert_snapshot!(output.stdout, @"
    RUN                   STARTED           OUTCOME     SIZE
    20250102-000000-bbbb  2025-01-02 00:00  ✗ failed    405 B
    20250101-000000-aaaa  2025-01-01 00:00  ✓ complete  403 B

    Would remove 2 runs (808 B); 5 runs kept.
    ");
    let output = sandbox
        .ralph(&["clean", "--older-than", "2025-01-02", "--yes", "--json"])
        .exits_with(0);
    let report = parsed(&output.stdout);
    assert_eq!(report["removed"][0]["id"], "20250101-000000-aaaa");
    assert!(report["bytes"].as_u64() > Some(100), "{report}");
    let output = sandbox
        .ralph(&["clean", "--keep", "3", "--older-than", "2025-01-05", "-y"])
        .exits_with(0);
    assert!(
        output.stdout.starts_with("Removed 3 runs (") && output.stdout.ends_with("); 3 runs kept.\n"),
        "{}",
        output.stdout
    );
    sandbox.ralph(&["clean", "--keep", "0", "-y"]).exits_with(0);
    let mut left: Vec<_> = fs::read_dir(&runs)
        .expect("runs")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["20240101-000000-link", "notes"]);
}

#[test]
fn clean_does_not_follow_a_symbolic_link() {
    let sandbox = runs_of_every_outcome();
    let runs = sandbox.runs();
    fs::rename(&runs, sandbox.path("elsewhere")).expect("moved");
    symlink(sandbox.path("elsewhere"), &runs).expect("a link");
    let output = sandbox.ralph(&["clean", "--keep", "0", "-y"]).exits_with(2);
    insta::assert_snapshot!(sandbox.redact_paths(&output.stderr), @"
    error: refusing to follow the symbolic link [PROJECT]/runs
    hint: replace the link with a regular file or directory
    ");
    assert_eq!(fs::read_dir(sandbox.path("elsewhere")).expect("runs").count(), 7);
}

#[test]
#[expect(clippy::too_many_lines, reason = "most lines are the snapshot")]
fn a_run_is_exported_as_markdown() {
    let sandbox = two_iterations();
    sandbox.ralph(&["run", "-p", "make it so"]).exits_with(0);
    let output = sandbox.ralph(&["export", "latest"]).exits_with(0);
    insta::assert_snapshot!(normalized(&sandbox, &output.stdout), @r"
    # Run [RUN]

    ✓ Done. All gates passed (proof).

    - agent: claude fake-agent 9.9.9
    - workspace: [WORKSPACE]
    - started: [DATE]
    - ended: [DATE]
    - iterations: 2 of 100
    - time: [TIME]
    - tokens: 220
    - cost: $0.0200

    ## Prompt

    ```text
    make it so

    (From ralph, which runs you in a loop: when the whole task is done and checked, and only then, end your final message with a line that contains nothing but LOOP_COMPLETE. If work remains, leave it out; you will be called again with the same task. ralph then runs these checks itself: `cat proof`.)
    ```

    ## Final message

    ```text
    Now it is done.

    LOOP_COMPLETE
    ```

    ## Iteration 1

    **AI**

    ```text
    I will look.
    ```

    **TOOL** ✓ Bash ls &lt;b&gt;

    ```text
    command: ls <b>
    ```

    ```text
    a.txt
    <script>alert(1)</script>
    ```

    **AI**

    ```text
    Done, I think.
    LOOP_COMPLETE
    ```

    **GATE** ✗ proof · [TIME] · exit code 1

    ```text
    cat: proof: No such file or directory
    ```

    ✗ rejected: the agent reported done, but gate \`proof\` failed ([TIME] · 1 tool call · 110 tokens · $0.0100)

    **WARN**

    ```text
    no changes in the last iteration
    ```


    ## Iteration 2

    **AI**

    ```text
    Now it is done.

    LOOP_COMPLETE
    ```

    **FILE**

    ```text
    1 file changed, +1 −0: proof +1 −0
    ```

    **GATE** ✓ proof · [TIME]

    ```text
    yes
    ```

    ✓ done: the agent printed LOOP_COMPLETE ([TIME] · 1 file +1 −0 · 110 tokens · $0.0100)

    **WARN**

    ```text
    1 test or gate file changed since the start of the run: proof
    ```
    ");
}

#[test]
fn a_run_is_exported_as_html_and_json() {
    let sandbox = two_iterations();
    sandbox
        .ralph(&["run", "-p", "make it so with sekret-value-7"])
        .exits_with(0);
    let page = sandbox
        .ralph(&["export", "latest", "--format", "html"])
        .exits_with(0)
        .stdout;
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(
        page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && !page.contains("<script"),
        "{page}"
    );
    assert!(
        page.contains("default-src 'none'") && page.contains("<details"),
        "{page}"
    );
    let mut command = sandbox.command(&["export", "latest", "--format", "json"]);
    let output = Running::start(command.env("MY_TOKEN", "sekret-value-7"))
        .finish()
        .exits_with(0);
    let document = parsed(&output.stdout);
    assert_eq!(document["run"]["state"], "complete");
    assert_eq!(
        document["records"].as_array().map(Vec::len),
        Some(sandbox.journal().len())
    );
    let prompt = document["prompt"].as_str().expect("a prompt");
    assert!(prompt.starts_with("make it so with [redacted]"), "{prompt}");
}

#[test]
fn an_export_is_private_and_overwrites_only_with_force() {
    let sandbox = runs_of_every_outcome();
    let export = ["export", "20250101", "-o", "run.md"];
    let output = sandbox.ralph(&export).exits_with(0);
    assert_eq!(output.stdout, "Wrote run.md\n");
    let file = sandbox.work().join("run.md");
    let mode = fs::metadata(&file).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let output = sandbox.ralph(&export).exits_with(2);
    insta::assert_snapshot!(output.stderr, @"
    error: run.md already exists
    hint: choose another name, or pass --force to overwrite it
    ");
    fs::write(&file, "old").expect("a file");
    sandbox.ralph(&[&export[..], &["--force"]].concat()).exits_with(0);
    assert!(
        fs::read_to_string(&file)
            .expect("a file")
            .starts_with("# Run 20250101-000000-aaaa")
    );
    let output = sandbox
        .ralph(&["export", "20250101", "-o", "no/where.md"])
        .exits_with(1);
    insta::assert_snapshot!(output.stderr, @"
    error: cannot write no/where.md: entity not found
    hint: check the path, disk space and permissions
    ");
}

#[test]
fn runs_without_a_journal_are_explained() {
    let sandbox = runs_of_every_outcome();
    for command in ["show", "logs", "export"] {
        let output = sandbox.ralph(&[command, "20250107"]).exits_with(2);
        insta::allow_duplicates! { insta::assert_snapshot!(sandbox.redact_paths(&output.stderr), @"
        error: [PROJECT]/runs/20250107-000000-gggg is not a run directory: events.jsonl is missing
        hint: to list the runs of this project: ralph runs
        "); }
    }
    let seen = sandbox.ralph(&["show", "20250106"]).exits_with(0).stdout;
    assert!(seen.contains("✗ Died (process gone)."), "{seen}");
}

#[test]
fn help_fits_on_a_screen_and_has_an_example() {
    for command in ["runs", "show", "logs", "clean", "export"] {
        let output = Sandbox::new().ralph(&[command, "--help"]).exits_with(0);
        assert!(output.stdout.contains("Example"), "{}", output.stdout);
        assert!(
            output.stdout.lines().count() <= 40,
            "{command}: {}",
            output.stdout
        );
    }
}

#[test]
fn runs_of_all_projects_are_listed_with_totals() {
    let sandbox = runs_of_every_outcome();
    let other = sandbox.path("other");
    fs::create_dir(&other).expect("a directory");
    let mut command = sandbox.command(&["runs", "--all", "--json", "-n", "1"]);
    let output = Running::start(command.current_dir(&other)).finish().exits_with(0);
    assert_eq!(output.json()["runs"], json!([]), "without a project.json");
    let file = json!({ "version": 1, "root": sandbox.project().root() });
    fs::write(
        sandbox.project().directory().join("project.json"),
        file.to_string(),
    )
    .expect("a project");
    let mut command = sandbox.command(&["runs", "--all", "--json", "-n", "1"]);
    let document = Running::start(command.current_dir(&other))
        .finish()
        .exits_with(0)
        .json();
    assert_eq!(document["runs"].as_array().map(Vec::len), Some(1));
    assert_eq!(document["runs"][0]["project"], "work");
    assert_eq!(
        document["totals"]["days"].as_object().map(serde_json::Map::len),
        Some(7)
    );
    let root = sandbox.project().root().display().to_string();
    assert_eq!(document["totals"]["projects"][&root]["runs"], 7);
    assert_eq!(document["totals"]["agents"]["claude"]["usage"]["cost_usd"], 1.0);
    let output = sandbox.ralph(&["runs", "--all"]).exits_with(0);
    for column in ["PROJECT", "DAY", "2025-01-04", &root] {
        assert!(output.stdout.contains(column), "{}", output.stdout);
    }
}
