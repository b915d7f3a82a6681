//! Appending: lines become events, and the checkpoints of their sources move, in one transaction.

use std::collections::HashMap;

use jiff::Timestamp;
use sqlx::sqlite::{Sqlite, SqliteConnection};
use sqlx::{Connection, QueryBuilder, Row};

use super::claim::{Claims, claims, insert_claims};
use super::event::EventKind;
use super::source::{Checkpoint, follows_on, update_checkpoint};
use super::{Ledger, LedgerError};
use crate::entry::{Context, Entry, Fact, Role, SourceIdentity, WrittenTime};
use crate::ids::{LedgerSeq, LineHash, NativeId, SessionRow, SourceRow, Tool};

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

/// Rows in one INSERT. Full ones share a prepared statement; the rest goes in tens and ones.
const ROWS: [usize; 3] = [200, 20, 1];

/// Contexts repeat on every line of a session; this many are remembered before starting anew.
const CONTEXT_CACHE: usize = 1_000;

/// Row ids of contexts met lately.
#[derive(Debug, Default)]
pub(super) struct ContextCache(HashMap<Context, i64>);

impl Ledger {
    /// Adds the lines of the batches as events, opens episodes where they call for it, and moves the
    /// checkpoints: all of it or nothing. A batch that does not follow on from where its source stands was read
    /// beside another pass, which has its lines or will have them: it is left out, and gives no [`Appended`].
    pub async fn append(&mut self, batches: &[Batch<'_>]) -> Result<Vec<Appended>, LedgerError> {
        self.before_transaction().await?;
        let mut transaction = self
            .connection
            .begin_with("BEGIN IMMEDIATE")
            .await
            .map_err(LedgerError::statement("begin an append"))?;
        // Row ids handed out in this transaction are void unless it commits: the cache is put back only then.
        let mut contexts = std::mem::take(&mut self.contexts);
        let mut all = Vec::with_capacity(batches.len());
        for batch in batches {
            if follows_on(&mut transaction, batch.source, batch.from, batch.checkpoint).await? {
                all.push(append(&mut transaction, &mut contexts, batch).await?);
            }
        }
        transaction.commit().await.map_err(LedgerError::statement("commit an append"))?;
        self.contexts = contexts;
        self.after_transaction();
        Ok(all)
    }
}

async fn append(
    connection: &mut SqliteConnection,
    contexts: &mut ContextCache,
    batch: &Batch<'_>,
) -> Result<Appended, LedgerError> {
    let mut session = session_for(connection, batch).await?;
    let origins = origins(connection, batch).await?;
    add_aliases(connection, batch, session.row).await?;

    let claims = claims(connection, batch, &session, &origins).await?;
    if let Some(parent) = claims.forked_from {
        set_fork(connection, &mut session, parent).await?;
    }

    let opening = session.opening(batch, &claims, &origins);
    let base = next_seq(connection).await?;
    // The opening event stands just before the event that opens: everything from there on is one line later.
    let seq_of = |index: usize| -> i64 {
        let offset = index + usize::from(opening.is_some_and(|at| index >= at));
        base + i64::try_from(offset).unwrap_or(i64::MAX - base)
    };

    insert_events(connection, contexts, batch, &session, &claims, &origins, &seq_of).await?;
    let mut opened = None;
    if let Some(at) = opening {
        let episode = session.episode + 1;
        insert_opened(connection, &session, episode, seq_of(at) - 1, batch.events.get(at)).await?;
        opened = Some(episode);
    }
    insert_claims(connection, batch, &claims, &seq_of).await?;

    let last = seq_of(batch.events.len().saturating_sub(1));
    update_session(
        connection,
        &session,
        batch,
        &claims,
        seq_of(0),
        last,
        opened,
        opening.map(&seq_of),
    )
    .await?;
    update_checkpoint(connection, batch.source, Some(session.row), batch.checkpoint).await?;
    let events = batch.events.len() as u64;
    Ok(Appended { session: session.row, last: LedgerSeq(last), events, opened })
}

/// What an append needs to know of its session.
pub(super) struct Session {
    pub(super) row: SessionRow,
    episode: u32,
    is_open: bool,
    forked_from: Option<SessionRow>,
}

impl Session {
    /// Index of the event that opens an episode: the first that counts for a session that never had one, the
    /// first meaningful one after a close (envelope.md: a trailing title or mode line opens nothing).
    fn opening(&self, batch: &Batch<'_>, claims: &Claims, origins: &Origins) -> Option<usize> {
        if self.is_open {
            return None;
        }
        batch.events.iter().enumerate().position(|(index, event)| {
            claims.counts(index)
                && event.entry.copied_from.as_ref().is_none_or(|from| !origins.is_present(from))
                && (self.episode == 0 || event.entry.kind.is_meaningful())
        })
    }
}

async fn session_for(
    connection: &mut SqliteConnection,
    batch: &Batch<'_>,
) -> Result<Session, LedgerError> {
    const OPERATION: &str = "look up a session";
    let row = ensure_session(connection, batch.tool, &batch.identity.session).await?;
    if batch.identity.role == Role::Machine {
        sqlx::query("UPDATE session SET machine = 1 WHERE id = ?1 AND machine = 0")
            .bind(row.0)
            .execute(&mut *connection)
            .await
            .map_err(LedgerError::statement(OPERATION))?;
    }
    let found =
        sqlx::query("SELECT episode, open_seq IS NOT NULL, forked_from FROM session WHERE id = ?1")
            .bind(row.0)
            .fetch_one(&mut *connection)
            .await
            .map_err(LedgerError::statement(OPERATION))?;
    let column = LedgerError::statement(OPERATION);
    let (episode, is_open, forked_from): (i64, bool, Option<i64>) =
        (|| Ok::<_, sqlx::Error>((found.try_get(0)?, found.try_get(1)?, found.try_get(2)?)))()
            .map_err(column)?;
    let mut session = Session {
        row,
        episode: u32::try_from(episode).unwrap_or(u32::MAX),
        is_open,
        forked_from: forked_from.map(SessionRow),
    };
    if let Some(parent) = &batch.identity.forked_from {
        let parent = ensure_session(connection, batch.tool, parent).await?;
        set_fork(connection, &mut session, parent).await?;
    }
    Ok(session)
}

/// The row of a session, made if it is not there.
pub(super) async fn ensure_session(
    connection: &mut SqliteConnection,
    tool: Tool,
    native: &NativeId,
) -> Result<SessionRow, LedgerError> {
    const OPERATION: &str = "look up a session";
    let found = sqlx::query("SELECT id FROM session WHERE tool = ?1 AND native = ?2")
        .bind(tool.as_str())
        .bind(native.as_str())
        .fetch_optional(&mut *connection)
        .await
        .map_err(LedgerError::statement(OPERATION))?;
    let row = match found {
        Some(row) => row,
        None => sqlx::query("INSERT INTO session (tool, native) VALUES (?1, ?2) RETURNING id")
            .bind(tool.as_str())
            .bind(native.as_str())
            .fetch_one(connection)
            .await
            .map_err(LedgerError::statement(OPERATION))?,
    };
    Ok(SessionRow(row.try_get(0).map_err(LedgerError::statement(OPERATION))?))
}

/// Notes that a session was forked from another, the first time that this is seen.
async fn set_fork(
    connection: &mut SqliteConnection,
    session: &mut Session,
    parent: SessionRow,
) -> Result<(), LedgerError> {
    if session.forked_from.is_some() || parent == session.row {
        return Ok(());
    }
    // Two sessions with a common beginning must not each be the other's fork.
    let done = sqlx::query(
        "UPDATE session SET forked_from = ?2
          WHERE id = ?1 AND forked_from IS NULL
            AND NOT EXISTS (SELECT 1 FROM session p WHERE p.id = ?2 AND p.forked_from = ?1)",
    )
    .bind(session.row.0)
    .bind(parent.0)
    .execute(connection)
    .await
    .map_err(LedgerError::statement("note a fork"))?;
    if done.rows_affected() > 0 {
        session.forked_from = Some(parent);
    }
    Ok(())
}

/// The sessions that lines of a batch say they were copied from.
pub(super) struct Origins(HashMap<NativeId, (SessionRow, bool)>);

impl Origins {
    pub(super) fn row(&self, native: &NativeId) -> Option<SessionRow> {
        self.0.get(native).map(|(row, _)| *row)
    }

