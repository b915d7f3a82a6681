//! Which notes there are, and which are still to be drafted. The text of a note is in its vault, never here.

use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{Ledger, LedgerError, Reader, instant, instant_opt};
use crate::ids::SessionRow;

/// The reason that `status` gives for sessions older than `[backfill] notes_since`.
pub const PENDING_REASON_HISTORY: &str = "older_than_notes_since";

/// A closed episode that has no note yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftTask {
    /// The session.
    pub session: SessionRow,
    /// Its last closed episode; a note covers it and all before it.
    pub episode: u32,
    /// Whether a script ran it.
    pub is_scripted: bool,
    /// Whether files or commits were made, in any of its episodes.
    pub has_changes: bool,
}

/// A note as the ledger knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteRow {
    /// The session it is about.
    pub session: SessionRow,
    /// Its kind, in the words of notes.md.
    pub kind: String,
    /// Its slug: the key that keeps it from being written twice.
    pub slug: String,
    /// The vault's name.
    pub vault: String,
    /// Where it is, once written.
    pub uri: Option<String>,
    /// The vault's version of what was written last.
    pub version: Option<String>,
    /// Hashes of the lines that were written last.
    pub lines: Vec<u64>,
    /// Time of the last entry that it covers.
    pub synced_at: Option<Timestamp>,
    /// The last episode that it covers.
    pub episode: u32,
    /// When it was written last.
    pub updated_at: Timestamp,
}

impl Reader {
    /// Closed, meaningful episodes without a note, the oldest close first, of sessions that were active at
    /// `since` or later.
    pub async fn undrafted(&mut self, since: Timestamp) -> Result<Vec<DraftTask>, LedgerError> {
        const OPERATION: &str = "list what is to be drafted";
        let rows = sqlx::query(
            "SELECT e.session, e.episode, e.scripted,
                    EXISTS (SELECT 1 FROM envelope a WHERE a.session = e.session AND a.changed)
               FROM envelope e JOIN session s ON s.id = e.session
              WHERE e.meaningful AND NOT s.machine AND coalesce(e.active_at, e.closed_at) >= ?1
                AND NOT EXISTS (SELECT 1 FROM envelope later
                                 WHERE later.session = e.session AND later.episode > e.episode
                                   AND later.meaningful)
                AND NOT EXISTS (SELECT 1 FROM note n
                                 WHERE n.session = e.session AND n.kind = 'session'
                                   AND n.episode >= e.episode AND n.uri IS NOT NULL)
                AND NOT EXISTS (SELECT 1 FROM skipped k
                                 WHERE k.session = e.session AND k.episode = e.episode)
              ORDER BY e.closed_seq",
        )
        .bind(since.as_microsecond())
        .fetch_all(&mut self.connection)
        .await
        .map_err(LedgerError::statement(OPERATION))?;
        rows.iter()
            .map(|row| {
                let episode: i64 = row.try_get(1)?;
                Ok(DraftTask {
                    session: SessionRow(row.try_get(0)?),
                    episode: u32::try_from(episode).unwrap_or(u32::MAX),
                    is_scripted: row.try_get(2)?,
                    has_changes: row.try_get(3)?,
                })
            })
            .collect::<Result<_, sqlx::Error>>()
            .map_err(LedgerError::statement(OPERATION))
    }

    /// The notes of a session, or of all.
    pub async fn notes(
        &mut self,
        session: Option<SessionRow>,
    ) -> Result<Vec<NoteRow>, LedgerError> {
        let rows = sqlx::query(
            "SELECT session, kind, slug, vault, uri, version, lines, synced_at, episode, updated_at
               FROM note WHERE ?1 IS NULL OR session = ?1 ORDER BY id",
        )
        .bind(session.map(|session| session.0))
        .fetch_all(&mut self.connection)
        .await
        .map_err(LedgerError::statement("list the notes"))?;
        rows.iter().map(decode).collect()
    }

