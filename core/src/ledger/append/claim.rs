//! Claims: which event counts for an entry that stands in several files (fork, resume, copy, a replay by a subagent,
//! a file that was rewritten). Every line has an event; one of them holds the entry in table `entry`.

use std::collections::HashMap;

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};

use super::session::Session;
use super::{Batch, NewEvent};
use crate::entry::{Entry, Role};
use crate::ids::{EntryId, LineHash, SessionRow, SourceRow};
use crate::ledger::LedgerError;

/// What became of a line's claim to be the entry that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The line has no identity: nothing to claim.
    None,
    /// It is the first with this identity.
    First,
    /// Another line counts; this one is a copy.
    Copy,
    /// The line has no identity and stood in a former content of its file: that one counts, under this identity.
    Again(EntryId),
    /// It counts instead of the line that held the identity so far, which was a copy.
    TakeOver,
}

impl Claim {
    /// The line counts.
    pub(super) fn counts(self) -> bool {
        !matches!(self, Self::Copy | Self::Again(_))
    }

    /// The identity that a line has or is given.
    pub(super) fn identity(self, entry: &Entry) -> Option<EntryId> {
        match self {
            Self::Again(id) => Some(id),
            _ => entry.identity,
        }
    }
}

/// Lines without an identity of their own that stood in a former content of the same file. There they are the
/// same lines again if they stood there as often; [`Claim::Again`] keeps them from counting twice.
#[derive(Debug, Default)]
struct Former(HashMap<LineHash, Standing>);

#[derive(Debug)]
struct Standing {
    /// Occurrences in the former content that had most of them.
    former: i64,
    /// Occurrences in this content so far.
    now: i64,
    /// The first event of the line, which counts.
    first: i64,
}

impl Former {
    /// Looks up the lines of former contents; there are none while a file only grows.
    fn of(
        connection: &Connection,
        batch: &Batch<'_>,
        session: &Session,
    ) -> Result<Self, LedgerError> {
        const OPERATION: &str = "look up the lines of a former content";
        let mut former = Self::default();
        if batch.checkpoint.generation == 0 {
            return Ok(former);
        }
        let nameless = batch.events.iter().filter(|event| event.entry.identity.is_none());
        let wanted: std::collections::HashSet<LineHash> =
            nameless.map(|event| event.hash).collect();
        let mut statement = connection
            .prepare_cached(
                "SELECT hash, generation, count(*), min(seq) FROM event
                  WHERE session = ?1 AND source = ?2 AND generation <= ?3 GROUP BY hash, generation",
            )
            .map_err(LedgerError::statement(OPERATION))?;
        let mut rows = statement
            .query(params![session.row.0, batch.source.0, batch.checkpoint.generation])
            .map_err(LedgerError::statement(OPERATION))?;
        while let Some(row) = rows.next().map_err(LedgerError::statement(OPERATION))? {
            let read = || {
                let hash: Vec<u8> = row.get(0)?;
                Ok::<_, rusqlite::Error>((hash, row.get(1)?, row.get(2)?, row.get(3)?))
            };
            let (hash, generation, n, first): (_, u32, i64, i64) =
                read().map_err(LedgerError::statement(OPERATION))?;
            let Ok(hash) = <[u8; 16]>::try_from(hash).map(LineHash) else { continue };
            if !wanted.contains(&hash) {
                continue;
            }
            let standing = former.0.entry(hash).or_insert(Standing { former: 0, now: 0, first });
            standing.first = standing.first.min(first);
            if generation == batch.checkpoint.generation {
                standing.now = n;
            } else {
                standing.former = standing.former.max(n);
            }
        }
        Ok(former)
    }

    /// Gives the identity of the line at its former place, and the event there.
    fn take(&mut self, source: SourceRow, hash: LineHash) -> Option<(EntryId, i64)> {
        let standing = self.0.get_mut(&hash)?;
        standing.now += 1;
        let id = EntryId::derive("line", &[&source.0.to_le_bytes(), &hash.0]);
        (standing.now <= standing.former).then_some((id, standing.first))
    }
}

/// Who holds an identity.
struct Holder {
    session: SessionRow,
    is_copy: bool,
    /// Its line belongs to a subagent.
    is_agents: bool,
    forked_from: Option<i64>,
}

/// Makes the claims of a batch's lines, one after the other.
pub(super) struct Claims<'c> {
    connection: &'c Connection,
    insert: CachedStatement<'c>,
    former: Former,
    /// The session that holds the first of the lines that were copied.
    copied_of: Option<SessionRow>,
    /// The session that the lines themselves name as their origin.
    named: Option<SessionRow>,
}

