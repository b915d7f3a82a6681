//! The facts of an entry: what a line proves, small, structured and without text. They stand as JSON in the ledger's
//! `facts` column, so a name once written is read for ever.

use serde::{Deserialize, Serialize};

/// A thing that a line proves, small and without text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// A person's prompt. `via` says which of several mirrored places it stands in.
    Prompt {
        /// Where it stands.
        via: PromptVia,
    },
    /// Text of the model. Lines of one `message` are one answer.
    Answer {
        /// The API message's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// Where it stands.
        via: AnswerVia,
    },
    /// A tool was called.
    Call(Call),
    /// A tool answered.
    Result(CallResult),
    /// Tokens of one API message (the last snapshot of a message wins), or the thread's running total.
    Usage(Usage),
    /// The model at work.
    Model(String),
    /// A file was changed, proven by the tool itself.
    File(FileTouch),
    /// A commit was made, proven by the tool itself.
    Commit(String),
    /// A web address that was fetched or opened (credentials stripped).
    Url(String),
    /// A pull or merge request.
    PullRequest {
        /// Its address.
        url: String,
    },
    /// A title of the session stands on this line; the text is read through the place.
    Title(TitleVia),
    /// A plan was put forward on this line.
    Plan,
    /// Questions with options were put to the user.
    Question {
        /// How many.
        count: u32,
    },
    /// The todo list or plan as it stands after this line.
    Todo {
        /// Not finished.
        open: u32,
        /// Finished.
        done: u32,
    },
    /// A subagent was started.
    Subagent {
        /// Its id.
        agent: String,
    },
    /// The tool says that the session ended or is about to.
    End(EndMark),
    /// The user interrupted the model.
    Interrupted,
    /// The provider failed; the text is the tool's own.
    ApiError,
    /// Git as the tool recorded it at the session's start.
    Git {
        /// Commit hash.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<String>,
        /// Branch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
        /// Remote URL, credentials stripped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remote: Option<String>,
    },
    /// The session works in a worktree; `original` is the directory it was started for.
    Worktree {
        /// The project's own directory.
        original: String,
    },
    /// The session was forked from another.
    Fork {
        /// Native id of the origin.
        from: String,
    },
    /// The run was made by a script (SDK entry point, `claude -p`, `codex exec`).
    Scripted(String),
    /// The last `n` turns are void.
    Rollback(u32),
    /// Why the line is unreadable, or the type of an unknown line.
    Reason(String),
}

/// Where a prompt stands. Codex mirrors each prompt in several lines: [`PromptVia::Event`] and
/// [`PromptVia::Item`] are the prompt, [`PromptVia::Response`] counts only in files that have neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptVia {
    /// A Claude `user` line.
    User,
    /// A Claude `queued_command` attachment.
    Queued,
    /// Codex `event_msg/user_message`.
    Event,
    /// Codex `event_msg/item_completed/UserMessage`.
    Item,
    /// Codex `response_item` with role `user`.
    Response,
}

/// Where an answer stands. Codex mirrors answers too: [`AnswerVia::Event`] and [`AnswerVia::Item`] count only in
/// files without [`AnswerVia::Response`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerVia {
    /// A Claude `assistant` line.
    Message,
    /// Codex `response_item` with role `assistant`.
    Response,
    /// Codex `event_msg/agent_message`.
    Event,
    /// Codex `item_completed/AgentMessage`.
    Item,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The id that its result names; empty where the tool gives none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The tool's name, cut to 100 characters and without control characters (models invent names).
    pub name: String,
    /// Files that it will change if it succeeds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileTouch>,
    /// The command commits: `[branch hash] subject` lines of its result are proof of commits.
    #[serde(default, skip_serializing_if = "is_false")]
    pub commits: bool,
}

/// A tool's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// The call's id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub call: String,
    /// How it went.
    pub outcome: CallOutcome,
    /// Exit status of a command where the tool wrote one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// Hashes out of `[branch hash] subject` lines of the output. Proof only together with [`Call::commits`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<String>,
}

/// How a tool call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// It did what it was asked.
    Ok,
    /// It ran and failed.
    Failed,
    /// It was not allowed; nothing happened.
    Denied,
    /// It goes on in the background or in a later result.
    Running,
}

/// Tokens. All counts are tokens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// API message id; `None` for a thread's running total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Model name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Input, without cache reads and writes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub input: u64,
    /// Output.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub output: u64,
    /// Input read from the provider's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    /// Input written to the provider's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    /// A running total of the thread: the last one counts, they are not added up.
    #[serde(default, skip_serializing_if = "is_false")]
    pub running_total: bool,
}

/// A change to a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileTouch {
    /// The path as written; relative paths are relative to the line's working directory.
    pub path: String,
    /// What was done.
    pub how: FileChange,
}

/// What was done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChange {
    /// Made or overwritten whole.
    Written,
    /// Changed in part.
    Edited,
    /// Removed.
    Deleted,
}

/// Where a title comes from; a later variant wins over an earlier one, then the later line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TitleVia {
    /// The tool's model wrote it.
    Generated,
    /// The user gave it.
    Custom,
}

/// A sign that the session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndMark {
    /// `/exit` or `/quit`.
    Exit,
    /// Claude's `cost-state` line, written when a process ends.
    CostState,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}
