//! The ids of a run's trace. They are derived from the run, so that a trace exported later has the ids that the agent received.

use sha2::{Digest, Sha256};

const TRACE_BYTES: usize = 16;
const SPAN_BYTES: usize = 8;

/// The id of the run's trace, 32 hexadecimal digits.
pub fn trace_id(run_id: &str) -> String {
    hex(&Sha256::digest(format!("trace {run_id}"))[..TRACE_BYTES])
}

/// The id of a span of the run, 16 hexadecimal digits. `span` is unique in the run, such as `agent 3.1`.
pub fn span_id(run_id: &str, span: &str) -> String {
    hex(&Sha256::digest(format!("span {run_id} {span}"))[..SPAN_BYTES])
}

/// The name of the span of an agent.
pub fn agent_span(iteration: u64, attempt: u64) -> String {
    format!("agent {iteration}.{attempt}")
}

/// The value of `TRACEPARENT` for an agent, by which its own spans join the trace.
pub fn trace_parent(run_id: &str, iteration: u64, attempt: u64) -> String {
    let span = span_id(run_id, &agent_span(iteration, attempt));
    format!("00-{}-{span}-01", trace_id(run_id))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_parent_has_the_standard_form() {
        let parent = trace_parent("20261115-204501-k3f9", 3, 1);
        let parts: Vec<&str> = parent.split('-').collect();
        assert_eq!(
            parts.iter().map(|part| part.len()).collect::<Vec<_>>(),
            [2, 32, 16, 2]
        );
        assert_ne!(parent, trace_parent("20261115-204501-k3f9", 3, 2));
    }
}
