//! The composition root: opens the store, starts the stages, and ends them in order. Data flows one way, watch →
//! tail → ledger → close → draft; between the stages there are wake-ups and no data: what is in the ledger
//! survives, and losing a wake-up costs latency only.

mod reload;
mod settings;
mod stages;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use majordomus_core::ids::{SessionRow, Tool};
use majordomus_core::ledger::{Ledger, Reader};
use tokio::sync::{Mutex, Notify, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::reload::{InForce, NoteRules, Order, STATE};
pub use self::settings::{Settings, host_name};
use crate::api::{Api, HISTORY_ENDS, Parts};
use crate::clock;
use crate::close::{Closer, Pass};
use crate::config::Config;
use crate::console::Console;
use crate::live::{Live, Phase};
use crate::lock::Lock;
use crate::scan::{Scan, WatchRoot};
use crate::socket::server::Server;
use crate::tail::{self, Tailed, Tailer};
use crate::write::NoteWriter;

/// Looks at Git at the same time, at most.
const OBSERVERS: usize = 4;

/// How long the stages may take to end after a signal; a transaction takes far less.
const DRAIN: Duration = Duration::from_secs(4);

/// The parts that all stages share.
#[derive(Debug)]
pub struct Shared {
    /// The settings that the daemon started with.
    pub settings: Settings,
    /// The configuration that was read last.
    pub config: InForce<Config>,
    /// What of it the status tells.
    pub parts: InForce<Parts>,
    /// The writer.
    pub ledger: Arc<Mutex<Ledger>>,
    /// Reads files into the ledger.
    pub tailer: Arc<Tailer>,
    /// Closes sessions.
    pub closer: Arc<Closer>,
    /// Drafts and stores notes.
    pub notes: Arc<NoteWriter>,
    /// What the daemon knows of itself.
    pub live: Arc<Live>,
    /// What a person sees.
    pub console: std::sync::Mutex<Console>,
    /// Wakes the closing stage.
    pub tailed: Arc<Notify>,
    /// Wakes the drafting stage.
    pub closed: Arc<Notify>,
    /// Those who look at Git beside the stages, at the same time at most.
    pub observers: Arc<Semaphore>,
    /// Ends everything.
    pub stop: CancellationToken,
}

/// What `--once` has to say at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Notes that could not be written.
    pub undelivered: u64,
}

/// Runs the daemon, or with `once` a single catch-up.
pub async fn run(
    settings: Settings,
    once: bool,
    stop: CancellationToken,
    mut orders: mpsc::Receiver<Order>,
) -> Result<Outcome> {
    let (shared, lock) = open(settings, stop).await?;
    let outcome = {
        let work = async { if once { run_once(&shared).await } else { run_stages(&shared).await } };
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                outcome = &mut work => break outcome,
                Some(order) = orders.recv() => shared.obey(order).await,
            }
        }
    };
    let closing = close_store(shared).await;
    drop(lock);
    let outcome = outcome?;
    closing?;
    Ok(outcome)
}

/// Takes the lock and opens the store.
async fn open(settings: Settings, stop: CancellationToken) -> Result<(Arc<Shared>, Lock)> {
    settings.prepare_directories()?;
    let lock = Lock::take(&settings.paths.lock)?;
    let ledger_path = settings.paths.ledger.clone();
    let ledger = Ledger::open(&ledger_path).await?;
    settings.refuse_bad_places(&mut ledger.reader().await?).await?;
    let ledger = Arc::new(Mutex::new(ledger));
    let live = Arc::new(Live::new(clock::now()));
    live.problems_met(&settings.notices);
    let tailer = Arc::new(Tailer {
        ledger: Arc::clone(&ledger),
        policy: Arc::clone(&settings.policy),
        stop: stop.clone(),
    });
    let closer = Arc::new(Closer {
        ledger: Arc::clone(&ledger),
        ledger_path: ledger_path.clone(),
        state_dir: settings.paths.state_dir.clone(),
        roots: settings.roots.clone(),
        rules: InForce::new(settings.rules),
        git: settings.git(),
        host: host_name(),
        seen: crate::close::Seen::default(),
        tailer: Arc::clone(&tailer),
        stop: stop.clone(),
    });
    let notes = Arc::new(NoteWriter::new(&settings, Arc::clone(&ledger))?);
    let shared = Shared {
        config: InForce::new(settings.config.clone()),
        parts: InForce::new(settings.parts()),
        settings,
        ledger,
        tailer,
        closer,
        notes,
        live,
        console: std::sync::Mutex::new(Console::new()),
        tailed: Arc::new(Notify::new()),
        closed: Arc::new(Notify::new()),
        observers: Arc::new(Semaphore::new(OBSERVERS)),
        stop,
    };
    Ok((Arc::new(shared), lock))
}