    /// Why closed episodes got no note and files no session, and how many for each reason.
    pub async fn skipped(&mut self, since: Timestamp) -> Result<Vec<(String, u64)>, LedgerError> {
        const OPERATION: &str = "count the episodes without a note";
        let rows = sqlx::query(
            "SELECT reason, count(*) FROM skipped GROUP BY reason
             UNION ALL
             SELECT 'not_meaningful', count(*) FROM envelope WHERE NOT meaningful HAVING count(*) > 0
             UNION ALL
             SELECT ?2, count(DISTINCT e.session) FROM envelope e
              WHERE e.meaningful AND coalesce(e.active_at, e.closed_at) < ?1
                AND NOT EXISTS (SELECT 1 FROM note n WHERE n.session = e.session)
             HAVING count(*) > 0
             UNION ALL
             SELECT 'file_' || state, count(*) FROM source
              WHERE state IN ('unrecognised', 'excluded') GROUP BY state",
        )
        .bind(since.as_microsecond())
        .bind(PENDING_REASON_HISTORY)
        .fetch_all(&mut self.connection)
        .await
        .map_err(LedgerError::statement(OPERATION))?;
        rows.iter()
            .map(|row| {
                let count: i64 = row.try_get(1)?;
                Ok((row.try_get(0)?, u64::try_from(count).unwrap_or(0)))
            })
            .collect::<Result<_, sqlx::Error>>()
            .map_err(LedgerError::statement(OPERATION))
    }
}

impl Ledger {
    /// Records that a note was written as `note` says.
    pub async fn record_note(&mut self, note: &NoteRow) -> Result<(), LedgerError> {
        let lines: Vec<u8> = note.lines.iter().flat_map(|hash| hash.to_le_bytes()).collect();
        sqlx::query(
            "INSERT INTO note (session, kind, slug, vault, uri, version, lines, synced_at, episode, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             ON CONFLICT (session, kind, slug, vault) DO UPDATE SET
                uri = excluded.uri, version = excluded.version, lines = excluded.lines,
                synced_at = excluded.synced_at, episode = excluded.episode, updated_at = excluded.updated_at",
        )
        .bind(note.session.0)
        .bind(&note.kind)
        .bind(&note.slug)
        .bind(&note.vault)
        .bind(note.uri.as_deref())
        .bind(note.version.as_deref())
        .bind(lines)
        .bind(note.synced_at.map(Timestamp::as_microsecond))
        .bind(i64::from(note.episode))
        .bind(note.updated_at.as_microsecond())
        .execute(&mut self.connection)
        .await
        .map_err(LedgerError::statement("record a note"))?;
        Ok(())
    }

    /// Records why a closed episode gets no note.
    pub async fn skip_note(
        &mut self,
        session: SessionRow,
        episode: u32,
        reason: &str,
    ) -> Result<(), LedgerError> {
        sqlx::query("INSERT INTO skipped (session, episode, reason) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")
            .bind(session.0)
            .bind(i64::from(episode))
            .bind(reason)
            .execute(&mut self.connection)
            .await
            .map_err(LedgerError::statement("record why there is no note"))?;
        Ok(())
    }
}

fn decode(row: &SqliteRow) -> Result<NoteRow, LedgerError> {
    const OPERATION: &str = "read a note's row";
    let times =
        || -> Result<(Option<i64>, i64), sqlx::Error> { Ok((row.try_get(7)?, row.try_get(9)?)) };
    let (synced_at, updated_at) = times().map_err(LedgerError::statement(OPERATION))?;
    let (synced_at, updated_at) = (instant_opt(synced_at)?, instant(updated_at)?);
    let read = || -> Result<NoteRow, sqlx::Error> {
        let lines: Vec<u8> = row.try_get(6)?;
        let episode: i64 = row.try_get(8)?;
        Ok(NoteRow {
            session: SessionRow(row.try_get(0)?),
            kind: row.try_get(1)?,
            slug: row.try_get(2)?,
            vault: row.try_get(3)?,
            uri: row.try_get(4)?,
            version: row.try_get(5)?,
            lines: lines
                .as_chunks::<8>()
                .0
                .iter()
                .map(|chunk| u64::from_le_bytes(*chunk))
                .collect(),
            synced_at,
            episode: u32::try_from(episode).unwrap_or(u32::MAX),
            updated_at,
        })
    };
    read().map_err(LedgerError::statement(OPERATION))
}
