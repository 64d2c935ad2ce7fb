//! `ralph runs`, `show`, `logs`, `clean`, `export`: what is left of runs, and what can be done with it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::process::stage::wait_until;
use crate::sandbox::{DEADLINE, Running, Sandbox, claude};

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A run on the shelf: when it began, who worked, and its last record.
fn put(sandbox: &Sandbox, id: &str, agent: &str, last: &Value) {
    let run = sandbox.work().join(".agent/runs").join(id);
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
    let mut lines = format!("{}\n", first_keys_first(&start));
    if let Some(kind) = last["type"].as_str() {
        let mut last = last.clone();
        last["seq"] = json!(2);
        last["at"] = json!(at);
        assert!(!kind.is_empty());
        lines.push_str(&format!("{}\n", first_keys_first(&last)));
    }
    fs::write(run.join("events.jsonl"), lines).expect("a journal");
    fs::write(
        run.join("iterations/0001/prompt.md"),
        format!("\n# Task of {agent}\n\nmore\n"),
    )
    .expect("a prompt");
}

/// A record as the journal writes it: number, time and type come first.
fn first_keys_first(record: &Value) -> String {
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

/// A shelf with a run of every kind.
fn full_shelf() -> Sandbox {
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
            json!({ "type": "notice", "level": "info", "text": "and then the light went out" }),
        ),
    ];
    for (id, agent, last) in &outcomes {
        put(&sandbox, id, agent, last);
    }
    fs::create_dir_all(sandbox.work().join(".agent/runs/20250107-000000-gggg")).expect("a broken run");
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
fn runs_are_listed_the_newest_first_whatever_became_of_them() {
    let sandbox = full_shelf();
    let told = sandbox.ralph(&["runs"]).exits_with(0);
    insta::assert_snapshot!(told.stdout, @"
    RUN                   BEGAN             AGENT   OUTCOME          ITERATIONS  TIME    TOKENS  COST   PROMPT
    20250107-000000-gggg  2025-01-07 00:00          ? broken
    20250106-000000-ffff  2025-01-06 00:00  gemini  ✗ died           0           0ms                    Task of gemini
    20250105-000000-eeee  2025-01-05 00:00  claude  ! interrupted    3           12m34s  12.3k   $0.25  Task of claude
    20250104-000000-dddd  2025-01-04 00:00  claude  ! limit          3           12m34s  12.3k   $0.25  Task of claude
    20250103-000000-cccc  2025-01-03 00:00  claude  ✗ not logged in  3           12m34s  12.3k   $0.25  Task of claude
    20250102-000000-bbbb  2025-01-02 00:00  codex   ✗ failed         3           12m34s  12.3k   $0.25  Task of codex
    20250101-000000-aaaa  2025-01-01 00:00  claude  ✓ complete       3           12m34s  12.3k   $0.25  Task of claude
    ");
    assert_eq!(told.stderr, "");
    let rows = parsed(&sandbox.ralph(&["runs", "--json", "-n", "2"]).exits_with(0).stdout);
    assert_eq!(
        (&rows[0]["outcome"], &rows[1]["outcome"]),
        (&json!("broken"), &json!("died"))
    );
    let told = sandbox.ralph(&["runs", "-n", "2"]).exits_with(0);
    assert!(
        told.stdout
            .ends_with("\nThe newest 2, of 7 in all; -n 0 shows every one.\n"),
        "{}",
        told.stdout
    );
}

#[test]
fn runs_are_chosen_by_agent_outcome_and_time() {
    let sandbox = full_shelf();
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
    let told = sandbox.ralph(&["runs", "--agent", "amp"]).exits_with(0);
    insta::assert_snapshot!(told.stdout, @"No run is like that, of 7 runs in all. To see them: ralph runs");
    let told = sandbox.ralph(&["runs", "--since", "soon"]).exits_with(2);
    insta::assert_snapshot!(told.stderr, @"
    error: invalid value 'soon' for '--since <WHEN>': expected an age (2d, 12h, 90m), a date (2026-11-15) or a time (2026-11-15T20:00)

    For more information, try '--help'.
    ");
    let told = Sandbox::new().ralph(&["runs"]).exits_with(0);
    insta::assert_snapshot!(told.stdout, @r#"There are no runs here yet. To begin one: ralph run -p "make the tests pass""#);
    assert_eq!(
        Sandbox::new().ralph(&["runs", "--json"]).exits_with(0).stdout,
        "[]\n"
    );
}

/// A run in two iterations: the first is refused by a gate, the second passes it.
fn twice() -> Sandbox {
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
        .playing("1", &first.concat())
        .playing("default", &second.concat())
        .with_file("ralph.yml", "gates:\n  - {name: proof, run: cat proof}\n")
}

/// Text in which ids, times and durations are alike in every run.
fn settled(sandbox: &Sandbox, text: &str) -> String {
    let run = sandbox.newest_run();
    let id = run.file_name().expect("a name").to_string_lossy();
    let text = sandbox.without_places(text).replace(&*id, "[RUN]");
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
            Some((name @ ("began" | "ended"), _)) => format!("  {name} [DATE]"),
            Some(("-", fact)) if fact.starts_with("began") || fact.starts_with("ended") => {
                format!("- {} [DATE]", &fact[..6])
            }
            _ => line,
        };
        // Columns are as wide as what stood there.
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
fn show_tells_what_a_run_did_iteration_by_iteration() {
    let sandbox = twice();
    sandbox.ralph(&["run", "-p", "make it so"]).exits_with(0);
    let told = sandbox.ralph(&["show"]).exits_with(0);
    insta::assert_snapshot!(settled(&sandbox, &told.stdout), @"
    Run [RUN]
    ✓ Done. All gates passed (proof).
    agent  claude fake-agent 9.9.9
    workspace  [WORKSPACE]
    began [DATE]
    ended [DATE]
    iterations  2 of 100
    time  [TIME]
    tokens  220
    cost  $0.0200

    #  OUTCOME  TIME  TOOLS  TOKENS  COST  GATES  FILES
    1  ✗ rejected  [TIME]  1  110  $0.0100  ✗ proof
    2  ✓ done  [TIME]  110  $0.0100  ✓ proof

    1  ✗ gate proof: exit code 1

    Final message
    Now it is done.

    LOOP_COMPLETE

    Files
    [WORKSPACE]/.agent/runs/[RUN]/events.jsonl  all that happened, a JSON record each
    [WORKSPACE]/.agent/runs/[RUN]/summary.md  how it ended
    [WORKSPACE]/.agent/runs/[RUN]/iterations  prompt.md, stdout.raw, stderr.raw and outcome.json of each

    Next
    to read it: ralph logs [RUN]
    to share it: ralph export [RUN] --format html -o [RUN].html
    ");
    let seen = parsed(&sandbox.ralph(&["show", "latest", "--json"]).exits_with(0).stdout);
    assert_eq!(seen["state"], "complete");
    assert_eq!(seen["turns"][0]["rejected_by"], "proof");
    assert_eq!(
        (&seen["turns"][0]["tools"], &seen["turns"][1]["tools"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(seen["turns"][1]["gates"][0]["result"], "passed");
    assert_eq!(seen["final_message"], "Now it is done.\n\nLOOP_COMPLETE");
    assert_eq!(seen["iterations"], 2);
}

#[test]
fn logs_are_what_the_run_showed_whole_or_in_part() {
    let sandbox = twice();
    let shown = sandbox.ralph(&["run", "-p", "make it so"]).exits_with(0).stdout;
    assert_eq!(sandbox.ralph(&["logs"]).exits_with(0).stdout, shown);
    assert_eq!(
        sandbox.ralph(&["logs", "-f"]).exits_with(0).stdout,
        shown,
        "it is over already"
    );
    let second = sandbox.ralph(&["logs", "--iteration", "2"]).exits_with(0).stdout;
    assert!(
        second.contains("Now it is done.") && !second.contains("I think"),
        "{second}"
    );
    let said = sandbox.ralph(&["logs", "--tag", "AI"]).exits_with(0).stdout;
    assert!(
        said.contains("I will look.") && !said.contains("TOOL") && !said.contains("GATE"),
        "{said}"
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
        let told = sandbox.ralph(flags).exits_with(2);
        insta::allow_duplicates! { insta::assert_snapshot!(settled(&sandbox, &told.stderr), @"
        error: run [RUN] has no iteration 7
        its last one is 2; to see all: ralph show [RUN]
        "); }
    }
}

/// A run that says something and then works until it is let go.
fn at_work() -> (Sandbox, Running) {
    let script = [
        claude::init(),
        claude::message("m1", "Here I go."),
        "wait-for go\n".to_owned(),
        claude::message("m2", "There.\nLOOP_COMPLETE"),
        claude::result("There.\nLOOP_COMPLETE"),
    ];
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing("default", &script.concat());
    let run = sandbox.start(&["run", "-p", "x"]);
    wait_until("what the agent said is in the journal", DEADLINE, || {
        let journal = sandbox.work().join(".agent/events.jsonl");
        fs::read_to_string(journal).is_ok_and(|journal| journal.contains("Here I go."))
    });
    (sandbox, run)
}

#[test]
fn a_run_at_work_is_followed_to_its_end() {
    let (sandbox, run) = at_work();
    let rows = parsed(&sandbox.ralph(&["runs", "--json"]).exits_with(0).stdout);
    assert_eq!(rows[0]["outcome"], "running");
    let seen = sandbox.ralph(&["show"]).exits_with(0).stdout;
    assert!(
        seen.contains("▸ At work.") && seen.contains("ralph logs -f"),
        "{seen}"
    );
    let told = sandbox.ralph(&["clean", "--keep", "0", "--yes"]).exits_with(0);
    assert_eq!(told.stdout, "There is nothing to remove; 1 run stays.\n");
    let follower = sandbox.start(&["logs", "-f"]);
    fs::write(sandbox.path("play/go"), "").expect("a sign");
    let followed = follower.finish().exits_with(0);
    let shown = run.finish().exits_with(0).stdout;
    assert_eq!((followed.stdout, followed.stderr.as_str()), (shown, ""));
}

#[test]
fn following_ends_when_the_process_of_the_run_is_gone() {
    let (sandbox, run) = at_work();
    let follower = sandbox.start(&["logs", "-f"]);
    run.signal(Signal::KILL);
    drop(run);
    let told = follower.finish().exits_with(0);
    assert!(told.stdout.contains("Here I go."), "{}", told.stdout);
    insta::assert_snapshot!(settled(&sandbox, &told.stderr), @"warning: the run has no end, and nobody drives it; to go on: ralph run --continue [RUN]");
    let rows = parsed(&sandbox.ralph(&["runs", "--json"]).exits_with(0).stdout);
    assert_eq!(rows[0]["outcome"], "died");
    let seen = sandbox.ralph(&["show"]).exits_with(0).stdout;
    assert!(
        seen.contains("✗ Died") && seen.contains("ralph run --continue"),
        "{seen}"
    );
}

#[test]
fn a_reader_who_goes_away_ends_it_silently() {
    let (sandbox, run) = at_work();
    let mut command = sandbox.command(&["logs", "-f"]);
    let mut child = command.spawn().expect("ralph starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output"));
    lines.read_line(&mut String::new()).expect("a line");
    drop(lines);
    // Nothing more is said by the run: the loss is noticed all the same.
    let deadline = Instant::now() + DEADLINE;
    while child.try_wait().expect("a child").is_none() {
        assert!(Instant::now() < deadline, "it goes on for nobody");
        std::thread::sleep(Duration::from_millis(10));
    }
    let told = child.wait_with_output().expect("its end");
    assert_eq!((told.status.code(), told.stderr), (Some(0), Vec::new()));
    fs::write(sandbox.path("play/go"), "").expect("a sign");
    run.finish().exits_with(0);
}

#[test]
fn an_interrupt_ends_following_and_not_the_run() {
    let (sandbox, run) = at_work();
    let mut follower = sandbox.start(&["logs", "-f"]);
    wait_until("the follower listens", DEADLINE, || {
        let status = fs::read_to_string(format!("/proc/{}/status", follower.pid())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        caught.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 0b10 != 0))
    });
    follower.signal(Signal::INT);
    assert!(follower.has_ended_within(Duration::from_secs(30)));
    follower.finish().exits_with(130);
    fs::write(sandbox.path("play/go"), "").expect("a sign");
    run.finish().exits_with(0);
}

#[test]
fn clean_removes_old_runs_and_nothing_else() {
    let sandbox = full_shelf();
    let runs = sandbox.work().join(".agent/runs");
    fs::create_dir(runs.join("notes")).expect("not a run");
    symlink(sandbox.work(), runs.join("20240101-000000-link")).expect("a link");
    let told = sandbox.ralph(&["clean"]).exits_with(0);
    assert_eq!(told.stdout, "There is nothing to remove; 7 runs stay.\n");
    let told = sandbox.ralph(&["clean", "--keep", "5"]).exits_with(2);
    insta::assert_snapshot!(told.stderr, @"
    error: nobody is there to be asked whether 2 runs may go
      to see which: ralph clean --dry-run
      to remove them without a question: add --yes
    ");
    let told = sandbox
        .ralph(&["clean", "--keep", "5", "--dry-run"])
        .exits_with(0);
    insta::assert_snapshot!(told.stdout, @"
    RUN                   BEGAN             OUTCOME     SIZE
    20250102-000000-bbbb  2025-01-02 00:00  ✗ failed    405 B
    20250101-000000-aaaa  2025-01-01 00:00  ✓ complete  403 B

    2 runs would go (808 B); 5 runs stay. Nothing was removed.
    ");
    let told = sandbox
        .ralph(&["clean", "--older-than", "2025-01-02", "--yes", "--json"])
        .exits_with(0);
    let report = parsed(&told.stdout);
    assert_eq!(report["removed"][0]["id"], "20250101-000000-aaaa");
    assert!(report["bytes"].as_u64() > Some(100), "{report}");
    let told = sandbox
        .ralph(&["clean", "--keep", "3", "--older-than", "2025-01-05", "-y"])
        .exits_with(0);
    assert!(
        told.stdout.starts_with("Removed 3 runs, ") && told.stdout.ends_with(" freed; 3 runs stay.\n"),
        "{}",
        told.stdout
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
fn clean_does_not_follow_a_shelf_that_leads_elsewhere() {
    let sandbox = full_shelf();
    let runs = sandbox.work().join(".agent/runs");
    fs::rename(&runs, sandbox.path("elsewhere")).expect("moved");
    symlink(sandbox.path("elsewhere"), &runs).expect("a link");
    let told = sandbox.ralph(&["clean", "--keep", "0", "-y"]).exits_with(2);
    insta::assert_snapshot!(sandbox.without_places(&told.stderr), @"
    error: [WORKSPACE]/.agent/runs is a symbolic link
      nothing was removed; go to where it leads, and remove old runs there by hand
    ");
    assert_eq!(fs::read_dir(sandbox.path("elsewhere")).expect("runs").count(), 7);
}

#[test]
fn a_run_is_exported_as_a_text() {
    let sandbox = twice();
    sandbox.ralph(&["run", "-p", "make it so"]).exits_with(0);
    let told = sandbox.ralph(&["export", "latest"]).exits_with(0);
    insta::assert_snapshot!(settled(&sandbox, &told.stdout), @"
    # Run [RUN]

    ✓ Done. All gates passed (proof).

    - agent: claude fake-agent 9.9.9
    - workspace: [WORKSPACE]
    - began: [DATE]
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

    ✗ rejected: the agent reported done, but the gate proof failed ([TIME] · 1 tool call · 110 tokens · $0.0100)


    ## Iteration 2

    **AI**

    ```text
    Now it is done.

    LOOP_COMPLETE
    ```

    **GATE** ✓ proof · [TIME]

    ```text
    yes
    ```

    ✓ done: the agent printed LOOP_COMPLETE ([TIME] · 110 tokens · $0.0100)
    ");
}

#[test]
fn a_run_is_exported_as_a_page_and_as_data() {
    let sandbox = twice();
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
    let told = Running::start(command.env("MY_TOKEN", "sekret-value-7"))
        .finish()
        .exits_with(0);
    let document = parsed(&told.stdout);
    assert_eq!(document["run"]["state"], "complete");
    assert_eq!(
        document["records"].as_array().map(Vec::len),
        Some(sandbox.journal().len())
    );
    let prompt = document["prompt"].as_str().expect("a prompt");
    assert!(prompt.starts_with("make it so with [redacted]"), "{prompt}");
}

#[test]
fn an_export_is_private_and_overwrites_nothing_unasked() {
    let sandbox = full_shelf();
    let export = ["export", "20250101", "-o", "run.md"];
    let told = sandbox.ralph(&export).exits_with(0);
    assert_eq!(told.stdout, "Wrote run.md\n");
    let file = sandbox.work().join("run.md");
    let mode = fs::metadata(&file).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let told = sandbox.ralph(&export).exits_with(2);
    insta::assert_snapshot!(told.stderr, @"
    error: run.md is there already
      choose another name, or overwrite it with --force
    ");
    fs::write(&file, "old").expect("a file");
    sandbox.ralph(&[&export[..], &["--force"]].concat()).exits_with(0);
    assert!(
        fs::read_to_string(&file)
            .expect("a file")
            .starts_with("# Run 20250101-000000-aaaa")
    );
    let told = sandbox
        .ralph(&["export", "20250101", "-o", "no/where.md"])
        .exits_with(1);
    insta::assert_snapshot!(told.stderr, @"
    error: cannot write no/where.md: entity not found
      check the path, free space and permissions
    ");
}

#[test]
fn runs_that_cannot_be_looked_at_are_explained() {
    let sandbox = full_shelf();
    for command in ["show", "logs", "export"] {
        let told = sandbox.ralph(&[command, "20250107"]).exits_with(2);
        insta::allow_duplicates! { insta::assert_snapshot!(sandbox.without_places(&told.stderr), @"
        error: [WORKSPACE]/.agent/runs/20250107-000000-gggg is not the directory of a run: it has no events.jsonl
          to see the runs of this directory: ralph runs
        "); }
    }
    let seen = sandbox.ralph(&["show", "20250106"]).exits_with(0).stdout;
    assert!(
        seen.contains("✗ Died: it was killed, or the power was cut."),
        "{seen}"
    );
}

#[test]
fn help_is_under_a_screen_and_has_an_example() {
    for command in ["runs", "show", "logs", "clean", "export"] {
        let told = Sandbox::new().ralph(&[command, "--help"]).exits_with(0);
        assert!(told.stdout.contains("Example"), "{}", told.stdout);
        assert!(told.stdout.lines().count() <= 40, "{command}: {}", told.stdout);
    }
}
