//! Watching: tells which paths to look at. A notification is a hint and nothing more: losing every one of them
//! costs latency, never a line, since a scan finds what was missed.
//!
//! Only directories are watched; no descriptor is ever held on a session file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use crate::scan::Scan;

/// More different paths than this waiting at once mean: look at everything.
const MAX_DIRTY: usize = 4_096;

/// What is to be looked at.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Dirty {
    /// These paths (files or directories).
    pub paths: HashSet<PathBuf>,
    /// Everything: notifications were lost, or there were too many.
    pub everything: bool,
}

impl Dirty {
    /// Look at everything.
    pub fn everything() -> Self {
        Self { everything: true, ..Self::default() }
    }

    /// True if there is nothing to look at.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.everything
    }
}

#[derive(Debug, Default)]
struct Shared {
    dirty: Mutex<Dirty>,
    changed: Notify,
}

impl Shared {
    fn dirty(&self) -> MutexGuard<'_, Dirty> {
        // The lock guards plain data: a panic elsewhere leaves nothing half done in it.
        self.dirty.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_event(&self, event: notify::Result<Event>) {
        let mut dirty = self.dirty();
        match event {
            Ok(event) if event.need_rescan() => dirty.everything = true,
            // Reading a file is no change of it.
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
            Ok(event) => {
                dirty.paths.extend(event.paths);
                if dirty.paths.len() > MAX_DIRTY {
                    dirty.everything = true;
                }
            }
            Err(error) => {
                tracing::warn!("the watcher reports: {error}; looking at everything");
                dirty.everything = true;
            }
        }
        if dirty.everything {
            dirty.paths.clear();
        }
        drop(dirty);
        self.changed.notify_one();
    }
}

/// Watches directories and collects what changed in them.
pub struct Watcher {
    backend: RecommendedWatcher,
    shared: Arc<Shared>,
    watched: HashSet<PathBuf>,
    problems: Vec<String>,
}

impl Watcher {
    /// Starts with nothing watched.
    pub fn new() -> notify::Result<Self> {
        let shared = Arc::new(Shared::default());
        let sink = Arc::clone(&shared);
        let backend = notify::recommended_watcher(move |event| sink.take_event(event))?;
        Ok(Self { backend, shared, watched: HashSet::new(), problems: Vec::new() })
    }

    /// Watches `directory` itself (not what is below its subdirectories).
    pub fn watch(&mut self, directory: &Path) {
        if self.watched.contains(directory) {
            return;
        }
        match self.backend.watch(directory, RecursiveMode::NonRecursive) {
            Ok(()) => {
                self.watched.insert(directory.to_owned());
            }
            Err(error) => {
                let line = explain(directory, &error);
                tracing::warn!("{line}");
                if self.problems.len() < 20 {
                    self.problems.push(line);
                }
            }
        }
    }

    /// Watches the nearest directory above a root that does not exist, so that its appearance is seen.
    pub fn watch_for(&mut self, root: &Path) {
        if let Some(above) = root.ancestors().skip(1).find(|above| above.is_dir()) {
            self.watch(above);
        }
    }

    /// Forgets a directory that is gone, and what was below it, so that they are watched anew when they come
    /// back.
    pub fn forget(&mut self, directory: &Path) {
        if self.watched.remove(directory) {
            self.watched.retain(|watched| !watched.starts_with(directory));
        }
    }

    /// Watches every directory that `scan` finds, and scans again until no directory is new: what appeared before
    /// its directory was watched is found by the second scan.
    pub fn watch_and_scan(&mut self, scan: impl Fn() -> Scan) -> Scan {
        loop {
            let before = self.n_watched();
            let found = scan();
            for directory in &found.directories {
                self.watch(directory);
            }
            if self.n_watched() == before {
                return found;
            }
        }
    }

    /// Number of directories that are watched.
    pub fn n_watched(&self) -> usize {
        self.watched.len()
    }

    /// What could not be watched, one line each.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Whether some directory can only be looked at from time to time.
    pub fn is_degraded(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Waits until something changed and takes it.
    pub async fn changed(&mut self) -> Dirty {
        loop {
            let dirty = std::mem::take(&mut *self.shared.dirty());
            if !dirty.is_empty() {
                if dirty.everything {
                    // Among what was lost may be that a directory went and another came under its name.
                    self.watched.clear();
                }
                return dirty;
            }
            self.shared.changed.notified().await;
        }
    }
}

/// A watch that could not be set, in words with a remedy (cases.md 66 and 67).
fn explain(directory: &Path, error: &notify::Error) -> String {
    let directory = directory.display();
    match &error.kind {
        notify::ErrorKind::MaxFilesWatch => format!(
            "cannot watch {directory}: the inotify limit of this user is reached, so it is looked at from time \
             to time; raise it with: sudo sysctl fs.inotify.max_user_watches=524288"
        ),
        _ => format!("cannot watch {directory}, so it is looked at from time to time: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use notify::event::{AccessKind, CreateKind, Flag};

    use super::*;

    #[tokio::test]
    async fn case_058_a_rescan_event_without_a_path_means_everything() {
        let shared = Shared::default();
        shared.take_event(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)));
        assert!(shared.dirty().everything);
    }

    #[test]
    fn reading_a_file_does_not_wake_anybody() {
        let shared = Shared::default();
        let event = Event::new(EventKind::Access(AccessKind::Any)).add_path("/x".into());
        shared.take_event(Ok(event));
        assert!(shared.dirty().is_empty());
    }

    #[test]
    fn a_flood_of_paths_becomes_one_look_at_everything() {
        let shared = Shared::default();
        for n in 0..=MAX_DIRTY {
            let event =
                Event::new(EventKind::Create(CreateKind::File)).add_path(format!("/{n}").into());
            shared.take_event(Ok(event));
        }
        assert!(shared.dirty().everything);
        assert!(shared.dirty().paths.is_empty());
    }

    #[tokio::test]
    async fn an_append_to_a_file_in_a_watched_directory_is_seen() {
        let home = tempfile::tempdir().expect("a directory");
        let mut watcher = Watcher::new().expect("a watcher");
        watcher.watch(home.path());
        std::fs::write(home.path().join("a.jsonl"), "x").expect("written");
        let dirty = watcher.changed().await;
        assert!(dirty.paths.contains(&home.path().join("a.jsonl")));
    }

    #[tokio::test]
    async fn a_directory_that_came_back_is_watched_with_all_below_it() {
        let home = tempfile::tempdir().expect("a directory");
        let (above, below) = (home.path().join("a"), home.path().join("a/b"));
        let mut watcher = Watcher::new().expect("a watcher");
        std::fs::create_dir_all(&below).expect("made");
        watcher.watch(&above);
        watcher.watch(&below);
        std::fs::remove_dir_all(&above).expect("removed");
        watcher.forget(&above);
        assert_eq!(watcher.n_watched(), 0);
        std::fs::create_dir_all(&below).expect("made");
        watcher.watch(&above);
        watcher.watch(&below);
        let file = below.join("c.jsonl");
        std::fs::write(&file, "x").expect("written");
        while !watcher.changed().await.paths.contains(&file) {}
    }
}
