//! What `ralph review` judges: the changes of a run, of some of its iterations, or between two git revisions.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::files::{self, ReadRule};
use crate::process::{Bounds, GitCommand, ProcessError, run_git};
use crate::run::ReviewCheckout;
use crate::snapshot::SnapshotId;
use crate::store::LATEST;

use super::context::Context;
use super::error::CliError;
use super::review_error::ReviewError;
use super::run_lookup::resolve_run;
use super::snapshots::{RunSnapshots, compared_snapshots, parse_selection};

/// A change to review.
pub(super) struct ReviewSubject {
    /// For the user: the run or the revisions.
    pub(super) name: String,
    /// What the change was meant to do, as far as known.
    pub(super) task: String,
    pub(super) patch: String,
}

/// Larger changes are refused.
const MAX_PATCH: usize = 64 << 20;
const GIT: Bounds = Bounds {
    timeout: Duration::from_secs(120),
    grace: Duration::from_secs(1),
    max_bytes: MAX_PATCH,
};

/// Writes the files after the change into the checkout. `scratch` is for files of git.
pub(super) fn check_out(
    context: &Context,
    selection: &[String],
    checkout: &mut ReviewCheckout,
    scratch: &Path,
) -> Result<ReviewSubject, CliError> {
    if let [range] = selection
        && let Some((from, to)) = git_range(range)
    {
        let repository = Revisions {
            context,
            index: scratch.join("index"),
        };
        return repository.check_out(&from, &to, checkout);
    }
    let (run, range) = parse_selection(selection)?;
    let snapshots = RunSnapshots::of(run.as_deref(), &context.host)?;
    let (from, to) = compared_snapshots(&snapshots, range)?;
    let patch = snapshots.store.diff(from, to, &[])?;
    checkout
        .prepare(&snapshots.store, to, &patch)
        .map_err(ReviewError::Checkout)?;
    Ok(ReviewSubject {
        name: snapshot_name(&snapshots.id, selection, from, to),
        task: task_of(run.as_deref())?,
        patch: String::from_utf8_lossy(&patch).into_owned(),
    })
}

fn snapshot_name(id: &str, selection: &[String], from: SnapshotId, to: SnapshotId) -> String {
    let range = selection
        .iter()
        .find(|word| word.parse::<u64>().is_ok() || word.contains(".."));
    match (range, from == to) {
        (Some(range), _) => format!("run {id}, iterations {range}"),
        (None, true) => format!("run {id}, which changed nothing"),
        (None, false) => format!("run {id}"),
    }
}

/// The prompt of the first iteration.
fn task_of(run: Option<&Path>) -> Result<String, CliError> {
    let directory = resolve_run(Some(run.unwrap_or(Path::new(LATEST))))?;
    let prompt = files::read(&directory.join("iterations/0001/prompt.md"), ReadRule::PROMPT);
    Ok(prompt
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default())
}

/// `A..B`, unless both are numbers of iterations.
fn git_range(word: &str) -> Option<(String, String)> {
    let (from, to) = word.split_once("..")?;
    let to = to.trim_start_matches('.');
    let is_iteration =
        |text: &str| !text.is_empty() && text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_iteration(from) && is_iteration(to) {
        return None;
    }
    let name = |text: &str| {
        if text.is_empty() {
            "HEAD".to_owned()
        } else {
            text.to_owned()
        }
    };
    let (from, to) = (name(from), name(to));
    // Nothing that git would take for an option.
    (!from.starts_with('-') && !to.starts_with('-')).then_some((from, to))
}

/// Reads revisions of the user's repository. Its index, references and files stay as they are.
struct Revisions<'a> {
    context: &'a Context,
    /// An index of our own.
    index: PathBuf,
}

impl Revisions<'_> {
    fn check_out(
        &self,
        from: &str,
        to: &str,
        checkout: &mut ReviewCheckout,
    ) -> Result<ReviewSubject, CliError> {
        let (base, end) = (self.commit(from)?, self.commit(to)?);
        let patch = self.git(&[
            "diff",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--no-renames",
            &base,
            &end,
            "--",
        ])?;
        let range = format!("{base}..{end}");
        let messages = self.git(&["log", "--reverse", "--no-color", "--format=%B", &range, "--"])?;
        self.git(&["read-tree", &end])?;
        let directory = checkout.directory().to_owned();
        fs::create_dir_all(&directory).map_err(|source| CliError::Unwritable {
            path: directory.clone(),
            source,
        })?;
        let mut prefix = OsString::from("--prefix=");
        prefix.push(&directory);
        prefix.push("/");
        self.git_words(vec!["checkout-index".into(), "--all".into(), prefix])?;
        checkout.seal(&patch).map_err(ReviewError::Checkout)?;
        Ok(ReviewSubject {
            name: format!("{from}..{to}"),
            task: String::from_utf8_lossy(&messages).trim().to_owned(),
            patch: String::from_utf8_lossy(&patch).into_owned(),
        })
    }

    fn commit(&self, name: &str) -> Result<String, CliError> {
        let revision = format!("{name}^{{commit}}");
        let id = self.git(&["rev-parse", "--verify", "--quiet", &revision]);
        let id = id.map_err(|_| ReviewError::UnknownRevision {
            name: name.to_owned(),
        })?;
        Ok(String::from_utf8_lossy(&id).trim().to_owned())
    }

    fn git(&self, words: &[&str]) -> Result<Vec<u8>, CliError> {
        self.git_words(words.iter().map(Into::into).collect())
    }

    fn git_words(&self, args: Vec<OsString>) -> Result<Vec<u8>, CliError> {
        let what = args
            .first()
            .map(|word| word.to_string_lossy().into_owned())
            .unwrap_or_default();
        let top = self
            .context
            .repository()
            .unwrap_or_else(|| self.context.cwd.clone());
        let command = GitCommand {
            cwd: top,
            args,
            stdin: None,
            variables: vec![("GIT_INDEX_FILE".into(), self.index.clone().into())],
        };
        let failed = |why: String| CliError::from(ReviewError::Checkout(format!("git {what}: {why}")));
        let captured = run_git(Path::new("git"), self.context.host.supervisors(), command, GIT)
            .map_err(|error: ProcessError| failed(error.to_string()))?;
        match captured.end {
            Some(end) if end.success() && captured.stdout_omitted.is_none() => Ok(captured.stdout),
            Some(end) if end.success() => Err(failed("its output is too large".to_owned())),
            Some(_) => Err(failed(
                String::from_utf8_lossy(&captured.stderr).trim().to_owned(),
            )),
            None => Err(failed("timed out".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::git_range;

    #[test]
    fn ranges_of_numbers_are_iterations_and_others_are_revisions() {
        let range = |word: &str| git_range(word).map(|(from, to)| format!("{from} {to}"));
        assert_eq!(range("main..HEAD~2").as_deref(), Some("main HEAD~2"));
        assert_eq!(range("main..").as_deref(), Some("main HEAD"));
        assert_eq!(range("main...topic").as_deref(), Some("main topic"));
        assert_eq!(range("1234567..89abcde").as_deref(), Some("1234567 89abcde"));
        assert_eq!(
            (range("2..5"), range("20261115-2045"), range("--x..y")),
            (None, None, None)
        );
    }
}
