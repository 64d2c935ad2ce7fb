//! Hostile text, every kind of meta event, and text of any length.

use super::*;

#[test]
fn hostile_text_is_cleaned() {
    let hostile = "\x1b]0;owned\x07\x1b[2Jfine\r\x1b]52;c;c2VjcmV0\x07over\u{202e}txt.exe\u{9b}31m\x08\0";
    let text = rendered(LIVE, |scenario| {
        scenario.iteration(1, 1, Some(hostile));
        scenario.meta(Meta::Session {
            session_id: hostile.into(),
            model: Some(hostile.into()),
            version: None,
        });
        scenario.transcript(TranscriptEvent::message(Tag::Ai, hostile));
        scenario.start_tool(hostile, hostile, json!({"command": hostile}));
        scenario.tick();
        scenario.end_tool(hostile, ToolStatus::Fail, None);
        scenario.emit(RunEvent::Notice {
            level: NoticeLevel::Error,
            text: hostile.into(),
        });
        scenario.gate(GateResult::TimedOut, hostile);
        scenario.meta(Meta::Plan {
            items: vec![PlanItem {
                text: hostile.into(),
                status: PlanStatus::Active,
            }],
        });
        scenario.end_iteration(
            IterationOutcome::AuthRequired {
                message: hostile.into(),
            },
            Usage::default(),
        );
        scenario.end(
            RunOutcome::Failed {
                reason: hostile.into(),
            },
            Usage::default(),
        );
    });
    insta::assert_snapshot!(visible(&text), @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 · fine overtxt.exe ──────────────────────────────── 08:00 ──
        SYS │ session ]0;owned · fine overtxt.exe
         AI │ fine
            │ overtxt.exe
       TOOL │ ▸ fine overtxt.exe fine overtxt.exe
    ⠋ 0:00 · running fine overtxt.exe fine overtxt.exe␍␛[K        │ ✗
    ⠋ 0:00 · working␍␛[K  ERROR │ fine
            │ overtxt.exe
    ⠋ 0:00 · working␍␛[K   GATE │ ▸ tests cargo test --quiet
    ⠋ 0:00 · gate tests␍␛[K   GATE │ ✗ tests · 4.2s · timed out
            │   fine
            │   overtxt.exe
    ⠦ 0:04 · working␍␛[K   PLAN │ 0 of 1 done · next: fine overtxt.exe
    ⠦ 0:04 · working␍␛[K        │
       PLAN │ ▸ fine overtxt.exe
    ACTIONS │ 1 call, 1 failed: fine overtxt.exe
     REPORT │ ✗ the agent is not logged in: fine
            │ overtxt.exe
            │ 1m05s

    ✗ Failed: fine overtxt.exe.
      iterations  1 of 100
      time        1m10s
      cost        not reported; the budget of $20.00 was not enforced
      gates       tests failed ×1
      journal     /home/me/.local/state/ralph/projects/parser-12/runs/20260301-080000-3f2a
      next        to resume: ralph run --continue 20260301-080000-3f2a
    ");
}

#[test]
fn every_kind_of_meta_event_is_shown() {
    let text = rendered(PLAIN, |scenario| {
        scenario.iteration(1, 1, None);
        scenario.session();
        scenario.session();
        let other = json!({"message": "warming up", "step": 1});
        let item = |text: &str, status| PlanItem {
            text: text.into(),
            status,
        };
        let limit = |status| Meta::RateLimit {
            status,
            resets_at: Some(start() + SignedDuration::from_hours(20)),
            limit: Some("five_hour".into()),
            utilization: None,
        };
        for meta in [
            Meta::Finished {
                success: false,
                reason: Some("error_max_turns".into()),
                text: Some("The copy of the final message.".into()),
                turns: None,
                duration_ms: None,
            },
            Meta::Error {
                class: ErrorClass::Overload,
                message: "try later".into(),
                status: Some(529),
            },
            Meta::Retry {
                attempt: 2,
                max_attempts: Some(10),
                delay_ms: Some(1500),
                class: ErrorClass::Network,
                message: "connection reset".into(),
            },
            limit(RateLimitStatus::Allowed),
            limit(RateLimitStatus::Warning),
            limit(RateLimitStatus::Rejected),
            Meta::Plan {
                items: vec![
                    item("read", PlanStatus::Done),
                    item("write", PlanStatus::Active),
                    item("rest", PlanStatus::Pending),
                ],
            },
            Meta::FileChange {
                path: "src/a.rs".into(),
                change: FileChangeKind::Added,
            },
            Meta::FileChange {
                path: "src/b.rs".into(),
                change: FileChangeKind::Modified,
            },
            Meta::FileChange {
                path: "src/c.rs".into(),
                change: FileChangeKind::Deleted,
            },
            Meta::PermissionDenied { tool: "Bash".into() },
            Meta::ParseError {
                message: "expected value at column 1".into(),
            },
            Meta::Cut { bytes: 300_000_000 },
            Meta::Other(other.as_object().cloned().unwrap_or_default()),
        ] {
            scenario.meta(meta);
        }
        for tag in [Tag::Sys, Tag::Tool, Tag::Prompt, Tag::User] {
            scenario.transcript(TranscriptEvent::message(tag, "one\ntwo\nthree\nfour\nfive"));
        }
        scenario.end_iteration(IterationOutcome::Interrupted, Usage::default());
    });
    insta::assert_snapshot!(text, @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 ─────────────────────────────────────────────────── 08:00 ──
        SYS │ session 3f2a91bc · claude-opus-4
      ERROR │ the agent reported a failure: error_max_turns
      ERROR │ service overloaded (HTTP 529): try later
       WARN │ the agent is retrying in 1.5s (attempt 2 of 10): network error: connection reset
       WARN │ usage limit five_hour almost reached, resets Mon 2 Mar 04:00
      ERROR │ usage limit five_hour reached, resets Mon 2 Mar 04:00
       PLAN │ 1 of 3 done · next: write
       FILE │ added src/a.rs
       FILE │ changed src/b.rs
       FILE │ deleted src/c.rs
       WARN │ the agent was denied permission to use Bash
       WARN │ could not parse a line of output: expected value at column 1
       WARN │ truncated a line of 300.0 MB; the run directory has the full output
        SYS │ warming up
        SYS │ one
            │ two
            │ three
            │ four
            │ five
       TOOL │ one
            │ two
            │ three
            │ …
     PROMPT │ one
            │ two
            │ three
            │ …
       USER │ one
            │ two
            │ three
            │ four
            │ five
            │
       PLAN │ ✓ read
            │ ▸ write
            │ · rest
     REPORT │ ! interrupted
            │ 1m05s
    ");
}

fn live_front_end(out: &mut Vec<u8>) -> Plain<&mut Vec<u8>> {
    Plain::new(out, PlainOptions { width: 40, ..LIVE })
}

/// Renders the chunks as deltas of one text.
fn render_deltas(chunks: &[&str]) -> String {
    let mut out = Vec::new();
    let mut front_end = live_front_end(&mut out);
    for chunk in chunks {
        let event = TranscriptEvent::Text {
            tag: Tag::Ai,
            text: (*chunk).into(),
            flow: Flow::Delta,
            parent: None,
        };
        let event = RunEvent::Transcript { iteration: 1, event };
        let (seq, at) = (1, start());
        front_end
            .accept(&Record::new(seq, at, event))
            .expect("writing to memory succeeds");
    }
    drop(front_end);
    String::from_utf8(out).expect("output is UTF-8")
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

proptest::proptest! {
    #[test]
    fn wrapping_keeps_all_text_and_fits_the_width(text in "([a-z]{1,40}|[ \n\t]{1,3}|日本|- |é|👩‍💻){0,60}") {
        let page = render_deltas(&[&text]);
        let mut body = String::new();
        for row in page.lines() {
            proptest::prop_assert!(row.width() < 40, "{row:?}");
            proptest::prop_assert_eq!(row.trim_end(), row);
            body += row.split_once('│').expect("a gutter").1;
        }
        proptest::prop_assert_eq!(without_blanks(&body), without_blanks(&text));
    }

    #[test]
    fn deltas_render_like_the_whole_text(words in proptest::collection::vec("[a-zé]{0,12}[ \n]?", 0..40)) {
        let chunks: Vec<&str> = words.iter().map(String::as_str).collect();
        let whole = words.concat();
        let longest = whole.split_whitespace().map(str::len).max().unwrap_or(0);
        proptest::prop_assume!(longest < 29);
        proptest::prop_assert_eq!(render_deltas(&chunks), render_deltas(&[&whole]));
    }
}

#[test]
fn memory_of_a_huge_message_is_freed() {
    let mut out = Vec::new();
    let mut scenario = PlainScenario::new(PLAIN, &mut out);
    scenario.transcript(TranscriptEvent::message(Tag::Ai, "x".repeat(3 << 20)));
    scenario.transcript(TranscriptEvent::message(Tag::Ai, "next"));
    assert!(scenario.front_end.renderer.page.out.capacity() <= 1 << 20);
}

#[test]
fn memory_is_bounded_for_long_streams() {
    let mut out = Vec::new();
    let mut scenario = PlainScenario::new(PLAIN, &mut out);
    scenario.iteration(1, 1, None);
    for call in 0..2000 {
        scenario.delta(Tag::Think, "a thought that never ends ");
        scenario.delta(Tag::Ai, "a line that never ends ");
        scenario.start_tool(
            &call.to_string(),
            &format!("tool{call}"),
            json!({"command": "x".repeat(9000)}),
        );
        scenario.front_end.writer.clear();
    }
    let renderer = &scenario.front_end.renderer;
    assert!(renderer.page.out.len() <= crate::ui::plain::MAX_BUFFERED_BYTES);
    assert!(renderer.iteration.tools.open.len() <= 64);
    assert!(
        renderer
            .iteration
            .tools
            .open
            .iter()
            .all(|tool| tool.argument.len() < 1000)
    );
}
