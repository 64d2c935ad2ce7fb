//! What the user wrote is what the model reads.

use crate::fixture::{Ended, Fixture};
use crate::model::{Model, say};
use crate::programs::Program;
use crate::proven_with;

proven_with!(a_hundred_bytes, eight_kilobytes, two_hundred_kilobytes);
proven_with!(
    nine_hundred_kilobytes,
    two_megabytes,
    odd_beginnings,
    odd_contents
);

/// Text in which no part is like another, ending as the task says.
fn text_of(bytes: usize) -> String {
    let ending = "\nWhen done, say LOOP_COMPLETE.";
    let mut text = String::with_capacity(bytes + 40);
    let mut line = 0;
    while text.len() + ending.len() < bytes {
        text.push_str(&format!("{line}: wörter {:x}\n", line * 2_654_435_761_u64));
        line += 1;
    }
    while text.len() + ending.len() > bytes {
        text.pop();
    }
    text.push_str(ending);
    text
}

fn run_once(cli: Program, prompt: &str) -> (Ended, Model) {
    let model = Model::playing(vec![vec![vec![say("Done.\nLOOP_COMPLETE")]]]);
    let fixture = Fixture::new(cli, &model.url());
    std::fs::write(fixture.project().join("README.md"), "a file of the project\n").expect("a file");
    let ended = fixture.run(prompt);
    (ended, model)
}

fn assert_arrived(cli: Program, prompt: &str) {
    if let Err(what_else) = arrives(cli, prompt) {
        panic!("{what_else}");
    }
}

/// Every one of these arrives; all that do not are named.
fn assert_all_arrive(cli: Program, prompts: &[&str]) {
    let prompts = prompts
        .iter()
        .map(|prompt| format!("{prompt}\nThen say LOOP_COMPLETE."));
    let failed: Vec<String> = prompts.filter_map(|prompt| arrives(cli, &prompt).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n=======\n"));
}

fn arrives(cli: Program, prompt: &str) -> Result<(), String> {
    let (ended, model) = run_once(cli, prompt);
    let asked = model.asked();
    let Some(first) = asked.first() else {
        return Err(format!(
            "{prompt:.60?} never came to the model\n{}",
            ended.story()
        ));
    };
    let whole = |text: &String| match cli {
        // It puts the time of day before the prompt.
        Program::Copilot => text.ends_with(prompt) || text.contains(&format!("\n{prompt}\n")),
        // A line break keeps the first slash from being a command.
        Program::Claude if prompt.starts_with('/') => text.strip_prefix('\n') == Some(prompt),
        // A backslash keeps the name from being a file that is added.
        Program::Gemini => *text == prompt.replace('@', "\\@"),
        Program::Claude | Program::Codex | Program::Opencode => text == prompt,
    };
    let texts = first.prompt();
    if !texts.iter().any(whole) {
        let shown: Vec<_> = texts
            .iter()
            .map(|text| (text.len(), text.chars().take(300).collect::<String>()))
            .collect();
        return Err(format!(
            "{prompt:.60?} ({} bytes) arrived as {shown:?}",
            prompt.len()
        ));
    }
    if ended.code == Some(0) {
        Ok(())
    } else {
        Err(format!("{prompt:.60?} arrived, but\n{}", ended.story()))
    }
}

fn a_hundred_bytes(cli: Program) {
    assert_arrived(cli, &text_of(100));
}

fn eight_kilobytes(cli: Program) {
    assert_arrived(cli, &text_of(8 << 10));
}

fn two_hundred_kilobytes(cli: Program) {
    assert_arrived(cli, &text_of(200 << 10));
}

fn nine_hundred_kilobytes(cli: Program) {
    assert_arrived(cli, &text_of(900 << 10));
}

/// Whole where the program takes so much; refused before it is started, with the figure, where it does not.
fn two_megabytes(cli: Program) {
    let prompt = text_of(2 << 20);
    match cli {
        Program::Claude | Program::Gemini | Program::Opencode | Program::Copilot => {
            assert_arrived(cli, &prompt)
        }
        Program::Codex => {
            let (ended, model) = run_once(cli, &prompt);
            ended.assert_code(2);
            assert!(model.asked().is_empty() && ended.run.is_none());
            let said = "characters, and the limit is 1048576 characters";
            assert!(ended.stderr.contains(said), "{}", ended.story());
        }
    }
}

fn odd_beginnings(cli: Program) {
    assert_all_arrive(
        cli,
        &[
            "- a list\n- of two",
            "--help",
            "---\ntitle: front matter\n---",
            "/help me",
            "/clear",
            "@README.md is to be read",
            "!ls",
            "#memory",
            "?",
            "resume",
            "\n\n  indented",
            "\"quoted\" 'text'",
        ],
    );
}

fn odd_contents(cli: Program) {
    assert_all_arrive(
        cli,
        &[
            "Look at @README.md and @/etc/hostname, mail a@b.c",
            "First line\n/help\n!ls\n@README.md\n",
            "$(touch injected) `touch injected` $HOME ${HOME} %s \\n \\ \"'",
            "emoji 👩‍👩‍👧 naïve 你好 \u{202e}right to left\u{2028}separator",
            "binary \u{1}\u{2}\u{7f}\u{1b}[31m\u{fffd} text",
            "tabs\tand\r\nDOS lines\r\n",
            "<system-reminder>not from the system</system-reminder> {{args}} !{ls}",
        ],
    );
}
