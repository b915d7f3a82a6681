//! What goes over the socket (interface.md, "Socket").

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::{Exit, Failure};

/// Longest request line, in bytes.
pub const MAX_REQUEST: u64 = 1024 * 1024;

/// A request, or a notification where `id` is missing.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// Always `2.0`.
    pub jsonrpc: String,
    /// Given back with the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// What is asked.
    pub method: String,
    /// With what.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub params: Value,
}

/// An answer.
#[derive(Debug, Serialize, Deserialize)]
pub struct Response {
    /// Always `2.0`.
    pub jsonrpc: String,
    /// The request's id.
    pub id: Value,
    /// The result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Or what went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RpcError>,
}

/// What went wrong.
#[derive(Debug, Serialize, Deserialize)]
pub struct RpcError {
    /// JSON-RPC's code; -32000 for failures of our own.
    pub code: i32,
    /// One line.
    pub message: String,
    /// How `majordomusctl` exits on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<ErrorData>,
}

/// The exit that goes with an error.
#[derive(Debug, Serialize, Deserialize)]
pub struct ErrorData {
    /// Exit of `majordomusctl`.
    pub exit: Exit,
}

/// JSON-RPC: the line is no JSON.
pub const PARSE_ERROR: i32 = -32_700;
/// JSON-RPC: it is JSON, but no request.
pub const INVALID_REQUEST: i32 = -32_600;
/// JSON-RPC: no such method.
pub const METHOD_NOT_FOUND: i32 = -32_601;
/// JSON-RPC: the parameters do not fit.
pub const INVALID_PARAMS: i32 = -32_602;
/// Our own failures; `data.exit` tells which.
pub const FAILED: i32 = -32_000;

impl Response {
    /// An answer with a result.
    pub fn ok(id: Value, result: Value) -> Self {
        Self { jsonrpc: "2.0".to_owned(), id, result: Some(result), error: None }
    }

    /// An answer with an error.
    pub fn error(id: Value, code: i32, message: impl Into<String>, exit: Option<Exit>) -> Self {
        let data = exit.map(|exit| ErrorData { exit });
        let error = RpcError { code, message: message.into(), data };
        Self { jsonrpc: "2.0".to_owned(), id, result: None, error: Some(error) }
    }
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Self {
        let exit = error.data.map_or(Exit::Failed, |data| data.exit);
        Self::new(exit, error.message)
    }
}

/// Which session a method is about.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionParams {
    /// Any unique prefix of its id, or `last`.
    #[serde(default)]
    pub session: Option<String>,
}

/// Parameters of `session.close`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloseParams {
    /// Which session.
    #[serde(default)]
    pub session: Option<String>,
    /// Or every open one.
    #[serde(default)]
    pub all: bool,
    /// An authored summary; it becomes the record's body.
    #[serde(default)]
    pub summary: Option<String>,
}

/// An episode that was closed on request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedView {
    /// The tool.
    pub tool: String,
    /// The session.
    pub session: String,
    /// The episode.
    pub episode: u32,
    /// Its envelope's id.
    pub envelope_id: String,
    /// Its envelope's file.
    pub envelope: String,
}

/// The state of the whole (interface.md, `status`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// `running`, `starting` while the first catch-up goes on, `stopping`, or `stopped`.
    pub daemon: String,
    /// The daemon's version; without a daemon the companion's own.
    pub version: String,
    /// The daemon's process.
    pub pid: Option<u32>,
    /// How long it has been up.
    pub uptime_s: u64,
    /// The roots.
    pub sources: Vec<RootStatus>,
    /// How far what was seen has come.
    pub funnel: Funnel,
    /// Sessions.
    pub sessions: SessionCounts,
    /// The ledger.
    pub ledger: LedgerStatus,
    /// Deliveries.
    pub outbox: OutboxStatus,
    /// The vault.
    pub vault: PartStatus,
    /// The drafter.
    pub drafter: PartStatus,
    /// What is not in the ledger yet.
    pub lag: Lag,
    /// The last thing that went wrong.
    pub last_error: Option<String>,
    /// What a person should look at, one line each.
    pub problems: Vec<String>,
    /// Where state is kept.
    pub state_dir: String,
}

/// A root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootStatus {
    /// Whose it is.
    pub tool: String,
    /// Where it is.
    pub path: String,
    /// `events`, `polling`, `missing`, or `unwatched` without a daemon.
    pub mode: String,
}

/// How far what was seen has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Funnel {
    /// Session files seen.
    pub seen: u64,
    /// Session files with lines in the ledger.
    pub ledgered: u64,
    /// Episodes closed.
    pub closed: u64,
    /// Notes drafted.
    pub drafted: u64,
    /// Notes in a vault.
    pub pushed: u64,
    /// Why episodes have no note.
    pub dropped: BTreeMap<String, u64>,
}

/// Sessions by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCounts {
    /// With an open episode.
    pub open: u64,
    /// Without.
    pub closed: u64,
    /// Episodes of all of them.
    pub episodes: u64,
}

/// The ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerStatus {
    /// Events.
    pub events: u64,
    /// Size on disk.
    pub bytes: u64,
    /// Lines that could not be read.
    pub unreadable: u64,
    /// Lines of unknown shape.
    pub unknown: u64,
}

/// Deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxStatus {
    /// Waiting.
    pub pending: u64,
    /// Given up until a person acts.
    pub failed: u64,
    /// Since when the oldest waits.
    pub oldest_at: Option<Timestamp>,
}

/// A part that can be out of order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartStatus {
    /// Which kind.
    pub kind: String,
    /// Whether it works.
    pub ok: bool,
    /// What is wrong with it.
    pub error: Option<String>,
}

/// What is not in the ledger yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lag {
    /// Bytes.
    pub bytes: u64,
    /// Files.
    pub files: u64,
}
