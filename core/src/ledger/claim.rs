//! Claims: which event counts for an entry that stands in several files (fork, resume, copy, a replay by a subagent,
//! a file that was rewritten). Every line has an event; one of them holds the entry in table `entry`.

use std::collections::{HashMap, HashSet};

use futures_util::TryStreamExt;
use sqlx::sqlite::{Sqlite, SqliteConnection};
use sqlx::{QueryBuilder, Row};

use super::LedgerError;
use super::append::{Batch, Origins, Session, chunks};
use crate::entry::{Entry, Role};
use crate::ids::{EntryId, LineHash, SessionRow, SourceRow};

/// What became of a line's claim to be the entry that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// The line has no identity: nothing to claim.
    None,
    /// It is the first with this identity.
    First,
    /// Another line counts; this one is a copy.
    Copy,
    /// The line has no identity and stood in a former content of its file: that one, of this event, counts.
    Again(EntryId, i64),
    /// It counts instead of the line that held the identity so far, which was a copy.
    TakeOver(SessionRow),
}

pub(super) struct Claims {
    of: Vec<Claim>,
    pub(super) forked_from: Option<SessionRow>,
}

impl Claims {
    pub(super) fn counts(&self, index: usize) -> bool {
        !matches!(self.of.get(index), Some(Claim::Copy | Claim::Again(..)))
    }

    /// The identity that a line has or is given.
    pub(super) fn identity(&self, index: usize, entry: &Entry) -> Option<EntryId> {
        match self.of.get(index) {
            Some(Claim::Again(id, _)) => Some(*id),
            _ => entry.identity,
        }
    }
}

/// Lines without an identity of their own that stood in a former content of the same file. There they are the
/// same lines again if they stood there as often; [`Claim::Copy`] keeps them from counting twice.
#[derive(Default)]
struct Former(HashMap<LineHash, Standing>);

struct Standing {
    /// Occurrences in the former content that had most of them.
    former: i64,
    /// Occurrences in this content so far.
    now: i64,
    /// The first event of the line, which counts.
    first: i64,
}

impl Former {
    /// Gives the identity of the line at its former place, and the event there.
    fn take(&mut self, source: SourceRow, hash: LineHash) -> Option<(EntryId, i64)> {
        let standing = self.0.get_mut(&hash)?;
        standing.now += 1;
        let id = EntryId::derive("line", &[&source.0.to_le_bytes(), &hash.0]);
        (standing.now <= standing.former).then_some((id, standing.first))
    }
}

/// Looks up the [`Former`] lines of a batch; there are none while a file only grows.
async fn former(
    connection: &mut SqliteConnection,
    batch: &Batch<'_>,
) -> Result<Former, LedgerError> {
    const OPERATION: &str = "look up the lines of a former content";
    let mut former = Former::default();
    if batch.checkpoint.generation == 0 {
        return Ok(former);
    }
    let nameless = batch.events.iter().filter(|event| event.entry.identity.is_none());
    let hashes: HashSet<LineHash> = nameless.map(|event| event.hash).collect();
    let mut rows = sqlx::query(
        "SELECT hash, generation, count(*), min(seq) FROM event
          WHERE source = ?1 AND generation <= ?2 GROUP BY hash, generation",
    )
    .bind(batch.source.0)
    .bind(i64::from(batch.checkpoint.generation))
    .fetch(connection);
    while let Some(row) = rows.try_next().await.map_err(LedgerError::statement(OPERATION))? {
        let read = || {
            Ok::<_, sqlx::Error>((
                row.try_get(0)?,
                row.try_get(1)?,
                row.try_get(2)?,
                row.try_get(3)?,
            ))
        };
        let (hash, generation, n, first): (Vec<u8>, i64, i64, i64) =
            read().map_err(LedgerError::statement(OPERATION))?;
        let Ok(hash) = <[u8; 16]>::try_from(hash).map(LineHash) else { continue };
        if !hashes.contains(&hash) {
            continue;
        }
        let standing = former.0.entry(hash).or_insert(Standing { former: 0, now: 0, first });
        standing.first = standing.first.min(first);
        if generation == i64::from(batch.checkpoint.generation) {
            standing.now = n;
        } else {
            standing.former = standing.former.max(n);
        }
    }
    Ok(former)
}

/// Who holds an identity.
struct Holder {
    session: SessionRow,
    is_copy: bool,
    /// Its line belongs to a subagent.
    is_agents: bool,
    forked_from: Option<i64>,
}

