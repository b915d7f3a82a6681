//! Sources: which file it is, how far it was read, and what is known about it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use futures_util::TryStreamExt;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{LedgerError, Reader};
use crate::entry;
use crate::ids::{LineHash, SessionRow, SourceRow, Tool};

/// What the file system calls a file. Inodes are used again, so this alone is no identity: see [`Chain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
}

/// Rolling hash of the lines of a source up to a position. Each step hashes the hash before it and the hash of
/// the next line, so it can go on after a restart without reading the file again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain(pub [u8; 16]);

impl Chain {
    /// The chain of no lines.
    pub const EMPTY: Self = Self([0; 16]);

    /// Adds the next line.
    #[must_use]
    pub fn then(self, line: LineHash) -> Self {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&self.0);
        bytes[16..].copy_from_slice(&line.0);
        Self(LineHash::of(&bytes).0)
    }
}

/// Whether a source can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceStatus {
    /// It is there.
    Live,
    /// It is gone; the ledger keeps what it has. Not the same as withdrawn.
    Missing,
    /// It has the right name, and its lines do not make a session.
    Unrecognised,
    /// Policy keeps it out: what follows its position is not in the ledger.
    Excluded,
}

impl SourceStatus {
    /// The name in the ledger.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Missing => "missing",
            Self::Unrecognised => "unrecognised",
            Self::Excluded => "excluded",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        match name {
            "live" => Some(Self::Live),
            "missing" => Some(Self::Missing),
            "unrecognised" => Some(Self::Unrecognised),
            "excluded" => Some(Self::Excluded),
            _ => None,
        }
    }
}

/// How far a source was read, and what its reader knows there. Written in the transaction that adds the events.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The file that was read.
    pub file: FileId,
    /// Which of the source's contents.
    pub generation: u32,
    /// Size in bytes at the last look.
    pub size: u64,
    /// Change time in nanoseconds at the last look.
    pub mtime_ns: i64,
    /// Bytes that are in the ledger; the end of a line.
    pub position: u64,
    /// Rolling hash of the lines up to `position`.
    pub chain: Chain,
    /// Hash of the first and the last bytes up to `position`.
    pub anchor: LineHash,
    /// Bytes after `position` that wait for their line end.
    pub pending: u64,
    /// State of the line reader.
    pub reader: entry::Reader,
    /// Whether it can be read.
    pub status: SourceStatus,
    /// What went wrong at the last look, if anything did.
    pub error: Option<String>,
}

/// A source as the ledger knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceState {
    /// Its row.
    pub row: SourceRow,
    /// Who writes it.
    pub tool: Tool,
    /// Where it was seen last.
    pub path: PathBuf,
    /// The session that it belongs to, once known.
    pub session: Option<SessionRow>,
    /// How far it was read.
    pub checkpoint: Checkpoint,
}

const COLUMNS: &str =
    "SELECT id, tool, path, device, inode, generation, size, mtime_ns, position, chain, pending,
        session, reader, state, error, anchor FROM source";

impl Reader {
    /// All sources, one after the other, in no particular order.
    pub async fn sources(&mut self, mut take: impl FnMut(SourceState)) -> Result<(), LedgerError> {
        const OPERATION: &str = "list the sources";
        let mut rows = sqlx::query(COLUMNS).fetch(&mut self.connection);
        while let Some(row) = rows.try_next().await.map_err(LedgerError::statement(OPERATION))? {
            take(decode(&row)?);
        }
        Ok(())
    }

