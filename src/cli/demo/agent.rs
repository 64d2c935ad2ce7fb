//! The demo's agent: a child process that speaks RTF1 and edits files like a real one. At first it is too sure of
//! itself; when its prompt tells it that the test failed, it reads on and mends the rest.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::event::{Json, Meta, Tag, ToolEnd, ToolRef, ToolStart, ToolStatus, TranscriptEvent, Usage};

/// The argument by which this program is asked to be the demo's agent.
pub(super) const ASKED: &str = "__demo-agent";

/// Slow enough to follow, quick enough not to bore.
const BREATH: Duration = Duration::from_millis(350);

const HALF_RIGHT: &str = "#!/bin/sh\n# Prints a greeting.\necho \"Hello, $1!\"\n";
const RIGHT: &str = "#!/bin/sh\n# Prints a greeting.\necho \"Hello, ${1:-world}!\"\n";

/// First thing in main: if this process was started as the demo's agent, be it.
pub(in crate::cli) fn play_if_asked() -> Option<ExitCode> {
    if std::env::args_os().nth(1)? != ASKED {
        return None;
    }
    Some(if play().is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn play() -> io::Result<()> {
    let mut prompt = String::new();
    io::stdin().read_to_string(&mut prompt)?;
    let mut agent = DemoAgent {
        out: io::stdout(),
        tools: 0,
    };
    agent.tell(TranscriptEvent::meta(Meta::Session {
        session_id: format!("demo-{}", std::process::id()),
        model: Some("scripted".into()),
        version: None,
    }))?;
    // The second act begins when ralph reports that the gate refused the first one's claim.
    if prompt.contains("exit code 1") {
        second_act(&mut agent)
    } else {
        first_act(&mut agent)
    }
}

fn first_act(agent: &mut DemoAgent) -> io::Result<()> {
    agent
        .think("The test wants a greeting with a comma and an exclamation mark. Let me see what there is.")?;
    agent.read("greet.sh")?;
    agent.think("A capital H, a comma, an exclamation mark: one line to change.")?;
    agent.write("greet.sh", HALF_RIGHT)?;
    agent.uses(1180, 96)?;
    agent.say("greet.sh now prints \"Hello, NAME!\". That should do it.\n\nLOOP_COMPLETE")
}

fn second_act(agent: &mut DemoAgent) -> io::Result<()> {
    agent.think(
        "The gate says that a greeting without a name is still wrong. I did not run the test. Now I do.",
    )?;
    agent.shell("sh test.sh")?;
    agent.think("An empty name must become \"world\": a default in the expansion.")?;
    agent.write("greet.sh", RIGHT)?;
    agent.shell("sh test.sh")?;
    agent.uses(1630, 142)?;
    agent.say("A greeting without a name now falls back to \"world\", and the test passes.\n\nLOOP_COMPLETE")
}

struct DemoAgent {
    out: io::Stdout,
    tools: u32,
}

impl DemoAgent {
    fn think(&mut self, text: &str) -> io::Result<()> {
        thread::sleep(BREATH);
        self.tell(TranscriptEvent::message(Tag::Think, text))
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        thread::sleep(BREATH);
        self.tell(TranscriptEvent::message(Tag::Ai, text))
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

    fn uses(&mut self, prompt: u64, completion: u64) -> io::Result<()> {
        let usage = Usage {
            prompt_tokens: Some(prompt),
            completion_tokens: Some(completion),
            ..Usage::default()
        };
        self.tell(TranscriptEvent::usage(usage))
    }

    /// One call of a tool, really made.
    fn tool(
        &mut self,
        name: &str,
        input: serde_json::Value,
        call: impl FnOnce() -> io::Result<(String, ToolStatus)>,
    ) -> io::Result<()> {
        thread::sleep(BREATH);
        self.tools += 1;
        let id = format!("t{}", self.tools);
        let input = Some(Json::from(input));
        let tool = ToolStart {
            id: id.clone(),
            name: name.into(),
            input,
            parent: None,
        };
        self.tell(TranscriptEvent::ToolStart { tool })?;
        let started = Instant::now();
        thread::sleep(BREATH / 2);
        let (text, status) = call()?;
        if !text.is_empty() {
            self.tell(TranscriptEvent::ToolOutput {
                tool: ToolRef { id: id.clone() },
                text,
            })?;
        }
        let duration_ms = u64::try_from(started.elapsed().as_millis()).ok();
        self.tell(TranscriptEvent::ToolEnd {
            tool: ToolEnd {
                id,
                status,
                duration_ms,
            },
        })
    }

    fn tell(&mut self, event: TranscriptEvent) -> io::Result<()> {
        let json = serde_json::to_string(&event)?;
        writeln!(self.out, "@@RALPH@@ {json}")?;
        self.out.flush()
    }
}
