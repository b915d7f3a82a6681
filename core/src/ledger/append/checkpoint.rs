//! Sources as the tailer writes them: new ones, and how far each was read.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rusqlite::{Connection, params};

use super::Transaction;
use crate::ids::{SessionRow, SourceRow, Tool};
use crate::ledger::{Checkpoint, Ledger, LedgerError};

impl Transaction<'_> {
    /// Adds a source, from which nothing was read yet; gives the row that is there if another pass added it.
    pub fn add_source(
        &mut self,
        tool: Tool,
        path: &Path,
        checkpoint: &Checkpoint,
    ) -> Result<SourceRow, LedgerError> {
        let Checkpoint { file, generation, size, mtime_ns, position, .. } = checkpoint;
        self.appender
            .connection
            .prepare_cached(
                "INSERT INTO source (device, inode, generation, size, mtime_ns, position, chain, pending, reader,
                                     state, error, anchor, tool, path)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
                 ON CONFLICT (path) DO UPDATE SET path = excluded.path RETURNING id",
            )
            .map_err(LedgerError::statement("add a source"))?
            .query_row(
                params![
                    file.device.cast_signed(),
                    file.inode.cast_signed(),
                    generation,
                    size.cast_signed(),
                    mtime_ns,
                    position.cast_signed(),
                    &checkpoint.chain.0[..],
                    checkpoint.pending.cast_signed(),
                    reader_json(checkpoint)?,
                    checkpoint.status.as_str(),
                    checkpoint.error,
                    &checkpoint.anchor.0[..],
                    tool.as_str(),
                    path.as_os_str().as_bytes(),
                ],
                |row| row.get(0).map(SourceRow),
            )
            .map_err(LedgerError::statement("add a source"))
    }

    /// Moves a source's checkpoint without adding events. One that was taken beside another pass, and does not
    /// follow on from `from`, where the source stood, changes nothing: a position never goes back.
    pub fn set_checkpoint(
        &mut self,
        source: SourceRow,
        from: u64,
        checkpoint: &Checkpoint,
    ) -> Result<(), LedgerError> {
        let connection = &self.appender.connection;
        if follows_on(connection, source, from, checkpoint)? {
            update(connection, source, None, checkpoint)?;
        }
        Ok(())
    }

    /// A source's file was moved to `path`. False if another pass has met it there already: then the source that
    /// is at `path` is the one to go on with.
    pub fn move_source(&mut self, source: SourceRow, path: &Path) -> Result<bool, LedgerError> {
        let done = self
            .appender
            .connection
            .execute(
                "UPDATE OR IGNORE source SET path = ?2, state = 'live' WHERE id = ?1",
                params![source.0, path.as_os_str().as_bytes()],
            )
            .map_err(LedgerError::statement("move a source"))?;
        Ok(done > 0)
    }

    /// A source's file is gone. The ledger keeps what it has.
    pub fn mark_missing(&mut self, source: SourceRow) -> Result<(), LedgerError> {
        self.appender
            .connection
            .execute("UPDATE source SET state = 'missing' WHERE id = ?1", [source.0])
            .map_err(LedgerError::statement("mark a source as missing"))?;
        Ok(())
    }
}

impl Ledger {
    /// [`Transaction::add_source`] in a transaction of its own.
    pub fn add_source(
        &mut self,
        tool: Tool,
        path: &Path,
        checkpoint: &Checkpoint,
    ) -> Result<SourceRow, LedgerError> {
        let mut transaction = self.transaction()?;
        let row = transaction.add_source(tool, path, checkpoint)?;
        transaction.commit()?;
        Ok(row)
    }
}

/// Whether what was read of a source from `from` on continues what the ledger has of it: the same content from
/// where it stands, or a newer content from its first byte.
pub(super) fn follows_on(
    connection: &Connection,
    source: SourceRow,
    from: u64,
    checkpoint: &Checkpoint,
) -> Result<bool, LedgerError> {
    connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM source WHERE id = ?1
                             AND ((generation = ?2 AND position = ?3) OR (generation < ?2 AND ?3 = 0)))",
        )
        .and_then(|mut statement| {
            statement.query_row(
                params![source.0, checkpoint.generation, from.cast_signed()],
                |row| row.get(0),
            )
        })
        .map_err(LedgerError::statement("look where a source stands"))
}

pub(super) fn update(
    connection: &Connection,
    source: SourceRow,
    session: Option<SessionRow>,
    checkpoint: &Checkpoint,
) -> Result<(), LedgerError> {
    const OPERATION: &str = "move a source's checkpoint";
    let Checkpoint { file, generation, size, mtime_ns, position, .. } = checkpoint;
    connection
        .prepare_cached(
            "UPDATE source SET device = ?1, inode = ?2, generation = ?3, size = ?4, mtime_ns = ?5, position = ?6,
                    chain = ?7, pending = ?8, reader = ?9, state = ?10, error = ?11, anchor = ?12,
                    session = coalesce(?13, session)
              WHERE id = ?14",
        )
        .map_err(LedgerError::statement(OPERATION))?
        .execute(params![
            file.device.cast_signed(),
            file.inode.cast_signed(),
            generation,
            size.cast_signed(),
            mtime_ns,
            position.cast_signed(),
            &checkpoint.chain.0[..],
            checkpoint.pending.cast_signed(),
            reader_json(checkpoint)?,
            checkpoint.status.as_str(),
            checkpoint.error,
            &checkpoint.anchor.0[..],
            session.map(|session| session.0),
            source.0,
        ])
        .map_err(LedgerError::statement(OPERATION))?;
    Ok(())
}

fn reader_json(checkpoint: &Checkpoint) -> Result<String, LedgerError> {
    serde_json::to_string(&checkpoint.reader)
        .map_err(|error| LedgerError::Damaged { what: format!("a line reader's state: {error}") })
}
