//! Exports a run as an OpenTelemetry trace in OTLP/JSON.

mod conventions;
mod spans;

pub use spans::Spans;

use std::io::{self, Write};

use super::ExportHeader;
use crate::event::{Record, Sink};

/// Collects the spans of a run and writes them at its end.
pub struct Otlp<W: Write> {
    writer: W,
    spans: Spans,
}

impl<W: Write> Otlp<W> {
    pub fn begin(writer: W, header: &ExportHeader) -> Self {
        Self {
            writer,
            spans: Spans::new(header.id),
        }
    }

    /// Ends what is still open, and writes the trace.
    pub fn end(mut self) -> io::Result<()> {
        self.spans.end();
        serde_json::to_writer(&mut self.writer, &self.spans.take())?;
        self.writer.write_all(b"\n")?;
        self.writer.flush()
    }
}

impl<W: Write> Sink for Otlp<W> {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        self.spans.apply(record);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::ui::run_verdict;

    /// The spans of the golden journal.
    fn spans() -> Vec<Value> {
        let header = ExportHeader {
            id: "20261115-204501-k3f9",
            verdict: run_verdict(
                &crate::event::RunOutcome::Failed { reason: "x".into() },
                &crate::ui::PassedGates::default(),
            ),
            facts: Vec::new(),
            prompt: None,
            attempts: &[],
            patches: Vec::new(),
            final_message: "",
        };
        let mut bytes = Vec::new();
        let mut otlp = Otlp::begin(&mut bytes, &header);
        for line in include_str!("../../../../tests/golden/events.v1.jsonl").lines() {
            otlp.accept(&serde_json::from_str(line).unwrap()).unwrap();
        }
        otlp.end().unwrap();
        let trace: Value = serde_json::from_slice(&bytes).unwrap();
        trace["resourceSpans"][0]["scopeSpans"][0]["spans"]
            .as_array()
            .unwrap()
            .clone()
    }

    #[test]
    fn every_span_has_its_parent_in_the_trace_and_an_id_of_its_own() {
        let spans = spans();
        let ids: std::collections::BTreeSet<&str> = spans
            .iter()
            .map(|span| span["spanId"].as_str().unwrap())
            .collect();
        assert_eq!(ids.len(), spans.len());
        let roots = spans.iter().filter(|span| span.get("parentSpanId").is_none());
        assert_eq!(roots.count(), 1, "only the run has no parent");
        for span in &spans {
            let parent = span["parentSpanId"].as_str();
            assert!(parent.is_none_or(|parent| ids.contains(parent)), "{span}");
            let time = |key: &str| span[key].as_str().unwrap().parse::<u128>().unwrap();
            assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"));
        }
    }

    #[test]
    fn run_iteration_agent_tool_and_gate_are_spans() {
        let spans = spans();
        let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
        for prefix in ["ralph run", "iteration", "invoke_agent", "execute_tool", "gate"] {
            assert!(
                names.iter().any(|name| name.starts_with(prefix)),
                "{prefix}: {names:?}"
            );
        }
    }
}
