//! Events as they are read back.

use std::collections::HashMap;

use futures_util::TryStreamExt;
use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::{LedgerError, Reader, instant_opt};
use crate::entry::{Context, EntryKind, Fact, WrittenTime};
use crate::ids::{LedgerSeq, SessionRow, SourceRow};

/// Where an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub source: SourceRow,
    /// Which of its contents.
    pub generation: u32,
    /// Byte offset of the line's first byte.
    pub position: u64,
    /// Length in bytes, without the line end.
    pub length: u64,
}

/// The kind of a ledger row: an entry's, or one of the daemon's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Made from a line.
    Entry(EntryKind),
    /// An episode opened.
    Opened,
    /// An episode closed.
    Closed,
    /// Git was looked at while the session ran.
    GitObserved,
}

impl EventKind {
    /// The name in the ledger.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Entry(kind) => kind.as_str(),
            Self::Opened => "session.opened",
            Self::Closed => "session.closed",
            Self::GitObserved => "git.observed",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        match name {
            "session.opened" => Some(Self::Opened),
            "session.closed" => Some(Self::Closed),
            "git.observed" => Some(Self::GitObserved),
            entry => EntryKind::parse(entry).map(Self::Entry),
        }
    }
}

/// One row of the ledger.
#[derive(Clone, Debug)]
pub struct EventRow {
    /// Its line number.
    pub seq: LedgerSeq,
    /// What it is.
    pub kind: EventKind,
    /// Where its line stands; `None` for the daemon's own events.
    pub place: Option<Place>,
    /// The time on the line.
    pub at: Option<WrittenTime>,
    /// Where and with what the tool was at work.
    pub context: Context,
    /// False for a copy of an entry that is counted elsewhere.
    pub counts: bool,
    /// What the line proves.
    pub facts: Vec<Fact>,
    /// What the daemon itself noted, as JSON (its own events only).
    pub note: Option<String>,
}

impl EventRow {
    /// The instant on the line.
    pub fn instant(&self) -> Option<Timestamp> {
        self.at.as_ref().map(WrittenTime::instant)
    }
}

/// Selects the columns that [`Decoder`] reads. An entry counts where it is held in `entry`; a line that says it
/// was copied counts only while the session it was copied from is not in the ledger itself.
const SELECT: &str =
    "SELECT e.seq, e.kind, e.source, e.generation, e.position, e.length, e.at, e.at_written,
        e.context, e.facts,
        (e.entry IS NULL OR held.seq = e.seq)
          AND (e.copied_from IS NULL OR origin.first_seq IS NULL) AS counts
   FROM event e
   LEFT JOIN entry held ON held.id = e.entry
   LEFT JOIN session origin ON origin.id = e.copied_from
  WHERE e.session = ?1 AND e.seq BETWEEN ?2 AND ?3
  ORDER BY e.seq";

impl Reader {
    /// Hands the events of a session with `first <= seq <= last` to `take`, in ledger order.
    pub async fn events(
        &mut self,
        session: SessionRow,
        first: LedgerSeq,
        last: LedgerSeq,
        take: impl FnMut(EventRow),
    ) -> Result<(), LedgerError> {
        stream(&mut self.connection, session, first, last, take).await
    }
}

impl Reader {
    /// Where the line of an event stands; `None` for the daemon's own events and for unknown numbers.
    pub async fn place_of(&mut self, seq: LedgerSeq) -> Result<Option<Place>, LedgerError> {
        const OPERATION: &str = "look up an event's place";
        let row = sqlx::query(
            "SELECT source, generation, position, length FROM event WHERE seq = ?1 AND source IS NOT NULL",
        )
        .bind(seq.0)
        .fetch_optional(&mut self.connection)
        .await
        .map_err(LedgerError::statement(OPERATION))?;
        let Some(row) = row else { return Ok(None) };
        let read = || -> Result<(i64, i64, i64, i64), sqlx::Error> {
            Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?))
        };
        let (source, generation, position, length) =
            read().map_err(LedgerError::statement(OPERATION))?;
        Ok(Some(Place {
            source: SourceRow(source),
            generation: u32::try_from(generation).unwrap_or(u32::MAX),
            position: position.cast_unsigned(),
            length: length.cast_unsigned(),
        }))
    }
}