pub(super) async fn claims(
    connection: &mut SqliteConnection,
    batch: &Batch<'_>,
    session: &Session,
    origins: &Origins,
) -> Result<Claims, LedgerError> {
    let ids: Vec<EntryId> = batch.events.iter().filter_map(|event| event.entry.identity).collect();
    let held = holders(connection, &ids).await?;
    let mut former = former(connection, batch).await?;
    let mut in_batch = HashSet::new();
    let mut claims = Claims { of: Vec::with_capacity(batch.events.len()), forked_from: None };
    for event in batch.events {
        let Some(id) = event.entry.identity else {
            let again = former.take(batch.source, event.hash);
            claims.of.push(again.map_or(Claim::None, |(id, first)| Claim::Again(id, first)));
            continue;
        };
        let claim = if in_batch.insert(id) {
            match held.get(&id) {
                None => Claim::First,
                Some(holder) => contest(holder, batch, session, &event.entry),
            }
        } else {
            Claim::Copy
        };
        let is_own_line = event.entry.context.agent.is_none() && batch.identity.role == Role::Main;
        if claim == Claim::Copy
            && is_own_line
            && let Some(holder) = held.get(&id)
            && holder.session != session.row
        {
            claims.forked_from.get_or_insert(holder.session);
        }
        claims.of.push(claim);
    }
    // A fork that names its origin is forked from that, whoever holds the entries.
    let named = batch.events.iter().find_map(|event| event.entry.copied_from.as_ref());
    if batch.identity.role == Role::Main
        && let Some(named) = named.and_then(|named| origins.row(named))
    {
        claims.forked_from = Some(named);
    }
    Ok(claims)
}

/// Decides between the line that holds an identity and a new one with the same.
fn contest(holder: &Holder, batch: &Batch<'_>, session: &Session, entry: &Entry) -> Claim {
    let is_copy = entry.copied_from.is_some();
    let is_agents = entry.context.agent.is_some() || batch.identity.role != Role::Main;
    // A replay of the session by one of its subagents may be met before the session itself (formats.md 1.6).
    let holder_is_replay = holder.session == session.row && holder.is_agents && !is_agents;
    let holder_is_copy = holder.is_copy && !is_copy;
    let holder_is_my_fork = holder.forked_from == Some(session.row.0);
    if holder_is_replay || holder_is_copy || holder_is_my_fork {
        Claim::TakeOver(holder.session)
    } else {
        Claim::Copy
    }
}

async fn holders(
    connection: &mut SqliteConnection,
    ids: &[EntryId],
) -> Result<HashMap<EntryId, Holder>, LedgerError> {
    const OPERATION: &str = "look up entries";
    let mut held = HashMap::new();
    for chunk in chunks(ids) {
        let mut query = QueryBuilder::<Sqlite>::new(
            "SELECT entry.id, e.session, e.copied_from IS NOT NULL, coalesce(c.agent, '') != '', s.forked_from
               FROM entry JOIN event e ON e.seq = entry.seq JOIN session s ON s.id = e.session
               LEFT JOIN context c ON c.id = e.context
              WHERE entry.id IN (",
        );
        let mut list = query.separated(", ");
        for id in chunk {
            list.push_bind(id.0);
        }
        query.push(")");
        let rows = query
            .build()
            .fetch_all(&mut *connection)
            .await
            .map_err(LedgerError::statement(OPERATION))?;
        for row in rows {
            let read = || {
                Ok::<_, sqlx::Error>((
                    EntryId(row.try_get(0)?),
                    Holder {
                        session: SessionRow(row.try_get(1)?),
                        is_copy: row.try_get(2)?,
                        is_agents: row.try_get(3)?,
                        forked_from: row.try_get(4)?,
                    },
                ))
            };
            let (id, holder) = read().map_err(LedgerError::statement(OPERATION))?;
            held.insert(id, holder);
        }
    }
    Ok(held)
}

pub(super) async fn insert_claims(
    connection: &mut SqliteConnection,
    batch: &Batch<'_>,
    claims: &Claims,
    seq_of: &impl Fn(usize) -> i64,
) -> Result<(), LedgerError> {
    const OPERATION: &str = "note an entry";
    let mut firsts = Vec::new();
    for (index, (event, claim)) in batch.events.iter().zip(&claims.of).enumerate() {
        let Some(id) = claims.identity(index, &event.entry) else { continue };
        match claim {
            Claim::First => firsts.push((id.0, seq_of(index))),
            Claim::TakeOver(loser) => {
                sqlx::query("UPDATE entry SET seq = ?2 WHERE id = ?1")
                    .bind(id.0)
                    .bind(seq_of(index))
                    .execute(&mut *connection)
                    .await
                    .map_err(LedgerError::statement(OPERATION))?;
                sqlx::query("DELETE FROM summary WHERE session = ?1")
                    .bind(loser.0)
                    .execute(&mut *connection)
                    .await
                    .map_err(LedgerError::statement(OPERATION))?;
            }
            Claim::Again(_, first) => {
                sqlx::query("INSERT INTO entry (id, seq) VALUES (?1, ?2) ON CONFLICT DO NOTHING")
                    .bind(id.0)
                    .bind(first)
                    .execute(&mut *connection)
                    .await
                    .map_err(LedgerError::statement(OPERATION))?;
            }
            Claim::None | Claim::Copy => {}
        }
    }
    for chunk in chunks(&firsts) {
        let mut query = QueryBuilder::<Sqlite>::new("INSERT INTO entry (id, seq) ");
        query.push_values(chunk, |mut values, (id, seq)| {
            values.push_bind(*id).push_bind(*seq);
        });
        query.build().execute(&mut *connection).await.map_err(LedgerError::statement(OPERATION))?;
    }
    Ok(())
}
