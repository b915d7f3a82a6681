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

/// The form that both tools write: UTC, milliseconds, `Z`.
pub fn canonical(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
