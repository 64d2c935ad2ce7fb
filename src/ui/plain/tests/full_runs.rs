//! Runs with gates, failures and parallel tool calls.

use super::*;

#[test]
fn gate_fails_and_then_passes() {
    let text = rendered(PLAIN, |scenario| {
        scenario.iteration(1, 1, Some("builder"));
        scenario.transcript(TranscriptEvent::message(Tag::Ai, "Done.\n\nLOOP_COMPLETE"));
        scenario.end_agent(exit(0), 2);
        let output: String = (1..=20).map(|line| format!("line {line}\n")).collect();
        scenario.gate(GateResult::Failed { end: exit(101) }, &output);
        scenario.end_iteration(
            IterationOutcome::Continued {
                rejected_by: Some("tests".into()),
            },
            usage(),
        );
        scenario.iteration(2, 1, Some("builder"));
        scenario.emit(RunEvent::Topic {
            iteration: 2,
            event: TopicEvent {
                topic: "build.done".into(),
                target: Some("reviewer".into()),
                payload: "the last test\npasses now".into(),
            },
        });
        scenario.emit(RunEvent::TopicRerouted {
            iteration: 2,
            topic: "odd\x1b[2J".into(),
            hat: Some("planner".into()),
            reason: "no hat claims it".into(),
        });
        scenario.transcript(TranscriptEvent::message(
            Tag::Ai,
            "Now it is really done.\n\nLOOP_COMPLETE",
        ));
        scenario.gate(GateResult::Passed, "ok\n");
        scenario.end_iteration(
            IterationOutcome::Completed {
                marker: "LOOP_COMPLETE".into(),
            },
            usage(),
        );
        let mut sum = usage();
        sum.add(&usage());
        scenario.end(complete(), sum);
    });
    insta::assert_snapshot!(text, @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 · builder ───────────────────────────────────────── 08:00 ──
         AI │ Done.
            │
            │ LOOP_COMPLETE
        SYS │ the agent ended with exit code 0 after 1m01s; stopped 2 processes left behind by the agent
       GATE │ ▸ tests cargo test --quiet
       GATE │ ✗ tests · 4.2s · exit code 101
            │   … 8 lines above
            │   line 9
            │   line 10
            │   line 11
            │   line 12
            │   line 13
            │   line 14
            │   line 15
            │   line 16
            │   line 17
            │   line 18
            │   line 19
            │   line 20
            │
     REPORT │ ✗ rejected: the agent reported done, but gate `tests` failed
            │ 1m05s · 46.2k tokens (38.0k cached) · $0.12 (reported)
            │ so far: 4.2s · 46.2k tokens (38.0k cached) · $0.12 of $20.00

    ── iteration 2/100 · builder ───────────────────────────────────────── 08:00 ──
      TOPIC │ build.done → reviewer the last test passes now
      TOPIC │ odd → planner · no hat claims it
         AI │ Now it is really done.
            │
            │ LOOP_COMPLETE
       GATE │ ▸ tests cargo test --quiet
       GATE │ ✓ tests · 4.2s
            │
     REPORT │ ✓ done: the agent printed LOOP_COMPLETE
            │ 1m05s · 46.2k tokens (38.0k cached) · $0.12 (reported)
            │ so far: 8.4s · 92.4k tokens (76.0k cached) · $0.25 of $20.00

    ✓ Done. All gates passed (tests).
      iterations  1 of 100
      time        1m10s
      tokens      92,400 (90,000 input, 76,000 of them cached; 2,400 output)
      cost        $0.25 of $20.00 (reported)
      gates       tests passed ×1, failed ×1
      journal     /home/me/.local/state/ralph/projects/parser-12/runs/20260301-080000-3f2a
    ");
}

#[test]
fn failures_timeouts_and_rate_limits() {
    let text = rendered(PLAIN, |scenario| {
        scenario.iteration(3, 1, None);
        scenario.emit(RunEvent::Stderr {
            iteration: 3,
            text: "warning: config is old\n".into(),
        });
        scenario.emit(RunEvent::Stderr {
            iteration: 3,
            text: "Error: connection reset".into(),
        });
        scenario.end_agent(exit(1), 1);
        scenario.end_iteration(
            IterationOutcome::Failed {
                failure: IterationFailure::Exit {
                    end: exit(1).into(),
                    message: "connection reset".into(),
                },
            },
            Usage::default(),
        );
        scenario.emit(RunEvent::Waiting {
            why: WaitReason::Backoff,
            wait_ms: 8000,
            reason: None,
        });
        scenario.wait(8000);
        scenario.emit(RunEvent::WaitEnded);
        scenario.iteration(3, 2, None);
        scenario.end_iteration(
            IterationOutcome::TimedOut {
                limit: TimeLimit::Idle,
                after_seconds: 600,
            },
            Usage::default(),
        );
        scenario.iteration(3, 3, None);
        scenario.transcript(TranscriptEvent::line(Tag::Ai, "a line"));
        scenario.transcript(TranscriptEvent::line(Tag::Ai, ""));
        scenario.transcript(TranscriptEvent::line(Tag::Ai, "  and another"));
        scenario.emit(RunEvent::MarkerIgnored {
            iteration: 3,
            marker: "LOOP_COMPLETE".into(),
            reason: "it is inside a code fence".into(),
        });
        scenario.end_iteration(
            IterationOutcome::RateLimited {
                resets_at: Some(start() + SignedDuration::from_mins(20)),
                message: "usage limit reached".into(),
            },
            Usage::default(),
        );
        scenario.emit(RunEvent::Waiting {
            why: WaitReason::RateLimit,
            wait_ms: 1_192_000,
            reason: None,
        });
        scenario.wait(60_000);
        scenario.emit(RunEvent::WaitEnded);
        scenario.emit(RunEvent::Waiting {
            why: WaitReason::Cooldown,
            wait_ms: 500,
            reason: None,
        });
        scenario.emit(RunEvent::Notice {
            level: NoticeLevel::Info,
            text: "no git here".into(),
        });
        scenario.emit(RunEvent::Stopping {
            reason: "Ctrl-C".into(),
        });
        scenario.end(RunOutcome::Interrupted { by: Interrupt::Int }, Usage::default());
    });
    insta::assert_snapshot!(text, @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 3/100 ─────────────────────────────────────────────────── 08:00 ──
        ERR │ warning: config is old
            │ Error: connection reset
        SYS │ the agent ended with exit code 1 after 1m01s; stopped 1 process left behind by the agent
            │
     REPORT │ ✗ failed: the agent ended with exit code 1: connection reset
            │ 1m05s
            │ so far: 0ms
       WAIT │ backing off after a failure: waiting 8.0s, until 08:00

    ── iteration 3/100 · attempt 2 ─────────────────────────────────────── 08:00 ──
            │
     REPORT │ ✗ timed out: no output for 10m00s
            │ 1m05s
            │ so far: 8.0s

    ── iteration 3/100 · attempt 3 ─────────────────────────────────────── 08:00 ──
         AI │ a line
            │
            │   and another
       WARN │ LOOP_COMPLETE ignored: it is inside a code fence
            │
     REPORT │ ! rate limited until 08:20, not counted: usage limit reached
            │ 1m05s
            │ so far: 8.0s
       WAIT │ rate limit: waiting 19m52s, until 08:20
       WAIT │ continuing 18m52s early
       WAIT │ cooldown: waiting 500ms, until 08:01
       NOTE │ no git here
       WARN │ stopping: Ctrl-C

    ! Interrupted by Ctrl-C.
      iterations  1 of 100
      time        1m10s
      cost        not reported; the budget of $20.00 was not enforced
      gates       none
      journal     /home/me/.local/state/ralph/projects/parser-12/runs/20260301-080000-3f2a
      next        to resume: ralph run --continue 20260301-080000-3f2a
    ");
}

#[test]
fn parallel_tool_calls_are_labeled() {
    let text = rendered(PLAIN, |scenario| {
        scenario.iteration(1, 1, None);
        scenario.start_tool("a", "Read", json!({"file_path": "src/a.rs"}));
        scenario.start_tool("b", "Read", json!({"file_path": "src/b.rs"}));
        scenario.start_tool("c", "Task", json!({"description": "Find the bug", "prompt": "…"}));
        scenario.start_tool_in(Some("c"), "d", "Grep", json!({"pattern": "todo", "path": "src"}));
        scenario.wait(40);
        scenario.end_tool("d", ToolStatus::Ok, None);
        scenario.transcript(TranscriptEvent::Text {
            tag: Tag::Ai,
            text: "Found it.".into(),
            flow: Flow::Message,
            parent: Some("c".into()),
        });
        scenario.tool_output("b", "x\n");
        scenario.end_tool("b", ToolStatus::Ok, Some(5));
        scenario.end_tool("a", ToolStatus::Fail, Some(7));
        scenario.end_tool("zzz", ToolStatus::Unknown, None);
        scenario.end_iteration(
            IterationOutcome::Continued { rejected_by: None },
            Usage::default(),
        );
    });
    insta::assert_snapshot!(text, @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 ─────────────────────────────────────────────────── 08:00 ──
       TOOL │ ▸ Read src/a.rs
       TOOL │ ▸ Read src/b.rs
       TOOL │ ▸ Task Find the bug
       TOOL │ ┊ ▸ Grep todo
            │ ┊ ✓ 40ms
         AI │ ┊ Found it.
       TOOL │ ✓ Read src/b.rs · 5ms · 1 line
       TOOL │ ✗ Read src/a.rs · 7ms
       TOOL │ ? tool
            │
    ACTIONS │ 5 calls, 1 failed: Grep · Read ×2 · tool · Task
     REPORT │ → not done yet
            │ 1m05s
    ");
}

#[test]
fn many_tool_calls_are_counted_and_failures_listed() {
    let text = rendered(PLAIN, |scenario| {
        scenario.iteration(1, 1, None);
        for call in 0..30 {
            let id = call.to_string();
            scenario.start_tool(
                &id,
                if call % 3 == 0 { "Bash" } else { "Edit" },
                json!({"command": id}),
            );
            let status = if call % 4 == 0 {
                ToolStatus::Fail
            } else {
                ToolStatus::Ok
            };
            scenario.end_tool(&id, status, Some(1000));
        }
        scenario.end_iteration(
            IterationOutcome::Continued { rejected_by: None },
            Usage::default(),
        );
    });
    let callouts = text
        .find("ACTIONS")
        .map(|at| &text[at..])
        .expect("there were actions");
    insta::assert_snapshot!(callouts, @"
    ACTIONS │ 30 calls, 8 failed: Bash ×10 · Edit ×20
     REPORT │ → not done yet
            │ 1m05s
    ");
}
