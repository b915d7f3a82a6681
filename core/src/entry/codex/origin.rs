//! Whose a rollout is, and which of its lines were copied from another (formats.md 2.6).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::{Role, SourceIdentity};
use super::fields::Fields;
use crate::ids::NativeId;

/// The thread that a rollout records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Thread {
    /// File name without its endings.
    stem: String,
    /// The thread's own id, once a line has told it.
    id: Option<NativeId>,
    /// The session that a subagent works for.
    works_for: Option<NativeId>,
    /// Run by the tool for itself.
    machine: bool,
    forked_from: Option<NativeId>,
    copies: Copies,
}

/// Which lines were copied from another thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Copies {
    /// The other thread.
    origin: Option<NativeId>,
    /// Lines with a lower ordinal are copies.
    below: Option<i64>,
    /// The file really holds lines below it.
    by_ordinal: bool,
    /// Time in microseconds of the last copied line, while the copy lasts.
    burst: Option<i64>,
    /// The thread's own turns have begun.
    over: bool,
}

/// History is copied in one go: this much time (microseconds) without a line ends it. Real copies had 300 lines
/// within 0.2 s; what a person types next comes seconds later.
const BURST_GAP: u64 = 1_000_000;

/// What a header line is to its file.
#[derive(Debug, PartialEq)]
pub(super) enum Header {
    /// The first: it names the thread.
    First,
    /// The thread's own again (resume, changed settings).
    Again,
    /// That of another thread, whose history follows.
    Foreign,
}

impl Thread {
    /// A thread in the file at `path`.
    pub(super) fn new(path: &str) -> Self {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let name = name.strip_suffix(".zst").unwrap_or(name);
        let stem = name.strip_suffix(".jsonl").unwrap_or(name);
        Self { stem: stem.to_owned(), ..Self::default() }
    }

    /// The thread's own id, or the name that stands for it.
    pub(super) fn own_name(&self) -> &str {
        self.id.as_ref().map_or(&self.stem, NativeId::as_str)
    }

    /// The id of a subagent.
    pub(super) fn agent(&self) -> Option<String> {
        self.works_for.as_ref().and(self.id.as_ref()).map(|id| id.as_str().to_owned())
    }

    /// No person speaks here: a subagent, or a thread that the tool runs for itself.
    pub(super) fn is_helper(&self) -> bool {
        self.machine || self.works_for.is_some()
    }

    /// The session that this one was forked from.
    pub(super) fn forked_from(&self) -> Option<&NativeId> {
        self.forked_from.as_ref().filter(|_| !self.is_helper())
    }

    /// See [`super::super::Reader::identity`].
    pub(super) fn identity(&self) -> Option<SourceIdentity> {
        let id = self.id.clone()?;
        let (session, role) = match &self.works_for {
            Some(session) => (session.clone(), Role::Subagent { agent: id.as_str().to_owned() }),
            None if self.machine => (id, Role::Machine),
            None => (id, Role::Main),
        };
        Some(SourceIdentity { session, role, forked_from: self.forked_from().cloned() })
    }

    /// See [`super::super::Reader::identity_by_name`].
    pub(super) fn identity_by_name(&self) -> Option<SourceIdentity> {
        let session = uuid_in(&self.stem).or_else(|| NativeId::new(&self.stem))?;
        Some(SourceIdentity { session, role: Role::Main, forked_from: None })
    }

    /// A record that is no header came: if none came before it, the file's name tells the thread.
    pub(super) fn begins_without_header(&mut self) {
        if self.id.is_none() {
            self.id = uuid_in(&self.stem);
        }
    }

    /// A header of the bare grammar.
    pub(super) fn bare_header(&mut self, header: &Fields<'_>) {
        if self.id.is_none() {
            self.id = header.text("id").and_then(|id| NativeId::new(&id));
        }
    }

    /// A `session_meta`.
    pub(super) fn header(
        &mut self,
        meta: &Fields<'_>,
        at: Option<Timestamp>,
        ordinal: Option<i64>,
    ) -> Header {
        let native = |name: &str| meta.text(name).and_then(|id| NativeId::new(&id));
        let Some(id) = native("id").or_else(|| native("session_id")) else {
            self.begins_without_header();
            return Header::Again;
        };
        match &self.id {
            None => {
                self.adopt(id, meta);
                Header::First
            }
            Some(own) if *own == id => {
                // No history that was copied holds the copy's own header.
                self.copies.burst = None;
                Header::Again
            }
            Some(_) => {
                self.copies.second(&id, at, ordinal);
                if self.forked_from.is_none() && !self.is_helper() {
                    self.forked_from = Some(id);
                }
                Header::Foreign
            }
        }
    }

