//! What a person asks the running daemon by a signal: a new configuration, or its state in the log.

use std::sync::{Arc, PoisonError, RwLock};

use jiff::SignedDuration;

use super::{Settings, Shared};
use crate::api;
use crate::config::{Config, Scripted, changed_keys};

/// Keys, or sections that end with a dot, that a reload applies. Every other key is read once, at the start.
const APPLIED: [&str; 3] = ["sessions.", "notes.scripted", "backfill.notes_since"];

/// A setting that a reload may change while the stages work.
#[derive(Debug, Default)]
pub struct InForce<T>(Arc<RwLock<T>>);

impl<T> Clone for InForce<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Clone> InForce<T> {
    /// Starts with a value.
    pub fn new(value: T) -> Self {
        Self(Arc::new(RwLock::new(value)))
    }

    /// The value in force.
    pub fn get(&self) -> T {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts another in force.
    pub fn set(&self, value: T) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

/// Which sessions get notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoteRules {
    /// Which scripted sessions do.
    pub scripted: Scripted,
    /// How far back history does.
    pub notes_since: SignedDuration,
}

/// What the daemon is asked while it runs.
#[derive(Debug)]
pub enum Order {
    /// Take what can be taken of these settings.
    Reload(Box<Settings>),
    /// Write the state to the log.
    LogState,
}

impl Shared {
    pub(super) async fn obey(&self, order: Order) {
        match order {
            Order::Reload(settings) => self.reload(&settings),
            Order::LogState => self.log_state().await,
        }
    }

    fn reload(&self, new: &Settings) {
        let is_applied = |key: &str| {
            APPLIED
                .iter()
                .any(|name| key == *name || (name.ends_with('.') && key.starts_with(name)))
        };
        let changed = |from: &Config| changed_keys(from, &new.config);
        let taken: Vec<String> =
            changed(&self.config.get()).into_iter().filter(|key| is_applied(key)).collect();
        // Against the start: what an earlier reload could not take still waits.
        let waiting: Vec<String> =
            changed(&self.settings.config).into_iter().filter(|key| !is_applied(key)).collect();
        self.closer.rules.set(new.rules);
        self.notes.rules.set(new.note_rules());
        self.parts.set(api::Parts { notes_since: new.notes_since, ..self.parts.get() });
        self.config.set(new.config.clone());
        if taken.is_empty() {
            tracing::info!(target: STATE, "the configuration was read again; nothing to apply has changed");
        } else {
            tracing::info!(target: STATE, "the configuration was read again; applied: {}", taken.join(", "));
        }
        if !waiting.is_empty() {
            tracing::warn!(
                target: STATE,
                "changed, and in force only after a restart: {}",
                waiting.join(", ")
            );
        }
        // Other rules may make something due now.
        self.tailed.notify_one();
        self.closed.notify_one();
    }

    async fn log_state(&self) {
        let status = api::live_status(&self.settings.paths, &self.parts.get(), &self.live).await;
        match status.and_then(|status| Ok(serde_json::to_string(&status)?)) {
            Ok(line) => tracing::info!(target: STATE, "state: {line}"),
            Err(error) => tracing::error!("the state cannot be told: {error:#}"),
        }
    }
}

/// The target of answers to a signal: they are logged at any level, since somebody asked.
pub const STATE: &str = "state";
