//! Built-in notifications: on the desktop, through ntfy, and to a webhook. They run as hooks do, beside the loop.

use std::ffi::OsString;

use serde_json::{Value, json};

use crate::engine::HookKind;
use crate::event::{Interrupt, RunEvent, RunOutcome};
use crate::policy::{Notify, NotifyEvent};

use super::hooks::HookCommands;

/// The address and the content are passed on stdin, where other users of the machine cannot see them.
const SEND: &str = "exec curl --silent --show-error --fail --output /dev/null --proto =http,https \
                    --max-time 10 --retry 2 --config -";
#[cfg(target_os = "macos")]
const SHOW: &str = "exec osascript -e 'display notification (system attribute \"RALPH_HOOK_MESSAGE\") with title \
                    (system attribute \"RALPH_HOOK_TITLE\")'";
#[cfg(not(target_os = "macos"))]
const SHOW: &str = "exec notify-send --app-name=ralph -- \"$RALPH_HOOK_TITLE\" \"$RALPH_HOOK_MESSAGE\"";

/// A notification about one event.
pub(super) struct Notification<'a> {
    notify: &'a Notify,
    event: NotifyEvent,
    project: &'a str,
    /// One sentence.
    message: String,
    /// What hooks receive.
    document: Value,
}

/// A program that delivers a notification.
pub(super) struct Target {
    pub(super) name: String,
    pub(super) command: String,
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) stdin: Vec<u8>,
}

impl<'a> Notification<'a> {
    /// The notification about an event, if the user wants one. A user who stops a run knows about it.
    pub(super) fn of(
        kind: HookKind,
        event: &RunEvent,
        commands: &'a HookCommands,
        (message, document): (&str, Value),
    ) -> Option<Self> {
        let is_stopped_by_user = matches!(
            event,
            RunEvent::RunEnded {
                outcome: RunOutcome::Interrupted {
                    by: Interrupt::Int | Interrupt::Quit
                },
                ..
            }
        );
        let notified = HookKind::NOTIFIED.into_iter().find(|(known, _)| *known == kind);
        let (_, event) =
            notified.filter(|(_, event)| commands.notify.includes(*event) && !is_stopped_by_user)?;
        Some(Self {
            notify: &commands.notify,
            event,
            project: &commands.project,
            message: format!("{}: {message}", commands.project),
            document,
        })
    }

    pub(super) fn targets(self) -> Vec<Target> {
        let mut targets = Vec::new();
        if self.notify.desktop {
            let variables = [
                ("RALPH_HOOK_TITLE", self.title()),
                ("RALPH_HOOK_MESSAGE", self.message.clone()),
            ];
            targets.push(Target {
                name: "the desktop notification".to_owned(),
                command: SHOW.to_owned(),
                variables: variables
                    .map(|(name, value)| (name.into(), value.into()))
                    .to_vec(),
                stdin: Vec::new(),
            });
        }
        if let Some(address) = &self.notify.ntfy {
            let headers = [
                format!("Title: {}", ascii(&self.title())),
                format!("Tags: {}", self.tag()),
            ];
            targets.push(post("the notification by ntfy", address, &headers, &self.message));
        }
        if let Some(address) = &self.notify.webhook {
            let headers = ["Content-Type: application/json".to_owned()];
            let content = self.webhook_document().to_string();
            targets.push(post("the notification by webhook", address, &headers, &content));
        }
        targets
    }

    fn title(&self) -> String {
        format!("ralph: {}", self.project)
    }

    /// The ntfy tag, which is shown as an emoji.
    fn tag(&self) -> &'static str {
        match self.event {
            NotifyEvent::Done => "white_check_mark",
            NotifyEvent::Failed => "x",
            NotifyEvent::Ask => "question",
            NotifyEvent::Limit => "hourglass",
        }
    }

    /// The document of hooks, with the project and the sentence under the key that chat services read.
    fn webhook_document(&self) -> Value {
        let mut document = self.document.clone();
        document["event"] = json!(self.event.name());
        document["project"] = json!(self.project);
        document["text"] = json!(self.message);
        document
    }
}

/// A POST request.
fn post(name: &str, address: &str, headers: &[String], content: &str) -> Target {
    let mut config = format!("url = {}\nrequest = POST\n", quoted(address));
    for header in headers {
        config.push_str(&format!("header = {}\n", quoted(header)));
    }
    config.push_str(&format!("data-raw = {}\n", quoted(content)));
    Target {
        name: name.to_owned(),
        command: SEND.to_owned(),
        variables: Vec::new(),
        stdin: config.into_bytes(),
    }
}

/// A value in the configuration of curl.
fn quoted(value: &str) -> String {
    let mut quoted = "\"".to_owned();
    for c in value.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\0' => {}
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The text as a header, which consists of printable ASCII characters.
fn ascii(text: &str) -> String {
    text.chars()
        .map(|c| if matches!(c, ' '..='~') { c } else { '?' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_cannot_add_options() {
        let target = post("x", "https://a/b", &[], "done\"\nurl = \"file:///etc/passwd\\");
        let config = String::from_utf8(target.stdin).unwrap();
        assert_eq!(
            config,
            "url = \"https://a/b\"\nrequest = POST\ndata-raw = \"done\\\"\\nurl = \\\"file:///etc/passwd\\\\\"\n"
        );
    }
}
