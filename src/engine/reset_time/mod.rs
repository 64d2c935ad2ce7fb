//! Parses the reset time from an agent's usage-limit message.
//!
//! The current time and the user's time zone are arguments. The caller has already decided that the text is about a
//! limit.

mod tokens;

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

use tokens::{clock, day_number, duration, month, tokens, weekday, zone};

/// No agent's limit lasts longer; a time beyond this has another meaning.
const MAX_WAIT: SignedDuration = SignedDuration::from_hours(35 * 24);
/// A time of day that has passed by less than this does not mean tomorrow.
const RESET_TOLERANCE: SignedDuration = SignedDuration::from_mins(15);

/// Words that introduce a reset time.
const CUES: &[&str] = &[
    "reset",
    "resets",
    "resetting",
    "again",
    "retry",
    "available",
    "until",
    "wait",
    "renews",
    "refreshes",
];

/// The reset time that the text states, if any.
pub(crate) fn stated_reset(text: &str, now: Timestamp, local: &TimeZone) -> Option<Timestamp> {
    let tokens = tokens(text);
    let words: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let parser = ResetTimeParser {
        words: &words,
        now,
        local,
    };
    parser
        .instant()
        .or_else(|| parser.retry_after())
        .or_else(|| parser.after_duration())
        .or_else(|| parser.at_a_time_of_day())
}

struct ResetTimeParser<'a> {
    words: &'a [&'a str],
    now: Timestamp,
    local: &'a TimeZone,
}

/// The day of a reset time.
#[derive(Clone, Copy)]
enum ResetDay {
    Next,
    Tomorrow,
    On(Weekday),
    Of(Date),
}

