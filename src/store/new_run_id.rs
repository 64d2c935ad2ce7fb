//! The id of a new run, given by the caller.

use std::fmt;
use std::str::FromStr;

use super::time_from_id;

/// Length of the time at the start of an id, and of the dash after it.
const PREFIX: usize = 16;
/// Maximum length of the name after the time.
const MAX_NAME: usize = 80;

/// A time and a name: `20261115-204501-billing`. The time sorts the runs of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRunId(String);

/// The text is not such an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "an id consists of a time and a name of lowercase letters, digits and dashes: 20261115-204501-billing"
)]
pub struct InvalidRunId;

impl NewRunId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for NewRunId {
    type Err = InvalidRunId;

    fn from_str(text: &str) -> Result<Self, InvalidRunId> {
        let (time, name) = text.split_at_checked(PREFIX).ok_or(InvalidRunId)?;
        let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        let is_valid = time.ends_with('-')
            && time_from_id(time).is_some()
            && (1..=MAX_NAME).contains(&name.len())
            && !name.starts_with('-')
            && name.chars().all(is_plain);
        is_valid.then(|| Self(text.to_owned())).ok_or(InvalidRunId)
    }
}

impl fmt::Display for NewRunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_a_time_and_a_plain_name() {
        let valid = ["20261115-204501-a", "20261115-204501-billing-2"];
        let invalid = [
            "",
            "billing",
            "20261115-204501-",
            "20261115-204501",
            "20261315-204501-a",
            "20261115-204501-A",
            "20261115-204501-a/b",
            "20261115-204501-..",
            "20261115-204501--a",
            "20261115-2045011a",
        ];
        for text in valid {
            assert_eq!(
                text.parse::<NewRunId>().map(|id| id.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in invalid {
            assert_eq!(text.parse::<NewRunId>(), Err(InvalidRunId), "{text}");
        }
    }
}
