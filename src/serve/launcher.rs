//! Starts runs with the priority that the server was started with. The threads that serve pages have the lowest one, which a child
//! process would inherit.

use std::sync::mpsc::{Sender, channel};

type Task = Box<dyn FnOnce() + Send>;

/// A thread that was started before the priority was lowered.
pub(super) struct Launcher {
    tasks: Sender<Task>,
}

impl Launcher {
    pub(super) fn start() -> std::io::Result<Self> {
        let (tasks, received) = channel::<Task>();
        std::thread::Builder::new()
            .name("serve launcher".to_owned())
            .spawn(move || received.iter().for_each(|task| task()))?;
        Ok(Self { tasks })
    }

    /// Runs a function on the thread and waits for its result; `None` if the thread has ended.
    pub(super) fn run<T: Send + 'static>(&self, task: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (result, received) = channel();
        let task: Task = Box::new(move || {
            // The request has ended if nothing receives the result.
            let _ = result.send(task());
        });
        self.tasks.send(task).ok()?;
        received.recv().ok()
    }
}
