//! Closing: who is idle, and the close-out of each episode that is over. The rules are in core; here is the
//! order of the steps, which is chosen so that a crash between any two leaves something that the next start
//! completes: the envelope's file first, then in one transaction its row, the closing event and the episode's
//! end. A file without its row is taken up again, so the close done twice yields the same bytes.

mod git;

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use anyhow::{Context as _, Result};
use jiff::{SignedDuration, Timestamp};
use majordomus_core::envelope::git::GitFacts;
use majordomus_core::envelope::{
    CloseFacts, Envelope, Outcome, envelope_path, identity_field, sha256_hex,
};
use majordomus_core::ids::{LedgerSeq, SessionRow};
use majordomus_core::ledger::{CloseOutcome, EnvelopeRow, EventKind, Ledger, Reader, SessionState};
use majordomus_core::session::{CloseReason, ClosingRules, Decision, Fold, Pulse, Summary, decide};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::failure::{Exit, Failure};
use crate::git::Git;
use crate::run::InForce;
use crate::scan::WatchRoot;
use crate::tail::{self, Tailer};

/// Times that a session may move under a close before it is left to the next pass.
const MAX_TRIES: usize = 5;

/// When the daemon saw each live session's files grow last. Only for what it saw itself: a first scan is none.
#[derive(Debug, Default)]
pub struct Seen(std::sync::Mutex<HashMap<SessionRow, Timestamp>>);

impl Seen {
    /// Notes growth.
    pub fn note(&self, session: SessionRow, at: Timestamp) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(session, at);
    }

    fn get(&self, session: SessionRow) -> Option<Timestamp> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&session).copied()
    }

    fn forget(&self, session: SessionRow) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
    }
}

/// What closing works with.
#[derive(Debug)]
pub struct Closer {
    /// The writer.
    pub ledger: Arc<Mutex<Ledger>>,
    /// Where the ledger is, for readers.
    pub ledger_path: PathBuf,
    /// Where envelopes go.
    pub state_dir: PathBuf,
    /// The roots, to look at a session's files before it is judged.
    pub roots: Vec<WatchRoot>,
    /// When sessions are closed; a reload may change it.
    pub rules: InForce<ClosingRules>,
    /// Asks Git.
    pub git: Git,
    /// The machine's name.
    pub host: String,
    /// Growth that was seen.
    pub seen: Seen,
    /// Reads files into the ledger.
    pub tailer: Arc<Tailer>,
    /// Ends a pass early.
    pub stop: CancellationToken,
}

/// An episode that was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Its session.
    pub session: SessionState,
    /// Its envelope.
    pub envelope: EnvelopeRow,
}

/// What a pass did.
#[derive(Debug, Default)]
pub struct Pass {
    /// The episodes that were closed.
    pub closed: Vec<Closed>,
    /// When the next episode can be over at the earliest.
    pub next: Option<Timestamp>,
    /// Sessions that could not be closed, one line each.
    pub problems: Vec<String>,
}

/// What a close was asked for with.
#[derive(Clone, Debug)]
enum Wish {
    /// Close if it is over.
    IfOver,
    /// Close now.
    Now { reason: CloseReason, body: Option<String> },
}

/// What became of one session in a pass.
enum Judged {
    Closed(Box<Closed>),
    Kept {
        until: Timestamp,
    },
    /// No episode is open.
    NotOpen,
}

impl Closer {
    /// Closes every episode that is over at `now`. `first` is set for the pass after the first scan, when no
    /// file is being written that was not read.
    pub async fn pass(&self, now: Timestamp, first: bool) -> Result<Pass> {
        let mut reader = Reader::open(&self.ledger_path).await?;
        let mut pass = Pass::default();
        self.accept_orphans(&mut reader, now, first).await?;
        for state in reader.open_sessions().await? {
            if self.stop.is_cancelled() {
                break;
            }
            let earliest = self.earliest(&state);
            if now < earliest {
                pass.next = Some(pass.next.map_or(earliest, |next| next.min(earliest)));
                continue;
            }
            match self.judge(&mut reader, state.row, &Wish::IfOver, now).await {
                Ok(Judged::Closed(closed)) => pass.closed.push(*closed),
                Ok(Judged::Kept { until }) => {
                    // A time in the past means that the session moved meanwhile: look again soon.
                    let until = until.max(now + SignedDuration::from_secs(1));
                    pass.next = Some(pass.next.map_or(until, |next| next.min(until)));
                }
                Ok(Judged::NotOpen) => {}
                // One broken session must not keep the others open.
                Err(error) => pass.problems.push(format!(
                    "cannot close {} session {}: {error:#}",
                    state.key.tool, state.key.native
                )),
            }
        }
        Ok(pass)
    }

