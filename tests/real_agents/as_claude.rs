//! `ralph as-claude` with the real codex: what comes out is claude's stream, for whoever expects it.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use ralph::event::{Meta, Tag, TranscriptEvent};
use ralph::transcript::{self, Opening};

use crate::fixture::{Ended, Fixture};
use crate::model::{Model, Reply, Trouble, call_shell, say, think};
use crate::programs::Program;
use crate::proven_with;

proven_with! {
    speaks_as_claude_does: codex => Codex;
    tells_the_commands_if_asked: codex => Codex;
    fails_as_claude_does: codex => Codex;
}

const ANSWER: &str = "I fixed it: naïve “quotes”, a \\ and a\ttab.\nSecond line.";

fn model() -> Model {
    Model::playing(vec![vec![
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

/// Every line is JSON by itself, by two readers if there is a second one.
fn assert_valid(stdout: &str) {
    assert!(!stdout.is_empty());
    for line in stdout.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
    let jq = Command::new("jq")
        .args(["-c", "."])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn();
    let Ok(mut jq) = jq else { return };
    let written = jq.stdin.take().expect("its stdin").write_all(stdout.as_bytes());
    assert!(written.is_ok() && jq.wait().expect("its end").success());
}

/// What ralph itself reads in it when it takes it for claude.
fn read_as_claude(stdout: &str) -> (String, Vec<TranscriptEvent>) {
    let format = transcript::find("claude").expect("a format");
    let mut adapter = (format.open)(&Opening { prompt: "" });
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

fn speaks_as_claude_does(cli: Program) {
    let model = model();
    let fixture = Fixture::new(cli, &model.url());
    let ended = call(&fixture);
    ended.assert_code(0);
    assert_valid(&ended.stdout);
    let (text, events) = read_as_claude(&ended.stdout);
    assert_eq!(text.trim_end(), ANSWER, "{}", ended.story());
    assert_eq!(finished(&events), [true], "{}", ended.story());
    assert!(!ended.stdout.contains("from-the-tool"), "{}", ended.story());
    assert!(
        model.asked()[0]
            .prompt()
            .iter()
            .any(|text| text == "Fix it, please.")
    );
    fixture.assert_nothing_survives();
}

fn tells_the_commands_if_asked(cli: Program) {
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

fn fails_as_claude_does(cli: Program) {
    let model = Model::new(|_| Reply::Trouble(Trouble::status(400).saying("unknown field zebra")));
    let fixture = Fixture::new(cli, &model.url());
    let ended = call(&fixture);
    ended.assert_code(1);
    assert_valid(&ended.stdout);
    let (_, events) = read_as_claude(&ended.stdout);
    assert_eq!(finished(&events), [false], "{}", ended.story());
    assert!(ended.stdout.contains("zebra"), "{}", ended.story());
    assert!(
        fs::read_dir(fixture.project())
            .expect("the project")
            .all(|entry| { entry.is_ok_and(|entry| entry.file_name() == ".git") })
    );
}
