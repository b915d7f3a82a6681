//! Appending: lines become events, and the checkpoints of their sources move, in one transaction.
//!
//! This is the hot path of a catch-up, so it runs on the driver that costs a call per row and not a message between
//! threads (BENCHMARKS.md). A [`Transaction`] takes any number of batches; the caller decides how often it commits.

mod checkpoint;
mod claim;
mod session;
mod shape;

use std::collections::HashMap;

use jiff::Timestamp;
use rusqlite::{CachedStatement, Connection, params};

use self::claim::Claims;
use self::session::{Activity, Origins, Session};
use super::event::EventKind;
use super::source::Checkpoint;
use super::{Ledger, LedgerError};
use crate::entry::{Context, Entry, Fact, Role, ShapeCount, SourceIdentity, WrittenTime};
use crate::ids::{LedgerSeq, LineHash, SessionRow, SourceRow, Tool};

/// A line that is to become an event.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// Offset of its first byte.
    pub position: u64,
    /// Its length in bytes, without the line end.
    pub length: u64,
    /// Hash of its bytes.
    pub hash: LineHash,
    /// What it means.
    pub entry: Entry,
}

/// Lines of one source, and where the source stands after them.
#[derive(Debug)]
pub struct Batch<'a> {
    /// The source.
    pub source: SourceRow,
    /// Who writes it.
    pub tool: Tool,
    /// Whose the lines are.
    pub identity: &'a SourceIdentity,
    /// Where the source stood when the lines were read: the batch follows on from there or is left out.
    pub from: u64,
    /// The lines, in file order.
    pub events: &'a [NewEvent],
    /// Which shapes they have.
    pub shapes: &'a [ShapeCount],
    /// Where the source stands after them.
    pub checkpoint: &'a Checkpoint,
}

/// What an append made true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The session that the lines belong to.
    pub session: SessionRow,
    /// The last event of the append.
    pub last: LedgerSeq,
    /// Number of lines that became events.
    pub events: u64,
    /// The episode that it opened.
    pub opened: Option<u32>,
}

/// Contexts repeat on every line of a session; this many are remembered before starting anew.
const CONTEXT_CACHE: usize = 1_000;

/// The driver's handle for appends.
#[derive(Debug)]
pub(super) struct Appender {
    pub(super) connection: Connection,
    /// Row ids of contexts met lately. Those handed out in a transaction are void unless it commits.
    contexts: HashMap<Context, i64>,
}

impl Appender {
    pub(super) fn new(connection: Connection) -> Self {
        Self { connection, contexts: HashMap::new() }
    }
}

/// Lines on their way into the ledger: all of them or none. Dropped without [`Transaction::commit`] it leaves no
/// trace.
#[derive(Debug)]
pub struct Transaction<'l> {
    appender: &'l mut Appender,
    is_over: bool,
}

impl Ledger {
    /// Begins to append. What is in the transaction is in the ledger once it is committed.
    pub fn transaction(&mut self) -> Result<Transaction<'_>, LedgerError> {
        let appender = &mut self.appender;
        // After a failure (a full disk, most likely) a transaction may have been left open.
        if !appender.connection.is_autocommit() {
            appender
                .connection
                .execute_batch("ROLLBACK")
                .map_err(LedgerError::statement("give up an append"))?;
        }
        appender
            .connection
            .execute_batch("BEGIN IMMEDIATE")
            .map_err(LedgerError::statement("begin an append"))?;
        Ok(Transaction { appender, is_over: false })
    }

    /// Adds the lines of the batches as events, opens episodes where they call for it, and moves the
    /// checkpoints: all of it or nothing. A batch that does not follow on from where its source stands was read
    /// beside another pass, which has its lines or will have them: it is left out, and gives no [`Appended`].
    pub fn append(&mut self, batches: &[Batch<'_>]) -> Result<Vec<Appended>, LedgerError> {
        let mut transaction = self.transaction()?;
        let mut all = Vec::with_capacity(batches.len());
        for batch in batches {
            all.extend(transaction.append(batch)?);
        }
        transaction.commit()?;
        Ok(all)
    }
}

