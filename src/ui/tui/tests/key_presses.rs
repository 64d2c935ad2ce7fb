//! Tests of key handling.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

use super::fixture::{RunFixture, TestTui};
use crate::event::{Answer, Command, Interrupt, IterationOutcome, RunEvent, RunOutcome, Tag, Usage};
use crate::ui::tui::document::Scroll;
use crate::ui::tui::keys::{KeyAction, KeyContext};
use crate::ui::tui::loaded_files::LoadedFiles;
use crate::ui::tui::tab::Tab;
use crate::ui::tui::view::{CommandAccess, Overlay, Role, ToolOrder};

fn answer(answer: Answer) -> Command {
    Command::Answer { answer }
}

fn ctrl_c() -> Event {
    Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL))
}

#[test]
fn ctrl_c_interrupts_and_q_asks_first() {
    let run = RunFixture::running();
    let mut tui = TestTui::of(&run, 80, 24);
    assert_eq!(
        tui.send(&ctrl_c()),
        Some(KeyAction::Send(Command::Stop { by: Interrupt::Int }))
    );
    assert_eq!(
        tui.send(&ctrl_c()),
        Some(KeyAction::Send(Command::Stop { by: Interrupt::Int }))
    );
    assert_eq!(tui.type_text("q"), None);
    assert_eq!(tui.type_text("n"), None);
    assert_eq!(
        tui.type_text("qy"),
        Some(KeyAction::Send(Command::Stop { by: Interrupt::Quit }))
    );
}

#[test]
fn viewer_quits_without_stopping_the_run() {
    let run = RunFixture::running();
    let mut tui = TestTui::of(&run, 80, 24);
    tui.view.role = Role::Viewer;
    assert_eq!(tui.send(&ctrl_c()), Some(KeyAction::Close));
    assert_eq!(tui.type_text("q"), Some(KeyAction::Close));
}

#[test]
fn commands_are_offered_only_if_they_can_be_sent() {
    let run = RunFixture::running();
    let mut tui = TestTui::of(&run, 80, 24);
    assert_eq!(tui.type_text("p"), Some(KeyAction::Send(Command::Pause)));
    assert_eq!(tui.type_text("s"), None);
    assert_eq!(tui.view.overlay, Overlay::ConfirmSkip);
    assert_eq!(tui.type_text("n"), None, "any other key cancels");
    assert_eq!(tui.type_text("sy"), Some(KeyAction::Send(Command::StopIteration)));
    assert_eq!(tui.type_text("w"), None, "the run is not waiting");
    tui.type_text("m");
    tui.send(&Event::Paste("use\nthe old parser ".into()));
    let sent = tui.press(&[KeyCode::Enter]);
    assert_eq!(
        sent,
        Some(KeyAction::Send(Command::Message {
            text: "use\nthe old parser".into()
        }))
    );
    tui.view.commands = CommandAccess::Unavailable;
    for letter in ["p", "s", "w", "m"] {
        assert_eq!(tui.type_text(letter), None);
        assert!(!tui.screen().contains("message for the next prompt"));
    }
}

#[test]
fn p_pauses_cancels_a_pause_and_resumes() {
    let mut run = RunFixture::running();
    run.command(Command::Pause);
    assert_eq!(
        TestTui::of(&run, 80, 24).type_text("p"),
        Some(KeyAction::Send(Command::Resume))
    );
    run.end_iteration(2, 1, IterationOutcome::Skipped)
        .record(RunEvent::Paused);
    let mut tui = TestTui::of(&run, 80, 24);
    assert_eq!(tui.type_text("s"), None, "no iteration is running");
    assert_eq!(tui.type_text("p"), Some(KeyAction::Send(Command::Resume)));
    run.command(Command::Resume).record(RunEvent::WaitEnded);
    assert_eq!(
        TestTui::of(&run, 80, 24).type_text("p"),
        Some(KeyAction::Send(Command::Pause))
    );
}

