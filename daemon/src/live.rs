//! What the running daemon knows of itself, for `status` and for those who watch.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::broadcast;

use crate::socket::protocol::RootStatus;

/// Problems that are kept for `status`.
const MAX_PROBLEMS: usize = 20;

/// Events that a slow listener may be behind before it is told that some were lost.
const EVENTS: usize = 256;

/// What the daemon is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The first catch-up goes on.
    Starting,
    /// Up to date, waiting for what comes.
    Running,
    /// On its way out.
    Stopping,
}

impl Phase {
    fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
        }
    }
}

/// The daemon's state in memory.
#[derive(Debug)]
pub struct Live {
    /// When it started.
    pub started_at: Timestamp,
    state: Mutex<State>,
    events: broadcast::Sender<Value>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    roots: Vec<RootStatus>,
    problems: VecDeque<String>,
    last_error: Option<String>,
    vault_error: Option<String>,
    /// The stages whose last pass failed, with the reason.
    failing: BTreeMap<&'static str, String>,
}

impl Live {
    /// Starts at `now`.
    pub fn new(now: Timestamp) -> Self {
        let state = State {
            phase: Phase::Starting,
            roots: Vec::new(),
            problems: VecDeque::new(),
            last_error: None,
            vault_error: None,
            failing: BTreeMap::new(),
        };
        Self { started_at: now, state: Mutex::new(state), events: broadcast::channel(EVENTS).0 }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Plain data: a panic elsewhere leaves nothing half done in it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The daemon is now at `phase`.
    pub fn set_phase(&self, phase: Phase) {
        self.state().phase = phase;
    }

    /// The phase's name.
    pub fn phase(&self) -> &'static str {
        self.state().phase.as_str()
    }

    /// How the roots are watched.
    pub fn set_roots(&self, roots: Vec<RootStatus>) {
        self.state().roots = roots;
    }

    /// How the roots are watched.
    pub fn roots(&self) -> Vec<RootStatus> {
        self.state().roots.clone()
    }

    /// Logs something that a person should look at, once while it lasts, and keeps it for `status`.
    pub fn problem(&self, line: &str) {
        let line = &*crate::printable::printable(line);
        let mut state = self.state();
        state.last_error = Some(line.to_owned());
        if state.problems.iter().any(|known| known == line) {
            return;
        }
        if state.problems.len() >= MAX_PROBLEMS {
            state.problems.pop_front();
        }
        state.problems.push_back(line.to_owned());
        drop(state);
        tracing::warn!("{line}");
    }

    /// As [`Live::problem`], for each of several.
    pub fn problems_met(&self, lines: &[String]) {
        for line in lines {
            self.problem(line);
        }
    }

    /// A pass of a stage failed: logged once, however often it is tried again, and kept until it works.
    pub fn failing(&self, stage: &'static str, line: &str) {
        let line = crate::printable::printable(line).into_owned();
        let mut state = self.state();
        state.last_error = Some(line.clone());
        let known = state.failing.insert(stage, line.clone());
        drop(state);
        if known.as_ref() != Some(&line) {
            tracing::warn!("{stage} failed and is tried again: {line}");
        }
    }

    /// A pass of a stage went well.
    pub fn works(&self, stage: &'static str) {
        let known = self.state().failing.remove(stage);
        if known.is_some() {
            tracing::warn!("{stage} works again");
        }
    }

    /// What a person should look at.
    pub fn problems(&self) -> Vec<String> {
        let state = self.state();
        state.problems.iter().chain(state.failing.values()).cloned().collect()
    }

    /// The last thing that went wrong.
    pub fn last_error(&self) -> Option<String> {
        self.state().last_error.clone()
    }

    /// Whether the vault could be written to at the last try.
    pub fn set_vault_error(&self, error: Option<String>) {
        self.state().vault_error = error;
    }

    /// What is wrong with the vault.
    pub fn vault_error(&self) -> Option<String> {
        self.state().vault_error.clone()
    }

    /// Tells those who watch.
    pub fn tell(&self, event: Value) {
        // Nobody listening is the usual case.
        if self.events.receiver_count() > 0 && self.events.send(event).is_err() {
            tracing::debug!("the last listener left");
        }
    }

    /// Listens to what happens from now on.
    pub fn listen(&self) -> broadcast::Receiver<Value> {
        self.events.subscribe()
    }
}
