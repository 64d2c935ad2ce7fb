//! A fixed number of buffers between a reader and its consumer. When all are in use, the reader waits, so that memory is
//! bounded and nothing is dropped.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum size of a chunk.
pub const CHUNK_BYTES: usize = 256 * 1024;

/// Bytes of a stream. Dropping a chunk returns its buffer to the reader, which waits if too many chunks are kept.
pub struct Chunk {
    buffer: Vec<u8>,
    filled: usize,
    pool: Arc<Pool>,
}

impl Chunk {
    /// The unused part of the buffer.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.buffer[self.filled..]
    }

    /// Adds the first `count` bytes of `room` to the chunk.
    pub(super) fn extend(&mut self, count: usize) {
        self.filled += count;
    }
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunk({} bytes)", self.filled)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.pool.state().free.push(std::mem::take(&mut self.buffer));
        self.pool.returned.notify_one();
    }
}

#[derive(Debug)]
pub(super) struct Pool {
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Debug)]
struct State {
    free: Vec<Vec<u8>>,
    /// Number of buffers that may still be allocated. Most children never need all of them.
    unallocated: usize,
}

impl Pool {
    pub(super) fn of(chunks: usize) -> Arc<Self> {
        let state = State {
            free: Vec::new(),
            unallocated: chunks,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            returned: Condvar::new(),
        })
    }

    /// Returns an empty chunk; waits until one is available.
    pub(super) fn take(self: &Arc<Self>) -> Chunk {
        let mut state = self.state();
        let buffer = loop {
            if let Some(buffer) = state.free.pop() {
                break buffer;
            }
            if state.unallocated > 0 {
                state.unallocated -= 1;
                break vec![0; CHUNK_BYTES];
            }
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        Chunk {
            buffer,
            filled: 0,
            pool: Arc::clone(self),
        }
    }

    /// No code that can panic runs under this lock, so a poisoned lock is safe to use.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_allocated_once_and_then_reused() {
        let pool = Pool::of(2);
        let first = pool.take();
        let address = first.buffer.as_ptr();
        let _second = pool.take();
        drop(first);
        assert_eq!(pool.take().buffer.as_ptr(), address);
        assert_eq!(pool.state().unallocated, 0);
    }
}
