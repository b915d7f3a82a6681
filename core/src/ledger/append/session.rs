//! What an append needs to know of sessions, and what it changes in them.

use std::collections::HashMap;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Batch, file_time};
use crate::entry::{Entry, Fact, Role, WrittenTime};
use crate::ids::{NativeId, SessionRow, Tool};
use crate::ledger::{Checkpoint, LedgerError};

/// The session of a batch's lines.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) row: SessionRow,
    /// The number of the open episode, or of the last closed one.
    pub(super) episode: u32,
    is_open: bool,
    forked_from: Option<SessionRow>,
}

impl Session {
    pub(super) fn of(connection: &Connection, batch: &Batch<'_>) -> Result<Self, LedgerError> {
        const OPERATION: &str = "look up a session";
        let row = ensure(connection, batch.tool, &batch.identity.session)?;
        if batch.identity.role == Role::Machine {
            connection
                .execute("UPDATE session SET machine = 1 WHERE id = ?1 AND machine = 0", [row.0])
                .map_err(LedgerError::statement(OPERATION))?;
        }
        let mut session = connection
            .prepare_cached(
                "SELECT episode, open_seq IS NOT NULL, forked_from FROM session WHERE id = ?1",
            )
            .and_then(|mut statement| {
                statement.query_row([row.0], |found| {
                    Ok(Self {
                        row,
                        episode: found.get(0)?,
                        is_open: found.get(1)?,
                        forked_from: found.get::<_, Option<i64>>(2)?.map(SessionRow),
                    })
                })
            })
            .map_err(LedgerError::statement(OPERATION))?;
        if let Some(parent) = &batch.identity.forked_from {
            let parent = ensure(connection, batch.tool, parent)?;
            session.set_fork(connection, parent)?;
        }
        Ok(session)
    }

    /// Whether a line opens an episode if it counts: the first that counts for a session that never had one, the
    /// first meaningful one after a close (envelope.md: a trailing title or mode line opens nothing).
    pub(super) fn opens_with(&self, entry: &Entry) -> bool {
        !self.is_open && (self.episode == 0 || entry.kind.is_meaningful())
    }

    /// The next episode opens.
    pub(super) fn open(&mut self) {
        self.is_open = true;
        self.episode += 1;
    }

    /// Notes that the session was forked from another, the first time that this is seen.
    pub(super) fn set_fork(
        &mut self,
        connection: &Connection,
        parent: SessionRow,
    ) -> Result<(), LedgerError> {
        if self.forked_from.is_some() || parent == self.row {
            return Ok(());
        }
        // Two sessions with a common beginning must not each be the other's fork.
        let done = connection
            .execute(
                "UPDATE session SET forked_from = ?2
                  WHERE id = ?1 AND forked_from IS NULL
                    AND NOT EXISTS (SELECT 1 FROM session p WHERE p.id = ?2 AND p.forked_from = ?1)",
                [self.row.0, parent.0],
            )
            .map_err(LedgerError::statement("note a fork"))?;
        if done > 0 {
            self.forked_from = Some(parent);
        }
        Ok(())
    }

    /// Notes what the lines `first..=last` changed. `opened_by` is the line that opened an episode; `has_own` is
    /// set when a line counts: a file of copies alone proves no session.
    pub(super) fn update(
        &self,
        connection: &Connection,
        activity: &Activity,
        first: i64,
        last: i64,
        opened_by: Option<i64>,
        has_own: bool,
    ) -> Result<(), LedgerError> {
        const OPERATION: &str = "update a session";
        connection
            .prepare_cached(
                "UPDATE session SET
                    first_seq = CASE WHEN ?2 THEN coalesce(first_seq, ?3) ELSE first_seq END,
                    last_seq  = ?4,
                    active_at = coalesce(max(coalesce(active_at, ?5), coalesce(?5, active_at)), ?10),
                    ended_at  = CASE WHEN ?6 THEN ?7 ELSE ended_at END,
                    episode   = coalesce(?8, episode),
                    open_seq  = coalesce(?9, open_seq)
                  WHERE id = ?1",
            )
            .and_then(|mut statement| {
                statement.execute(params![
                    self.row.0,
                    has_own,
                    first,
                    last,
                    activity.at.map(Timestamp::as_microsecond),
                    activity.is_meaningful,
                    activity.ended_at.map(Timestamp::as_microsecond),
                    opened_by.map(|_| self.episode),
                    // The range of the episode begins with its opening event.
                    opened_by.map(|seq| seq - 1),
                    // A session without a single time is as old as its file.
                    activity.file_time.map(Timestamp::as_microsecond),
                ])
            })
            .map_err(LedgerError::statement(OPERATION))?;
        Ok(())
    }
}

