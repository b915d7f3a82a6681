//! Claude Code's lines (formats.md part 1).

use serde::{Deserialize, Serialize};

use super::{Entry, SourceIdentity, Text};

/// Reads one Claude Code transcript.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reader {}

impl Reader {
    /// Starts at the first line of the file at `path` (below the root).
    pub fn new(_path: &str) -> Self {
        Self {}
    }

    /// Reads the next line.
    pub fn read(&mut self, _line: &[u8]) -> Entry {
        Entry::unknown("stub")
    }

    /// See [`super::Reader::identity`].
    pub fn identity(&self) -> Option<SourceIdentity> {
        None
    }

    /// See [`super::Reader::identity_by_name`].
    pub fn identity_by_name(&self) -> Option<SourceIdentity> {
        None
    }
}

/// See [`super::texts`].
pub fn texts(_line: &[u8]) -> Vec<Text> {
    Vec::new()
}
