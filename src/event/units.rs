//! Formats durations, token counts, dollars, sizes and times of day as short strings.

use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};

/// `850ms`, `12.3s`, `4m05s`, `2h13m`, `3d04h`.
pub fn duration(length: Duration) -> String {
    let millis = length.as_millis();
    let seconds = length.as_secs();
    match seconds {
        0 => format!("{millis}ms"),
        1..60 => format!("{seconds}.{}s", length.subsec_millis() / 100),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// A timer: `0:07`, `12:34`, `1:02:03`.
pub fn countdown(length: Duration) -> String {
    let seconds = length.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

/// `1,801`: every digit, for exact figures.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1,801`, `12.3k`, `4.56M`: rounded, for summaries.
pub fn tokens(count: u64) -> String {
    match count {
        0..10_000 => grouped(count),
        10_000..1_000_000 => format!("{}.{}k", count / 1000, count / 100 % 10),
        _ => format!("{}.{:02}M", count / 1_000_000, count / 10_000 % 100),
    }
}

/// `$0.0249` below ten cents, `$12.40` from there.
pub fn dollars(amount: impl Into<f64>) -> String {
    let amount: f64 = amount.into();
    let amount = if amount.is_finite() { amount.max(0.0) } else { 0.0 };
    if amount > 0.0 && amount < 0.1 {
        format!("${amount:.4}")
    } else {
        format!("${amount:.2}")
    }
}

/// `512 B`, `1.5 kB`, `300.0 MB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "kB")];
    UNITS.iter().find(|(size, _)| count >= *size).map_or_else(
        || format!("{count} B"),
        |(size, unit)| format!("{}.{} {unit}", count / size, count % size * 10 / size),
    )
}

/// `1 line`, `214 lines`.
pub fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

/// The time of day in `zone`, preceded by the date if it is not the date of `now`.
pub fn clock(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let (at, now) = (at.to_zoned(zone.clone()), now.to_zoned(zone.clone()));
    let format = if at.date() == now.date() {
        "%H:%M"
    } else {
        "%a %-d %b %H:%M"
    };
    at.strftime(format).to_string()
}

/// The time from `earlier` to `now`; zero if the clock was set back.
pub fn since(earlier: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(earlier)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_keep_two_units() {
        let cases = [
            (0, "0ms"),
            (850, "850ms"),
            (999, "999ms"),
            (1000, "1.0s"),
            (12_349, "12.3s"),
            (59_999, "59.9s"),
            (245_000, "4m05s"),
            (7_980_000, "2h13m"),
            (273_600_000, "3d04h"),
        ];
        for (millis, text) in cases {
            assert_eq!(duration(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn countdowns_use_colons() {
        let cases = [(0, "0:00"), (7, "0:07"), (754, "12:34"), (3723, "1:02:03")];
        for (seconds, text) in cases {
            assert_eq!(countdown(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn large_token_counts_are_rounded() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1801, "1,801"),
            (12_345, "12.3k"),
            (999_999, "999.9k"),
            (4_560_000, "4.56M"),
        ];
        for (number, text) in cases {
            assert_eq!(tokens(number), text);
        }
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn small_dollar_amounts_have_four_decimals() {
        let cases = [
            (0.0, "$0.00"),
            (0.0249, "$0.0249"),
            (0.1234, "$0.12"),
            (12.4, "$12.40"),
            (-1.0, "$0.00"),
            (f64::NAN, "$0.00"),
        ];
        for (amount, text) in cases {
            assert_eq!(dollars(amount), text);
        }
    }

    #[test]
    fn sizes_and_counts_have_units() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1500, "1.5 kB"),
            (300_000_000, "300.0 MB"),
        ];
        for (number, text) in cases {
            assert_eq!(bytes(number), text);
        }
        assert_eq!(
            (count(1, "line"), count(1214, "line")),
            ("1 line".into(), "1,214 lines".into())
        );
    }

    #[test]
    fn clock_of_another_day_includes_the_date() {
        let now: Timestamp = "2026-03-01T22:00:00Z".parse().unwrap();
        let later: Timestamp = "2026-03-02T08:20:00Z".parse().unwrap();
        assert_eq!(clock(now, now, &TimeZone::UTC), "22:00");
        assert_eq!(clock(later, now, &TimeZone::UTC), "Mon 2 Mar 08:20");
        assert_eq!(since(later, now), Duration::ZERO);
    }
}
