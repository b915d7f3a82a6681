//! Sessions as the ledger knows them, and the totals of the whole.

use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{Ledger, LedgerError, Reader, instant_opt};
use crate::ids::{LedgerSeq, NativeId, SessionKey, SessionRow, Tool};

/// Where a session stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionState {
    /// Its row.
    pub row: SessionRow,
    /// Its identity.
    pub key: SessionKey,
    /// A thread that the tool ran for itself.
    pub is_machine: bool,
    /// The session that it was forked from.
    pub forked_from: Option<SessionRow>,
    /// First event.
    pub first: LedgerSeq,
    /// Last event.
    pub last: LedgerSeq,
    /// Latest activity.
    pub active_at: Option<Timestamp>,
    /// When the tool said that it ended, if nothing happened since.
    pub ended_at: Option<Timestamp>,
    /// The open episode, or the last closed one; 0 before the first.
    pub episode: u32,
    /// First event of the open episode.
    pub open_since: Option<LedgerSeq>,
}

impl SessionState {
    /// Whether an episode is open.
    pub fn is_open(&self) -> bool {
        self.open_since.is_some()
    }
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// One session.
    One(SessionState),
    /// None.
    None,
    /// Several, by their native ids; a longer prefix would tell them apart.
    Many(Vec<String>),
}

/// Counts over the whole ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerTotals {
    /// Events.
    pub events: u64,
    /// Lines that could not be read.
    pub unreadable: u64,
    /// Lines of a shape that is not known.
    pub unknown: u64,
    /// Sessions with an open episode.
    pub open_sessions: u64,
    /// Sessions without one.
    pub closed_sessions: u64,
    /// Episodes, open ones included.
    pub episodes: u64,
    /// Files that were seen.
    pub sources: u64,
    /// Files with lines in the ledger.
    pub ledgered_sources: u64,
    /// Bytes of them that are in the ledger.
    pub source_bytes: u64,
    /// Files whose lines are (in part) not yet in the ledger, and how many bytes of them.
    pub behind: (u64, u64),
    /// Closed episodes.
    pub closed_episodes: u64,
    /// Notes in a vault.
    pub notes: u64,
}

const COLUMNS: &str = "SELECT id, tool, native, machine, forked_from, first_seq, last_seq, active_at, ended_at, episode,
        open_seq FROM session";

/// Counts for the status. The second look at `kind` is what SQLite needs to see that the partial index serves:
/// without it every status walks all events.
pub(super) const TOTALS: &str = "SELECT (SELECT coalesce(max(seq), 0) FROM event),
            (SELECT count(*) FROM event WHERE kind = 'unreadable' AND kind IN ('unreadable', 'unknown')),
            (SELECT count(*) FROM event WHERE kind = 'unknown' AND kind IN ('unreadable', 'unknown')),
            (SELECT count(*) FROM session WHERE open_seq IS NOT NULL AND machine = 0),
            (SELECT count(*) FROM session WHERE open_seq IS NULL AND episode > 0 AND machine = 0),
            (SELECT coalesce(sum(episode), 0) FROM session WHERE machine = 0),
            count(*), coalesce(sum(position), 0),
            coalesce(sum(state = 'live' AND size > position), 0),
            coalesce(sum(CASE WHEN state = 'live' THEN max(size - position, 0) ELSE 0 END), 0),
            (SELECT count(*) FROM envelope), (SELECT count(*) FROM note WHERE uri IS NOT NULL),
            coalesce(sum(position > 0), 0)
       FROM source";

