//! A session is what its events fold to. Pure: events in, summary out; the same events give the same summary
//! whenever and however often they are folded.
//!
//! Copies never count (their `counts` is false). The session's own thread and each subagent's are kept apart:
//! what a subagent did stands under its parent (envelope.md, "Words").

mod closing;
mod fold;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::closing::{CloseReason, ClosingRules, Decision, Pulse, decide};
pub use self::fold::Fold;
use crate::entry::{FileChange, TitleVia, WrittenTime};
use crate::ids::LedgerSeq;

/// What one thread (the session's own or a subagent's) did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Prompts of a person.
    pub prompts: u64,
    /// Answers with text; the lines of one API message are one answer.
    pub answers: u64,
    /// Tool calls by name.
    pub tool_calls: BTreeMap<String, u64>,
    /// Calls that failed or were denied.
    pub failures: u64,
    /// Files that were changed, and how last.
    pub files: BTreeMap<String, FileChange>,
    /// Commits that were made, in order.
    pub commits: Vec<String>,
}

impl Thread {
    /// Number of tool calls.
    pub fn n_calls(&self) -> u64 {
        self.tool_calls.values().sum()
    }

    /// Whether files or commits were made.
    pub fn has_changes(&self) -> bool {
        !self.files.is_empty() || !self.commits.is_empty()
    }
}

/// Tokens of one model. All counts are tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Input, without cache reads and writes.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Input read from the provider's cache.
    pub cache_read: u64,
    /// Input written to the provider's cache.
    pub cache_write: u64,
}

/// Git as the tool recorded it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedGit {
    /// Commit at the start.
    pub head: Option<String>,
    /// Branch at the start.
    pub first_branch: Option<String>,
    /// Branch at the end.
    pub last_branch: Option<String>,
    /// Remote, credentials stripped.
    pub remote: Option<String>,
}

/// How the last turn stands; the outcome is read from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastWord {
    /// Nothing happened.
    #[default]
    None,
    /// The user spoke and got no answer.
    Prompt,
    /// The model answered.
    Answer,
    /// A tool was called and gave nothing back.
    OpenCall,
    /// A tool gave something back and the model said no more.
    Result,
    /// The user interrupted.
    Interrupted,
    /// The provider failed.
    ApiError,
}

/// What a range of a session's events folds to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The session's own thread.
    pub own: Thread,
    /// Its subagents' threads by their ids.
    pub agents: BTreeMap<String, Thread>,
    /// Least time of the entries in its own files, as written.
    pub started_at: Option<Moment>,
    /// Greatest time of the entries in its own files, as written.
    pub last_at: Option<Moment>,
    /// Greatest time of all entries, subagents' included.
    pub active_until: Option<Timestamp>,
    /// Time at work in seconds: the gaps between entries, each counted up to five minutes.
    pub active_s: i64,
    /// Working directories in the order in which they were met.
    pub cwds: Vec<String>,
    /// Tool versions in the order in which they were met.
    pub versions: Vec<String>,
    /// Git as recorded in the transcript.
    pub git: RecordedGit,
    /// The directory that a worktree session was started for.
    pub worktree_of: Option<String>,
    /// Where the best title stands.
    pub title: Option<(TitleVia, LedgerSeq)>,
    /// Where the first prompt stands.
    pub first_prompt: Option<LedgerSeq>,
    /// What ran it, if a script did.
    pub scripted: Option<String>,
    /// Tokens by model.
    pub tokens: BTreeMap<String, Tokens>,
    /// Addresses that were fetched.
    pub urls: Vec<String>,
    /// Pull and merge requests.
    pub pull_requests: Vec<String>,
    /// Events with a plan.
    pub plans: Vec<LedgerSeq>,
    /// Events with questions to the user.
    pub questions: Vec<LedgerSeq>,
    /// Events at which the history was compacted.
    pub checkpoints: Vec<LedgerSeq>,
    /// MCP servers that were called.
    pub mcp_servers: Vec<String>,
    /// Todo items that were open and done at the last list.
    pub todos: Option<(u32, u32)>,
    /// How the own thread's last turn stands.
    pub last_word: LastWord,
    /// The oldest tool call still without a result, if one is.
    pub open_call_since: Option<Timestamp>,
    /// Lines that could not be read, and lines of unknown shape.
    pub odd_lines: (u64, u64),
    /// Events that were folded.
    pub n_events: u64,
}

/// A time as written, with its instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// The instant.
    pub at: Timestamp,
    /// As the tool wrote it.
    pub written: String,
}

impl From<&WrittenTime> for Moment {
    fn from(time: &WrittenTime) -> Self {
        Self { at: time.instant(), written: time.as_written() }
    }
}

impl Summary {
    /// Work happened: the model did something, and a person asked for it or something changed
    /// (formats.md 1.8 and 2.7).
    pub fn is_meaningful(&self) -> bool {
        let did = self.own.answers > 0 || self.own.n_calls() > 0 || !self.agents.is_empty();
        did && (self.own.prompts > 0 || self.has_changes())
    }

    /// Files or commits were made, by the session or a subagent.
    pub fn has_changes(&self) -> bool {
        self.own.has_changes() || self.agents.values().any(Thread::has_changes)
    }

    /// The directory that names the project: the one that a worktree belongs to, else the first.
    pub fn project_dir(&self) -> Option<&str> {
        self.worktree_of.as_deref().or_else(|| self.cwds.first().map(String::as_str))
    }

    /// The project's name: the last component of its directory, with tools' own worktrees folded into the
    /// repository that they belong to (cases.md 130). `None` when there is no directory: nothing is guessed.
    pub fn project(&self) -> Option<String> {
        let dir = self.project_dir()?;
        let mut dir = dir;
        for marker in ["/.claude/worktrees/", "\\.claude\\worktrees\\"] {
            dir = dir.split(marker).next().unwrap_or(dir);
        }
        let name = dir.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next()?;
        let name: String = name.chars().filter(|c| !c.is_control()).collect();
        (!name.is_empty()).then_some(name)
    }
}

#[cfg(test)]
mod tests;
