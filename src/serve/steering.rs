//! Requests that change a run: commands through its inbox, as `ralph tell` sends them, and `ralph run --continue`.

use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::response::{ApiError, ApiResult};
use super::run_files::FoundRun;
use crate::event::{Command, CommandRequest};
use crate::store::{Inbox, Journal, id_from_path, is_running};

/// How long a resumed run may take to report an error before the request is answered.
const CONTINUE_CHECK: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(25);
const MAX_ID_LENGTH: usize = 64;
/// The end of an error message that is passed on.
const MAX_ERROR_BYTES: usize = 4096;

/// The body of a command request.
#[derive(Debug, Deserialize)]
pub(super) struct CommandBody {
    /// Given by the client, so that a repeated request is applied once.
    #[serde(default)]
    id: Option<String>,
    #[serde(flatten)]
    command: Command,
}

#[derive(Debug, Serialize)]
pub(super) struct Accepted {
    /// The id of the command. The journal has a `told` record with this id when the run has received it.
    id: String,
}

/// Adds a command to the inbox of a running run.
pub(super) fn send(run: &FoundRun, body: CommandBody) -> ApiResult<Accepted> {
    if let Command::Kill = body.command {
        return Err(ApiError::bad_request(
            "kill is not available here; use `ralph tell --kill`",
        ));
    }
    if let Command::Message { text } = &body.command
        && text.trim().is_empty()
    {
        return Err(ApiError::bad_request("the message is empty"));
    }
    let now = Timestamp::now();
    let id = match body.id {
        Some(id) if is_valid_id(&id) => format!("web-{id}"),
        Some(_) => {
            return Err(ApiError::bad_request(
                "the id must consist of at most 64 letters, digits and hyphens",
            ));
        }
        None => format!("web-{}-{}", now.as_nanosecond(), std::process::id()),
    };
    if !is_running(&run.directory) {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "the run is not running; it can be continued",
        ));
    }
    let request = CommandRequest {
        id: id.clone(),
        command: body.command,
    };
    Inbox::new(&run.directory)
        .put(request, now)
        .map_err(|error| ApiError::internal(&error))?;
    Ok(Accepted { id })
}

/// Starts `ralph run --continue` in a process group of its own, which survives the server.
pub(super) fn resume(run: &FoundRun) -> ApiResult<()> {
    use std::os::unix::process::CommandExt;

    if is_running(&run.directory) {
        return Err(ApiError::new(StatusCode::CONFLICT, "the run is running"));
    }
    let workspace = Journal::read(&run.journal())
        .ok()
        .and_then(|mut records| records.next())
        .and_then(|record| match record.event {
            crate::event::RunEvent::RunStarted(header) => Some(header.workspace),
            _ => None,
        });
    let workspace = workspace.ok_or_else(|| ApiError::bad_request("the journal of the run is damaged"))?;
    let program = std::env::current_exe().map_err(|error| ApiError::internal(&error))?;
    let errors = tempfile::tempfile().map_err(|error| ApiError::internal(&error))?;
    let error_output = errors.try_clone().map_err(|error| ApiError::internal(&error))?;
    // A closed terminal of the server must not end the run: a signal that is ignored at the start stays ignored.
    let mut child = Process::new("sh")
        .args([
            "-c",
            "trap '' HUP; exec \"$0\" run --continue \"$1\" --quiet --no-tui",
        ])
        .arg(&program)
        .arg(id_from_path(&run.directory))
        .current_dir(&workspace)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(error_output)
        .process_group(0)
        .spawn()
        .map_err(|error| ApiError::bad_request(format!("cannot start in {workspace}: {error}")))?;
    let deadline = Instant::now() + CONTINUE_CHECK;
    while Instant::now() < deadline && !is_running(&run.directory) {
        if let Ok(Some(status)) = child.try_wait() {
            return match status.success() {
                true => Ok(()),
                false => Err(ApiError::new(StatusCode::CONFLICT, error_text(errors))),
            };
        }
        std::thread::sleep(POLL);
    }
    // Reap it, or it stays a zombie as long as the server runs.
    let reap = std::thread::Builder::new().name("reap run".into());
    if let Err(error) = reap.spawn(move || child.wait()) {
        tracing::warn!(%error, "cannot start a thread that waits for the run");
    }
    Ok(())
}

fn error_text(mut errors: std::fs::File) -> String {
    use std::io::{Read, Seek};

    let mut bytes = Vec::new();
    let read = errors
        .rewind()
        .and_then(|()| errors.take(MAX_ERROR_BYTES as u64).read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    match read {
        Ok(_) if !text.is_empty() => text,
        _ => "the run could not be continued".to_owned(),
    }
}

fn is_valid_id(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= MAX_ID_LENGTH
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_cannot_contain_anything_that_means_something_elsewhere() {
        assert!(is_valid_id("a-1"));
        for id in ["", "a/b", "..", "a b", "ä", &"a".repeat(65)] {
            assert!(!is_valid_id(id), "{id}");
        }
    }
}
