//! When an episode is over. A decision is a value, and the time is an argument.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// When sessions are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosingRules {
    /// Silence after which an episode is over.
    pub idle_after: SignedDuration,
    /// Silence after a sign of the tool that the session ended.
    pub end_grace: SignedDuration,
    /// How long a tool call without its result keeps the episode open.
    pub max_open_call: SignedDuration,
}

/// What is known of an open episode's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// Last activity by the entries' own times.
    pub active_at: Timestamp,
    /// When the daemon itself saw the source grow last; entries may carry old times.
    pub seen_at: Option<Timestamp>,
    /// When the tool said that the session ended, if nothing happened since.
    pub ended_at: Option<Timestamp>,
    /// The oldest tool call still without a result.
    pub open_call_since: Option<Timestamp>,
}

/// Why an episode closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CloseReason {
    /// It was silent for long enough.
    Idle,
    /// The tool said that it ended.
    Ended,
    /// Somebody asked for it.
    Manual,
    /// The daemon was told to close everything before it stops.
    Shutdown,
}

impl CloseReason {
    /// The name in envelope and ledger.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Ended => "ended",
            Self::Manual => "manual",
            Self::Shutdown => "shutdown",
        }
    }
}

/// Whether an episode is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is not, and cannot be before `until`.
    Keep {
        /// When to look again.
        until: Timestamp,
    },
    /// It is.
    Close {
        /// Why.
        reason: CloseReason,
        /// When it ended: computed from the last activity, never "now".
        at: Timestamp,
    },
}

/// Decides whether an episode is over at `now`. The close's time follows from what happened, so that a daemon
/// that was away writes what one that was there would have written.
pub fn decide(pulse: &Pulse, rules: &ClosingRules, now: Timestamp) -> Decision {
    let after =
        |at: Timestamp, wait: SignedDuration| at.checked_add(wait).unwrap_or(Timestamp::MAX);
    // What was seen to grow is alive, whatever its lines say; what claims the future is not.
    let alive_at = pulse.active_at.max(pulse.seen_at.unwrap_or(Timestamp::MIN));
    let mut until = after(alive_at, rules.idle_after);
    let mut at = after(pulse.active_at, rules.idle_after);
    if let Some(since) = pulse.open_call_since {
        // Long builds are not idleness.
        until = until.max(after(since, rules.max_open_call));
        at = at.max(after(since, rules.max_open_call));
    }
    let mut reason = CloseReason::Idle;
    if let Some(ended_at) = pulse.ended_at {
        let seen_end = ended_at.max(pulse.seen_at.unwrap_or(Timestamp::MIN));
        let grace_over = after(seen_end, rules.end_grace);
        if grace_over < until {
            (until, at, reason) =
                (grace_over, after(ended_at, rules.end_grace), CloseReason::Ended);
        }
    }
    if now >= until { Decision::Close { reason, at } } else { Decision::Keep { until } }
}
