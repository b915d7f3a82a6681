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
    /// The path below the root: its names carry identity.
    pub below_root: String,
    /// The source as the ledger knows it, if it does.
    pub known: Option<SourceState>,
    /// Set when the known source was at another path before.
    pub moved: bool,
    /// The unfinished last line is to be taken if it is a complete object.
    pub accept_unfinished: bool,
}

impl Work {
    /// Takes the unfinished last line of a known source.
    pub fn accept(source: SourceState) -> Self {
        Self {
            tool: source.tool,
            path: source.path.clone(),
            below_root: String::new(),
            known: Some(source),
            moved: false,
            accept_unfinished: true,
        }
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

pub(super) async fn plan(
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
            Some(source) => work.push(work_for(candidate, Some(source), false)),
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
    work.extend(known.left().filter(has_changed).map(|source| Work {
        tool: source.tool,
        path: source.path.clone(),
        below_root: String::new(),
        known: Some(source),
        moved: false,
        accept_unfinished: false,
    }));
    Ok(work)
}

/// Whether a known source is to be read. The policy may have changed since: a look at everything asks it again.
fn is_due(source: &SourceState, scope: Scope) -> bool {
    let is_asked_again =
        scope == Scope::Everything && source.checkpoint.status == SourceStatus::Excluded;
    is_asked_again || has_changed(source)
}

fn work_for(candidate: Candidate, known: Option<SourceState>, moved: bool) -> Work {
    let Candidate { tool, path, below_root } = candidate;
    Work { tool, path, below_root, known, moved, accept_unfinished: false }
}

/// A path that the ledger does not know: a new file, a known file under a new name, or a second name of one.
async fn unknown_path(reader: &mut Reader, candidate: Candidate) -> Result<Option<Work>> {
    let Some(file) = file_id(&candidate.path) else {
        return Ok(Some(work_for(candidate, None, false)));
    };
    for source in reader.sources_of_file(file).await? {
        if file_id(&source.path) == Some(file) {
            // cases.md 34: one file under two names (symlink, bind mount, hard link) is one source.
            return Ok(None);
        }
        if is_gone(&source.path) && source.tool == candidate.tool {
            // cases.md 41: moved, as to `archived_sessions`. That the inode was not merely used again is
            // checked against the hashes when the file is read.
            return Ok(Some(work_for(candidate, Some(source), true)));
        }
    }
    if let Some(other) = other_form(&candidate.path)
        && let Some(source) = reader.source_at(&other).await?
    {
        // cases.md 40: Codex packs a rollout that is idle for a week, and unpacks it to go on. It is the same
        // source; while both forms are there the known one is read.
        let is_packed = is_gone(&source.path);
        return Ok(is_packed.then(|| work_for(candidate, Some(source), true)));
    }
    Ok(Some(work_for(candidate, None, false)))
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
