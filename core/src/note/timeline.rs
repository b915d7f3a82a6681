//! The two zones of a note's body and how they are merged (notes.md "Two zones", "Merge procedures").
//!
//! The zone below the split is append only. What this module keeps, whatever a draft holds: no entry that stands
//! in a note is lost, changed or moved, and a merged body splits again into what was put in.

use std::ops::Range;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::inline;
use crate::ids::NativeId;

/// What stands between the compiled truth and the first entry.
const SPLIT: &str = "\n\n---\n\n## Timeline\n\n";

/// A merged body, and what was odd about the draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The body to be written.
    pub content: String,
    /// For the log; nothing of them stops the write.
    pub warnings: Vec<MergeWarning>,
}

/// What was odd about a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeWarning {
    /// Mode A needs exactly one entry.
    #[error(
        "the draft holds no timeline entry: its compiled truth is written, the timeline stays as it is"
    )]
    NoEntry,
    /// Only the first is written.
    #[error("the draft holds {0} timeline entries: only the first is written")]
    ManyEntries(usize),
    /// An open fence would swallow the timeline.
    #[error("the draft leaves a code fence open: it is closed before the timeline")]
    OpenFence,
}

/// One timeline entry, as a line: `- **YYYY-MM-DD** | {what} [Source: session:{id}, YYYY-MM-DD]`. `what` is
/// inline Markdown of one or more sentences; the date is that of `at` in the user's time zone `tz`.
pub fn entry(what: &str, session: &NativeId, at: Timestamp, tz: &TimeZone) -> String {
    let date = tz.to_datetime(at).date().to_string();
    let what = inline::one_line(what);
    let session = inline::inert(session.as_str());
    format!("- **{date}** | {what} [Source: session:{session}, {date}]")
}

/// Splits a body into its compiled truth and its timeline entries, newest first. The split is the last `---`
/// line outside fenced code that is followed, with only blank lines between, by `## Timeline`. An entry is a
/// top-level bullet with everything up to the next one, so that a line which a person put between entries stays
/// with the entry above it; text before the first bullet counts as an entry of its own. Without a timeline the
/// whole content is the compiled truth.
pub fn split_body(content: &str) -> (&str, Vec<&str>) {
    match Zones::find(content) {
        None => (content, Vec::new()),
        Some(zones) => {
            let entries = zones.entries.iter().map(|range| &content[range.clone()]).collect();
            (content[..zones.rule].trim_end(), entries)
        }
    }
}

/// Mode A: the draft's compiled truth, its one new entry, and all existing entries as they are. An entry that
/// the note holds already (a retry) is not put in again.
pub fn merge_full(draft: &str, existing: &str) -> Merged {
    let (above, entries) = split_body(draft);
    let mut warnings = Vec::new();
    let mut truth = above.trim_end().to_owned();
    if let Some(fence) = open_fence(&truth) {
        warnings.push(MergeWarning::OpenFence);
        truth.push('\n');
        truth.push_str(&fence);
    }
    let new = match entries.as_slice() {
        [] => {
            warnings.push(MergeWarning::NoEntry);
            None
        }
        [one] => Some(*one),
        [first, ..] => {
            warnings.push(MergeWarning::ManyEntries(entries.len()));
            Some(*first)
        }
    };
    let tail = Zones::find(existing).map_or("", |zones| &existing[zones.tail..]);
    let content = match new {
        // A truth that holds a timeline of its own (a quotation) needs the empty one below it.
        None if tail.trim().is_empty() && Zones::find(&truth).is_none() => truth,
        None => truth + SPLIT + tail,
        Some(entry) => truth + SPLIT + &with_entry(tail, entry),
    };
    Merged { content, warnings }
}

