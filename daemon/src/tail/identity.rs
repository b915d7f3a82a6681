//! Which file is which source. A path is only where a file was seen last, an inode is used again: what was read
//! of a source is proven by hashes of its bytes.

use std::collections::HashMap;
use std::fs;
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

/// More candidates than this are compared with the whole list of sources, fewer one by one.
const LOOK_UP_ONE_BY_ONE: usize = 64;

pub(super) async fn plan(reader: &mut Reader, candidates: Vec<Candidate>) -> Result<Vec<Work>> {
    let mut known = Known::default();
    if candidates.len() > LOOK_UP_ONE_BY_ONE {
        known.load(reader).await?;
    }
    let mut work = Vec::new();
    for candidate in candidates {
        let source = match known.get(&candidate.path) {
            Some(source) => source,
            None => reader.source_at(&candidate.path).await?,
        };
        match source {
            Some(source) if !has_changed(&source) => {}
            Some(source) => work.push(work_for(candidate, Some(source), false)),
            None => {
                if let Some(item) = unknown_path(reader, &known, candidate).await? {
                    work.push(item);
                }
            }
        }
    }
    Ok(work)
}

fn work_for(candidate: Candidate, known: Option<SourceState>, moved: bool) -> Work {
    let Candidate { tool, path, below_root } = candidate;
    Work { tool, path, below_root, known, moved, accept_unfinished: false }
}

/// A path that the ledger does not know: a new file, a known file under a new name, or a second name of one.
async fn unknown_path(
    reader: &mut Reader,
    known: &Known,
    candidate: Candidate,
) -> Result<Option<Work>> {
    let Some(file) = file_id(&candidate.path) else {
        return Ok(Some(work_for(candidate, None, false)));
    };
    let same_file = match known.of_file(file) {
        Some(sources) => sources,
        None => reader.sources_of_file(file).await?,
    };
    for source in same_file {
        if file_id(&source.path) == Some(file) {
            // cases.md 34: one file under two names (symlink, bind mount, hard link) is one source.
            return Ok(None);
        }
        let is_gone = fs::symlink_metadata(&source.path).is_err();
        if is_gone && source.tool == candidate.tool {
            // cases.md 41: moved, as to `archived_sessions`. That the inode was not merely used again is
            // checked against the hashes when the file is read.
            return Ok(Some(work_for(candidate, Some(source), true)));
        }
    }
    Ok(Some(work_for(candidate, None, false)))
}

/// The whole list of sources, for a first scan.
#[derive(Default)]
struct Known {
    by_path: Option<HashMap<PathBuf, SourceState>>,
    by_file: HashMap<FileId, Vec<PathBuf>>,
}

impl Known {
    async fn load(&mut self, reader: &mut Reader) -> Result<()> {
        let mut by_path = HashMap::new();
        let by_file = &mut self.by_file;
        reader
            .sources(|source| {
                by_file.entry(source.checkpoint.file).or_default().push(source.path.clone());
                by_path.insert(source.path.clone(), source);
            })
            .await?;
        self.by_path = Some(by_path);
        Ok(())
    }

    /// `None` if the list was not loaded; else the source at `path`, if there is one.
    #[expect(clippy::option_option, reason = "not loaded and not there are two answers")]
    fn get(&self, path: &Path) -> Option<Option<SourceState>> {
        self.by_path.as_ref().map(|by_path| by_path.get(path).cloned())
    }

    fn of_file(&self, file: FileId) -> Option<Vec<SourceState>> {
        let by_path = self.by_path.as_ref()?;
        let paths = self.by_file.get(&file).map(Vec::as_slice).unwrap_or_default();
        Some(paths.iter().filter_map(|path| by_path.get(path)).cloned().collect())
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
