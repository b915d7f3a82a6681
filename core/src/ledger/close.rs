//! Closing an episode: its event, its envelope's row and its end are one transaction.

use jiff::Timestamp;
use sqlx::Connection;
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::event::EventKind;
use super::{Ledger, LedgerError, Reader, instant, instant_opt};
use crate::ids::{LedgerSeq, SessionRow};

/// The ledger's proof of an envelope; the record itself is a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvelopeRow {
    /// The envelope's id.
    pub id: String,
    /// Whose episode it is.
    pub session: SessionRow,
    /// Which episode, from 1.
    pub episode: u32,
    /// First event of the episode.
    pub first: LedgerSeq,
    /// Last event of the episode before its close.
    pub last: LedgerSeq,
    /// The file, below the state directory.
    pub path: String,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
    /// SHA-256 of the envelope before it on this machine.
    pub previous: Option<String>,
    /// First time in the episode.
    pub started_at: Option<Timestamp>,
    /// Last activity in the episode, by its entries or as its files were seen to grow.
    pub active_at: Option<Timestamp>,
    /// When the episode ended.
    pub closed_at: Timestamp,
    /// Why it was closed, in the words of the envelope.
    pub reason: String,
    /// How it ended, in the words of the envelope.
    pub outcome: String,
    /// Whether it holds work.
    pub is_meaningful: bool,
    /// Whether a script ran it.
    pub is_scripted: bool,
    /// Whether files or commits were made.
    pub has_changes: bool,
}

/// Whether a close took place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseOutcome {
    /// The episode is closed, by this event.
    Closed(LedgerSeq),
    /// Something happened in the session since the envelope was derived, or it is closed already: derive again.
    Moved,
}

const COLUMNS: &str = "SELECT id, session, episode, first_seq, last_seq, path, sha256, previous, started_at, active_at,
        closed_at, reason, outcome, meaningful, scripted, changed FROM envelope";

impl Ledger {
    /// Ends the episode that `envelope` records, if the session's last event still is `envelope.last`: appends
    /// exactly one `session.closed` event, adds the row, closes the episode.
    pub async fn close_episode(
        &mut self,
        envelope: &EnvelopeRow,
    ) -> Result<CloseOutcome, LedgerError> {
        self.before_transaction().await?;
        let mut transaction = self
            .connection
            .begin_with("BEGIN IMMEDIATE")
            .await
            .map_err(LedgerError::statement("begin a close"))?;
        let outcome = close(&mut transaction, envelope).await?;
        transaction.commit().await.map_err(LedgerError::statement("commit a close"))?;
        self.after_transaction();
        Ok(outcome)
    }

    /// Notes what Git looked like while a session ran. `facts` is the JSON of the observation.
    pub async fn note_git(
        &mut self,
        session: SessionRow,
        at: Timestamp,
        facts: &str,
    ) -> Result<(), LedgerError> {
        const OPERATION: &str = "note an observation of Git";
        self.before_transaction().await?;
        let mut transaction = self
            .connection
            .begin_with("BEGIN IMMEDIATE")
            .await
            .map_err(LedgerError::statement(OPERATION))?;
        add_own_event(&mut transaction, session, EventKind::GitObserved, Some(at), facts).await?;
        transaction.commit().await.map_err(LedgerError::statement(OPERATION))?;
        self.after_transaction();
        Ok(())
    }
}

async fn close(
    connection: &mut SqliteConnection,
    envelope: &EnvelopeRow,
) -> Result<CloseOutcome, LedgerError> {
    const OPERATION: &str = "close an episode";
    let still = sqlx::query(
        "SELECT 1 FROM session WHERE id = ?1 AND episode = ?2 AND open_seq IS NOT NULL AND last_seq = ?3",
    )
    .bind(envelope.session.0)
    .bind(i64::from(envelope.episode))
    .bind(envelope.last.0)
    .fetch_optional(&mut *connection)
    .await
    .map_err(LedgerError::statement(OPERATION))?;
    if still.is_none() {
        return Ok(CloseOutcome::Moved);
    }
    let note = format!(r#"{{"episode":{},"envelope":"{}"}}"#, envelope.episode, envelope.id);
    let seq = add_own_event(
        connection,
        envelope.session,
        EventKind::Closed,
        Some(envelope.closed_at),
        &note,
    )
    .await?;
    insert_row(connection, envelope, seq).await.map_err(LedgerError::statement(OPERATION))?;
    sqlx::query("UPDATE session SET open_seq = NULL, ended_at = NULL WHERE id = ?1")
        .bind(envelope.session.0)
        .execute(connection)
        .await
        .map_err(LedgerError::statement(OPERATION))?;
    Ok(CloseOutcome::Closed(LedgerSeq(seq)))
}

async fn insert_row(
    connection: &mut SqliteConnection,
    envelope: &EnvelopeRow,
    closed_seq: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO envelope (id, session, episode, closed_seq, first_seq, last_seq, path, sha256, previous,
                               started_at, active_at, closed_at, reason, outcome, meaningful, scripted, changed)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    )
    .bind(&envelope.id)
    .bind(envelope.session.0)
    .bind(i64::from(envelope.episode))
    .bind(closed_seq)
    .bind(envelope.first.0)
    .bind(envelope.last.0)
    .bind(&envelope.path)
    .bind(&envelope.sha256)
    .bind(envelope.previous.as_deref())
    .bind(envelope.started_at.map(Timestamp::as_microsecond))
    .bind(envelope.active_at.map(Timestamp::as_microsecond))
    .bind(envelope.closed_at.as_microsecond())
    .bind(&envelope.reason)
    .bind(&envelope.outcome)
    .bind(envelope.is_meaningful)
    .bind(envelope.is_scripted)
    .bind(envelope.has_changes)
    .execute(connection)
    .await?;
    Ok(())
}

