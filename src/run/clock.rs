//! The clock of a run. It does not stop while the machine sleeps.

use std::time::Duration;

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    start: Duration,
    elapsed: Duration,
}

/// A time on the run's clock and on the wall clock. Everything in one message has the same time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) elapsed: Duration,
    pub(super) at: Timestamp,
}

impl Clock {
    /// A clock that starts at the elapsed time of a resumed run.
    pub(super) fn start_at(elapsed: Duration) -> Self {
        Self {
            start: now(),
            elapsed,
        }
    }

    pub(super) fn now(self) -> Moment {
        Moment {
            elapsed: self.elapsed(),
            at: Timestamp::now(),
        }
    }

    /// The time since the run started.
    pub(super) fn elapsed(self) -> Duration {
        self.elapsed + now().saturating_sub(self.start)
    }
}

#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

fn now() -> Duration {
    let time = clock_gettime(CLOCK);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}
