//! Gives the TUI access to the files of a run.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::event::{Record, RunHeader};
use crate::process::Supervisors;
use crate::run::Host;
use crate::snapshot::{SnapshotId, SnapshotStore};
use crate::store::{attempt_directory_name, record_seq};
use crate::ui::tui::{AttemptId, OpenRunFiles, RunFiles};

/// The files in a run directory.
#[derive(Clone)]
pub(super) struct StoredRunFiles {
    directory: PathBuf,
    supervisors: Supervisors,
}

impl StoredRunFiles {
    pub(super) fn at(directory: PathBuf, host: &Host) -> Self {
        let supervisors = host.supervisors().clone();
        Self {
            directory,
            supervisors,
        }
    }

    /// Opens the files of the run with a header.
    pub(super) fn of_header(host: &Host) -> OpenRunFiles {
        let supervisors = host.supervisors().clone();
        Box::new(move |header: &RunHeader| {
            let directory = header.directory.as_deref().map(PathBuf::from);
            Box::new(Self {
                directory: directory.unwrap_or_default(),
                supervisors: supervisors.clone(),
            })
        })
    }

    fn iteration(&self, which: AttemptId) -> PathBuf {
        let name = attempt_directory_name(which.iteration, which.attempt);
        self.directory.join("iterations").join(name)
    }
}

impl RunFiles for StoredRunFiles {
    /// Skips records outside the range without parsing them, to read long journals fast.
    fn replay(&self, seqs: RangeInclusive<u64>, on_record: &mut dyn FnMut(&Record)) -> io::Result<()> {
        let file = File::open(self.directory.join("events.jsonl"))?;
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let mut line = Vec::new();
        loop {
            line.clear();
            if reader.read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            let seq = record_seq(&line);
            if seq.is_some_and(|seq| seq > *seqs.end()) {
                return Ok(());
            }
            if seq.is_none_or(|seq| seqs.contains(&seq))
                && let Ok(record) = serde_json::from_slice::<Record>(&line)
                && seqs.contains(&record.seq)
            {
                on_record(&record);
            }
        }
    }

    fn prompt(&self, which: AttemptId) -> io::Result<String> {
        let bytes = std::fs::read(self.iteration(which).join("prompt.md"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn output(&self, which: AttemptId, from: u64, most: usize) -> io::Result<(Vec<u8>, u64)> {
        let mut file = File::open(self.iteration(which).join("stdout.raw"))?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(most as u64).read_to_end(&mut bytes)?;
        Ok((bytes, length))
    }

    fn patch(&self, from: &str, to: &str) -> io::Result<String> {
        let ids = SnapshotId::parse(from).zip(SnapshotId::parse(to));
        let (from, to) = ids.ok_or(io::ErrorKind::InvalidData)?;
        // A run's directory is `projects/NAME/runs/ID`.
        let project = self.directory.ancestors().nth(2).unwrap_or(&self.directory);
        let store = SnapshotStore::at(project.join("snapshots.git"), &self.supervisors);
        let patch = store.diff(from, to, &[]).map_err(io::Error::other)?;
        Ok(String::from_utf8_lossy(&patch).into_owned())
    }

    fn save(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.directory.join(name);
        let mut file = tempfile::Builder::new()
            .prefix(".new-")
            .tempfile_in(&self.directory)?;
        io::Write::write_all(&mut file, text.as_bytes())?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(path)
    }
}
