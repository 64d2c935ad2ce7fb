//! Composes the prompt of an iteration: the user's task, unchanged, followed by ralph's notes.

use std::borrow::Cow;

use crate::event::{GateResult, ProcessEnd, RunEvent, TestReport};

use super::marker::Markers;

/// Maximum size of a gate's output in a prompt or the journal, in bytes.
pub(crate) const OUTPUT_BUDGET: usize = 8 * 1024;

/// Additions to the task: the active hat, and feedback on the previous iteration.
#[derive(Debug, Default)]
pub(crate) struct PromptNotes {
    pub(crate) hat: Option<String>,
    pub(crate) gate_rejection: Option<GateRejection>,
    pub(crate) ignored_marker: Option<(String, Cow<'static, str>)>,
    /// The open findings of reviews.
    pub(crate) findings: Option<String>,
    /// Files that the previous attempt changed outside the allowed paths.
    pub(crate) violated_paths: Vec<String>,
    pub(crate) files_restored: Restored,
}

/// Whether the files were restored because the previous attempt broke a gate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Restored {
    #[default]
    No,
    Yes,
}

/// A gate that failed after the agent claimed to be done.
#[derive(Debug)]
pub(crate) struct GateRejection {
    pub(crate) command: String,
    pub(crate) result: GateResult,
    pub(crate) seconds: u64,
    pub(crate) output: String,
    pub(crate) report: Option<TestReport>,
    /// The agent may not learn what the gate checks.
    pub(crate) hidden: bool,
    /// See [`GateDetails::paths`](crate::event::GateDetails).
    pub(crate) paths: Vec<String>,
}

impl GateRejection {
    /// The rejection by a gate that has ended; `None` if it passed.
    pub(crate) fn of(ended: &RunEvent, command: &str) -> Option<Self> {
        let RunEvent::GateEnded {
            result,
            duration_ms,
            output,
            details,
            ..
        } = ended
        else {
            return None;
        };
        (!result.passed()).then(|| Self {
            command: command.to_owned(),
            result: *result,
            seconds: duration_ms / 1000,
            output: output.clone(),
            report: details.report.clone(),
            hidden: details.hidden,
            paths: details.paths.clone(),
        })
    }
}

/// The rules of a run that its prompts state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PromptRules<'a> {
    pub(crate) markers: &'a Markers,
    pub(crate) guardrails: &'a [String],
}

/// Composes the prompt.
pub(crate) fn compose(task: &str, rules: PromptRules<'_>, gates: &[&str], notes: &PromptNotes) -> String {
    let PromptRules { markers, guardrails } = rules;
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
    if !guardrails.is_empty() {
        section(&format!("Rules:\n\n- {}", guardrails.join("\n- ")));
    }
    // The findings of a review explain its rejection.
    let rejection = notes.gate_rejection.as_ref();
    let is_explained = |rejection: &&GateRejection| {
        notes.findings.is_some() && matches!(rejection.result, GateResult::Rejected { .. })
    };
    if let Some(gate_rejection) = rejection.filter(|rejection| !is_explained(rejection)) {
        section(&explain_gate_rejection(gate_rejection));
    }
    if notes.files_restored == Restored::Yes {
        section(
            "This gate had passed before. All files were restored to their state from then, so your changes since are undone. \
             Make them again without breaking the gate.",
        );
    }
    if let Some(findings) = &notes.findings {
        section(findings);
    }
    if !notes.violated_paths.is_empty() {
        section(&format!(
            "Your last attempt did not count because it changed files outside the allowed paths: {}. Undo these \
             changes and do not modify such files.",
            notes.violated_paths.join(", ")
        ));
    }
    if let Some((marker, reason)) = &notes.ignored_marker {
        section(&format!(
            "Your last answer contained {marker}, but it did not count as completion: {reason}."
        ));
    }
    let names_marker =
        markers.mentioned_in(task) || notes.hat.as_deref().is_some_and(|hat| markers.mentioned_in(hat));
    if notes.ignored_marker.is_some() || !names_marker {
        section(&completion_instructions(markers, gates));
    }
    prompt
}

