//! The source of a plan while it is run: reads it again when it changes, sets marks, and removes those of agents.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::read::{PlanText, read_plan};
use super::source::{Source, set_marks, unmark};
use super::step::ReadTask;
use super::task::SourceTask;
use crate::process::Supervisors;

/// The source and what was last read from it.
pub(crate) struct PlanFile {
    source: Source,
    supervisors: Supervisors,
    cwd: PathBuf,
    tasks: Vec<SourceTask>,
    /// Tasks that were marked as done before the plan started.
    done_before: BTreeSet<String>,
    /// The commands that the user has allowed; `None` if all are.
    allowed_gates: Option<BTreeSet<String>>,
    modified: Option<SystemTime>,
    /// The last warning, which is not repeated.
    last_warnings: Vec<String>,
}

/// What reading the source again has shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reread {
    pub(super) changed: bool,
    pub(super) warnings: Vec<String>,
}

/// Which gates of tasks that are added later may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewGates {
    Allowed,
    /// Only commands that were in the source at the start.
    Refused,
}

impl PlanFile {
    pub(super) fn new(
        source: Source,
        text: PlanText,
        done_before: Option<BTreeSet<String>>,
        new_gates: NewGates,
        place: (&Supervisors, &Path),
    ) -> Self {
        let marked = || {
            text.tasks
                .iter()
                .filter(|task| task.done)
                .map(|task| task.task.id.clone())
                .collect()
        };
        let gates = text.tasks.iter().flat_map(|task| task.task.gates.iter().cloned());
        let mut file = Self {
            done_before: done_before.unwrap_or_else(marked),
            allowed_gates: (new_gates == NewGates::Refused).then(|| gates.collect()),
            source,
            supervisors: place.0.clone(),
            cwd: place.1.to_owned(),
            tasks: text.tasks,
            modified: None,
            last_warnings: Vec::new(),
        };
        file.modified = file.modified_now();
        file
    }

    pub(super) fn done_before(&self) -> &BTreeSet<String> {
        &self.done_before
    }

    /// The tasks for the plan. What the source marks counts only if it was marked before the start.
    pub(super) fn read_tasks(&self) -> Vec<ReadTask> {
        let tasks = self.tasks.iter().map(|task| ReadTask {
            task: task.task.clone(),
            done: self.done_before.contains(&task.task.id),
        });
        tasks.collect()
    }

    fn modified_now(&self) -> Option<SystemTime> {
        match &self.source {
            Source::File(path) => fs::metadata(path).ok()?.modified().ok(),
            Source::Command(_) => None,
        }
    }

    /// Whether the file was modified since it was last read.
    pub(super) fn has_changed(&self) -> bool {
        matches!(self.source, Source::File(_)) && self.modified_now() != self.modified
    }

    /// Reads the source again. An error is a warning: the plan continues with the tasks that it has.
    pub(super) fn reread(&mut self, done: &BTreeSet<String>) -> Result<Reread, String> {
        self.modified = self.modified_now();
        let text = match read_plan(&self.source, &self.supervisors, &self.cwd) {
            Ok(text) => text,
            Err(error) => {
                let warning = format!("the plan cannot be read again: {error}");
                let is_new = self.last_warnings != [warning.clone()];
                self.last_warnings = vec![warning.clone()];
                return if is_new {
                    Err(warning)
                } else {
                    Ok(Reread::default())
                };
            }
        };
        self.remove_foreign_marks(&text, done)?;
        let mut warnings = Vec::new();
        let known: BTreeSet<&str> = self.tasks.iter().map(|task| task.task.id.as_str()).collect();
        let mut tasks = text.tasks;
        tasks.retain(|task| {
            let allowed = |gate: &String| self.allowed_gates.as_ref().is_none_or(|allowed| allowed.contains(gate));
            let is_allowed = known.contains(task.task.id.as_str()) || task.task.gates.iter().all(allowed);
            if !is_allowed {
                warnings.push(format!(
                    "the new task {} has a gate that you have not allowed; to run it: ralph plan run --continue",
                    task.task.id
                ));
            }
            is_allowed
        });
        let content = |tasks: &[SourceTask]| tasks.iter().map(|task| task.task.clone()).collect::<Vec<_>>();
        let changed = content(&tasks) != content(&self.tasks);
        self.tasks = tasks;
        if warnings == self.last_warnings {
            warnings.clear();
        } else {
            self.last_warnings.clone_from(&warnings);
        }
        Ok(Reread { changed, warnings })
    }

