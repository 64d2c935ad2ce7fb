//! What a worker runs: only tasks of allowed repositories, and only signed ones if it has a list of signers.

use std::path::PathBuf;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::types::TaskRules;

/// The namespace of signatures.
pub(crate) const NAMESPACE: &str = "ralph-fleet";

/// The rules of one worker.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trust {
    /// Patterns of repositories, in which `*` stands for any text. Empty allows all.
    pub(crate) repositories: Vec<String>,
    /// A file in the format of `ssh-keygen`; without it, unsigned plans run.
    pub(crate) signers: Option<PathBuf>,
}

impl Trust {
    /// Returns why a task must not run here.
    pub(crate) async fn refusal(&self, rules: &TaskRules, submitted_by: &str) -> Option<String> {
        let repo = &rules.repo;
        if !self.repositories.is_empty() && !self.repositories.iter().any(|pattern| matches(pattern, repo)) {
            return Some(format!("this worker does not run tasks of {repo} (--allow-repo)"));
        }
        if let Some(missing) = rules.secrets.iter().find(|name| std::env::var_os(name).is_none()) {
            return Some(format!("this worker does not have the secret {missing}"));
        }
        let signers = self.signers.as_ref()?;
        let Some(signature) = &rules.signature else {
            return Some("this worker runs only signed plans (--signers)".to_owned());
        };
        match verify(signers, submitted_by, signature, &rules.signed_text()).await {
            Ok(()) => None,
            Err(why) => Some(format!("the signature of the plan is not valid: {why}")),
        }
    }
}

async fn verify(signers: &PathBuf, identity: &str, signature: &str, text: &str) -> Result<(), String> {
    let lost = |error: std::io::Error| format!("ssh-keygen: {error}");
    let file = std::env::temp_dir().join(format!("ralph-signature-{}-{}", std::process::id(), text.len()));
    std::fs::write(&file, signature).map_err(lost)?;
    let mut child = Command::new("ssh-keygen")
        .args(["-Y", "verify", "-q", "-n", NAMESPACE, "-I", identity, "-s"])
        .arg(&file)
        .arg("-f")
        .arg(signers)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(lost)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A signature that cannot be parsed ends the program before it reads.
        let _ = stdin.write_all(text.as_bytes()).await;
    }
    let output = child.wait_with_output().await.map_err(lost)?;
    let _ = std::fs::remove_file(&file);
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// Whether a text matches a pattern in which `*` stands for any text.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|left| {
            let mut ends = left.char_indices().map(|(at, _)| at).chain([left.len()]);
            ends.any(|at| matches(rest, &left[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_the_whole_repository() {
        let allowed = "git@host:team/*.git";
        assert!(matches(allowed, "git@host:team/billing.git"));
        assert!(!matches(allowed, "git@host:other/billing.git"));
        assert!(!matches(allowed, "https://evil/git@host:team/billing.git"));
        assert!(!matches(allowed, "git@host:team/billing.git/evil"));
        assert!(matches("*", "anything") && matches("", "") && !matches("", "x"));
    }
}
