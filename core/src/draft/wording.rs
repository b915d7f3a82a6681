//! The words between what people and models said: counts, lists and quotation.

use std::borrow::Cow;

use super::StoryCommit;
use crate::note::inline;

/// Files and commits named in a sentence before the rest is counted.
pub(super) const MAX_NAMED: usize = 4;

/// Foreign words, marked as such and inert.
pub(super) fn quoted(text: &str) -> String {
    format!("“{}”", inline::inert(text))
}

/// A commit in a sentence: its hash and what it says.
pub(super) fn commit_name(commit: &StoryCommit) -> String {
    let hash = inline::short_hash(&commit.hash);
    let subject = commit.subject.as_deref().map(inline::one_line).filter(|text| !text.is_empty());
    subject.map_or_else(
        || hash.clone(),
        |text| format!("{hash} {}", quoted(&inline::shorten(&text, 100))),
    )
}

/// Up to [`MAX_NAMED`] paths, and how many more.
pub(super) fn named<'a>(paths: impl Iterator<Item = &'a str>) -> String {
    let mut once: Vec<&str> = Vec::new();
    for path in paths {
        // One file may be known by two paths.
        if !once.contains(&path) {
            once.push(path);
        }
    }
    let mut names: Vec<String> = once.into_iter().map(|path| inline::code(&brief(path))).collect();
    let more = names.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        names.truncate(MAX_NAMED);
        names.push(format!("{more} more"));
    }
    listed(&names)
}

/// A path as a sentence can bear it: of a long one the end. Artifacts has it whole.
fn brief(path: &str) -> Cow<'_, str> {
    const MAX: usize = 60;
    if path.chars().count() <= MAX {
        return Cow::Borrowed(path);
    }
    let cut = path.char_indices().rev().nth(MAX - 3).map_or(0, |(at, _)| at);
    let tail = path.get(cut..).unwrap_or(path);
    // At a directory if there is one; a longer name stays whole.
    let tail = match tail.split_once(['/', '\\']) {
        Some((_, rest)) => rest,
        None => path.rsplit(['/', '\\']).next().unwrap_or(path),
    };
    Cow::Owned(format!("…/{tail}"))
}

/// `a, b and c`.
pub(super) fn listed(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// How many of those failed, in brackets; nothing if none did.
pub(super) fn failed(count: usize, word: &str) -> String {
    if count > 0 { format!(" ({count} {word})") } else { String::new() }
}

/// A number and its noun.
pub(super) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Ends a sentence, unless the words it ends with do so themselves.
pub(super) fn sentence(text: &str) -> String {
    if text.trim_end_matches('”').ends_with(['.', '!', '?', '。', '！', '？', '…']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}
