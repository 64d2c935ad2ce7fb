//! Getting what is written onto the disk itself, beside the loop: the next agent need not wait for it.

use std::fs::File;
use std::io;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Syncs one file in a thread of its own. Dropping it waits until all that was asked for is on the disk.
#[derive(Debug)]
pub(super) struct Syncing {
    requests: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl Syncing {
    pub(super) fn of(file: &File) -> io::Result<Self> {
        let file = file.try_clone()?;
        // One request that nobody has begun with yet stands for all that come meanwhile.
        let (requests, asked) = mpsc::sync_channel(1);
        let failure = Arc::new(Mutex::new(None));
        let to_tell = Arc::clone(&failure);
        let thread = thread::Builder::new().name("sync".into()).spawn(move || {
            for () in asked {
                if let Err(error) = file.sync_data() {
                    *to_tell.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            }
        })?;
        Ok(Self {
            requests: Some(requests),
            thread: Some(thread),
            failure,
        })
    }

    /// What has been written by now is to be on the disk soon. Fails if something earlier did not get there.
    pub(super) fn ask(&self) -> io::Result<()> {
        if let Some(requests) = &self.requests {
            // Full: somebody has asked already.
            let _ = requests.try_send(());
        }
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(()), Err)
    }
}

impl Drop for Syncing {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
