//! Prompts reach the model unchanged.

use crate::fixture::{Ended, Fixture};
use crate::model::{Model, Role, say};
use crate::programs::Program;
use crate::tests_for_programs;

tests_for_programs!(all: a_hundred_bytes, eight_kilobytes, two_hundred_kilobytes, odd_beginnings, odd_contents);
tests_for_programs!(nine_hundred_kilobytes, two_megabytes);

/// Returns text of this length without repetition that ends with the instruction to complete.
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
    let model = Model::with_conversations(vec![vec![vec![say("Done.\nLOOP_COMPLETE")]]]);
    let fixture = Fixture::new(cli, &model.url());
    std::fs::write(fixture.project().join("README.md"), "a file of the project\n").expect("a file");
    let ended = fixture.run(prompt);
    (ended, model)
}

fn assert_arrived(cli: Program, prompt: &str) {
    if let Err(problem) = arrives(cli, prompt) {
        panic!("{problem}");
    }
}

/// Asserts that every prompt arrives and lists all that do not.
fn assert_all_arrive(cli: Program, prompts: &[&str]) {
    let prompts = prompts
        .iter()
        .map(|prompt| format!("{prompt}\nThen say LOOP_COMPLETE."));
    let failed: Vec<String> = prompts.filter_map(|prompt| arrives(cli, &prompt).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n=======\n"));
}

fn arrives(cli: Program, prompt: &str) -> Result<(), String> {
    let (ended, model) = run_once(cli, prompt);
    let requests = model.requests();
    let Some(first) = requests.first() else {
        return Err(format!(
            "{prompt:.60?} did not reach the model\n{}",
            ended.describe()
        ));
    };
    let is_complete = |text: &String| match cli {
        // Copilot prepends the time of day.
        Program::Copilot => text.ends_with(prompt) || text.contains(&format!("\n{prompt}\n")),
        // A leading newline prevents that the slash starts a command.
        Program::Claude if prompt.starts_with('/') => text.strip_prefix('\n') == Some(prompt),
        // A backslash prevents that the name includes a file.
        Program::Gemini => *text == prompt.replace('@', "\\@"),
        Program::Qwen => text.contains(&prompt.replace('@', "\\@")),
        // A prompt that cannot be an argument is in a file.
        Program::Kimi => text.contains(prompt) || text.starts_with("Read the file "),
        // Pi removes blank lines around the prompt.
        Program::Pi => text == prompt.trim(),
        Program::Claude | Program::Codex | Program::Opencode => text == prompt,
    };
    // Some programs add messages of their own after the prompt.
    let users = first.history.iter().filter(|(role, _)| *role == Role::User);
    let texts: Vec<&String> = users.flat_map(|(_, texts)| texts).collect();
    if !texts.iter().copied().any(is_complete) {
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
        Err(format!("{prompt:.60?} arrived, but\n{}", ended.describe()))
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

/// Arrives if the program accepts this size; otherwise ralph refuses before it starts the program and states the limit.
fn two_megabytes(cli: Program) {
    let prompt = text_of(2 << 20);
    match cli {
        Program::Claude
        | Program::Gemini
        | Program::Opencode
        | Program::Copilot
        | Program::Qwen
        | Program::Pi
        | Program::Kimi => assert_arrived(cli, &prompt),
        Program::Codex => {
            let (ended, model) = run_once(cli, &prompt);
            ended.assert_code(2);
            assert!(model.requests().is_empty() && ended.run.is_none());
            let expected = "(limit: 1048576 characters)";
            assert!(ended.stderr.contains(expected), "{}", ended.describe());
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