#[test]
fn confirmation_between_iterations_takes_one_key() {
    let mut run = RunFixture::running();
    run.end_iteration(2, 1, IterationOutcome::Continued { rejected_by: None })
        .record(RunEvent::Asking);
    let mut tui = TestTui::of(&run, 80, 24);
    assert_eq!(
        tui.type_text("c"),
        Some(KeyAction::Send(answer(Answer::Continue)))
    );
    assert_eq!(
        tui.press(&[KeyCode::Enter]),
        Some(KeyAction::Send(answer(Answer::Continue)))
    );
    assert_eq!(
        tui.type_text("a"),
        Some(KeyAction::Send(answer(Answer::ContinueWithoutAsking)))
    );
    assert_eq!(
        tui.type_text("q"),
        Some(KeyAction::Send(Command::Stop { by: Interrupt::Quit }))
    );
    tui.type_text("k");
    assert_eq!(
        tui.press(&[KeyCode::Enter]),
        None,
        "Enter unfolds the selected block"
    );
}

#[test]
fn ended_run_accepts_no_commands() {
    let mut run = RunFixture::running();
    run.record(RunEvent::RunEnded {
        outcome: RunOutcome::Complete {
            marker: "LOOP_COMPLETE".into(),
        },
        iterations: 2,
        duration_ms: 1000,
        usage: Box::new(Usage::default()),
    });
    let mut tui = TestTui::of(&run, 80, 24);
    for letter in ["p", "s", "w", "m"] {
        assert_eq!(tui.type_text(letter), None);
    }
    assert_eq!(tui.type_text("q"), Some(KeyAction::Close));
}

#[test]
fn scrolling_stops_and_resumes_following() {
    let run = RunFixture::running();
    let mut tui = TestTui::of(&run, 80, 24);
    assert!(!tui.view.is_reading());
    tui.press(&[KeyCode::Up]);
    assert!(tui.view.is_reading());
    tui.press(&[KeyCode::Down]);
    assert!(!tui.view.is_reading(), "it follows the end again");
    tui.type_text("g");
    assert!(tui.screen().contains("All done."), "the whole run scrolls");
    tui.press(&[KeyCode::PageDown, KeyCode::PageDown, KeyCode::PageDown]);
    assert_eq!(tui.view.scroll(), Scroll::End);
}

#[test]
fn selected_tool_unfolds_and_can_be_copied() {
    let run = RunFixture::running();
    let mut tui = TestTui::of(&run, 80, 40);
    tui.type_text("kkkkk");
    tui.press(&[KeyCode::Enter]);
    let screen = tui.screen();
    assert!(screen.contains("▌  │ timeout: 60"), "{screen}");
    assert!(screen.contains("│ running 2 tests"), "{screen}");
    let Some(KeyAction::Copy(text)) = tui.type_text("y") else {
        panic!("nothing was copied");
    };
    assert!(
        text.starts_with("Bash cargo test parser") && text.ends_with("parser::quotes"),
        "{text}"
    );
    tui.press(&[KeyCode::Enter]);
    assert!(!tui.screen().contains("timeout: 60"));
}

#[test]
fn tools_tab_sorts_and_opens_the_transcript() {
    let run = RunFixture::running();
    let mut tui = TestTui::of(&run, 80, 24);
    tui.type_text("4");
    tui.press(&[KeyCode::Down, KeyCode::Down]);
    tui.type_text("o");
    assert_eq!(tui.view.order, ToolOrder::Longest);
    tui.type_text("o");
    tui.press(&[KeyCode::Enter]);
    assert_eq!(tui.view.tab, Tab::Transcript);
    assert!(tui.screen().contains("│ + rfind"), "{}", tui.screen());
}

#[test]
fn search_wraps_around() {
    let run = RunFixture::running();
    let mut tui = TestTui::of(&run, 80, 24);
    tui.type_text("/quote");
    tui.press(&[KeyCode::Enter]);
    let first = tui.view.found;
    let found = first.expect("a match");
    let status = format!(" {} of {}", found.number, found.total);
    assert!(tui.screen().contains(&status), "{}", tui.screen());
    tui.type_text("n");
    let second = tui.view.found;
    assert_ne!(first, second);
    tui.type_text("N");
    assert_eq!(tui.view.found, first);
    tui.press(&[KeyCode::Esc]);
    assert!(tui.view.query.is_empty());
    tui.type_text("/nowhere");
    tui.press(&[KeyCode::Enter]);
    assert!(
        tui.screen().contains("no match for \"nowhere\""),
        "{}",
        tui.screen()
    );
    // The search before is recalled.
    tui.type_text("/");
    tui.press(&[KeyCode::Up, KeyCode::Up, KeyCode::Enter]);
    assert_eq!(tui.view.query, "quote");
}

