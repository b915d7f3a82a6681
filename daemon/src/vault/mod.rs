//! Where notes go. The operations are AKB's (akb.md, part 5), so that the local directory and a server are used
//! alike: an explicit slug is the one create-once key, an update may name the version that it is based on, and a
//! URI is taken from what the vault returned.

mod front_matter;
mod local;
mod place;

use std::path::PathBuf;

use jiff::Timestamp;
use majordomus_core::note::NoteStatus;

pub use self::local::LocalVault;

/// A place for notes.
#[derive(Debug)]
pub enum Vault {
    /// A directory of Markdown files.
    Local(LocalVault),
}

/// A note to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct PutNote {
    /// Path of the collection, `sessions/learnings`; made when it is not there.
    pub collection: String,
    /// File name without `.md`; the create-once key.
    pub slug: String,
    /// Plain text.
    pub title: String,
    /// AKB's `type`.
    pub kind: String,
    /// Whether it is in use.
    pub status: NoteStatus,
    /// In order.
    pub tags: Vec<String>,
    /// Plain text.
    pub summary: String,
    /// Markdown without front matter; white space around it is not kept.
    pub body: String,
    /// URIs of the notes that this one came from.
    pub depends_on: Vec<String>,
    /// URIs of notes on the same matter.
    pub related_to: Vec<String>,
    /// When it is made.
    pub at: Timestamp,
}

/// A new text for a note, and what else changes.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateNote {
    /// Replaces the whole body.
    pub body: String,
    /// `None` leaves it as it is, as in the fields below.
    pub title: Option<String>,
    /// Replaces the whole list.
    pub tags: Option<Vec<String>>,
    /// Plain text.
    pub summary: Option<String>,
    /// Whether it is in use.
    pub status: Option<NoteStatus>,
    /// The version that the new text is based on; another one in the vault is a [`VaultError::Conflict`].
    pub expected: Option<Version>,
    /// What changed, for vaults that keep a history.
    pub message: String,
    /// When.
    pub at: Timestamp,
}

/// Which state of a note: opaque, to be compared only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Version(pub String);

/// Where a note was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its name in the vault, for [`Vault::get`], [`Vault::update`] and relations.
    pub uri: String,
    /// Its path, for links in bodies: `sessions/learnings/x.md`.
    pub path: String,
    /// Its state now.
    pub version: Version,
}

/// A note as it stands in the vault.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredNote {
    /// All but its text.
    pub head: NoteHead,
    /// Markdown without front matter.
    pub body: String,
}

/// A note without its text, as listings have it.
#[derive(Clone, Debug, PartialEq)]
pub struct NoteHead {
    /// Its name in the vault.
    pub uri: String,
    /// Its path.
    pub path: String,
    /// Plain text.
    pub title: String,
    /// AKB's `type`.
    pub kind: String,
    /// Whether it is in use.
    pub status: NoteStatus,
    /// In order.
    pub tags: Vec<String>,
    /// Plain text.
    pub summary: String,
    /// Its state.
    pub version: Version,
    /// Last change, if the vault knows it.
    pub updated: Option<Timestamp>,
}

/// Why a vault did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The slug is taken, or the note is not in the expected version any more. Read it and decide anew.
    #[error("{path} is there already or was changed since it was read; read it again and merge")]
    Conflict {
        /// The note's path in the vault.
        path: String,
    },
    /// There is no such note.
    #[error("there is no note {uri}; it was deleted or moved, and is made again only when asked")]
    NotFound {
        /// What was asked for.
        uri: String,
    },
    /// The vault never does this; trying again does not help.
    #[error("the vault refused {what}: {reason}")]
    Refused {
        /// The slug, collection, URI or file.
        what: String,
        /// Why.
        reason: &'static str,
    },
    /// The vault cannot be reached now; to be tried again.
    #[error("the vault at {place} cannot be reached: {reason}")]
    Unreachable {
        /// Address or directory.
        place: String,
        /// What happened.
        reason: String,
    },
    /// The file system failed; to be tried again.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// A verb.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What happened.
        source: std::io::Error,
    },
}

#[expect(clippy::unused_async, reason = "a vault on a server waits for the network")]
impl Vault {
    /// Makes a note. A slug that is taken is a [`VaultError::Conflict`], and nothing is written.
    pub async fn put(&self, note: PutNote) -> Result<Stored, VaultError> {
        match self {
            Self::Local(vault) => vault.put(&note),
        }
    }

    /// Reads a note, archived or not.
    pub async fn get(&self, uri: &str) -> Result<StoredNote, VaultError> {
        match self {
            Self::Local(vault) => vault.get(uri),
        }
    }

    /// Changes a note.
    pub async fn update(&self, uri: &str, change: UpdateNote) -> Result<Stored, VaultError> {
        match self {
            Self::Local(vault) => vault.update(uri, &change),
        }
    }

    /// The notes of exactly this collection, last changed first. An unknown collection is empty.
    pub async fn browse(
        &self,
        collection: &str,
        include_archived: bool,
    ) -> Result<Vec<NoteHead>, VaultError> {
        match self {
            Self::Local(vault) => vault.browse(collection, include_archived),
        }
    }

    /// The notes of this collection and those below it which hold all words of the query (none: every note) and
    /// any of the tags (none: whatever their tags), without archived ones. A hint, never a proof that a note is
    /// not there.
    pub async fn search(
        &self,
        query: &str,
        collection: &str,
        tags: &[String],
    ) -> Result<Vec<NoteHead>, VaultError> {
        match self {
            Self::Local(vault) => vault.search(query, collection, tags),
        }
    }
}
