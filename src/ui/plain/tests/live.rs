//! Streamed text and the status line.

use super::*;

fn deltas(scenario: &mut PlainScenario<'_>) {
    scenario.iteration(1, 1, None);
    for piece in [
        "I will",
        " now look at every fi",
        "",
        "le in this work",
        "space and then de",
        "cide.\n",
    ] {
        scenario.delta(Tag::Ai, piece);
    }
    for piece in [
        "\n1. fir",
        "st item of a list that is long\n2. sec",
        "ond",
        "\n\n",
    ] {
        scenario.delta(Tag::Ai, piece);
    }
    scenario.delta(Tag::Think, "Hm");
    scenario.delta(Tag::Think, "m.");
    scenario.delta(Tag::Ai, "Done.");
}

#[test]
fn deltas_join_to_lines() {
    insta::assert_snapshot!(rendered(PLAIN, deltas), @"
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
fn deltas_are_shown_immediately_on_a_terminal_and_wrap_between_words() {
    let text = rendered(PlainOptions { width: 40, ..LIVE }, deltas);
    insta::assert_snapshot!(visible(&text), @"
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
fn pipe_receives_complete_lines_only() {
    let mut out = Vec::new();
    let mut scenario = PlainScenario::new(PLAIN, &mut out);
    scenario.iteration(1, 1, None);
    scenario.delta(Tag::Ai, "half");
    scenario.delta(Tag::Ai, " a line");
    assert!(scenario.front_end.writer.ends_with(b"\n"));
    let before = scenario.front_end.writer.len();
    scenario.delta(Tag::Ai, "\n");
    assert_eq!(
        &scenario.front_end.writer[before..],
        "     AI │ half a line\n".as_bytes()
    );
}

#[test]
fn status_line_is_drawn_and_removed() {
    let mut out = Vec::new();
    let mut scenario = PlainScenario::new(LIVE, &mut out);
    assert_eq!(scenario.front_end.next_tick(), None);
    scenario.iteration(1, 1, None);
    assert_eq!(scenario.front_end.next_tick(), Some(Duration::from_millis(250)));
    scenario.front_end.writer.clear();
    scenario.wait(83_500);
    scenario.tick();
    scenario.delta(Tag::Ai, "Hello");
    scenario.wait(250);
    scenario.tick();
    scenario.delta(Tag::Ai, " world");
    scenario.start_tool("a", "Bash", json!({"command": "cargo test"}));
    scenario.transcript(TranscriptEvent::usage(usage()));
    scenario.tick();
    scenario.start_tool("b", "Read", json!({"file_path": "a"}));
    scenario.end_iteration(
        IterationOutcome::Continued { rejected_by: None },
        Usage::default(),
    );
    scenario.tick();
    scenario.emit(RunEvent::Waiting {
        why: WaitReason::RateLimit,
        wait_ms: 754_000,
        reason: None,
    });
    assert_eq!(scenario.front_end.next_tick(), Some(Duration::from_secs(1)));
    scenario.wait(1000);
    scenario.tick();
    scenario.wait(753_000);
    scenario.emit(RunEvent::WaitEnded);
    assert_eq!(scenario.front_end.next_tick(), None);
    let text = visible(&String::from_utf8_lossy(scenario.front_end.writer));
    insta::assert_snapshot!(text, @"
    ⠼ 1:23 · working␍␛[K     AI │ Hello
    ⠼ 1:23 · working␍␛[K␛[A␛[16G
    ⠴ 1:23 · working␍␛[K␛[A␛[16G world
    ⠴ 1:23 · working␍␛[K␛[A␛[22G
       TOOL │ ▸ Bash cargo test
    ⠴ 1:23 · running Bash cargo test␍␛[K⠴ 1:23 · running Bash cargo test · 46.2k tokens · $0.12␍␛[K   TOOL │ ▸ Read a
    ⠴ 1:23 · running Read a +1 · 46.2k tokens · $0.12␍␛[K        │
    ACTIONS │ 2 calls: Bash · Read
     REPORT │ → not done yet
            │ 1m05s
       WAIT │ rate limit: waiting 12m34s, until 08:13
    rate limit: 12:33 left, resumes 08:13 · Ctrl-C to stop␍␛[K
    ");
}

#[test]
fn status_line_shows_gates_and_stopping() {
    let mut out = Vec::new();
    let mut scenario = PlainScenario::new(LIVE, &mut out);
    scenario.iteration(1, 1, None);
    scenario.emit(RunEvent::GateStarted {
        iteration: 1,
        name: "tests".into(),
        command: "cargo test".into(),
    });
    let line = |scenario: &PlainScenario<'_>| scenario.front_end.renderer.status_line(scenario.at);
    assert_eq!(line(&scenario).as_deref(), Some("⠋ 0:00 · gate tests"));
    scenario.emit(RunEvent::Stopping {
        reason: "Ctrl-C".into(),
    });
    assert_eq!(
        line(&scenario).as_deref(),
        Some("⠋ 0:00 · stopping · Ctrl-C again to kill")
    );
    scenario.end(RunOutcome::Interrupted { by: Interrupt::Int }, Usage::default());
    assert_eq!(line(&scenario), None);
}

#[test]
fn dropping_the_front_end_removes_the_status_line() {
    let text = rendered(LIVE, |scenario| {
        scenario.iteration(1, 1, None);
        scenario.tick();
    });
    assert!(text.ends_with("\r\x1b[K"), "{text:?}");
}

#[test]
fn without_a_terminal_the_cursor_is_never_moved() {
    let text = rendered(PLAIN, |scenario| {
        scenario.iteration(1, 1, None);
        scenario.tick();
        assert_eq!(scenario.front_end.next_tick(), None);
        deltas(scenario);
        scenario.tick();
    });
    assert!(!text.contains(['\x1b', '\r']));
}
