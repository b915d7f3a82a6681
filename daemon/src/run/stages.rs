//! The three stages as loops: each waits for a wake-up or its time, then makes one pass that takes no input but
//! the files and the ledger.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;
use majordomus_core::ids::SessionRow;
use majordomus_core::ledger::Reader;

use super::{Shared, catch_up, remember_history, scan_all};
use crate::clock;
use crate::live::Phase;
use crate::scan::{Candidate, WatchRoot};
use crate::socket::protocol::RootStatus;
use crate::tail;
use crate::watch::{Dirty, Watcher};

/// Notifications get lost: once in a while everything is looked at (formats.md F6).
const SWEEP: Duration = Duration::from_mins(15);

/// After a pass that failed the stage waits this long, then twice as long, up to the last.
const BACKOFF: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_mins(5),
];

/// The clock may jump while the closing stage sleeps; a long sleep is cut so that a jump is noticed.
const LONGEST_SLEEP: Duration = Duration::from_mins(1);

/// Failures in a row after which a stage gives up and the daemon ends.
const MAX_FAILURES: usize = 20;

/// Watching and tailing.
pub(super) async fn tail(shared: Arc<Shared>) -> Result<()> {
    let mut watcher = Watcher::new()?;
    let mut failures = 0;
    let mut is_first = true;
    let mut dirty = Dirty::everything();
    loop {
        match look(&shared, &mut watcher, &dirty, is_first).await {
            Ok(()) => {
                failures = 0;
                shared.live.works("tailing");
                is_first = false;
            }
            Err(error) => {
                failures += 1;
                give_up_or_wait(&shared, "tailing", &error, failures).await?;
                // What was to be looked at is still to be looked at.
                dirty = Dirty::everything();
                if shared.stop.is_cancelled() {
                    return Ok(());
                }
                continue;
            }
        }
        let sweep = if watcher.is_degraded() { shared.settings.poll_interval } else { SWEEP };
        dirty = tokio::select! {
            () = shared.stop.cancelled() => return Ok(()),
            dirty = watcher.changed() => dirty,
            () = tokio::time::sleep(sweep) => Dirty::everything(),
        };
    }
}

/// One pass: looks at what is dirty and reads what is new in it.
async fn look(shared: &Shared, watcher: &mut Watcher, dirty: &Dirty, is_first: bool) -> Result<()> {
    let roots = &shared.settings.roots;
    if dirty.everything {
        // Subscribe first, then scan: what appears between the two is in both.
        for root in roots {
            if root.path.is_dir() {
                watcher.watch(&root.path);
            } else {
                watcher.watch_for(&root.path);
            }
        }
        let scanned = watcher.watch_and_scan(|| scan_all(roots));
        shared.live.problems_met(&scanned.problems);
        set_roots(shared, watcher);
        if is_first {
            shared.say_what_is_missing(&scanned);
        }
        let caught_up = catch_up(shared, scanned).await?;
        if shared.stop.is_cancelled() {
            // It may have ended anywhere: where history ends is told by a catch-up that came through.
            return Ok(());
        }
        if is_first {
            remember_history(shared).await?;
            shared.live.set_phase(Phase::Running);
            shared.say(&format!(
                "caught up: {} session files, {} new bytes, {} new events",
                caught_up.seen, caught_up.bytes, caught_up.events
            ));
        }
        if !is_first {
            // Where notifications do not come, this is how growth is seen.
            note_growth(shared, &caught_up.sessions);
            observe(shared, caught_up.opened);
        }
        if caught_up.events > 0 || is_first {
            shared.tailed.notify_one();
        }
        return Ok(());
    }
    let candidates = candidates(shared, watcher, &dirty.paths);
    if candidates.is_empty() {
        return Ok(());
    }
    let mut reader = Reader::open(&shared.settings.paths.ledger).await?;
    let work = tail::plan(&mut reader, candidates, tail::Scope::Some).await?;
    drop(reader);
    // Before the lines are there, so that no pass of the closing stage finds them without knowing them fresh.
    let known: HashSet<SessionRow> =
        work.iter().filter_map(|item| item.known.as_ref()?.session).collect();
    note_growth(shared, &known);
    let tailed = shared.tailer.tail(work, &mut |_, _| {}).await?;
    note_growth(shared, &tailed.sessions);
    shared.live.problems_met(&tailed.problems);
    if tailed.events > 0 {
        shared.live.tell(serde_json::json!({"kind": "events.appended", "n": tailed.events}));
        shared.tailed.notify_one();
    }
    observe(shared, tailed.opened);
    Ok(())
}

/// Notes that sessions were seen to grow.
fn note_growth(shared: &Shared, grown: &HashSet<SessionRow>) {
    let now = clock::now();
    for session in grown {
        shared.closer.seen.note(*session, now);
    }
}

/// Looks, beside the stage, at Git where an episode has just opened: a repository on a slow disk must not hold up
/// the lines of others. What Git looks like is only worth noting while it is fresh, so when many open at once some
/// are not looked at; that costs a fact of the envelope, which then says so.
fn observe(shared: &Shared, opened: Vec<SessionRow>) {
    if opened.is_empty() {
        return;
    }
    let Ok(permit) = Arc::clone(&shared.observers).try_acquire_owned() else { return };
    let (closer, live, stop) =
        (Arc::clone(&shared.closer), Arc::clone(&shared.live), shared.stop.clone());
    tokio::spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            observed = closer.observe_openings(&opened, clock::now()) => {
                if let Err(error) = observed {
                    live.problem(&format!("cannot observe Git: {error:#}"));
                }
            }
        }
        drop(permit);
    });
}

