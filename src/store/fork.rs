//! The files of a run that continues another one.

use std::fs;
use std::path::Path;

use super::{Run, StoreError, find, io_error, private_files};

impl Run {
    /// Adds the files of another run's iterations, up to this one.
    pub fn adopt_iterations(&self, from: &Path, last: u64) -> Result<(), StoreError> {
        let source = from.join("iterations");
        for name in find::ids_in(&source) {
            let number = name.split('-').next().unwrap_or_default();
            if number.parse().is_ok_and(|number: u64| number <= last) {
                let directory = self.directory.join("iterations").join(&name);
                private_files::create_directory(&directory)?;
                copy_files(&source.join(&name), &directory)?;
            }
        }
        Ok(())
    }
}

/// The files do not change any more, so they can be shared.
fn copy_files(from: &Path, to: &Path) -> Result<(), StoreError> {
    for entry in fs::read_dir(from).map_err(io_error("read", from))?.flatten() {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && fs::hard_link(&source, &target).is_err() {
            fs::copy(&source, &target).map_err(io_error("copy", &source))?;
        }
    }
    Ok(())
}
