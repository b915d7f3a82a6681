//! From a session's story to the draft of its note. Pure: the story is handed in, every statement of the draft
//! names what proves it, and what cannot be proven is dropped before anything is stored (notes.md "Trust").

mod check;
pub mod extractive;
#[cfg(test)]
mod fixture;
mod questions;
mod redact;
mod rounds;
mod speech;
mod wording;

use jiff::Timestamp;

pub use self::check::{Checked, Rejected, Rejection, check_evidence};
pub use self::redact::Redactor;
pub use self::speech::title as title_of;
use crate::entry::{CallOutcome, FileTouch};
use crate::ids::{LedgerSeq, SessionKey};
use crate::note::inline;
use crate::note::session::{Commit, Question, SessionSections, number_questions};

/// What is known of a session, with the texts read through their places.
#[derive(Clone, Debug, PartialEq)]
pub struct Story {
    /// Whose it is.
    pub key: SessionKey,
    /// The project's name.
    pub project: Option<String>,
    /// The working directory; paths below it are shown relative to it.
    pub cwd: Option<String>,
    /// The title that the tool or the user gave.
    pub title: Option<String>,
    /// First entry.
    pub started_at: Timestamp,
    /// Last entry.
    pub last_at: Timestamp,
    /// Prompts, answers and calls, in causal order, without noise.
    pub turns: Vec<Turn>,
    /// Files that tools changed.
    pub files: Vec<FileTouch>,
    /// Commits that tool results or Git prove, first to last.
    pub commits: Vec<StoryCommit>,
    /// Web addresses that were fetched or opened.
    pub urls: Vec<String>,
    /// Addresses of pull or merge requests.
    pub pull_requests: Vec<String>,
    /// Items of the last to-do list that are not finished.
    pub open_todos: u32,
}

/// Whether two hashes, short or full, name one commit.
pub fn is_same_commit(a: &str, b: &str) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

/// A commit of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoryCommit {
    /// Hash, short or full.
    pub hash: String,
    /// First line of its message, if known.
    pub subject: Option<String>,
    /// The call whose result proves it, if a tool's result does.
    pub made_by: Option<LedgerSeq>,
}

/// One thing that was said or done.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Its event.
    pub seq: LedgerSeq,
    /// When, if the entry says so.
    pub at: Option<Timestamp>,
    /// What.
    pub what: TurnText,
}

/// What was said or done.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnText {
    /// A person's prompt.
    Prompt(String),
    /// The model's text.
    Answer(String),
    /// A tool call.
    Call {
        /// The tool's name.
        name: String,
        /// The command line, path, query or address; empty if there is none.
        argument: String,
        /// How it went.
        outcome: CallOutcome,
    },
}

/// What proves a statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Evidence {
    /// A line of the ledger.
    Event(LedgerSeq),
    /// A commit's hash.
    Commit(String),
    /// A file's path, as the story has it.
    File(String),
}

/// A sentence or bullet and what proves it.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// One line of inline Markdown; foreign text in it is inert.
    pub text: String,
    /// Never empty in a draft that passed [`check_evidence`].
    pub evidence: Vec<Evidence>,
}

/// Sentences that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Paragraph {
    /// In order.
    pub sentences: Vec<Statement>,
}

/// The draft of a session note.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionDraft {
    /// Plain text, one line.
    pub title: String,
    /// Two or three sentences.
    pub summary: Vec<Statement>,
    /// In the order of events.
    pub narrative: Vec<Paragraph>,
    /// Questions to the user that got no reply.
    pub questions: Vec<Statement>,
    /// Commits, first to last.
    pub commits: Vec<StoryCommit>,
    /// Paths to show, in order.
    pub files: Vec<String>,
    /// Web addresses and pull requests; those that do not last are left out when the note is rendered.
    pub sources: Vec<String>,
    /// Tags for topics.
    pub topics: Vec<String>,
    /// What the timeline entry says; `None` when nothing is new since the last one.
    pub entry: Option<Statement>,
}

impl SessionDraft {
    /// The sections of the note's body. `asked_before` are the open questions that the note lists now: those
    /// which are still open keep their numbers.
    pub fn sections(&self, asked_before: &[Question]) -> SessionSections {
        let questions: Vec<String> = self.questions.iter().map(|q| q.text.clone()).collect();
        SessionSections {
            title: self.title.clone(),
            summary: join(&self.summary),
            narrative: self.narrative.iter().map(|paragraph| join(&paragraph.sentences)).collect(),
            commits: self
                .commits
                .iter()
                .map(|commit| Commit { hash: commit.hash.clone(), subject: commit.subject.clone() })
                .collect(),
            files: self.files.clone(),
            sources: self.sources.clone(),
            produced: Vec::new(),
            questions: number_questions(asked_before, &questions),
        }
    }

    /// The summary as plain text, for the note's `summary` field.
    pub fn plain_summary(&self) -> String {
        inline::plain(&join(&self.summary))
    }
}

fn join(statements: &[Statement]) -> String {
    statements.iter().map(|statement| statement.text.as_str()).collect::<Vec<_>>().join(" ")
}
