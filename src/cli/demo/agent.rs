//! The demo's scripted agent: a child process that emits RTF1 and edits files. Its first fix is incomplete; after the
//! gate has failed, it completes the fix.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::event::{
    Json, Meta, PlanItem, PlanStatus, Tag, ToolEnd, ToolRef, ToolStart, ToolStatus, TranscriptEvent, Usage,
};

/// The argument that starts this program as the demo's agent.
pub(super) const AGENT_ARGUMENT: &str = "__demo-agent";

/// Delay between steps, so that the run can be followed.
const DELAY: Duration = Duration::from_millis(350);

const PARTIAL_FIX: &str = "#!/bin/sh\n# Prints a greeting.\necho \"Hello, $1!\"\n";
const COMPLETE_FIX: &str = "#!/bin/sh\n# Prints a greeting.\necho \"Hello, ${1:-world}!\"\n";

/// Runs the demo's agent if this process was started as one. Called first in `main`.
pub(in crate::cli) fn run_agent_if_requested() -> Option<ExitCode> {
    if std::env::args_os().nth(1)? != AGENT_ARGUMENT {
        return None;
    }
    Some(if run_agent().is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn run_agent() -> io::Result<()> {
    let mut prompt = String::new();
    io::stdin().read_to_string(&mut prompt)?;
    let mut agent = DemoAgent {
        out: io::stdout(),
        tools: 0,
    };
    agent.emit(TranscriptEvent::meta(Meta::Session {
        session_id: format!("demo-{}", std::process::id()),
        model: Some("scripted".into()),
        version: None,
    }))?;
    // The second prompt contains the output of the failed gate.
    if prompt.contains("exit code 1") {
        second_iteration(&mut agent)
    } else {
        first_iteration(&mut agent)
    }
}

fn first_iteration(agent: &mut DemoAgent) -> io::Result<()> {
    agent
        .think("The test expects a greeting with a comma and an exclamation mark. Let me read the script.")?;
    agent.read("greet.sh")?;
    agent.think("A capital H, a comma, an exclamation mark: one line to change.")?;
    agent.write("greet.sh", PARTIAL_FIX)?;
    agent.usage(1180, 96)?;
    agent.message("greet.sh now prints \"Hello, NAME!\". That should do it.\n\nLOOP_COMPLETE")
}

fn second_iteration(agent: &mut DemoAgent) -> io::Result<()> {
    agent.think(
        "The gate reports that a greeting without a name is still wrong. I did not run the test; let me run it now.",
    )?;
    agent.plan([PlanStatus::Active, PlanStatus::Pending, PlanStatus::Pending])?;
    agent.shell("sh test.sh")?;
    agent.plan([PlanStatus::Done, PlanStatus::Active, PlanStatus::Pending])?;
    agent.think("An empty name must become \"world\": a default in the expansion.")?;
    agent.write("greet.sh", COMPLETE_FIX)?;
    agent.plan([PlanStatus::Done, PlanStatus::Done, PlanStatus::Active])?;
    agent.shell("sh test.sh")?;
    agent.plan([PlanStatus::Done; 3])?;
    agent.usage(1630, 142)?;
    agent.message(
        "A greeting without a name now falls back to **world**:\n\n```sh\necho \"Hello, ${1:-world}!\"\n```\n\nThe test passes.\n\nLOOP_COMPLETE",
    )
}

struct DemoAgent {
    out: io::Stdout,
    tools: u32,
}

impl DemoAgent {
    fn think(&mut self, text: &str) -> io::Result<()> {
        thread::sleep(DELAY);
        self.emit(TranscriptEvent::message(Tag::Think, text))
    }

    fn message(&mut self, text: &str) -> io::Result<()> {
        thread::sleep(DELAY);
        self.emit(TranscriptEvent::message(Tag::Ai, text))
    }

    /// Reports the plan of the second iteration.
    fn plan(&mut self, states: [PlanStatus; 3]) -> io::Result<()> {
        let steps = [
            "run the test",
            "use a default for an empty name",
            "run the test again",
        ];
        let items = steps.iter().zip(states).map(|(text, status)| PlanItem {
            text: (*text).to_owned(),
            status,
        });
        let items = items.collect();
        self.emit(TranscriptEvent::meta(Meta::Plan { items }))
    }

    fn read(&mut self, path: &str) -> io::Result<()> {
        self.tool("Read", json!({ "path": path }), || {
            fs::read_to_string(path).map(|text| (text, ToolStatus::Ok))
        })
    }

    fn write(&mut self, path: &str, text: &str) -> io::Result<()> {
        self.tool("Write", json!({ "path": path, "content": text }), || {
            fs::write(Path::new(path), text)?;
            Ok((String::new(), ToolStatus::Ok))
        })
    }

    fn shell(&mut self, command: &str) -> io::Result<()> {
        self.tool("Shell", json!({ "command": command }), || {
            let output = Command::new("sh")
                .args(["-c", command])
                .stdin(Stdio::null())
                .output()?;
            let status = if output.status.success() {
                ToolStatus::Ok
            } else {
                ToolStatus::Fail
            };
            Ok((String::from_utf8_lossy(&output.stdout).into_owned(), status))
        })
    }

    fn usage(&mut self, prompt: u64, completion: u64) -> io::Result<()> {
        let usage = Usage {
            prompt_tokens: Some(prompt),
            completion_tokens: Some(completion),
            ..Usage::default()
        };
        self.emit(TranscriptEvent::usage(usage))
    }

    /// Calls a tool and emits its events.
    fn tool(
        &mut self,
        name: &str,
        input: serde_json::Value,
        call: impl FnOnce() -> io::Result<(String, ToolStatus)>,
    ) -> io::Result<()> {
        thread::sleep(DELAY);
        self.tools += 1;
        let id = format!("t{}", self.tools);
        let input = Some(Json::from(input));
        let tool = ToolStart {
            id: id.clone(),
            name: name.into(),
            input,
            parent: None,
        };
        self.emit(TranscriptEvent::ToolStart { tool })?;
        let started = Instant::now();
        thread::sleep(DELAY / 2);
        let (text, status) = call()?;
        if !text.is_empty() {
            self.emit(TranscriptEvent::ToolOutput {
                tool: ToolRef { id: id.clone() },
                text,
            })?;
        }
        let duration_ms = u64::try_from(started.elapsed().as_millis()).ok();
        self.emit(TranscriptEvent::ToolEnd {
            tool: ToolEnd {
                id,
                status,
                duration_ms,
            },
        })
    }

    fn emit(&mut self, event: TranscriptEvent) -> io::Result<()> {
        let json = serde_json::to_string(&event)?;
        writeln!(self.out, "@@RALPH@@ {json}")?;
        self.out.flush()
    }
}
