//! The Git facts of an episode, as they stand in its envelope.
//!
//! The daemon runs `git`; [`output`] reads what it says. Two rules hold throughout (envelope.md): every fact says where it comes from, and what is not known is absent with its reason. Empty
//! and absent are different facts: an empty list of commits was looked for.

pub mod output;

use serde::{Deserialize, Serialize};

/// Where a fact comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// It stands in the transcript.
    Recorded,
    /// The daemon read it at the time.
    Observed,
    /// It follows from history by date, for sessions that were found later.
    Inferred,
}

/// A fact with its provenance, or the reason why there is none. In JSON `{"value": …, "provenance": "…"}` or
/// `{"absent": "reason"}`; nothing else is read back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Known<T> {
    /// The fact.
    Fact {
        /// What is known.
        value: T,
        /// Where it comes from.
        provenance: Provenance,
    },
    /// Nothing is known.
    Absent {
        /// Why, in words for the reader of the envelope.
        absent: String,
    },
}

impl<T> Known<T> {
    /// A fact that stands in the transcript.
    pub fn recorded(value: T) -> Self {
        Self::Fact { value, provenance: Provenance::Recorded }
    }

    /// A fact that the daemon read itself.
    pub fn observed(value: T) -> Self {
        Self::Fact { value, provenance: Provenance::Observed }
    }

    /// A fact that follows from history by date.
    pub fn inferred(value: T) -> Self {
        Self::Fact { value, provenance: Provenance::Inferred }
    }

    /// No fact, and why.
    pub fn absent(reason: impl Into<String>) -> Self {
        Self::Absent { absent: reason.into() }
    }

    /// The fact without its provenance.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Fact { value, .. } => Some(value),
            Self::Absent { .. } => None,
        }
    }

    /// The same fact as one of another time: what was read now and need not have been so then.
    #[must_use]
    pub fn into_inferred(self) -> Self {
        match self {
            Self::Fact { value, .. } => Self::inferred(value),
            absent @ Self::Absent { .. } => absent,
        }
    }

    /// This fact, or else `other`; when both are absent, this one's reason stays.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Absent { .. }, Self::Fact { .. }) => other,
            _ => self,
        }
    }
}

impl<T, E: std::fmt::Display> From<Result<T, E>> for Known<T> {
    /// An observation that may have failed.
    fn from(observation: Result<T, E>) -> Self {
        match observation {
            Ok(value) => Self::observed(value),
            Err(why) => Self::absent(why.to_string()),
        }
    }
}

/// Git as it was at one moment in one working directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitFacts {
    /// Top directory of the work tree (of the linked worktree, where the session works in one).
    pub repository_root: Known<String>,
    /// Git's common directory: the same for all worktrees of a repository, which fold into one project by it.
    pub common_dir: Known<String>,
    /// Address of the remote, credentials stripped.
    pub remote: Known<String>,
    /// The branch, without `refs/heads/`.
    pub branch: Known<String>,
    /// Full hash of the commit that is checked out.
    pub head: Known<String>,
    /// Whether anything is not committed.
    pub working_tree: Known<WorkingTree>,
    /// The branch against its upstream.
    pub ahead_behind: Known<AheadBehind>,
}

impl GitFacts {
    /// Nothing is known, all for the same reason.
    pub fn absent(reason: &str) -> Self {
        Self {
            repository_root: Known::absent(reason),
            common_dir: Known::absent(reason),
            remote: Known::absent(reason),
            branch: Known::absent(reason),
            head: Known::absent(reason),
            working_tree: Known::absent(reason),
            ahead_behind: Known::absent(reason),
        }
    }
}

/// The working tree: `"clean"`, or the counts as an object. Submodules and ignored files do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkingTree {
    /// Nothing staged, nothing changed, nothing untracked.
    Clean,
    /// Something is not committed.
    #[serde(untagged)]
    Dirty(Uncommitted),
}

impl From<Uncommitted> for WorkingTree {
    fn from(counts: Uncommitted) -> Self {
        if counts == Uncommitted::default() { Self::Clean } else { Self::Dirty(counts) }
    }
}

/// What is not committed, in numbers. A file that is staged and was changed again counts in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uncommitted {
    /// Files whose index entry differs from the head; a pure rename is one.
    pub staged: u64,
    /// Files that differ from their index entry; files in conflict are among them.
    pub changed: u64,
    /// Untracked files; a directory that holds nothing else is one.
    pub untracked: u64,
}

/// A branch against its upstream, in commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AheadBehind {
    /// Commits that the upstream does not have.
    pub ahead: u64,
    /// Commits that only the upstream has.
    pub behind: u64,
}

/// The commits of an episode by its heads (envelope.md, from seed 001): listed only where the start head is an
/// ancestor of the end head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum CommitsBetween {
    /// The start head is an ancestor. Empty when the head did not move.
    Listed {
        /// Full hashes, parents before children.
        commits: Vec<String>,
        /// Inferred when one of the heads is, else observed.
        provenance: Provenance,
    },
    /// The start head is no ancestor (a rebase, a reset, another branch): no list is computed.
    Diverged {
        /// The two heads.
        diverged: Heads,
    },
    /// It could not be looked for.
    Absent {
        /// Why.
        absent: String,
    },
}

impl CommitsBetween {
    /// No list, and why.
    pub fn absent(reason: impl Into<String>) -> Self {
        Self::Absent { absent: reason.into() }
    }
}

/// The heads of an episode that are known well enough to ask Git about what lies between.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heads {
    /// Full hash at the episode's start.
    pub start: String,
    /// Full hash at its end.
    pub end: String,
}

/// The two heads and the provenance of what is computed from them, or why nothing can be.
pub fn heads(start: &Known<String>, end: &Known<String>) -> Result<(Heads, Provenance), String> {
    let side = |name: &str, head: &Known<String>| match head {
        Known::Fact { value, provenance } if is_full_hash(value) => {
            Ok((value.clone(), *provenance))
        }
        Known::Fact { .. } => Err(format!("the {name} head is not a full commit hash")),
        Known::Absent { absent } => Err(format!("the {name} head is not known: {absent}")),
    };
    let (start, start_from) = side("start", start)?;
    let (end, end_from) = side("end", end)?;
    let provenance = if [start_from, end_from].contains(&Provenance::Inferred) {
        Provenance::Inferred
    } else {
        Provenance::Observed
    };
    Ok((Heads { start, end }, provenance))
}

/// A hash out of a transcript, looked up in the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedCommit {
    /// The hash as the transcript has it, mostly short.
    pub given: String,
    /// The full hash; `None` when the repository has no such commit, or several that begin so.
    pub full: Option<String>,
    /// The first paragraph of the message as one line. For notes only: it is a body, no envelope holds it.
    pub subject: Option<String>,
}

/// A complete object name, SHA-1 or SHA-256.
pub fn is_full_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && is_hash(text)
}

/// Something Git takes for the beginning of an object name (at least four digits) and for nothing else.
pub fn is_hash(text: &str) -> bool {
    (4..=64).contains(&text.len()) && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// A name that can follow `refs/heads/` without being read as an expression (`x~3`, `a..b`, `x@{1}`): the rules
/// of `git check-ref-format`. The name comes from a stranger's transcript.
#[expect(
    clippy::case_sensitive_file_extension_comparisons,
    reason = "Git forbids exactly this spelling"
)]
pub fn is_branch_name(name: &str) -> bool {
    let foreign = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    (1..=250).contains(&name.len())
        && !name.contains(foreign)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.starts_with('-')
        && !name.ends_with('.')
        && name
            .split('/')
            .all(|part| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock"))
}

#[cfg(test)]
mod tests;
