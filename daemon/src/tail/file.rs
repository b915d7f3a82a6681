//! Reads one file, on a thread of its own: opens it, proves which content it is, frames and parses what is new.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;

use majordomus_core::entry::frame::{Body, Framer, Line};
use majordomus_core::entry::{Entry, EntryKind, Fact, Reader, ShapeCount, Shapes, SourceIdentity};
use majordomus_core::ids::{LineHash, SourceRow, Tool};
use majordomus_core::ledger::{Chain, Checkpoint, FileId, NewEvent, SourceState, SourceStatus};

use super::identity::{Work, is_packed, mtime_ns};
use crate::policy::Policy;

/// What the reading thread tells the writer, in order.
#[derive(Debug)]
pub(super) enum Piece {
    /// A file begins; its source, if the ledger has it.
    Begin(Option<SourceRow>),
    /// Lines of the file.
    Lines(Box<Lines>),
    /// There is nothing to append; what was seen of the file is to be remembered.
    Checkpoint { tool: Tool, path: PathBuf, from: u64, checkpoint: Box<Checkpoint> },
    /// The file is gone.
    Gone,
    /// The source's file is now at this path.
    Moved(PathBuf),
    /// Something that a person should know; one line.
    Problem(String),
    /// The file is done.
    End,
}

/// Lines of a file, ready to be appended.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) tool: Tool,
    pub(super) path: PathBuf,
    pub(super) identity: SourceIdentity,
    /// Where the source stood before them.
    pub(super) from: u64,
    pub(super) events: Vec<NewEvent>,
    pub(super) shapes: Vec<ShapeCount>,
    pub(super) checkpoint: Checkpoint,
}

/// Events in one piece, at most.
const EVENTS_PER_PIECE: usize = 1_000;

/// What the ledger says of a source of which not every piece was committed.
const NOT_AT_END: &str = "not read to its end yet";

/// Bytes read at once.
const BUFFER: usize = 256 * 1024;

/// While nothing tells whose the lines are, up to this many of them wait (formats.md part 3).
const HELD_LINES: usize = 200;
/// And up to this many bytes.
const HELD_BYTES: u64 = 1024 * 1024;
/// Lines of which none is an object wait longer: most likely they are no session's at all.
const HELD_JUNK: usize = 10_000;

/// The anchor of a file whose bytes could not be read again.
const NO_ANCHOR: LineHash = LineHash([0; 16]);

/// Bytes at either end that the anchor covers.
const ANCHOR: u64 = 4 * 1024;

/// Sends a piece; breaks when the writer is gone.
fn send(to: &SyncSender<Piece>, piece: Piece) -> ControlFlow<()> {
    match to.send(piece) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}

/// Reads what is new in one file and sends it.
pub(super) fn read(work: &Work, policy: &Policy, to: &SyncSender<Piece>) -> ControlFlow<()> {
    send(to, Piece::Begin(work.known.as_ref().map(|source| source.row)))?;
    match open(&work.path) {
        Ok(opened) => {
            let path = work.path.clone();
            match Reading::begin(work, policy, opened, to)? {
                Ok(None) => {}
                Ok(Some(mut reading)) => {
                    if let Err(error) = reading.run(to)? {
                        send(
                            to,
                            Piece::Problem(format!("cannot read {}: {error}", path.display())),
                        )?;
                    }
                }
                Err(error) => {
                    send(to, Piece::Problem(format!("cannot read {}: {error}", path.display())))?;
                }
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if work.known.is_some() {
                send(to, Piece::Gone)?;
            }
        }
        Err(error) => {
            let line =
                format!("cannot read {}: {error}; check its permissions", work.path.display());
            send(to, Piece::Problem(line))?;
        }
    }
    send(to, Piece::End)
}

/// An open file and what the file system said of it before the first byte was read. What is written meanwhile
/// makes a difference at the next look.
struct Opened {
    file: File,
    id: FileId,
    size: u64,
    mtime_ns: i64,
}

fn open(path: &Path) -> io::Result<Opened> {
    // Without O_NONBLOCK a pipe with a session file's name would hold the thread for ever.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(Opened {
        id: FileId { device: metadata.dev(), inode: metadata.ino() },
        size: metadata.len(),
        mtime_ns: mtime_ns(&metadata),
        file,
    })
}

