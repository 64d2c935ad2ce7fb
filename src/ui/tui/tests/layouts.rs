//! Snapshot tests of every tab and every run state in several sizes.

use crossterm::event::KeyCode;

use super::fixture::{RunFixture, TestTui};
use crate::event::{Command, Interrupt, IterationOutcome, RunEvent, RunOutcome, Tag, Usage, WaitReason};
use crate::ui::tui::tab::Tab;
use crate::ui::tui::theme::{ColorMode, Theme};

#[test]
fn tabs_in_all_sizes() {
    let run = RunFixture::running();
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        for tab in Tab::ALL {
            let mut tui = TestTui::of(&run, width, height);
            tui.view.show(tab);
            insta::assert_snapshot!(format!("{}_{width}x{height}", tab.name()), tui.screen());
        }
    }
}

#[test]
fn small_terminal_shows_the_required_size() {
    let run = RunFixture::running();
    insta::assert_snapshot!(TestTui::of(&run, 39, 10).screen(), @"



    terminal too small
    39×10, needs 40×10
     the run continues
    ");
    insta::assert_snapshot!(TestTui::of(&run, 20, 5).screen(), @"

        too small
    20×5, needs 40×10
    the run continues
    ");
    for (width, height) in [
        (1, 1),
        (2, 9),
        (40, 9),
        (40, 10),
        (41, 11),
        (99, 10),
        (100, 10),
        (500, 12),
    ] {
        let mut tui = TestTui::of(&run, width, height);
        for tab in Tab::ALL {
            tui.view.show(tab);
            tui.screen();
            tui.press(&[KeyCode::Char('?')]);
            tui.press(&[KeyCode::Esc]);
        }
    }
}

/// The two header lines and the footer.
fn header_and_footer(run: &RunFixture, prepare: impl FnOnce(&mut TestTui<'_>)) -> String {
    let mut tui = TestTui::of(run, 80, 24);
    prepare(&mut tui);
    let screen = tui.screen();
    let lines: Vec<&str> = screen.lines().collect();
    format!("{}\n{}\n{}\n", lines[0], lines[1], lines[23])
}

/// A run in each state, by name.
fn states() -> Vec<(&'static str, RunFixture)> {
    let mut states = vec![
        ("starting", RunFixture::new()),
        ("working", RunFixture::running()),
    ];
    states.extend(active_states());
    states.extend(resting_states());
    states.push(("resumed", RunFixture::resumed()));
    states
}

type Step = fn(&mut RunFixture);

fn after_running(steps: &[(&'static str, Step)]) -> Vec<(&'static str, RunFixture)> {
    let fixture = |(name, step): &(&'static str, Step)| {
        let mut run = RunFixture::running();
        step(&mut run);
        (*name, run)
    };
    steps.iter().map(fixture).collect()
}

fn active_states() -> Vec<(&'static str, RunFixture)> {
    after_running(&[
        ("pausing", |run| {
            run.command(Command::Pause);
        }),
        ("gate", |run| {
            run.record(RunEvent::GateStarted {
                iteration: 2,
                name: "test".into(),
                command: "cargo test".into(),
            });
            run.wait(5000);
        }),
        ("waiting", |run| {
            let limited = IterationOutcome::RateLimited {
                resets_at: None,
                message: "usage limit".into(),
            };
            run.end_iteration(2, 1, limited).record(RunEvent::Waiting {
                why: WaitReason::RateLimit,
                wait_ms: 755_000,
                reason: None,
            });
        }),
        ("stopping", |run| {
            let reason = "Ctrl-C".into();
            run.record(RunEvent::Stopping { reason });
        }),
    ])
}

fn resting_states() -> Vec<(&'static str, RunFixture)> {
    after_running(&[
        ("paused", |run| {
            let text = "use the old parser".into();
            run.command(Command::Message { text }).command(Command::Pause);
            run.end_iteration(2, 1, IterationOutcome::Skipped)
                .record(RunEvent::Paused);
        }),
        ("asking", |run| {
            run.end_iteration(2, 1, IterationOutcome::Continued { rejected_by: None })
                .record(RunEvent::Asking);
        }),
        ("interrupted", |run| {
            let by = Interrupt::Int;
            run.record(ended(RunOutcome::Interrupted { by }));
        }),
        ("complete", |run| {
            let marker = || "LOOP_COMPLETE".to_owned();
            run.gate("test", 0);
            run.end_iteration(2, 1, IterationOutcome::Completed { marker: marker() });
            run.record(ended(RunOutcome::Complete { marker: marker() }));
        }),
    ])
}

fn ended(outcome: RunOutcome) -> RunEvent {
    RunEvent::RunEnded {
        outcome,
        iterations: 2,
        duration_ms: 100_000,
        usage: Box::new(Usage::default()),
    }
}

#[test]
fn states_in_all_sizes() {
    for (name, run) in states() {
        for (width, height) in [(80, 24), (120, 40), (200, 60)] {
            let screen = TestTui::of(&run, width, height).screen();
            insta::assert_snapshot!(format!("state_{name}_{width}x{height}"), screen);
        }
    }
}

#[test]
fn states_in_header_and_footer() {
    let all: String = states()
        .iter()
        .map(|(_, run)| header_and_footer(run, |_| {}))
        .collect();
    insta::assert_snapshot!(all, @"
    ralph   claude · 2.1.197   20261115-204501-k3f9                     ◐ starting
    iteration 0/10 · 0:01     no tokens yet · cost not reported yet · budget $5.00
    Tab view  j k select  Enter unfold  p pause  m message          ? help  q stop
    ralph   claude · hat builder · opus   20261115-204501-…  ◐ working · Bash 0:25
    iteration 2/10 · 0:37                           101.3k tokens · $2.50 of $5.00
    Tab view  j k select  Enter unfold  ←→ iteration  p pause       ? help  q stop
    ralph   claude · hat builder · opus   2026…  ◑ working · Bash 0:26, then pause
    iteration 2/10 · 0:38                           101.3k tokens · $2.50 of $5.00
    Tab view  j k select  Enter unfold  ←→ iteration  p unpause     ? help  q stop
    ralph   claude · hat builder · opus   20261115-204501-k3f9    ◐ gate test 0:06
    iteration 2/10 · 0:43                           101.3k tokens · $2.50 of $5.00
    Tab view  j k select  Enter unfold  ←→ iteration  p pause       ? help  q stop
    ralph   claude · hat builder · opus   20261115-…  ◷ waiting 12:34 · rate limit
    iteration 2/10 · 0:39                           107.0k tokens · $2.50 of $5.00
    w wake now  Tab view  j k select  Enter unfold  ←→ iteration    ? help  q stop
    ralph   claude · hat builder · opus   20261115-204501-k3f9     ◑ stopping 0:01
    iteration 2/10 · 0:38                           101.3k tokens · $2.50 of $5.00
    Tab view  j k select  Enter unfold  ←→ iteration  p pause       ? help  q stop
    ralph   claude · hat builder · opus   20261115-204501-k3f9       ‖ paused 0:01
    iteration 2/10 · 0:41                           107.0k tokens · $2.50 of $5.00
    p resume  Tab view  j k select  Enter unfold  ←→ iteration      ? help  q stop
    ralph   claude · hat builder · opus   20261115-204501-k3f9    ? continue? 0:01
    iteration 2/10 · 0:39                           107.0k tokens · $2.50 of $5.00
    c continue  a continue without asking  Tab view  j k select     ? help  q stop
    ralph   claude · hat builder · opus   20261115-2045…  ! Interrupted by Ctrl-C.
    iteration 2/10 · 1:40                           101.3k tokens · $2.50 of $5.00
    Tab view  j k select  Enter unfold  ←→ iteration  / search      ? help  q quit
    ralph   claude · hat builder · opus   20261…  ✓ Done. All gates passed (test).
    iteration 2/10 · 1:40                           107.0k tokens · $2.50 of $5.00
    Tab view  j k select  Enter unfold  ←→ iteration  / search      ? help  q quit
    ralph   claude · hat builder · 2.1.197   20261115-204501-k3f9   ◐ working 0:02
    iteration 2/10 · attempt 2 · 0:24                49.0k tokens · $1.25 of $5.00
    Tab view  j k select  Enter unfold  ←→ iteration  p pause       ? help  q stop
    ");
}

#[test]
fn overlays() {
    let run = RunFixture::running();
    let mut all = header_and_footer(&run, |tui| drop(tui.type_text("q")));
    all += &header_and_footer(&run, |tui| drop(tui.type_text("/quo")));
    all += &header_and_footer(&run, |tui| drop(tui.type_text("m keep it small")));
    insta::assert_snapshot!(all, @"
    ralph   claude · hat builder · opus   20261115-204501-…  ◐ working · Bash 0:25
    iteration 2/10 · 0:37                           101.3k tokens · $2.50 of $5.00
    Stop the run?  y: stop the agent and end the run   any other key: continue
    ralph   claude · hat builder · opus   20261115-204501-…  ◐ working · Bash 0:25
    iteration 2/10 · 0:37                           101.3k tokens · $2.50 of $5.00
    search: quo
    ralph   claude · hat builder · opus   20261115-204501-…  ◐ working · Bash 0:25
    iteration 2/10 · 0:37                           101.3k tokens · $2.50 of $5.00
    message for the next prompt:  keep it small
    ");
    let mut tui = TestTui::of(&run, 80, 24);
    tui.type_text("?");
    insta::assert_snapshot!("help_80x24", tui.screen());
}

#[test]
fn outputs_and_thinking_unfold() {
    let run = RunFixture::running();
    let mut tui = TestTui::of(&run, 80, 60);
    tui.type_text("ot");
    insta::assert_snapshot!("all_unfolded_80x60", tui.screen());
    tui.type_text("ot");
    assert!(
        !tui.screen().contains("two of the tests fail"),
        "thinking is hidden"
    );
}

#[test]
fn earlier_iteration_is_read_from_the_journal() {
    let run = RunFixture::running();
    let mut tui = TestTui::of(&run, 120, 40);
    tui.press(&[KeyCode::Left]);
    insta::assert_snapshot!("earlier_120x40", tui.screen());
    tui.press(&[KeyCode::Right]);
    assert!(tui.view.entry.is_none(), "the view follows the newest iteration");
}

#[test]
fn control_sequences_in_agent_output_are_removed() {
    let mut run = RunFixture::new();
    let evil = "\x1b]0;title\x07\x1b]52;c;AAAA\x07\x1b[6n\u{9b}2J\x1b[?1049l\u{202e}shown\x1b[31m";
    run.start_iteration(1, 1)
        .text(Tag::Ai, evil)
        .text(Tag::Think, evil)
        .text(Tag::Sys, evil);
    run.start_tool("a", evil, serde_json::json!({ evil: evil }))
        .end_tool("a", evil, crate::event::ToolStatus::Fail);
    run.record(RunEvent::Stderr {
        iteration: 1,
        text: evil.into(),
    })
    .gate(evil, 1);
    for tab in Tab::ALL {
        let mut tui = TestTui::of(&run, 120, 40);
        tui.view.show(tab);
        tui.type_text("o");
        let screen = tui.screen();
        let forbidden = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!screen.contains(forbidden), "{tab:?}: {screen:?}");
        assert!(
            tab != Tab::Transcript || screen.matches("shown").count() >= 6,
            "{screen}"
        );
    }
}

#[test]
fn color_off_uses_no_colors() {
    use ratatui::style::Color;
    let run = RunFixture::running();
    for tab in Tab::ALL {
        let mut tui = TestTui::of(&run, 120, 40);
        tui.view.theme = Theme::new(ColorMode::Off);
        tui.view.show(tab);
        tui.view.query = "test".into();
        let terminal = tui.draw();
        let cells = terminal.backend().buffer().content();
        assert!(
            cells
                .iter()
                .all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset),
            "{tab:?}"
        );
    }
}