/// The session files among dirty paths. A directory that appeared is watched and looked through.
fn candidates(shared: &Shared, watcher: &mut Watcher, paths: &HashSet<PathBuf>) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    for path in paths {
        for root in &shared.settings.roots {
            if root.path.starts_with(path) && root.path.is_dir() {
                // The root itself, or a directory above it, appeared.
                watcher.watch(&root.path);
                found.extend(appeared(shared, watcher, root, &root.path));
                set_roots(shared, watcher);
            } else if path.starts_with(&root.path) {
                if path.is_dir() {
                    found.extend(appeared(shared, watcher, root, path));
                } else {
                    watcher.forget(path);
                    found.extend(root.candidate(path));
                }
            } else if root.path.starts_with(path.parent().unwrap_or(path)) && !root.path.is_dir() {
                watcher.watch_for(&root.path);
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found.dedup();
    found
}

fn appeared(
    shared: &Shared,
    watcher: &mut Watcher,
    root: &WatchRoot,
    directory: &std::path::Path,
) -> Vec<Candidate> {
    // The name may stand for another directory than the one that was watched under it.
    watcher.forget(directory);
    let scan = watcher.watch_and_scan(|| root.scan_below(directory));
    shared.live.problems_met(&scan.problems);
    scan.files
}

fn set_roots(shared: &Shared, watcher: &Watcher) {
    shared.live.problems_met(watcher.problems());
    let mode = |root: &WatchRoot| match () {
        () if !root.path.is_dir() => "missing",
        () if watcher.is_degraded() => "polling",
        () => "events",
    };
    let roots = shared.settings.roots.iter().map(|root| RootStatus {
        tool: root.tool.to_string(),
        path: root.path.display().to_string(),
        mode: mode(root).to_owned(),
    });
    shared.live.set_roots(roots.collect());
}

/// Closing.
pub(super) async fn close(shared: Arc<Shared>) -> Result<()> {
    // Nothing is judged before everything was read once.
    tokio::select! {
        () = shared.stop.cancelled() => return Ok(()),
        () = shared.tailed.notified() => {}
    }
    let mut failures = 0;
    let mut is_first = true;
    loop {
        let next = match shared.closer.pass(clock::now(), is_first).await {
            Ok(pass) => {
                failures = 0;
                shared.live.works("closing");
                shared.report_closes(&pass);
                // At the start also without a close: the last run may have left something undrafted.
                if !pass.closed.is_empty() || is_first {
                    shared.closed.notify_one();
                }
                is_first = false;
                pass.next
            }
            Err(error) => {
                failures += 1;
                give_up_or_wait(&shared, "closing", &error, failures).await?;
                Some(clock::now())
            }
        };
        tokio::select! {
            () = shared.stop.cancelled() => return Ok(()),
            () = shared.tailed.notified() => {}
            () = sleep_until(next) => {}
        }
    }
}

/// Drafting.
pub(super) async fn draft(shared: Arc<Shared>) -> Result<()> {
    let mut failures = 0;
    loop {
        let failed = tokio::select! {
            () = shared.stop.cancelled() => return Ok(()),
            () = shared.closed.notified() => draft_once(&shared, &mut failures).await?,
        };
        if failed {
            // The vault may be back later, without anything happening here.
            let wait = backoff(failures);
            let closed = Arc::clone(&shared.closed);
            let stop = shared.stop.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep(wait) => closed.notify_one(),
                }
            });
        }
    }
}

async fn draft_once(shared: &Shared, failures: &mut usize) -> Result<bool> {
    match shared.notes.pass(clock::now(), &shared.stop).await {
        Ok(pass) => {
            shared.live.works("drafting");
            shared.report_notes(&pass);
            if pass.failed.is_empty() {
                *failures = 0;
            } else {
                *failures += 1;
            }
            Ok(!pass.failed.is_empty())
        }
        Err(error) => {
            *failures += 1;
            give_up_or_wait(shared, "drafting", &error, *failures).await?;
            Ok(true)
        }
    }
}

/// How long to wait after so many failures in a row.
fn backoff(failures: usize) -> Duration {
    BACKOFF[failures.clamp(1, BACKOFF.len()) - 1]
}

/// Tells of a failed pass and waits; gives up after too many in a row.
async fn give_up_or_wait(
    shared: &Shared,
    stage: &'static str,
    error: &anyhow::Error,
    failures: usize,
) -> Result<()> {
    shared.live.failing(stage, &crate::failure::one_line(error));
    if failures >= MAX_FAILURES {
        anyhow::bail!("{failures} failures in a row, the last: {error:#}");
    }
    let wait = backoff(failures);
    tokio::select! {
        () = shared.stop.cancelled() => {}
        () = tokio::time::sleep(wait) => {}
    }
    Ok(())
}

/// Sleeps until `at`; for ever when there is nothing to wait for, so that an idle daemon has no timer.
async fn sleep_until(at: Option<Timestamp>) {
    let Some(at) = at else { return std::future::pending().await };
    let wait = at.duration_since(clock::now());
    let wait = Duration::try_from(wait).unwrap_or(Duration::ZERO).min(LONGEST_SLEEP);
    // Just past the instant, so that the pass sees it as over.
    tokio::time::sleep(wait + Duration::from_millis(5)).await;
}
