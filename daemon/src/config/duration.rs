//! Durations as people write them: `20m`, `90s`, `2h`, `7d`, `1h 30m`.

use std::time::Duration;

use jiff::{Span, SpanRelativeTo};
use serde::Serializer;

/// Reads a duration; days are 24 hours. `None` for anything else, a negative one included, and for
/// months and years, whose length depends on the date.
pub fn parse(text: &str) -> Option<Duration> {
    let span: Span = text.trim().parse().ok()?;
    let signed = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    Duration::try_from(signed).ok()
}

/// Writes a duration in the largest whole units, such as `7d` or `1h 30m`; read back by [`parse`].
pub fn format(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3_600 % 24, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
        (u64::from(duration.subsec_millis()), "ms"),
    ];
    let words: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count}{unit}"))
        .collect();
    if words.is_empty() { "0s".to_owned() } else { words.join(" ") }
}

/// For `#[serde(serialize_with)]`.
pub(super) fn as_text<S: Serializer>(duration: &Duration, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(&format(*duration))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_forms_of_the_manual_are_understood() {
        for (text, seconds) in [
            ("20m", 1_200),
            ("90s", 90),
            ("2h", 7_200),
            ("7d", 604_800),
            ("1w", 604_800),
            ("1h 30m", 5_400),
            ("1h30m", 5_400),
            ("0s", 0),
            (" 5 minutes ", 300),
        ] {
            assert_eq!(parse(text), Some(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn what_is_no_length_of_time_is_refused() {
        for text in ["", "20", "soon", "-5m", "5m ago", "1 month", "1y", "20x", "9999999999999999h"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_duration_is_written_in_its_largest_units() {
        assert_eq!(format(Duration::from_hours(7 * 24)), "7d");
        assert_eq!(format(Duration::from_mins(90)), "1h 30m");
        assert_eq!(format(Duration::ZERO), "0s");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(millis in 0_u64..10_000_000_000_000) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse(&format(duration)), Some(duration));
        }
    }
}
