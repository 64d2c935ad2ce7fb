//! Cases of codex's human-readable transcript without a capture.

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
fn prompt_may_contain_separators() {
    let prompt = "Say\n\ncodex\nLOOP_COMPLETE\nexec\n";
    let lines = format!("user\n{prompt}codex\nNot yet.\ntokens used\n5");
    assert_eq!(answers(prompt, &lines), ["Not yet."]);
    let hidden = texts("codex-text", prompt, &format!("{HEADER}{lines}"), Tag::Prompt);
    assert_eq!(hidden, ["… prompt hidden (5 lines)"]);
}

#[test]
fn prompt_with_inserted_lines_is_hidden() {
    let lines = "user\n\nSay it:\n<stdin>\ncodex\nLOOP_COMPLETE\n</stdin>\ncodex\nNot yet.";
    assert_eq!(answers("Say it:\ncodex\nLOOP_COMPLETE", lines), ["Not yet."]);
}

#[test]
fn unknown_prompt_ends_at_the_answer() {
    assert_eq!(
        answers("", "user\nSay LOOP_COMPLETE\nLOOP_COMPLETE\ncodex\nNo."),
        ["No."]
    );
}

#[test]
fn repeated_last_message_is_not_emitted() {
    let lines = "user\np\ncodex\nDone.\n\nLOOP_COMPLETE\ntokens used\n1,234\nDone.\n\nLOOP_COMPLETE";
    assert_eq!(answers("p", lines), ["Done.", "", "LOOP_COMPLETE"]);
}

#[test]
fn colors_are_removed() {
    let lines = "\u{1b}[36muser\u{1b}[0m\np\n\u{1b}[35m\u{1b}[3mcodex\u{1b}[0m\u{1b}[0m\r\nDone.\r";
    assert_eq!(answers("p", lines), ["Done."]);
}

#[test]
fn common_words_in_tool_output_are_output() {
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
fn title_after_tool_output_starts_reasoning() {
    let lines =
        "user\np\nexec\nls in /tmp\n succeeded in 3ms:\na\n\n**Next step**\n\nLOOP_COMPLETE soon\ncodex\nNo.";
    assert_eq!(answers("p", lines), ["No."]);
    let thoughts = texts("codex-text", "p", &format!("{HEADER}{lines}"), Tag::Think);
    assert_eq!(thoughts, ["**Next step**", "", "LOOP_COMPLETE soon"]);
}

#[test]
fn first_line_selects_the_format_and_first_event_corrects_it() {
    let events = r#"{"type":"thread.started","thread_id":"t"}
{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Done."}}"#;
    let with_warning = format!("node: a warning\n{events}");
    assert_eq!(texts("codex", "p", events, Tag::Ai), ["Done."]);
    assert_eq!(
        texts("codex", "p", &with_warning, Tag::Ai),
        ["node: a warning", "Done."]
    );
    assert_eq!(
        texts("codex", "p", "Only the last message.", Tag::Ai),
        ["Only the last message."]
    );
}

#[test]
fn output_that_never_completes_the_prompt_is_not_hidden() {
    let lines = format!("user\np\nq\n{}", "unrelated\n".repeat(200));
    let thoughts = texts("codex-text", "p\nr", &format!("{HEADER}{lines}"), Tag::Think);
    assert!(thoughts.len() > 100, "{}", thoughts.len());
}

#[test]
fn command_without_a_directory_is_limited_to_one_chunk() {
    let lines = format!("user\np\nexec\n{}codex\nDone.", "echo line\n".repeat(20_000));
    let all = read_all("codex-text", "p", &format!("{HEADER}{lines}"));
    let input = all.iter().find_map(|event| match event {
        TranscriptEvent::ToolStart { tool } => tool.input.as_ref().map(|input| input.as_str().len()),
        _ => None,
    });
    assert!(input.is_some_and(|length| length < 100_000), "{input:?}");
}

#[test]
fn repeated_message_of_many_lines_is_shown_once() {
    let message = "one\n\ntwo\nthree";
    let lines = format!("user\np\ncodex\n{message}\ntokens used\n1,234\n{message}");
    assert_eq!(answers("p", &lines), ["one", "", "two", "three"]);
}
