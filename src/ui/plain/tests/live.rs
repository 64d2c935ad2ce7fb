//! What moves: text in pieces, and the line that says what is going on.

use super::*;

fn deltas(story: &mut Story<'_>) {
    story.iteration(1, 1, None);
    for piece in [
        "I will",
        " now look at every fi",
        "",
        "le in this work",
        "space and then de",
        "cide.\n",
    ] {
        story.delta(Tag::Ai, piece);
    }
    for piece in [
        "\n1. fir",
        "st item of a list that is long\n2. sec",
        "ond",
        "\n\n",
    ] {
        story.delta(Tag::Ai, piece);
    }
    story.delta(Tag::Think, "Hm");
    story.delta(Tag::Think, "m.");
    story.delta(Tag::Ai, "Done.");
}

#[test]
fn deltas_join_to_lines() {
    insta::assert_snapshot!(told(PLAIN, deltas), @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 ─────────────────────────────────────────────────── 08:00 ──
         AI │ I will now look at every file in this workspace and then decide.
            │
            │ 1. first item of a list that is long
            │ 2. second
      THINK │ Hmm.
         AI │ Done.
    ");
}

#[test]
fn deltas_show_at_once_on_a_terminal_and_wrap_whole_words() {
    let text = told(PlainOptions { width: 40, ..LIVE }, deltas);
    insta::assert_snapshot!(shown(&text), @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 ─────────── 08:00 ──
         AI │ I will now look at every file
            │ in this workspace and then de␛[3D␛[K
            │ decide.
            │
            │ 1. first item of a list that
            │    is long
            │ 2. second
      THINK │ Hmm.
         AI │ Done.
    ");
}

#[test]
fn a_pipe_sees_whole_lines_only() {
    let mut out = Vec::new();
    let mut story = Story::new(PLAIN, &mut out);
    story.iteration(1, 1, None);
    story.delta(Tag::Ai, "half");
    story.delta(Tag::Ai, " a line");
    assert!(story.face.writer.ends_with(b"\n"));
    let before = story.face.writer.len();
    story.delta(Tag::Ai, "\n");
    assert_eq!(&story.face.writer[before..], "     AI │ half a line\n".as_bytes());
}

#[test]
fn the_status_line_comes_and_goes() {
    let mut out = Vec::new();
    let mut story = Story::new(LIVE, &mut out);
    assert_eq!(story.face.wants_tick(), None);
    story.iteration(1, 1, None);
    assert_eq!(story.face.wants_tick(), Some(Duration::from_millis(250)));
    story.face.writer.clear();
    story.wait(83_500);
    story.tick();
    story.delta(Tag::Ai, "Hello");
    story.wait(250);
    story.tick();
    story.delta(Tag::Ai, " world");
    story.start_tool("a", "Bash", json!({"command": "cargo test"}));
    story.said(TranscriptEvent::usage(usage()));
    story.tick();
    story.start_tool("b", "Read", json!({"file_path": "a"}));
    story.end_iteration(
        IterationOutcome::Continued { rejected_by: None },
        Usage::default(),
    );
    story.tick();
    story.tell(RunEvent::Waiting {
        why: Pause::RateLimit,
        wait_ms: 754_000,
    });
    assert_eq!(story.face.wants_tick(), Some(Duration::from_secs(1)));
    story.wait(1000);
    story.tick();
    story.wait(753_000);
    story.tell(RunEvent::WaitEnded);
    assert_eq!(story.face.wants_tick(), None);
    let text = shown(&String::from_utf8_lossy(story.face.writer));
    insta::assert_snapshot!(text, @"
    ⠼ 1:23 · working␍␛[K     AI │ Hello
    ⠼ 1:23 · working␍␛[K␛[A␛[16G
    ⠴ 1:23 · working␍␛[K␛[A␛[16G world
    ⠴ 1:23 · working␍␛[K␛[A␛[22G
       TOOL │ ▸ Bash cargo test
    ⠴ 1:23 · running Bash cargo test␍␛[K⠴ 1:23 · running Bash cargo test · 46.2k tokens · $0.12␍␛[K   TOOL │ ▸ Read a
    ⠴ 1:23 · running Read a +1 · 46.2k tokens · $0.12␍␛[K        │
    ACTIONS │ ? Bash cargo test
            │ ? Read a
     REPORT │ → not done yet
            │ 1m05s
       WAIT │ rate limit: waiting 12m34s, until 08:13
    rate limit: 12:33 left, resumes 08:13 · Ctrl-C stops␍␛[K
    ");
}

#[test]
fn the_status_line_names_gates_and_stopping() {
    let mut out = Vec::new();
    let mut story = Story::new(LIVE, &mut out);
    story.iteration(1, 1, None);
    story.tell(RunEvent::GateStarted {
        iteration: 1,
        name: "tests".into(),
        command: "cargo test".into(),
    });
    let line = |story: &Story<'_>| story.face.face.status_line(story.at);
    assert_eq!(line(&story).as_deref(), Some("⠋ 0:00 · gate tests"));
    story.tell(RunEvent::Stopping {
        reason: "Ctrl-C".into(),
    });
    assert_eq!(
        line(&story).as_deref(),
        Some("⠋ 0:00 · stopping · Ctrl-C again kills")
    );
    story.end(RunOutcome::Interrupted { by: Interrupt::Int }, Usage::default());
    assert_eq!(line(&story), None);
}

#[test]
fn a_face_that_is_dropped_leaves_no_status_line() {
    let text = told(LIVE, |story| {
        story.iteration(1, 1, None);
        story.tick();
    });
    assert!(text.ends_with("\r\x1b[K"), "{text:?}");
}

#[test]
fn a_face_that_is_not_live_never_moves_the_cursor() {
    let text = told(PLAIN, |story| {
        story.iteration(1, 1, None);
        story.tick();
        assert_eq!(story.face.wants_tick(), None);
        deltas(story);
        story.tick();
    });
    assert!(!text.contains(['\x1b', '\r']));
}
