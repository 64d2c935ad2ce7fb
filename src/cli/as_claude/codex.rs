//! Translates Codex output like ralphex's own wrapper: messages always, commands only with `CODEX_VERBOSE=1`, reasoning
//! never. `CODEX_MODEL` and `CODEX_SANDBOX` set the model and sandbox.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::agent::{Invocation, StdinSource, Terminal};
use crate::config::Settings;
use crate::event::ProcessEnd;

use super::translate::{SessionResult, Translator, failure_of};

pub(super) const NAME: &str = "codex";
const SANDBOX: &str = "danger-full-access";

pub(super) fn call(program: PathBuf, settings: &Settings, prompt_file: &Path) -> Invocation {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let sandbox = set("CODEX_SANDBOX").unwrap_or_else(|| SANDBOX.to_owned());
    let mut args: Vec<OsString> = ["exec", "--json", "--skip-git-repo-check", "--sandbox", &sandbox]
        .map(OsString::from)
        .to_vec();
    if let Some(model) = super::model_of(settings, NAME).or_else(|| set("CODEX_MODEL")) {
        args.extend(["--model".into(), model.into()]);
    }
    let adapter = settings.adapters.get(NAME);
    args.extend(
        adapter
            .iter()
            .flat_map(|adapter| adapter.args.iter().map(OsString::from)),
    );
    // stdin accepts any prompt unchanged.
    args.push("-".into());
    Invocation {
        program,
        args,
        stdin: StdinSource::PromptFile(prompt_file.to_owned()),
        terminal: Terminal::Pipe,
        usage_file: None,
    }
}

pub(super) struct CodexTranslator {
    verbose: bool,
    finished: bool,
    failure: Option<String>,
    result: SessionResult,
}

impl CodexTranslator {
    pub(super) fn new() -> Self {
        Self::with_verbosity(std::env::var("CODEX_VERBOSE").is_ok_and(|value| value == "1"))
    }

    fn with_verbosity(verbose: bool) -> Self {
        Self {
            verbose,
            finished: false,
            failure: None,
            result: SessionResult::default(),
        }
    }

    fn item(&mut self, item: &Value, texts: &mut Vec<String>) {
        match item["type"].as_str() {
            Some("agent_message") => {
                if let Some(text) = item["text"].as_str().filter(|text| !text.is_empty()) {
                    self.result.text = text.to_owned();
                    texts.push(format!("{text}\n"));
                }
            }
            Some("command_execution") if self.verbose => {
                let fields = [&item["command"], &item["aggregated_output"]];
                texts.extend(
                    fields
                        .into_iter()
                        .filter_map(Value::as_str)
                        .filter(|text| !text.is_empty())
                        .map(|text| format!("{}\n", text.trim_end_matches('\n'))),
                );
            }
            _ => {}
        }
    }
}

impl Translator for CodexTranslator {
    fn line(&mut self, line: &str, texts: &mut Vec<String>) {
        let Ok(event) = serde_json::from_str::<Value>(line) else {
            return;
        };
        match event["type"].as_str() {
            Some("thread.started") => self.result.session = event["thread_id"].as_str().map(str::to_owned),
            Some("item.completed") => self.item(&event["item"], texts),
            Some("turn.completed") => {
                (self.finished, self.failure) = (true, None);
                self.result.usage.prompt_tokens = event["usage"]["input_tokens"].as_u64();
                self.result.usage.completion_tokens = event["usage"]["output_tokens"].as_u64();
            }
            Some("turn.failed") => {
                let message = event["error"]["message"].as_str().unwrap_or("the turn failed");
                (self.finished, self.failure) = (true, Some(message.to_owned()));
            }
            _ => {}
        }
    }

    fn end(&mut self, end: ProcessEnd, stderr: &str, _texts: &mut Vec<String>) -> SessionResult {
        let mut result = std::mem::take(&mut self.result);
        let incomplete = (!self.finished).then(|| "codex ended before its turn was completed".to_owned());
        let reported = self.failure.take();
        result.failure = reported.or_else(|| failure_of(end, stderr)).or(incomplete);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &[&str] = &[
        r#"{"type":"thread.started","thread_id":"t1"}"#,
        r#"{"type":"turn.started"}"#,
        r#"{"type":"item.completed","item":{"type":"reasoning","text":"hm"}}"#,
        r#"{"type":"item.started","item":{"type":"command_execution","command":"ls"}}"#,
        r#"{"type":"item.completed","item":{"type":"command_execution","command":"ls","aggregated_output":"a\n"}}"#,
        r#"{"type":"item.completed","item":{"type":"agent_message","text":"fixed the bug"}}"#,
        r#"{"type":"turn.completed","usage":{"input_tokens":3,"output_tokens":2}}"#,
    ];

    fn read(verbose: bool, lines: &[&str], code: i32) -> (Vec<String>, SessionResult) {
        let (mut codex, mut texts) = (CodexTranslator::with_verbosity(verbose), Vec::new());
        lines.iter().for_each(|line| codex.line(line, &mut texts));
        let result = codex.end(ProcessEnd::Exited { code }, "", &mut texts);
        (texts, result)
    }

    #[test]
    fn messages_always_and_commands_only_if_verbose() {
        let (texts, result) = read(false, SESSION, 0);
        assert_eq!(texts, ["fixed the bug\n"]);
        assert_eq!((result.failure, result.session.as_deref()), (None, Some("t1")));
        let (texts, _) = read(true, SESSION, 0);
        assert_eq!(texts, ["ls\n", "a\n", "fixed the bug\n"]);
    }

    #[test]
    fn failed_or_truncated_sessions_are_failures() {
        let failed = [r#"{"type":"turn.failed","error":{"message":"401"}}"#];
        assert_eq!(read(false, &failed, 0).1.failure.as_deref(), Some("401"));
        assert!(read(false, &SESSION[..6], 0).1.failure.is_some(), "cut off");
        assert!(read(false, SESSION, 1).1.failure.is_some());
        let after_retry = [r#"{"type":"error","message":"Reconnecting... 1/5"}"#, SESSION[6]];
        assert_eq!(read(false, &after_retry, 0).1.failure, None);
    }
}
