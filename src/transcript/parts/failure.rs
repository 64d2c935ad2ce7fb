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
