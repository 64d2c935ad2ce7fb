//! Parses the parts of a stated time: durations, clock times, dates and time zones.

use jiff::SignedDuration;
use jiff::civil::{Time, Weekday};
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};

/// Splits a text into lowercase words without punctuation; clock times, decimals and zone names stay whole.
pub(super) fn tokens(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let digit = |index: Option<usize>| {
        index
            .and_then(|index| characters.get(index))
            .is_some_and(char::is_ascii_digit)
    };
    let mut words = vec![String::new()];
    for (index, c) in characters.iter().enumerate() {
        let joins = match c {
            ':' | '.' => digit(index.checked_sub(1)) && digit(Some(index + 1)),
            '-' | '_' | '/' | '+' => true,
            c => c.is_alphanumeric(),
        };
        match words.last_mut() {
            Some(word) if joins => word.extend(c.to_lowercase()),
            Some(word) if !word.is_empty() => words.push(String::new()),
            _ => {}
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Parses `3h 12m`, `1h2m3s`, `3 hours and 5 minutes`, `34.07s` or `an hour`: at least one number with a unit.
pub(super) fn duration(words: &[&str]) -> Option<SignedDuration> {
    let mut total = SignedDuration::ZERO;
    let mut index = 0;
    while let Some(word) = words.get(index) {
        if *word == "and" && !total.is_zero() {
            index += 1;
            continue;
        }
        if let Some(part) = compact(word) {
            total = total.checked_add(part)?;
            index += 1;
            continue;
        }
        let number = match *word {
            "a" | "an" | "one" => Some(1.0),
            word => word.parse::<f64>().ok().filter(|number| *number >= 0.0),
        };
        let unit = words.get(index + 1).and_then(|word| unit(word));
        let (Some(number), Some(unit)) = (number, unit) else {
            break;
        };
        total = total.checked_add(SignedDuration::try_from_secs_f64(number * unit).ok()?)?;
        index += 2;
    }
    (!total.is_zero()).then_some(total)
}

/// Parses `1h2m3s`.
fn compact(word: &str) -> Option<SignedDuration> {
    let mut rest = word;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let letters = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..letters].parse().ok()?;
        let after = &rest[letters..];
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        seconds += number * unit(&after[..end])?;
        rest = &after[end..];
    }
    SignedDuration::try_from_secs_f64(seconds).ok()
}

/// The length of a unit in seconds.
fn unit(word: &str) -> Option<f64> {
    Some(match word {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        _ => return None,
    })
}

/// Parses `8:20pm`, `2 pm`, `14:00` or `noon`; also returns the number of words consumed. A bare number is not a time.
pub(super) fn clock(words: &[&str]) -> Option<(Time, usize)> {
    let first = *words.first()?;
    match first {
        "noon" => return Some((Time::constant(12, 0, 0, 0), 1)),
        "midnight" => return Some((Time::midnight(), 1)),
        _ => {}
    }
    let (digits, meridiem, consumed) = match first.strip_suffix("am").map(|digits| (digits, Meridiem::Am)) {
        Some((digits, meridiem)) => (digits, Some(meridiem), 1),
        None => match first.strip_suffix("pm") {
            Some(digits) => (digits, Some(Meridiem::Pm), 1),
            None => match words.get(1).copied() {
                Some("am") => (first, Some(Meridiem::Am), 2),
                Some("pm") => (first, Some(Meridiem::Pm), 2),
                _ => (first, None, 1),
            },
        },
    };
    let parts: Vec<i8> = digits
        .split(':')
        .map(|part| part.parse().ok().filter(|_| part.len() <= 2))
        .collect::<Option<_>>()?;
    let (hour, minute, second) = match (parts[..].as_ref(), meridiem) {
        ([hour], Some(_)) => (*hour, 0, 0),
        ([hour, minute], _) => (*hour, *minute, 0),
        ([hour, minute, second], _) => (*hour, *minute, *second),
        _ => return None,
    };
    let hour = match meridiem {
        None => hour,
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(Meridiem::Am) => hour % 12,
        Some(Meridiem::Pm) => hour % 12 + 12,
    };
    Some((Time::new(hour, minute, second, 0).ok()?, consumed))
}

#[derive(Clone, Copy)]
enum Meridiem {
    Am,
    Pm,
}

/// Parses `asia/shanghai`, `utc`, `utc+8`, `+08:00` and common abbreviations.
pub(super) fn zone(word: &str) -> Option<TimeZone> {
    const KNOWN: &[(&[&str], &str)] = &[
        (&["pt", "pst", "pdt"], "America/Los_Angeles"),
        (&["mt", "mst", "mdt"], "America/Denver"),
        (&["ct", "cst", "cdt"], "America/Chicago"),
        (&["et", "est", "edt"], "America/New_York"),
        (&["bst"], "Europe/London"),
        (&["cet", "cest"], "Europe/Berlin"),
        (&["ist"], "Asia/Kolkata"),
        (&["jst"], "Asia/Tokyo"),
    ];
    if ["utc", "gmt", "z"].contains(&word) {
        return Some(TimeZone::UTC);
    }
    if let Some(offset) = offset(word) {
        return Some(TimeZone::fixed(offset));
    }
    let named = KNOWN
        .iter()
        .find(|(short, _)| short.contains(&word))
        .map(|(_, name)| *name);
    let name = named.or_else(|| word.contains('/').then_some(word))?;
    TimeZoneDatabase::bundled().get(name).ok()
}

fn offset(word: &str) -> Option<Offset> {
    let signed = word
        .strip_prefix("utc")
        .or_else(|| word.strip_prefix("gmt"))
        .unwrap_or(word);
    let (sign, digits) = match (signed.strip_prefix('+'), signed.strip_prefix('-')) {
        (Some(digits), _) => (1, digits),
        (None, Some(digits)) => (-1, digits),
        (None, None) => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 => digits.split_at(2),
        None => (digits, "0"),
    };
    let seconds = hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().ok()? * 60;
    Offset::from_seconds(sign * seconds).ok()
}

pub(super) fn month(word: &str) -> Option<i8> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let index = MONTHS.iter().position(|month| abbreviates(word, month))?;
    i8::try_from(index + 1).ok()
}

pub(super) fn weekday(word: &str) -> Option<Weekday> {
    const DAYS: [&str; 7] = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];
    let index = DAYS.iter().position(|day| abbreviates(word, day))?;
    Weekday::from_monday_one_offset(i8::try_from(index + 1).ok()?).ok()
}

/// Whether a word is the whole name or an abbreviation of at least three letters.
fn abbreviates(word: &str, name: &str) -> bool {
    word.len() >= 3 && name.starts_with(word)
}

/// Parses `8` or `8th`.
pub(super) fn day_number(word: &str) -> Option<i8> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let suffix = &word[digits.len()..];
    let day = digits.parse().ok()?;
    (["", "st", "nd", "rd", "th"].contains(&suffix) && (1..=31).contains(&day)).then_some(day)
}