/// The checkpoint of a source before its first line.
pub(super) fn start_of(checkpoint: &Checkpoint) -> Checkpoint {
    Checkpoint {
        position: 0,
        chain: Chain::EMPTY,
        pending: 0,
        size: 0,
        mtime_ns: 0,
        ..checkpoint.clone()
    }
}

/// How a known source's content stands to what was read of it.
enum Continuity {
    /// What was read is still there, byte for byte.
    Same,
    /// It is another content.
    Rewritten,
}

/// Whether the file takes part, as far as its lines tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// No line named a directory yet.
    Unknown,
    /// It does.
    Takes,
    /// Policy keeps it out.
    Excluded,
}

/// The state up to which lines were sent; what follows can be given up without a trace.
#[derive(Clone, Debug)]
struct Sent {
    position: u64,
    chain: Chain,
    reader: Reader,
}

/// The pass over one file.
struct Reading<'a> {
    policy: &'a Policy,
    part: Part,
    tool: Tool,
    path: PathBuf,
    opened: Opened,
    reader: Reader,
    generation: u32,
    chain: Chain,
    /// End of the last line that was taken.
    position: u64,
    sent: Sent,
    events: Vec<NewEvent>,
    shapes: Shapes,
    /// Whether a line was an object: a file without any is no session file.
    has_object: bool,
    accept_unfinished: bool,
}

impl<'a> Reading<'a> {
    fn begin(
        work: &Work,
        policy: &'a Policy,
        opened: Opened,
        to: &SyncSender<Piece>,
    ) -> ControlFlow<(), io::Result<Option<Self>>> {
        let continuity = work.known.as_ref().map(|known| continuity(known, &opened, &work.path));
        let continuity = match continuity.transpose() {
            Ok(continuity) => continuity,
            Err(error) => return ControlFlow::Continue(Err(error)),
        };
        let start = match (&work.below_root, &work.known) {
            (Some(below_root), _) => Reader::new(work.tool, below_root),
            // The reader of a source of which nothing was read stands at the start and knows its name.
            (None, Some(known)) => known.checkpoint.reader.clone(),
            (None, None) => return ControlFlow::Continue(Ok(None)),
        };
        let fresh = |generation| Self {
            policy,
            part: Part::Unknown,
            tool: work.tool,
            path: work.path.clone(),
            reader: start.clone(),
            generation,
            chain: Chain::EMPTY,
            position: 0,
            sent: Sent { position: 0, chain: Chain::EMPTY, reader: start.clone() },
            events: Vec::new(),
            shapes: Shapes::default(),
            has_object: false,
            accept_unfinished: work.accept_unfinished,
            opened,
        };
        let (Some(known), Some(continuity)) = (&work.known, continuity) else {
            return ControlFlow::Continue(Ok(Some(fresh(0))));
        };
        let reading = match continuity {
            Continuity::Same => {
                if work.moved {
                    send(to, Piece::Moved(work.path.clone()))?;
                }
                let seen = &known.checkpoint;
                // A crash may have left a row without lines, beside a reader that had read some.
                let reader = if seen.position == 0 { start.clone() } else { seen.reader.clone() };
                Self {
                    shapes: Shapes::new(reader.version()),
                    reader,
                    chain: seen.chain,
                    position: seen.position,
                    sent: Sent {
                        position: seen.position,
                        chain: seen.chain,
                        reader: seen.reader.clone(),
                    },
                    has_object: seen.position > 0,
                    ..fresh(seen.generation)
                }
            }
            Continuity::Rewritten if work.moved => {
                // The inode was used again for another file: nothing of the known source is in it.
                send(to, Piece::Begin(None))?;
                fresh(0)
            }
            // The unfinished line of what was is gone; the next look, which knows the place, reads what is.
            Continuity::Rewritten if work.below_root.is_none() => {
                return ControlFlow::Continue(Ok(None));
            }
            Continuity::Rewritten => fresh(known.checkpoint.generation + 1),
        };
        ControlFlow::Continue(Ok(Some(reading)))
    }