    /// True if the origin itself is in the ledger, so that the copies do not count.
    fn is_present(&self, native: &NativeId) -> bool {
        self.0.get(native).is_some_and(|(_, present)| *present)
    }
}

async fn origins(
    connection: &mut SqliteConnection,
    batch: &Batch<'_>,
) -> Result<Origins, LedgerError> {
    const OPERATION: &str = "look up a copied line's origin";
    let mut found = HashMap::new();
    for origin in batch.events.iter().filter_map(|event| event.entry.copied_from.as_ref()) {
        if found.contains_key(origin) {
            continue;
        }
        let row = ensure_session(connection, batch.tool, origin).await?;
        let present = sqlx::query("SELECT first_seq IS NOT NULL FROM session WHERE id = ?1")
            .bind(row.0)
            .fetch_one(&mut *connection)
            .await
            .and_then(|row| row.try_get(0))
            .map_err(LedgerError::statement(OPERATION))?;
        found.insert(origin.clone(), (row, present));
    }
    Ok(Origins(found))
}

async fn add_aliases(
    connection: &mut SqliteConnection,
    batch: &Batch<'_>,
    session: SessionRow,
) -> Result<(), LedgerError> {
    if batch.identity.role != Role::Main {
        return Ok(());
    }
    let mut known: Vec<&NativeId> = vec![&batch.identity.session];
    for stamp in batch.events.iter().filter_map(|event| event.entry.stamp.as_ref()) {
        if known.contains(&stamp) {
            continue;
        }
        known.push(stamp);
        sqlx::query("INSERT INTO alias (session, alias) VALUES (?1, ?2) ON CONFLICT DO NOTHING")
            .bind(session.0)
            .bind(stamp.as_str())
            .execute(&mut *connection)
            .await
            .map_err(LedgerError::statement("add an alias"))?;
    }
    Ok(())
}

/// Cuts a list into pieces of the sizes in [`ROWS`].
pub(super) fn chunks<T>(mut list: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let size = ROWS.into_iter().find(|size| *size <= list.len())?;
        let (chunk, rest) = list.split_at(size);
        list = rest;
        Some(chunk)
    })
}

