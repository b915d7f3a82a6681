//! Title and summary stand twice: in a note's text and in its metadata. A person who changes one of them means
//! both, and neither is written over.

use super::{human, inline};

/// What the metadata says next. `ours` are the [`human::line_hashes`] of the text written last.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    /// The lines that we wrote last.
    pub ours: &'a [u64],
    /// The compiled truth as it stands in the vault.
    pub current: &'a str,
    /// The compiled truth that is to be written.
    pub next: &'a str,
}

impl Fields<'_> {
    /// The title, of which the metadata now says `field`.
    pub fn title(&self, field: &str) -> String {
        self.follow(field, "# ")
    }

    /// The summary, of which the metadata now says `field`.
    pub fn summary(&self, field: &str) -> String {
        self.follow(field, "> **Summary:** ")
    }

    /// The field says what the text says, unless a person changed the field alone.
    fn follow(&self, field: &str, label: &str) -> String {
        let said = |truth: &str| {
            truth.lines().find_map(|line| line.strip_prefix(label)).map(inline::plain)
        };
        let line = self.current.lines().find(|line| line.starts_with(label)).unwrap_or_default();
        let is_ours = human::line_hashes(line).iter().all(|hash| self.ours.contains(hash));
        let in_step = said(self.current).is_some_and(|text| text.trim() == field.trim());
        if !in_step && is_ours && !field.is_empty() {
            return field.to_owned();
        }
        said(self.next).map_or_else(|| field.to_owned(), |text| text.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "# Fix `it`\n\n> **Summary:** It was `broken`.";
    const NEW: &str = "# Fix \\*all\\*\n\n> **Summary:** It is whole.";

    fn after(current: &str, next: &str, title: &str, summary: &str) -> (String, String) {
        let ours = human::line_hashes(OLD);
        let fields = Fields { ours: &ours, current, next };
        (fields.title(title), fields.summary(summary))
    }

    fn pair(title: &str, summary: &str) -> (String, String) {
        (title.to_owned(), summary.to_owned())
    }

    #[test]
    fn without_an_edit_the_metadata_follows_the_text() {
        let next = after(OLD, NEW, "Fix it", "It was broken.");
        assert_eq!(next, pair("Fix *all*", "It is whole."));
    }

    #[test]
    fn a_persons_text_reaches_the_metadata() {
        let theirs = OLD.replace("Fix `it`", "Mine").replace("It was `broken`.", "My words.");
        assert_eq!(after(&theirs, &theirs, "Fix it", "It was broken."), pair("Mine", "My words."));
    }

    #[test]
    fn metadata_that_a_person_changed_stays() {
        assert_eq!(after(OLD, NEW, "Mine", "My words."), pair("Mine", "My words."));
    }

    #[test]
    fn missing_metadata_is_filled_from_the_text() {
        assert_eq!(after(OLD, NEW, "", ""), pair("Fix *all*", "It is whole."));
        assert_eq!(after("", "no labels", "Mine", ""), pair("Mine", ""));
    }
}
