//! What a note is and how its text is put together and merged (notes.md). Pure: text in, text out; no vault, no
//! ledger, no model is known here.

pub mod fields;
pub mod human;
pub mod inline;
pub mod session;
pub mod slug;
pub mod sources;
mod tags;
pub mod timeline;

use serde::{Deserialize, Serialize};

pub use self::tags::NoteTags;

/// The kinds of notes (notes.md "Kinds").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// The report on one session.
    Session,
    /// Something learned.
    Til,
    /// An idea about the project.
    Idea,
    /// Postponed work.
    Task,
    /// A decision with its rejected alternatives.
    Decision,
}

impl NoteKind {
    /// All kinds, in the order in which Knowledge Produced lists them, the session first.
    pub const ALL: [Self; 5] = [Self::Session, Self::Til, Self::Idea, Self::Task, Self::Decision];

    /// The name in the ledger, in the config and in `--json` outputs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Til => "til",
            Self::Idea => "idea",
            Self::Task => "task",
            Self::Decision => "decision",
        }
    }

    /// AKB's `type` of a document.
    pub fn akb_type(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Til => "reference",
            Self::Idea => "plan",
            Self::Task => "task",
            Self::Decision => "decision",
        }
    }

    /// Where notes of this kind stand in a vault.
    pub fn collection(self) -> &'static str {
        match self {
            Self::Session => "sessions",
            Self::Til => "sessions/learnings",
            Self::Idea => "sessions/ideas",
            Self::Task => "sessions/tasks",
            Self::Decision => "sessions/decisions",
        }
    }

    /// Icon and word of its lines in Knowledge Produced; none for the session itself.
    pub fn produced_as(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Session => None,
            Self::Til => Some(("🧠", "TIL")),
            Self::Idea => Some(("💡", "Idea")),
            Self::Task => Some(("✅", "Task")),
            Self::Decision => Some(("📐", "Decision")),
        }
    }
}

/// Whether a note is in use. AKB knows no other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoteStatus {
    /// Not ready; AKB's default.
    Draft,
    /// In use: what a drafter writes.
    Active,
    /// Put away: hidden from search and listings.
    Archived,
}

impl NoteStatus {
    /// The word in AKB and in front matter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Active => "active",
            Self::Archived => "archived",
        }
    }

    /// Reads what [`NoteStatus::as_str`] wrote; `None` for anything else.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Draft, Self::Active, Self::Archived].into_iter().find(|s| s.as_str() == name)
    }
}

/// A note as it goes to a vault. Metadata travels beside the body, never in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// What it is.
    pub kind: NoteKind,
    /// Plain text, one line.
    pub title: String,
    /// Plain text, one to three sentences.
    pub summary: String,
    /// Whether it is in use.
    pub status: NoteStatus,
    /// Its tags.
    pub tags: NoteTags,
    /// Markdown: compiled truth and timeline.
    pub body: String,
}
