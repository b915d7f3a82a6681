//! The reasons for which a fact of Git is absent.

use std::io;
use std::time::Duration;

use super::run::MAX_OUTPUT;

/// More content filters than this are not neutralised one by one; the working tree stays unread.
pub(super) const MAX_FILTERS: usize = 256;

/// Why a fact is absent. The text stands in the envelope, so it never quotes Git or the repository.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Why {
    #[error("Git facts are turned off in the configuration")]
    Disabled,
    #[error("the working directory is not an absolute path")]
    NotAbsolute,
    #[error("no such directory")]
    NoDirectory,
    #[error("no permission to read the directory")]
    NoPermission,
    #[error("no permission to read parts of the work tree")]
    Unreadable,
    #[error("the directory is protected: it is read only when the configuration allows it")]
    Protected,
    #[error("git is not installed")]
    NotInstalled,
    #[error("git {0}.{1} is too old: 2.32 or newer is needed")]
    TooOld(u32, u32),
    #[error("not a git repository")]
    NoRepository,
    #[error("repository belongs to another user")]
    OtherOwner,
    #[error("bare repository")]
    Bare,
    #[error("inside a Git directory, not in a work tree")]
    InsideGitDir,
    #[error("core.worktree points away from the repository")]
    WorkTreeElsewhere,
    #[error("the work tree is the home directory or holds it")]
    HoldsHome,
    #[error("the repository's configuration turns the look for untracked files off")]
    HidesUntracked,
    #[error(
        "files with a content filter (such as Git LFS) look changed, and filters are not run to make sure"
    )]
    Filtered,
    #[error("the repository has more than {MAX_FILTERS} content filters")]
    TooManyFilters,
    #[error("a path of the repository is not UTF-8")]
    NotUtf8,
    #[error("no commits yet")]
    NoCommits,
    #[error("detached head")]
    Detached,
    #[error("detached head: a rebase is in progress")]
    Rebasing,
    #[error("no upstream branch")]
    NoUpstream,
    #[error("the upstream branch does not exist")]
    UpstreamGone,
    #[error("no such branch")]
    NoBranch,
    #[error("no commit is that old")]
    NothingSoOld,
    #[error("a head is not in the repository")]
    NoSuchCommit,
    #[error("the history is shallow: the start head may lie beyond its end")]
    Shallow,
    #[error("{0}")]
    NoRemote(&'static str),
    #[error("timed out after {}s", .0.as_secs_f64())]
    TimedOut(Duration),
    #[error("git {0} wrote more than {mib} MiB", mib = MAX_OUTPUT >> 20)]
    TooMuch(&'static str),
    #[error("git {0} failed with exit status {1}")]
    Failed(&'static str, i32),
    #[error("git {0} was ended by a signal")]
    Killed(&'static str),
    #[error("git {0} wrote what is not understood")]
    NotUnderstood(&'static str),
    #[error("git could not be run: {0}")]
    NotRun(io::ErrorKind),
}
