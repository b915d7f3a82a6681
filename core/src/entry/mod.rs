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
mod fact;
pub mod frame;
mod json;
mod shape;
mod time;

use serde::{Deserialize, Serialize};

pub use self::fact::{
    AnswerVia, Call, CallOutcome, CallResult, EndMark, Fact, FileChange, FileTouch, PromptVia,
    TitleVia, Usage,
};
pub use self::shape::{ShapeCount, Shapes};
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
    /// The line's type and the types below it, with `/` between them; never a text.
    pub shape: String,
    /// Members of the line that are not known.
    pub unknown: Vec<String>,
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
            shape: String::new(),
            unknown: Vec::new(),
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

    /// The tool's version, as the lines read so far tell it.
    pub fn version(&self) -> Option<&str> {
        match self {
            Self::Claude(reader) => reader.version(),
            Self::Codex(reader) => reader.version(),
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
