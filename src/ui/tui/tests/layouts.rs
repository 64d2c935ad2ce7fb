//! Every view, in every size; every state.

use crossterm::event::KeyCode;

use super::fixture::{Story, Watcher};
use crate::event::{Command, Interrupt, IterationOutcome, Pause, RunEvent, RunOutcome, Tag, Usage};
use crate::ui::tui::theme::{Colour, Theme};
use crate::ui::tui::view::Tab;

#[test]
fn every_view_in_every_size() {
    let story = Story::at_work();
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        for tab in Tab::ALL {
            let mut watcher = Watcher::of(&story, width, height);
            watcher.view.show(tab);
            insta::assert_snapshot!(format!("{}_{width}x{height}", tab.name()), watcher.look());
        }
    }
}

#[test]
fn what_is_too_small_says_so() {
    let story = Story::at_work();
    insta::assert_snapshot!(Watcher::of(&story, 39, 10).look(), @"



    ralph needs more room
      40×10, not 39×10
       the run goes on
    ");
    insta::assert_snapshot!(Watcher::of(&story, 20, 5).look(), @"

    needs more room
    40×10, not 20×5
    the run goes on
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
        let mut watcher = Watcher::of(&story, width, height);
        for tab in Tab::ALL {
            watcher.view.show(tab);
            watcher.look();
            watcher.press(&[KeyCode::Char('?')]);
            watcher.press(&[KeyCode::Esc]);
        }
    }
}

/// The two lines at the top and the one at the bottom.
fn edges(story: &Story, prepare: impl FnOnce(&mut Watcher<'_>)) -> String {
    let mut watcher = Watcher::of(story, 80, 24);
    prepare(&mut watcher);
    let screen = watcher.look();
    let lines: Vec<&str> = screen.lines().collect();
    format!("{}\n{}\n{}\n", lines[0], lines[1], lines[23])
}

/// Every state that a run can be in, by name.
fn states() -> Vec<(&'static str, Story)> {
    let mut states = vec![("starting", Story::new()), ("working", Story::at_work())];
    states.extend(on_the_way());
    states.extend(at_rest());
    states.push(("resumed", Story::resumed()));
    states
}

type Telling = fn(&mut Story);

fn after_work(tellings: &[(&'static str, Telling)]) -> Vec<(&'static str, Story)> {
    let after = |(name, tell): &(&'static str, Telling)| {
        let mut story = Story::at_work();
        tell(&mut story);
        (*name, story)
    };
    tellings.iter().map(after).collect()
}

fn on_the_way() -> Vec<(&'static str, Story)> {
    after_work(&[
        ("pausing", |story| {
            story.order(Command::Pause);
        }),
        ("gate", |story| {
            story.tell(RunEvent::GateStarted {
                iteration: 2,
                name: "test".into(),
                command: "cargo test".into(),
            });
            story.wait(5000);
        }),
        ("waiting", |story| {
            let limited = IterationOutcome::RateLimited {
                resets_at: None,
                message: "usage limit".into(),
            };
            story.end(2, 1, limited).tell(RunEvent::Waiting {
                why: Pause::RateLimit,
                wait_ms: 755_000,
            });
        }),
        ("stopping", |story| {
            let reason = "Ctrl-C".into();
            story.tell(RunEvent::Stopping { reason });
        }),
    ])
}

fn at_rest() -> Vec<(&'static str, Story)> {
    after_work(&[
        ("paused", |story| {
            let text = "use the old parser".into();
            story.order(Command::Message { text }).order(Command::Pause);
            story.end(2, 1, IterationOutcome::Skipped).tell(RunEvent::Paused);
        }),
        ("asking", |story| {
            story
                .end(2, 1, IterationOutcome::Continued { rejected_by: None })
                .tell(RunEvent::Asking);
        }),
        ("interrupted", |story| {
            let by = Interrupt::Int;
            story.tell(ended(RunOutcome::Interrupted { by }));
        }),
        ("complete", |story| {
            let marker = || "LOOP_COMPLETE".to_owned();
            story.gate("test", 0);
            story.end(2, 1, IterationOutcome::Completed { marker: marker() });
            story.tell(ended(RunOutcome::Complete { marker: marker() }));
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
fn every_state_in_every_size() {
    for (name, story) in states() {
        for (width, height) in [(80, 24), (120, 40), (200, 60)] {
            let screen = Watcher::of(&story, width, height).look();
            insta::assert_snapshot!(format!("state_{name}_{width}x{height}"), screen);
        }
    }
}

#[test]
fn every_state_has_its_words() {
    let all: String = states().iter().map(|(_, story)| edges(story, |_| {})).collect();
    insta::assert_snapshot!(all, @"
    ralph   claude · 2.1.197   20261115-204501-k3f9                     ◐ starting
    iteration 0/10 · 0:01                  no tokens told · cost not told of $5.00
    Tab view  j k choose  Enter unfold  p pause  m message          ? help  q stop
    ralph   claude · hat builder · opus   20261115-204501-…  ◐ working · Bash 0:25
    iteration 2/10 · 0:35                           101.3k tokens · $2.50 of $5.00
    Tab view  j k choose  Enter unfold  ←→ iteration  p pause       ? help  q stop
    ralph   claude · hat builder · opus   2026…  ◑ working · Bash 0:26, then pause
    iteration 2/10 · 0:36                           101.3k tokens · $2.50 of $5.00
    Tab view  j k choose  Enter unfold  ←→ iteration  p no pause    ? help  q stop
    ralph   claude · hat builder · opus   20261115-204501-k3f9    ◐ gate test 0:06
    iteration 2/10 · 0:41                           101.3k tokens · $2.50 of $5.00
    Tab view  j k choose  Enter unfold  ←→ iteration  p pause       ? help  q stop
    ralph   claude · hat builder · opus   20261115-…  ◷ waiting 12:34 · rate limit
    iteration 2/10 · 0:37                           107.0k tokens · $2.50 of $5.00
    w wake now  Tab view  j k choose  Enter unfold  ←→ iteration    ? help  q stop
    ralph   claude · hat builder · opus   20261115-204501-k3f9     ◑ stopping 0:01
    iteration 2/10 · 0:36                           101.3k tokens · $2.50 of $5.00
    Tab view  j k choose  Enter unfold  ←→ iteration  p pause       ? help  q stop
    ralph   claude · hat builder · opus   20261115-204501-k3f9       ‖ paused 0:01
    iteration 2/10 · 0:39                           107.0k tokens · $2.50 of $5.00
    p go on  Tab view  j k choose  Enter unfold  ←→ iteration       ? help  q stop
    ralph   claude · hat builder · opus   20261115-204501-k3f9       ? go on? 0:01
    iteration 2/10 · 0:37                           107.0k tokens · $2.50 of $5.00
    c go on  a go on without asking  Tab view  j k choose           ? help  q stop
    ralph   claude · hat builder · opus   20261115-2045…  ! Interrupted by Ctrl-C.
    iteration 2/10 · 1:40                           101.3k tokens · $2.50 of $5.00
    Tab view  j k choose  Enter unfold  ←→ iteration  / search     ? help  q leave
    ralph   claude · hat builder · opus   20261…  ✓ Done. All gates passed (test).
    iteration 2/10 · 1:40                           107.0k tokens · $2.50 of $5.00
    Tab view  j k choose  Enter unfold  ←→ iteration  / search     ? help  q leave
    ralph   claude · hat builder · 2.1.197   20261115-204501-k3f9   ◐ working 0:02
    iteration 2/10 · attempt 2 · 0:22                49.0k tokens · $1.25 of $5.00
    Tab view  j k choose  Enter unfold  ←→ iteration  p pause       ? help  q stop
    ");
}

#[test]
fn what_lies_over_the_view() {
    let story = Story::at_work();
    let mut all = edges(&story, |watcher| drop(watcher.letters("q")));
    all += &edges(&story, |watcher| drop(watcher.letters("/quo")));
    all += &edges(&story, |watcher| drop(watcher.letters("m keep it small")));
    insta::assert_snapshot!(all, @"
    ralph   claude · hat builder · opus   20261115-204501-…  ◐ working · Bash 0:25
    iteration 2/10 · 0:35                           101.3k tokens · $2.50 of $5.00
    Stop the run?  y stop the agent and end the run   any other key: go on
    ralph   claude · hat builder · opus   20261115-204501-…  ◐ working · Bash 0:25
    iteration 2/10 · 0:35                           101.3k tokens · $2.50 of $5.00
    search: quo
    ralph   claude · hat builder · opus   20261115-204501-…  ◐ working · Bash 0:25
    iteration 2/10 · 0:35                           101.3k tokens · $2.50 of $5.00
    for the next prompt:  keep it small
    ");
    let mut watcher = Watcher::of(&story, 80, 24);
    watcher.letters("?");
    insta::assert_snapshot!("help_80x24", watcher.look());
}

#[test]
fn outputs_and_thinking_unfold() {
    let story = Story::at_work();
    let mut watcher = Watcher::of(&story, 80, 60);
    watcher.letters("ot");
    insta::assert_snapshot!("all_unfolded_80x60", watcher.look());
    watcher.letters("ot");
    assert!(
        !watcher.look().contains("two of the tests fail"),
        "thinking is hidden"
    );
}

#[test]
fn an_earlier_iteration_is_read_back() {
    let story = Story::at_work();
    let mut watcher = Watcher::of(&story, 120, 40);
    watcher.press(&[KeyCode::Left]);
    insta::assert_snapshot!("earlier_120x40", watcher.look());
    watcher.press(&[KeyCode::Right]);
    assert!(watcher.view.entry.is_none(), "the newest one is followed");
}

#[test]
fn nothing_that_an_agent_says_is_obeyed() {
    let mut story = Story::new();
    let evil = "\x1b]0;title\x07\x1b]52;c;AAAA\x07\x1b[6n\u{9b}2J\x1b[?1049l\u{202e}shown\x1b[31m";
    story
        .begin(1, 1)
        .say(Tag::Ai, evil)
        .say(Tag::Think, evil)
        .say(Tag::Sys, evil);
    story
        .start_tool("a", evil, serde_json::json!({ evil: evil }))
        .end_tool("a", evil, crate::event::ToolStatus::Fail);
    story
        .tell(RunEvent::Stderr {
            iteration: 1,
            text: evil.into(),
        })
        .gate(evil, 1);
    for tab in Tab::ALL {
        let mut watcher = Watcher::of(&story, 120, 40);
        watcher.view.show(tab);
        watcher.letters("o");
        let screen = watcher.look();
        let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!screen.contains(bad), "{tab:?}: {screen:?}");
        assert!(
            tab != Tab::Transcript || screen.matches("shown").count() >= 6,
            "{screen}"
        );
    }
}

#[test]
fn without_colour_there_is_none() {
    use ratatui::style::Color;
    let story = Story::at_work();
    for tab in Tab::ALL {
        let mut watcher = Watcher::of(&story, 120, 40);
        watcher.view.theme = Theme::new(Colour::Refused);
        watcher.view.show(tab);
        watcher.view.query = "test".into();
        let terminal = watcher.draw();
        let cells = terminal.backend().buffer().content();
        assert!(
            cells
                .iter()
                .all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset),
            "{tab:?}"
        );
    }
}