pub(super) async fn stream(
    connection: &mut SqliteConnection,
    session: SessionRow,
    first: LedgerSeq,
    last: LedgerSeq,
    mut take: impl FnMut(EventRow),
) -> Result<(), LedgerError> {
    const OPERATION: &str = "read a session's events";
    let contexts = contexts_of(connection, session, first, last).await?;
    let mut rows = sqlx::query(SELECT).bind(session.0).bind(first.0).bind(last.0).fetch(connection);
    while let Some(row) = rows.try_next().await.map_err(LedgerError::statement(OPERATION))? {
        take(decode(&row, &contexts)?);
    }
    Ok(())
}

/// The contexts that a range of events uses; few, since they repeat.
async fn contexts_of(
    connection: &mut SqliteConnection,
    session: SessionRow,
    first: LedgerSeq,
    last: LedgerSeq,
) -> Result<HashMap<i64, Context>, LedgerError> {
    const OPERATION: &str = "read a session's contexts";
    let rows = sqlx::query(
        "SELECT id, cwd, branch, version, agent FROM context
          WHERE id IN (SELECT DISTINCT context FROM event WHERE session = ?1 AND seq BETWEEN ?2 AND ?3)",
    )
    .bind(session.0)
    .bind(first.0)
    .bind(last.0)
    .fetch_all(connection)
    .await
    .map_err(LedgerError::statement(OPERATION))?;
    let filled = |text: String| (!text.is_empty()).then_some(text);
    rows.iter()
        .map(|row| {
            let context = Context {
                cwd: filled(row.try_get(1)?),
                branch: filled(row.try_get(2)?),
                version: filled(row.try_get(3)?),
                agent: filled(row.try_get(4)?),
            };
            Ok((row.try_get(0)?, context))
        })
        .collect::<Result<_, sqlx::Error>>()
        .map_err(LedgerError::statement(OPERATION))
}

fn decode(row: &SqliteRow, contexts: &HashMap<i64, Context>) -> Result<EventRow, LedgerError> {
    let raw = raw(row).map_err(LedgerError::statement("read an event"))?;
    let damaged = |what: &str| LedgerError::Damaged { what: format!("event {}: {what}", raw.seq) };
    let kind = EventKind::parse(&raw.kind).ok_or_else(|| damaged("unknown kind"))?;
    let place = match (raw.source, raw.generation, raw.position, raw.length) {
        (Some(source), Some(generation), Some(position), Some(length)) => Some(Place {
            source: SourceRow(source),
            generation: u32::try_from(generation).map_err(|_| damaged("bad generation"))?,
            position: u64::try_from(position).map_err(|_| damaged("bad position"))?,
            length: u64::try_from(length).map_err(|_| damaged("bad length"))?,
        }),
        _ => None,
    };
    let at = instant_opt(raw.at)?.map(|at| WrittenTime::from_parts(at, raw.at_written));
    let (facts, note) = match (kind, raw.facts) {
        (_, None) => (Vec::new(), None),
        (EventKind::Entry(_), Some(json)) => {
            (serde_json::from_str(&json).map_err(|_| damaged("unreadable facts"))?, None)
        }
        (_, Some(json)) => (Vec::new(), Some(json)),
    };
    let context = raw.context.and_then(|id| contexts.get(&id)).cloned().unwrap_or_default();
    Ok(EventRow {
        seq: LedgerSeq(raw.seq),
        kind,
        place,
        at,
        context,
        counts: raw.counts,
        facts,
        note,
    })
}

struct Raw {
    seq: i64,
    kind: String,
    source: Option<i64>,
    generation: Option<i64>,
    position: Option<i64>,
    length: Option<i64>,
    at: Option<i64>,
    at_written: Option<String>,
    context: Option<i64>,
    facts: Option<String>,
    counts: bool,
}

fn raw(row: &SqliteRow) -> Result<Raw, sqlx::Error> {
    Ok(Raw {
        seq: row.try_get(0)?,
        kind: row.try_get(1)?,
        source: row.try_get(2)?,
        generation: row.try_get(3)?,
        position: row.try_get(4)?,
        length: row.try_get(5)?,
        at: row.try_get(6)?,
        at_written: row.try_get(7)?,
        context: row.try_get(8)?,
        facts: row.try_get(9)?,
        counts: row.try_get(10)?,
    })
}