async fn next_seq(connection: &mut SqliteConnection) -> Result<i64, LedgerError> {
    sqlx::query("SELECT coalesce(max(seq), 0) + 1 FROM event")
        .fetch_one(connection)
        .await
        .and_then(|row| row.try_get(0))
        .map_err(LedgerError::statement("number an event"))
}

/// A row as it is bound.
struct EventColumns {
    seq: i64,
    position: i64,
    length: i64,
    hash: [u8; 16],
    at: Option<i64>,
    at_written: Option<String>,
    kind: &'static str,
    context: Option<i64>,
    entry: Option<i64>,
    copied_from: Option<i64>,
    facts: Option<String>,
}

async fn insert_events(
    connection: &mut SqliteConnection,
    contexts: &mut ContextCache,
    batch: &Batch<'_>,
    session: &Session,
    claims: &Claims,
    origins: &Origins,
    seq_of: &impl Fn(usize) -> i64,
) -> Result<(), LedgerError> {
    let mut rows = Vec::with_capacity(batch.events.len());
    for (index, event) in batch.events.iter().enumerate() {
        let entry = &event.entry;
        rows.push(EventColumns {
            seq: seq_of(index),
            position: event.position.cast_signed(),
            length: event.length.cast_signed(),
            hash: event.hash.0,
            at: entry.at.as_ref().map(|at| at.instant().as_microsecond()),
            at_written: entry.at.as_ref().and_then(WrittenTime::unusual_form).map(str::to_owned),
            kind: entry.kind.as_str(),
            context: context_row(connection, contexts, &entry.context).await?,
            entry: claims.identity(index, entry).map(|id| id.0),
            copied_from: entry
                .copied_from
                .as_ref()
                .and_then(|from| origins.row(from))
                .filter(|from| *from != session.row)
                .map(|from| from.0),
            facts: facts_json(&entry.facts)?,
        });
    }
    let generation = i64::from(batch.checkpoint.generation);
    for chunk in chunks(&rows) {
        let mut query = QueryBuilder::<Sqlite>::new(
            "INSERT INTO event (seq, session, source, generation, position, length, hash, at, at_written, kind,
                                context, entry, copied_from, facts) ",
        );
        query.push_values(chunk, |mut values, row| {
            values
                .push_bind(row.seq)
                .push_bind(session.row.0)
                .push_bind(batch.source.0)
                .push_bind(generation)
                .push_bind(row.position)
                .push_bind(row.length)
                .push_bind(row.hash.to_vec())
                .push_bind(row.at)
                .push_bind(row.at_written.clone())
                .push_bind(row.kind)
                .push_bind(row.context)
                .push_bind(row.entry)
                .push_bind(row.copied_from)
                .push_bind(row.facts.clone());
        });
        query
            .build()
            .execute(&mut *connection)
            .await
            .map_err(LedgerError::statement("add events"))?;
    }
    Ok(())
}

fn facts_json(facts: &[Fact]) -> Result<Option<String>, LedgerError> {
    if facts.is_empty() {
        return Ok(None);
    }
    serde_json::to_string(facts)
        .map(Some)
        .map_err(|error| LedgerError::Damaged { what: format!("facts of a line: {error}") })
}