async fn close_store(shared: Arc<Shared>) -> Result<()> {
    shared.live.set_phase(Phase::Stopping);
    let ledger = Arc::clone(&shared.ledger);
    drop(shared);
    // Every stage has ended; whoever still holds the writer keeps it, and SQLite recovers at the next start.
    if let Some(ledger) = Arc::into_inner(ledger) {
        ledger.into_inner().close().await?;
    }
    Ok(())
}

async fn run_once(shared: &Shared) -> Result<Outcome> {
    let scanned = scan_all(&shared.settings.roots);
    shared.live.problems_met(&scanned.problems);
    shared.say_what_is_missing(&scanned);
    let caught_up = catch_up(shared, scanned).await?;
    if shared.stop.is_cancelled() {
        return Ok(Outcome::default());
    }
    let pass = shared.closer.pass(clock::now(), true).await?;
    shared.report_closes(&pass);
    remember_history(shared).await?;
    let written = shared.notes.pass(clock::now(), &shared.stop).await?;
    shared.report_notes(&written);
    shared.say(&format!(
        "done: {} of {} session files had something new ({} bytes, {} events); {} episodes closed, {} notes \
         written in {}",
        caught_up.changed,
        caught_up.seen,
        caught_up.bytes,
        caught_up.events,
        pass.closed.len(),
        written.written.len(),
        shared.notes.describe_vault(),
    ));
    shared.hint_at_history().await?;
    Ok(Outcome { undelivered: written.failed.len() as u64 })
}

async fn run_stages(shared: &Arc<Shared>) -> Result<Outcome> {
    let socket = shared.settings.prepare_socket()?;
    let server = Server::bind(&socket)?;
    let api = Arc::new(Api {
        paths: shared.settings.paths.clone(),
        live: Arc::clone(&shared.live),
        closer: Arc::clone(&shared.closer),
        closed: Arc::clone(&shared.closed),
        stop: shared.stop.clone(),
        parts: shared.parts.clone(),
    });
    let tasks = TaskTracker::new();
    tasks.spawn(server.serve(api, shared.stop.clone()));
    // A stage that fails ends the daemon: its supervisor starts it anew, from the ledger.
    let failed = Arc::new(std::sync::Mutex::new(None));
    spawn(&tasks, shared, &failed, "tailing", stages::tail(Arc::clone(shared)));
    spawn(&tasks, shared, &failed, "closing", stages::close(Arc::clone(shared)));
    spawn(&tasks, shared, &failed, "drafting", stages::draft(Arc::clone(shared)));
    shared.say(&format!(
        "majordomusd {} runs; socket {}, state {}, notes in {}",
        env!("CARGO_PKG_VERSION"),
        socket.display(),
        shared.settings.paths.state_dir.display(),
        shared.notes.describe_vault(),
    ));
    shared.stop.cancelled().await;
    shared.live.set_phase(Phase::Stopping);
    tasks.close();
    if tokio::time::timeout(DRAIN, tasks.wait()).await.is_err() {
        tracing::warn!("not every stage ended in time; the next start goes on from the ledger");
    }
    let failure = failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    failure.map_or_else(|| Ok(Outcome::default()), Err)
}

type FirstFailure = Arc<std::sync::Mutex<Option<anyhow::Error>>>;

fn spawn(
    tasks: &TaskTracker,
    shared: &Arc<Shared>,
    failed: &FirstFailure,
    name: &'static str,
    stage: impl Future<Output = Result<()>> + Send + 'static,
) {
    let (shared, failed) = (Arc::clone(shared), Arc::clone(failed));
    let stop = shared.stop.clone();
    let handle = tasks.spawn(stage);
    tasks.spawn(async move {
        let error = match handle.await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            Err(error) => anyhow::Error::from(error),
        };
        let error = error.context(format!("{name} failed"));
        tracing::error!("{error:#}");
        failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
        stop.cancel();
    });
}

fn scan_all(roots: &[WatchRoot]) -> Scan {
    let mut all = Scan::default();
    for root in roots {
        all.add(root.scan());
    }
    all
}

