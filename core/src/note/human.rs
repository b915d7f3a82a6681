//! A person's edits to the compiled truth outlive its next version (notes.md "Merge procedures").
//!
//! What we wrote last is known only by the hashes of its lines, never by its text. A three-way merge over lines
//! follows from them: a line of the note that we did not write is a person's and stays; a line that we wrote and
//! that is gone was deleted by a person and stays gone; everything else is as the new version says.
//!
//! Invariants: every line of a person survives; without an edit the result is the new version, byte for byte.

mod order;

use std::collections::HashSet;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};
use unicode_normalization::UnicodeNormalization;

/// The hashes of a text's lines that are not blank, in order: 64 bits of BLAKE3 each, over the line without
/// white space at its end and in normal form C, as vaults keep it. To be stored with each write, taken of the
/// **new version as it was drafted**, not of the merged text: otherwise the next merge would take a person's
/// lines for ours, and bring back what the person deleted.
pub fn line_hashes(truth: &str) -> Vec<u64> {
    lines(truth).iter().map(|line| line.hash).collect()
}

/// The next compiled truth: `new`, with what a person changed in `current` since `ours` was written. `ours` are
/// the [`line_hashes`] of our last version. With none, nothing in the note is known to be ours and all of it
/// stays: an entry in the timeline is all that may be added then.
pub fn keep_edits(ours: &[u64], current: &str, new: &str) -> String {
    let theirs = lines(current);
    if theirs.iter().map(|line| line.hash).eq(ours.iter().copied()) {
        return new.to_owned();
    }
    if ours.is_empty() {
        return current.to_owned();
    }
    let (ours, renewed) = order::as_theirs(ours, &theirs, lines(new));
    let merge = Merge::new(&ours, theirs, renewed);
    let mut text = merge.render();
    if new.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// A line that is not blank.
#[derive(Clone, Debug)]
struct Line<'a> {
    text: &'a str,
    hash: u64,
    /// Blank lines before it.
    gap: usize,
    /// 1 to 6 for a heading, else 0.
    level: usize,
}

impl Line<'_> {
    /// What stays the same when a line's content changes: `# ` (the title), `> **Summary:**`, `- **Commits**:`.
    fn label(&self) -> Option<&str> {
        if self.level == 1 {
            return Some("# ");
        }
        let rest = self.text.strip_prefix("> **").or_else(|| self.text.strip_prefix("- **"))?;
        let end = rest.find("**")?;
        self.text.get(..self.text.len() - rest.len() + end).map(|label| label.trim_end_matches(':'))
    }

    /// Whether the line says something, as opposed to a rule, a fence or a table's border.
    fn says_something(&self) -> bool {
        self.text.chars().any(char::is_alphanumeric)
    }
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut gap = 0;
    let mut found = Vec::new();
    for raw in text.lines() {
        let text = raw.trim_end();
        if text.is_empty() {
            gap += 1;
            continue;
        }
        let marks = text.len() - text.trim_start_matches('#').len();
        let heading = (1..=6).contains(&marks) && text[marks..].starts_with(' ');
        let level = if heading { marks } else { 0 };
        found.push(Line { text, hash: hash(text), gap, level });
        gap = 0;
    }
    found
}

fn hash(line: &str) -> u64 {
    let composed: String = line.nfc().collect();
    let mut short = [0; 8];
    short.copy_from_slice(&blake3::hash(composed.as_bytes()).as_bytes()[..8]);
    u64::from_le_bytes(short)
}

/// What becomes of a line of the new version.
#[derive(Clone, Debug, Default)]
struct Slot {
    /// A person deleted it, or moved it.
    dropped: bool,
    /// A person's lines that stand in its place.
    instead: Vec<usize>,
    /// A person's lines that come after it.
    after: Vec<usize>,
}

/// The three versions and how their lines belong together.
struct Merge<'a> {
    theirs: Vec<Line<'a>>,
    new: Vec<Line<'a>>,
    /// For each line of the current text: the line of our last version that it is.
    origin: Vec<Option<usize>>,
    /// For each line of our last version: where it stands in the current text.
    kept: Vec<Option<usize>>,
    /// For each line of our last version: where it stands in the new version.
    renewed: Vec<Option<usize>>,
    /// For each line of the new version: whether it is a line of our last version that the person left alone.
    settled: Vec<bool>,
    /// A person's lines before everything.
    before: Vec<usize>,
    slots: Vec<Slot>,
}

