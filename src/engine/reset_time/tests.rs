//! Tests for every known form of a reset time, and for texts that only resemble one.

use super::*;

/// The result of `stated_reset` at a given time and zone, in UTC.
fn reset_time(now: &str, zone: &str, text: &str) -> Option<String> {
    let zone = jiff::tz::TimeZoneDatabase::bundled().get(zone).expect("a zone");
    let now: Timestamp = now.parse().expect("a time");
    stated_reset(text, now, &zone).map(|time| time.to_string())
}

/// Checks a table of (text, reset time) at a given time and zone.
#[track_caller]
fn check(now: &str, zone: &str, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let found = reset_time(now, zone, text).unwrap_or_else(|| "-".to_owned());
        assert_eq!(found, *expected, "{text:?} at {now} in {zone}");
    }
}

const NOON: &str = "2026-01-14T12:00:00Z";

#[test]
fn absolute_timestamps() {
    check(
        NOON,
        "America/New_York",
        &[
            ("Claude AI usage limit reached|1768399200", "2026-01-14T14:00:00Z"),
            ("limit, resetsAt: 1768399200000 ms", "2026-01-14T14:00:00Z"),
            (
                r#"{"error":{"type":"usage_limit_reached","resets_at":1768399200}}"#,
                "2026-01-14T14:00:00Z",
            ),
            ("x-ratelimit-reset: 1768399200", "2026-01-14T14:00:00Z"),
            ("Quota resets at 2026-01-14T14:00:00Z.", "2026-01-14T14:00:00Z"),
            (
                "Quota resets at 2026-01-14T14:00:00.250Z",
                "2026-01-14T14:00:00.25Z",
            ),
            ("reset: 2026-01-14T22:00:00+08:00", "2026-01-14T14:00:00Z"),
            (
                "anthropic-ratelimit-requests-reset: 2026-01-14T14:00:00Z",
                "2026-01-14T14:00:00Z",
            ),
            ("resets at 2026-01-14T14:00:00 UTC", "2026-01-14T14:00:00Z"),
            ("resets at 2026-01-14T14:00:00", "2026-01-14T19:00:00Z"),
            ("resets at 2026-01-14 14:00 UTC", "2026-01-14T14:00:00Z"),
        ],
    );
}

