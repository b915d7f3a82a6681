//! The one place that asks what time it is. Everything else gets the time as an argument.

use jiff::Timestamp;

/// The time, to the microsecond: what the ledger keeps.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}
