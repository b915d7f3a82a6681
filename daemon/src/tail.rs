//! Tailing: what is new in the sources becomes events of the ledger.
//!
//! A thread reads, frames and parses; the ledger's writer commits beside it. Between the two stands a short
//! channel, so memory is bounded whatever the size of a file. Offsets and events commit together: what is in a
//! channel when the daemon dies is read again at the next start.
//!
//! No file is held open after it was read.

mod file;
mod identity;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use majordomus_core::ids::{SessionRow, SourceRow, Tool};
use majordomus_core::ledger::{Appended, Batch, Checkpoint, Ledger, SourceState, Transaction};
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

use self::file::{Lines, Piece};
pub(crate) use self::identity::is_packed;
pub use self::identity::{Scope, Work, oldest_first, plan};
use crate::policy::Policy;

/// Pieces that wait between the reading thread and the writer.
const QUEUE: usize = 8;

/// Events in one transaction, about: a catch-up touches pages all over, and the fewer commits, the fewer of them are
/// written twice.
const EVENTS_PER_COMMIT: u64 = 30_000;

/// A transaction that waits this long for its next lines is committed: others may want to write.
const PATIENCE: Duration = Duration::from_millis(50);

/// And so is one that has been open this long.
const LONGEST_TRANSACTION: Duration = Duration::from_secs(1);

/// What a pass over some files did.
#[derive(Debug, Default)]
pub struct Tailed {
    /// Files that were looked at.
    pub files: u64,
    /// Bytes that went into the ledger.
    pub bytes: u64,
    /// Events that were added.
    pub events: u64,
    /// Sessions that got events.
    pub sessions: HashSet<SessionRow>,
    /// Sessions in which an episode opened.
    pub opened: Vec<SessionRow>,
    /// What could not be read, one line each.
    pub problems: Vec<String>,
}

/// Called as a pass goes on, with files and bytes done so far.
pub type OnProgress<'a> = &'a mut (dyn FnMut(u64, u64) + Send);

/// Reads files into the ledger.
#[derive(Debug)]
pub struct Tailer {
    /// The writer.
    pub ledger: Arc<Mutex<Ledger>>,
    /// Who takes part.
    pub policy: Arc<Policy>,
    /// Ends a pass early.
    pub stop: CancellationToken,
}

impl Tailer {
    /// Reads what is new in `work`, in its order, and appends it.
    pub async fn tail(&self, work: Vec<Work>, on_progress: OnProgress<'_>) -> Result<Tailed> {
        if work.is_empty() {
            return Ok(Tailed::default());
        }
        let (send, receive) = sync_channel(QUEUE);
        let policy = Arc::clone(&self.policy);
        let reading = tokio::task::spawn_blocking(move || {
            for item in work {
                // A closed channel means that the pass was given up.
                if file::read(&item, &policy, &send).is_break() {
                    break;
                }
            }
        });
        let (progress, mut progressed) = watch::channel((0, 0));
        let writer = Writer {
            ledger: Arc::clone(&self.ledger),
            stop: self.stop.clone(),
            tailed: Tailed::default(),
            current: None,
            progress,
        };
        let writing = tokio::task::spawn_blocking(move || writer.run(&receive));
        // The writer drops its end when it is done.
        while progressed.changed().await.is_ok() {
            let (files, bytes) = *progressed.borrow_and_update();
            on_progress(files, bytes);
        }
        let tailed = writing.await.context("the writing thread failed")?;
        reading.await.context("the reading thread failed")?;
        tailed
    }

    /// Takes the unfinished last line of each of `sources` that is a complete object: the tool will not write its
    /// line end any more (formats.md F2).
    pub async fn accept_unfinished(&self, sources: Vec<SourceState>) -> Result<Tailed> {
        let work = sources
            .into_iter()
            .filter(|source| source.checkpoint.pending > 0)
            .map(Work::accept)
            .collect();
        self.tail(work, &mut |_, _| {}).await
    }
}

/// Takes pieces in order and commits them, on a thread of its own.
struct Writer {
    ledger: Arc<Mutex<Ledger>>,
    stop: CancellationToken,
    tailed: Tailed,
    /// The source of the file that is being read, once it has a row.
    current: Option<SourceRow>,
    progress: watch::Sender<(u64, u64)>,
}