    /// The source at `path`.
    pub async fn source_at(&mut self, path: &Path) -> Result<Option<SourceState>, LedgerError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!("{COLUMNS} WHERE path = ?1")))
            .bind(path.as_os_str().as_bytes())
            .fetch_optional(&mut self.connection)
            .await
            .map_err(LedgerError::statement("look up a source"))?;
        row.as_ref().map(decode).transpose()
    }

    /// The sources that are or were the file `file`.
    pub async fn sources_of_file(&mut self, file: FileId) -> Result<Vec<SourceState>, LedgerError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "{COLUMNS} WHERE device = ?1 AND inode = ?2 ORDER BY id"
        )))
        .bind(file.device.cast_signed())
        .bind(file.inode.cast_signed())
        .fetch_all(&mut self.connection)
        .await
        .map_err(LedgerError::statement("look up a file"))?;
        rows.iter().map(decode).collect()
    }

    /// The source with row `row`.
    pub async fn source(&mut self, row: SourceRow) -> Result<Option<SourceState>, LedgerError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!("{COLUMNS} WHERE id = ?1")))
            .bind(row.0)
            .fetch_optional(&mut self.connection)
            .await
            .map_err(LedgerError::statement("look up a source"))?;
        row.as_ref().map(decode).transpose()
    }

    /// The sources of a session, its own first.
    pub async fn sources_of(
        &mut self,
        session: SessionRow,
    ) -> Result<Vec<SourceState>, LedgerError> {
        let rows =
            sqlx::query(sqlx::AssertSqlSafe(format!("{COLUMNS} WHERE session = ?1 ORDER BY id")))
                .bind(session.0)
                .fetch_all(&mut self.connection)
                .await
                .map_err(LedgerError::statement("list a session's sources"))?;
        rows.iter().map(decode).collect()
    }

    /// The sources whose last line waits for its end.
    pub async fn pending_sources(&mut self) -> Result<Vec<SourceState>, LedgerError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "{COLUMNS} WHERE pending > 0 AND state = 'live' ORDER BY id"
        )))
        .fetch_all(&mut self.connection)
        .await
        .map_err(LedgerError::statement("list the sources with an unfinished line"))?;
        rows.iter().map(decode).collect()
    }
}

fn decode(row: &SqliteRow) -> Result<SourceState, LedgerError> {
    decode_columns(row).map_err(LedgerError::statement("read a source"))?
}

fn decode_columns(row: &SqliteRow) -> Result<Result<SourceState, LedgerError>, sqlx::Error> {
    let id: i64 = row.try_get(0)?;
    let tool: String = row.try_get(1)?;
    let path: Vec<u8> = row.try_get(2)?;
    let generation: i64 = row.try_get(5)?;
    let chain: Vec<u8> = row.try_get(9)?;
    let reader: String = row.try_get(12)?;
    let state: String = row.try_get(13)?;
    let anchor: Vec<u8> = row.try_get(15)?;
    let damaged = |what: &str| LedgerError::Damaged { what: format!("source {id}: {what}") };
    let (Some(tool), Ok(generation), Ok(chain), Ok(anchor), Some(status)) = (
        Tool::parse(&tool),
        u32::try_from(generation),
        <[u8; 16]>::try_from(chain.as_slice()),
        <[u8; 16]>::try_from(anchor.as_slice()),
        SourceStatus::parse(&state),
    ) else {
        return Ok(Err(damaged("a column is out of range")));
    };
    let Ok(reader) = serde_json::from_str(&reader) else {
        return Ok(Err(damaged("the line reader's state cannot be read")));
    };
    Ok(Ok(SourceState {
        row: SourceRow(id),
        tool,
        path: PathBuf::from(OsStr::from_bytes(&path)),
        session: row.try_get::<Option<i64>, _>(11)?.map(SessionRow),
        checkpoint: Checkpoint {
            file: FileId {
                device: row.try_get::<i64, _>(3)?.cast_unsigned(),
                inode: row.try_get::<i64, _>(4)?.cast_unsigned(),
            },
            generation,
            size: row.try_get::<i64, _>(6)?.cast_unsigned(),
            mtime_ns: row.try_get(7)?,
            position: row.try_get::<i64, _>(8)?.cast_unsigned(),
            chain: Chain(chain),
            anchor: LineHash(anchor),
            pending: row.try_get::<i64, _>(10)?.cast_unsigned(),
            reader,
            status,
            error: row.try_get(14)?,
        },
    }))
}
