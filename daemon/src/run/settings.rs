//! The settings in force: what the configuration says, in the terms that the stages work with.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use jiff::SignedDuration;
use majordomus_core::draft::{Redactor, extractive};
use majordomus_core::ledger::Reader;
use majordomus_core::session::ClosingRules;

use super::NoteRules;
use crate::api::Parts;
use crate::config::{Config, Env, Loaded, Origin, Scripted, VaultKind, unused};
use crate::failure::{Exit, Failure};
use crate::git::{Git, GitSettings};
use crate::paths::{self, Paths, PrivateDir};
use crate::policy::Policy;
use crate::scan::WatchRoot;

/// The settings in force.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The configuration.
    pub config: Config,
    /// Where things are.
    pub paths: Paths,
    /// Which sessions take part.
    pub policy: Arc<Policy>,
    /// The roots that are watched.
    pub roots: Vec<WatchRoot>,
    /// When sessions are closed.
    pub rules: ClosingRules,
    /// How often a root without notifications is looked at.
    pub poll_interval: Duration,
    /// How far back history gets notes.
    pub notes_since: SignedDuration,
    /// Which scripted sessions get notes.
    pub scripted: Scripted,
    /// Keys that have no effect in this version, one line each.
    pub notices: Vec<String>,
    /// Why the state directory or the vault is where it must not be.
    inside_root: Option<String>,
    /// The user's home.
    home: Option<PathBuf>,
    /// `PATH`, to find `git`.
    pub search_path: Option<std::ffi::OsString>,
}

impl Settings {
    /// Takes them from the configuration.
    pub fn new(loaded: &Loaded, env: &Env) -> Result<Self> {
        let paths = Paths::resolve(env, loaded)
            .map_err(|error| Failure::new(Exit::ConfigInvalid, error.to_string()))?;
        let config = loaded.config.clone();
        let roots = paths::roots(&config, env);
        let inside_root = paths.inside_roots(&roots).first().map(ToString::to_string);
        let roots =
            roots.into_iter().map(|root| WatchRoot { tool: root.tool, path: root.path }).collect();
        let sessions = &config.sessions;
        let policy = Policy::new(&config.projects, env)
            .map_err(|error| Failure::new(Exit::ConfigInvalid, format!("{error:#}")))?;
        Ok(Self {
            rules: ClosingRules {
                idle_after: signed(sessions.idle_after)?,
                end_grace: signed(sessions.end_grace)?,
                max_open_call: signed(sessions.max_open_call)?,
            },
            poll_interval: config.sources.poll_interval,
            notes_since: signed(config.backfill.notes_since)?,
            scripted: config.notes.scripted,
            search_path: env.var("PATH").map(ToOwned::to_owned),
            policy: Arc::new(policy),
            roots,
            inside_root,
            notices: unused(loaded),
            home: env.home.clone(),
            paths,
            config,
        })
    }

    /// The kinds of vault and drafter, for `status`.
    pub fn parts(&self) -> Parts {
        Parts {
            vault: match self.config.vault.kind {
                VaultKind::Local => "local".to_owned(),
                VaultKind::Akb => "akb".to_owned(),
            },
            // Whichever is configured: this is the one that there is.
            drafter: extractive::NAME.to_owned(),
            notes_since: self.notes_since,
        }
    }

    /// Which sessions get notes.
    pub fn note_rules(&self) -> NoteRules {
        NoteRules { scripted: self.scripted, notes_since: self.notes_since }
    }

    /// Makes the directories that are missing, for nobody but their owner.
    pub(super) fn prepare_directories(&self) -> Result<()> {
        paths::set_private_umask();
        self.refuse_anothers_home()?;
        let failed = |error: paths::DirError| Failure::new(Exit::Failed, error.to_string());
        let state = &self.paths.state_dir;
        if let PrivateDir::Readable { .. } = paths::ensure_private_dir(state).map_err(failed)? {
            // It is ours alone, whoever made it. A vault may be shared on purpose: its mode stays.
            std::fs::set_permissions(state, std::fs::Permissions::from_mode(0o700))
                .with_context(|| format!("cannot protect {}", state.display()))?;
        }
        paths::ensure_private_dir(&self.paths.vault_dir).map_err(vault_failed)?;
        Ok(())
    }

