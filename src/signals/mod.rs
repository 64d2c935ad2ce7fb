//! Signals of the process, such as Ctrl-C, forwarded to subscribers by one thread.
//!
//! A signal that was ignored when ralph started stays ignored: SIGINT in a background job of a script, SIGHUP under
//! `nohup`.

mod disposition;

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGUSR1, SIGWINCH};
use signal_hook::iterator::Handle;

use self::disposition::is_ignored;
use crate::failpoint;
use crate::panic_hook::PanicScope;

/// The signals that ask ralph to end.
pub const STOP_SIGNALS: &[i32] = &[SIGINT, SIGTERM, SIGHUP];
/// The signals that a subscriber can receive.
const FORWARDED: &[i32] = &[SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGWINCH, SIGCONT, SIGTSTP];

/// Where to subscribe to signals. Clones are handles of the same subscriptions.
#[derive(Clone)]
pub struct Signals(Arc<Hub>);

struct Hub {
    source: Source,
    state: Mutex<HubState>,
}

enum Source {
    /// The signals of the process, except those that were ignored at the start.
    Process {
        panics: PanicScope,
        ignored: BTreeSet<i32>,
    },
    /// Only `Signals::deliver`.
    Manual,
}

#[derive(Default)]
struct HubState {
    subscribers: Vec<Subscriber>,
    /// Set while the thread runs.
    handle: Option<Handle>,
}

#[derive(Clone)]
struct Subscriber {
    signals: Vec<i32>,
    on_signal: Arc<dyn Fn(i32) + Send + Sync>,
}

impl Signals {
    /// The signals of this process. Must be created before anything else changes their dispositions.
    pub fn of_process(panics: &PanicScope) -> Self {
        let ignored = FORWARDED.iter().copied().filter(|signal| is_ignored(*signal));
        Self::from(Source::Process {
            panics: panics.clone(),
            ignored: ignored.collect(),
        })
    }

    /// Signals that come from `deliver` only, for a run that the signals of the process do not concern.
    pub fn manual() -> Self {
        Self::from(Source::Manual)
    }

    /// Calls `on_signal`, on another thread, for each of these signals instead of the default action.
    pub fn subscribe(
        &self,
        signals: &[i32],
        on_signal: impl Fn(i32) + Send + Sync + 'static,
    ) -> io::Result<Subscription> {
        let subscriber = Subscriber {
            signals: signals.to_vec(),
            on_signal: Arc::new(on_signal),
        };
        let subscription = Subscription {
            hub: Arc::clone(&self.0),
            on_signal: Arc::clone(&subscriber.on_signal),
        };
        // Before the signals are caught: one that arrives in between would be lost.
        self.0.lock().subscribers.push(subscriber);
        self.0.install(signals)?;
        Ok(subscription)
    }

    /// Forwards a signal as if the process had received it.
    pub fn deliver(&self, signal: i32) {
        self.0.forward(signal);
    }
}

impl From<Source> for Signals {
    fn from(source: Source) -> Self {
        let state = Mutex::default();
        Self(Arc::new(Hub { source, state }))
    }
}

impl Hub {
    /// Makes sure that these signals are forwarded; starts the thread if it does not run.
    fn install(self: &Arc<Self>, signals: &[i32]) -> io::Result<()> {
        let Source::Process { panics, ignored } = &self.source else {
            return Ok(());
        };
        let wanted: Vec<i32> = signals
            .iter()
            .copied()
            .filter(|signal| !ignored.contains(signal))
            .collect();
        let mut state = self.lock();
        if let Some(handle) = &state.handle {
            return wanted.iter().try_for_each(|signal| handle.add_signal(*signal));
        }
        let mut received = signal_hook::iterator::Signals::new(&wanted)?;
        let handle = received.handle();
        let (hub, panics_of_thread) = (Arc::downgrade(self), panics.clone());
        panics.spawn("signals", move || {
            failpoint!(panics_of_thread, Signals);
            for signal in received.forever() {
                match Weak::upgrade(&hub) {
                    Some(hub) => hub.forward(signal),
                    None => break,
                }
            }
        })?;
        state.handle = Some(handle);
        Ok(())
    }

    fn forward(&self, signal: i32) {
        let subscribers = self.lock().subscribers.clone();
        let interested = subscribers
            .iter()
            .filter(|subscriber| subscriber.signals.contains(&signal));
        let received = interested
            .map(|subscriber| (subscriber.on_signal)(signal))
            .count();
        if received == 0 && signal == SIGTSTP {
            // Without a subscriber, Ctrl-Z stops the process as usual.
            let stopped = signal_hook::low_level::emulate_default_handler(SIGTSTP);
            crate::ok_or_log!(stopped, "cannot stop the process");
        }
    }

    fn lock(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        if let Some(handle) = &self.lock().handle {
            handle.close();
        }
    }
}

/// Ends the subscription when dropped. A signal without a subscriber has no effect.
#[must_use]
pub struct Subscription {
    hub: Arc<Hub>,
    on_signal: Arc<dyn Fn(i32) + Send + Sync>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let ended = &self.on_signal;
        let mut state = self.hub.lock();
        state
            .subscribers
            .retain(|subscriber| !Arc::ptr_eq(&subscriber.on_signal, ended));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_signal_reaches_its_subscribers_until_they_unsubscribe() {
        let signals = Signals::manual();
        let (sender, received) = mpsc::channel();
        let other = sender.clone();
        let stop = signals
            .subscribe(STOP_SIGNALS, move |signal| sender.send(signal).unwrap())
            .unwrap();
        let resize = signals
            .subscribe(&[SIGWINCH], move |signal| other.send(signal).unwrap())
            .unwrap();
        for signal in [SIGINT, SIGWINCH, SIGUSR1] {
            signals.deliver(signal);
        }
        drop(stop);
        signals.deliver(SIGINT);
        drop(resize);
        assert_eq!(received.iter().collect::<Vec<_>>(), [SIGINT, SIGWINCH]);
    }
}
