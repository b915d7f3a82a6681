//! A person who puts the sections of a note in another order wants that order, also of the lines that change.

use super::Line;

/// Our last version and the new one with their sections in the order in which the person has them, so that the
/// merge finds each section's lines beside each other. Sections that the person does not have keep their places.
pub(super) fn as_theirs<'a>(
    ours: &[u64],
    theirs: &[Line<'a>],
    new: Vec<Line<'a>>,
) -> (Vec<u64>, Vec<Line<'a>>) {
    let once = |hash: u64| ours.iter().filter(|known| **known == hash).count() == 1;
    let mut wanted: Vec<u64> = Vec::new();
    for line in theirs.iter().filter(|line| line.level == 2 && once(line.hash)) {
        if !wanted.contains(&line.hash) {
            wanted.push(line.hash);
        }
    }
    let was: Vec<u64> = ours.iter().copied().filter(|hash| wanted.contains(hash)).collect();
    if was == wanted {
        return (ours.to_owned(), new);
    }
    // A heading of the new version that we did not have before begins a section too.
    let fresh: Vec<u64> = new.iter().filter(|line| line.level == 2).map(|line| line.hash).collect();
    let starts = |hash: u64| wanted.contains(&hash) || fresh.contains(&hash);
    (sorted(ours, |hash| *hash, &wanted, starts), sorted(&new, |line| line.hash, &wanted, starts))
}

/// The lines with the sections of `wanted` in that order, in the places that these sections have together.
fn sorted<T: Clone>(
    lines: &[T],
    hash: impl Fn(&T) -> u64,
    wanted: &[u64],
    starts: impl Fn(u64) -> bool,
) -> Vec<T> {
    let mut sections: Vec<Vec<T>> = vec![Vec::new()];
    for line in lines {
        if starts(hash(line)) {
            sections.push(Vec::new());
        }
        if let Some(section) = sections.last_mut() {
            section.push(line.clone());
        }
    }
    let rank = |section: &Vec<T>| {
        let head = section.first().map(&hash)?;
        wanted.iter().position(|known| *known == head)
    };
    let mut movable: Vec<Vec<T>> =
        sections.iter().filter(|section| rank(section).is_some()).cloned().collect();
    movable.sort_by_key(rank);
    let mut movable = movable.into_iter();
    sections
        .into_iter()
        .flat_map(|section| match rank(&section) {
            Some(_) => movable.next().unwrap_or_default(),
            None => section,
        })
        .collect()
}