    /// What [`Self::prepare_directories`] would refuse; makes nothing.
    pub fn inspect_directories(&self) -> Result<()> {
        self.refuse_anothers_home()?;
        paths::inspect_private_dir(&self.paths.state_dir)
            .map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
        self.inspect_vault()?;
        Ok(())
    }

    /// Whether notes could be written.
    pub fn inspect_vault(&self) -> Result<(), Failure> {
        match self.config.vault.kind {
            VaultKind::Local => {
                paths::inspect_private_dir(&self.paths.vault_dir).map_err(vault_failed)
            }
            VaultKind::Akb => Ok(()),
        }
    }

    /// After `sudo` the home may be another's. What the superuser makes there for itself would be closed to its
    /// owner, `~/.local` first of all.
    fn refuse_anothers_home(&self) -> Result<()> {
        let is_default = [&self.paths.state_origin, &self.paths.vault_origin]
            .into_iter()
            .any(|origin| *origin == Origin::Default);
        let Some(home) = self.home.as_ref().filter(|_| is_default) else { return Ok(()) };
        let owner = std::fs::metadata(home).map_or(0, |found| found.uid());
        if rustix::process::geteuid().is_root() && owner != 0 {
            let message = format!(
                "the home {} belongs to uid {owner}, and this runs as the superuser; run it as that user, or set \
                 HOME, or both MAJORDOMUS_STATE_DIR and `path` in [vault]",
                home.display()
            );
            return Err(Failure::new(Exit::Failed, message).into());
        }
        Ok(())
    }

    /// Makes the socket's directory and gives the socket's path.
    pub(super) fn prepare_socket(&self) -> Result<PathBuf> {
        if let Some(note) = self.paths.socket.note() {
            tracing::warn!("{note}");
        }
        if let Some(directory) = self.paths.socket.path.parent() {
            paths::ensure_socket_dir(directory)
                .map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
        }
        Ok(self.paths.socket.path.clone())
    }

    /// A vault or a state directory inside a watched root or inside a Git working tree of a session is refused:
    /// agents would take what is written there for their own edits (interface.md, "Paths").
    pub(super) async fn refuse_bad_places(&self, reader: &mut Reader) -> Result<()> {
        if let Some(why) = &self.inside_root {
            return Err(Failure::new(Exit::ConfigInvalid, why.clone()).into());
        }
        for path in [&self.paths.state_dir, &self.paths.vault_dir] {
            if let Some(tree) = work_tree_of(path)
                && reader.has_session_in(&tree.to_string_lossy()).await?
                && let Some(refused) = self.paths.inside_work_tree(&tree).first()
            {
                return Err(Failure::new(Exit::ConfigInvalid, refused.to_string()).into());
            }
        }
        Ok(())
    }

    /// Why no note may be written for a session that works in `cwd`, if it may not.
    pub fn refusal_in(&self, cwd: &Path) -> Option<String> {
        let tree = work_tree_of(cwd)?;
        self.paths.inside_work_tree(&tree).first().map(ToString::to_string)
    }

    /// What masks secrets before a note is drafted.
    pub fn redactor(&self) -> Result<Redactor> {
        let redact = &self.config.redact;
        Redactor::new(redact.enabled, &redact.extra, &redact.allow).map_err(|_| {
            Failure::new(Exit::ConfigInvalid, "[redact] holds what is no regular expression").into()
        })
    }

    /// The reader of Git facts.
    pub fn git(&self) -> Git {
        let git = &self.config.git;
        Git::new(GitSettings {
            enabled: git.enabled,
            timeout: git.timeout,
            path: self.search_path.clone(),
            home: self
                .home
                .as_ref()
                .map(|home| std::fs::canonicalize(home).unwrap_or_else(|_| home.clone())),
            excludes: self.home.as_ref().map(|home| home.join(".config/git/ignore")),
            protected: Vec::new(),
        })
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn vault_failed(error: paths::DirError) -> Failure {
    Failure::new(Exit::VaultUnreachable, format!("the vault cannot be used: {error}"))
}

/// The nearest directory at or above `path` that is a Git working tree.
fn work_tree_of(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|above| above.join(".git").exists()).map(Path::to_owned)
}

fn signed(duration: Duration) -> Result<SignedDuration> {
    SignedDuration::try_from(duration).context("a duration of the configuration is too long")
}

/// The machine's name; empty where the system does not tell.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
