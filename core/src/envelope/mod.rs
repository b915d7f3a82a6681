//! The envelope: the immutable record of one closed episode. Everything in it is derived, nothing is authored
//! but the optional body, and no text of a prompt, answer, tool result, plan or decision stands in it.
//!
//! Selection is by session stamp within the episode's ledger range, never by a window of time (seed 001): the
//! caller hands in exactly those events. The same events and observations give the same bytes.
//!
//! Absent and empty are different facts: what was looked for and not found is an empty list, what was not
//! looked for says so and why.

pub mod git;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use self::git::{CommitsBetween, GitFacts};
use crate::entry::FileChange;
use crate::ids::{LedgerSeq, SessionKey, Tool};
use crate::session::{CloseReason, LastWord, Summary, Thread, Tokens};

/// Version of the envelope's layout. A reader refuses what is newer than it knows.
pub const SCHEMA_VERSION: u32 = 1;

/// The record. Field order is the order in the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// Always `majordomus.envelope`.
    pub schema: String,
    /// See [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The envelope's id.
    pub envelope_id: String,
    /// SHA-256 of the envelope closed before it on this machine; `null` for the first.
    pub previous_sha256: Option<String>,
    /// Whose episode it is.
    pub session: Identity,
    /// The machine's name.
    pub host: String,
    /// Version of the daemon that closed it.
    pub daemon_version: String,
    /// First time in the episode; absent when no line carries one.
    pub started_at: Option<Timestamp>,
    /// Last activity.
    pub last_activity: Option<Timestamp>,
    /// When the episode ended: for an idle close the last activity plus the idle time.
    pub closed_at: Timestamp,
    /// Why it was closed.
    pub close_reason: CloseReason,
    /// How it ended.
    pub outcome: Outcome,
    /// Git at start and end, and the commits between.
    pub git: Git,
    /// How much was done.
    pub counts: Counts,
    /// What the episode refers to, by the identity that each thing has.
    pub references: References,
    /// The close-out's rows by their ids.
    pub closeout: Closeout,
    /// What somebody wrote on closing, if anybody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// Whose episode an envelope records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// The tool.
    pub tool: Tool,
    /// Its versions, in the order in which they were met.
    pub tool_versions: Vec<String>,
    /// The tool's id for the session.
    pub native_id: String,
    /// Other ids under which it can be found.
    pub aliases: Vec<String>,
    /// Number of the episode, from 1.
    pub episode: u32,
    /// The session that it was forked from.
    pub parent: Option<SessionKey>,
    /// The project's name; absent when no directory is known.
    pub project: Option<String>,
    /// Working directories, in the order in which they were met.
    pub working_directories: Vec<String>,
    /// What ran the session, if a script did.
    pub scripted_by: Option<String>,
}

/// How an episode ended, and by which rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The outcome.
    pub value: OutcomeValue,
    /// The rule that gave it.
    pub rule: String,
}

/// How an episode ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutcomeValue {
    /// The model had the last word.
    Completed,
    /// The user stopped it.
    Interrupted,
    /// It stopped in the middle.
    Abandoned,
    /// The events do not tell.
    Unknown,
}

impl OutcomeValue {
    /// The name in envelope and ledger.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Interrupted => "interrupted",
            Self::Abandoned => "abandoned",
            Self::Unknown => "unknown",
        }
    }
}

impl Outcome {
    /// Reads the outcome from the last turn of the session's own thread.
    pub fn of(last_word: LastWord) -> Self {
        let (value, rule) = match last_word {
            LastWord::Answer => (OutcomeValue::Completed, "the model had the last word"),
            LastWord::Interrupted => {
                (OutcomeValue::Interrupted, "the user interrupted the last turn")
            }
            LastWord::Prompt => (OutcomeValue::Abandoned, "the last prompt has no answer"),
            LastWord::OpenCall => (OutcomeValue::Abandoned, "the last tool call has no result"),
            LastWord::Result => (OutcomeValue::Abandoned, "the last tool result has no answer"),
            LastWord::ApiError => (OutcomeValue::Abandoned, "the provider failed in the last turn"),
            LastWord::None => (OutcomeValue::Unknown, "no prompt, answer or tool call"),
        };
        Self { value, rule: rule.to_owned() }
    }
}

