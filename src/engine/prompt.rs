//! The prompt of one iteration: the user's words first, unchanged, then what ralph has to add, as little as it can.

use crate::event::{GateResult, ProcessEnd};

use super::marker::Markers;

/// How much of a gate's output goes into a prompt or the journal, in bytes.
pub(crate) const OUTPUT_BUDGET: usize = 8 * 1024;

/// What is to be said beside the task: which hat is worn, and what the last iteration left to be said.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) hat: Option<String>,
    pub(crate) refused: Option<Refused>,
    pub(crate) ignored: Option<(String, &'static str)>,
}

/// A gate that did not believe the agent.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) command: String,
    pub(crate) result: GateResult,
    pub(crate) seconds: u64,
    pub(crate) output: String,
}

/// Puts the prompt together.
pub(crate) fn compose(task: &str, markers: &Markers, gates: &[&str], notes: &Notes) -> String {
    let mut prompt = task.to_owned();
    let mut section = |text: &str| {
        let gap = if prompt.is_empty() || prompt.ends_with("\n\n") {
            ""
        } else if prompt.ends_with('\n') {
            "\n"
        } else {
            "\n\n"
        };
        prompt.push_str(gap);
        prompt.push_str(text);
    };
    if let Some(hat) = &notes.hat {
        section(hat);
    }
    if let Some(refused) = &notes.refused {
        section(&explain_refusal(refused));
    }
    if let Some((marker, reason)) = &notes.ignored {
        section(&format!(
            "Your last answer contained {marker}, but it was not taken as a sign that you are done: {reason}."
        ));
    }
    let told =
        markers.mentioned_in(task) || notes.hat.as_deref().is_some_and(|hat| markers.mentioned_in(hat));
    if notes.ignored.is_some() || !told {
        section(&how_to_finish(markers, gates));
    }
    prompt
}

/// The marker never stands alone on a line here: an agent that echoes its prompt must not complete the run.
fn how_to_finish(markers: &Markers, gates: &[&str]) -> String {
    let marker = markers.preferred();
    let mut text = format!(
        "(From ralph, which runs you in a loop: when the whole task is done and checked, and only then, end your \
         final message with a line that contains nothing but {marker}. If work remains, leave it out; you will be \
         called again with the same task.",
    );
    if !gates.is_empty() {
        text.push_str(" ralph then runs these checks itself: ");
        text.push_str(
            &gates
                .iter()
                .map(|gate| format!("`{gate}`"))
                .collect::<Vec<_>>()
                .join(", "),
        );
        text.push('.');
    }
    text.push(')');
    text
}

fn explain_refusal(refused: &Refused) -> String {
    let Refused {
        command,
        result,
        seconds,
        output,
    } = refused;
    let how = match result {
        GateResult::Passed => "passed".to_owned(),
        GateResult::Failed {
            end: ProcessEnd::Exited { code },
        } => format!("failed with exit code {code}"),
        GateResult::Failed {
            end: ProcessEnd::Signaled { signal },
        } => format!("was killed by signal {signal}"),
        GateResult::TimedOut => "did not end in time".to_owned(),
        GateResult::CouldNotStart => "could not be started".to_owned(),
    };
    let mut text = format!(
        "You said that the task is done, but it is not: ralph ran `{command}` and it {how} after {seconds} s."
    );
    let output = output.trim_end();
    if output.is_empty() {
        text.push_str(" It printed nothing.");
    } else {
        let fence = fence_for(output);
        text.push_str(&format!(" It printed:\n\n{fence}\n{output}\n{fence}"));
    }
    text
}

