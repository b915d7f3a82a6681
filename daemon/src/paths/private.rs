//! Directories that only their owner can enter, whatever the umask and whoever was there before.

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, Mode};

/// Mode of every directory we make.
const OWNER_ONLY: u32 = 0o700;
/// The right of group and others to write.
const OTHERS_WRITE: u32 = 0o022;
/// The rights of group and others.
const OTHERS_ANY: u32 = 0o077;
/// Only the owner of a file may remove it (`/tmp`).
const STICKY: u32 = 0o1000;

/// Why a directory is not to be trusted, or not there.
#[derive(Debug, thiserror::Error)]
pub enum DirError {
    /// Somebody may have planted it (cases 122).
    #[error("directory {} is a symlink; name the directory it leads to", .0.display())]
    Symlink(PathBuf),
    /// A file or the like is in the way.
    #[error("{} is not a directory; move it away", .0.display())]
    NotADirectory(PathBuf),
    /// Another user owns it.
    #[error(
        "directory {} belongs to uid {owner}, not to uid {us}; choose another, or chown it",
        .path.display()
    )]
    Owner {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// Us.
        us: u32,
    },
    /// Others could put files there.
    #[error(
        "directory {0} has mode {mode:04o} and others may write to it; chmod go-w {0}",
        .path.display()
    )]
    Writable {
        /// The directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The system refused.
    #[error("directory {}: cannot {what}: {source}; check its rights and those of its parent", .path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// What [`ensure_private_dir`] met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrivateDir {
    /// It was made, 0700.
    Created,
    /// It was there, and only the owner can enter it.
    Private,
    /// It was there and others may look into it; left so, as it may be meant.
    Readable {
        /// Its mode.
        mode: u32,
    },
}

/// Makes sure that the directory is there and that only we can write to it. Directories that are
/// missing on the way are made 0700 under any umask; those that exist are left as they are.
pub fn ensure_private_dir(path: &Path) -> Result<PrivateDir, DirError> {
    match ensure(path)? {
        None => Ok(PrivateDir::Created),
        Some(found) => {
            refuse_others(path, &found)?;
            Ok(match permissions(&found) {
                mode if mode & OTHERS_ANY == 0 => PrivateDir::Private,
                mode => PrivateDir::Readable { mode },
            })
        }
    }
}

/// Whether [`ensure_private_dir`] would go well and files could be made there; makes nothing.
pub fn inspect_private_dir(path: &Path) -> Result<(), DirError> {
    let existing = match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => return Err(DirError::Symlink(path.to_path_buf())),
        Ok(found) if !found.is_dir() => return Err(DirError::NotADirectory(path.to_path_buf())),
        Ok(found) => {
            refuse_others(path, &found)?;
            path
        }
        Err(_) => path.ancestors().skip(1).find(|above| above.exists()).unwrap_or(path),
    };
    if !existing.is_dir() {
        return Err(DirError::NotADirectory(existing.to_path_buf()));
    }
    rustix::fs::access(existing, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|error| failed(existing, "write to it", error.into()))
}

/// The same for the directory that a socket is to stand in (its parent, not the socket itself). It
/// may also be a shared one like `/tmp`, where nobody can replace another's files: the socket's own mode and the peer's uid guard it.
pub fn ensure_socket_dir(directory: &Path) -> Result<(), DirError> {
    match ensure(directory)? {
        Some(found) if !(found.uid() == 0 && permissions(&found) & STICKY != 0) => {
            refuse_others(directory, &found)
        }
        _ => Ok(()),
    }
}

/// Gives files and directories made from now on no rights for group and others. To be called first
/// thing, before any thread: the mask belongs to the whole process (cases 121).
pub fn set_private_umask() {
    rustix::process::umask(Mode::from_raw_mode(0o077));
}

/// Makes what is missing. What was there is returned unless it is no directory.
fn ensure(path: &Path) -> Result<Option<Metadata>, DirError> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Err(DirError::Symlink(path.to_path_buf())),
        Ok(found) if found.is_dir() => Ok(Some(found)),
        Ok(_) => Err(DirError::NotADirectory(path.to_path_buf())),
        // NotADirectory: a parent is a file, and is named as the culprit.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            make_parents(path)?;
            make(path)
        }
        Err(source) => Err(failed(path, "look at it", source)),
    }
}

fn make_parents(path: &Path) -> Result<(), DirError> {
    match path.parent() {
        // A parent that exists may be a symlink (a home on another disk) or somebody else's.
        Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
            ensure(parent).map(drop)
        }
        _ => Ok(()),
    }
}

fn make(path: &Path) -> Result<Option<Metadata>, DirError> {
    match DirBuilder::new().mode(OWNER_ONLY).create(path) {
        Ok(()) => {
            // The umask may have taken rights from the owner too.
            fs::set_permissions(path, Permissions::from_mode(OWNER_ONLY))
                .map_err(|source| failed(path, "set its mode", source))?;
            Ok(None)
        }
        // Made by another process meanwhile: looked at like any that was there.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let found =
                fs::symlink_metadata(path).map_err(|source| failed(path, "look at it", source))?;
            if found.is_symlink() {
                return Err(DirError::Symlink(path.to_path_buf()));
            }
            if !found.is_dir() {
                return Err(DirError::NotADirectory(path.to_path_buf()));
            }
            Ok(Some(found))
        }
        Err(source) => Err(failed(path, "make it", source)),
    }
}

fn refuse_others(path: &Path, found: &Metadata) -> Result<(), DirError> {
    let us = rustix::process::geteuid().as_raw();
    if found.uid() != us {
        return Err(DirError::Owner { path: path.to_path_buf(), owner: found.uid(), us });
    }
    let mode = permissions(found);
    if mode & OTHERS_WRITE != 0 {
        return Err(DirError::Writable { path: path.to_path_buf(), mode });
    }
    Ok(())
}

fn permissions(found: &Metadata) -> u32 {
    found.mode() & 0o7777
}

fn failed(path: &Path, what: &'static str, source: io::Error) -> DirError {
    DirError::Io { path: path.to_path_buf(), what, source }
}