/// What a catch-up did.
#[derive(Debug, Default)]
struct CaughtUp {
    seen: usize,
    changed: usize,
    bytes: u64,
    events: u64,
    sessions: HashSet<SessionRow>,
    opened: Vec<SessionRow>,
}

/// Reads what is new in the files that a scan found, the oldest first: those a tool deletes next.
async fn catch_up(shared: &Shared, scanned: Scan) -> Result<CaughtUp> {
    let mut reader = Reader::open(&shared.settings.paths.ledger).await?;
    let seen = scanned.files.len();
    let work = tail::plan(&mut reader, scanned.files, tail::Scope::Everything).await?;
    drop(reader);
    let (work, total) = tail::oldest_first(work);
    let changed = work.len();
    shared.with_console(|console| console.begin(total));
    let mut on_progress =
        |files, bytes| shared.with_console(|console| console.advance(files, changed, bytes));
    let tailed = shared.tailer.tail(work, &mut on_progress).await;
    shared.with_console(Console::end);
    let tailed = tailed?;
    shared.live.problems_met(&tailed.problems);
    let Tailed { bytes, events, sessions, opened, .. } = tailed;
    Ok(CaughtUp { seen, changed, bytes, events, sessions, opened })
}

/// Remembers the newest activity of the first catch-up: `[backfill] notes_since` counts back from it.
async fn remember_history(shared: &Shared) -> Result<()> {
    let mut reader = Reader::open(&shared.settings.paths.ledger).await?;
    if reader.meta(HISTORY_ENDS).await?.is_some() {
        return Ok(());
    }
    // Without any entry there is no history yet: what comes is new.
    let now = clock::now();
    let newest = reader.newest_entry(now).await?.unwrap_or(now);
    shared.ledger.lock().await.set_meta(HISTORY_ENDS, &newest.to_string()).await?;
    Ok(())
}

impl Shared {
    /// Tells a person, or the log.
    fn say(&self, line: &str) {
        self.with_console(|console| console.say(line));
    }

    /// Says where it looks when there is nothing yet, and which tool has no directory.
    fn say_what_is_missing(&self, scanned: &Scan) {
        let roots = &self.settings.roots;
        let places = |roots: &mut dyn Iterator<Item = &WatchRoot>| {
            roots.map(|root| root.path.display().to_string()).collect::<Vec<_>>().join(", ")
        };
        if scanned.files.is_empty() {
            self.say(&format!("no session files yet; looking in {}", places(&mut roots.iter())));
            return;
        }
        for tool in [Tool::Claude, Tool::Codex] {
            let mut its_roots = roots.iter().filter(|root| root.tool == tool);
            if !its_roots.clone().any(|root| root.path.is_dir()) {
                self.say(&format!(
                    "no sessions of {tool}: {} is not there (yet)",
                    places(&mut its_roots)
                ));
            }
        }
    }

    fn with_console<R>(&self, use_it: impl FnOnce(&mut Console) -> R) -> R {
        use_it(&mut self.console.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn report_closes(&self, pass: &Pass) {
        for closed in &pass.closed {
            let key = &closed.session.key;
            self.say(&format!(
                "closed {} {} episode {} ({}, {})",
                key.tool,
                key.native,
                closed.envelope.episode,
                closed.envelope.reason,
                closed.envelope.outcome
            ));
            self.live.tell(crate::api::closed_event(closed));
        }
        self.live.problems_met(&pass.problems);
    }

    fn report_notes(&self, pass: &crate::write::Pass) {
        for note in &pass.written {
            self.say(&format!(
                "note {} ({})",
                note.place,
                if note.is_update { "updated" } else { "new" }
            ));
            self.live.tell(serde_json::json!({"kind": "note.written", "uri": note.uri}));
        }
        self.live.problems_met(&pass.failed);
        self.live.set_vault_error(pass.failed.first().cloned());
    }

    /// Says how many sessions have no note because they are history, and how to get them.
    async fn hint_at_history(&self) -> Result<()> {
        let mut reader = Reader::open(&self.settings.paths.ledger).await?;
        let cutoff = crate::api::notes_cutoff(&mut reader, self.parts.get().notes_since).await?;
        let skipped = reader.skipped(cutoff).await?;
        let reason = majordomus_core::ledger::PENDING_REASON_HISTORY;
        if let Some((_, n)) = skipped.iter().find(|(why, n)| why == reason && *n > 0) {
            self.say(&format!(
                "{n} older sessions are in the ledger and have no note; a larger [backfill] notes_since gives them one"
            ));
        }
        Ok(())
    }
}
