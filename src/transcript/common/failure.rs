//! Names for failures, where an agent gives no more than an HTTP status.

use crate::event::ErrorClass;

pub(in crate::transcript) fn class_of_status(status: u16) -> ErrorClass {
    match status {
        401..=403 => ErrorClass::Auth,
        408 => ErrorClass::Network,
        413 => ErrorClass::TooLong,
        429 => ErrorClass::RateLimit,
        400..=499 => ErrorClass::BadRequest,
        500..=599 => ErrorClass::Overload,
        _ => ErrorClass::Other,
    }
}

/// The class of an error from its HTTP status and its words. For the channel on which an agent reports that it
/// failed, never for what the agent says: these words are common.
pub(in crate::transcript) fn class_of_error(status: Option<u16>, message: &str) -> ErrorClass {
    match (status, class_of_words(message)) {
        // A bad request may be anything, from a wrong key to a prompt that is too long: its words say what.
        (None | Some(400), Some(class)) => class,
        (Some(status), _) => class_of_status(status),
        (None, None) => ErrorClass::Other,
    }
}

/// Words by which services name what went wrong, the most telling first.
const WORDS: &[(ErrorClass, &[&str])] = &[
    (
        ErrorClass::TooLong,
        &[
            "context_length_exceeded",
            "context window",
            "contextoverflow",
            "too long",
        ],
    ),
    (
        ErrorClass::Auth,
        &[
            "invalid_api_key",
            "incorrect api key",
            "api key not valid",
            "invalid api key",
            "unauthenticated",
            "permission_denied",
            "missing environment variable",
            "not logged in",
            "insufficient_quota",
        ],
    ),
    (
        ErrorClass::RateLimit,
        &[
            "rate_limit",
            "rate limit reached",
            "usage limit",
            "exceeded your current quota",
            "resource_exhausted",
            "quota exceeded",
        ],
    ),
    (
        ErrorClass::Overload,
        &[
            "overloaded",
            "high demand",
            "server_error",
            "server had an error",
            "at capacity",
            "unavailable",
        ],
    ),
    (
        ErrorClass::Network,
        &[
            "econnreset",
            "connection reset",
            "connection closed",
            "stream disconnected",
            "stream ended without",
            "network error",
            "error sending request",
            "fetch failed",
            "timed out",
            "terminated",
        ],
    ),
];

fn class_of_words(message: &str) -> Option<ErrorClass> {
    let message = message.to_lowercase();
    WORDS
        .iter()
        .find(|(_, words)| words.iter().any(|word| message.contains(word)))
        .map(|(class, _)| *class)
}

/// The HTTP status that follows one of these phrases in an error message.
pub(in crate::transcript) fn status_named_in(message: &str, phrases: &[&str]) -> Option<u16> {
    phrases.iter().find_map(|phrase| {
        let after = &message[message.find(phrase)? + phrase.len()..];
        let digits = after.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok().filter(|status| (400..600).contains(status))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_a_bad_request_was() {
        assert_eq!(class_of_error(Some(400), "API key not valid."), ErrorClass::Auth);
        assert_eq!(
            class_of_error(Some(400), "context_length_exceeded"),
            ErrorClass::TooLong
        );
        assert_eq!(class_of_error(Some(400), "unknown field"), ErrorClass::BadRequest);
        assert_eq!(class_of_error(Some(403), "too long"), ErrorClass::Auth);
        assert_eq!(
            class_of_error(None, "The model is overloaded."),
            ErrorClass::Overload
        );
        assert_eq!(class_of_error(None, "no idea"), ErrorClass::Other);
    }

    #[test]
    fn a_status_is_read_after_its_phrase_only() {
        let phrases = ["API Error: ", "status "];
        assert_eq!(status_named_in("API Error: 529 Overloaded", &phrases), Some(529));
        assert_eq!(
            status_named_in("unexpected status 401 Unauthorized", &phrases),
            Some(401)
        );
        assert_eq!(status_named_in("429 lines were read", &phrases), None);
        assert_eq!(status_named_in("API Error: 5299", &phrases), None);
        assert_eq!(status_named_in("status ", &phrases), None);
    }
}
