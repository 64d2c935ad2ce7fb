//! Tests of `ralph as-claude` with the real codex: it prints Claude's stream format.

use std::fs;

use ralph::event::{Meta, Tag, TranscriptEvent};
use ralph::transcript::{self, AdapterContext};

use crate::fixture::{Ended, Fixture};
use crate::model::{ErrorReply, Model, Reply, call_shell, say, think};
use crate::programs::Program;
use crate::tests_for_programs;

tests_for_programs! {
    prints_the_stream_format_of_claude: codex => Codex;
    prints_commands_in_verbose_mode: codex => Codex;
    reports_an_error_like_claude: codex => Codex;
}

const ANSWER: &str = "I fixed it: naïve “quotes”, a \\ and a\ttab.\nSecond line.";

fn model() -> Model {
    Model::with_conversations(vec![vec![
        vec![think("A look around."), call_shell("echo from-the-tool")],
        vec![say(ANSWER)],
    ]])
}

fn call(fixture: &Fixture) -> Ended {
    fixture.ralph(&[
        "as-claude",
        "--agent",
        "codex",
        "--output-format",
        "stream-json",
        "-p",
        "Fix it, please.",
    ])
}

/// Asserts that every line is valid JSON.
fn assert_valid(stdout: &str) {
    assert!(!stdout.is_empty());
    for line in stdout.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}

/// Parses the stream with the `claude` format; returns the text of the agent and all events.
fn read_as_claude(stdout: &str) -> (String, Vec<TranscriptEvent>) {
    let format = transcript::find("claude").expect("a format");
    let mut adapter = (format.open)(&AdapterContext::new(""));
    let mut events = Vec::new();
    stdout.lines().for_each(|line| adapter.feed(line, &mut events));
    adapter.flush(&mut events);
    let texts = events.iter().filter_map(|event| match event {
        TranscriptEvent::Text {
            tag: Tag::Ai, text, ..
        } => Some(text.as_str()),
        _ => None,
    });
    (texts.collect(), events)
}

fn finished(events: &[TranscriptEvent]) -> Vec<bool> {
    let ends = events.iter().filter_map(|event| match event {
        TranscriptEvent::Meta {
            meta: Meta::Finished { success, .. },
        } => Some(*success),
        _ => None,
    });
    ends.collect()
}

fn prints_the_stream_format_of_claude(cli: Program) {
    let model = model();
    let fixture = Fixture::new(cli, &model.url());
    let ended = call(&fixture);
    ended.assert_code(0);
    assert_valid(&ended.stdout);
    let (text, events) = read_as_claude(&ended.stdout);
    assert_eq!(text.trim_end(), ANSWER, "{}", ended.describe());
    assert_eq!(finished(&events), [true], "{}", ended.describe());
    assert!(!ended.stdout.contains("from-the-tool"), "{}", ended.describe());
    assert!(
        model.requests()[0]
            .prompt()
            .iter()
            .any(|text| text == "Fix it, please.")
    );
    fixture.assert_nothing_survives();
}

fn prints_commands_in_verbose_mode(cli: Program) {
    let model = model();
    let fixture = Fixture::new(cli, &model.url()).with_env("CODEX_VERBOSE", "1");
    let ended = call(&fixture);
    ended.assert_code(0);
    assert_valid(&ended.stdout);
    let (text, _) = read_as_claude(&ended.stdout);
    assert!(
        text.contains("echo from-the-tool") && text.contains("\nfrom-the-tool\n"),
        "{text}"
    );
    assert!(text.trim_end().ends_with(ANSWER), "{text}");
}

fn reports_an_error_like_claude(cli: Program) {
    let model = Model::new(|_| Reply::Error(ErrorReply::status(400).with_message("unknown field zebra")));
    let fixture = Fixture::new(cli, &model.url());
    let ended = call(&fixture);
    ended.assert_code(1);
    assert_valid(&ended.stdout);
    let (_, events) = read_as_claude(&ended.stdout);
    assert_eq!(finished(&events), [false], "{}", ended.describe());
    assert!(ended.stdout.contains("zebra"), "{}", ended.describe());
    assert!(
        fs::read_dir(fixture.project())
            .expect("the project")
            .all(|entry| { entry.is_ok_and(|entry| entry.file_name() == ".git") })
    );
}