/// A run with one iteration of `messages` messages.
fn long_run(messages: usize) -> RunFixture {
    let mut run = RunFixture::new();
    run.start_iteration(1, 1);
    for number in 0..messages {
        run.text(Tag::Ai, &format!("message {number}."));
    }
    run
}

#[test]
fn following_lays_out_only_the_end() {
    let run = long_run(500);
    let mut tui = TestTui::of(&run, 80, 24);
    let followed = tui.screen();
    assert!(followed.contains("message 499."), "{followed}");
    assert!(tui.view.document.total() < 500, "only the end was laid out");
    // A selection requires the whole transcript.
    tui.type_text("k");
    assert!(tui.view.document.total() >= 500);
    let read = tui.screen().replace('▌', " ");
    let end = |screen: &str| screen.lines().skip(4).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(end(&followed)[..18], end(&read)[..18]);
}

#[test]
fn search_finds_rows_that_no_frame_has_laid_out() {
    let run = long_run(500);
    let mut tui = TestTui::of(&run, 80, 24);
    tui.screen();
    let state = run.state();
    let files = LoadedFiles::default();
    for key in "/message 7.".chars().map(KeyCode::Char).chain([KeyCode::Enter]) {
        tui.view.on_event(
            &Event::Key(KeyEvent::new(key, KeyModifiers::NONE)),
            KeyContext {
                state: &state,
                files: &files,
            },
        );
    }
    let screen = tui.screen();
    assert!(screen.contains("message 7."), "{screen}");
    tui.type_text("G");
    assert!(tui.screen().contains("message 499."));
}

#[test]
fn tabs_are_reached_by_number_and_by_tab_key() {
    let run = RunFixture::running();
    let mut tui = TestTui::of(&run, 80, 24);
    // The newest iteration has no changes and no gates yet; the earlier one has.
    for (digit, tab) in [
        ('3', Tab::Plan),
        ('4', Tab::Tools),
        ('6', Tab::Events),
        ('7', Tab::Prompt),
        ('9', Tab::Usage),
    ] {
        tui.press(&[KeyCode::Char(digit)]);
        assert_eq!(tui.view.tab, tab);
    }
    let notified = |action| matches!(action, Some(KeyAction::Notify(_)));
    assert!(notified(tui.press(&[KeyCode::Char('2')])));
    assert!(!tui.screen().contains("Changes"), "{}", tui.screen());
    tui.press(&[KeyCode::Left]);
    for (digit, tab) in [('2', Tab::Changes), ('5', Tab::Gates), ('9', Tab::Usage)] {
        tui.press(&[KeyCode::Char(digit)]);
        assert_eq!(tui.view.tab, tab);
    }
    tui.press(&[KeyCode::Tab]);
    assert_eq!(tui.view.tab, Tab::Transcript);
    tui.press(&[KeyCode::BackTab]);
    assert_eq!(tui.view.tab, Tab::Usage);
}

#[test]
fn help_scrolls_if_it_does_not_fit() {
    let run = RunFixture::running();
    let mut tui = TestTui::of(&run, 60, 15);
    tui.type_text("?");
    assert!(!tui.screen().contains("q Ctrl-C"));
    tui.press(&[KeyCode::Down; 20]);
    assert!(tui.screen().contains("q Ctrl-C"), "{}", tui.screen());
    tui.press(&[KeyCode::Esc]);
    assert_eq!(tui.view.overlay, Overlay::None);
}

#[test]
fn random_keys_do_not_panic() {
    let run = RunFixture::running();
    let mut tui = TestTui::of(&run, 60, 14);
    let mut random = fastrand::Rng::with_seed(7);
    let special = [
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::PageUp,
    ];
    for _ in 0..250 {
        let letter = || KeyCode::Char('x');
        let key = match random.u8(0..3) {
            0 => special[random.usize(0..special.len())],
            1 => KeyCode::Char(char::from(random.u8(b' '..=b'~'))),
            _ if random.bool() => KeyCode::Tab,
            _ => letter(),
        };
        tui.press(&[key]);
    }
}