    fn adopt(&mut self, id: NativeId, meta: &Fields<'_>) {
        let native = |name: &str| meta.text(name).and_then(|id| NativeId::new(&id));
        let source = meta.object("source");
        let subagent = source.as_ref().and_then(|source| source.raw("subagent"));
        let thread_source = meta.text("thread_source");
        let thread_source = thread_source.as_deref().unwrap_or_default();
        let helper = subagent.is_some()
            || source.as_ref().is_some_and(|source| source.raw("internal").is_some())
            || matches!(thread_source, "subagent" | "guardian_review" | "memory_consolidation");
        self.forked_from = native("forked_from_id").filter(|from| *from != id);
        if helper {
            let spawned_by = || {
                let spawn = subagent.and_then(Fields::parse)?.object("thread_spawn")?;
                NativeId::new(&spawn.text("parent_thread_id")?)
            };
            let other = |candidate: Option<NativeId>| candidate.filter(|other| *other != id);
            self.works_for = other(native("session_id"))
                .or_else(|| other(native("parent_thread_id")))
                .or_else(|| other(spawned_by()))
                .or_else(|| self.forked_from.clone());
            self.machine = self.works_for.is_none();
            self.copies.origin = other(native("parent_thread_id"))
                .or_else(|| other(spawned_by()))
                .or_else(|| self.forked_from.clone())
                .or_else(|| self.works_for.clone());
        } else {
            self.copies.origin.clone_from(&self.forked_from);
        }
        // A fork may refer to its origin's lines without holding them; only a second header proves a copy.
        let own_start = meta.integer("subagent_history_start_ordinal");
        self.copies.below = own_start.or_else(|| meta.integer("forked_from_ordinal_exclusive"));
        self.copies.by_ordinal = own_start.is_some();
        self.id = Some(id);
    }

    /// The thread that a record was copied from, if it was. `turn` is the turn that the record begins.
    pub(super) fn copied_from(
        &mut self,
        turn: Option<&str>,
        at: Option<Timestamp>,
        ordinal: Option<i64>,
    ) -> Option<NativeId> {
        let own = self.id.as_ref()?;
        self.copies.covers(own, turn, at, ordinal).then(|| self.copies.origin.clone()).flatten()
    }

    /// The thread whose history follows a foreign header.
    pub(super) fn origin(&self) -> Option<NativeId> {
        self.copies.origin.clone()
    }
}

impl Copies {
    /// Another thread's header: its history begins.
    fn second(&mut self, id: &NativeId, at: Option<Timestamp>, ordinal: Option<i64>) {
        self.origin.get_or_insert_with(|| id.clone());
        if self.below.zip(ordinal).is_some_and(|(below, ordinal)| ordinal < below) {
            self.by_ordinal = true;
        } else if !self.over {
            self.burst = at.map(Timestamp::as_microsecond).or(self.burst);
        }
    }

    /// Whether the next record is a copy.
    fn covers(
        &mut self,
        own: &NativeId,
        turn: Option<&str>,
        at: Option<Timestamp>,
        ordinal: Option<i64>,
    ) -> bool {
        if self.origin.is_none() {
            return false;
        }
        if let Some((below, ordinal)) = self.below.zip(ordinal).filter(|_| self.by_ordinal) {
            return ordinal < below;
        }
        let at = at.map(Timestamp::as_microsecond);
        // A turn that began before the thread did is another thread's, however late its line was copied.
        if let Some((began, created)) = turn.and_then(creation).zip(creation(own.as_str())) {
            self.over |= began >= created;
            self.burst = if self.over { None } else { at.or(self.burst).or(Some(0)) };
            return !self.over;
        }
        let Some(last) = self.burst else { return false };
        let lasts = at.is_none_or(|at| at.abs_diff(last) <= BURST_GAP);
        self.burst = if lasts { at.or(self.burst) } else { None };
        lasts
    }
}

/// When a UUID of version 7 was made, as its first 12 hex digits; `None` for ids of other kinds.
fn creation(id: &str) -> Option<u64> {
    let is_v7 = id.len() == UUID_LENGTH && id.as_bytes().get(14) == Some(&b'7');
    let digits = is_v7.then(|| Some(format!("{}{}", id.get(..8)?, id.get(9..13)?)))??;
    u64::from_str_radix(&digits, 16).ok()
}

const UUID_LENGTH: usize = 36;

/// The first UUID in a file name: `rollout-<time>-<thread>` or `rollout-<time>-<thread>_<rollout>`.
fn uuid_in(stem: &str) -> Option<NativeId> {
    stem.as_bytes()
        .windows(UUID_LENGTH)
        .enumerate()
        .find(|(at, window)| {
            let before = at.checked_sub(1).and_then(|before| stem.as_bytes().get(before));
            is_uuid(window) && !before.is_some_and(u8::is_ascii_alphanumeric)
        })
        .and_then(|(at, _)| NativeId::new(&stem.get(at..at + UUID_LENGTH)?.to_ascii_lowercase()))
}

fn is_uuid(text: &[u8]) -> bool {
    text.len() == UUID_LENGTH
        && text.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
#[path = "origin_tests.rs"]
mod tests;
