//! The session that an iteration left behind, for the next one to resume: the driver's extractor, then the transcript,
//! then the driver's last resort. The first that says something wins.

use std::path::Path;

use super::host::Task;
use super::{Driver, Support};

impl Driver {
    /// The id of the session whose output is in this file. `told` is what the transcript said.
    pub fn session_of(&self, output: &Path, told: Option<&str>) -> Option<String> {
        if self.supports.sessions == Support::No {
            return None;
        }
        let extracted = || {
            self.hook(
                self.supports.session_extractor,
                "driver_extract_session_id_from_output",
                output,
            )
        };
        let fallback = || {
            self.hook(
                self.supports.session_fallback,
                "driver_fallback_session_id",
                output,
            )
        };
        extracted()
            .or_else(|| told.and_then(valid))
            .or_else(|| named_in(output))
            .or_else(fallback)
    }

    /// A hook that fails, hangs or says nonsense has found nothing.
    fn hook(&self, support: Support, hook: &str, output: &Path) -> Option<String> {
        if support == Support::No {
            return None;
        }
        let task = Task::Session { hook, output };
        let answer = self
            .host
            .ask(&self.script, &self.globals.variables(), task)
            .ok()?;
        let (0, text) = answer.text(hook)? else {
            return None;
        };
        valid(&String::from_utf8_lossy(text))
    }
}

/// An id reaches a command line, so it may only look like one.
fn valid(id: &str) -> Option<String> {
    let id = id.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    let fine = !id.is_empty() && id.len() <= 200 && id.chars().all(plain) && !id.starts_with('-');
    fine.then(|| id.to_owned())
}

/// For agents whose format is not known: the keys by which agents call their session, in the last line that has one.
fn named_in(output: &Path) -> Option<String> {
    const MOST: u64 = 64 << 20;
    let file = std::fs::File::open(output).ok()?;
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(file, MOST), &mut text).ok()?;
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
            .find_map(|key| value.pointer(key)?.as_str().and_then(valid))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_looks_like_an_id_is_one() {
        for id in ["", "-x", "a b", "$(id)", "a\nb", "../x/y", &"x".repeat(201)] {
            assert_eq!(valid(id), None, "{id}");
        }
        assert_eq!(valid(" ses_1-2.3:4\n").as_deref(), Some("ses_1-2.3:4"));
    }

    #[test]
    fn the_usual_keys_are_found_in_any_output() {
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
            assert_eq!(named_in(&path).as_deref(), id, "{text}");
        }
        assert_eq!(named_in(Path::new("/nonexistent/file")), None);
    }
}