    /// Reads to the end of the file. The inner error is the file's, the break is the writer's.
    fn run(&mut self, to: &SyncSender<Piece>) -> ControlFlow<(), io::Result<()>> {
        let mut framer = Framer::new(self.position);
        let file = match self.opened.file.try_clone() {
            Ok(file) => file,
            Err(error) => return ControlFlow::Continue(Err(error)),
        };
        let mut input = match stream(file, &self.path, self.position) {
            Ok(input) => input,
            Err(error) => return ControlFlow::Continue(Err(error)),
        };
        let mut buffer = vec![0; BUFFER];
        loop {
            let n = match input.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return ControlFlow::Continue(Err(error)),
            };
            framer.push(&buffer[..n], |line| {
                self.take(&line);
                if self.events.len() >= EVENTS_PER_PIECE {
                    self.flush(to, 0, false)
                } else {
                    ControlFlow::Continue(())
                }
            })?;
            if self.gave_up() {
                break;
            }
        }
        let mut pending = framer.pending();
        if self.accept_unfinished && self.take_unfinished(&framer) {
            pending = 0;
        }
        self.flush(to, pending, true)?;
        ControlFlow::Continue(Ok(()))
    }

    /// Makes an event of a line.
    fn take(&mut self, line: &Line<'_>) {
        self.chain = add(self.chain, line);
        self.position = line.offset + line.length + 1;
        let entry = match line.body {
            // A blank line is no entry: resumed writers leave them.
            Body::Whole(bytes) if bytes.trim_ascii().is_empty() => return,
            Body::Whole(bytes) => {
                let entry = self.reader.read(bytes);
                self.shapes.take(&entry, bytes);
                entry
            }
            Body::TooLong(_) => {
                let entry = Entry::unreadable("longer than 64 MiB");
                self.shapes.take(&entry, b"");
                entry
            }
        };
        self.push(line.offset, line.length, line.hash, entry);
    }

    fn push(&mut self, position: u64, length: u64, hash: LineHash, entry: Entry) {
        self.has_object |= entry.kind != EntryKind::Unreadable;
        if self.part == Part::Unknown
            && let Some(cwd) = &entry.context.cwd
        {
            let remote = entry.facts.iter().find_map(|fact| match fact {
                Fact::Git { remote, .. } => remote.as_deref(),
                _ => None,
            });
            let excluded = self.policy.exclusion(Some(cwd), remote).is_some();
            self.part = if excluded { Part::Excluded } else { Part::Takes };
        }
        self.events.push(NewEvent { position, length, hash, entry });
    }

    /// Nothing of what follows in the file can change what becomes of it.
    fn gave_up(&self) -> bool {
        let is_orphan = !self.waits() && self.reader.identity_by_name().is_none();
        self.part == Part::Excluded || is_orphan
    }

    /// Few lines were read yet: those that tell more may still come.
    fn waits(&self) -> bool {
        self.events.len() < HELD_LINES && self.position < HELD_BYTES
    }

    /// Takes the last line without its line end if it is complete. True if it was taken.
    fn take_unfinished(&mut self, framer: &Framer) -> bool {
        let Some(bytes) = framer.unfinished() else { return false };
        let mut reader = self.reader.clone();
        let entry = reader.read(bytes);
        let is_damaged = entry.facts.iter().any(|fact| matches!(fact, Fact::Reason(_)))
            && entry.kind != EntryKind::Unknown;
        if entry.kind == EntryKind::Unreadable || is_damaged {
            return false;
        }
        let hash = LineHash::of(bytes);
        self.shapes.take(&entry, bytes);
        self.reader = reader;
        self.chain = self.chain.then(hash);
        self.position = framer.line_start() + bytes.len() as u64;
        self.push(framer.line_start(), bytes.len() as u64, hash, entry);
        true
    }

    /// Sends the events taken so far. At the end of the file it sends a checkpoint in any case.
    fn flush(&mut self, to: &SyncSender<Piece>, pending: u64, at_end: bool) -> ControlFlow<()> {
        let Some(identity) = self.decided(at_end) else {
            return if at_end { self.send_given_up(to) } else { ControlFlow::Continue(()) };
        };
        let checkpoint = self.checkpoint(pending, SourceStatus::Live);
        let (tool, path) = (self.tool, self.path.clone());
        if self.events.is_empty() {
            let from = self.sent.position;
            let piece = Piece::Checkpoint { tool, path, from, checkpoint: Box::new(checkpoint) };
            return if at_end { send(to, piece) } else { ControlFlow::Continue(()) };
        }
        let checkpoint = Checkpoint {
            // A file that is left in the middle is no file that did not change since the last look.
            error: (!at_end).then(|| NOT_AT_END.to_owned()),
            ..checkpoint
        };
        let from = self.sent.position;
        let (chain, reader) = (self.chain, self.reader.clone());
        self.sent = Sent { position: self.position, chain, reader };
        let events = std::mem::take(&mut self.events);
        let shapes = self.shapes.take_counts();
        let lines = Lines { tool, path, identity, from, events, shapes, checkpoint };
        send(to, Piece::Lines(Box::new(lines)))
    }

    /// Whose the lines are, once they tell, or will not tell any more, and may be recorded.
    fn decided(&self, at_end: bool) -> Option<SourceIdentity> {
        let is_fresh = self.sent.position == 0;
        let no_more_comes = !self.waits() || (at_end && self.accept_unfinished);
        let is_allowed = match self.part {
            Part::Takes => true,
            Part::Excluded => false,
            // What was recorded before goes on; what is new must be known by its directory, where that matters.
            Part::Unknown => {
                !is_fresh
                    || !self.policy.needs_directory()
                    || (no_more_comes && self.policy.exclusion(None, None).is_none())
            }
        };
        // A file without a single object is no session file, unless it is too long to be held back.
        let is_junk = !self.has_object && (at_end || self.events.len() < HELD_JUNK);
        if !is_allowed || is_junk || (at_end && is_fresh && self.tells_of_others()) {
            return None;
        }
        // What was decided once, by whatever, stays so: lines that were sent are not taken back.
        let decides = no_more_comes || self.sent.position > 0;
        self.reader.identity().or_else(|| decides.then(|| self.reader.identity_by_name()).flatten())
    }

    /// Nothing but titles of other sessions, which early versions of Claude Code wrote into files of their own: no
    /// session (formats.md 1.3, part 5).
    fn tells_of_others(&self) -> bool {
        let says_nothing = |event: &NewEvent| {
            event.entry.kind == EntryKind::State
                && event.entry.stamp.is_none()
                && event.entry.at.is_none()
        };
        self.tool == Tool::Claude && !self.events.is_empty() && self.events.iter().all(says_nothing)
    }

    /// Remembers what was seen of a file whose lines do not go into the ledger, or not yet.
    fn send_given_up(&self, to: &SyncSender<Piece>) -> ControlFlow<()> {
        let is_junk = !self.has_object && !self.events.is_empty();
        let status = if self.part == Part::Excluded {
            SourceStatus::Excluded
        } else if is_junk || self.gave_up() || self.accept_unfinished {
            SourceStatus::Unrecognised
        } else {
            SourceStatus::Live
        };
        let Sent { position, chain, reader } = self.sent.clone();
        let checkpoint = Checkpoint {
            position,
            chain,
            reader,
            anchor: self.anchor(position),
            pending: self.opened.size.saturating_sub(position),
            ..self.checkpoint(0, status)
        };
        let (tool, path, from) = (self.tool, self.path.clone(), self.sent.position);
        send(to, Piece::Checkpoint { tool, path, from, checkpoint: Box::new(checkpoint) })
    }

    fn checkpoint(&self, pending: u64, status: SourceStatus) -> Checkpoint {
        Checkpoint {
            file: self.opened.id,
            generation: self.generation,
            size: self.opened.size,
            mtime_ns: self.opened.mtime_ns,
            position: self.position,
            chain: self.chain,
            anchor: self.anchor(self.position),
            pending,
            reader: self.reader.clone(),
            status,
            error: None,
        }
    }

    fn anchor(&self, position: u64) -> LineHash {
        if is_packed(&self.path) {
            return LineHash::of(b"");
        }
        // An anchor that could not be read never matches, which only costs a full comparison later.
        anchor(&self.opened.file, position).unwrap_or(NO_ANCHOR)
    }
}

