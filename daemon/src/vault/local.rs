//! The local vault: a directory of Markdown files with front matter, which people read, edit and keep in Git.
//!
//! Invariants: directories are 0700, files 0600, whatever the umask; a file is whole or not there (temporary
//! name, sync, rename, sync of the directory); no path leads out of the vault (every directory is opened below
//! its parent and no symbolic link is followed); a note that would not change is not touched.

use std::fs::{DirBuilder, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use majordomus_core::note::{NoteKind, NoteStatus, slug};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::front_matter::{FrontMatter, Value};
use super::place::Place;
use super::{NoteHead, PutNote, Stored, StoredNote, UpdateNote, VaultError, Version};

/// The largest body that is written; proxies of AKB cut there too.
const MAX_BODY: usize = 1 << 20;
/// The largest file that is taken for a note.
const MAX_FILE: u64 = 4 << 20;
/// Directories below a collection that a search goes down.
const MAX_DEPTH: usize = 8;

/// A directory of notes. One process writes to it at a time; people may edit it at any time.
#[derive(Debug)]
pub struct LocalVault {
    root: PathBuf,
    /// Held from reading a note to replacing it, so that our own updates never cross.
    writing: Mutex<()>,
}

impl LocalVault {
    /// Takes a directory as the vault; it is made (0700) when it is not there. It may itself be reached through
    /// a symbolic link: where the vault lies is the user's choice.
    pub fn open(root: &Path) -> Result<Self, VaultError> {
        let failed = |doing, source| VaultError::Io { doing, path: root.to_owned(), source };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(root)
            .map_err(|source| failed("make the vault's directory", source))?;
        let root =
            root.canonicalize().map_err(|source| failed("find the vault's directory", source))?;
        Ok(Self { root, writing: Mutex::new(()) })
    }

    pub(super) fn put(&self, note: &PutNote) -> Result<Stored, VaultError> {
        if !slug::is_normal(&note.slug) {
            let reason = "a slug is of lower-case letters, digits, `_` and single `-`, at most 80 characters";
            return Err(VaultError::Refused { what: note.slug.clone(), reason });
        }
        check_body(&note.slug, &note.body)?;
        let place = Place::new(&note.collection, &format!("{}.md", note.slug))?;
        let at = note.at.to_string();
        let mut head = FrontMatter::default();
        head.set("title", Value::Text(&note.title));
        head.set("type", Value::Text(&note.kind));
        head.set("status", Value::Text(note.status.as_str()));
        head.set("tags", Value::List(&note.tags));
        head.set("summary", Value::Text(&note.summary));
        head.set("created", Value::Text(&at));
        head.set("updated", Value::Text(&at));
        for (key, uris) in [("depends_on", &note.depends_on), ("related_to", &note.related_to)] {
            if !uris.is_empty() {
                head.set(key, Value::List(uris));
            }
        }
        let file = head.file(&note.body);
        let _held = self.lock();
        let directory = self.make_directory(&place)?;
        self.write(&directory, &place, file.as_bytes(), Replace::Never)?;
        Ok(stored(&place, file.as_bytes()))
    }

    pub(super) fn get(&self, uri: &str) -> Result<StoredNote, VaultError> {
        let place = Place::from_uri(uri)?;
        let directory = self.directory(&place).map_err(|error| not_found(error, uri))?;
        let file = self.read(&directory, &place).map_err(|error| not_found(error, uri))?;
        let body = with_plain_line_ends(FrontMatter::split(&file).1.trim());
        Ok(StoredNote { head: note_head(&place, &file), body })
    }

    pub(super) fn update(&self, uri: &str, change: &UpdateNote) -> Result<Stored, VaultError> {
        let place = Place::from_uri(uri)?;
        check_body(&place.path(), &change.body)?;
        let _held = self.lock();
        let directory = self.directory(&place).map_err(|error| not_found(error, uri))?;
        let old = self.read(&directory, &place).map_err(|error| not_found(error, uri))?;
        if change.expected.as_ref().is_some_and(|expected| *expected != version(old.as_bytes())) {
            return Err(VaultError::Conflict { path: place.path() });
        }
        let (old_head, old_body) = FrontMatter::split(&old);
        let mut head = old_head.clone();
        if old_head == FrontMatter::default() {
            // A person took it away: without it no listing would know the note.
            let NoteHead { title, status, .. } = note_head(&place, &old);
            head.set("title", Value::Text(&title));
            let mut kinds = NoteKind::ALL.into_iter();
            if let Some(kind) = kinds.find(|kind| kind.collection() == place.collection) {
                head.set("type", Value::Text(kind.akb_type()));
            }
            head.set("status", Value::Text(status.as_str()));
        }
        if let Some(title) = &change.title {
            head.set("title", Value::Text(title));
        }
        if let Some(status) = change.status {
            head.set("status", Value::Text(status.as_str()));
        }
        if let Some(tags) = &change.tags {
            head.set("tags", Value::List(tags));
        }
        if let Some(summary) = &change.summary {
            head.set("summary", Value::Text(summary));
        }
        if head == old_head && change.body.trim() == with_plain_line_ends(old_body.trim()) {
            return Ok(stored(&place, old.as_bytes()));
        }
        head.set("updated", Value::Text(&change.at.to_string()));
        let mut file = head.file(&change.body);
        if has_windows_line_ends(&old) {
            // As the person's editor writes it, all of it.
            file = file.replace("\r\n", "\n").replace('\n', "\r\n");
        }
        self.write(&directory, &place, file.as_bytes(), Replace::This(&version(old.as_bytes())))?;
        tracing::debug!(path = %place.path(), message = %change.message, "note updated");
        Ok(stored(&place, file.as_bytes()))
    }

    pub(super) fn browse(
        &self,
        collection: &str,
        archived: bool,
    ) -> Result<Vec<NoteHead>, VaultError> {
        let mut heads = Vec::new();
        self.walk(collection, 0, &mut |head, _| {
            if archived || head.status != NoteStatus::Archived {
                heads.push(head);
            }
        })?;
        newest_first(&mut heads);
        Ok(heads)
    }

    pub(super) fn search(
        &self,
        query: &str,
        collection: &str,
        tags: &[String],
    ) -> Result<Vec<NoteHead>, VaultError> {
        let query = query.to_lowercase();
        let words: Vec<&str> = query.split_whitespace().collect();
        let mut heads = Vec::new();
        self.walk(collection, MAX_DEPTH, &mut |head, file| {
            let tagged = tags.is_empty() || head.tags.iter().any(|tag| tags.contains(tag));
            if head.status == NoteStatus::Archived || !tagged {
                return;
            }
            // Front matter holds title, summary and tags.
            let text = file.to_lowercase();
            if words.iter().all(|word| text.contains(word)) {
                heads.push(head);
            }
        })?;
        newest_first(&mut heads);
        Ok(heads)
    }

    /// Shows every note of a collection, down to `depth` directories below it. A file that cannot be read as a
    /// note is passed over: one of them must not hide the others.
    fn walk(
        &self,
        collection: &str,
        depth: usize,
        show: &mut dyn FnMut(NoteHead, &str),
    ) -> Result<(), VaultError> {
        let place = Place::new(collection, "x.md")?;
        let directory = match self.directory(&place) {
            Err(VaultError::NotFound { .. }) => return Ok(()),
            other => other?,
        };
        for (name, kind) in self.names(&directory, &place)? {
            let below = format!("{collection}/{name}");
            if kind == FileType::Directory && depth > 0 {
                if let Err(error) = self.walk(&below, depth - 1, show) {
                    tracing::warn!(collection = %below, %error, "collection passed over");
                }
            } else if kind == FileType::RegularFile && name.strip_suffix(".md").is_some() {
                let note = Place::new(collection, &name)
                    .and_then(|place| Ok((self.read(&directory, &place)?, place)));
                match note {
                    Ok((file, place)) => show(note_head(&place, &file), &file),
                    Err(error) => tracing::warn!(path = %below, %error, "note passed over"),
                }
            }
        }
        Ok(())
    }

    /// The visible names in a directory, sorted.
    fn names(
        &self,
        directory: &OwnedFd,
        place: &Place,
    ) -> Result<Vec<(String, FileType)>, VaultError> {
        let failed = |errno: Errno| self.io("list", &place.collection, errno);
        let mut names = Vec::new();
        for entry in Dir::read_from(directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name.starts_with('.') {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not say.
                FileType::Unknown => rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
                kind => kind,
            };
            names.push((name.to_owned(), kind));
        }
        names.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(names)
    }

    /// Opens a note's directory.
    fn directory(&self, place: &Place) -> Result<OwnedFd, VaultError> {
        let mut directory = self.open_root()?;
        for name in place.collection.split('/') {
            directory = rustix::fs::openat(&directory, name, DIRECTORY, Mode::empty())
                .map_err(|errno| self.no_directory(place, errno))?;
        }
        Ok(directory)
    }

    /// Opens a note's directory and makes what is not there.
    fn make_directory(&self, place: &Place) -> Result<OwnedFd, VaultError> {
        let mut directory = self.open_root()?;
        for name in place.collection.split('/') {
            let private = Mode::from_raw_mode(0o700);
            match rustix::fs::mkdirat(&directory, name, private) {
                Ok(()) => {
                    // The umask may have taken bits away.
                    rustix::fs::chmodat(&directory, name, private, AtFlags::empty())
                        .map_err(|errno| self.io("set the mode of", &place.collection, errno))?;
                    self.sync(&directory, place)?;
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(self.io("make", &place.collection, errno)),
            }
            directory = rustix::fs::openat(&directory, name, DIRECTORY, Mode::empty())
                .map_err(|errno| self.no_directory(place, errno))?;
        }
        Ok(directory)
    }

    fn open_root(&self) -> Result<OwnedFd, VaultError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(&self.root, flags, Mode::empty()).map_err(|errno| {
            VaultError::Unreachable {
                place: self.root.display().to_string(),
                reason: std::io::Error::from(errno).to_string(),
            }
        })
    }

    fn no_directory(&self, place: &Place, errno: Errno) -> VaultError {
        match errno {
            Errno::NOENT => VaultError::NotFound { uri: place.uri() },
            Errno::LOOP | Errno::NOTDIR | Errno::MLINK => VaultError::Refused {
                what: place.collection.clone(),
                reason: "a part of the collection is a symbolic link or no directory",
            },
            errno => self.io("open", &place.collection, errno),
        }
    }

    /// The text of a note's file.
    fn read(&self, directory: &OwnedFd, place: &Place) -> Result<String, VaultError> {
        let refused = |reason| VaultError::Refused { what: place.path(), reason };
        // Without waiting: a named pipe with a note's name must not hold the daemon.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, place.file.as_str(), flags, Mode::empty());
        let file = File::from(file.map_err(|errno| match errno {
            Errno::NOENT => VaultError::NotFound { uri: place.uri() },
            Errno::LOOP | Errno::MLINK => refused("it is a symbolic link"),
            errno => self.io("open", &place.path(), errno),
        })?);
        let failed =
            |source| VaultError::Io { doing: "read", path: self.root.join(place.path()), source };
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(refused("it is no regular file"));
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(refused("it is larger than a note may be (4 MiB)"));
        }
        String::from_utf8(bytes).map_err(|_| refused("it is not UTF-8"))
    }

    /// Writes a file whole: temporary name, sync, final name, sync of the directory.
    fn write(
        &self,
        directory: &OwnedFd,
        place: &Place,
        bytes: &[u8],
        replace: Replace<'_>,
    ) -> Result<(), VaultError> {
        let path = place.path();
        let temporary = format!(".majordomus-{}.tmp", &hex(path.as_bytes())[..16]);
        let failed = |doing| move |errno| self.io(doing, &place.path(), errno);
        // Left by a crash.
        match rustix::fs::unlinkat(directory, temporary.as_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(self.io("clear the way for", &path, errno)),
        }
        self.write_temporary(directory, &temporary, place, bytes)?;
        let finished = match replace {
            Replace::Never => self.name_once(directory, &temporary, place),
            // A person may have saved the file since it was read. What is left is the instant between these two
            // calls, which no file system call closes.
            Replace::This(version_read) => match self.read(directory, place) {
                Ok(now) if version(now.as_bytes()) == *version_read => rustix::fs::renameat(
                    directory,
                    temporary.as_str(),
                    directory,
                    place.file.as_str(),
                )
                .map_err(failed("replace")),
                Ok(_) => Err(VaultError::Conflict { path }),
                Err(error) => Err(error),
            },
        };
        if let Err(error) = finished {
            // The temporary file is cleared by the next write; the first error is the one that tells.
            if let Err(errno) =
                rustix::fs::unlinkat(directory, temporary.as_str(), AtFlags::empty())
            {
                tracing::debug!(%temporary, %errno, "temporary file left behind");
            }
            return Err(error);
        }
        self.sync(directory, place)
    }

    fn write_temporary(
        &self,
        directory: &OwnedFd,
        name: &str,
        place: &Place,
        bytes: &[u8],
    ) -> Result<(), VaultError> {
        let private = Mode::from_raw_mode(0o600);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let failed = |errno| self.io("write", &place.path(), errno);
        let file = rustix::fs::openat(directory, name, flags, private).map_err(failed)?;
        // The umask may have taken bits away.
        rustix::fs::fchmod(&file, private).map_err(failed)?;
        let mut file = File::from(file);
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|source| VaultError::Io {
            doing: "write",
            path: self.root.join(place.path()),
            source,
        })
    }

    /// Gives the temporary file its name, unless that is taken.
    fn name_once(
        &self,
        directory: &OwnedFd,
        temporary: &str,
        place: &Place,
    ) -> Result<(), VaultError> {
        let name = place.file.as_str();
        let failed = |errno| match errno {
            Errno::EXIST => VaultError::Conflict { path: place.path() },
            errno => self.io("name", &place.path(), errno),
        };
        match rustix::fs::linkat(directory, temporary, directory, name, AtFlags::empty()) {
            Ok(()) => rustix::fs::unlinkat(directory, temporary, AtFlags::empty()).map_err(failed),
            // No hard links here: the name is claimed by an empty file, then the whole one takes its place.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(0o600))
                    .map_err(failed)?;
                rustix::fs::renameat(directory, temporary, directory, name).map_err(failed)
            }
            Err(errno) => Err(failed(errno)),
        }
    }

    fn sync(&self, directory: &OwnedFd, place: &Place) -> Result<(), VaultError> {
        match rustix::fs::fsync(directory) {
            // Some file systems cannot sync a directory; there is nothing more to be done there.
            Ok(()) | Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(()),
            Err(errno) => Err(self.io("sync the directory of", &place.path(), errno)),
        }
    }

    fn io(&self, doing: &'static str, path: &str, errno: Errno) -> VaultError {
        VaultError::Io { doing, path: self.root.join(path), source: errno.into() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ()> {
        // It guards no data, so a panic elsewhere leaves nothing half done.
        self.writing.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A directory below another, never through a symbolic link.
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What a write may replace.
#[derive(Clone, Copy)]
enum Replace<'a> {
    Never,
    /// The file in this version.
    This(&'a Version),
}

fn check_body(what: &str, body: &str) -> Result<(), VaultError> {
    let refused = |reason| Err(VaultError::Refused { what: what.to_owned(), reason });
    if body.contains('\0') {
        return refused("the body holds a NUL character");
    }
    if body.len() > MAX_BODY {
        return refused("the body is larger than 1 MiB");
    }
    Ok(())
}

/// Whether most lines of a file end as Windows has it.
fn has_windows_line_ends(file: &str) -> bool {
    file.matches("\r\n").count() * 2 > file.matches('\n').count()
}

fn with_plain_line_ends(text: &str) -> String {
    if has_windows_line_ends(text) { text.replace("\r\n", "\n") } else { text.to_owned() }
}

fn not_found(error: VaultError, uri: &str) -> VaultError {
    match error {
        VaultError::NotFound { .. } => VaultError::NotFound { uri: uri.to_owned() },
        other => other,
    }
}

fn note_head(place: &Place, file: &str) -> NoteHead {
    let (head, body) = FrontMatter::split(file);
    // A person's file may say less than ours do.
    let titled =
        || body.lines().find_map(|line| line.strip_prefix("# ")).map(str::trim).map(str::to_owned);
    let named = || place.file.trim_end_matches(".md").to_owned();
    let filled = |key| head.text(key).filter(|text| !text.is_empty());
    NoteHead {
        uri: place.uri(),
        path: place.path(),
        title: filled("title").or_else(titled).unwrap_or_else(named),
        kind: filled("type").unwrap_or_else(|| "note".to_owned()),
        status: filled("status")
            .and_then(|text| NoteStatus::parse(&text))
            .unwrap_or(NoteStatus::Active),
        tags: head.list("tags").unwrap_or_default(),
        summary: filled("summary").unwrap_or_default(),
        version: version(file.as_bytes()),
        updated: filled("updated").and_then(|text| text.parse().ok()),
    }
}

fn newest_first(heads: &mut [NoteHead]) {
    heads.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| a.path.cmp(&b.path)));
}

fn stored(place: &Place, bytes: &[u8]) -> Stored {
    Stored { uri: place.uri(), path: place.path(), version: version(bytes) }
}

/// The first 16 hex digits of the SHA-256 of the file's bytes.
fn version(bytes: &[u8]) -> Version {
    let mut hex = hex(bytes);
    hex.truncate(16);
    Version(hex)
}

fn hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    digest.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests;
