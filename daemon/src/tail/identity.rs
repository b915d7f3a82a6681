//! Which file is which source. A path is only where a file was seen last, an inode is used again: what was read
//! of a source is proven by hashes of its bytes.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use majordomus_core::ids::Tool;
use majordomus_core::ledger::{FileId, Reader, SourceState, SourceStatus};

use crate::scan::Candidate;

/// One file to be read.
#[derive(Debug)]
pub struct Work {
    /// Whose it is.
    pub tool: Tool,
    /// Where it is.
    pub path: PathBuf,
    /// The path below the root: its names carry identity. `None` for a known source that is only looked at for
    /// what it already is.
    pub below_root: Option<String>,
    /// The source as the ledger knows it, if it does.
    pub known: Option<SourceState>,
    /// Set when the known source was at another path before.
    pub moved: bool,
    /// The unfinished last line is to be taken if it is a complete object.
    pub accept_unfinished: bool,
}

impl Work {
    /// Looks at a known source where the ledger has it.
    fn again(source: SourceState) -> Self {
        Self {
            tool: source.tool,
            path: source.path.clone(),
            below_root: None,
            known: Some(source),
            moved: false,
            accept_unfinished: false,
        }
    }

    /// Takes the unfinished last line of a known source.
    pub fn accept(source: SourceState) -> Self {
        Self { accept_unfinished: true, ..Self::again(source) }
    }
}

/// How much of the roots a list of candidates covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Some files.
    Some,
    /// Every file that there is: a known source that is not among them is gone.
    Everything,
}

/// What is to be read of `candidates`: looks each up in the ledger. Files that did not change since the last
/// look are left out without being opened.
pub async fn plan(
    reader: &mut Reader,
    candidates: Vec<Candidate>,
    scope: Scope,
) -> Result<Vec<Work>> {
    let mut known = Known::default();
    if scope == Scope::Everything {
        known.load(reader).await?;
    }
    let mut work = Vec::new();
    let mut new_files = HashSet::new();
    for candidate in candidates {
        let source = match known.take(&candidate.path) {
            Some(source) => source,
            None => reader.source_at(&candidate.path).await?,
        };
        match source {
            Some(source) if !is_due(&source, scope) => {}
            Some(source) => work.push(changed_path(reader, candidate, source).await?),
            None => {
                let file = file_id(&candidate.path);
                if let Some(item) = unknown_path(reader, candidate).await?
                    && file.is_none_or(|file| new_files.insert(file))
                {
                    if let Some(moved) = &item.known {
                        known.forget(&moved.path);
                    }
                    work.push(item);
                }
            }
        }
    }
    work.extend(known.left().filter(has_changed).map(Work::again));
    keep_one_per_source(&mut work);
    Ok(work)
}

/// Puts the files that were changed first to the front, since a tool deletes those next; and tells how many bytes
/// all of them have.
pub fn oldest_first(work: Vec<Work>) -> (Vec<Work>, u64) {
    let mut total = 0;
    let mut keyed: Vec<(i64, Work)> = work
        .into_iter()
        .map(|item| {
            let metadata = fs::metadata(&item.path).ok();
            total += metadata.as_ref().map_or(0, fs::Metadata::len);
            (metadata.as_ref().map_or(0, mtime_ns), item)
        })
        .collect();
    keyed.sort_by(|(at, item), (other_at, other)| (at, &item.path).cmp(&(other_at, &other.path)));
    (keyed.into_iter().map(|(_, item)| item).collect(), total)
}

/// Whether a known source is to be read. The policy may have changed since: a look at everything asks it again.
fn is_due(source: &SourceState, scope: Scope) -> bool {
    let is_asked_again =
        scope == Scope::Everything && source.checkpoint.status == SourceStatus::Excluded;
    is_asked_again || has_changed(source)
}

/// A source is read once in a pass: what a second reading began from would be behind by then. Its new path wins
/// over the one that it left.
fn keep_one_per_source(work: &mut Vec<Work>) {
    let row = |item: &Work| item.known.as_ref().map(|source| source.row);
    let moved: HashSet<_> = work.iter().filter(|item| item.moved).filter_map(row).collect();
    let mut kept = HashSet::new();
    work.retain(|item| {
        row(item).is_none_or(|row| (item.moved || !moved.contains(&row)) && kept.insert(row))
    });
}

/// A known path whose file is another than at the last look. If it is gone, its other form may have taken its
/// place.
async fn changed_path(
    reader: &mut Reader,
    candidate: Candidate,
    source: SourceState,
) -> Result<Work> {
    if is_gone(&candidate.path)
        && let Some(other) = other_form(&candidate.path)
        && !is_gone(&other)
        && reader.source_at(&other).await?.is_none()
    {
        let below_root = match candidate.below_root.strip_suffix(".zst") {
            Some(plain) => plain.to_owned(),
            None => format!("{}.zst", candidate.below_root),
        };
        return Ok(work_for(
            Candidate { path: other, below_root, ..candidate },
            Some(source),
            true,
        ));
    }
    Ok(work_for(candidate, Some(source), false))
}

