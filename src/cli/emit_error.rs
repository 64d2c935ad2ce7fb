//! Why an event of `ralph emit` cannot be published.

pub(super) const MAX_TOPIC_CHARS: usize = 200;
/// Half of what the inbox accepts, because JSON escapes some characters.
pub(super) const MAX_PAYLOAD_BYTES: usize = 512 * 1024;

/// Why an event cannot be published.
#[derive(Debug, thiserror::Error)]
pub(super) enum EmitError {
    #[error("not called by a run: RALPH_RUN_ID is not set")]
    NotInRun,
    #[error("invalid topic `{topic}`: expected up to {MAX_TOPIC_CHARS} characters without spaces")]
    InvalidTopic { topic: String },
    #[error("the payload is too long: {bytes} bytes (limit: {MAX_PAYLOAD_BYTES} bytes)")]
    PayloadTooLong { bytes: usize },
}

impl EmitError {
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::NotInRun => "agents call this; to send a run a message: ralph tell TEXT",
            Self::InvalidTopic { .. } => "for example: ralph emit build.done \"all tests pass\"",
            Self::PayloadTooLong { .. } => "write it to a file and publish the path",
        }
    }
}