async fn context_row(
    connection: &mut SqliteConnection,
    cache: &mut ContextCache,
    context: &Context,
) -> Result<Option<i64>, LedgerError> {
    const OPERATION: &str = "note a context";
    if *context == Context::default() {
        return Ok(None);
    }
    if let Some(row) = cache.0.get(context) {
        return Ok(Some(*row));
    }
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let row = sqlx::query(
        "INSERT INTO context (cwd, branch, version, agent) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (cwd, branch, version, agent) DO UPDATE SET cwd = excluded.cwd RETURNING id",
    )
    .bind(text(&context.cwd))
    .bind(text(&context.branch))
    .bind(text(&context.version))
    .bind(text(&context.agent))
    .fetch_one(connection)
    .await
    .and_then(|row| row.try_get(0))
    .map_err(LedgerError::statement(OPERATION))?;
    if cache.0.len() >= CONTEXT_CACHE {
        cache.0.clear();
    }
    cache.0.insert(context.clone(), row);
    Ok(Some(row))
}

async fn insert_opened(
    connection: &mut SqliteConnection,
    session: &Session,
    episode: u32,
    seq: i64,
    first: Option<&NewEvent>,
) -> Result<(), LedgerError> {
    let at =
        first.and_then(|event| event.entry.at.as_ref()).map(|at| at.instant().as_microsecond());
    sqlx::query("INSERT INTO event (seq, session, at, kind, facts) VALUES (?1, ?2, ?3, ?4, ?5)")
        .bind(seq)
        .bind(session.row.0)
        .bind(at)
        .bind(EventKind::Opened.as_str())
        .bind(format!(r#"{{"episode":{episode}}}"#))
        .execute(connection)
        .await
        .map_err(LedgerError::statement("open an episode"))?;
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "one row's new values, each with its own meaning")]
async fn update_session(
    connection: &mut SqliteConnection,
    session: &Session,
    batch: &Batch<'_>,
    claims: &Claims,
    first: i64,
    last: i64,
    opened: Option<u32>,
    open_seq: Option<i64>,
) -> Result<(), LedgerError> {
    let activity = Activity::of(batch, claims);
    // Only an event that counts makes a session present: a file of copies alone proves nothing of its own.
    let has_own = (0..batch.events.len()).any(|index| claims.counts(index));
    sqlx::query(
        "UPDATE session SET
            first_seq = CASE WHEN ?2 THEN coalesce(first_seq, ?3) ELSE first_seq END,
            last_seq  = ?4,
            active_at = coalesce(max(coalesce(active_at, ?5), coalesce(?5, active_at)), ?10),
            ended_at  = CASE WHEN ?6 THEN ?7 ELSE ended_at END,
            episode   = coalesce(?8, episode),
            open_seq  = coalesce(?9, open_seq)
          WHERE id = ?1",
    )
    .bind(session.row.0)
    .bind(has_own)
    .bind(first)
    .bind(last)
    .bind(activity.at.map(Timestamp::as_microsecond))
    .bind(activity.is_meaningful)
    .bind(activity.ended_at.map(Timestamp::as_microsecond))
    .bind(opened.map(i64::from))
    // The range of the episode begins with its opening event.
    .bind(open_seq.map(|seq| seq - 1))
    // A session without a single time is as old as its file.
    .bind(file_time(batch).map(Timestamp::as_microsecond))
    .execute(connection)
    .await
    .map_err(LedgerError::statement("update a session"))?;
    Ok(())
}

/// What a batch tells about a session's life.
struct Activity {
    at: Option<Timestamp>,
    /// Something happened that overrules or renews an end mark.
    is_meaningful: bool,
    ended_at: Option<Timestamp>,
}

impl Activity {
    fn of(batch: &Batch<'_>, claims: &Claims) -> Self {
        // Entries are written after they happen: no entry is later than its file (formats.md F17).
        let file_time = file_time(batch);
        let mut activity = Self { at: None, is_meaningful: false, ended_at: None };
        for (index, event) in batch.events.iter().enumerate() {
            if !claims.counts(index) {
                continue;
            }
            let written = event.entry.at.as_ref().map(WrittenTime::instant);
            let at = match (written, file_time) {
                (Some(written), Some(file)) => Some(written.min(file)),
                (written, _) => written,
            };
            activity.at = activity.at.max(at);
            let is_end = event.entry.facts.iter().any(|fact| matches!(fact, Fact::End(_)));
            if is_end {
                activity.is_meaningful = true;
                activity.ended_at = at.or(activity.at).or(file_time);
            } else if event.entry.kind.is_meaningful() {
                activity.is_meaningful = true;
                activity.ended_at = None;
            }
        }
        activity
    }
}

/// When the batch's file was changed last.
fn file_time(batch: &Batch<'_>) -> Option<Timestamp> {
    Timestamp::from_nanosecond(i128::from(batch.checkpoint.mtime_ns)).ok()
}
