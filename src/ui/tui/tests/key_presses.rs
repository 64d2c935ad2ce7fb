//! What keys do.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

use super::fixture::{Story, Watcher};
use crate::event::{Command, IterationOutcome, RunEvent, RunOutcome, Tag, Usage};
use crate::ui::tui::commands::{SupportedCommands, UserCommand};
use crate::ui::tui::document::Scroll;
use crate::ui::tui::keys::{KeyAction, KeyContext};
use crate::ui::tui::view::{Overlay, Role, Tab, ToolOrder};

fn ctrl_c() -> Event {
    Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL))
}

#[test]
fn ctrl_c_interrupts_each_time_and_q_asks_first() {
    let story = Story::at_work();
    let mut watcher = Watcher::of(&story, 80, 24);
    assert_eq!(
        watcher.hear(&ctrl_c()),
        Some(KeyAction::Send(UserCommand::Interrupt))
    );
    assert_eq!(
        watcher.hear(&ctrl_c()),
        Some(KeyAction::Send(UserCommand::Interrupt))
    );
    assert_eq!(watcher.letters("q"), None);
    assert_eq!(watcher.letters("n"), None);
    assert_eq!(watcher.letters("qy"), Some(KeyAction::Send(UserCommand::Quit)));
}

#[test]
fn a_viewer_leaves_and_never_stops_the_run() {
    let story = Story::at_work();
    let mut watcher = Watcher::of(&story, 80, 24);
    watcher.view.role = Role::Viewer;
    assert_eq!(watcher.hear(&ctrl_c()), Some(KeyAction::Leave));
    assert_eq!(watcher.letters("q"), Some(KeyAction::Leave));
}

#[test]
fn wishes_are_offered_only_where_they_are_understood() {
    let story = Story::at_work();
    let mut watcher = Watcher::of(&story, 80, 24);
    assert_eq!(watcher.letters("p"), Some(KeyAction::Send(UserCommand::Pause)));
    assert_eq!(
        watcher.letters("s"),
        Some(KeyAction::Send(UserCommand::StopIteration))
    );
    assert_eq!(watcher.letters("w"), None, "nothing waits");
    watcher.letters("m");
    watcher.hear(&Event::Paste("use\nthe old parser ".into()));
    let sent = watcher.press(&[KeyCode::Enter]);
    assert_eq!(
        sent,
        Some(KeyAction::Send(UserCommand::Tell("use the old parser".into())))
    );
    watcher.view.powers = SupportedCommands::default();
    for letter in ["p", "s", "w", "m"] {
        assert_eq!(watcher.letters(letter), None);
        assert!(!watcher.look().contains("for the next prompt"));
    }
}

#[test]
fn a_pause_is_taken_back_and_left_with_the_same_key() {
    let mut story = Story::at_work();
    story.order(Command::Pause);
    assert_eq!(
        Watcher::of(&story, 80, 24).letters("p"),
        Some(KeyAction::Send(UserCommand::Resume))
    );
    story.end(2, 1, IterationOutcome::Skipped).tell(RunEvent::Paused);
    let mut watcher = Watcher::of(&story, 80, 24);
    assert_eq!(watcher.letters("s"), None, "there is no iteration to stop");
    assert_eq!(watcher.letters("p"), Some(KeyAction::Send(UserCommand::Resume)));
    story.order(Command::Resume).tell(RunEvent::WaitEnded);
    assert_eq!(
        Watcher::of(&story, 80, 24).letters("p"),
        Some(KeyAction::Send(UserCommand::Pause))
    );
}

#[test]
fn the_question_between_iterations_is_answered_with_one_key() {
    let mut story = Story::at_work();
    story
        .end(2, 1, IterationOutcome::Continued { rejected_by: None })
        .tell(RunEvent::Asking);
    let mut watcher = Watcher::of(&story, 80, 24);
    assert_eq!(watcher.letters("c"), Some(KeyAction::Send(UserCommand::GoOn)));
    assert_eq!(
        watcher.press(&[KeyCode::Enter]),
        Some(KeyAction::Send(UserCommand::GoOn))
    );
    assert_eq!(
        watcher.letters("a"),
        Some(KeyAction::Send(UserCommand::GoOnWithoutAsking))
    );
    assert_eq!(watcher.letters("q"), Some(KeyAction::Send(UserCommand::Quit)));
    watcher.letters("k");
    assert_eq!(
        watcher.press(&[KeyCode::Enter]),
        None,
        "something is chosen: it unfolds"
    );
}

#[test]
fn nothing_can_be_wished_of_a_run_that_is_over() {
    let mut story = Story::at_work();
    story.tell(RunEvent::RunEnded {
        outcome: RunOutcome::Complete {
            marker: "LOOP_COMPLETE".into(),
        },
        iterations: 2,
        duration_ms: 1000,
        usage: Box::new(Usage::default()),
    });
    let mut watcher = Watcher::of(&story, 80, 24);
    for letter in ["p", "s", "w", "m"] {
        assert_eq!(watcher.letters(letter), None);
    }
    assert_eq!(watcher.letters("q"), Some(KeyAction::Leave));
}

