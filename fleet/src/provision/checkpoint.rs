//! Saves a checkpoint: the commit and all files of the workspace, and the directory of the run, in one atomic push.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::{Copy, Git, JournalSummary, PARTS, ProvisionError};

/// What a checkpoint contains.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Saved {
    pub(crate) head: String,
    pub(crate) summary: JournalSummary,
}

/// Files of the run that a successor does not need.
const LEFT_OUT: [&str; 2] = [":(exclude)events.jsonl", ":(exclude)debug.log"];

/// Saves the copy that `file` describes, and updates the file.
pub(crate) fn save(file: &Path) -> Result<Saved, ProvisionError> {
    let mut copy = Copy::read(file)?;
    let work = Git::new(&copy.workspace);
    let head = work.run(&["rev-parse", "HEAD"])?;
    let tree = workspace_tree(&copy, &work, &head)?;
    let (segments, journal_bytes, summary) = new_segment(&copy, &work)?;
    let state = run_state(&copy, &work, &segments, &summary)?;
    let new = [
        (copy.branch_ref(), head.clone()),
        (copy.state_ref(PARTS[0]), head.clone()),
        (copy.state_ref(PARTS[1]), tree),
        (copy.state_ref(PARTS[2]), state),
    ];
    push(&copy, &work, &new)?;
    copy.refs = new.into_iter().collect();
    (copy.segments, copy.journal_bytes, copy.summary) = (segments, journal_bytes, summary.clone());
    copy.write(file)?;
    Ok(Saved { head, summary })
}

/// A commit of everything in the workspace that is not ignored.
fn workspace_tree(copy: &Copy, work: &Git, head: &str) -> Result<String, ProvisionError> {
    let index = copy.beside("index");
    let own = work.with_index(&index);
    if !index.exists() {
        own.run(&["read-tree", head])?;
    }
    own.run(&["add", "--all", "--", "."])?;
    for pattern in &copy.ship {
        let ignored = [
            "ls-files",
            "--others",
            "--ignored",
            "--exclude-standard",
            "--",
            pattern,
        ];
        if !own.run(&ignored)?.is_empty() {
            own.run(&["add", "--force", "--", pattern])?;
        }
    }
    let tree = own.run(&["write-tree"])?;
    work.run(&["commit-tree", &tree, "-p", head, "-m", "files of the workspace"])
}

/// The segments with what the journal has gained since the last checkpoint.
fn new_segment(copy: &Copy, work: &Git) -> Result<(Vec<String>, u64, JournalSummary), ProvisionError> {
    let path = copy.run_directory.join("events.jsonl");
    let unreadable = |error: std::io::Error| ProvisionError::File {
        path: path.clone(),
        why: error.to_string(),
    };
    let (mut segments, mut summary) = (copy.segments.clone(), copy.summary.clone());
    let mut file = match fs::File::open(&path) {
        Ok(file) => file,
        // The run has not started yet.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok((segments, copy.journal_bytes, summary));
        }
        Err(error) => return Err(unreadable(error)),
    };
    file.seek(SeekFrom::Start(copy.journal_bytes))
        .map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    // The last line may be incomplete if the run was killed.
    let complete = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    bytes.truncate(complete);
    if !bytes.is_empty() {
        summary.add(&bytes);
        segments.push(work.run_with(&["hash-object", "-w", "--stdin"], Some(&bytes))?);
    }
    Ok((segments, copy.journal_bytes + complete as u64, summary))
}

/// A commit of the directory of the run, with the journal as segments.
fn run_state(
    copy: &Copy,
    work: &Git,
    segments: &[String],
    summary: &JournalSummary,
) -> Result<String, ProvisionError> {
    let git_directory = work.run(&["rev-parse", "--absolute-git-dir"])?;
    let state = Git::new(&copy.run_directory)
        .with("GIT_DIR", git_directory)
        .with("GIT_WORK_TREE", &copy.run_directory)
        .with_index(&copy.beside("state-index"));
    if copy.run_directory.is_dir() {
        let all: Vec<&str> = ["add", "--all", "--force", "--", "."]
            .into_iter()
            .chain(LEFT_OUT)
            .collect();
        state.run(&all)?;
    }
    let entries: String = segments
        .iter()
        .enumerate()
        .map(|(index, blob)| format!("100644 {blob}\tjournal/{:06}\n", index + 1))
        .collect();
    let index_only = work.with_index(&copy.beside("state-index"));
    index_only.run_with(
        &["update-index", "--add", "--index-info"],
        Some(entries.as_bytes()),
    )?;
    let tree = index_only.run(&["write-tree"])?;
    let message = format!(
        "{}\n\nRalph-Iteration: {}\nRalph-Seq: {}\nRalph-Attempt: {}\nRalph-Worker: {}\nRalph-Cost: {}\n",
        copy.run_id, summary.iteration, summary.seq, copy.attempt, copy.worker, summary.cost_usd
    );
    let mut commit = vec!["commit-tree", &tree, "-m", &message];
    let before = copy
        .refs
        .get(&copy.state_ref(PARTS[2]))
        .filter(|commit| !commit.is_empty());
    if let Some(before) = before {
        commit.extend(["-p", before]);
    }
    work.run(&commit)
}

/// Moves all refs or none. Each lease names the value that this copy knows; `+` or `--force` would defeat it.
fn push(copy: &Copy, work: &Git, new: &[(String, String)]) -> Result<(), ProvisionError> {
    let known = |name: &str| copy.refs.get(name).map_or("", String::as_str);
    let leases: Vec<String> = new
        .iter()
        .map(|(name, _)| format!("--force-with-lease={name}:{}", known(name)))
        .collect();
    let moves: Vec<String> = new.iter().map(|(name, new)| format!("{new}:{name}")).collect();
    let mut args = vec!["push", "--quiet", "--atomic"];
    args.extend(leases.iter().map(String::as_str));
    args.push(&copy.remote);
    args.extend(moves.iter().map(String::as_str));
    let (ok, text) = work.try_run(&args)?;
    if ok {
        return Ok(());
    }
    // The connection may have been lost after the push, and a refusal can have other reasons than a newer checkpoint.
    let names: Vec<&str> = new.iter().map(|(name, _)| name.as_str()).collect();
    let now = remote_refs(work, &copy.remote, &names).map_err(|error| ProvisionError::NotSaved {
        why: error.to_string(),
    })?;
    let at = |name: &str| {
        now.iter()
            .find(|(known, _)| known == name)
            .map_or("", |(_, value)| value)
    };
    if new.iter().all(|(name, new)| at(name) == new) {
        return Ok(());
    }
    if new.iter().all(|(name, _)| at(name) == known(name)) {
        let line = text
            .lines()
            .rev()
            .find(|line| line.contains("rejected") || line.contains("fatal"));
        let why = super::redacted(line.unwrap_or("the remote refused the push").trim());
        return Err(ProvisionError::NotSaved { why });
    }
    Err(ProvisionError::Fenced)
}

/// The refs at the remote, as pairs of name and value.
pub(super) fn remote_refs(
    work: &Git,
    remote: &str,
    patterns: &[&str],
) -> Result<Vec<(String, String)>, ProvisionError> {
    let mut args = vec!["ls-remote", "--quiet", remote];
    args.extend(patterns);
    let text = work.run(&args)?;
    let pairs = text.lines().filter_map(|line| line.split_once('\t'));
    Ok(pairs
        .map(|(value, name)| (name.to_owned(), value.to_owned()))
        .collect())
}