impl Transaction<'_> {
    /// Makes what was appended true.
    pub fn commit(mut self) -> Result<(), LedgerError> {
        self.appender
            .connection
            .execute_batch("COMMIT")
            .map_err(LedgerError::statement("commit an append"))?;
        self.is_over = true;
        Ok(())
    }

    /// Adds the lines of a batch, as [`Ledger::append`] has it.
    pub fn append(&mut self, batch: &Batch<'_>) -> Result<Option<Appended>, LedgerError> {
        let connection = &self.appender.connection;
        if !checkpoint::follows_on(connection, batch.source, batch.from, batch.checkpoint)? {
            return Ok(None);
        }
        check_places(batch)?;
        let mut session = Session::of(connection, batch)?;
        let base = next_seq(connection)?;
        let mut adding = Adding {
            claims: Claims::of(connection, batch, &session)?,
            origins: Origins::new(connection, batch.tool),
            rows: Rows::prepare(connection)?,
            contexts: &mut self.appender.contexts,
            activity: Activity::new(batch.checkpoint),
            next: base,
            opened_by: None,
            has_own: false,
            facts: Vec::new(),
        };
        for event in batch.events {
            adding.add(batch, &mut session, event)?;
        }
        let Adding { claims, activity, next, opened_by, has_own, .. } = adding;
        if let Some(parent) = claims.forked_from() {
            session.set_fork(connection, parent)?;
        }
        session::add_aliases(connection, batch, session.row)?;
        let last = next - 1;
        session.update(connection, &activity, base, last, opened_by, has_own)?;
        shape::count(connection, batch.tool, batch.shapes, base)?;
        checkpoint::update(connection, batch.source, Some(session.row), batch.checkpoint)?;
        Ok(Some(Appended {
            session: session.row,
            last: LedgerSeq(last),
            events: batch.events.len() as u64,
            opened: opened_by.map(|_| session.episode),
        }))
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.appender.contexts.clear();
        // SQLite may have ended the transaction itself (a full disk); the next one begins with a look at that.
        drop(self.appender.connection.execute_batch("ROLLBACK"));
    }
}

/// A batch that is being added, line by line: what a line becomes depends on those before it, in this batch or in
/// an earlier one alike.
struct Adding<'c> {
    claims: Claims<'c>,
    origins: Origins<'c>,
    rows: Rows<'c>,
    contexts: &'c mut HashMap<Context, i64>,
    activity: Activity,
    /// The number of the next event.
    next: i64,
    /// The event that opened an episode.
    opened_by: Option<i64>,
    /// Some line counts.
    has_own: bool,
    /// Room for a line's facts as JSON.
    facts: Vec<u8>,
}

impl Adding<'_> {
    fn add(
        &mut self,
        batch: &Batch<'_>,
        session: &mut Session,
        event: &NewEvent,
    ) -> Result<(), LedgerError> {
        let entry = &event.entry;
        let origin = match &entry.copied_from {
            Some(from) => Some(self.origins.find(from)?),
            None => None,
        };
        // The event that opens an episode stands just before the line that does.
        let opens = session.opens_with(entry) && origin.is_none_or(|origin| !origin.is_present);
        let expected = self.next + i64::from(opens);
        let claim = self.claims.make(batch, session, event, expected)?;
        let counts = claim.counts();
        if let Some(origin) = origin
            && batch.identity.role == Role::Main
        {
            self.claims.name_origin(origin.row);
        }
        if counts && opens {
            let at = entry.at.as_ref().map(|at| at.instant().as_microsecond());
            session.open();
            self.rows.insert_opened(session, self.next, at)?;
            self.next += 1;
            self.opened_by = Some(self.next);
        }
        if counts {
            self.has_own = true;
            self.activity.take(entry);
        }
        let context = self.rows.context(self.contexts, &entry.context)?;
        let copied_from = origin.map(|origin| origin.row).filter(|row| *row != session.row);
        let facts = facts_json(&mut self.facts, &entry.facts)?;
        let identity = claim.identity(entry);
        self.rows
            .event
            .execute(params![
                self.next,
                session.row.0,
                batch.source.0,
                batch.checkpoint.generation,
                event.position.cast_signed(),
                event.length.cast_signed(),
                &event.hash.0[..],
                entry.at.as_ref().map(|at| at.instant().as_microsecond()),
                entry.at.as_ref().and_then(WrittenTime::unusual_form),
                entry.kind.as_str(),
                context,
                identity.map(|id| id.0),
                copied_from.map(|row| row.0),
                facts,
            ])
            .map_err(LedgerError::statement("add an event"))?;
        self.next += 1;
        Ok(())
    }
}

