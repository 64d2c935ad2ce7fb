//! The prompt of a task.

use super::job::Diffs;
use super::step::{Rejection, TaskStart};

/// Maximum length of a diff in a prompt.
const MAX_DIFF: usize = 20_000;
/// Maximum length of a gate's output in a prompt.
const MAX_OUTPUT: usize = 8_000;

/// The prompt of a task that another program starts.
#[cfg(feature = "fleet")]
pub fn task_prompt(start: &TaskStart, plan: &str) -> String {
    prompt(start, plan, None, false)
}

pub(super) fn prompt(start: &TaskStart, plan: &str, diffs: Option<&Diffs>, is_interrupted: bool) -> String {
    let task = &start.task;
    let mut prompt = format!("# {}\n\n", task.title);
    if !task.body.is_empty() {
        prompt.push_str(&format!("{}\n\n", task.body));
    }
    prompt.push_str(&format!(
        "This is one task of the plan {plan}. Other tasks are done separately: work on this one only. Do not mark tasks as \
         done in the plan; that happens after the checks have passed.\n"
    ));
    if !task.gates.is_empty() {
        let commands: String = task
            .gates
            .iter()
            .map(|gate| format!("\n    {}", gate.replace('\n', "\n    ")))
            .collect();
        prompt.push_str(&format!(
            "\nThe task is done when these commands succeed:\n{commands}\n"
        ));
    }
    if let Some(rejection) = &start.rejection {
        prompt.push_str(&rejected(rejection, diffs));
    }
    if is_interrupted {
        prompt.push_str("\nAn earlier run of this task was interrupted. Its changes are in the working directory; check them first.\n");
    }
    prompt
}

fn rejected(rejection: &Rejection, diffs: Option<&Diffs>) -> String {
    let why = match rejection {
        Rejection::Conflict { files, .. } => format!(
            "its changes conflicted with changes that were merged in the meantime, in: {}.",
            files.join(", ")
        ),
        Rejection::GateFailed { gate, output } => format!(
            "the gate `{gate}` failed after its changes were merged with those of other tasks:\n\n{}",
            fenced(output, MAX_OUTPUT)
        ),
        Rejection::Failed { reason } => format!("{reason}."),
        Rejection::Moved | Rejection::Stopped => return String::new(),
    };
    let mut text = format!(
        "\nThe task was already done once, but it could not be merged: {why}\n\nThe working directory now contains the merged \
         work of the other tasks, and not the earlier changes of this task. Do the task again so that it fits.\n"
    );
    if let Some(diffs) = diffs {
        text.push_str("\nThe earlier changes of this task:\n\n");
        text.push_str(&fenced(&diffs.own, MAX_DIFF));
        text.push_str("\nThe changes that were merged in the meantime:\n\n");
        text.push_str(&fenced(&diffs.others, MAX_DIFF));
    }
    text
}

/// A fenced block that its content cannot end.
fn fenced(text: &str, max: usize) -> String {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let omitted = if end < text.len() { "\n[…]" } else { "" };
    let mut fence = String::from("```");
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}\n{}{omitted}\n{fence}\n", text[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::task::Task;

    #[test]
    fn rejected_task_gets_both_diffs_in_blocks_that_they_cannot_end() {
        let start = TaskStart {
            task: Task {
                id: "a".into(),
                title: "Add login".into(),
                body: "With tests.".into(),
                gates: vec!["cargo test".into()],
                ..Task::default()
            },
            attempt: 2,
            rejection: Some(Rejection::Conflict {
                task: "a".into(),
                files: vec!["src/a.rs".into()],
            }),
            max_cost_usd: None,
        };
        let diffs = Diffs {
            own: "+```\n+text".into(),
            others: "ä".repeat(MAX_DIFF),
        };
        let text = prompt(&start, "PLAN.md", Some(&diffs), false);
        assert!(text.starts_with("# Add login\n\nWith tests.\n"), "{text}");
        assert!(
            text.contains("    cargo test\n") && text.contains("in: src/a.rs."),
            "{text}"
        );
        assert!(
            text.contains("````\n+```\n+text\n````\n") && text.contains("[…]"),
            "{text}"
        );
        assert!(
            !prompt(
                &TaskStart {
                    rejection: None,
                    ..start
                },
                "PLAN.md",
                None,
                true
            )
            .contains("already done once")
        );
    }
}
