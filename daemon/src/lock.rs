//! One daemon per state directory: a lock that the kernel holds for as long as the process lives. A lock file
//! left behind by a kill locks nothing.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The lock; dropping it gives the state directory free.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Another daemon has the state directory.
#[derive(Debug, thiserror::Error)]
#[error("majordomusd is already running on {state}{who}; stop it with: majordomusctl stop")]
pub struct AlreadyRunning {
    state: String,
    who: String,
}

impl Lock {
    /// Takes the lock at `path`, or tells who has it.
    pub fn take(path: &Path) -> Result<Self> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .with_context(|| format!("cannot open the lock {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                file.read_to_string(&mut pid)
                    .with_context(|| format!("cannot read the lock {}", path.display()))?;
                let pid = pid.lines().next().unwrap_or_default().to_owned();
                let who = if pid.is_empty() { String::new() } else { format!(" (pid {pid})") };
                let state = path.parent().map(PathBuf::from).unwrap_or_default();
                return Err(AlreadyRunning { state: state.display().to_string(), who }.into());
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        // The pid is for people and for the message above; the lock itself is the kernel's.
        file.set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| writeln!(file, "{}", std::process::id()))
            .with_context(|| format!("cannot write the lock {}", path.display()))?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_162_a_second_taker_is_told_who_has_the_lock() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("daemon.lock");
        let first = Lock::take(&path).expect("free");
        let error = Lock::take(&path).expect_err("taken");
        assert!(error.is::<AlreadyRunning>());
        assert!(error.to_string().contains(&format!("(pid {})", std::process::id())));
        drop(first);
        Lock::take(&path).expect("free again");
    }
}