/// Adds a line to the rolling hash. An empty one changes nothing: a last line that was taken without its line end
/// may get it later, and the line end alone looks like an empty line then.
fn add(chain: Chain, line: &Line<'_>) -> Chain {
    if line.length == 0 { chain } else { chain.then(line.hash) }
}

/// Opens the plain text of a file at `position`.
fn stream(mut file: File, path: &Path, position: u64) -> io::Result<Box<dyn Read>> {
    if is_packed(path) {
        // A cloned handle shares its offset with the one that the comparison read from.
        file.seek(SeekFrom::Start(0))?;
        let mut plain = zstd::stream::read::Decoder::new(file)?;
        io::copy(&mut plain.by_ref().take(position), &mut io::sink())?;
        return Ok(Box::new(plain));
    }
    file.seek(SeekFrom::Start(position))?;
    Ok(Box::new(file))
}

/// Hash of the first and the last bytes before `position`.
fn anchor(file: &File, position: u64) -> io::Result<LineHash> {
    let n = position.min(ANCHOR);
    let mut bytes = vec![0; usize::try_from(2 * n).unwrap_or(0)];
    let (head, tail) = bytes.split_at_mut(usize::try_from(n).unwrap_or(0));
    file.read_exact_at(head, 0)?;
    file.read_exact_at(tail, position - n)?;
    Ok(LineHash::of(&bytes))
}