    /// Closes a session's episode now.
    pub async fn close_now(
        &self,
        session: SessionRow,
        reason: CloseReason,
        body: Option<String>,
        now: Timestamp,
    ) -> Result<Closed> {
        if let Some(field) = body.as_deref().and_then(identity_field) {
            return Err(Failure::new(
                Exit::IdentityField,
                format!(
                    "the summary sets the identity field {field}, which is computed; take that line out and \
                     close again (the episode stays open)"
                ),
            )
            .into());
        }
        let mut reader = Reader::open(&self.ledger_path).await?;
        match self.judge(&mut reader, session, &Wish::Now { reason, body }, now).await? {
            Judged::Closed(closed) => Ok(*closed),
            Judged::Kept { .. } => {
                anyhow::bail!(
                    "the session is being written faster than it can be closed; try again"
                )
            }
            Judged::NotOpen => Err(Failure::new(
                Exit::NothingOpen,
                "no episode is open in this session; nothing to close",
            )
            .into()),
        }
    }

    /// The earliest time at which a session can be over, without looking at its events.
    fn earliest(&self, state: &SessionState) -> Timestamp {
        let pulse = self.pulse(state, None);
        match decide(&pulse, &self.rules.get(), Timestamp::MIN) {
            Decision::Keep { until } => until,
            Decision::Close { at, .. } => at,
        }
    }

    fn pulse(&self, state: &SessionState, summary: Option<&Summary>) -> Pulse {
        Pulse {
            active_at: state.active_at.unwrap_or(Timestamp::UNIX_EPOCH),
            seen_at: self.seen.get(state.row),
            ended_at: state.ended_at,
            open_call_since: summary.and_then(|summary| summary.open_call_since),
        }
    }

    /// Takes the unfinished lines of files that belong to no session yet: nobody will close them.
    async fn accept_orphans(&self, reader: &mut Reader, now: Timestamp, first: bool) -> Result<()> {
        let mut orphans = reader.pending_sources().await?;
        orphans.retain(|source| {
            let is_quiet = tail::file_time(source).is_none_or(|at| {
                at.checked_add(self.rules.get().idle_after).is_ok_and(|idle| idle <= now)
            });
            source.session.is_none() && (first || is_quiet)
        });
        self.tailer.accept_unfinished(orphans).await?;
        Ok(())
    }

    /// Looks at a session's files, judges it, and closes its episode if it is over or `wish` says so.
    async fn judge(
        &self,
        reader: &mut Reader,
        session: SessionRow,
        wish: &Wish,
        now: Timestamp,
    ) -> Result<Judged> {
        for _ in 0..MAX_TRIES {
            // After sleep or a clock jump the clock proves nothing: the files do (envelope.md).
            if self.read_what_is_new(reader, session, now).await? {
                continue;
            }
            let Some(state) = reader.session(session).await? else { return Ok(Judged::NotOpen) };
            let Some(first) = state.open_since else { return Ok(Judged::NotOpen) };
            let episode = read_episode(reader, &state, first).await?;
            let (reason, closed_at, body) = match wish {
                Wish::Now { reason, body } => (*reason, now, body.clone()),
                Wish::IfOver => {
                    match decide(
                        &self.pulse(&state, Some(&episode.summary)),
                        &self.rules.get(),
                        now,
                    ) {
                        Decision::Keep { until } => return Ok(Judged::Kept { until }),
                        Decision::Close { reason, at } => (reason, at, None),
                    }
                }
            };
            let row = self.write(reader, &state, &episode, reason, closed_at, body, now).await?;
            let outcome = self.ledger.lock().await.close_episode(&row).await?;
            if let CloseOutcome::Closed(_) = outcome {
                self.seen.forget(session);
                self.cache_summary(reader, session).await?;
                return Ok(Judged::Closed(Box::new(Closed { session: state, envelope: row })));
            }
        }
        Ok(Judged::Kept { until: now })
    }

    /// Reads what was written to a session's files since they were read last, and takes their unfinished lines.
    /// True if that changed anything.
    async fn read_what_is_new(
        &self,
        reader: &mut Reader,
        session: SessionRow,
        now: Timestamp,
    ) -> Result<bool> {
        let mut sources = reader.sources_of(session).await?;
        let candidates = tail::changed(&sources)
            .iter()
            .filter_map(|path| self.roots.iter().find_map(|root| root.candidate(path)))
            .collect::<Vec<_>>();
        let mut has_new = false;
        if !candidates.is_empty() {
            let work = tail::plan(reader, candidates, tail::Scope::Some).await?;
            let tailed = self.tailer.tail(work, &mut |_, _| {}).await?;
            if tailed.events > 0 {
                self.seen.note(session, now);
                has_new = true;
            }
            sources = reader.sources_of(session).await?;
        }
        let unfinished = self.tailer.accept_unfinished(sources).await?;
        Ok(has_new || unfinished.events > 0)
    }