/// What a transaction will make true.
#[derive(Default)]
struct Done {
    files: u64,
    bytes: u64,
    events: u64,
    appended: Vec<Appended>,
}

impl Writer {
    fn run(mut self, receive: &Receiver<Piece>) -> Result<Tailed> {
        // Without a limit: nothing is open, so nobody waits for us.
        while let Ok(first) = receive.recv() {
            // What was not committed is read again at the next start.
            if self.stop.is_cancelled() {
                break;
            }
            self.transaction(first, receive)?;
            self.progress.send_replace((self.tailed.files, self.tailed.bytes));
        }
        Ok(self.tailed)
    }

    /// Writes `first` and what follows on it without delay, in one transaction.
    fn transaction(&mut self, first: Piece, receive: &Receiver<Piece>) -> Result<()> {
        let ledger = Arc::clone(&self.ledger);
        let mut ledger = ledger.blocking_lock();
        let mut transaction = ledger.transaction()?;
        let began = Instant::now();
        let mut done = Done::default();
        let mut next = Some(first);
        while let Some(piece) = next {
            self.write(&mut transaction, piece, &mut done)?;
            let is_full = done.events >= EVENTS_PER_COMMIT
                || began.elapsed() >= LONGEST_TRANSACTION
                || self.stop.is_cancelled();
            next = if is_full { None } else { receive.recv_timeout(PATIENCE).ok() };
        }
        transaction.commit()?;
        drop(ledger);
        self.tailed.files += done.files;
        self.tailed.bytes += done.bytes;
        for appended in done.appended {
            self.tailed.events += appended.events;
            self.tailed.sessions.insert(appended.session);
            if appended.opened.is_some() {
                self.tailed.opened.push(appended.session);
            }
        }
        Ok(())
    }

    fn write(
        &mut self,
        transaction: &mut Transaction<'_>,
        piece: Piece,
        done: &mut Done,
    ) -> Result<()> {
        match piece {
            Piece::Begin(source) => self.current = source,
            Piece::Lines(lines) => {
                let Lines { tool, path, identity, from, events, shapes, checkpoint } = &*lines;
                let source = self.source(transaction, *tool, path, checkpoint)?;
                done.bytes += checkpoint.position - from;
                done.events += events.len() as u64;
                done.appended.extend(transaction.append(&Batch {
                    source,
                    tool: *tool,
                    identity,
                    from: *from,
                    events,
                    shapes,
                    checkpoint,
                })?);
            }
            Piece::Checkpoint { tool, path, from, checkpoint } => {
                let source = self.source(transaction, tool, &path, &checkpoint)?;
                transaction.set_checkpoint(source, from, &checkpoint)?;
            }
            Piece::Gone => {
                if let Some(source) = self.current {
                    transaction.mark_missing(source)?;
                }
            }
            Piece::Moved(path) => {
                if let Some(source) = self.current {
                    self.current = transaction.move_source(source, &path)?.then_some(source);
                }
            }
            Piece::Problem(problem) => self.tailed.problems.push(problem),
            Piece::End => done.files += 1,
        }
        Ok(())
    }

    /// The row of the file that is being read, made if it has none.
    fn source(
        &mut self,
        transaction: &mut Transaction<'_>,
        tool: Tool,
        path: &std::path::Path,
        checkpoint: &Checkpoint,
    ) -> Result<SourceRow> {
        if let Some(source) = self.current {
            return Ok(source);
        }
        // The row starts before the first line: the append that follows moves it, or the next start reads anew.
        let start = file::start_of(checkpoint);
        let source = transaction.add_source(tool, path, &start)?;
        self.current = Some(source);
        Ok(source)
    }
}

/// The files of known sources that changed since they were read, as they are now.
pub fn changed(sources: &[SourceState]) -> Vec<PathBuf> {
    sources
        .iter()
        .filter(|source| identity::has_changed(source))
        .map(|source| source.path.clone())
        .collect()
}

/// When a file was changed last.
pub fn file_time(source: &SourceState) -> Option<Timestamp> {
    Timestamp::from_nanosecond(i128::from(source.checkpoint.mtime_ns)).ok()
}

#[cfg(test)]
mod tests;
