//! Finds the session id that the next iteration resumes.
//!
//! Sources in order of precedence: the driver's extractor hook, the transcript, well-known JSON keys in the output,
//! the driver's fallback hook.

use std::path::Path;

use super::host::HostRequest;
use super::{Driver, Supported};

impl Driver {
    /// The id of the session whose output is in this file. `from_transcript` is the id that the transcript reported.
    pub fn session_id_of(&self, output: &Path, from_transcript: Option<&str>) -> Option<String> {
        if self.supports.sessions == Supported::No {
            return None;
        }
        let extracted = || {
            self.session_hook(
                self.supports.session_extractor,
                "driver_extract_session_id_from_output",
                output,
            )
        };
        let fallback = || {
            self.session_hook(
                self.supports.session_fallback,
                "driver_fallback_session_id",
                output,
            )
        };
        extracted()
            .or_else(|| from_transcript.and_then(valid_id))
            .or_else(|| id_in_output(output))
            .or_else(fallback)
    }

    /// Runs a hook that prints a session id. A hook that fails, hangs or prints an invalid id counts as no id.
    fn session_hook(&self, support: Supported, hook: &str, output: &Path) -> Option<String> {
        if support == Supported::No {
            return None;
        }
        let request = HostRequest::Session { hook, output };
        let reply = self
            .host
            .send(&self.script, &self.variables.assignments(), request);
        let reply = crate::ok_or_log!(reply, "cannot run the hook {hook} of the driver")?;
        let (0, text) = reply.text(hook)? else {
            return None;
        };
        valid_id(&String::from_utf8_lossy(text))
    }
}

/// Accepts only plain ids, because the id becomes a command-line argument.
fn valid_id(id: &str) -> Option<String> {
    let id = id.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    let valid = !id.is_empty() && id.len() <= 200 && id.chars().all(plain) && !id.starts_with('-');
    valid.then(|| id.to_owned())
}

/// For agents without a known format: the value of a common session key in the last JSON line that has one.
fn id_in_output(output: &Path) -> Option<String> {
    const MAX_BYTES: u64 = 64 << 20;
    let file = crate::ok_or_log!(std::fs::File::open(output), "cannot look for a session")?;
    let mut text = Vec::new();
    let read = std::io::Read::read_to_end(&mut std::io::Read::take(file, MAX_BYTES), &mut text);
    crate::ok_or_log!(read, "cannot look for a session")?;
    let lines = text.rsplit(|byte| *byte == b'\n');
    let mut read = lines.filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
    read.find_map(|value| {
        let keys = [
            "/sessionId",
            "/metadata/session_id",
            "/session_id",
            "/sessionID",
            "/thread_id",
        ];
        keys.iter()
            .find_map(|key| value.pointer(key)?.as_str().and_then(valid_id))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_with_special_characters_are_rejected() {
        for id in ["", "-x", "a b", "$(id)", "a\nb", "../x/y", &"x".repeat(201)] {
            assert_eq!(valid_id(id), None, "{id}");
        }
        assert_eq!(valid_id(" ses_1-2.3:4\n").as_deref(), Some("ses_1-2.3:4"));
    }

    #[test]
    fn common_session_keys_are_found_in_any_output() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        for (text, id) in [
            (
                "noise\n{\"session_id\":\"a\"}\n{\"sessionId\":\"b\"}\n",
                Some("b"),
            ),
            ("{\"metadata\":{\"session_id\":\"m\"}}\n{}\n", Some("m")),
            ("{\"thread_id\":\"t\"}", Some("t")),
            ("{\"session_id\":\"$(x)\"}", None),
            ("plain text", None),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(id_in_output(&path).as_deref(), id, "{text}");
        }
        assert_eq!(id_in_output(Path::new("/nonexistent/file")), None);
    }
}
