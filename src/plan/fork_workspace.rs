//! The directory of a fork: a worktree of the user's repository, or an empty directory outside of git.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::git::Repository;
use super::worktree::{cache_directory, check_space};
use crate::process::Supervisors;
use crate::store::{Project, id_from_path};

/// A directory that waits for the files of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForkWorkspace {
    /// The project root.
    pub(crate) root: PathBuf,
    /// The directory in which the agent runs.
    pub(crate) workspace: PathBuf,
    /// The branch of the worktree.
    pub(crate) branch: Option<String>,
}

/// What a directory is created for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ForkWorkspaceRequest<'a> {
    /// The project of the run that is forked.
    pub(crate) project: &'a Project,
    /// The directory in which its agent ran.
    pub(crate) workspace: &'a Path,
    /// The name of the worktree and its branch.
    pub(crate) name: &'a str,
    pub(crate) into: Option<&'a Path>,
    /// The worktree starts at the commit that was checked out then, as far as git remembers.
    pub(crate) at: Timestamp,
}

impl ForkWorkspaceRequest<'_> {
    /// Creates the directory.
    pub(crate) fn create(self, supervisors: &Supervisors) -> Result<ForkWorkspace, String> {
        let Self {
            project,
            workspace,
            name,
            into,
            at,
        } = self;
        let path = match into {
            Some(path) => path.to_owned(),
            None => default_directory(project, name)?,
        };
        let is_free = fs::read_dir(&path).map_or(true, |mut entries| entries.next().is_none());
        if !is_free {
            return Err(format!("{} is not empty", path.display()));
        }
        let parent = path.parent().unwrap_or(Path::new("/"));
        let cannot_create = |error| format!("cannot create {}: {error}", path.display());
        fs::create_dir_all(parent).map_err(cannot_create)?;
        check_space(parent)?;
        let path = fs::canonicalize(parent)
            .map_err(cannot_create)?
            .join(path.file_name().unwrap_or_default());
        let repository = Repository::open("git".into(), supervisors.clone(), project.root());
        let worktree = match repository.filter(|repository| project.root().starts_with(repository.root())) {
            Some(repository) => add_worktree(&repository, &path, name, at)?,
            None => None,
        };
        let (top, branch) = match worktree {
            Some((top, branch)) => (top, Some(branch)),
            None => (project.root().to_owned(), None),
        };
        let root = path.join(project.root().strip_prefix(&top).unwrap_or(Path::new("")));
        let below = fs::canonicalize(workspace).unwrap_or_else(|_| workspace.to_owned());
        let below = below.strip_prefix(project.root()).unwrap_or(Path::new(""));
        let workspace = root.join(below);
        fs::create_dir_all(&workspace).map_err(cannot_create)?;
        Ok(ForkWorkspace {
            // The joined empty path would end with a slash.
            root: root.components().collect(),
            workspace: workspace.components().collect(),
            branch,
        })
    }
}

/// Adds a worktree; returns the top of the user's checkout and the new branch. `None` if there is no commit yet.
fn add_worktree(
    repository: &Repository,
    path: &Path,
    name: &str,
    at: Timestamp,
) -> Result<Option<(PathBuf, String)>, String> {
    let Some(commit) = repository.head_at(at) else {
        return Ok(None);
    };
    let branch = format!("ralph/{name}");
    repository
        .add_worktree(path, Some(&branch), &commit)
        .map_err(|error| error.to_string())?;
    let top = fs::canonicalize(repository.root()).unwrap_or_else(|_| repository.root().to_owned());
    Ok(Some((top, branch)))
}

fn default_directory(project: &Project, name: &str) -> Result<PathBuf, String> {
    let cache = cache_directory().ok_or("neither XDG_CACHE_HOME nor HOME is set")?;
    let project = id_from_path(project.directory());
    Ok(cache.join("ralph/worktrees").join(project).join(name))
}