/// Tells an append from a rewrite. The usual case, the same file grown, costs two small reads; whenever the
/// file system shows something unusual, every line that was read is compared through the rolling hash.
fn continuity(known: &SourceState, opened: &Opened, path: &Path) -> io::Result<Continuity> {
    let seen = &known.checkpoint;
    if seen.position == 0 {
        return Ok(Continuity::Same);
    }
    let compressed = is_packed(path);
    if !compressed {
        if opened.size < seen.position {
            return Ok(Continuity::Rewritten);
        }
        // A packed file has no anchor, and one that could not be read proves nothing.
        let is_anchored = seen.anchor != NO_ANCHOR && seen.anchor != LineHash::of(b"");
        if is_anchored && anchor(&opened.file, seen.position)? != seen.anchor {
            return Ok(Continuity::Rewritten);
        }
        let has_grown = opened.id == seen.file && opened.size > seen.size;
        if is_anchored && has_grown {
            return Ok(Continuity::Same);
        }
    }
    let same = chain_of(opened.file.try_clone()?, path, seen.position)? == Some(seen.chain);
    Ok(if same { Continuity::Same } else { Continuity::Rewritten })
}

/// The rolling hash of a file's lines up to `position`; `None` if the file is shorter.
fn chain_of(file: File, path: &Path, position: u64) -> io::Result<Option<Chain>> {
    let mut input = stream(file, path, 0)?.take(position);
    let mut framer = Framer::new(0);
    let mut chain = Chain::EMPTY;
    let mut buffer = vec![0; BUFFER];
    let mut total = 0;
    loop {
        let n = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        total += n as u64;
        let flow: ControlFlow<()> = framer.push(&buffer[..n], |line| {
            chain = add(chain, &line);
            ControlFlow::Continue(())
        });
        debug_assert!(flow.is_continue());
    }
    // The last line may have been taken without its line end.
    if let Some(unfinished) = framer.unfinished() {
        chain = chain.then(LineHash::of(unfinished));
    }
    Ok((total == position).then_some(chain))
}
