//! Arbitrary jq filters on arbitrary lines: every filter terminates, and no input causes a panic.

use ralph::transcript::jq::{Filter, open};

/// The first line is the filter; the other lines are the agent's output.
pub fn jq_filter(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.split('\n');
    let code = lines.next().unwrap_or_default();
    match Filter::compile(code) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(filter) => {
            let mut adapter = open(filter);
            let mut events = Vec::new();
            lines.for_each(|line| adapter.feed(line, &mut events));
            adapter.flush(&mut events);
        }
    }
}