/// A fence longer than any in the text.
fn fence_for(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

/// Leaves out the middle of a text that is over the budget, at line boundaries where there are any.
pub(crate) fn trim_middle(text: &str, budget: usize) -> String {
    if text.len() <= budget {
        return text.to_owned();
    }
    let head = &text[..floor_boundary(text, budget / 2)];
    let tail = &text[ceil_boundary(text, text.len() - budget / 2)..];
    let head = head.rfind('\n').map_or(head, |newline| &head[..=newline]);
    let tail = tail
        .find('\n')
        .filter(|newline| newline + 1 < tail.len())
        .map_or(tail, |at| &tail[at + 1..]);
    let left_out = text.len() - head.len() - tail.len();
    let gap = if head.ends_with('\n') { "" } else { "\n" };
    format!("{head}{gap}[… {left_out} bytes left out …]\n{tail}")
}

fn floor_boundary(text: &str, mut index: usize) -> usize {
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

fn ceil_boundary(text: &str, mut index: usize) -> usize {
    while !text.is_char_boundary(index) {
        index += 1;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::super::marker::{Claim, Placement, Tail};
    use super::*;

    fn markers() -> Markers {
        Markers::new(Vec::new(), Placement::Line)
    }

    #[test]
    fn the_users_words_come_first_and_unchanged() {
        let prompt = compose("Fix it.\r\n", &markers(), &[], &Notes::default());
        assert!(prompt.starts_with("Fix it.\r\n\n(From ralph"), "{prompt}");
        assert!(prompt.contains("nothing but LOOP_COMPLETE."));
    }

    #[test]
    fn a_task_that_names_its_marker_is_sent_as_it_is() {
        let task = "Fix it, then say LOOP_COMPLETE.";
        assert_eq!(
            compose(task, &markers(), &["cargo test"], &Notes::default()),
            task
        );
    }

    #[test]
    fn a_refusal_shows_what_ran_and_what_it_printed() {
        let refused = Refused {
            command: "cargo test".into(),
            result: GateResult::Failed {
                end: ProcessEnd::Exited { code: 101 },
            },
            seconds: 3,
            output: "```\nassertion failed\n".into(),
        };
        let notes = Notes {
            refused: Some(refused),
            ..Notes::default()
        };
        let prompt = compose(
            "Fix it, then say LOOP_COMPLETE.",
            &markers(),
            &["cargo test"],
            &notes,
        );
        assert_eq!(
            prompt,
            "Fix it, then say LOOP_COMPLETE.\n\nYou said that the task is done, but it is not: ralph ran `cargo \
             test` and it failed with exit code 101 after 3 s. It printed:\n\n````\n```\nassertion failed\n````"
        );
    }

    #[test]
    fn an_ignored_marker_is_explained_even_when_the_task_names_it() {
        let notes = Notes {
            ignored: Some(("LOOP_COMPLETE".into(), "it stood in a fence")),
            ..Notes::default()
        };
        let prompt = compose("Say LOOP_COMPLETE.", &markers(), &[], &notes);
        assert!(
            prompt.contains("not taken as a sign that you are done: it stood in a fence."),
            "{prompt}"
        );
        assert!(prompt.contains("nothing but LOOP_COMPLETE"), "{prompt}");
    }

    #[test]
    fn an_echoed_prompt_never_completes() {
        let notes = Notes {
            ignored: Some(("LOOP_COMPLETE".into(), "it stood in a fence")),
            ..Notes::default()
        };
        let prompt = compose("Fix it.", &markers(), &["true"], &notes);
        let mut tail = Tail::default();
        prompt.lines().for_each(|line| tail.push(line, &markers()));
        assert!(matches!(markers().in_tail(&tail, &prompt), Claim::Ignored { .. }));
        assert!(matches!(markers().in_message(&prompt), Claim::Ignored { .. }));
    }

    #[test]
    fn long_output_loses_its_middle_at_line_boundaries() {
        let text: String = (0..1000).map(|n| format!("line {n} ü\n")).collect();
        let trimmed = trim_middle(&text, 400);
        assert!(trimmed.len() < 480, "{}", trimmed.len());
        assert!(
            trimmed.starts_with("line 0 ü\n") && trimmed.ends_with("line 999 ü\n"),
            "{trimmed}"
        );
        assert!(trimmed.contains("bytes left out …]\nline "), "{trimmed}");
        assert_eq!(trim_middle("short", 400), "short");
        assert!(trim_middle(&"ü".repeat(1000), 401).contains("left out"));
    }
}
