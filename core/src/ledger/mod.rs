//! The ledger: the only place with SQL. A function is one transaction, and its name says what becomes true.
//!
//! One [`Ledger`] writes, through one connection. Any number of [`Reader`]s look, each with a read-only
//! connection; they work while the writer is busy and when there is no writer at all.

mod append;
mod close;
mod event;
mod note;
mod session;
mod source;

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Row};

pub use self::append::{Appended, Batch, NewEvent, Transaction};
pub use self::close::{CloseOutcome, EnvelopeRow};
pub use self::event::{EventKind, EventRow, Place};
pub use self::note::{DraftTask, NoteRow, PENDING_REASON_HISTORY};
pub use self::session::{LedgerTotals, Match, SessionState};
pub use self::source::{Chain, Checkpoint, FileId, SourceState, SourceStatus};

static MIGRATOR: sqlx::migrate::Migrator = sqlx::migrate!("../migrations");

/// How long a connection waits for another one's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Why the ledger could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The database cannot be opened.
    #[error("cannot open the ledger {path}")]
    Open {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        #[source]
        source: DriverError,
    },
    /// The schema cannot be brought up to date.
    #[error("cannot bring the ledger {path} up to this version")]
    Migrate {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: sqlx::migrate::MigrateError,
    },
    /// A statement failed.
    #[error("failed to {operation}")]
    Statement {
        /// What was being done.
        operation: &'static str,
        /// What SQLite says.
        #[source]
        source: DriverError,
    },
    /// A later version of this program has changed the schema.
    #[error(
        "the ledger {path} was written by a newer version (schema {found}, this version knows {known}); install the \
         newer version"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The schema's version.
        found: i64,
        /// The newest one that is known here.
        known: i64,
    },
    /// A row holds what this program never writes.
    #[error("the ledger holds a damaged row: {what}")]
    Damaged {
        /// Which row and why.
        what: String,
    },
}

/// What SQLite says, by way of the driver that asked it: appends are made through one, all else through the other.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The driver for readers and for all that is not hot.
    #[error(transparent)]
    Sqlx(#[from] sqlx::Error),
    /// The driver for appends. What it names as its error's cause says the same once more, and is left out.
    #[error("{0}")]
    Rusqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for DriverError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Rusqlite(error)
    }
}

impl DriverError {
    /// SQLite's own code, extended where there is more to say.
    fn code(&self) -> Option<i32> {
        match self {
            Self::Sqlx(error) => error.as_database_error()?.code()?.parse().ok(),
            Self::Rusqlite(error) => Some(error.sqlite_error()?.extended_code),
        }
    }
}

impl LedgerError {
    /// Gives the closure for `map_err` that names the operation.
    fn statement<E: Into<DriverError>>(operation: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::Statement { operation, source: source.into() }
    }

    /// True when a later version of this program has the ledger.
    pub fn is_from_newer_version(&self) -> bool {
        matches!(self, Self::Newer { .. })
    }

    /// True when SQLite says that the file is not a sound database.
    pub fn is_corruption(&self) -> bool {
        const CORRUPT: i32 = 11;
        const NOT_A_DATABASE: i32 = 26;
        let code = match self {
            Self::Open { source, .. } | Self::Statement { source, .. } => source.code(),
            Self::Migrate {
                source:
                    sqlx::migrate::MigrateError::Execute(source)
                    | sqlx::migrate::MigrateError::ExecuteMigration(source, _),
                ..
            } => source
                .as_database_error()
                .and_then(sqlx::error::DatabaseError::code)
                .and_then(|code| code.parse().ok()),
            Self::Damaged { .. } => return true,
            Self::Migrate { .. } | Self::Newer { .. } => return false,
        };
        // The lowest byte is the primary code; an extended one such as CORRUPT_INDEX says the same.
        code.is_some_and(|code| matches!(code & 0xff, CORRUPT | NOT_A_DATABASE))
    }
}

/// The newest schema that this version knows.
fn known_schema() -> i64 {
    MIGRATOR.iter().map(|migration| migration.version).max().unwrap_or(0)
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(false)
        // Without this INSERT OR REPLACE would walk past the append-only triggers.
        .pragma("recursive_triggers", "ON")
        .disable_statement_logging()
}

