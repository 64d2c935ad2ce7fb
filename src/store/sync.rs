//! A background thread that syncs a file to disk (fdatasync), so that the loop does not wait for the disk.

use std::fs::File;
use std::io;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Syncs one file in a separate thread. Dropping it waits until all requested syncs are done.
#[derive(Debug)]
pub(super) struct SyncThread {
    requests: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    error: Arc<Mutex<Option<io::Error>>>,
}

impl SyncThread {
    pub(super) fn spawn(file: &File) -> io::Result<Self> {
        let file = file.try_clone()?;
        // One pending request covers all writes until the thread handles it.
        let (requests, receiver) = mpsc::sync_channel(1);
        let error = Arc::new(Mutex::new(None));
        let thread_error = Arc::clone(&error);
        let thread = thread::Builder::new().name("sync".into()).spawn(move || {
            for () in receiver {
                if let Err(error) = file.sync_data() {
                    *thread_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            }
        })?;
        Ok(Self {
            requests: Some(requests),
            thread: Some(thread),
            error,
        })
    }

    /// Requests a sync of everything written so far. Returns the error of an earlier sync, if there is one.
    pub(super) fn request_sync(&self) -> io::Result<()> {
        if let Some(requests) = &self.requests {
            // If the channel is full, a request is already pending.
            let _ = requests.try_send(());
        }
        let error = self.error.lock().unwrap_or_else(PoisonError::into_inner).take();
        error.map_or(Ok(()), Err)
    }
}

impl Drop for SyncThread {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
