//! The names of things: newtypes, so that a session id is never taken for an agent id, nor a sequence
//! number for an offset.

use std::fmt;

use serde::{Deserialize, Serialize};
use twox_hash::{XxHash3_128, xxhash3_128};

/// The coding agent that wrote a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    /// Claude Code (`~/.claude/projects/**.jsonl`).
    Claude,
    /// Codex CLI (`~/.codex/sessions/**/rollout-*.jsonl`).
    Codex,
}

impl Tool {
    /// The name in the ledger and in `--json` outputs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }

    /// The tag on notes, the one which the AKB plugins write.
    pub fn tag(self) -> &'static str {
        match self {
            Self::Claude => "claude-code",
            Self::Codex => "codex",
        }
    }

    /// Reads what [`Tool::as_str`] wrote; `None` for anything else.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "claude" | "claude-code" => Some(Self::Claude),
            "codex" => Some(Self::Codex),
            _ => None,
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The id that a tool gave to a session or thread. Opaque text from a stranger: never a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NativeId(String);

/// The longest id that is taken; real ones are UUIDs.
const MAX_ID_CHARS: usize = 128;

impl NativeId {
    /// Takes an id as a tool wrote it. `None` when it is empty, too long or holds control characters.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = !text.is_empty()
            && text.chars().count() <= MAX_ID_CHARS
            && !text.chars().any(char::is_control);
        fits.then(|| Self(text.to_owned()))
    }

    /// The id as the tool wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id as one file-name component or slug: everything but ASCII letters, digits, `-` and `_` becomes
    /// `-`, and when that changed anything a hash of the original is added, so that two ids never share a name.
    pub fn file_name(&self) -> String {
        let plain: String = self
            .0
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' })
            .collect();
        if plain == self.0 {
            return plain;
        }
        let digest = blake3::hash(self.0.as_bytes()).to_hex();
        format!("{plain}-{}", &digest.as_str()[..8])
    }
}

impl fmt::Display for NativeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A session's identity everywhere: the tool and the id that the tool gave.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SessionKey {
    /// Who wrote it.
    pub tool: Tool,
    /// The tool's own id.
    pub native: NativeId,
}

/// The ledger's own line number; the only order that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LedgerSeq(pub i64);

/// Row id of a session in the ledger's database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionRow(pub i64);

/// Row id of a source in the ledger's database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceRow(pub i64);

/// Hash of one line's bytes, without its line end: XXH3, 128 bits. It tells an append from a rewrite and finds equal
/// lines; whoever can write a session file can write whatever lines he likes, so it need not withstand an attack,
/// and every byte of every file passes through it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LineHash(pub [u8; 16]);

impl LineHash {
    /// Hashes a line (without its `\n`).
    pub fn of(line: &[u8]) -> Self {
        Self(XxHash3_128::oneshot(line).to_le_bytes())
    }
}

/// Hashes a line that comes in pieces.
pub struct LineHasher(Box<xxhash3_128::Hasher>);

impl LineHasher {
    /// Starts with nothing.
    #[expect(clippy::new_without_default, reason = "a hasher of nothing is no value")]
    pub fn new() -> Self {
        Self(Box::new(xxhash3_128::Hasher::new()))
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// The hash of all bytes so far, as [`LineHash::of`] has it.
    pub fn finish(&self) -> LineHash {
        LineHash(self.0.finish_128().to_le_bytes())
    }
}

impl fmt::Debug for LineHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LineHasher")
    }
}

impl fmt::Debug for LineHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// Identity of an entry across files: two lines with the same one are the same entry, wherever they stand.
/// 64 bits of BLAKE3 over a name space and the tool's own id (Claude's `uuid`), or over the thread id and the
/// line where the tool gives none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryId(pub i64);

impl EntryId {
    /// Derives the identity from its parts; `space` keeps different kinds of ids apart.
    pub fn derive(space: &str, parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(space.as_bytes());
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let mut short = [0; 8];
        short.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        Self(i64::from_le_bytes(short))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_never_becomes_a_path() {
        for hostile in ["../../etc/passwd", "/abs", "a/b", ".", "..", "a\\b", "C:x"] {
            let name = NativeId::new(hostile).expect("printable").file_name();
            assert!(!name.contains(['/', '\\', '.', ':']), "{hostile} became {name}");
        }
        assert!(NativeId::new("a\nb").is_none());
        assert!(NativeId::new(" ").is_none());
    }

    #[test]
    fn different_ids_keep_different_names() {
        let a = NativeId::new("a/b").expect("printable").file_name();
        let b = NativeId::new("a.b").expect("printable").file_name();
        assert_ne!(a, b);
    }

    #[test]
    fn a_line_in_pieces_has_the_hash_of_the_whole() {
        let line = vec![7_u8; 10_000];
        for size in [1, 240, 4_096] {
            let mut hasher = LineHasher::new();
            line.chunks(size).for_each(|piece| hasher.update(piece));
            assert_eq!(hasher.finish(), LineHash::of(&line));
        }
        assert_eq!(LineHasher::new().finish(), LineHash::of(b""));
    }

    #[test]
    fn entry_ids_are_split_by_space_and_by_part() {
        assert_ne!(EntryId::derive("x", &[b"ab", b"c"]), EntryId::derive("x", &[b"a", b"bc"]));
        assert_ne!(EntryId::derive("x", &[b"a"]), EntryId::derive("y", &[b"a"]));
    }
}