async fn add_own_event(
    connection: &mut SqliteConnection,
    session: SessionRow,
    kind: EventKind,
    at: Option<Timestamp>,
    note: &str,
) -> Result<i64, LedgerError> {
    const OPERATION: &str = "add an event of the daemon's own";
    let seq: i64 = sqlx::query(
        "INSERT INTO event (seq, session, at, kind, facts)
         VALUES ((SELECT coalesce(max(seq), 0) + 1 FROM event), ?1, ?2, ?3, ?4) RETURNING seq",
    )
    .bind(session.0)
    .bind(at.map(Timestamp::as_microsecond))
    .bind(kind.as_str())
    .bind(note)
    .fetch_one(&mut *connection)
    .await
    .and_then(|row| row.try_get(0))
    .map_err(LedgerError::statement(OPERATION))?;
    sqlx::query("UPDATE session SET last_seq = ?2 WHERE id = ?1")
        .bind(session.0)
        .bind(seq)
        .execute(connection)
        .await
        .map_err(LedgerError::statement(OPERATION))?;
    Ok(seq)
}

impl Reader {
    /// The envelopes of a session, first episode first.
    pub async fn envelopes_of(
        &mut self,
        session: SessionRow,
    ) -> Result<Vec<EnvelopeRow>, LedgerError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "{COLUMNS} WHERE session = ?1 ORDER BY episode"
        )))
        .bind(session.0)
        .fetch_all(&mut self.connection)
        .await
        .map_err(LedgerError::statement("list a session's envelopes"))?;
        rows.iter().map(decode).collect()
    }

    /// SHA-256 of the envelope that was closed last on this machine.
    pub async fn last_envelope(&mut self) -> Result<Option<String>, LedgerError> {
        const OPERATION: &str = "look up the last envelope";
        let row = sqlx::query("SELECT sha256 FROM envelope ORDER BY closed_seq DESC LIMIT 1")
            .fetch_optional(&mut self.connection)
            .await
            .map_err(LedgerError::statement(OPERATION))?;
        row.map(|row| row.try_get(0)).transpose().map_err(LedgerError::statement(OPERATION))
    }
}

fn decode(row: &SqliteRow) -> Result<EnvelopeRow, LedgerError> {
    let read = || -> Result<_, sqlx::Error> {
        let episode: i64 = row.try_get(2)?;
        let times: (Option<i64>, Option<i64>, i64) =
            (row.try_get(8)?, row.try_get(9)?, row.try_get(10)?);
        let envelope = EnvelopeRow {
            id: row.try_get(0)?,
            session: SessionRow(row.try_get(1)?),
            episode: u32::try_from(episode).unwrap_or(u32::MAX),
            first: LedgerSeq(row.try_get(3)?),
            last: LedgerSeq(row.try_get(4)?),
            path: row.try_get(5)?,
            sha256: row.try_get(6)?,
            previous: row.try_get(7)?,
            started_at: None,
            active_at: None,
            closed_at: Timestamp::UNIX_EPOCH,
            reason: row.try_get(11)?,
            outcome: row.try_get(12)?,
            is_meaningful: row.try_get(13)?,
            is_scripted: row.try_get(14)?,
            has_changes: row.try_get(15)?,
        };
        Ok((envelope, times))
    };
    let (envelope, (started, active, closed)) =
        read().map_err(LedgerError::statement("read an envelope's row"))?;
    Ok(EnvelopeRow {
        started_at: instant_opt(started)?,
        active_at: instant_opt(active)?,
        closed_at: instant(closed)?,
        ..envelope
    })
}