#[test]
fn durations_count_from_now() {
    check(
        NOON,
        "UTC",
        &[
            ("retry-after: 30", "2026-01-14T12:00:30Z"),
            ("Retry-After: 3600", "2026-01-14T13:00:00Z"),
            (r#""retry_after":90"#, "2026-01-14T12:01:30Z"),
            (r#"{"retryDelay": "34.5s"}"#, "2026-01-14T12:00:34.5Z"),
            ("retry_after_ms=1500", "2026-01-14T12:00:01.5Z"),
            ("\"resets_in_seconds\": 7200", "2026-01-14T14:00:00Z"),
            ("Please try again in 3h 12m.", "2026-01-14T15:12:00Z"),
            (
                "Please try again in 1.5s. Visit https://example.com",
                "2026-01-14T12:00:01.5Z",
            ),
            ("try again in 500ms", "2026-01-14T12:00:00.5Z"),
            ("Try again in 3 hours and 5 minutes", "2026-01-14T15:05:00Z"),
            ("Try again in 2 days 1 hour.", "2026-01-16T13:00:00Z"),
            ("try again in an hour", "2026-01-14T13:00:00Z"),
            ("Your quota will reset after 18h31m10s.", "2026-01-15T06:31:10Z"),
            ("resets in 45 min", "2026-01-14T12:45:00Z"),
            ("Please wait 30 seconds before retrying", "2026-01-14T12:00:30Z"),
            ("Please wait for 5 minutes", "2026-01-14T12:05:00Z"),
            ("retry after 20 seconds", "2026-01-14T12:00:20Z"),
            ("available again in ~2h", "2026-01-14T14:00:00Z"),
        ],
    );
}

#[test]
fn times_of_day_mean_the_next_occurrence_in_their_zone() {
    check(
        NOON,
        "UTC",
        &[
            ("You've hit your limit · resets 8:20pm", "2026-01-14T20:20:00Z"),
            ("5-hour limit reached ∙ resets 3pm", "2026-01-14T15:00:00Z"),
            ("resets 9am", "2026-01-15T09:00:00Z"),
            ("resets 12am", "2026-01-15T00:00:00Z"),
            ("resets at 12pm tomorrow", "-"),
            ("resets tomorrow at 12pm", "2026-01-15T12:00:00Z"),
            ("resets at midnight", "2026-01-15T00:00:00Z"),
            ("reset at 14:00 UTC", "2026-01-14T14:00:00Z"),
            ("Limit will reset at 14:00:30", "2026-01-14T14:00:30Z"),
            ("resets 2pm (Asia/Shanghai)", "2026-01-15T06:00:00Z"),
            ("resets 9pm (Asia/Shanghai)", "2026-01-14T13:00:00Z"),
            ("resets 8:20pm (Europe/Berlin)", "2026-01-14T19:20:00Z"),
            ("resets 3 PM PST", "2026-01-14T23:00:00Z"),
            ("resets at 16:30 UTC+2", "2026-01-14T14:30:00Z"),
            ("try again at 3:45 PM", "2026-01-14T15:45:00Z"),
            ("resets 08:09", "2026-01-15T08:09:00Z"),
            ("unavailable until 13:00", "2026-01-14T13:00:00Z"),
        ],
    );
}

#[test]
fn users_zone_is_the_default() {
    check(
        NOON,
        "America/New_York",
        &[
            ("resets 8:20pm", "2026-01-15T01:20:00Z"),
            ("resets 6am", "2026-01-15T11:00:00Z"),
            ("resets 8am", "2026-01-14T13:00:00Z"),
        ],
    );
    // In Tokyo it is already the next day.
    check(
        "2026-01-14T23:30:00Z",
        "Asia/Tokyo",
        &[
            ("resets 9am", "2026-01-15T00:00:00Z"),
            ("resets 8am", "2026-01-15T23:00:00Z"),
        ],
    );
}

#[test]
fn weekdays_and_dates() {
    // `NOON` is on a Wednesday.
    check(
        NOON,
        "UTC",
        &[
            ("resets Monday 9am", "2026-01-19T09:00:00Z"),
            ("resets Wed 9am", "2026-01-21T09:00:00Z"),
            ("resets Wed at 1:00 PM", "2026-01-14T13:00:00Z"),
            (
                "Weekly limit reached ∙ resets Jan 16, 1pm",
                "2026-01-16T13:00:00Z",
            ),
            (
                "resets Jan 16 at 5pm (America/Los_Angeles)",
                "2026-01-17T01:00:00Z",
            ),
            ("try again at Jan 18th, 2026 9:41 AM.", "2026-01-18T09:41:00Z"),
            ("resets on Feb 1", "2026-02-01T00:00:00Z"),
            ("resets on Feb 30", "-"),
        ],
    );
    check(
        "2025-12-30T12:00:00Z",
        "UTC",
        &[("resets Jan 2, 1pm", "2026-01-02T13:00:00Z")],
    );
}

#[test]
fn daylight_saving_changes() {
    // New York skips 02:00 to 03:00 on 8 March 2026.
    check(
        "2026-03-08T06:30:00Z",
        "America/New_York",
        &[
            ("resets 2:30am", "2026-03-08T07:30:00Z"),
            ("resets 3am", "2026-03-08T07:00:00Z"),
            ("resets 1am", "2026-03-09T05:00:00Z"),
            ("try again in 1h", "2026-03-08T07:30:00Z"),
        ],
    );
    // The day before: the gap is between now and the reset.
    check(
        "2026-03-07T18:00:00Z",
        "America/New_York",
        &[
            ("resets 2:30am", "2026-03-08T07:30:00Z"),
            ("resets 8am", "2026-03-08T12:00:00Z"),
        ],
    );
    // 01:30 occurs twice in New York on 1 November 2026: at 05:30 and at 06:30 UTC.
    check(
        "2026-11-01T05:00:00Z",
        "America/New_York",
        &[("resets 1:30am", "2026-11-01T05:30:00Z")],
    );
    check(
        "2026-11-01T06:00:00Z",
        "America/New_York",
        &[("resets 1:30am", "2026-11-01T06:30:00Z")],
    );
    // Berlin skips 02:00 to 03:00 on 29 March 2026.
    check(
        "2026-03-28T20:00:00Z",
        "UTC",
        &[("resets 2:15am (Europe/Berlin)", "2026-03-29T01:15:00Z")],
    );
    // A day without midnight: Santiago skips from 23:59:59 to 01:00 on 6 September 2026.
    check(
        "2026-09-05T20:00:00Z",
        "America/Santiago",
        &[("resets at midnight", "2026-09-06T04:00:00Z")],
    );
}

#[test]
fn times_across_midnight() {
    check(
        "2026-01-14T23:59:30Z",
        "UTC",
        &[
            ("resets 12:30am", "2026-01-15T00:30:00Z"),
            ("resets 11pm", "2026-01-15T23:00:00Z"),
            ("resets 11:59pm", "-"),
            ("try again in 1m", "2026-01-15T00:00:30Z"),
        ],
    );
}

#[test]
fn time_that_has_just_passed_is_not_tomorrow() {
    check(
        "2026-01-14T14:00:05Z",
        "UTC",
        &[("resets 2pm", "-"), ("resets 1:30pm", "2026-01-15T13:30:00Z")],
    );
}

#[test]
fn text_without_reset_time_gives_none() {
    check(
        NOON,
        "UTC",
        &[
            ("You've hit your usage limit.", "-"),
            ("Please try again later.", "-"),
            ("You sent 50 requests in 5 hours", "-"),
            ("retry 3 of 10", "-"),
            ("try again at your own risk", "-"),
            ("resets at 25:00", "-"),
            ("resets at 13pm", "-"),
            ("request id 9999999999", "-"),
            ("1000000000 tokens", "-"),
            ("2026-01-14T11:59:59Z ERROR limit", "-"),
            ("resets at 2031-01-14T14:00:00Z", "-"),
            ("try again in 99999999999999999999 days", "-"),
            ("resets may 2pm", "-"),
            ("", "-"),
        ],
    );
}

#[test]
fn first_parsable_form_wins() {
    check(
        NOON,
        "UTC",
        &[
            (
                "2026-01-14T11:59:59Z ERROR 429, try again in 30s",
                "2026-01-14T12:00:30Z",
            ),
            ("50 requests in 5 hours. Resets 8:20pm.", "2026-01-14T20:20:00Z"),
        ],
    );
}

proptest::proptest! {
    #[test]
    fn no_text_panics_and_every_result_is_in_the_future(text in "(resets|try again in|at|[0-9]{1,13}|pm|am|:|\\.| |jan|mon|utc|\\+|h|m|\\PC){0,12}") {
        let now: Timestamp = NOON.parse().expect("a time");
        if let Some(time) = stated_reset(&text, now, &TimeZone::UTC) {
            proptest::prop_assert!(time > now && time.duration_since(now) <= MAX_WAIT);
        }
    }
}
