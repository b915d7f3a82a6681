//! Foreign lines become typed entries here, and nowhere else: behind this module nothing sees the JSON of a
//! tool's making.
//!
//! Parsing never fails. A line that cannot be read is an entry of kind [`EntryKind::Unreadable`], an unknown
//! shape one of kind [`EntryKind::Unknown`]; the lines after it are not affected (formats.md, part 0).
//!
//! Two questions are asked of a line at different times: [`Reader::read`] gives the facts that go into the
//! ledger and holds no text; [`texts`] gives the prompt or answer when somebody reads it through its place.

pub mod claude;
pub mod codex;
pub mod evidence;
pub mod frame;
mod json;
mod time;

use serde::{Deserialize, Serialize};

pub use self::time::WrittenTime;
use crate::ids::{EntryId, NativeId, Tool};

/// What one line means, without its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The class of the line.
    pub kind: EntryKind,
    /// Its own time, if it carries one.
    pub at: Option<WrittenTime>,
    /// Its identity across files, if the line says something that must not be counted twice.
    pub identity: Option<EntryId>,
    /// The session id written on the line itself (an alias of the file's session when it differs).
    pub stamp: Option<NativeId>,
    /// The session that the line says it was copied from (fork, resume, subagent history).
    pub copied_from: Option<NativeId>,
    /// Where and with what the tool was at work.
    pub context: Context,
    /// What the line proves.
    pub facts: Vec<Fact>,
}

impl Entry {
    /// An entry of `kind` that says nothing more.
    pub fn bare(kind: EntryKind) -> Self {
        Self {
            kind,
            at: None,
            identity: None,
            stamp: None,
            copied_from: None,
            context: Context::default(),
            facts: Vec::new(),
        }
    }

    /// A line that could not be read, and why.
    pub fn unreadable(reason: &str) -> Self {
        Self { facts: vec![Fact::Reason(reason.to_owned())], ..Self::bare(EntryKind::Unreadable) }
    }

    /// A readable line of a shape that is not known; `shape` names its type, never its text.
    pub fn unknown(shape: &str) -> Self {
        Self { facts: vec![Fact::Reason(shape.to_owned())], ..Self::bare(EntryKind::Unknown) }
    }
}

/// The class of an entry. The names stand in the ledger's `kind` column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// Text that a person typed (or a script on the person's behalf: the session's task).
    Prompt,
    /// Text of the model.
    Answer,
    /// The model asks for a tool.
    ToolCall,
    /// What a tool gave back.
    ToolResult,
    /// The model's own reasoning. Noise.
    Thinking,
    /// A built-in command of the tool (`/exit`, `/clear`, …) or its echo. Noise.
    Command,
    /// Text in the user's place that no person wrote: reminders, hooks, notifications, a parent agent's prompt.
    Injected,
    /// The tool's own state: titles, modes, snapshots, session headers. Noise.
    State,
    /// Counters and progress. Noise.
    Telemetry,
    /// The history was compacted here.
    Compaction,
    /// Readable, of a shape that is not known.
    Unknown,
    /// Not readable.
    Unreadable,
}

impl EntryKind {
    /// The name in the ledger.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Answer => "answer",
            Self::ToolCall => "tool_call",
            Self::ToolResult => "tool_result",
            Self::Thinking => "thinking",
            Self::Command => "command",
            Self::Injected => "injected",
            Self::State => "state",
            Self::Telemetry => "telemetry",
            Self::Compaction => "compaction",
            Self::Unknown => "unknown",
            Self::Unreadable => "unreadable",
        }
    }

    /// Reads what [`EntryKind::as_str`] wrote.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "prompt" => Self::Prompt,
            "answer" => Self::Answer,
            "tool_call" => Self::ToolCall,
            "tool_result" => Self::ToolResult,
            "thinking" => Self::Thinking,
            "command" => Self::Command,
            "injected" => Self::Injected,
            "state" => Self::State,
            "telemetry" => Self::Telemetry,
            "compaction" => Self::Compaction,
            "unknown" => Self::Unknown,
            "unreadable" => Self::Unreadable,
            _ => return None,
        })
    }

    /// Work, as opposed to what the seed calls noise: only such an entry re-opens a closed session.
    pub fn is_meaningful(self) -> bool {
        matches!(self, Self::Prompt | Self::Answer | Self::ToolCall | Self::ToolResult)
    }
}

