//! Whatever comes: hostile text, every kind of meta, text of any shape and length.

use super::*;

#[test]
fn hostile_text_is_only_text() {
    let hostile = "\x1b]0;owned\x07\x1b[2Jfine\r\x1b]52;c;c2VjcmV0\x07over\u{202e}txt.exe\u{9b}31m\x08\0";
    let text = told(LIVE, |story| {
        story.iteration(1, 1, Some(hostile));
        story.meta(Meta::Session {
            session_id: hostile.into(),
            model: Some(hostile.into()),
            version: None,
        });
        story.said(TranscriptEvent::message(Tag::Ai, hostile));
        story.start_tool(hostile, hostile, json!({"command": hostile}));
        story.tick();
        story.end_tool(hostile, ToolStatus::Fail, None);
        story.tell(RunEvent::Notice {
            level: Level::Error,
            text: hostile.into(),
        });
        story.gate(GateResult::TimedOut, hostile);
        story.meta(Meta::Plan {
            items: vec![PlanItem {
                text: hostile.into(),
                status: PlanStatus::Active,
            }],
        });
        story.end_iteration(
            IterationOutcome::AuthRequired {
                message: hostile.into(),
            },
            Usage::default(),
        );
        story.end(
            RunOutcome::Failed {
                reason: hostile.into(),
            },
            Usage::default(),
        );
    });
    insta::assert_snapshot!(shown(&text), @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 · fine overtxt.exe ──────────────────────────────── 08:00 ──
        SYS │ session fine ove · fine overtxt.exe
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
    ACTIONS │ ✗ fine overtxt.exe fine overtxt.exe
     REPORT │ ✗ the agent is not logged in: fine
            │ overtxt.exe
            │ 1m05s

    ✗ Failed: fine overtxt.exe.
      iterations  1 of 100
      time        1m10s
      cost        unknown; the limit of $20.00 was not enforced
      gates       tests failed ×1
      journal     /home/me/parser/.agent/runs/20260301-080000-3f2a
      next        to resume: ralph run --continue 20260301-080000-3f2a
    ");
}

#[test]
fn every_kind_of_meta_is_shown() {
    let text = told(PLAIN, |story| {
        story.iteration(1, 1, None);
        story.session();
        story.session();
        let other = json!({"message": "warming up", "step": 1});
        let item = |text: &str, status| PlanItem {
            text: text.into(),
            status,
        };
        let limit = |status| Meta::RateLimit {
            status,
            resets_at: Some(start() + SignedDuration::from_hours(20)),
            limit: Some("five_hour".into()),
        };
        for meta in [
            Meta::Finished {
                success: false,
                reason: Some("error_max_turns".into()),
                text: Some("Only said at the end.".into()),
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
            story.meta(meta);
        }
        for tag in [Tag::Sys, Tag::Tool, Tag::Prompt, Tag::User] {
            story.said(TranscriptEvent::message(tag, "one\ntwo\nthree\nfour\nfive"));
        }
        story.end_iteration(IterationOutcome::Interrupted, Usage::default());
    });
    insta::assert_snapshot!(text, @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 ─────────────────────────────────────────────────── 08:00 ──
        SYS │ session 3f2a91bc · claude-opus-4
         AI │ Only said at the end.
      ERROR │ the agent says that it failed: error_max_turns
      ERROR │ service overloaded (HTTP 529): try later
       WARN │ the agent tries again in 1.5s, attempt 2 of 10: network: connection reset
       WARN │ usage limit five_hour almost reached, resets Mon 2 Mar 04:00
      ERROR │ usage limit five_hour reached, resets Mon 2 Mar 04:00
       PLAN │ 1 of 3 done · next: write
       FILE │ added src/a.rs
       FILE │ changed src/b.rs
       FILE │ deleted src/c.rs
       WARN │ the agent was not permitted to use Bash
       WARN │ unreadable line: expected value at column 1
       WARN │ a line of 300.0 MB was cut; the raw file has all of it
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

fn live_face(out: &mut Vec<u8>) -> Plain<&mut Vec<u8>> {
    Plain::new(out, PlainOptions { width: 40, ..LIVE })
}

/// The pieces as deltas of one text, nothing of it written before its end.
fn flowed(pieces: &[&str]) -> String {
    let mut out = Vec::new();
    let mut face = live_face(&mut out);
    for piece in pieces {
        let event = TranscriptEvent::Text {
            tag: Tag::Ai,
            text: (*piece).into(),
            flow: Flow::Delta,
            parent: None,
        };
        let event = RunEvent::Transcript { iteration: 1, event };
        let (seq, at) = (1, start());
        face.accept(&Record { seq, at, event })
            .expect("memory can be written");
    }
    drop(face);
    String::from_utf8(out).expect("a face writes text")
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

proptest::proptest! {
    #[test]
    fn wrapping_loses_nothing_and_fits(text in "([a-z]{1,40}|[ \n\t]{1,3}|日本|- |é|👩‍💻){0,60}") {
        let page = flowed(&[&text]);
        let mut body = String::new();
        for row in page.lines() {
            proptest::prop_assert!(row.width() < 40, "{row:?}");
            proptest::prop_assert_eq!(row.trim_end(), row);
            body += row.split_once('│').expect("a gutter").1;
        }
        proptest::prop_assert_eq!(without_blanks(&body), without_blanks(&text));
    }

    #[test]
    fn pieces_look_like_the_whole(words in proptest::collection::vec("[a-zé]{0,12}[ \n]?", 0..40)) {
        let pieces: Vec<&str> = words.iter().map(String::as_str).collect();
        let whole = words.concat();
        let longest = whole.split_whitespace().map(str::len).max().unwrap_or(0);
        proptest::prop_assume!(longest < 29);
        proptest::prop_assert_eq!(flowed(&pieces), flowed(&[&whole]));
    }
}

#[test]
fn a_huge_message_gives_its_memory_back() {
    let mut out = Vec::new();
    let mut story = Story::new(PLAIN, &mut out);
    story.said(TranscriptEvent::message(Tag::Ai, "x".repeat(3 << 20)));
    story.said(TranscriptEvent::message(Tag::Ai, "next"));
    assert!(story.face.face.page.out.capacity() <= 1 << 20);
}

#[test]
fn memory_does_not_grow_with_the_stream() {
    let mut story_out = Vec::new();
    let mut story = Story::new(PLAIN, &mut story_out);
    story.iteration(1, 1, None);
    for call in 0..2000 {
        story.delta(Tag::Think, "a thought that never ends ");
        story.delta(Tag::Ai, "a line that never ends ");
        story.start_tool(
            &call.to_string(),
            &format!("tool{call}"),
            json!({"command": "x".repeat(9000)}),
        );
        story.face.writer.clear();
    }
    let face = &story.face.face;
    assert!(face.page.out.len() <= super::super::MOST_BUFFERED);
    assert!(face.iteration.thought.len() <= 600);
    assert!(face.iteration.tools.open.len() <= 64);
    assert!(
        face.iteration
            .tools
            .open
            .iter()
            .all(|tool| tool.argument.len() < 1000)
    );
}