impl<'c> Claims<'c> {
    pub(super) fn of(
        connection: &'c Connection,
        batch: &Batch<'_>,
        session: &Session,
    ) -> Result<Self, LedgerError> {
        let insert = connection
            .prepare_cached("INSERT INTO entry (id, seq) VALUES (?1, ?2) ON CONFLICT DO NOTHING")
            .map_err(LedgerError::statement("note an entry"))?;
        let former = Former::of(connection, batch, session)?;
        Ok(Self { connection, insert, former, copied_of: None, named: None })
    }

    /// The session that the batch's session was forked from. A fork that names its origin is forked from that,
    /// whoever holds the entries.
    pub(super) fn forked_from(&self) -> Option<SessionRow> {
        self.named.or(self.copied_of)
    }

    /// Notes that a line of a session's own file names its origin.
    pub(super) fn name_origin(&mut self, origin: SessionRow) {
        self.named.get_or_insert(origin);
    }

    /// Makes the claim of a line that would become the event `seq`.
    pub(super) fn make(
        &mut self,
        batch: &Batch<'_>,
        session: &Session,
        event: &NewEvent,
        seq: i64,
    ) -> Result<Claim, LedgerError> {
        const OPERATION: &str = "note an entry";
        let Some(id) = event.entry.identity else {
            let Some((id, first)) = self.former.take(batch.source, event.hash) else {
                return Ok(Claim::None);
            };
            self.insert.execute([id.0, first]).map_err(LedgerError::statement(OPERATION))?;
            return Ok(Claim::Again(id));
        };
        if self.insert.execute([id.0, seq]).map_err(LedgerError::statement(OPERATION))? > 0 {
            return Ok(Claim::First);
        }
        let holder = self.holder(id)?;
        if gives_way(&holder, batch, session, &event.entry) {
            self.take_over(id, seq, holder.session)?;
            return Ok(Claim::TakeOver);
        }
        let is_own_line = event.entry.context.agent.is_none() && batch.identity.role == Role::Main;
        if is_own_line && holder.session != session.row {
            self.copied_of.get_or_insert(holder.session);
        }
        Ok(Claim::Copy)
    }

    fn holder(&self, id: EntryId) -> Result<Holder, LedgerError> {
        self.connection
            .prepare_cached(
                "SELECT e.session, e.copied_from IS NOT NULL, coalesce(c.agent, '') != '', s.forked_from
                   FROM entry JOIN event e ON e.seq = entry.seq JOIN session s ON s.id = e.session
                   LEFT JOIN context c ON c.id = e.context
                  WHERE entry.id = ?1",
            )
            .and_then(|mut statement| {
                statement
                    .query_row([id.0], |row| {
                        Ok(Holder {
                            session: SessionRow(row.get(0)?),
                            is_copy: row.get(1)?,
                            is_agents: row.get(2)?,
                            forked_from: row.get(3)?,
                        })
                    })
                    .optional()
            })
            .map_err(LedgerError::statement("look up an entry"))?
            .ok_or_else(|| LedgerError::Damaged { what: format!("entry {}: its event is gone", id.0) })
    }

    fn take_over(&self, id: EntryId, seq: i64, loser: SessionRow) -> Result<(), LedgerError> {
        const OPERATION: &str = "hand over an entry";
        let run = |sql: &str, values: &[i64]| {
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.execute(rusqlite::params_from_iter(values))
        };
        run("UPDATE entry SET seq = ?2 WHERE id = ?1", &[id.0, seq])
            .map_err(LedgerError::statement(OPERATION))?;
        run("DELETE FROM summary WHERE session = ?1", &[loser.0])
            .map_err(LedgerError::statement(OPERATION))?;
        Ok(())
    }
}

/// Decides between the line that holds an identity and a new one with the same: whether the holder gives way.
fn gives_way(holder: &Holder, batch: &Batch<'_>, session: &Session, entry: &Entry) -> bool {
    let is_copy = entry.copied_from.is_some();
    let is_agents = entry.context.agent.is_some() || batch.identity.role != Role::Main;
    // A replay of the session by one of its subagents may be met before the session itself (formats.md 1.6).
    let holder_is_replay = holder.session == session.row && holder.is_agents && !is_agents;
    let holder_is_copy = holder.is_copy && !is_copy;
    let holder_is_my_fork = holder.forked_from == Some(session.row.0);
    holder_is_replay || holder_is_copy || holder_is_my_fork
}
