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

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use majordomus_core::entry::SourceIdentity;
use majordomus_core::ids::{SessionRow, SourceRow, Tool};
use majordomus_core::ledger::{Batch, Checkpoint, Ledger, NewEvent, SourceState};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use self::file::Piece;
pub(crate) use self::identity::is_packed;
pub use self::identity::{Scope, Work, oldest_first, plan};
use crate::policy::Policy;

/// Pieces that wait between the reading thread and the writer.
const QUEUE: usize = 4;

/// Events in one transaction, about.
const EVENTS_PER_COMMIT: usize = 4_000;

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
        let mut tailed = Tailed::default();
        if work.is_empty() {
            return Ok(tailed);
        }
        let (send, mut receive) = mpsc::channel(QUEUE);
        let policy = Arc::clone(&self.policy);
        let reading = tokio::task::spawn_blocking(move || {
            for item in work {
                // A closed channel means that the pass was given up.
                if file::read(&item, &policy, &send).is_break() {
                    break;
                }
            }
        });
        let mut writer = Writer { ledger: &self.ledger, tailed: &mut tailed, current: None };
        while let Some(first) = receive.recv().await {
            if self.stop.is_cancelled() {
                // What was not committed is read again at the next start.
                break;
            }
            let mut events = n_events(&first);
            let mut pieces = vec![first];
            while events < EVENTS_PER_COMMIT {
                let Ok(piece) = receive.try_recv() else { break };
                events += n_events(&piece);
                pieces.push(piece);
            }
            writer.write(pieces).await?;
            on_progress(writer.tailed.files, writer.tailed.bytes);
        }
        drop(receive);
        reading.await.context("the reading thread failed")?;
        Ok(tailed)
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

fn n_events(piece: &Piece) -> usize {
    match piece {
        Piece::Lines { events, .. } => events.len(),
        _ => 0,
    }
}

/// Takes pieces in order and commits them.
struct Writer<'a> {
    ledger: &'a Mutex<Ledger>,
    tailed: &'a mut Tailed,
    /// The source of the file that is being read, once it has a row.
    current: Option<SourceRow>,
}

/// Lines ready to be appended.
struct Ready {
    source: SourceRow,
    tool: Tool,
    identity: SourceIdentity,
    from: u64,
    events: Vec<NewEvent>,
    checkpoint: Checkpoint,
}

impl Writer<'_> {
    async fn write(&mut self, pieces: Vec<Piece>) -> Result<()> {
        let mut ready = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Begin(source) => self.current = source,
                Piece::Lines { tool, path, identity, from, events, checkpoint, bytes } => {
                    let source = self.source(tool, &path, &checkpoint).await?;
                    self.tailed.bytes += bytes;
                    ready.push(Ready { source, tool, identity, from, events, checkpoint });
                }
                Piece::Checkpoint { tool, path, from, checkpoint } => {
                    // Nothing may be left behind that the checkpoint would overtake.
                    self.commit(&mut ready).await?;
                    let source = self.source(tool, &path, &checkpoint).await?;
                    let mut ledger = self.ledger.lock().await;
                    ledger.set_checkpoint(source, from, &checkpoint).await?;
                }
                Piece::Gone => {
                    self.commit(&mut ready).await?;
                    if let Some(source) = self.current {
                        self.ledger.lock().await.mark_missing(source).await?;
                    }
                }
                Piece::Moved(path) => {
                    self.commit(&mut ready).await?;
                    if let Some(source) = self.current {
                        let is_moved = self.ledger.lock().await.move_source(source, &path).await?;
                        self.current = is_moved.then_some(source);
                    }
                }
                Piece::Problem(problem) => self.tailed.problems.push(problem),
                Piece::End => self.tailed.files += 1,
            }
        }
        self.commit(&mut ready).await
    }

    /// The row of the file that is being read, made if it has none.
    async fn source(
        &mut self,
        tool: Tool,
        path: &std::path::Path,
        checkpoint: &Checkpoint,
    ) -> Result<SourceRow> {
        if let Some(source) = self.current {
            return Ok(source);
        }
        // The row starts before the first line: the append that follows moves it, or the next start reads anew.
        let start = file::start_of(checkpoint);
        let source = self.ledger.lock().await.add_source(tool, path, &start).await?;
        self.current = Some(source);
        Ok(source)
    }

    async fn commit(&mut self, ready: &mut Vec<Ready>) -> Result<()> {
        if ready.is_empty() {
            return Ok(());
        }
        let batches: Vec<Batch<'_>> = ready
            .iter()
            .map(|ready| Batch {
                source: ready.source,
                tool: ready.tool,
                identity: &ready.identity,
                from: ready.from,
                events: &ready.events,
                checkpoint: &ready.checkpoint,
            })
            .collect();
        let appended = self.ledger.lock().await.append(&batches).await?;
        for done in appended {
            self.tailed.events += done.events;
            self.tailed.sessions.insert(done.session);
            if done.opened.is_some() {
                self.tailed.opened.push(done.session);
            }
        }
        ready.clear();
        Ok(())
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