    fn remove_foreign_marks(&mut self, text: &PlanText, done: &BTreeSet<String>) -> Result<(), String> {
        let Source::File(path) = &self.source else {
            return Ok(());
        };
        let done: BTreeSet<String> = done.union(&self.done_before).cloned().collect();
        let restored = unmark(&text.text, &text.tasks, &done);
        write_changes(path, &text.text, &restored)?;
        self.modified = self.modified_now();
        Ok(())
    }

    /// Marks the tasks that are done.
    pub(super) fn mark(&mut self, done: &BTreeSet<String>) -> Result<(), String> {
        let Source::File(path) = self.source.clone() else {
            return Ok(());
        };
        let text = read_plan(&self.source, &self.supervisors, &self.cwd)
            .map_err(|error| format!("a task is done, but cannot be marked: {error}"))?;
        let done: BTreeSet<String> = done.union(&self.done_before).cloned().collect();
        let marked = set_marks(&text.text, &text.tasks, &done);
        write_changes(&path, &text.text, &marked)?;
        self.modified = self.modified_now();
        Ok(())
    }
}

/// Writes only the bytes that differ, so that an edit at the same time is not lost. If the length changes, the file is
/// written as a whole.
fn write_changes(path: &Path, old: &str, new: &str) -> Result<(), String> {
    if old == new {
        return Ok(());
    }
    let write = || {
        if old.len() != new.len() {
            return fs::write(path, new);
        }
        let file = OpenOptions::new().write(true).open(path)?;
        let bytes = old.bytes().zip(new.bytes()).enumerate();
        for (offset, (_, byte)) in bytes.filter(|(_, (old, new))| old != new) {
            file.write_all_at(&[byte], offset as u64)?;
        }
        file.sync_data()
    };
    write().map_err(|error| format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::OrphanRule;

    fn plan_file(path: &Path, new_gates: NewGates) -> PlanFile {
        let supervisors = Supervisors::current(OrphanRule::Marked);
        let source = Source::File(path.to_owned());
        let cwd = path.parent().expect("a directory").to_owned();
        let text = read_plan(&source, &supervisors, &cwd).expect("a plan");
        PlanFile::new(source, text, None, new_gates, (&supervisors, &cwd))
    }

    #[test]
    fn marks_of_agents_are_removed_and_their_other_edits_are_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("PLAN.md");
        fs::write(&path, "- [x] One\r\n- [ ] Two\n- [ ] Three\n").expect("a plan");
        let mut file = plan_file(&path, NewGates::Refused);
        let ids: Vec<String> = file.read_tasks().into_iter().map(|read| read.task.id).collect();
        fs::write(
            &path,
            "- [ ] One\r\n- [x] Two\nA note.\n- [X] Three\n- [x] Four\n",
        )
        .expect("an edit");
        assert!(file.has_changed());
        let done = BTreeSet::from([ids[1].clone()]);
        let read = file.reread(&done).expect("a plan");
        assert!(read.changed && read.warnings.is_empty());
        let text = || fs::read_to_string(&path).expect("the plan");
        assert_eq!(
            text(),
            "- [ ] One\r\n- [x] Two\nA note.\n- [ ] Three\n- [ ] Four\n"
        );
        file.mark(&done).expect("a mark");
        assert_eq!(
            text(),
            "- [x] One\r\n- [x] Two\nA note.\n- [ ] Three\n- [ ] Four\n"
        );
        assert!(!file.has_changed(), "own changes are known");
    }

    #[test]
    fn new_tasks_with_new_commands_wait_for_the_user() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("PLAN.md");
        fs::write(&path, "- [ ] One\n  - gate: make\n").expect("a plan");
        let mut file = plan_file(&path, NewGates::Refused);
        let edited = "- [ ] One\n  - gate: true\n- [ ] Two\n  - gate: make\n- [ ] Three\n  - gate: rm x\n";
        fs::write(&path, edited).expect("an edit");
        let read = file.reread(&BTreeSet::new()).expect("a plan");
        assert_eq!((read.warnings.len(), file.read_tasks().len()), (1, 2), "{read:?}");
        assert_eq!(
            file.reread(&BTreeSet::new()),
            Ok(Reread::default()),
            "the warning is not repeated"
        );
        fs::write(&path, "- [ ]\n").expect("an edit");
        assert!(
            file.reread(&BTreeSet::new())
                .is_err_and(|warning| warning.contains("PLAN.md:1: a task without"))
        );
        assert_eq!(
            file.read_tasks().len(),
            2,
            "the plan continues with the tasks that it has"
        );
    }
}
