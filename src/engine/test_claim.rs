//! Finds claims about passing tests that no tool call supports. They cause a notice; the verdict does not depend on them.

use crate::event::{Flow, Meta, Tag, TranscriptEvent};

/// How much of the text after the last tool call is searched, in bytes.
const MAX_TEXT: usize = 4096;
/// Tools that change files and do nothing else. Any other tool that is not in `READING` may have run the tests.
const CHANGING: [&str; 14] = [
    "edit",
    "multiedit",
    "write",
    "notebookedit",
    "write_file",
    "edit_file",
    "create_file",
    "replace",
    "str_replace",
    "apply_patch",
    "apply_diff",
    "write_to_file",
    "replace_in_file",
    "search_replace",
];
/// Tools that neither change files nor run commands.
const READING: [&str; 18] = [
    "read",
    "grep",
    "glob",
    "ls",
    "list",
    "view",
    "read_file",
    "read_many_files",
    "list_directory",
    "list_files",
    "list_dir",
    "search_file_content",
    "todowrite",
    "todo_write",
    "update_plan",
    "websearch",
    "webfetch",
    "web_search",
];
const CLAIMS: [&str; 6] = [
    "tests pass",
    "tests passed",
    "tests are passing",
    "tests now pass",
    "test suite passes",
    "tests succeed",
];
/// Words before a claim that make it a plan, a condition or a denial.
const QUALIFIERS: [&str; 24] = [
    "if", "when", "once", "until", "unless", "whether", "should", "would", "will", "may", "might", "could",
    "not", "no", "make", "makes", "making", "ensure", "verify", "check", "before", "so", "let", "expect",
];

/// What an attempt has done since it last changed a file.
#[derive(Debug, Default)]
pub(crate) struct TestClaim {
    /// A file was changed, and nothing ran afterwards that could have tested it.
    untested_change: bool,
    /// The text since the last tool call.
    text: String,
}

impl TestClaim {
    pub(crate) fn apply_event(&mut self, event: &TranscriptEvent) {
        match event {
            TranscriptEvent::ToolStart { tool } => {
                self.text.clear();
                let name = tool.name.to_lowercase();
                if CHANGING.contains(&name.as_str()) {
                    self.untested_change = true;
                } else if !READING.contains(&name.as_str()) {
                    self.untested_change = false;
                }
            }
            TranscriptEvent::Meta {
                meta: Meta::FileChange { .. },
            } => self.untested_change = true,
            TranscriptEvent::Text {
                tag: Tag::Ai,
                text,
                flow,
                ..
            } if self.untested_change => self.push(text, *flow),
            TranscriptEvent::Text { .. }
            | TranscriptEvent::ToolOutput { .. }
            | TranscriptEvent::ToolEnd { .. }
            | TranscriptEvent::Usage { .. }
            | TranscriptEvent::Meta { .. } => {}
        }
    }

    fn push(&mut self, text: &str, flow: Flow) {
        if flow != Flow::Delta {
            self.text.push('\n');
        }
        self.text.push_str(text);
        if self.text.len() > MAX_TEXT {
            let start = self.text.ceil_char_boundary(self.text.len() - MAX_TEXT);
            self.text.drain(..start);
        }
    }

    /// Whether the agent claims that tests pass although nothing ran after its last change.
    pub(crate) fn is_unsupported(&self) -> bool {
        self.untested_change && self.text.lines().any(claims_passing_tests)
    }
}

fn claims_passing_tests(line: &str) -> bool {
    let line = line.to_lowercase();
    CLAIMS.iter().any(|claim| {
        line.match_indices(claim).any(|(at, _)| {
            // Only the sentence before the claim matters.
            let sentence = line[..at].rsplit(['.', ';', '!', '?']).next().unwrap_or_default();
            let mut words = sentence.split(|c: char| !c.is_alphanumeric() && c != '\'');
            !words.any(|word| QUALIFIERS.contains(&word) || word.ends_with("n't"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ToolStart;

    fn after(tools: &[&str], text: &str) -> bool {
        let mut claim = TestClaim::default();
        for name in tools {
            claim.apply_event(&TranscriptEvent::ToolStart {
                tool: ToolStart {
                    id: "t".into(),
                    name: (*name).to_owned(),
                    input: None,
                    parent: None,
                },
            });
        }
        claim.apply_event(&TranscriptEvent::message(Tag::Ai, text));
        claim.is_unsupported()
    }

    #[test]
    fn claim_after_an_untested_change_is_found() {
        for text in [
            "All tests pass.",
            "Fixed it.\nThe tests now pass!",
            "Done: tests are passing\nLOOP_COMPLETE",
        ] {
            assert!(after(&["Bash", "Edit", "Read"], text), "{text}");
        }
    }

    #[test]
    fn agents_that_may_have_run_the_tests_are_not_accused() {
        for tools in [
            &["Edit", "Bash"][..],
            &["Edit", "Task", "Read"],
            &["Edit", "str_replace_editor"],
            &["Read"],
            &[],
        ] {
            assert!(!after(tools, "All tests pass."), "{tools:?}");
        }
    }

    #[test]
    fn plans_conditions_and_denials_are_no_claims() {
        for text in [
            "I could not check whether the tests pass.",
            "Once the tests pass, I will commit.",
            "The tests don't pass yet. Not all tests pass.",
            "This should make the tests pass.",
            "I added tests.",
        ] {
            assert!(!after(&["Edit"], text), "{text}");
        }
    }
}
