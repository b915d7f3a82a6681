//! Where things are: config file, state, socket, vault, and the watched roots.
//!
//! Pure over an injected [`Env`] but for looking at what exists (owners, symlinks). Both programs
//! derive the same paths from the same environment; nothing is written down for the other to find.

mod private;

#[cfg(test)]
mod tests;

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use majordomus_core::ids::Tool;

use crate::config::{Config, Env, Loaded, Origin, Setting};

pub use private::{
    DirError, PrivateDir, ensure_private_dir, ensure_socket_dir, inspect_private_dir,
    set_private_umask,
};

/// The name of our directory below each base directory.
const OURS: &str = "majordomus";

/// Longest socket path in bytes: `sun_path` less its closing NUL.
pub const MAX_SOCKET_PATH: usize = if cfg!(target_os = "macos") { 103 } else { 107 };

/// Why no paths could be found.
#[derive(Debug, thiserror::Error)]
pub enum PathsError {
    /// Nothing says where the user's home is.
    #[error("no home directory for uid {uid}, so no place for {what}; set HOME")]
    NoHome {
        /// The user.
        uid: u32,
        /// What is to be placed.
        what: &'static str,
    },
}

/// Every path that the two programs agree on. All are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The config file, whether or not it exists.
    pub config_file: PathBuf,
    /// Who named the config file.
    pub config_origin: Origin,
    /// Holds everything below.
    pub state_dir: PathBuf,
    /// Who chose the state directory.
    pub state_origin: Origin,
    /// The SQLite ledger.
    pub ledger: PathBuf,
    /// Envelopes.
    pub sessions_dir: PathBuf,
    /// Blobs of transcripts.
    pub archive_dir: PathBuf,
    /// Held by `flock` as long as a daemon lives.
    pub lock: PathBuf,
    /// The daemon's socket.
    pub socket: Socket,
    /// The local vault.
    pub vault_dir: PathBuf,
    /// Who chose the vault directory.
    pub vault_origin: Origin,
}

/// The socket's path and how it came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Socket {
    /// Where it is; never longer than [`MAX_SOCKET_PATH`].
    pub path: PathBuf,
    /// Who chose it.
    pub origin: Origin,
    /// The path that was asked for and is too long for the system; for the log and `doctor`.
    pub instead_of: Option<PathBuf>,
}

impl Socket {
    /// One line for the log where the path asked for could not be used.
    pub fn note(&self) -> Option<String> {
        let asked = self.instead_of.as_ref()?;
        Some(format!(
            "socket path {} has {} bytes and the system allows {MAX_SOCKET_PATH}; using {} \
             (choose a shorter one with MAJORDOMUS_SOCKET)",
            asked.display(),
            asked.as_os_str().len(),
            self.path.display()
        ))
    }
}

impl Paths {
    /// The paths for this environment and configuration.
    pub fn resolve(env: &Env, loaded: &Loaded) -> Result<Self, PathsError> {
        let no_home = |what| PathsError::NoHome { uid: env.uid, what };
        let config_file = loaded.file.clone().ok_or_else(|| no_home("the config file"))?;
        let (state_dir, state_origin) = state_dir(env)?;
        let (vault_dir, vault_origin) = if let Some(path) = &loaded.config.vault.path {
            (env.absolute(path), loaded.origin("vault.path"))
        } else {
            let (data, origin) =
                base(env, "XDG_DATA_HOME", ".local/share").ok_or_else(|| no_home("the vault"))?;
            (data.join(OURS).join("vault"), origin)
        };
        Ok(Self {
            config_file,
            config_origin: loaded.file_origin.clone(),
            ledger: state_dir.join("ledger.db"),
            sessions_dir: state_dir.join("sessions"),
            archive_dir: state_dir.join("archive"),
            lock: state_dir.join("daemon.lock"),
            socket: socket(env, &state_dir),
            state_dir,
            state_origin,
            vault_dir,
            vault_origin,
        })
    }