/// Mode B: the existing compiled truth byte for byte, the new entry, the existing entries. The section is added
/// if it is missing. An entry that the note holds already leaves the note as it is.
pub fn merge_entry(entry: &str, existing: &str) -> String {
    let Some(zones) = Zones::find(existing) else {
        let fence = open_fence(existing).map(|fence| format!("\n{fence}")).unwrap_or_default();
        return format!("{existing}{fence}{SPLIT}{}", with_entry("", entry));
    };
    let (head, tail) = existing.split_at(zones.tail);
    let merged = with_entry(tail, entry);
    if merged == tail {
        return existing.to_owned();
    }
    let gap = match head {
        head if head.ends_with("\n\n") || head.ends_with("\n\r\n") => "",
        head if head.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{head}{gap}{merged}")
}

/// Puts an entry before the entries of a timeline's text, or leaves the text alone if it is there already.
fn with_entry(tail: &str, entry: &str) -> String {
    let entry = as_entry(entry);
    let ranges = entry_ranges(tail, 0);
    if entry.is_empty() || ranges.iter().any(|range| tail[range.clone()] == *entry) {
        return tail.to_owned();
    }
    // A person's lines above the first bullet stay where they are: below the new entry they would become a part
    // of it.
    let bullets = ranges.iter().find(|range| is_bullet(&tail[range.start..]));
    let at = bullets.map_or(tail.len(), |range| range.start);
    let (preface, rest) = tail.split_at(at);
    let gap = if preface.is_empty() || preface.ends_with('\n') { "" } else { "\n" };
    let end = if rest.is_empty() { "" } else { "\n" };
    format!("{preface}{gap}{entry}{end}{rest}")
}

/// The text as exactly one entry: a bullet whose further lines are indented, so that none of them can open a
/// second entry, a heading or a fence.
fn as_entry(text: &str) -> String {
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default().trim_end();
    if first.is_empty() {
        return String::new();
    }
    let mut entry =
        if is_bullet(first) { first.to_owned() } else { format!("- {}", first.trim_start()) };
    for line in lines.map(str::trim_end) {
        entry.push('\n');
        let indent = line.len() - line.trim_start_matches(' ').len();
        let fence = Fence::opened_by(line.trim_start()).is_some();
        if !line.is_empty() && fence && indent < 4 {
            entry.push_str("    ");
            entry.push_str(line.trim_start());
        } else {
            if !line.is_empty() && !line.starts_with([' ', '\t']) {
                entry.push_str("  ");
            }
            entry.push_str(line);
        }
    }
    entry
}

/// Where the zones of a body lie, as byte offsets.
struct Zones {
    /// Start of the `---` line.
    rule: usize,
    /// Start of the first entry, or the end of the content.
    tail: usize,
    entries: Vec<Range<usize>>,
}

impl Zones {
    fn find(content: &str) -> Option<Self> {
        let lines = lines(content);
        let fenced = fenced(&lines);
        let open =
            || lines.iter().zip(&fenced).filter(|(_, fenced)| !**fenced).map(|(line, _)| line);
        let mut rule = None;
        let mut found = None;
        for line in open() {
            match line.text.trim_end() {
                "" => {}
                "---" => rule = Some(line.start),
                "## Timeline" => {
                    if let Some(rule) = rule.take() {
                        found = Some((rule, line.end));
                    }
                }
                _ => rule = None,
            }
        }
        let (rule, heading_end) = found?;
        let entries = entry_ranges(content, heading_end);
        let tail = entries.first().map_or(content.len(), |first| first.start);
        Some(Self { rule, tail, entries })
    }
}

/// The entries in `content[from..]`, without the blank lines after each.
fn entry_ranges(content: &str, from: usize) -> Vec<Range<usize>> {
    let lines = lines(content);
    let fenced = fenced(&lines);
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (line, fenced) in lines.iter().zip(fenced).filter(|(line, _)| line.start >= from) {
        let text_end = line.start + line.text.trim_end().len();
        match ranges.last_mut() {
            // A blank line may end an entry: it is taken in with the next line, if that belongs to it too.
            _ if text_end == line.start => {}
            Some(last) if fenced || !is_bullet(line.text) => last.end = text_end,
            _ => ranges.push(line.start..text_end),
        }
    }
    ranges
}

fn is_bullet(line: &str) -> bool {
    line.starts_with("- ") || line.starts_with("* ") || line.starts_with("+ ")
}

/// One line and where it lies; `text` is without the line end, `end` is after it.
struct Line<'a> {
    start: usize,
    end: usize,
    text: &'a str,
}

fn lines(content: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    content
        .split_inclusive('\n')
        .map(|raw| {
            let line =
                Line { start, end: start + raw.len(), text: raw.trim_end_matches(['\n', '\r']) };
            start = line.end;
            line
        })
        .collect()
}

/// The opening line of a code block: which character, how many.
#[derive(Clone, Copy)]
struct Fence {
    mark: char,
    len: usize,
}

impl Fence {
    /// CommonMark: at most three spaces, then three or more of one mark; no backtick after backticks.
    fn opened_by(line: &str) -> Option<Self> {
        let text = line.trim_start_matches(' ');
        if line.len() - text.len() > 3 {
            return None;
        }
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let rest = text.trim_start_matches(mark);
        let len = text.len() - rest.len();
        (len >= 3 && (mark == '~' || !rest.contains('`'))).then_some(Self { mark, len })
    }

    fn is_closed_by(self, line: &str) -> bool {
        Self::opened_by(line).is_some_and(|other| {
            let bare = line.trim().trim_start_matches(other.mark).is_empty();
            bare && other.mark == self.mark && other.len >= self.len
        })
    }
}

/// Which lines belong to a fenced code block. A fence that is never closed is taken as text: a person's slip
/// must not hide the timeline.
fn fenced(lines: &[Line<'_>]) -> Vec<bool> {
    let mut inside = vec![false; lines.len()];
    // Length from which on a mark is known to find no closing line; keeps a hostile text from costing its square.
    let mut unclosed: [(char, usize); 2] = [('`', usize::MAX), ('~', usize::MAX)];
    let mut at = 0;
    while at < lines.len() {
        let opened = lines.get(at).and_then(|line| Fence::opened_by(line.text));
        let closed = opened.and_then(|fence| {
            let limit = unclosed.iter_mut().find(|(mark, _)| *mark == fence.mark);
            if limit.as_ref().is_some_and(|(_, len)| fence.len >= *len) {
                return None;
            }
            let close = lines.iter().skip(at + 1).position(|line| fence.is_closed_by(line.text));
            if let (None, Some((_, len))) = (close, limit) {
                *len = fence.len;
            }
            close
        });
        match closed {
            Some(distance) => {
                inside.iter_mut().skip(at).take(distance + 2).for_each(|flag| *flag = true);
                at += distance + 2;
            }
            None => at += 1,
        }
    }
    inside
}

/// The line that closes the text's first unclosed fence, if it has one: all after it is code then.
fn open_fence(text: &str) -> Option<String> {
    let lines = lines(text);
    let mut open = lines.iter().zip(fenced(&lines)).filter(|(_, fenced)| !fenced);
    let fence = open.find_map(|(line, _)| Fence::opened_by(line.text))?;
    Some(std::iter::repeat_n(fence.mark, fence.len).collect())
}

#[cfg(test)]
mod tests;