    /// Derives the envelope and writes its file.
    #[expect(clippy::too_many_arguments, reason = "the parts of one record")]
    async fn write(
        &self,
        reader: &mut Reader,
        state: &SessionState,
        episode: &Episode,
        reason: CloseReason,
        closed_at: Timestamp,
        body: Option<String>,
        now: Timestamp,
    ) -> Result<EnvelopeRow> {
        let summary = &episode.summary;
        let previous = reader.last_envelope().await?;
        let path = envelope_path(&state.key, state.episode);
        let file = self.state_dir.join(&path);
        let first = state.open_since.unwrap_or(LedgerSeq(0));

        let left = left_by_a_crash(&file, state, first, previous.as_deref())
            .filter(|(envelope, _)| envelope.body == body);
        let (envelope, bytes) = if let Some(left) = left {
            left
        } else {
            let parent = match state.forked_from {
                Some(row) => reader.session(row).await?.map(|parent| parent.key),
                None => None,
            };
            let envelope = Envelope::derive(
                summary,
                CloseFacts {
                    previous_sha256: previous,
                    key: state.key.clone(),
                    aliases: reader.aliases(state.row).await?,
                    parent,
                    episode: state.episode,
                    first,
                    last: state.last,
                    host: self.host.clone(),
                    daemon_version: env!("CARGO_PKG_VERSION").to_owned(),
                    closed_at,
                    reason,
                    git: self.git_ends(state, episode, now).await,
                    body,
                },
            );
            let bytes = envelope.to_bytes().context("cannot write an envelope as JSON")?;
            write_private(&self.state_dir, &path, &bytes)?;
            (envelope, bytes)
        };
        Ok(EnvelopeRow {
            id: envelope.envelope_id,
            session: state.row,
            episode: state.episode,
            first,
            last: state.last,
            path,
            sha256: sha256_hex(&bytes),
            previous: envelope.previous_sha256,
            started_at: envelope.started_at,
            // What was seen to grow is no history, whatever times its lines carry.
            active_at: envelope.last_activity.max(self.seen.get(state.row)),
            closed_at: envelope.closed_at,
            reason: envelope.close_reason.as_str().to_owned(),
            outcome: Outcome::of(summary.last_word).value.as_str().to_owned(),
            is_meaningful: summary.is_meaningful() && !state.is_machine,
            is_scripted: summary.scripted.is_some(),
            has_changes: summary.has_changes(),
        })
    }

    /// Folds the session once more, for the lists: what is closed rarely changes again.
    async fn cache_summary(&self, reader: &mut Reader, session: SessionRow) -> Result<()> {
        let Some(state) = reader.session(session).await? else { return Ok(()) };
        let summary = crate::view::fold(reader, session, LedgerSeq(0), state.last).await?;
        let json = serde_json::to_string(&summary).context("cannot write a summary as JSON")?;
        self.ledger.lock().await.set_summary(session, state.last, &json).await?;
        Ok(())
    }
}

/// The open episode's events, folded.
struct Episode {
    summary: Summary,
    /// Git as observed when the episode opened.
    git_at_start: Option<GitFacts>,
}

async fn read_episode(
    reader: &mut Reader,
    state: &SessionState,
    first: LedgerSeq,
) -> Result<Episode> {
    let mut fold = Fold::default();
    let mut git_at_start = None;
    reader
        .events(state.row, first, state.last, |event| {
            if event.kind == EventKind::GitObserved && git_at_start.is_none() {
                git_at_start =
                    event.note.as_deref().and_then(|note| serde_json::from_str(note).ok());
            }
            fold.push(&event);
        })
        .await?;
    Ok(Episode { summary: fold.finish(), git_at_start })
}

/// The record that a close wrote before the daemon died: taken up again if it is the same close, so that its
/// bytes stay what they were.
fn left_by_a_crash(
    file: &Path,
    state: &SessionState,
    first: LedgerSeq,
    previous: Option<&str>,
) -> Option<(Envelope, Vec<u8>)> {
    let bytes = fs::read(file).ok()?;
    let envelope: Envelope = serde_json::from_slice(&bytes).ok()?;
    let is_same = envelope.session.native_id == state.key.native.as_str()
        && envelope.session.episode == state.episode
        && envelope.references.first_seq == first
        && envelope.references.last_seq == state.last
        && envelope.previous_sha256.as_deref() == previous;
    is_same.then_some((envelope, bytes))
}

/// Writes a file below the state directory: under a temporary name, synced, renamed; 0600 in directories 0700.
fn write_private(state_dir: &Path, below: &str, bytes: &[u8]) -> Result<()> {
    let path = state_dir.join(below);
    let directory = path.parent().unwrap_or(state_dir);
    let context = || format!("cannot write {}; is the disk full?", path.display());
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).with_context(context)?;
    let temporary = path.with_extension("json.tmp");
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)
        .with_context(context)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).with_context(context)?;
    fs::rename(&temporary, &path).with_context(context)?;
    fs::File::open(directory).and_then(|directory| directory.sync_all()).with_context(context)
}