/// Where and with what a tool was at work when it wrote a line. Interned in the ledger: it repeats endlessly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Context {
    /// Working directory as written; never resolved or trusted as a path here.
    pub cwd: Option<String>,
    /// Git branch as written.
    pub branch: Option<String>,
    /// The tool's version.
    pub version: Option<String>,
    /// The subagent's id when the line belongs to one: `sidechain` for those that stand in the main file.
    pub agent: Option<String>,
}

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

/// What a source is to its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The session's own transcript.
    Main,
    /// A subagent's transcript; its entries belong to the parent's session.
    Subagent {
        /// The subagent's id.
        agent: String,
    },
    /// A thread that a tool runs for itself (review, guardian, …) and that names no parent.
    Machine,
}

/// Which session a source's entries belong to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceIdentity {
    /// The session (for a subagent: the parent's).
    pub session: NativeId,
    /// What the source is to it.
    pub role: Role,
    /// The session that this one was forked from, if the head says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<NativeId>,
}

/// Reads the lines of one source in order. It is saved beside the offset, in the same transaction, so that a
/// restart goes on exactly where the last commit ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reader {
    /// Claude Code's grammar.
    Claude(claude::Reader),
    /// Codex's three grammars.
    Codex(codex::Reader),
}

impl Reader {
    /// Starts at the first line of a source. `path` is the path below the tool's root, with `/` between
    /// components: names carry identity (`<session>.jsonl`, `subagents/agent-<id>.jsonl`, `rollout-…-<id>.jsonl`).
    pub fn new(tool: Tool, path: &str) -> Self {
        match tool {
            Tool::Claude => Self::Claude(claude::Reader::new(path)),
            Tool::Codex => Self::Codex(codex::Reader::new(path)),
        }
    }

    /// Reads the next line (without its `\n`).
    pub fn read(&mut self, line: &[u8]) -> Entry {
        match self {
            Self::Claude(reader) => reader.read(line),
            Self::Codex(reader) => reader.read(line),
        }
    }

    /// Whose the lines are; `None` while the lines read so far do not tell.
    pub fn identity(&self) -> Option<SourceIdentity> {
        match self {
            Self::Claude(reader) => reader.identity(),
            Self::Codex(reader) => reader.identity(),
        }
    }

    /// Whose the lines are when no more will come that could tell: the file's name decides.
    pub fn identity_by_name(&self) -> Option<SourceIdentity> {
        match self {
            Self::Claude(reader) => reader.identity_by_name(),
            Self::Codex(reader) => reader.identity_by_name(),
        }
    }
}

/// Text that stands on a line, for those who draft, show or search. It is never stored in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// A person's prompt, without wrappers and injected context.
    Prompt(String),
    /// The model's text.
    Answer(String),
    /// A title of the session.
    Title(String),
    /// A tool call: its name and the one argument that tells most (command, path, query, URL).
    Call {
        /// Call id.
        id: String,
        /// Tool name.
        name: String,
        /// Command line, path, query or URL; empty if there is none.
        argument: String,
    },
    /// A tool's output.
    Output {
        /// Call id.
        call: String,
        /// The text, as far as it is text.
        text: String,
    },
}

/// The texts on a line, in the order in which they stand. Empty for noise and for lines that cannot be read.
pub fn texts(tool: Tool, line: &[u8]) -> Vec<Text> {
    match tool {
        Tool::Claude => claude::texts(line),
        Tool::Codex => codex::texts(line),
    }
}