/// Git at both ends of an episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Git {
    /// When the episode opened.
    pub start: GitFacts,
    /// When it was closed.
    pub end: GitFacts,
    /// The commits from the start's head to the end's.
    pub commits_between: CommitsBetween,
}

/// How much was done in an episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Ledger events made from lines.
    pub events: u64,
    /// Prompts of a person.
    pub prompts: u64,
    /// Answers.
    pub answers: u64,
    /// Tool calls of the session's own thread, by name.
    pub tool_calls: BTreeMap<String, u64>,
    /// Calls that failed or were denied.
    pub failures: u64,
    /// Tokens by model, each message counted once.
    pub tokens: BTreeMap<String, Tokens>,
    /// Time at work in seconds: gaps between entries, each counted up to five minutes.
    pub active_time_s: i64,
    /// Lines that could not be read.
    pub unreadable_lines: u64,
    /// Lines of a shape that is not known.
    pub unknown_lines: u64,
}

/// What was looked for, or why not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Looked<T> {
    /// It was looked for; the list may be empty.
    For(Vec<T>),
    /// It was not, or could not be.
    Not {
        /// Why.
        absent: String,
    },
}

impl<T> Looked<T> {
    /// Not looked for, because `reason`.
    pub fn not(reason: &str) -> Self {
        Self::Not { absent: reason.to_owned() }
    }
}

/// References, each by the identity that the thing has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct References {
    /// First event of the episode.
    pub first_seq: LedgerSeq,
    /// Last event of the episode before its close.
    pub last_seq: LedgerSeq,
    /// Commits that the transcript proves, subagents' included.
    pub commits: Vec<String>,
    /// Files that were changed, subagents' included.
    pub files: Vec<FileRef>,
    /// Follow-up tasks.
    pub tasks: Looked<String>,
    /// Issues.
    pub issues: Looked<String>,
    /// Pull and merge requests.
    pub pull_requests: Vec<String>,
    /// Events with a plan.
    pub plans: Vec<LedgerSeq>,
    /// Decisions.
    pub decisions: Looked<LedgerSeq>,
    /// Events with questions to the user.
    pub questions: Vec<LedgerSeq>,
    /// Events at which the history was compacted.
    pub checkpoints: Vec<LedgerSeq>,
    /// Hand-overs to another tool.
    pub handovers: Looked<LedgerSeq>,
    /// Web addresses that were fetched.
    pub urls: Vec<String>,
    /// Subagents.
    pub subagents: Vec<SubagentRef>,
    /// MCP servers that were called.
    pub mcp_servers: Vec<String>,
    /// Hash of the archived transcript.
    pub archive: Looked<String>,
}

/// A file that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRef {
    /// Its path as the tool wrote it.
    pub path: String,
    /// How it was changed last.
    pub how: FileChange,
}

/// A subagent of the episode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentRef {
    /// Its id.
    pub id: String,
    /// Its tool calls.
    pub tool_calls: u64,
}

/// The close-out's rows (envelope.md, checklist). Each step that did not run says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Closeout {
    /// The session_close record.
    pub session_close: Looked<String>,
    /// Observations.
    pub observations: Looked<String>,
    /// Interactions.
    pub interactions: Looked<String>,
    /// Follow-up tasks.
    pub tasks: Looked<String>,
    /// Entities without an observation, interaction or task row.
    pub gaps: Looked<String>,
}