/// The writer's connection.
async fn connect(path: &Path) -> Result<SqliteConnection, LedgerError> {
    options(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        // A close and a receipt must survive a power cut; with batches this costs little.
        .synchronous(SqliteSynchronous::Full)
        .pragma("journal_size_limit", JOURNAL_SIZE_LIMIT.to_string())
        .pragma("cache_size", "-2048")
        .connect()
        .await
        .map_err(|source| LedgerError::Open { path: path.to_owned(), source: source.into() })
}

/// The writer's connection for appends. Only one of the two ever writes: both belong to one [`Ledger`].
fn connect_appender(path: &Path) -> Result<append::Appender, LedgerError> {
    let open = || {
        let connection = rusqlite::Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(64);
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", false)?;
        connection.pragma_update(None, "recursive_triggers", true)?;
        connection.pragma_update(None, "journal_size_limit", JOURNAL_SIZE_LIMIT)?;
        connection.pragma_update(None, "cache_size", -APPEND_CACHE_KIB)?;
        Ok::<_, rusqlite::Error>(connection)
    };
    let connection = open()
        .map_err(|source| LedgerError::Open { path: path.to_owned(), source: source.into() })?;
    Ok(append::Appender::new(connection))
}

/// The write-ahead log is cut back to so many bytes.
const JOURNAL_SIZE_LIMIT: i64 = 16 * 1024 * 1024;

/// Pages that an append may hold in memory, in KiB: a catch-up touches the table of entries all over.
const APPEND_CACHE_KIB: i64 = 16 * 1024;

/// The writer's handle.
#[derive(Debug)]
pub struct Ledger {
    connection: SqliteConnection,
    path: PathBuf,
    appender: append::Appender,
    /// A transaction was begun and did not end well.
    is_unfinished: bool,
}

impl Ledger {
    /// Opens the database at `path`, makes it if it is missing, and brings its schema up to date. The file's
    /// mode follows the umask: the caller sets it to 077 first.
    pub async fn open(path: &Path) -> Result<Self, LedgerError> {
        let mut connection = connect(path).await?;
        MIGRATOR.run(&mut connection).await.map_err(|source| match source {
            sqlx::migrate::MigrateError::VersionMissing(found) if found > known_schema() => {
                LedgerError::Newer { path: path.to_owned(), found, known: known_schema() }
            }
            source => LedgerError::Migrate { path: path.to_owned(), source },
        })?;
        Ok(Self {
            connection,
            path: path.to_owned(),
            appender: connect_appender(path)?,
            is_unfinished: false,
        })
    }

    /// To be called before a transaction. After one that failed (a full disk, most likely) SQLite and the driver may
    /// disagree on whether it is still open, and rows that were remembered may be gone: both are made anew.
    async fn before_transaction(&mut self) -> Result<(), LedgerError> {
        if self.is_unfinished {
            let old = std::mem::replace(&mut self.connection, connect(&self.path).await?);
            // What it has to complain about was said when it failed.
            drop(old.close().await);
        }
        self.is_unfinished = true;
        Ok(())
    }

    /// To be called when a transaction was committed.
    fn after_transaction(&mut self) {
        self.is_unfinished = false;
    }

    /// Opens a reader on the same file.
    pub async fn reader(&self) -> Result<Reader, LedgerError> {
        Reader::open(&self.path).await
    }

    /// Brings the write-ahead log back into the file and closes the connection.
    pub async fn close(mut self) -> Result<(), LedgerError> {
        drop(self.appender);
        sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
            .execute(&mut self.connection)
            .await
            .map_err(LedgerError::statement("check-point the ledger"))?;
        self.connection.close().await.map_err(LedgerError::statement("close the ledger"))
    }

    /// Remembers a value of the daemon's own.
    pub async fn set_meta(&mut self, key: &str, value: &str) -> Result<(), LedgerError> {
        sqlx::query(
            "INSERT INTO meta (key, value) VALUES (?1, ?2)
             ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        )
        .bind(key)
        .bind(value)
        .execute(&mut self.connection)
        .await
        .map_err(LedgerError::statement("remember a setting"))?;
        Ok(())
    }
}

/// A read-only view.
#[derive(Debug)]
pub struct Reader {
    connection: SqliteConnection,
    path: PathBuf,
}

impl Reader {
    /// Opens the database at `path` for reading; it must exist.
    pub async fn open(path: &Path) -> Result<Self, LedgerError> {
        let connection = options(path)
            .read_only(true)
            .connect()
            .await
            .map_err(|source| LedgerError::Open { path: path.to_owned(), source: source.into() })?;
        Ok(Self { connection, path: path.to_owned() })
    }

    /// Whether the schema is there: a daemon that starts makes the file before it. One that this version does not
    /// know is refused, as its rows may mean something else.
    pub async fn is_ready(&mut self) -> Result<bool, LedgerError> {
        let is_ready: bool =
            sqlx::query("SELECT count(*) = 2 FROM sqlite_schema WHERE name IN ('meta', 'skipped')")
                .fetch_one(&mut self.connection)
                .await
                .and_then(|row| row.try_get(0))
                .map_err(LedgerError::statement("look at the ledger's schema"))?;
        if is_ready {
            let found: i64 = sqlx::query("SELECT coalesce(max(version), 0) FROM _sqlx_migrations")
                .fetch_one(&mut self.connection)
                .await
                .and_then(|row| row.try_get(0))
                .map_err(LedgerError::statement("look at the ledger's version"))?;
            let known = known_schema();
            if found > known {
                return Err(LedgerError::Newer { path: self.path.clone(), found, known });
            }
        }
        Ok(is_ready)
    }

    /// What [`Ledger::set_meta`] remembered.
    pub async fn meta(&mut self, key: &str) -> Result<Option<String>, LedgerError> {
        let row = sqlx::query("SELECT value FROM meta WHERE key = ?1")
            .bind(key)
            .fetch_optional(&mut self.connection)
            .await
            .map_err(LedgerError::statement("read a setting"))?;
        row.map(|row| row.try_get(0)).transpose().map_err(LedgerError::statement("read a setting"))
    }
}

/// An instant out of a column of microseconds.
fn instant(micros: i64) -> Result<Timestamp, LedgerError> {
    Timestamp::from_microsecond(micros)
        .map_err(|_| LedgerError::Damaged { what: format!("{micros} is no time in microseconds") })
}

/// An instant out of a column of microseconds that may be NULL.
fn instant_opt(micros: Option<i64>) -> Result<Option<Timestamp>, LedgerError> {
    micros.map(instant).transpose()
}

#[cfg(test)]
mod tests;
