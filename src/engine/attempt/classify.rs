//! Classifies a failed attempt: usage limit, missing login or other failure.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{Attempt, OVERLOADED, RateLimitRejection, error_text};
use crate::engine::rate_limit_phrases::limit_message;
use crate::engine::reset_time::stated_reset;
use crate::event::{ErrorClass, IterationFailure, IterationOutcome};

/// The data needed to parse limit messages and reset times.
pub(super) struct ClassifyContext<'a> {
    pub(super) now: Timestamp,
    pub(super) zone: &'a TimeZone,
    pub(super) phrases: &'a [&'static str],
}

impl Attempt {
    /// Structured error data takes precedence; message texts count only where there is none.
    pub(super) fn classify(
        &self,
        failure: IterationFailure,
        context: &ClassifyContext<'_>,
    ) -> IterationOutcome {
        let limited = |message: String, stated: Option<Timestamp>| IterationOutcome::RateLimited {
            resets_at: stated.or_else(|| stated_reset(&message, context.now, context.zone)),
            message,
        };
        if let Some(RateLimitRejection { resets_at }) = self.rejected {
            return limited(self.error_message(), resets_at);
        }
        let error = self.last_error.as_ref();
        if error.is_some_and(|error| error.status == Some(OVERLOADED)) {
            return IterationOutcome::Overloaded {
                message: self.error_message(),
            };
        }
        match error.map(|error| error.class) {
            Some(ErrorClass::RateLimit) => limited(self.error_message(), None),
            Some(ErrorClass::Auth) => IterationOutcome::AuthRequired {
                message: self.error_message(),
            },
            Some(ErrorClass::Other) | None => match self.limit_message_in_output(context.phrases) {
                Some(message) => limited(message, None),
                None => match self.class_of_cause() {
                    Some(ErrorClass::Auth) => IterationOutcome::AuthRequired {
                        message: self.error_message(),
                    },
                    Some(ErrorClass::RateLimit) => limited(self.error_message(), None),
                    Some(ErrorClass::Overload) => IterationOutcome::Overloaded {
                        message: self.error_message(),
                    },
                    Some(_) | None => IterationOutcome::Failed { failure },
                },
            },
            Some(ErrorClass::Refused) => IterationOutcome::Failed {
                failure: IterationFailure::Refused {
                    message: self.error_message(),
                },
            },
            Some(
                ErrorClass::Overload
                | ErrorClass::BadRequest
                | ErrorClass::TooLong
                | ErrorClass::Network
                | ErrorClass::MaxTurns
                | ErrorClass::Budget,
            ) => IterationOutcome::Failed { failure },
        }
    }

    /// The class of the agent's last error, or of the line of its error output that names the cause.
    fn class_of_cause(&self) -> Option<ErrorClass> {
        match &self.last_error {
            // A message that the agent reports as an error always counts.
            Some(error) => error_text::class_of(&format!("error: {}", error.message)),
            None => self.cause_line().and_then(error_text::class_of),
        }
    }

    /// A usage-limit message in the agent's last error or in its last lines of stderr.
    fn limit_message_in_output(&self, phrases: &[&str]) -> Option<String> {
        let error = self.last_error.as_ref();
        let in_error = error.and_then(|error| limit_message(&error.message, phrases).map(str::to_owned));
        in_error.or_else(|| {
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
