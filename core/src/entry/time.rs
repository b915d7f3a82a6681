//! Times as tools write them: RFC 3339 with any fraction and offset, without a zone, or as integers
//! (formats.md F12, F17).

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// A time as it was written and as an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenTime {
    instant: Timestamp,
    written: Option<String>,
}

/// Written forms longer than this are not times.
const MAX_WRITTEN: usize = 64;

impl WrittenTime {
    /// Reads a string. Accepts RFC 3339 with any fraction and any offset; a time without a zone is UTC.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_WRITTEN {
            return None;
        }
        if let Some(instant) = parse_canonical(text) {
            return Some(Self { instant, written: None });
        }
        let instant = text.parse::<Timestamp>().ok().or_else(|| {
            let civil = text.parse::<DateTime>().ok()?;
            TimeZone::UTC.to_timestamp(civil).ok()
        })?;
        // The ledger keeps microseconds; what it cannot give back exactly is kept as written.
        let instant = Timestamp::from_microsecond(instant.as_microsecond()).ok()?;
        let canonical = canonical(instant);
        let written = (canonical != text).then(|| text.to_owned());
        Some(Self { instant, written })
    }

    /// Reads a number: seconds, or milliseconds where seconds would lie beyond the year 5000.
    pub fn from_number(number: i64) -> Option<Self> {
        const SECONDS_LIMIT: i64 = 100_000_000_000;
        let instant = if number.abs() < SECONDS_LIMIT {
            Timestamp::from_second(number)
        } else {
            Timestamp::from_millisecond(number)
        }
        .ok()?;
        Some(Self { instant, written: Some(number.to_string()) })
    }

    /// Puts the two columns of the ledger together again.
    pub fn from_parts(instant: Timestamp, written: Option<String>) -> Self {
        Self { instant, written }
    }

    /// The instant, to the microsecond.
    pub fn instant(&self) -> Timestamp {
        self.instant
    }

    /// The written form where it is not `YYYY-MM-DDTHH:MM:SS.mmmZ`.
    pub fn unusual_form(&self) -> Option<&str> {
        self.written.as_deref()
    }

    /// The time as the tool wrote it.
    pub fn as_written(&self) -> String {
        self.written.clone().unwrap_or_else(|| canonical(self.instant))
    }
}

/// Reads exactly `YYYY-MM-DDTHH:MM:SS.mmmZ`, which nearly every line has; anything else is for the library.
fn parse_canonical(text: &str) -> Option<Timestamp> {
    let bytes: &[u8; 24] = text.as_bytes().try_into().ok()?;
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
    if marks.iter().any(|(at, mark)| bytes[*at] != *mark) {
        return None;
    }
    let number = |range: std::ops::Range<usize>| {
        bytes[range].iter().try_fold(0_i16, |number, byte| {
            byte.is_ascii_digit().then(|| number * 10 + i16::from(byte - b'0'))
        })
    };
    let small = |range| number(range).and_then(|number| i8::try_from(number).ok());
    let milliseconds = i32::from(number(20..23)?);
    let date = jiff::civil::Date::new(number(0..4)?, small(5..7)?, small(8..10)?).ok()?;
    let time = jiff::civil::Time::new(
        small(11..13)?,
        small(14..16)?,
        small(17..19)?,
        milliseconds * 1_000_000,
    );
    TimeZone::UTC.to_timestamp(date.to_datetime(time.ok()?)).ok()
}

/// The form that both tools write: UTC, milliseconds, `Z`.
pub fn canonical(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_usual_form_is_read_as_the_library_reads_it(ms in -30_000_000_000_000_i64..200_000_000_000_000) {
            let instant = Timestamp::from_millisecond(ms).expect("in range");
            let text = canonical(instant);
            prop_assert_eq!(text.parse::<Timestamp>().ok(), Some(instant));
            let time = WrittenTime::parse(&text).expect("a time");
            prop_assert_eq!((time.instant(), time.unusual_form()), (instant, None));
        }

        #[test]
        fn what_is_nearly_a_time_is_left_to_the_library(text in "[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}[Zz]") {
            let ours = parse_canonical(&text);
            if let Some(ours) = ours {
                prop_assert_eq!(text.parse::<Timestamp>().ok(), Some(ours));
            }
        }
    }
}
