//! The methods of the socket. The same functions answer `majordomusctl` when no daemon runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use majordomus_core::ids::SessionRow;
use majordomus_core::ledger::Reader;
use majordomus_core::session::CloseReason;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::close::{Closed, Closer};
use crate::failure::{Exit, Failure};
use crate::live::Live;
use crate::paths::Paths;
use crate::run::InForce;
use crate::socket::protocol::{
    CloseParams, ClosedView, Funnel, Lag, LedgerStatus, OutboxStatus, PartStatus, RootStatus,
    SessionCounts, SessionParams, Status,
};
use crate::socket::server::Answer;
use crate::view::{self, SessionFilter};

/// Answers the socket's requests.
#[derive(Debug)]
pub struct Api {
    /// Where things are.
    pub paths: Paths,
    /// What the daemon knows of itself.
    pub live: Arc<Live>,
    /// Closes sessions.
    pub closer: Arc<Closer>,
    /// Wakes the drafting stage.
    pub closed: Arc<Notify>,
    /// Stops the daemon.
    pub stop: CancellationToken,
    /// What the configuration says of vault and drafter.
    pub parts: InForce<Parts>,
}

/// The kinds of the parts that a configuration chooses.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The vault's kind.
    pub vault: String,
    /// The drafter's kind.
    pub drafter: String,
    /// How far back history gets notes.
    pub notes_since: SignedDuration,
}

impl Api {
    /// Answers one request.
    pub async fn answer(&self, method: &str, params: Value) -> Result<Answer> {
        match method {
            // Answered without the store: whether anybody is at home is a question of its own.
            "ping" => Ok(Answer::Result(json!({"version": env!("CARGO_PKG_VERSION")}))),
            "status" => with(params, |_: Empty| self.status()).await,
            "sessions.list" => with(params, |filter| self.sessions(filter)).await,
            "session.show" => with(params, |params| self.show(params)).await,
            "session.envelope" => with(params, |params| self.envelope(params)).await,
            "session.close" => with(params, |params| self.close(params)).await,
            "notes.list" => with(params, |params| self.notes(params)).await,
            "stop" => with(params, |_: Empty| self.stop()).await,
            "events.subscribe" => {
                let events = self.live.listen();
                Ok(Answer::Stream(json!({"subscribed": true}), events))
            }
            _ => Ok(Answer::NoSuchMethod),
        }
    }

    async fn reader(&self) -> Result<Reader> {
        Ok(Reader::open(&self.paths.ledger).await?)
    }

    async fn status(&self) -> Result<Value> {
        let status = live_status(&self.paths, &self.parts.get(), &self.live).await?;
        Ok(serde_json::to_value(status)?)
    }

    async fn sessions(&self, filter: SessionFilter) -> Result<Value> {
        Ok(serde_json::to_value(view::sessions(&mut self.reader().await?, &filter).await?)?)
    }

    async fn show(&self, params: SessionParams) -> Result<Value> {
        let name = named(params)?;
        Ok(serde_json::to_value(view::detail(&mut self.reader().await?, &name).await?)?)
    }

    async fn envelope(&self, params: SessionParams) -> Result<Value> {
        let name = named(params)?;
        let bytes = view::envelope(&mut self.reader().await?, &self.paths.state_dir, &name).await?;
        // As text: the caller prints the very bytes that were written.
        Ok(Value::String(String::from_utf8_lossy(&bytes).into_owned()))
    }

    async fn notes(&self, params: SessionParams) -> Result<Value> {
        let mut reader = self.reader().await?;
        Ok(serde_json::to_value(view::notes(&mut reader, params.session.as_deref()).await?)?)
    }

    async fn close(&self, params: CloseParams) -> Result<Value> {
        let CloseParams { session, all, summary } = params;
        let mut reader = self.reader().await?;
        let sessions: Vec<SessionRow> = match (session, all) {
            (Some(name), false) => vec![view::find(&mut reader, &name).await?.row],
            (None, true) => {
                reader.open_sessions().await?.into_iter().map(|state| state.row).collect()
            }
            _ => return Err(Failure::usage("close takes a session or --all").into()),
        };
        if sessions.is_empty() {
            return Err(
                Failure::new(Exit::NothingOpen, "no session is open; nothing to close").into()
            );
        }
        let mut closed = Vec::new();
        for session in sessions {
            let done = self
                .closer
                .close_now(session, CloseReason::Manual, summary.clone(), clock::now())
                .await?;
            self.live.tell(closed_event(&done));
            self.closed.notify_one();
            closed.push(closed_view(&done));
        }
        Ok(serde_json::to_value(closed)?)
    }

    #[expect(clippy::unused_async, reason = "one shape for all methods")]
    async fn stop(&self) -> Result<Value> {
        self.stop.cancel();
        Ok(json!({"stopping": true, "pid": std::process::id()}))
    }
}

/// Methods without parameters take none.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Empty {}

