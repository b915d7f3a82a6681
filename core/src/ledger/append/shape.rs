//! Counts the shapes of lines, beside the events.

use rusqlite::{Connection, params};

use crate::entry::ShapeCount;
use crate::ids::Tool;
use crate::ledger::LedgerError;

/// Adds the counts of a batch whose first event is `first`.
pub(super) fn count(
    connection: &Connection,
    tool: Tool,
    shapes: &[ShapeCount],
    first: i64,
) -> Result<(), LedgerError> {
    const OPERATION: &str = "count the shapes of lines";
    let mut statement = connection
        .prepare_cached(
            "INSERT INTO shape (tool, version, name, known, n, first_seq, sample)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (tool, version, name) DO UPDATE
                SET n = n + excluded.n, sample = coalesce(sample, excluded.sample)",
        )
        .map_err(LedgerError::statement(OPERATION))?;
    for ShapeCount { version, name, is_known, n, sample } in shapes {
        statement
            .execute(params![
                tool.as_str(),
                version,
                name,
                is_known,
                n.cast_signed(),
                first,
                sample
            ])
            .map_err(LedgerError::statement(OPERATION))?;
    }
    Ok(())
}
