//! What kind of failure was it? A usage limit and a missing login have policies of their own.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{Attempt, Rejection};
use crate::engine::rate_limit_phrases::limit_message;
use crate::engine::reset_time::stated_reset;
use crate::event::{ErrorClass, Failure, IterationOutcome};

/// What it takes to understand a stated time.
pub(super) struct WallClock<'a> {
    pub(super) now: Timestamp,
    pub(super) zone: &'a TimeZone,
    pub(super) phrases: &'a [&'static str],
}

impl Attempt {
    /// Some failures have a policy of their own. What was said in structure comes first; words count only where
    /// the structure is silent.
    pub(super) fn classify(&self, failure: Failure, clock: &WallClock<'_>) -> IterationOutcome {
        let limited = |message: String, stated: Option<Timestamp>| IterationOutcome::RateLimited {
            resets_at: stated.or_else(|| stated_reset(&message, clock.now, clock.zone)),
            message,
        };
        if let Some(Rejection { resets_at }) = self.rejected {
            return limited(self.error_message(), resets_at);
        }
        match self.last_error.as_ref().map(|error| error.class) {
            Some(ErrorClass::RateLimit) => limited(self.error_message(), None),
            Some(ErrorClass::Auth) => IterationOutcome::AuthRequired {
                message: self.error_message(),
            },
            Some(ErrorClass::Other) | None => match self.limit_in_words(clock.phrases) {
                Some(message) => limited(message, None),
                None => IterationOutcome::Failed { failure },
            },
            Some(
                ErrorClass::Overload
                | ErrorClass::BadRequest
                | ErrorClass::TooLong
                | ErrorClass::Network
                | ErrorClass::Refused
                | ErrorClass::MaxTurns
                | ErrorClass::Budget,
            ) => IterationOutcome::Failed { failure },
        }
    }

    /// The message of a usage limit, where the agent gave it as text: in an error, or among its last lines of stderr.
    fn limit_in_words(&self, phrases: &[&str]) -> Option<String> {
        let error = self.last_error.as_ref();
        let said = error.and_then(|error| limit_message(&error.message, phrases).map(str::to_owned));
        said.or_else(|| {
            let stderr = self
                .stderr
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join("\n");
            limit_message(&stderr, phrases).map(str::to_owned)
        })
    }
}