/// What a close knows beside the events.
#[derive(Clone, Debug)]
pub struct CloseFacts {
    /// Hash of the envelope before it.
    pub previous_sha256: Option<String>,
    /// The session.
    pub key: SessionKey,
    /// Other ids of it.
    pub aliases: Vec<String>,
    /// The session that it was forked from.
    pub parent: Option<SessionKey>,
    /// The episode's number.
    pub episode: u32,
    /// First event of the episode.
    pub first: LedgerSeq,
    /// Last event of the episode.
    pub last: LedgerSeq,
    /// The machine's name.
    pub host: String,
    /// The daemon's version.
    pub daemon_version: String,
    /// When the episode ended.
    pub closed_at: Timestamp,
    /// Why.
    pub reason: CloseReason,
    /// Git at both ends.
    pub git: Git,
    /// An authored summary.
    pub body: Option<String>,
}

/// Why steps of the close-out did not run.
const NOT_YET: &str = "not derived by this version";

impl Envelope {
    /// Derives the record from the summary of the episode's events and what the close knows beside them.
    pub fn derive(summary: &Summary, facts: CloseFacts) -> Self {
        let threads = || std::iter::once(&summary.own).chain(summary.agents.values());
        Self {
            schema: "majordomus.envelope".to_owned(),
            schema_version: SCHEMA_VERSION,
            envelope_id: envelope_id(&facts.key, facts.episode),
            previous_sha256: facts.previous_sha256,
            session: Identity {
                tool: facts.key.tool,
                tool_versions: summary.versions.clone(),
                native_id: facts.key.native.to_string(),
                aliases: facts.aliases,
                episode: facts.episode,
                parent: facts.parent,
                project: summary.project(),
                working_directories: summary.cwds.clone(),
                scripted_by: summary.scripted.clone(),
            },
            host: facts.host,
            daemon_version: facts.daemon_version,
            started_at: summary.started_at.as_ref().map(|moment| moment.at),
            last_activity: summary.active_until,
            closed_at: facts.closed_at,
            close_reason: facts.reason,
            outcome: Outcome::of(summary.last_word),
            git: facts.git,
            counts: Counts {
                events: summary.n_events,
                prompts: summary.own.prompts,
                answers: summary.own.answers,
                tool_calls: summary.own.tool_calls.clone(),
                failures: threads().map(|thread| thread.failures).sum(),
                tokens: summary.tokens.clone(),
                active_time_s: summary.active_s,
                unreadable_lines: summary.odd_lines.0,
                unknown_lines: summary.odd_lines.1,
            },
            references: References {
                first_seq: facts.first,
                last_seq: facts.last,
                commits: commits(threads()),
                files: files(threads()),
                tasks: Looked::not(NOT_YET),
                issues: Looked::not(NOT_YET),
                pull_requests: summary.pull_requests.clone(),
                plans: summary.plans.clone(),
                decisions: Looked::not(NOT_YET),
                questions: summary.questions.clone(),
                checkpoints: summary.checkpoints.clone(),
                handovers: Looked::not(NOT_YET),
                urls: summary.urls.clone(),
                subagents: subagents(summary),
                mcp_servers: summary.mcp_servers.clone(),
                archive: Looked::not(NOT_YET),
            },
            closeout: Closeout {
                session_close: Looked::not(NOT_YET),
                observations: Looked::not(NOT_YET),
                interactions: Looked::not(NOT_YET),
                tasks: Looked::not(NOT_YET),
                gaps: Looked::not(NOT_YET),
            },
            body: facts.body,
        }
    }

    /// The file's bytes: JSON, indented by two, ending with a line end.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// SHA-256 in hex, as `sha256sum` prints it.
pub fn sha256_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a String cannot fail.
        let written = write!(hex, "{byte:02x}");
        debug_assert!(written.is_ok());
    }
    hex
}

/// The id of an episode's envelope: it follows from what it records, so that a close done again after a crash
/// has the same one.
pub fn envelope_id(key: &SessionKey, episode: u32) -> String {
    let name = format!("majordomus:envelope:{}:{}:{episode}", key.tool, key.native);
    uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, name.as_bytes()).to_string()
}

