//! What records do to what the screen knows.

use std::sync::Arc;

use super::fixture::{Story, usage};
use crate::event::{Flow, Tag, ToolStatus, TranscriptEvent, Usage, UsageScope};
use crate::ui::tui::model::{Body, ToolState};

fn delta(text: &str, flow: Flow) -> TranscriptEvent {
    TranscriptEvent::Text {
        tag: Tag::Ai,
        text: text.into(),
        flow,
        parent: None,
    }
}

fn said(story: &Story) -> Vec<String> {
    let state = story.state();
    let blocks = state.transcript.blocks.iter();
    blocks
        .filter_map(|block| match &block.body {
            Body::Said(said) => Some(said.text.clone()),
            Body::Tool(_) | Body::Gate(_) | Body::Note(_) => None,
        })
        .collect()
}

#[test]
fn deltas_and_lines_join_and_messages_do_not() {
    let mut story = Story::new();
    story
        .begin(1, 1)
        .event(delta("one", Flow::Message))
        .event(delta(" two", Flow::Delta));
    story
        .event(delta("", Flow::Delta))
        .event(delta("three", Flow::Line))
        .event(delta("four", Flow::Message));
    assert_eq!(said(&story), ["one two\nthree", "four"]);
}

#[test]
fn a_long_transcript_is_bounded_and_says_what_it_let_go() {
    let mut story = Story::new();
    story.begin(1, 1);
    let mut state = story.state();
    let line = "x".repeat(1000);
    for seq in 0..20_000 {
        let record = crate::event::Record {
            seq,
            at: story.now,
            event: crate::event::RunEvent::Transcript {
                iteration: 1,
                event: delta(&line, Flow::Line),
            },
        };
        state.apply(&record);
    }
    let kept: usize = state
        .transcript
        .blocks
        .iter()
        .map(|block| block.body.bytes())
        .sum();
    assert!(kept < 5_000_000, "{kept}");
    assert!(state.transcript.dropped > 0);
    let first = state.transcript.blocks.front().map(|block| block.id);
    assert_eq!(first, Some(state.transcript.dropped));
}

#[test]
fn one_huge_message_is_cut_into_pieces_without_losing_any() {
    let mut story = Story::new();
    let text = "é".repeat(50_000);
    story.begin(1, 1).event(delta(&text, Flow::Message));
    assert!(said(&story).len() > 5);
    assert_eq!(said(&story).concat(), text);
}

#[test]
fn what_was_handed_out_for_drawing_does_not_change() {
    let mut story = Story::new();
    story.begin(1, 1).event(delta("one", Flow::Message));
    let mut state = story.state();
    let snapshot = state.clone();
    story.event(delta(" two", Flow::Delta));
    state.apply(story.records.last().expect("a record"));
    let version = |state: &crate::ui::tui::model::State| state.transcript.blocks[0].version;
    assert_eq!((version(&snapshot), version(&state)), (0, 1));
    assert!(!Arc::ptr_eq(&snapshot.transcript, &state.transcript));
}

#[test]
fn usage_is_counted_by_its_scope() {
    let mut story = Story::new();
    let session = |tokens: u64| {
        TranscriptEvent::usage(Usage {
            scope: UsageScope::Session,
            ..usage(tokens)
        })
    };
    story.begin(1, 1).event(session(10_000)).end(
        1,
        1,
        crate::event::IterationOutcome::Continued { rejected_by: None },
    );
    story.begin(2, 1).event(session(15_000));
    let state = story.state();
    assert_eq!(state.entries[1].usage.tokens(), Some(5000));
    assert_eq!(state.used().tokens(), Some(49_000 + 5000));
}

#[test]
fn a_tool_that_never_ended_is_not_left_running() {
    let mut story = Story::new();
    story
        .begin(1, 1)
        .start_tool("a", "Bash", serde_json::json!({}))
        .start_tool("b", "Bash", serde_json::json!({}));
    story
        .end_tool("a", "x", ToolStatus::Ok)
        .tell(crate::event::RunEvent::AgentEnded {
            iteration: 1,
            end: crate::event::ProcessEnd::Exited { code: 0 },
            duration_ms: 1,
            swept: 0,
        });
    let state = story.state();
    let states: Vec<ToolState> = state.transcript.tools().map(|(_, tool)| tool.state).collect();
    assert!(
        matches!(states[..], [ToolState::Ended { .. }, ToolState::Lost]),
        "{states:?}"
    );
    assert!(state.transcript.running_tool().is_none());
}

#[test]
fn a_final_message_that_was_said_already_is_not_said_twice() {
    let finished = |text: &str| {
        TranscriptEvent::meta(crate::event::Meta::Finished {
            success: true,
            reason: None,
            text: Some(text.into()),
            turns: None,
            duration_ms: None,
        })
    };
    let mut story = Story::new();
    story
        .begin(1, 1)
        .say(Tag::Ai, "It is done.")
        .event(finished("It is  done."))
        .event(finished("Something else."));
    assert_eq!(said(&story), ["It is done.", "Something else."]);
}