fn work_for(candidate: Candidate, known: Option<SourceState>, moved: bool) -> Work {
    let Candidate { tool, path, below_root } = candidate;
    Work { tool, path, below_root: Some(below_root), known, moved, accept_unfinished: false }
}

/// A path that the ledger does not know: a new file, a known file under a new name, or a second name of one.
async fn unknown_path(reader: &mut Reader, candidate: Candidate) -> Result<Option<Work>> {
    let Some(file) = file_id(&candidate.path) else {
        return Ok(Some(work_for(candidate, None, false)));
    };
    let mut sources = reader.sources_of_file(file).await?;
    // An inode is used again: the file that was there last is the likelier one.
    sources.sort_by_key(|source| {
        (source.checkpoint.status == SourceStatus::Missing, std::cmp::Reverse(source.row.0))
    });
    if let Some(source) = sources.iter().find(|source| file_id(&source.path) == Some(file)) {
        // cases.md 34: one file under two names (symlink, bind mount, hard link) is one source. A scan may come
        // upon it by this name only.
        return Ok(has_changed(source).then(|| by_known_name(candidate, source.clone())));
    }
    if let Some(other) = other_form(&candidate.path) {
        // cases.md 40: Codex packs a rollout that is idle for a week, and unpacks it to go on. It is the same
        // source; while both forms are there the plain one is read.
        if is_packed(&candidate.path) && !is_gone(&other) {
            return Ok(None);
        }
        if let Some(source) = reader.source_at(&other).await? {
            return Ok(Some(work_for(candidate, Some(source), true)));
        }
    }
    // cases.md 41: moved, as to `archived_sessions`. That the inode was not merely used again is checked against
    // the hashes when the file is read.
    let moved =
        (sources.into_iter()).find(|source| source.tool == candidate.tool && is_gone(&source.path));
    let is_moved = moved.is_some();
    Ok(Some(work_for(candidate, moved, is_moved)))
}

/// Reads a file that was met by a second name under the name that the ledger has for it.
fn by_known_name(candidate: Candidate, source: SourceState) -> Work {
    let has_same_name = candidate.path.file_name() == source.path.file_name();
    let below_root = has_same_name.then_some(candidate.below_root);
    Work { below_root, ..Work::again(source) }
}

/// Codex recompresses what is idle for a week; offsets are those of the plain text (formats.md 2.2).
pub(crate) fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}

/// The path of a rollout's other form: packed for a plain one, plain for a packed one.
fn other_form(path: &Path) -> Option<PathBuf> {
    match path.extension()?.to_str()? {
        "zst" => Some(path.with_extension("")),
        "jsonl" => Some(path.with_extension("jsonl.zst")),
        _ => None,
    }
}

fn is_gone(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// The whole list of sources, for a look at everything.
#[derive(Default)]
struct Known(Option<HashMap<PathBuf, SourceState>>);

impl Known {
    async fn load(&mut self, reader: &mut Reader) -> Result<()> {
        let mut by_path = HashMap::new();
        reader
            .sources(|source| {
                by_path.insert(source.path.clone(), source);
            })
            .await?;
        self.0 = Some(by_path);
        Ok(())
    }

    /// `None` if the list was not loaded; else the source at `path`, if there is one, which leaves the list.
    #[expect(clippy::option_option, reason = "not loaded and not there are two answers")]
    fn take(&mut self, path: &Path) -> Option<Option<SourceState>> {
        self.0.as_mut().map(|by_path| by_path.remove(path))
    }

    fn forget(&mut self, path: &Path) {
        if let Some(by_path) = &mut self.0 {
            by_path.remove(path);
        }
    }

    /// The sources that no candidate was.
    fn left(self) -> impl Iterator<Item = SourceState> {
        self.0.unwrap_or_default().into_values().filter(|source| is_gone(&source.path))
    }
}

fn file_id(path: &Path) -> Option<FileId> {
    let metadata = fs::metadata(path).ok()?;
    Some(FileId { device: metadata.dev(), inode: metadata.ino() })
}

/// Whether a source's file differs from what it was at the last look, by what the file system says of it.
pub(super) fn has_changed(source: &SourceState) -> bool {
    let seen = &source.checkpoint;
    match fs::metadata(&source.path) {
        Ok(now) => {
            seen.status == SourceStatus::Missing
                || seen.error.is_some()
                || now.len() != seen.size
                || mtime_ns(&now) != seen.mtime_ns
                || seen.file != FileId { device: now.dev(), inode: now.ino() }
        }
        Err(_) => seen.status != SourceStatus::Missing,
    }
}

pub(super) fn mtime_ns(metadata: &fs::Metadata) -> i64 {
    metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
}