    /// The paths as `config show` prints them, beside the settings.
    pub fn show(&self) -> Vec<Setting> {
        [
            ("paths.config_file", &self.config_file, &self.config_origin),
            (Place::State.key(), &self.state_dir, &self.state_origin),
            ("paths.socket", &self.socket.path, &self.socket.origin),
            (Place::Vault.key(), &self.vault_dir, &self.vault_origin),
        ]
        .map(|(key, path, origin)| Setting {
            key: key.to_owned(),
            value: path.display().to_string().into(),
            origin: origin.clone(),
        })
        .into()
    }

    /// The refusals for state or vault directories inside a watched root.
    pub fn inside_roots(&self, roots: &[Root]) -> Vec<Refused> {
        self.places()
            .flat_map(|(place, path)| {
                roots.iter().filter(move |root| is_inside(path, &root.path)).map(move |root| {
                    Refused {
                        place,
                        path: path.to_path_buf(),
                        tree: root.path.clone(),
                        kind: "the watched root",
                    }
                })
            })
            .collect()
    }

    /// The refusals for state or vault directories inside the Git working tree of a session.
    pub fn inside_work_tree(&self, tree: &Path) -> Vec<Refused> {
        self.places()
            .filter(|(_, path)| is_inside(path, tree))
            .map(|(place, path)| Refused {
                place,
                path: path.to_path_buf(),
                tree: tree.to_path_buf(),
                kind: "the Git working tree of a session",
            })
            .collect()
    }

    fn places(&self) -> impl Iterator<Item = (Place, &Path)> {
        [(Place::State, self.state_dir.as_path()), (Place::Vault, self.vault_dir.as_path())]
            .into_iter()
    }
}

/// A directory that the daemon writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Ledger, envelopes, archive.
    State,
    /// Notes.
    Vault,
}

impl Place {
    /// What `config show` calls it.
    pub fn key(self) -> &'static str {
        match self {
            Self::State => "paths.state_dir",
            Self::Vault => "paths.vault_dir",
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::State => "set MAJORDOMUS_STATE_DIR to a directory outside it",
            Self::Vault => "set `path` in [vault] to a directory outside it",
        }
    }
}

/// A directory that the daemon may not write to, and why; reads on from the directory's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Which directory.
    pub place: Place,
    /// Where it is.
    pub path: PathBuf,
    /// What it is inside of.
    pub tree: PathBuf,
    kind: &'static str,
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} is inside {} {}: agents would take the writes for their own edits; {}",
            self.path.display(),
            self.kind,
            self.tree.display(),
            self.place.remedy()
        )
    }
}

/// The config file and who named it: `--config`, `MAJORDOMUS_CONFIG`, or the usual place.
pub fn config_file(env: &Env, flag: Option<&Path>) -> Option<(PathBuf, Origin)> {
    if let Some(path) = flag {
        return Some((env.absolute(path), Origin::Flag("--config")));
    }
    if let Some(path) = env.path_var("MAJORDOMUS_CONFIG") {
        return Some((path, Origin::Env("MAJORDOMUS_CONFIG")));
    }
    // `~/.config` on macOS too: `interface.md` names it without exception.
    let (config_home, origin) = match env.xdg("XDG_CONFIG_HOME") {
        Some(path) => (path, Origin::Env("XDG_CONFIG_HOME")),
        None => (env.home.as_ref()?.join(".config"), Origin::Default),
    };
    Some((config_home.join(OURS).join("config.toml"), origin))
}

/// The state directory and who chose it. Needs no configuration.
pub fn state_dir(env: &Env) -> Result<(PathBuf, Origin), PathsError> {
    if let Some(path) = env.path_var("MAJORDOMUS_STATE_DIR") {
        return Ok((path, Origin::Env("MAJORDOMUS_STATE_DIR")));
    }
    let (state_home, origin) = base(env, "XDG_STATE_HOME", ".local/state")
        .ok_or(PathsError::NoHome { uid: env.uid, what: "the state directory" })?;
    Ok((state_home.join(OURS), origin))
}

/// An XDG base directory, its fallback below the home, or on macOS Application Support.
fn base(env: &Env, variable: &'static str, below_home: &str) -> Option<(PathBuf, Origin)> {
    if let Some(path) = env.xdg(variable) {
        return Some((path, Origin::Env(variable)));
    }
    let below_home =
        if cfg!(target_os = "macos") { "Library/Application Support" } else { below_home };
    Some((env.home.as_ref()?.join(below_home), Origin::Default))
}

