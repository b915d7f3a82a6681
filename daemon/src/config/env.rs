//! The process environment as a value, so that every rule about it can be tested.
//!
//! Rules kept here: an empty variable is an unset one; a relative XDG directory is ignored (XDG
//! base directory specification); `~` is the injected home.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What config and paths may know of the process they run in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Env {
    /// The variables.
    pub vars: BTreeMap<OsString, OsString>,
    /// The user's home, absolute; `None` where the system knows none.
    pub home: Option<PathBuf>,
    /// The working directory, against which relative flags and variables are read.
    pub cwd: PathBuf,
    /// The user's numeric id.
    pub uid: u32,
}

impl Env {
    /// The environment of this process; the only place that asks for it.
    pub fn of_process() -> Self {
        Self {
            vars: std::env::vars_os().collect(),
            home: directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_path_buf()),
            cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            uid: rustix::process::getuid().as_raw(),
        }
    }

    /// A variable's value; an empty one counts as unset.
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        self.vars.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// A variable that names a path, made absolute: `~` expanded, relative to the working directory.
    pub fn path_var(&self, name: &str) -> Option<PathBuf> {
        self.var(name).map(|value| self.absolute(Path::new(value)))
    }

    /// An XDG directory; a relative one is ignored.
    pub fn xdg(&self, name: &str) -> Option<PathBuf> {
        self.var(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// The path with a leading `~` replaced by the home; unchanged where there is none, or no home.
    pub fn expand(&self, path: &Path) -> PathBuf {
        match (&self.home, path.strip_prefix("~")) {
            (Some(home), Ok(rest)) if rest.as_os_str().is_empty() => home.clone(),
            (Some(home), Ok(rest)) => home.join(rest),
            _ => path.to_path_buf(),
        }
    }

    /// The path expanded and made absolute against the working directory.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        self.cwd.join(self.expand(path))
    }
}
