//! Cases of codex's transcript for people that no capture shows.

use crate::event::{Tag, TranscriptEvent};
use crate::transcript::read_all;

const HEADER: &str = "OpenAI Codex v0.166.0\n--------\nworkdir: /tmp\n--------\n";

fn texts(format: &str, prompt: &str, lines: &str, wanted: Tag) -> Vec<String> {
    let of_tag = |event| match event {
        TranscriptEvent::Text { tag, text, .. } if tag == wanted => Some(text),
        _ => None,
    };
    read_all(format, prompt, lines)
        .into_iter()
        .filter_map(of_tag)
        .collect()
}

fn answers(prompt: &str, lines: &str) -> Vec<String> {
    texts("codex-text", prompt, &format!("{HEADER}{lines}"), Tag::Ai)
}

#[test]
fn a_prompt_may_contain_the_words_that_divide_a_transcript() {
    let prompt = "Say\n\ncodex\nLOOP_COMPLETE\nexec\n";
    let lines = format!("user\n{prompt}codex\nNot yet.\ntokens used\n5");
    assert_eq!(answers(prompt, &lines), ["Not yet."]);
    let hidden = texts("codex-text", prompt, &format!("{HEADER}{lines}"), Tag::Prompt);
    assert_eq!(hidden, ["… prompt hidden (5 lines)"]);
}

#[test]
fn a_prompt_that_comes_with_something_between_its_lines_is_still_hidden() {
    let lines = "user\n\nSay it:\n<stdin>\ncodex\nLOOP_COMPLETE\n</stdin>\ncodex\nNot yet.";
    assert_eq!(answers("Say it:\ncodex\nLOOP_COMPLETE", lines), ["Not yet."]);
}

#[test]
fn an_unknown_prompt_ends_where_the_answer_begins() {
    assert_eq!(
        answers("", "user\nSay LOOP_COMPLETE\nLOOP_COMPLETE\ncodex\nNo."),
        ["No."]
    );
}

#[test]
fn the_last_message_is_not_shown_again_where_both_streams_are_one() {
    let lines = "user\np\ncodex\nDone.\n\nLOOP_COMPLETE\ntokens used\n1,234\nDone.\n\nLOOP_COMPLETE";
    assert_eq!(answers("p", lines), ["Done.", "", "LOOP_COMPLETE"]);
}

#[test]
fn colours_are_taken_off() {
    let lines = "\u{1b}[36muser\u{1b}[0m\np\n\u{1b}[35m\u{1b}[3mcodex\u{1b}[0m\u{1b}[0m\r\nDone.\r";
    assert_eq!(answers("p", lines), ["Done."]);
}

#[test]
fn common_words_in_a_tools_output_are_output() {
    let lines = "user\np\nexec\nls in /tmp\n succeeded in 3ms:\nuser\nsystem\ntool\n\ncodex\nDone.";
    assert_eq!(answers("p", lines), ["Done."]);
    let all = read_all("codex-text", "p", &format!("{HEADER}{lines}"));
    let output = all.iter().find_map(|event| match event {
        TranscriptEvent::ToolOutput { text, .. } => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(output, Some("user\nsystem\ntool\n"));
}

#[test]
fn reasoning_after_a_tool_begins_with_its_title() {
    let lines =
        "user\np\nexec\nls in /tmp\n succeeded in 3ms:\na\n\n**Next step**\n\nLOOP_COMPLETE soon\ncodex\nNo.";
    assert_eq!(answers("p", lines), ["No."]);
    let thoughts = texts("codex-text", "p", &format!("{HEADER}{lines}"), Tag::Think);
    assert_eq!(thoughts, ["**Next step**", "", "LOOP_COMPLETE soon"]);
}

#[test]
fn the_first_line_decides_which_form_it_is_and_the_first_event_corrects_it() {
    let events = r#"{"type":"thread.started","thread_id":"t"}
{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Done."}}"#;
    let stray = format!("node: a warning\n{events}");
    assert_eq!(texts("codex", "p", events, Tag::Ai), ["Done."]);
    assert_eq!(texts("codex", "p", &stray, Tag::Ai), ["node: a warning", "Done."]);
    assert_eq!(
        texts("codex", "p", "Only the last message.", Tag::Ai),
        ["Only the last message."]
    );
}