/// The socket. A path longer than the system allows is replaced by a short one made from its hash,
/// so that both programs come to the same.
pub fn socket(env: &Env, state_dir: &Path) -> Socket {
    let runtime_dir = env.xdg("XDG_RUNTIME_DIR").filter(|dir| is_not_anothers(dir, env.uid));
    let (wanted, origin) = if let Some(path) = env.path_var("MAJORDOMUS_SOCKET") {
        (path, Origin::Env("MAJORDOMUS_SOCKET"))
    } else if let Some(dir) = &runtime_dir {
        (dir.join(OURS).join("majordomusd.sock"), Origin::Env("XDG_RUNTIME_DIR"))
    } else {
        (state_dir.join("majordomusd.sock"), Origin::Default)
    };
    if fits(&wanted) {
        return Socket { path: wanted, origin, instead_of: None };
    }
    let hash = blake3::hash(wanted.as_os_str().as_bytes()).to_hex();
    let name = format!("{}.sock", hash.get(..16).unwrap_or(&hash));
    let short = runtime_dir
        .map(|dir| dir.join(OURS).join(&name))
        .filter(|path| fits(path))
        // Not TMPDIR: a service and a shell often differ in it.
        .unwrap_or_else(|| PathBuf::from(format!("/tmp/majordomus-{}", env.uid)).join(&name));
    Socket { path: short, origin, instead_of: Some(wanted) }
}

fn fits(path: &Path) -> bool {
    path.as_os_str().len() <= MAX_SOCKET_PATH
}

/// After `su` or `sudo -E` the variable may still name the other user's directory. One that does
/// not exist yet is nobody's.
fn is_not_anothers(dir: &Path, uid: u32) -> bool {
    std::fs::metadata(dir).map_or(true, |found| found.uid() == uid)
}

/// A directory of a tool that is looked through for session files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Whose files.
    pub tool: Tool,
    /// Where: canonical if it exists, else as configured with `~` expanded.
    pub path: PathBuf,
    /// As the configuration or the variable writes it; the first of several names for one place.
    pub configured_as: PathBuf,
}

/// The watched roots in the order of the configuration. Two names of one directory are one root;
/// one that does not exist is kept, since it may appear later.
pub fn roots(config: &Config, env: &Env) -> Vec<Root> {
    let sources = &config.sources;
    let configured = sources
        .claude
        .iter()
        .map(|path| (Tool::Claude, path))
        .chain(sources.codex.iter().map(|path| (Tool::Codex, path)));
    let mut roots: Vec<(Root, Option<(u64, u64)>)> = Vec::new();
    for (tool, configured_as) in configured {
        let path = canonical(&env.absolute(configured_as));
        // Device and inode besides the path: a bind mount has two canonical paths.
        let identity = std::fs::metadata(&path).ok().map(|found| (found.dev(), found.ino()));
        let is_known = roots.iter().any(|(known, known_identity)| {
            known.tool == tool
                && (known.path == path || (identity.is_some() && identity == *known_identity))
        });
        if !is_known {
            let root = Root { tool, path, configured_as: configured_as.clone() };
            roots.push((root, identity));
        }
    }
    roots.into_iter().map(|(root, _)| root).collect()
}

/// Whether the path is the directory or below it, whatever symlinks lead there.
fn is_inside(path: &Path, directory: &Path) -> bool {
    canonical(path).starts_with(canonical(directory))
}

/// The path without symlinks and dots as far as it exists; what does not exist yet is kept.
fn canonical(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    let mut existing = path;
    loop {
        if let Ok(found) = existing.canonicalize() {
            return missing.iter().rev().fold(found, |path, name| match name {
                Component::ParentDir => path.parent().map(Path::to_path_buf).unwrap_or(path),
                Component::CurDir => path,
                other => path.join(other),
            });
        }
        match (existing.parent(), existing.components().next_back()) {
            (Some(parent), Some(name)) => {
                missing.push(name);
                existing = parent;
            }
            _ => return path.to_path_buf(),
        }
    }
}
