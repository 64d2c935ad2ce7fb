//! Replies of the model server, independent of the API.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) enum Reply {
    Blocks(Vec<Block>),
    Error(ErrorReply),
    /// The request is read, and no response is sent.
    Silence,
}

/// One part of a reply.
#[derive(Debug, Clone)]
pub(crate) enum Block {
    Think(String),
    Say(String),
    Call(Tool),
    Pause(Duration),
    /// The reply stops here and the connection stays open.
    Hang,
}

/// A tool by its function; each program has another name for it.
#[derive(Debug, Clone)]
pub(crate) enum Tool {
    Shell(String),
    Write {
        path: String,
        content: String,
    },
    /// A tool by its name, whether the program offers it or not.
    Named {
        name: String,
        arguments: Value,
    },
}

/// An error response.
#[derive(Debug, Clone, Default)]
pub(crate) struct ErrorReply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// Replaces the default message of this status.
    pub(crate) message: Option<String>,
    /// Additional fields of the error object.
    pub(crate) fields: Vec<(String, Value)>,
}

pub(crate) fn say(text: impl Into<String>) -> Block {
    Block::Say(text.into())
}

pub(crate) fn think(text: impl Into<String>) -> Block {
    Block::Think(text.into())
}

pub(crate) fn call_shell(command: impl Into<String>) -> Block {
    Block::Call(Tool::Shell(command.into()))
}

pub(crate) fn call_write(path: &Path, content: &str) -> Block {
    Block::Call(Tool::Write {
        path: path.display().to_string(),
        content: content.to_owned(),
    })
}

pub(crate) fn call_named(name: &str, arguments: Value) -> Block {
    Block::Call(Tool::Named {
        name: name.to_owned(),
        arguments,
    })
}

impl ErrorReply {
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    pub(crate) fn header(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }

    /// Adds a field to the error object.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn with_message(mut self, message: &str) -> Self {
        self.message = Some(message.to_owned());
        self
    }
}

/// A tool call with the name and the arguments that the program expects.
pub(super) struct NamedCall {
    pub(super) name: String,
    pub(super) arguments: Arguments,
}

pub(super) enum Arguments {
    Json(Value),
    /// The Responses API has tools that take a text.
    Text(String),
}

impl NamedCall {
    pub(super) fn json(&self) -> Value {
        match &self.arguments {
            Arguments::Json(value) => value.clone(),
            Arguments::Text(text) => json!({ "input": text }),
        }
    }
}

impl Tool {
    /// Returns the call for a program that offers these tools.
    pub(super) fn named(&self, offered: &[String]) -> NamedCall {
        let first = |names: &[&str]| {
            let known = names.iter().find(|name| offered.iter().any(|o| o == *name));
            known.map_or_else(|| names[0].to_owned(), ToString::to_string)
        };
        match self {
            Self::Named { name, arguments } => NamedCall {
                name: name.clone(),
                arguments: Arguments::Json(arguments.clone()),
            },
            Self::Shell(command) => {
                let name = first(&["Bash", "exec_command", "run_shell_command", "bash", "shell"]);
                let arguments = match name.as_str() {
                    "exec_command" => json!({ "cmd": command }),
                    "shell" => json!({ "command": ["bash", "-lc", command] }),
                    _ => json!({ "command": command, "description": "Run a command" }),
                };
                NamedCall {
                    name,
                    arguments: Arguments::Json(arguments),
                }
            }
            Self::Write { path, content } => {
                let name = first(&["Write", "write_file", "create", "write", "apply_patch"]);
                let arguments = match name.as_str() {
                    "create" => Arguments::Json(json!({ "path": path, "file_text": content })),
                    "write" => Arguments::Json(json!({ "filePath": path, "content": content })),
                    "apply_patch" => Arguments::Text(patch(path, content)),
                    _ => Arguments::Json(json!({ "file_path": path, "content": content })),
                };
                NamedCall { name, arguments }
            }
        }
    }
}

fn patch(path: &str, content: &str) -> String {
    let lines: String = content.lines().map(|line| format!("+{line}\n")).collect();
    format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch")
}