/// The row of a session, made if it is not there.
fn ensure(
    connection: &Connection,
    tool: Tool,
    native: &NativeId,
) -> Result<SessionRow, LedgerError> {
    const OPERATION: &str = "look up a session";
    let key = params![tool.as_str(), native.as_str()];
    let found = connection
        .prepare_cached("SELECT id FROM session WHERE tool = ?1 AND native = ?2")
        .and_then(|mut statement| statement.query_row(key, |row| row.get(0)).optional())
        .map_err(LedgerError::statement(OPERATION))?;
    if let Some(row) = found {
        return Ok(SessionRow(row));
    }
    connection
        .prepare_cached("INSERT INTO session (tool, native) VALUES (?1, ?2)")
        .and_then(|mut statement| statement.insert(key))
        .map(SessionRow)
        .map_err(LedgerError::statement(OPERATION))
}

/// Other ids on the lines of a session's own file, by which it can be found too.
pub(super) fn add_aliases(
    connection: &Connection,
    batch: &Batch<'_>,
    session: SessionRow,
) -> Result<(), LedgerError> {
    if batch.identity.role != Role::Main {
        return Ok(());
    }
    let mut known: Vec<&NativeId> = vec![&batch.identity.session];
    for stamp in batch.events.iter().filter_map(|event| event.entry.stamp.as_ref()) {
        // Most lines carry the stamp of the line before.
        if known.last() == Some(&stamp) || known.contains(&stamp) {
            continue;
        }
        known.push(stamp);
        connection
            .prepare_cached(
                "INSERT INTO alias (session, alias) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            )
            .and_then(|mut statement| statement.execute(params![session.0, stamp.as_str()]))
            .map_err(LedgerError::statement("add an alias"))?;
    }
    Ok(())
}

/// A session that lines say they were copied from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) row: SessionRow,
    /// It is in the ledger itself, so that the copies do not count.
    pub(super) is_present: bool,
}

/// The sessions that a batch's lines say they were copied from.
#[derive(Debug)]
pub(super) struct Origins<'c> {
    connection: &'c Connection,
    tool: Tool,
    found: HashMap<NativeId, Origin>,
}

impl<'c> Origins<'c> {
    pub(super) fn new(connection: &'c Connection, tool: Tool) -> Self {
        Self { connection, tool, found: HashMap::new() }
    }

    pub(super) fn find(&mut self, native: &NativeId) -> Result<Origin, LedgerError> {
        if let Some(origin) = self.found.get(native) {
            return Ok(*origin);
        }
        let row = ensure(self.connection, self.tool, native)?;
        let is_present = self
            .connection
            .prepare_cached("SELECT first_seq IS NOT NULL FROM session WHERE id = ?1")
            .and_then(|mut statement| statement.query_row([row.0], |found| found.get(0)))
            .map_err(LedgerError::statement("look up a copied line's origin"))?;
        let origin = Origin { row, is_present };
        self.found.insert(native.clone(), origin);
        Ok(origin)
    }
}

/// What a batch tells about a session's life.
#[derive(Debug)]
pub(super) struct Activity {
    /// When the batch's file was changed last. Entries are written after they happen: none is later (formats.md
    /// F17).
    file_time: Option<Timestamp>,
    at: Option<Timestamp>,
    /// Something happened that overrules or renews an end mark.
    is_meaningful: bool,
    ended_at: Option<Timestamp>,
}

impl Activity {
    pub(super) fn new(checkpoint: &Checkpoint) -> Self {
        Self { file_time: file_time(checkpoint), at: None, is_meaningful: false, ended_at: None }
    }

    /// Takes a line that counts.
    pub(super) fn take(&mut self, entry: &Entry) {
        let written = entry.at.as_ref().map(WrittenTime::instant);
        let at = match (written, self.file_time) {
            (Some(written), Some(file)) => Some(written.min(file)),
            (written, _) => written,
        };
        self.at = self.at.max(at);
        let is_end = entry.facts.iter().any(|fact| matches!(fact, Fact::End(_)));
        if is_end {
            self.is_meaningful = true;
            self.ended_at = at.or(self.at).or(self.file_time);
        } else if entry.kind.is_meaningful() {
            self.is_meaningful = true;
            self.ended_at = None;
        }
    }
}
