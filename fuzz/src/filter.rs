//! A jq filter and what it is put to: both may be anything, and neither may stop the reader.

use ralph::transcript::jq::{Filter, open};

/// The first line is the filter, each other one a line of the agent's.
pub fn filter(bytes: &[u8]) {
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