/// The marker is never alone on a line here: an agent that echoes its prompt must not complete the run.
fn completion_instructions(markers: &Markers, gates: &[&str]) -> String {
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

/// Explains how to ask the user a question.
pub(crate) fn add_question_instructions(prompt: &mut String) {
    let gap = if prompt.ends_with('\n') { "\n" } else { "\n\n" };
    prompt.push_str(gap);
    prompt.push_str(
        "(From ralph: if you cannot continue without a decision of the user, write \
         <event topic=\"TOPIC\">your question</event> with the topic `ask` and end your answer. The user's answer is part of \
         the next prompt. Ask only if the task, the code and its history do not answer the question.)",
    );
}

fn explain_gate_rejection(gate_rejection: &GateRejection) -> String {
    let GateRejection {
        command,
        result,
        seconds,
        output,
        report,
        hidden,
        paths,
    } = gate_rejection;
    if *hidden {
        return "You reported that the task is done, but it is not: a hidden check failed. Read the task again and verify \
                each of its requirements."
            .to_owned();
    }
    let paths = paths.join(", ");
    let how = match result {
        GateResult::Tampered => format!(
            "fails with the original version of protected files. Your changes to these files do not count: {paths}. Undo \
             them and fix the code instead. With the original files, it failed"
        ),
        GateResult::Outdated => {
            return format!(
                "You reported that the task is done, but these files changed after `{command}` had passed: {paths}. Make sure \
                 that no process and no other check modifies files, and report completion again."
            );
        }
        GateResult::Rejected { .. } | GateResult::Unanswered => return explain_review(*result, command),
        GateResult::Passed => "passed".to_owned(),
        GateResult::Failed {
            end: ProcessEnd::Exited { code },
        } => format!("failed with exit code {code}"),
        GateResult::Failed {
            end: ProcessEnd::Signaled { signal },
        } => format!("was killed by signal {signal}"),
        GateResult::TimedOut => "timed out".to_owned(),
        GateResult::CouldNotStart => "could not be started".to_owned(),
        GateResult::TooFewTests { passed } => {
            format!("succeeded with only {passed} passed tests, fewer than required,")
        }
    };
    let mut text = format!(
        "You reported that the task is done, but it is not: ralph ran `{command}`, which {how} after {seconds} s."
    );
    let output = output.trim_end();
    if let Some(report) = report.as_ref().filter(|report| !report.failures.is_empty()) {
        text.push_str(&list_failures(report));
    } else if output.is_empty() {
        text.push_str(" It printed nothing.");
    } else {
        let fence = fence_for(output);
        text.push_str(&format!(" It printed:\n\n{fence}\n{output}\n{fence}"));
    }
    text
}

/// The findings of a rejection are listed in a section of their own.
fn explain_review(result: GateResult, command: &str) -> String {
    match result {
        GateResult::Unanswered => format!(
            "You reported that the task is done, but ralph could not confirm it: the {command} gave no valid answer. Verify \
             your work once more, and report completion again if the task is done."
        ),
        _ => format!("You reported that the task is done, but the {command} rejects it."),
    }
}

/// The failed tests and compiler errors, up to the budget of a gate's output.
fn list_failures(report: &TestReport) -> String {
    let mut text = match report.passed + report.failed + report.skipped {
        0 => " Errors:".to_owned(),
        _ => format!(" Tests: {report}."),
    };
    let mut listed = 0;
    for failure in &report.failures {
        let message = failure.message.trim();
        let fence = fence_for(message);
        let entry = match message.is_empty() {
            true => format!("\n\n- {}", failure.heading()),
            false => format!("\n\n- {}\n{fence}\n{message}\n{fence}", failure.heading()),
        };
        if listed > 0 && text.len() + entry.len() > OUTPUT_BUDGET {
            break;
        }
        text.push_str(&entry);
        listed += 1;
    }
    let more = report.failures.len() as u64 - listed + report.more_failures;
    if more > 0 {
        text.push_str(&format!("\n\nand {more} more."));
    }
    text
}

/// A code fence longer than any in the text.
pub(crate) fn fence_for(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

/// Omits the middle of a text that exceeds the budget, at line boundaries if possible.
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
    let omitted = text.len() - head.len() - tail.len();
    let gap = if head.ends_with('\n') { "" } else { "\n" };
    format!("{head}{gap}[… {omitted} bytes left out …]\n{tail}")
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
    use super::*;
    use crate::engine::marker::{Claim, OutputTail};
    use crate::policy::MarkerPlacement;

    fn composed(task: &str, gates: &[&str], notes: &PromptNotes) -> String {
        let rules = PromptRules {
            markers: &markers(),
            guardrails: &[],
        };
        compose(task, rules, gates, notes)
    }

    #[test]
    fn guardrails_are_part_of_every_prompt() {
        let guardrails = ["search first".to_owned(), "run the tests".to_owned()];
        let rules = PromptRules {
            markers: &markers(),
            guardrails: &guardrails,
        };
        let prompt = compose("Say LOOP_COMPLETE.", rules, &[], &PromptNotes::default());
        assert_eq!(
            prompt,
            "Say LOOP_COMPLETE.\n\nRules:\n\n- search first\n- run the tests"
        );
    }

    fn markers() -> Markers {
        Markers::new(Vec::new(), MarkerPlacement::Line)
    }

    #[test]
    fn task_comes_first_and_unchanged() {
        let prompt = composed("Fix it.\r\n", &[], &PromptNotes::default());
        assert!(prompt.starts_with("Fix it.\r\n\n(From ralph"), "{prompt}");
        assert!(prompt.contains("nothing but LOOP_COMPLETE."));
    }

    #[test]
    fn task_that_names_a_marker_gets_no_instructions() {
        let task = "Fix it, then say LOOP_COMPLETE.";
        assert_eq!(composed(task, &["cargo test"], &PromptNotes::default()), task);
    }

    #[test]
    fn gate_rejection_shows_command_and_output() {
        let gate_rejection = GateRejection {
            command: "cargo test".into(),
            result: GateResult::Failed {
                end: ProcessEnd::Exited { code: 101 },
            },
            seconds: 3,
            output: "```\nassertion failed\n".into(),
            report: None,
            hidden: false,
            paths: Vec::new(),
        };
        let notes = PromptNotes {
            gate_rejection: Some(gate_rejection),
            ..PromptNotes::default()
        };
        let prompt = composed("Fix it, then say LOOP_COMPLETE.", &["cargo test"], &notes);
        assert_eq!(
            prompt,
            "Fix it, then say LOOP_COMPLETE.\n\nYou reported that the task is done, but it is not: ralph ran `cargo \
             test`, which failed with exit code 101 after 3 s. It printed:\n\n````\n```\nassertion failed\n````"
        );
    }

    #[test]
    fn ignored_marker_is_explained_even_if_the_task_names_it() {
        let notes = PromptNotes {
            ignored_marker: Some(("LOOP_COMPLETE".into(), "it was in a fence".into())),
            ..PromptNotes::default()
        };
        let prompt = composed("Say LOOP_COMPLETE.", &[], &notes);
        assert!(
            prompt.contains("did not count as completion: it was in a fence."),
            "{prompt}"
        );
        assert!(prompt.contains("nothing but LOOP_COMPLETE"), "{prompt}");
    }

    #[test]
    fn echoed_prompt_never_completes() {
        let notes = PromptNotes {
            ignored_marker: Some(("LOOP_COMPLETE".into(), "it was in a fence".into())),
            ..PromptNotes::default()
        };
        let prompt = composed("Fix it.", &["true"], &notes);
        let mut tail = OutputTail::default();
        prompt.lines().for_each(|line| tail.push(line, &markers()));
        assert!(matches!(
            markers().claim_in_tail(&tail, &prompt),
            Claim::Ignored { .. }
        ));
        assert!(matches!(
            markers().claim_in_message(&prompt),
            Claim::Ignored { .. }
        ));
    }

    #[test]
    fn long_output_is_trimmed_in_the_middle_at_line_boundaries() {
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