impl ResetTimeParser<'_> {
    fn plausible(&self, time: Timestamp) -> Option<Timestamp> {
        (time > self.now && time.duration_since(self.now) <= MAX_WAIT).then_some(time)
    }

    fn after(&self, wait: SignedDuration) -> Option<Timestamp> {
        self.plausible(self.now.checked_add(wait).ok()?)
    }

    /// An absolute timestamp: Unix seconds or milliseconds, or RFC 3339.
    fn instant(&self) -> Option<Timestamp> {
        self.words.iter().find_map(|word| {
            let number = || word.parse::<i64>().ok();
            let moment = match word.len() {
                10 if word.bytes().all(|b| b.is_ascii_digit()) => Timestamp::from_second(number()?).ok(),
                13 if word.bytes().all(|b| b.is_ascii_digit()) => Timestamp::from_millisecond(number()?).ok(),
                16.. => word.to_ascii_uppercase().parse().ok(),
                _ => None,
            };
            self.plausible(moment?)
        })
    }

    /// `retry-after: 30`, `"retryDelay": "34.07s"`, `retry_after_ms=1500`: a bare number is seconds.
    fn retry_after(&self) -> Option<Timestamp> {
        const SECONDS: &[&str] = &[
            "retry-after",
            "retry_after",
            "retryafter",
            "retrydelay",
            "retry_after_seconds",
            "resets_in_seconds",
            "retry-after-seconds",
            "reset_after_seconds",
        ];
        const MILLISECONDS: &[&str] = &["retry-after-ms", "retry_after_ms", "retrydelayms", "retryafterms"];
        self.words.windows(2).enumerate().find_map(|(index, pair)| {
            let number = || pair[1].parse::<f64>().ok();
            let seconds = if SECONDS.contains(&pair[0]) {
                match duration(&self.words[index + 1..]) {
                    Some(wait) => return self.after(wait),
                    None => number()?,
                }
            } else if MILLISECONDS.contains(&pair[0]) {
                number()? / 1000.0
            } else {
                return None;
            };
            self.after(SignedDuration::try_from_secs_f64(seconds).ok()?)
        })
    }

    /// `try again in 3h 12m`, `reset after 18h31m10s`, `wait 30 seconds`.
    fn after_duration(&self) -> Option<Timestamp> {
        (1..self.words.len()).find_map(|index| {
            let linked = ["in", "after", "for", "wait"].contains(&self.words[index - 1]);
            let cued = self.words[index.saturating_sub(4)..index]
                .iter()
                .any(|word| CUES.contains(word));
            if linked && cued {
                self.after(duration(&self.words[index..])?)
            } else {
                None
            }
        })
    }

    /// `resets 8:20pm`, `resets 2pm (Asia/Shanghai)`, `try again at Nov 8th, 2025 9:41 AM`, `resets Monday 9am`.
    fn at_a_time_of_day(&self) -> Option<Timestamp> {
        let cues = self.words.iter().enumerate();
        cues.filter(|(_, word)| CUES.contains(word) || **word == "resets_at" || **word == "reset_at")
            .find_map(|(index, _)| self.time_of_day(&self.words[index + 1..]))
    }

    fn time_of_day(&self, words: &[&str]) -> Option<Timestamp> {
        let mut rest = skip_fillers(words);
        // A combined date and time without an offset.
        if let Some(moment) = rest.first().and_then(|word| date_time(word)) {
            let zone = rest.get(1).and_then(|word| zone(word));
            let zone = zone.as_ref().unwrap_or(self.local);
            return self.plausible(zone.to_ambiguous_timestamp(moment).compatible().ok()?);
        }
        let (day, consumed) = self.day(rest);
        rest = skip_fillers(&rest[consumed..]);
        let (time, consumed) = match (clock(rest), day) {
            (Some(found), _) => found,
            // A date alone means midnight.
            (None, ResetDay::Of(_)) => (Time::midnight(), 0),
            (None, ResetDay::Next | ResetDay::Tomorrow | ResetDay::On(_)) => return None,
        };
        let named = rest[consumed..].first().and_then(|word| zone(word));
        self.next(day, time, named.as_ref().unwrap_or(self.local))
    }

    /// The day at the beginning of `words`, and the number of words that it takes.
    fn day(&self, words: &[&str]) -> (ResetDay, usize) {
        let Some(first) = words.first() else {
            return (ResetDay::Next, 0);
        };
        if let Ok(date) = first.parse::<Date>() {
            return (ResetDay::Of(date), 1);
        }
        match *first {
            "today" => return (ResetDay::Next, 1),
            "tomorrow" => return (ResetDay::Tomorrow, 1),
            _ => {}
        }
        if let (Some(month), Some(day)) = (month(first), words.get(1).and_then(|word| day_number(word))) {
            return self.month_and_day(month, day, words.get(2).copied());
        }
        match weekday(first) {
            Some(weekday) => (ResetDay::On(weekday), 1),
            None => (ResetDay::Next, 0),
        }
    }

    /// The given date; without a year, its next occurrence.
    fn month_and_day(&self, month: i8, day: i8, year: Option<&str>) -> (ResetDay, usize) {
        let year = year
            .filter(|word| word.len() == 4)
            .and_then(|word| word.parse().ok());
        let today = self.now.to_zoned(self.local.clone()).date();
        let date = match year {
            Some(year) => Date::new(year, month, day).ok(),
            None => [today.year(), today.year() + 1]
                .into_iter()
                .filter_map(|year| Date::new(year, month, day).ok())
                .find(|date| *date >= today.saturating_sub(1.day())),
        };
        match date {
            Some(date) => (ResetDay::Of(date), if year.is_some() { 3 } else { 2 }),
            None => (ResetDay::Next, 0),
        }
    }

    /// The next occurrence of a day and time in a time zone.
    fn next(&self, day: ResetDay, time: Time, zone: &TimeZone) -> Option<Timestamp> {
        let today = self.now.to_zoned(zone.clone()).date();
        let days: Vec<Date> = match day {
            ResetDay::Next => vec![today, today.tomorrow().ok()?],
            ResetDay::Tomorrow => vec![today.tomorrow().ok()?],
            ResetDay::On(weekday) => (0..=7)
                .map(|ahead: i64| today.saturating_add(ahead.days()))
                .filter(|date| date.weekday() == weekday)
                .collect(),
            ResetDay::Of(date) => vec![date],
        };
        let moments = days
            .into_iter()
            .flat_map(|date| instants(date.to_datetime(time), zone));
        let recent = self.now.checked_sub(RESET_TOLERANCE).ok()?;
        // A time that has just passed means now, not tomorrow.
        moments
            .into_iter()
            .find(|moment| *moment > recent)
            .and_then(|moment| self.plausible(moment))
    }
}

/// The instants of a local time: one, two when clocks are set back over it, or the one after a gap.
fn instants(moment: DateTime, zone: &TimeZone) -> Vec<Timestamp> {
    let found = zone.to_ambiguous_timestamp(moment);
    let mut moments: Vec<Timestamp> = [found.compatible(), found.later()]
        .into_iter()
        .flatten()
        .collect();
    moments.dedup();
    moments
}

/// Parses `2026-01-14T14:00:00`, without an offset.
fn date_time(word: &str) -> Option<DateTime> {
    if word.len() < 16 {
        return None;
    }
    word.to_ascii_uppercase().parse().ok()
}

/// Skips the filler words between a cue and its time.
fn skip_fillers<'a, 'b>(words: &'a [&'b str]) -> &'a [&'b str] {
    const FILLERS: &[&str] = &[
        "at", "on", "by", "time", "is", "will", "be", "the", "your", "limit", "around",
    ];
    let first = words.iter().position(|word| !FILLERS.contains(word));
    &words[first.unwrap_or(words.len())..]
}

#[cfg(test)]
mod tests;