#[test]
fn changed_file_unfolds_to_its_diff_and_can_be_copied() {
    let run = RunFixture::running();
    let mut tui = TestTui::of(&run, 80, 24);
    tui.press(&[KeyCode::Left]);
    tui.type_text("2");
    assert!(!tui.screen().contains("rfind"), "{}", tui.screen());
    tui.press(&[KeyCode::Down, KeyCode::Down, KeyCode::Enter]);
    let screen = tui.screen();
    assert!(screen.contains("▾ M src/parser.rs"), "{screen}");
    assert!(screen.contains("+let end = text.rfind('\"');"), "{screen}");
    let Some(KeyAction::Copy(text)) = tui.type_text("y") else {
        panic!("nothing was copied");
    };
    assert!(text.starts_with("@@ -10,3 +10,4 @@"), "{text}");
}

#[test]
fn unfolding_belongs_to_its_entry() {
    let run = RunFixture::running();
    let mut tui = TestTui::of(&run, 100, 60);
    // The gate of the first iteration.
    tui.press(&[KeyCode::Left]);
    tui.type_text("5");
    tui.press(&[KeyCode::Down, KeyCode::Enter]);
    let unfolded = |tui: &mut TestTui<'_>| tui.screen().matches("running 12 tests").count();
    let before = unfolded(&mut tui);
    tui.press(&[KeyCode::Right, KeyCode::Left]);
    assert_eq!(unfolded(&mut tui), before);
    // The block at the same place in the other iteration is still folded.
    assert!(!tui.screen().contains("old_string"), "{}", tui.screen());
}

#[test]
fn iteration_folds_to_one_line_with_its_verdict() {
    let run = RunFixture::running();
    let mut tui = TestTui::of(&run, 100, 60);
    assert!(tui.screen().contains("All done."), "{}", tui.screen());
    tui.press(&[KeyCode::Left, KeyCode::Enter]);
    let screen = tui.screen();
    assert!(
        screen.contains("▸ ✗ iteration 1 · builder · test failed"),
        "{screen}"
    );
    assert!(!screen.contains("All done."), "{screen}");
    tui.press(&[KeyCode::Enter]);
    assert!(tui.screen().contains("All done."));
}

#[test]
fn search_unfolds_iterations_that_match() {
    let run = RunFixture::running();
    let mut tui = TestTui::of(&run, 100, 60);
    tui.press(&[KeyCode::Left, KeyCode::Enter]);
    tui.type_text("/All done");
    tui.press(&[KeyCode::Enter]);
    assert!(tui.screen().contains("All done."), "{}", tui.screen());
    assert!(tui.view.found.is_some());
}

#[test]
fn ctrl_z_suspends() {
    let run = RunFixture::running();
    let mut tui = TestTui::of(&run, 80, 24);
    let key = KeyEvent::new(KeyCode::Char('z'), KeyModifiers::CONTROL);
    assert_eq!(tui.send(&Event::Key(key)), Some(KeyAction::Suspend));
}

#[test]
fn right_pane_cycles_through_the_pages_with_content() {
    let run = RunFixture::running();
    let mut tui = TestTui::of(&run, 120, 40);
    let pane = |tui: &mut TestTui<'_>| {
        let state = tui.run.state();
        tui.view.pane_tab(&state, &tui.files)
    };
    tui.screen();
    assert_eq!(pane(&mut tui), Some(Tab::Plan), "there are no changes yet");
    tui.type_text("v");
    assert_eq!(pane(&mut tui), Some(Tab::Tools));
    tui.type_text("vv");
    assert_eq!(pane(&mut tui), Some(Tab::Plan));
    tui.press(&[KeyCode::Left]);
    tui.type_text("v");
    tui.view.pane = Some(Tab::Changes);
    assert!(
        tui.screen().contains("+let rest = &text[end..];"),
        "{}",
        tui.screen()
    );
}
