//! The tags of a note (notes.md "Kinds"). AKB keeps them verbatim and in order, matches them exactly and knows
//! no structure in them, so what they mean is read and written here only.

use jiff::Timestamp;

use super::inline;
use crate::ids::{NativeId, Tool};

const SYNCED: &str = "last-synced:";
const DRAFTED_BY: &str = "drafted-by:";

/// An ordered list of tags without duplicates, with at most one `last-synced`. Tags of others (an outside
/// maintenance layer, a person) are kept where they stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoteTags(Vec<String>);

impl NoteTags {
    /// The tags that every note carries: `session`, the tool's, and `project:{name}` unless the name is empty.
    pub fn new(tool: Tool, project: Option<&str>) -> Self {
        let mut tags = Self::default();
        tags.add("session");
        tags.add(tool.tag());
        let project = project.map(inline::one_line).unwrap_or_default();
        if !project.is_empty() {
            tags.add(&format!("project:{project}"));
        }
        tags
    }

    /// Takes a list as a vault gives it. Of several `last-synced` the latest instant stays; one that is no
    /// instant stays as a foreign tag.
    pub fn parse(list: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let mut tags = Self::default();
        for tag in list {
            tags.add(tag.as_ref());
        }
        tags
    }

    /// Adds a tag unless it is there. A `last-synced` with a later instant takes the place of an earlier one.
    pub fn add(&mut self, tag: &str) {
        let tag = inline::one_line(tag);
        if tag.is_empty() {
            return;
        }
        match synced(&tag) {
            Some(at) => {
                if self.last_synced().is_none_or(|known| known < at) {
                    self.set_synced(&tag);
                }
            }
            None if self.has(&tag) => {}
            None => self.0.push(tag),
        }
    }

    /// Adds `session:{id}`, which only session notes carry.
    #[must_use]
    pub fn with_session(mut self, session: &NativeId) -> Self {
        self.add(&format!("session:{session}"));
        self
    }

    /// Sets the one `last-synced`: the instant of the last entry that the note covers.
    #[must_use]
    pub fn with_last_synced(mut self, at: Timestamp) -> Self {
        self.set_synced(&format!("{SYNCED}{at}"));
        self
    }

    /// Sets who drafted the note: `extractive`, or the name of a model's backend.
    #[must_use]
    pub fn with_drafter(mut self, drafter: &str) -> Self {
        self.0.retain(|tag| !tag.starts_with(DRAFTED_BY));
        self.add(&format!("{DRAFTED_BY}{drafter}"));
        self
    }

    /// Adds further tags (topics, `til_kind:*`, `impact:*`, …).
    #[must_use]
    pub fn with(mut self, tags: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        tags.into_iter().for_each(|tag| self.add(tag.as_ref()));
        self
    }

    /// The list for an update: what stands there, in its order, with the new tags added and the new
    /// `last-synced` and `drafted-by` in the place of the old. Nothing of others is lost.
    #[must_use]
    pub fn updated_by(&self, new: &Self) -> Self {
        let mut tags = self.clone();
        if let Some(drafter) = new.drafter() {
            tags = tags.with_drafter(drafter);
        }
        tags.with(new.iter())
    }

    /// Whether exactly this tag is there (tags are case-sensitive).
    pub fn has(&self, tag: &str) -> bool {
        self.0.iter().any(|known| known == tag)
    }

    /// The instant of `last-synced`.
    pub fn last_synced(&self) -> Option<Timestamp> {
        self.0.iter().find_map(|tag| synced(tag))
    }

    /// The name in `drafted-by:{drafter}`.
    pub fn drafter(&self) -> Option<&str> {
        self.0.iter().find_map(|tag| tag.strip_prefix(DRAFTED_BY))
    }

    /// The tags, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    fn set_synced(&mut self, tag: &str) {
        match self.0.iter().position(|known| synced(known).is_some()) {
            Some(at) => tag.clone_into(&mut self.0[at]),
            None => self.0.push(tag.to_owned()),
        }
    }
}

impl From<NoteTags> for Vec<String> {
    fn from(tags: NoteTags) -> Self {
        tags.0
    }
}

fn synced(tag: &str) -> Option<Timestamp> {
    tag.strip_prefix(SYNCED)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    #[test]
    fn a_session_note_carries_the_tags_of_the_contract_once() {
        let session = NativeId::new("s-1").expect("an id");
        let tags = NoteTags::new(Tool::Claude, Some("app"))
            .with_session(&session)
            .with_last_synced(at("2026-12-01T00:00:00Z"))
            .with_drafter("extractive")
            .with(["session", "rust"]);
        let list: Vec<String> = tags.into();
        assert_eq!(
            list,
            [
                "session",
                "claude-code",
                "project:app",
                "session:s-1",
                "last-synced:2026-12-01T00:00:00Z",
                "drafted-by:extractive",
                "rust"
            ]
        );
    }

    #[test]
    fn an_empty_project_gives_no_tag() {
        assert_eq!(NoteTags::new(Tool::Codex, Some(" ")).iter().count(), 2);
        assert_eq!(NoteTags::new(Tool::Codex, None).iter().count(), 2);
    }

    #[test]
    fn last_synced_is_compared_as_an_instant() {
        let tags = NoteTags::parse([
            "last-synced:2026-12-01T00:00:00+09:00",
            "x",
            "last-synced:2026-11-30T16:00:00.000Z",
        ]);
        assert_eq!(tags.last_synced(), Some(at("2026-11-30T16:00:00Z")));
        assert_eq!(tags.iter().collect::<Vec<_>>(), ["last-synced:2026-11-30T16:00:00.000Z", "x"]);
    }

    #[test]
    fn an_update_keeps_foreign_tags_and_never_goes_back() {
        let old = NoteTags::parse([
            "session",
            "idea_status:x",
            "last-synced:2026-12-02T00:00:00Z",
            "drafted-by:claude",
        ]);
        let new = NoteTags::default()
            .with_last_synced(at("2026-12-01T00:00:00Z"))
            .with_drafter("extractive")
            .with(["rust"]);
        let updated = old.updated_by(&new);
        assert_eq!(
            updated.iter().collect::<Vec<_>>(),
            [
                "session",
                "idea_status:x",
                "last-synced:2026-12-02T00:00:00Z",
                "drafted-by:extractive",
                "rust"
            ]
        );
    }

    #[test]
    fn a_last_synced_that_is_no_instant_is_kept_as_foreign() {
        let tags =
            NoteTags::parse(["last-synced:yesterday"]).with_last_synced(at("2026-12-01T00:00:00Z"));
        assert!(tags.has("last-synced:yesterday"));
        assert_eq!(tags.last_synced(), Some(at("2026-12-01T00:00:00Z")));
    }
}