/// The statements that are run for every line.
struct Rows<'c> {
    event: CachedStatement<'c>,
    opened: CachedStatement<'c>,
    context: CachedStatement<'c>,
}

impl<'c> Rows<'c> {
    fn prepare(connection: &'c Connection) -> Result<Self, LedgerError> {
        let prepare = |sql| {
            connection.prepare_cached(sql).map_err(LedgerError::statement("prepare an append"))
        };
        Ok(Self {
            event: prepare(
                "INSERT INTO event (seq, session, source, generation, position, length, hash, at, at_written, kind,
                                    context, entry, copied_from, facts)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            )?,
            opened: prepare(
                "INSERT INTO event (seq, session, at, kind, facts) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?,
            context: prepare(
                "INSERT INTO context (cwd, branch, version, agent) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (cwd, branch, version, agent) DO UPDATE SET cwd = excluded.cwd RETURNING id",
            )?,
        })
    }

    fn insert_opened(
        &mut self,
        session: &Session,
        seq: i64,
        at: Option<i64>,
    ) -> Result<(), LedgerError> {
        let facts = format!(r#"{{"episode":{}}}"#, session.episode);
        self.opened
            .execute(params![seq, session.row.0, at, EventKind::Opened.as_str(), facts])
            .map_err(LedgerError::statement("open an episode"))?;
        Ok(())
    }

    fn context(
        &mut self,
        known: &mut HashMap<Context, i64>,
        context: &Context,
    ) -> Result<Option<i64>, LedgerError> {
        if *context == Context::default() {
            return Ok(None);
        }
        if let Some(row) = known.get(context) {
            return Ok(Some(*row));
        }
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let Context { cwd, branch, version, agent } = context;
        let row = self
            .context
            .query_row(params![text(cwd), text(branch), text(version), text(agent)], |row| {
                row.get(0)
            })
            .map_err(LedgerError::statement("note a context"))?;
        if known.len() >= CONTEXT_CACHE {
            known.clear();
        }
        known.insert(context.clone(), row);
        Ok(Some(row))
    }
}

/// The lines stand one behind the other, from where the source stood: what keeps a place from being recorded twice.
fn check_places(batch: &Batch<'_>) -> Result<(), LedgerError> {
    let mut free = batch.from;
    for event in batch.events {
        if event.position < free {
            let what = format!("a line at {} in a source that stands at {free}", event.position);
            return Err(LedgerError::Damaged { what });
        }
        free = event.position + event.length;
    }
    Ok(())
}

fn next_seq(connection: &Connection) -> Result<i64, LedgerError> {
    connection
        .prepare_cached("SELECT coalesce(max(seq), 0) + 1 FROM event")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .map_err(LedgerError::statement("number an event"))
}

fn facts_json<'b>(buffer: &'b mut Vec<u8>, facts: &[Fact]) -> Result<Option<&'b str>, LedgerError> {
    if facts.is_empty() {
        return Ok(None);
    }
    buffer.clear();
    let damaged =
        |error: String| LedgerError::Damaged { what: format!("facts of a line: {error}") };
    serde_json::to_writer(&mut *buffer, facts).map_err(|error| damaged(error.to_string()))?;
    std::str::from_utf8(buffer).map(Some).map_err(|error| damaged(error.to_string()))
}

/// An instant out of a file's change time.
fn file_time(checkpoint: &Checkpoint) -> Option<Timestamp> {
    Timestamp::from_nanosecond(i128::from(checkpoint.mtime_ns)).ok()
}