/// Where an envelope lies below the state directory.
pub fn envelope_path(key: &SessionKey, episode: u32) -> String {
    format!("sessions/{}/{}/{episode}.json", key.tool, key.native.file_name())
}

fn commits<'a>(threads: impl Iterator<Item = &'a Thread>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for hash in threads.flat_map(|thread| &thread.commits) {
        if !all.contains(hash) {
            all.push(hash.clone());
        }
    }
    all
}

fn files<'a>(threads: impl Iterator<Item = &'a Thread>) -> Vec<FileRef> {
    let all: BTreeMap<&String, FileChange> =
        threads.flat_map(|thread| &thread.files).map(|(path, how)| (path, *how)).collect();
    all.into_iter().map(|(path, how)| FileRef { path: path.clone(), how }).collect()
}

fn subagents(summary: &Summary) -> Vec<SubagentRef> {
    let reference = |(id, thread): (&String, &Thread)| SubagentRef {
        id: id.clone(),
        tool_calls: thread.n_calls(),
    };
    summary.agents.iter().map(reference).collect()
}

/// Identity fields that an authored summary must not set: the record's identity is computed (seed 001).
const IDENTITY_FIELDS: &[&str] = &[
    "session_id",
    "native_id",
    "envelope_id",
    "episode",
    "schema",
    "schema_version",
    "tool_version",
    "parent_session",
    "host",
    "daemon_version",
    "previous_sha256",
    "started_at",
    "closed_at",
    "last_activity",
    "close_reason",
    "outcome",
    "start_head",
    "end_head",
    "start_branch",
    "end_branch",
    "start_working_tree",
    "end_working_tree",
];

/// The identity field that an authored summary tries to set, as a front-matter or `key:` line.
pub fn identity_field(summary: &str) -> Option<&'static str> {
    summary.lines().find_map(|line| {
        let line = line.trim_start_matches(['-', '*', '>', ' ', '\t', '"', '\'', '`', '\u{feff}']);
        let (key, _) = line.split_once([':', '='])?;
        let key = key.trim().trim_matches(['"', '\'', '`', '*']).trim();
        let key = key.to_ascii_lowercase().replace(['-', ' '], "_");
        IDENTITY_FIELDS.iter().copied().find(|field| *field == key)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NativeId;

    fn key() -> SessionKey {
        SessionKey { tool: Tool::Claude, native: NativeId::new("0b2c").expect("an id") }
    }

    #[test]
    fn a_summary_with_an_identity_field_is_recognised_however_it_is_written() {
        for hostile in [
            "session_id: x",
            "text\nstarted_at: 2026",
            "---\nclosed_at: now\n---\n",
            "  - Envelope-Id : 1",
            "\"start_head\": \"abc\"",
            "**session id**: 5",
        ] {
            assert!(identity_field(hostile).is_some(), "{hostile}");
        }
        for plain in ["We fixed the parser.", "Next: ship it", "see https://example.com:80/x"] {
            assert_eq!(identity_field(plain), None, "{plain}");
        }
    }

    #[test]
    fn an_envelopes_id_and_path_follow_from_what_it_records() {
        assert_eq!(envelope_id(&key(), 1), envelope_id(&key(), 1));
        assert_ne!(envelope_id(&key(), 1), envelope_id(&key(), 2));
        assert_eq!(envelope_path(&key(), 2), "sessions/claude/0b2c/2.json");
    }

    #[test]
    fn a_hash_is_what_sha256sum_prints() {
        assert_eq!(
            sha256_hex(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn absent_and_empty_are_different_facts() {
        let empty = serde_json::to_string(&Looked::<String>::For(Vec::new())).expect("json");
        let absent = serde_json::to_string(&Looked::<String>::not("why")).expect("json");
        assert_eq!((empty.as_str(), absent.as_str()), ("[]", r#"{"absent":"why"}"#));
    }
}
