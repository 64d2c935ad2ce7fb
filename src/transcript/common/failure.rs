//! Classifies errors by their HTTP status and message.

use crate::event::ErrorClass;

fn classify_status(status: u16) -> ErrorClass {
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

/// Classifies an error by its HTTP status and message. Only error reports may be classified, never the agent's
/// answers: the phrases are common.
pub(in crate::transcript) fn classify_error(status: Option<u16>, message: &str) -> ErrorClass {
    match (status, classify_message(message)) {
        // Services use status 400 for many errors, from an invalid key to a long prompt; the message is more specific.
        (None | Some(400), Some(class)) => class,
        (Some(status), _) => classify_status(status),
        (None, None) => ErrorClass::Other,
    }
}

/// Phrases in the error messages of services, the most specific first.
const PHRASES: &[(ErrorClass, &[&str])] = &[
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

fn classify_message(message: &str) -> Option<ErrorClass> {
    let message = message.to_lowercase();
    PHRASES
        .iter()
        .find(|(_, phrases)| phrases.iter().any(|phrase| message.contains(phrase)))
        .map(|(class, _)| *class)
}

/// The HTTP status that follows one of these phrases in an error message.
pub(in crate::transcript) fn find_status(message: &str, phrases: &[&str]) -> Option<u16> {
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
    fn message_classifies_a_bad_request() {
        assert_eq!(classify_error(Some(400), "API key not valid."), ErrorClass::Auth);
        assert_eq!(
            classify_error(Some(400), "context_length_exceeded"),
            ErrorClass::TooLong
        );
        assert_eq!(classify_error(Some(400), "unknown field"), ErrorClass::BadRequest);
        assert_eq!(classify_error(Some(403), "too long"), ErrorClass::Auth);
        assert_eq!(
            classify_error(None, "The model is overloaded."),
            ErrorClass::Overload
        );
        assert_eq!(classify_error(None, "no idea"), ErrorClass::Other);
    }

    #[test]
    fn status_is_read_only_after_a_phrase() {
        let phrases = ["API Error: ", "status "];
        assert_eq!(find_status("API Error: 529 Overloaded", &phrases), Some(529));
        assert_eq!(
            find_status("unexpected status 401 Unauthorized", &phrases),
            Some(401)
        );
        assert_eq!(find_status("429 lines were read", &phrases), None);
        assert_eq!(find_status("API Error: 5299", &phrases), None);
        assert_eq!(find_status("status ", &phrases), None);
    }
}