/// Reads a method's parameters and runs it.
async fn with<P, F>(params: Value, method: impl FnOnce(P) -> F) -> Result<Answer>
where
    P: DeserializeOwned,
    F: Future<Output = Result<Value>>,
{
    let params = if params.is_null() { json!({}) } else { params };
    match serde_json::from_value(params) {
        Ok(params) => method(params).await.map(Answer::Result),
        Err(error) => Ok(Answer::BadParams(format!("the parameters do not fit: {error}"))),
    }
}

fn named(params: SessionParams) -> Result<String> {
    params
        .session
        .ok_or_else(|| Failure::usage("which session? Give its id, a prefix, or last").into())
}

fn closed_view(closed: &Closed) -> ClosedView {
    ClosedView {
        tool: closed.session.key.tool.to_string(),
        session: closed.session.key.native.to_string(),
        episode: closed.envelope.episode,
        envelope_id: closed.envelope.id.clone(),
        envelope: closed.envelope.path.clone(),
    }
}

/// What those who watch are told of a close.
pub fn closed_event(closed: &Closed) -> Value {
    json!({
        "kind": "session.closed",
        "tool": closed.session.key.tool,
        "session": closed.session.key.native,
        "episode": closed.envelope.episode,
        "reason": closed.envelope.reason,
    })
}

/// The instant before which a session is history that gets no note by itself: counted back from the newest
/// activity that the first catch-up found, so that a newcomer whose last session was a month ago sees notes too.
pub async fn notes_cutoff(reader: &mut Reader, notes_since: SignedDuration) -> Result<Timestamp> {
    let anchor = match reader.meta(HISTORY_ENDS).await? {
        Some(text) => text.parse::<Timestamp>().unwrap_or(Timestamp::MIN),
        None => return Ok(Timestamp::MIN),
    };
    Ok(anchor.checked_sub(notes_since).unwrap_or(Timestamp::MIN))
}

/// The key under which the newest activity of the first catch-up is remembered.
pub const HISTORY_ENDS: &str = "history_ends_at";

/// The state of the whole as the running daemon knows it.
pub async fn live_status(paths: &Paths, parts: &Parts, live: &Live) -> Result<Status> {
    let mut reader = Reader::open(&paths.ledger).await?;
    let mut status = stored_status(&mut reader, paths, parts).await?;
    live.phase().clone_into(&mut status.daemon);
    status.pid = Some(std::process::id());
    let uptime = clock::now().duration_since(live.started_at).as_secs();
    status.uptime_s = u64::try_from(uptime).unwrap_or(0);
    status.sources = live.roots();
    status.vault.error = live.vault_error();
    status.vault.ok = status.vault.error.is_none();
    status.last_error = live.last_error();
    status.problems = live.problems();
    Ok(status)
}

/// The state of the whole as far as the store tells it.
pub async fn stored_status(reader: &mut Reader, paths: &Paths, parts: &Parts) -> Result<Status> {
    let totals = reader.totals().await?;
    let cutoff = notes_cutoff(reader, parts.notes_since).await?;
    let dropped: BTreeMap<String, u64> = reader.skipped(cutoff).await?.into_iter().collect();
    let (behind_files, behind_bytes) = totals.behind;
    Ok(Status {
        funnel: Funnel {
            seen: totals.sources,
            ledgered: totals.ledgered_sources,
            closed: totals.closed_episodes,
            drafted: totals.notes,
            pushed: totals.notes,
            dropped,
        },
        sessions: SessionCounts {
            open: totals.open_sessions,
            closed: totals.closed_sessions,
            episodes: totals.episodes,
        },
        ledger: LedgerStatus {
            events: totals.events,
            bytes: size_on_disk(&paths.ledger),
            unreadable: totals.unreadable,
            unknown: totals.unknown,
        },
        lag: Lag { bytes: behind_bytes, files: behind_files },
        ..empty_status(paths, parts)
    })
}

/// The state of a whole that has no store yet.
pub fn empty_status(paths: &Paths, parts: &Parts) -> Status {
    Status {
        daemon: "stopped".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: None,
        uptime_s: 0,
        sources: Vec::new(),
        funnel: Funnel::default(),
        sessions: SessionCounts::default(),
        ledger: LedgerStatus::default(),
        outbox: OutboxStatus::default(),
        vault: PartStatus { kind: parts.vault.clone(), ok: true, error: None },
        drafter: PartStatus { kind: parts.drafter.clone(), ok: true, error: None },
        lag: Lag::default(),
        last_error: None,
        problems: Vec::new(),
        state_dir: paths.state_dir.display().to_string(),
    }
}

/// The database with its write-ahead log.
fn size_on_disk(ledger: &Path) -> u64 {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let mut log = ledger.as_os_str().to_owned();
    log.push("-wal");
    size(ledger) + size(Path::new(&log))
}

/// The roots as they look without a daemon.
pub fn unwatched_roots(roots: &[crate::scan::WatchRoot]) -> Vec<RootStatus> {
    roots
        .iter()
        .map(|root| RootStatus {
            tool: root.tool.to_string(),
            path: root.path.display().to_string(),
            mode: if root.path.is_dir() { "unwatched" } else { "missing" }.to_owned(),
        })
        .collect()
}
