//! Tests of the fold from records to `TuiState`.

use std::sync::Arc;

use super::fixture::{RunFixture, usage};
use crate::event::{Flow, Tag, ToolStatus, TranscriptEvent, Usage, UsageScope};
use crate::ui::tui::model::{BlockBody, ToolState};

fn delta(text: &str, flow: Flow) -> TranscriptEvent {
    TranscriptEvent::Text {
        tag: Tag::Ai,
        text: text.into(),
        flow,
        parent: None,
    }
}

fn texts(run: &RunFixture) -> Vec<String> {
    let state = run.state();
    let blocks = state.transcript.blocks.iter();
    blocks
        .filter_map(|block| match &block.body {
            BlockBody::Text(block) => Some(block.text.clone()),
            BlockBody::Tool(_) | BlockBody::Gate(_) | BlockBody::Note(_) => None,
        })
        .collect()
}

#[test]
fn deltas_and_lines_extend_a_block_and_messages_start_one() {
    let mut run = RunFixture::new();
    run.start_iteration(1, 1)
        .event(delta("one", Flow::Message))
        .event(delta(" two", Flow::Delta));
    run.event(delta("", Flow::Delta))
        .event(delta("three", Flow::Line))
        .event(delta("four", Flow::Message));
    assert_eq!(texts(&run), ["one two\nthree", "four"]);
}

#[test]
fn long_transcript_is_bounded_and_counts_dropped_blocks() {
    let mut run = RunFixture::new();
    run.start_iteration(1, 1);
    let mut state = run.state();
    let line = "x".repeat(1000);
    for seq in 0..20_000 {
        let record = crate::event::Record {
            chain: None,
            seq,
            at: run.now,
            event: crate::event::RunEvent::Transcript {
                iteration: 1,
                event: delta(&line, Flow::Line),
            },
        };
        state.apply(&record);
    }
    let bytes: usize = state
        .transcript
        .blocks
        .iter()
        .map(|block| block.body.bytes())
        .sum();
    assert!(bytes < 5_000_000, "{bytes}");
    assert!(state.transcript.dropped > 0);
    let first = state.transcript.blocks.front().map(|block| block.id);
    assert_eq!(first, Some(state.transcript.dropped));
}

#[test]
fn huge_message_is_split_into_blocks_without_loss() {
    let mut run = RunFixture::new();
    let text = "é".repeat(50_000);
    run.start_iteration(1, 1).event(delta(&text, Flow::Message));
    assert!(texts(&run).len() > 5);
    assert_eq!(texts(&run).concat(), text);
}

#[test]
fn snapshot_does_not_change_when_the_state_does() {
    let mut run = RunFixture::new();
    run.start_iteration(1, 1).event(delta("one", Flow::Message));
    let mut state = run.state();
    let snapshot = state.clone();
    run.event(delta(" two", Flow::Delta));
    state.apply(run.records.last().expect("a record"));
    let version = |state: &crate::ui::tui::model::TuiState| state.transcript.blocks[0].version;
    assert_eq!((version(&snapshot), version(&state)), (0, 1));
    assert!(!Arc::ptr_eq(&snapshot.transcript, &state.transcript));
}

#[test]
fn usage_is_counted_by_scope() {
    let mut run = RunFixture::new();
    let step = |tokens: u64| TranscriptEvent::usage(usage(tokens));
    let total = |tokens: u64| {
        TranscriptEvent::usage(Usage {
            scope: UsageScope::Iteration,
            ..usage(tokens)
        })
    };
    run.start_iteration(1, 1).event(total(10_000)).end_iteration(
        1,
        1,
        crate::event::IterationOutcome::Continued { rejected_by: None },
    );
    run.start_iteration(2, 1).event(step(4000)).event(step(2000));
    assert_eq!(run.state().entries[1].usage.tokens(), Some(6000));
    run.event(total(5000));
    let state = run.state();
    assert_eq!(state.entries[1].usage.tokens(), Some(6000), "figures never fall");
    assert_eq!(state.used().tokens(), Some(49_000 + 6000));
    run.event(total(7000));
    assert_eq!(run.state().entries[1].usage.tokens(), Some(7000));
}

#[test]
fn tool_without_an_end_is_unfinished() {
    let mut run = RunFixture::new();
    run.start_iteration(1, 1)
        .start_tool("a", "Bash", serde_json::json!({}))
        .start_tool("b", "Bash", serde_json::json!({}));
    run.end_tool("a", "x", ToolStatus::Ok)
        .record(crate::event::RunEvent::AgentEnded {
            iteration: 1,
            end: crate::event::AgentEnd::Exited { code: 0 },
            duration_ms: 1,
            swept: 0,
        });
    let state = run.state();
    let states: Vec<ToolState> = state.transcript.tools().map(|(_, tool)| tool.state).collect();
    assert!(
        matches!(states[..], [ToolState::Ended { .. }, ToolState::Unfinished]),
        "{states:?}"
    );
    assert!(state.transcript.running_tool().is_none());
}

#[test]
fn copy_of_the_final_message_is_not_shown() {
    let finished = |text: &str| {
        TranscriptEvent::meta(crate::event::Meta::Finished {
            success: true,
            reason: None,
            text: Some(text.into()),
            turns: None,
            duration_ms: None,
        })
    };
    let mut run = RunFixture::new();
    run.start_iteration(1, 1)
        .text(Tag::Ai, "It is done.")
        .event(finished("It is done."));
    assert_eq!(texts(&run), ["It is done."]);
}