#[test]
fn scrolling_leaves_the_end_and_comes_back_to_it() {
    let story = Story::at_work();
    let mut watcher = Watcher::of(&story, 80, 24);
    assert!(!watcher.view.is_reading());
    watcher.press(&[KeyCode::Up]);
    assert!(watcher.view.is_reading());
    watcher.press(&[KeyCode::Down]);
    assert!(!watcher.view.is_reading(), "at the end again, so it follows");
    watcher.letters("g");
    assert!(watcher.look().contains("session 0a1b2c3d"));
    watcher.press(&[KeyCode::PageDown, KeyCode::PageDown, KeyCode::PageDown]);
    assert_eq!(watcher.view.scroll(), Scroll::End);
}

#[test]
fn a_chosen_tool_unfolds_and_can_be_copied() {
    let story = Story::at_work();
    let mut watcher = Watcher::of(&story, 80, 40);
    watcher.letters("kkkkk");
    watcher.press(&[KeyCode::Enter]);
    let screen = watcher.look();
    assert!(screen.contains("▌  │ timeout: 60"), "{screen}");
    assert!(screen.contains("│ running 2 tests"), "{screen}");
    let Some(KeyAction::Copy(text)) = watcher.letters("y") else {
        panic!("nothing was copied");
    };
    assert!(
        text.starts_with("Bash cargo test parser") && text.ends_with("parser::quotes"),
        "{text}"
    );
    watcher.press(&[KeyCode::Enter]);
    assert!(!watcher.look().contains("timeout: 60"));
}

#[test]
fn the_table_of_tools_sorts_and_leads_to_the_transcript() {
    let story = Story::at_work();
    let mut watcher = Watcher::of(&story, 80, 24);
    watcher.press(&[KeyCode::Tab, KeyCode::Down, KeyCode::Down]);
    watcher.letters("o");
    assert_eq!(watcher.view.order, ToolOrder::Longest);
    watcher.letters("o");
    watcher.press(&[KeyCode::Enter]);
    assert_eq!(watcher.view.tab, Tab::Transcript);
    assert!(watcher.look().contains("new_string: rfind"), "{}", watcher.look());
}

#[test]
fn a_search_goes_around() {
    let story = Story::at_work();
    let mut watcher = Watcher::of(&story, 80, 24);
    watcher.letters("/quote");
    watcher.press(&[KeyCode::Enter]);
    let first = watcher.view.found;
    assert!(first.is_some());
    watcher.letters("n");
    let second = watcher.view.found;
    assert_ne!(first, second);
    watcher.letters("N");
    assert_eq!(watcher.view.found, first);
    watcher.press(&[KeyCode::Esc]);
    assert!(watcher.view.query.is_empty());
}

/// An iteration in which so many things were said, each of them once.
fn long_story(messages: usize) -> Story {
    let mut story = Story::new();
    story.begin(1, 1);
    for number in 0..messages {
        story.say(Tag::Ai, &format!("message {number}."));
    }
    story
}

#[test]
fn whoever_follows_sees_the_end_as_whoever_reads_does() {
    let story = long_story(500);
    let mut watcher = Watcher::of(&story, 80, 24);
    let followed = watcher.look();
    assert!(followed.contains("message 499."), "{followed}");
    assert!(
        watcher.view.document.total() < 500,
        "of all that is above, little was laid out"
    );
    // Choosing something makes a reader of the watcher, who has all of it.
    watcher.letters("k");
    assert!(watcher.view.document.total() >= 500);
    let read = watcher.look().replace('▌', " ");
    let end = |screen: &str| screen.lines().skip(4).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(end(&followed)[..18], end(&read)[..18]);
}

#[test]
fn what_was_never_laid_out_is_found_also_by_keys_that_no_frame_comes_between() {
    let story = long_story(500);
    let mut watcher = Watcher::of(&story, 80, 24);
    watcher.look();
    let state = story.state();
    let transcript = &state.transcript;
    let desk = KeyContext {
        state: &state,
        transcript,
    };
    for key in "/message 7.".chars().map(KeyCode::Char).chain([KeyCode::Enter]) {
        watcher
            .view
            .hear(&Event::Key(KeyEvent::new(key, KeyModifiers::NONE)), &desk);
    }
    let screen = watcher.look();
    assert!(screen.contains("message 7."), "{screen}");
    watcher.letters("G");
    assert!(watcher.look().contains("message 499."));
}

#[test]
fn every_view_is_reached_by_its_number_and_by_tab() {
    let story = Story::at_work();
    let mut watcher = Watcher::of(&story, 80, 24);
    for (digit, tab) in ('1'..='6').zip(Tab::ALL) {
        watcher.press(&[KeyCode::Char(digit)]);
        assert_eq!(watcher.view.tab, tab);
    }
    watcher.press(&[KeyCode::Tab]);
    assert_eq!(watcher.view.tab, Tab::Transcript);
    watcher.press(&[KeyCode::BackTab]);
    assert_eq!(watcher.view.tab, Tab::Usage);
}

#[test]
fn the_page_of_keys_scrolls_where_it_does_not_fit() {
    let story = Story::at_work();
    let mut watcher = Watcher::of(&story, 60, 15);
    watcher.letters("?");
    assert!(!watcher.look().contains("q Ctrl-C"));
    watcher.press(&[KeyCode::Down; 20]);
    assert!(watcher.look().contains("q Ctrl-C"), "{}", watcher.look());
    watcher.press(&[KeyCode::Esc]);
    assert_eq!(watcher.view.overlay, Overlay::None);
}

#[test]
fn any_keys_in_any_order_are_survived() {
    let story = Story::at_work();
    let mut watcher = Watcher::of(&story, 60, 14);
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
        watcher.press(&[key]);
    }
}