impl<'a> Merge<'a> {
    fn new(ours: &[u64], theirs: Vec<Line<'a>>, new: Vec<Line<'a>>) -> Self {
        let hashes = |lines: &[Line<'_>]| lines.iter().map(|line| line.hash).collect::<Vec<_>>();
        let kept = matches(ours, &hashes(&theirs));
        let renewed = matches(ours, &hashes(&new));
        let mut origin = vec![None; theirs.len()];
        for (base, at) in kept.iter().enumerate() {
            if let Some(slot) = at.and_then(|at| origin.get_mut(at)) {
                *slot = Some(base);
            }
        }
        let mut settled = vec![false; new.len()];
        for (at, _) in renewed.iter().zip(&kept).filter(|(_, kept)| kept.is_some()) {
            at.and_then(|at| settled.get_mut(at)).into_iter().for_each(|flag| *flag = true);
        }
        let slots = vec![Slot::default(); new.len()];
        let before = Vec::new();
        let mut merge = Self { theirs, new, origin, kept, renewed, settled, before, slots };
        merge.drop_deleted(ours);
        merge.drop_deleted_sections();
        let rewritten = merge.rewritten();
        merge.place(&rewritten);
        merge.drop_repeated();
        merge
    }

    /// Lines of ours that the person took away do not come back.
    fn drop_deleted(&mut self, ours: &[u64]) {
        let mut deleted: HashSet<u64> = HashSet::new();
        for (base, at) in self.kept.iter().enumerate() {
            if at.is_none() {
                deleted.extend(ours.get(base));
                self.renewed.get(base).copied().flatten().into_iter().for_each(|new| {
                    self.slots[new].dropped = true;
                });
            }
        }
        for (base, _) in self.kept.iter().enumerate().filter(|(_, at)| at.is_some()) {
            ours.get(base).into_iter().for_each(|hash| {
                deleted.remove(hash);
            });
        }
        for (line, slot) in self.new.iter().zip(&mut self.slots) {
            slot.dropped |= deleted.contains(&line.hash) && line.says_something();
        }
    }

    /// A section that the person deleted whole does not come back with other lines.
    fn drop_deleted_sections(&mut self) {
        let headings: Vec<(usize, usize)> = self
            .renewed
            .iter()
            .enumerate()
            .filter_map(|(base, new)| Some((base, (*new)?)))
            .filter(|(_, new)| self.new[*new].level > 1)
            .collect();
        for (nth, &(base, new)) in headings.iter().enumerate() {
            let end = headings.get(nth + 1).map_or(self.kept.len(), |(next, _)| *next);
            if self.kept[base..end].iter().all(Option::is_none) {
                let section = self.section_from(new, self.new[new].level);
                self.slots[section].iter_mut().for_each(|slot| slot.dropped = true);
            }
        }
    }

    /// From a line of the new version to the next heading of at most `level`.
    fn section_from(&self, from: usize, level: usize) -> Range<usize> {
        let rest = self.new.iter().enumerate().skip(from + 1);
        let end = rest.into_iter().find(|(_, line)| (1..=level).contains(&line.level));
        from..end.map_or(self.new.len(), |(at, _)| at)
    }

    /// The person's lines that are a rewriting of one of ours, with the line of the new version whose place they
    /// take. Also drops our new versions of labelled lines that the person deleted.
    fn rewritten(&mut self) -> Vec<Option<usize>> {
        let mut places = vec![None; self.theirs.len()];
        let mut taken = HashSet::new();
        for hunk in self.hunks() {
            let fits = hunk.ours.len() == hunk.new.len();
            if fits && hunk.ours.len() == hunk.theirs.len() {
                // One for one between the same neighbours.
                for (their, new) in hunk.theirs.clone().zip(hunk.new.clone()) {
                    taken.insert(new);
                    places[their] = Some(new);
                }
            } else if fits && hunk.theirs.is_empty() {
                for new in hunk.new.clone().filter(|new| self.new[*new].label().is_some()) {
                    self.slots[new].dropped = true;
                }
            }
        }
        for (their, place) in places.iter_mut().enumerate() {
            if self.origin[their].is_none() && place.is_none() {
                *place = self.labelled_like(their).filter(|new| taken.insert(*new));
            }
        }
        places
    }

    /// The line of the new version with the same label in the same section, unless it is one of ours that stands
    /// beside the person's line.
    fn labelled_like(&self, their: usize) -> Option<usize> {
        let label = self.theirs[their].label()?;
        let section = section_of(&self.theirs, their);
        (0..self.new.len()).find(|&new| {
            self.new[new].label() == Some(label)
                && (self.new[new].level == 1 || section_of(&self.new, new) == section)
                && !self.settled[new]
        })
    }

    /// The stretches between lines that all three versions have.
    fn hunks(&self) -> Vec<Hunk> {
        let common = self.kept.iter().zip(&self.renewed).enumerate();
        let mut anchors: Vec<(usize, usize, usize)> =
            common.filter_map(|(base, (their, new))| Some((base, (*their)?, (*new)?))).collect();
        anchors.push((self.kept.len(), self.theirs.len(), self.new.len()));
        let mut from = (0, 0, 0);
        let mut hunks = Vec::new();
        for (base, their, new) in anchors {
            hunks.push(Hunk { ours: from.0..base, theirs: from.1..their, new: from.2..new });
            from = (base + 1, their + 1, new + 1);
        }
        // A stretch in which some of ours was left alone is no plain rewriting.
        hunks.retain(|hunk| self.kept[hunk.ours.clone()].iter().all(Option::is_none));
        hunks
    }

    /// Gives every line of the person its place.
    fn place(&mut self, rewritten: &[Option<usize>]) {
        let mut cursor: Option<usize> = None;
        for (their, place) in rewritten.iter().enumerate() {
            if let Some(new) = self.renewed_at(their) {
                cursor = Some(new);
                continue;
            }
            if self.origin[their].is_some() && !self.is_needed_heading(their) {
                continue;
            }
            if let Some(new) = *place {
                self.slots[new].instead.push(their);
                cursor = Some(new);
                continue;
            }
            cursor = self.spot(their, cursor);
            match cursor.and_then(|at| self.slots.get_mut(at)) {
                Some(slot) => slot.after.push(their),
                None => self.before.push(their),
            }
        }
    }

    /// The line of the new version after which a person's line goes.
    fn spot(&self, their: usize, cursor: Option<usize>) -> Option<usize> {
        let level = self.theirs[their].level;
        let at = cursor?;
        if level > 0 {
            // A person's section comes after the section that it followed.
            let section = self.section_from(at, level.max(2));
            return Some(section.end.saturating_sub(1));
        }
        let previous = their.checked_sub(1);
        let neighbour_stays = previous.is_some_and(|previous| {
            self.renewed_at(previous).is_some()
                || self.origin[previous].is_none()
                || self.is_needed_heading(previous)
        });
        if neighbour_stays {
            return Some(at);
        }
        // The line above is gone from the new version: before the line below, else at the section's end.
        let below = self.theirs.get(their + 1..).unwrap_or_default().iter().zip(their + 1..);
        let next = below
            .take_while(|(line, _)| line.level == 0)
            .find_map(|(_, next)| self.renewed_at(next))
            .and_then(|next| next.checked_sub(1));
        next.or_else(|| self.section_from(at, 6).end.checked_sub(1))
    }

    /// Where a line of the current text that is ours stands in the new version.
    fn renewed_at(&self, their: usize) -> Option<usize> {
        let base = self.origin.get(their).copied().flatten()?;
        self.renewed.get(base).copied().flatten()
    }

    /// A heading of ours that the new version has no more, with lines of the person below it.
    fn is_needed_heading(&self, their: usize) -> bool {
        let level = self.theirs[their].level;
        level > 0
            && self.renewed_at(their).is_none()
            && self
                .theirs
                .iter()
                .zip(&self.origin)
                .skip(their + 1)
                .take_while(|(line, _)| line.level == 0)
                .any(|(_, origin)| origin.is_none())
    }

    /// A line that both the person and the new version brought stands once, where the person put it.
    fn drop_repeated(&mut self) {
        let mut brought = HashSet::new();
        for (line, origin) in self.theirs.iter().zip(&self.origin) {
            if origin.is_none() && line.says_something() {
                brought.insert(line.hash);
            }
        }
        for new in 0..self.new.len() {
            let repeated = !self.settled[new] && brought.remove(&self.new[new].hash);
            self.slots[new].dropped |= repeated;
        }
    }

    fn render(&self) -> String {
        let mut out = Output::default();
        self.before.iter().for_each(|their| out.theirs(&self.theirs, *their));
        for (line, slot) in self.new.iter().zip(&self.slots) {
            if !slot.instead.is_empty() {
                out.least_gap = out.least_gap.max(line.gap);
                slot.instead.iter().for_each(|their| out.theirs(&self.theirs, *their));
            } else if slot.dropped {
                out.least_gap = out.least_gap.max(line.gap.min(1));
            } else {
                out.push(line.text, line.gap);
            }
            slot.after.iter().for_each(|their| out.theirs(&self.theirs, *their));
        }
        out.text
    }
}

/// A stretch that differs between the versions.
struct Hunk {
    ours: Range<usize>,
    theirs: Range<usize>,
    new: Range<usize>,
}

/// The merged text as it grows.
#[derive(Default)]
struct Output {
    text: String,
    /// Blank lines that the next line needs before it.
    least_gap: usize,
}

impl Output {
    fn push(&mut self, line: &str, gap: usize) {
        if !self.text.is_empty() {
            let gap = gap.max(self.least_gap);
            self.text.extend(std::iter::repeat_n('\n', gap + 1));
        }
        self.text.push_str(line);
        self.least_gap = 0;
    }

    fn theirs(&mut self, lines: &[Line<'_>], at: usize) {
        let Some(line) = lines.get(at) else { return };
        self.push(line.text, line.gap);
        self.least_gap = lines.get(at + 1).map_or(0, |next| next.gap.min(1));
    }
}

/// The heading (of level 2 and deeper) above a line.
fn section_of<'a>(lines: &[Line<'a>], at: usize) -> Option<&'a str> {
    lines.iter().take(at + 1).rev().find(|line| line.level > 1).map(|line| line.text)
}

/// For each element of `from`, its place in `to`, both in order.
fn matches(from: &[u64], to: &[u64]) -> Vec<Option<usize>> {
    let mut found = vec![None; from.len()];
    for op in capture_diff_slices(Algorithm::Patience, from, to) {
        if let DiffOp::Equal { old_index, new_index, len } = op {
            found.iter_mut().skip(old_index).take(len).zip(new_index..).for_each(|(slot, at)| {
                *slot = Some(at);
            });
        }
    }
    found
}

#[cfg(test)]
mod tests;