impl Reader {
    /// All sessions that have events, in the order of their first event.
    pub async fn sessions(&mut self) -> Result<Vec<SessionState>, LedgerError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "{COLUMNS} WHERE first_seq IS NOT NULL ORDER BY first_seq"
        )))
        .fetch_all(&mut self.connection)
        .await
        .map_err(LedgerError::statement("list the sessions"))?;
        rows.iter().map(decode).collect()
    }

    /// The sessions with an open episode, the longest idle first.
    pub async fn open_sessions(&mut self) -> Result<Vec<SessionState>, LedgerError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "{COLUMNS} WHERE open_seq IS NOT NULL ORDER BY active_at, id"
        )))
        .fetch_all(&mut self.connection)
        .await
        .map_err(LedgerError::statement("list the open sessions"))?;
        rows.iter().map(decode).collect()
    }

    /// One session.
    pub async fn session(&mut self, row: SessionRow) -> Result<Option<SessionState>, LedgerError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "{COLUMNS} WHERE id = ?1 AND first_seq IS NOT NULL"
        )))
        .bind(row.0)
        .fetch_optional(&mut self.connection)
        .await
        .map_err(LedgerError::statement("look up a session"))?;
        row.as_ref().map(decode).transpose()
    }

    /// The session that `name` stands for: its id, any unique prefix of it or of an alias, or `last`.
    pub async fn find_session(&mut self, name: &str) -> Result<Match, LedgerError> {
        const OPERATION: &str = "find a session";
        if name == "last" {
            let row = sqlx::query(sqlx::AssertSqlSafe(format!(
                "{COLUMNS} s WHERE first_seq IS NOT NULL AND machine = 0
                   AND EXISTS (SELECT 1 FROM event e
                                WHERE e.session = s.id AND e.at IS NOT NULL AND e.source IS NOT NULL)
                  ORDER BY active_at DESC, last_seq DESC LIMIT 1"
            )))
            .fetch_optional(&mut self.connection)
            .await
            .map_err(LedgerError::statement(OPERATION))?;
            return Ok(row.as_ref().map(decode).transpose()?.map_or(Match::None, Match::One));
        }
        // A whole id wins over a prefix, an id over an alias.
        for condition in [
            "native = ?1",
            "substr(native, 1, length(?1)) = ?1",
            "id IN (SELECT session FROM alias WHERE substr(alias, 1, length(?1)) = ?1)",
        ] {
            let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
                "{COLUMNS} WHERE first_seq IS NOT NULL AND {condition} ORDER BY first_seq LIMIT 20"
            )))
            .bind(name)
            .fetch_all(&mut self.connection)
            .await
            .map_err(LedgerError::statement(OPERATION))?;
            let mut found = rows.iter().map(decode).collect::<Result<Vec<_>, _>>()?;
            match found.len() {
                0 => {}
                1 => return Ok(Match::One(found.remove(0))),
                _ => {
                    let names = found.into_iter().map(|state| state.key.native.to_string());
                    return Ok(Match::Many(names.collect()));
                }
            }
        }
        Ok(Match::None)
    }

    /// Other ids under which the session can be found.
    pub async fn aliases(&mut self, session: SessionRow) -> Result<Vec<String>, LedgerError> {
        const OPERATION: &str = "list a session's aliases";
        let rows = sqlx::query("SELECT alias FROM alias WHERE session = ?1 ORDER BY alias")
            .bind(session.0)
            .fetch_all(&mut self.connection)
            .await
            .map_err(LedgerError::statement(OPERATION))?;
        rows.iter()
            .map(|row| row.try_get(0))
            .collect::<Result<_, _>>()
            .map_err(LedgerError::statement(OPERATION))
    }

    /// The newest time on any entry that is not later than `now`.
    pub async fn newest_entry(&mut self, now: Timestamp) -> Result<Option<Timestamp>, LedgerError> {
        const OPERATION: &str = "look for the newest entry";
        let newest = sqlx::query("SELECT max(at) FROM event WHERE source IS NOT NULL AND at <= ?1")
            .bind(now.as_microsecond())
            .fetch_one(&mut self.connection)
            .await
            .and_then(|row| row.try_get(0))
            .map_err(LedgerError::statement(OPERATION))?;
        instant_opt(newest)
    }

    /// Whether a session worked in `directory` or below it.
    pub async fn has_session_in(&mut self, directory: &str) -> Result<bool, LedgerError> {
        sqlx::query(
            "SELECT EXISTS (SELECT 1 FROM context
                             WHERE cwd = ?1 OR substr(cwd, 1, length(?1) + 1) = ?1 || '/')",
        )
        .bind(directory)
        .fetch_one(&mut self.connection)
        .await
        .and_then(|row| row.try_get(0))
        .map_err(LedgerError::statement("look for sessions in a directory"))
    }

    /// The cached summary of a session, if it covers everything up to `last`.
    pub async fn summary(
        &mut self,
        session: SessionRow,
        last: LedgerSeq,
    ) -> Result<Option<String>, LedgerError> {
        const OPERATION: &str = "read a session's summary";
        let row = sqlx::query("SELECT json FROM summary WHERE session = ?1 AND seq = ?2")
            .bind(session.0)
            .bind(last.0)
            .fetch_optional(&mut self.connection)
            .await
            .map_err(LedgerError::statement(OPERATION))?;
        row.map(|row| row.try_get(0)).transpose().map_err(LedgerError::statement(OPERATION))
    }

    /// Counts over the whole ledger.
    pub async fn totals(&mut self) -> Result<LedgerTotals, LedgerError> {
        const OPERATION: &str = "count the ledger";
        let row = sqlx::query(TOTALS)
            .fetch_one(&mut self.connection)
            .await
            .map_err(LedgerError::statement(OPERATION))?;
        let count = |index: usize| -> Result<u64, LedgerError> {
            let value: i64 = row.try_get(index).map_err(LedgerError::statement(OPERATION))?;
            Ok(u64::try_from(value).unwrap_or(0))
        };
        Ok(LedgerTotals {
            events: count(0)?,
            unreadable: count(1)?,
            unknown: count(2)?,
            open_sessions: count(3)?,
            closed_sessions: count(4)?,
            episodes: count(5)?,
            sources: count(6)?,
            source_bytes: count(7)?,
            behind: (count(8)?, count(9)?),
            closed_episodes: count(10)?,
            notes: count(11)?,
            ledgered_sources: count(12)?,
        })
    }
}

impl Ledger {
    /// Caches a session's summary as of `last`.
    pub async fn set_summary(
        &mut self,
        session: SessionRow,
        last: LedgerSeq,
        json: &str,
    ) -> Result<(), LedgerError> {
        sqlx::query(
            "INSERT INTO summary (session, seq, json) VALUES (?1, ?2, ?3)
             ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, json = excluded.json",
        )
        .bind(session.0)
        .bind(last.0)
        .bind(json)
        .execute(&mut self.connection)
        .await
        .map_err(LedgerError::statement("cache a session's summary"))?;
        Ok(())
    }
}

fn decode(row: &SqliteRow) -> Result<SessionState, LedgerError> {
    type Columns = (i64, String, String, bool, Option<i64>, [Option<i64>; 4], i64, Option<i64>);
    let read = || -> Result<Columns, sqlx::Error> {
        Ok((
            row.try_get(0)?,
            row.try_get(1)?,
            row.try_get(2)?,
            row.try_get(3)?,
            row.try_get(4)?,
            [row.try_get(5)?, row.try_get(6)?, row.try_get(7)?, row.try_get(8)?],
            row.try_get(9)?,
            row.try_get(10)?,
        ))
    };
    let (id, tool, native, is_machine, forked_from, times, episode, open_since) =
        read().map_err(LedgerError::statement("read a session"))?;
    let (Some(tool), Some(native)) = (Tool::parse(&tool), NativeId::new(&native)) else {
        return Err(LedgerError::Damaged { what: format!("session {id}: bad tool or id") });
    };
    let [first, last, active_at, ended_at] = times;
    Ok(SessionState {
        row: SessionRow(id),
        key: SessionKey { tool, native },
        is_machine,
        forked_from: forked_from.map(SessionRow),
        first: LedgerSeq(first.unwrap_or(0)),
        last: LedgerSeq(last.unwrap_or(0)),
        active_at: instant_opt(active_at)?,
        ended_at: instant_opt(ended_at)?,
        episode: u32::try_from(episode).unwrap_or(0),
        open_since: open_since.map(LedgerSeq),
    })
}
