//! Reads what `git` prints. Pure: the daemon runs the program and hands over the bytes.
//!
//! The bytes come from a stranger's repository: a parser that meets anything but the documented form says so
//! instead of going on with what it has.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::{AheadBehind, ResolvedCommit, Uncommitted, is_full_hash};
use crate::entry::evidence::clean_remote;

/// Major and minor number out of `git version 2.47.3`.
pub fn parse_version(output: &[u8]) -> Option<(u32, u32)> {
    let text = std::str::from_utf8(output).ok()?;
    let mut numbers = text.trim().strip_prefix("git version ")?.split(['.', ' ', '-']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Where the parts of a repository lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// It has no work tree of its own.
    pub is_bare: bool,
    /// Its history was cut off (`git clone --depth`).
    pub is_shallow: bool,
    /// The directory that all worktrees share.
    pub common_dir: PathBuf,
    /// This worktree's own Git directory; the common one for the main worktree.
    pub git_dir: PathBuf,
    /// The work tree's top; `None` in bare repositories and inside a Git directory.
    pub root: Option<PathBuf>,
}

/// Arguments of `git rev-parse` whose output [`parse_layout`] reads. The work tree comes last: where there is none
/// Git fails there, after it has written the rest.
pub const LAYOUT_ARGUMENTS: [&str; 6] = [
    "--is-bare-repository",
    "--is-shallow-repository",
    "--path-format=absolute",
    "--git-common-dir",
    "--git-dir",
    "--show-toplevel",
];

/// Reads the answers to [`LAYOUT_ARGUMENTS`]. `None` when they are incomplete or a path holds a line break, so
/// that one cannot tell which is which.
pub fn parse_layout(output: &[u8]) -> Option<Layout> {
    let mut lines = output.strip_suffix(b"\n")?.split(|b| *b == b'\n');
    let mut flag = || match lines.next()? {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    };
    let (is_bare, is_shallow) = (flag()?, flag()?);
    let mut path = || lines.next().map(|line| PathBuf::from(OsString::from_vec(line.to_vec())));
    let (common_dir, git_dir, root) = (path()?, path()?, path());
    let is_sound = lines.next().is_none()
        && [Some(&common_dir), Some(&git_dir), root.as_ref()]
            .into_iter()
            .flatten()
            .all(|path| path.is_absolute());
    is_sound.then_some(Layout { is_bare, is_shallow, common_dir, git_dir, root })
}

/// What matters of a repository's configuration, out of `git config --null --list`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Names of the content filters, as bytes: they may hold anything but a line break.
    pub filters: BTreeSet<Vec<u8>>,
    /// The repository does not want untracked files to be looked for.
    pub hides_untracked: bool,
    remotes: BTreeMap<String, String>,
    branches: BTreeMap<String, String>,
}

impl Config {
    /// Reads the output. Later values win, as in Git; of a remote's several addresses the first counts.
    pub fn parse(output: &[u8]) -> Self {
        let mut config = Self::default();
        for setting in output.split(|b| *b == 0).filter(|setting| !setting.is_empty()) {
            let end = setting.iter().position(|b| *b == b'\n').unwrap_or(setting.len());
            let (key, value) = setting.split_at(end);
            config.take(key, value.get(1..));
        }
        config
    }

    fn take(&mut self, key: &[u8], value: Option<&[u8]>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let Some(key) = Key::split(key) else { return };
        match (key.section, key.name, key.variable, value) {
            (b"filter", Some(name), _, _) => {
                self.filters.insert(name.to_vec());
            }
            (b"remote", Some(name), b"url", Some(url)) => {
                self.remotes.entry(text(name)).or_insert_with(|| text(url));
            }
            (b"branch", Some(name), b"remote", Some(remote)) => {
                self.branches.insert(text(name), text(remote));
            }
            (b"status", None, b"showuntrackedfiles", value) => {
                self.hides_untracked = matches!(value, Some(b"no" | b"false" | b"off" | b"0"));
            }
            _ => {}
        }
    }

    /// The address that stands for the repository, credentials stripped: `origin`, else the branch's own remote,
    /// else the only one.
    pub fn remote(&self, branch: Option<&str>) -> Result<String, &'static str> {
        const MAX_ADDRESS: usize = 2_000;
        let of_branch = || self.remotes.get(self.branches.get(branch?)?);
        let chosen = self.remotes.get("origin").or_else(of_branch);
        let mut all = self.remotes.values();
        let address = match (chosen, all.next(), all.next()) {
            (Some(chosen), ..) | (None, Some(chosen), None) => chosen,
            (None, None, _) => return Err("no remote"),
            _ => return Err("several remotes, and none of them is origin or the branch's"),
        };
        if address.len() > MAX_ADDRESS || address.chars().any(char::is_control) {
            return Err("the remote's address is too long or holds control characters");
        }
        Ok(clean_remote(address))
    }
}

/// A key of the configuration in its parts. Only the subsection, its name, may hold dots.
struct Key<'a> {
    section: &'a [u8],
    name: Option<&'a [u8]>,
    variable: &'a [u8],
}

impl<'a> Key<'a> {
    fn split(key: &'a [u8]) -> Option<Self> {
        let first = key.iter().position(|b| *b == b'.')?;
        let last = key.iter().rposition(|b| *b == b'.')?;
        let name = if first < last { Some(key.get(first + 1..last)?) } else { None };
        Some(Self { section: key.get(..first)?, name, variable: key.get(last + 1..)? })
    }
}

/// What `git status --porcelain=v2 --branch -z` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The commit that is checked out; `None` before the first one.
    pub head: Option<String>,
    /// The branch; `None` when the head is detached.
    pub branch: Option<String>,
    /// The branch is set up to follow another one.
    pub has_upstream: bool,
    /// Against that one; `None` when it does not exist (any more).
    pub ahead_behind: Option<AheadBehind>,
    /// The counts.
    pub uncommitted: Uncommitted,
    /// The files that [`Uncommitted::changed`] counts, relative to the root.
    pub changed_paths: Vec<Vec<u8>>,
}

impl Status {
    /// Reads the output. `None` when a record is not of the documented form: then no count can be trusted.
    pub fn parse(output: &[u8]) -> Option<Self> {
        let mut status = Self::default();
        let mut records = output.split(|b| *b == 0);
        while let Some(record) = records.next() {
            let Some((kind, rest)) = record.split_first() else {
                continue;
            };
            let rest = rest.strip_prefix(b" ")?;
            match kind {
                b'#' => status.header(rest)?,
                // `XY sub mH mI mW hH hI path`
                b'1' => status.entry(rest, 7)?,
                // `XY sub mH mI mW hH hI Xscore path`, and the path it was renamed from as the next record
                b'2' => {
                    status.entry(rest, 8)?;
                    records.next().filter(|path| !path.is_empty())?;
                }
                // `XY sub m1 m2 m3 mW h1 h2 h3 path`, in conflict
                b'u' => status.changed(path_after(rest, 9)?),
                b'?' => status.uncommitted.untracked += 1,
                b'!' => {}
                _ => return None,
            }
        }
        Some(status)
    }

    fn header(&mut self, header: &[u8]) -> Option<()> {
        let header = String::from_utf8_lossy(header);
        let (name, value) = header.split_once(' ')?;
        match name {
            "branch.oid" if value != "(initial)" => self.head = Some(full_hash(value)?),
            "branch.head" if value != "(detached)" => self.branch = Some(value.to_owned()),
            "branch.upstream" => self.has_upstream = true,
            "branch.ab" => {
                let (ahead, behind) = value.split_once(' ')?;
                self.ahead_behind = Some(AheadBehind {
                    ahead: ahead.strip_prefix('+')?.parse().ok()?,
                    behind: behind.strip_prefix('-')?.parse().ok()?,
                });
            }
            _ => {}
        }
        Some(())
    }

    fn entry(&mut self, fields: &[u8], before_path: usize) -> Option<()> {
        let path = path_after(fields, before_path)?;
        if *fields.first()? != b'.' {
            self.uncommitted.staged += 1;
        }
        if *fields.get(1)? != b'.' {
            self.changed(path);
        }
        Some(())
    }

    fn changed(&mut self, path: &[u8]) {
        self.uncommitted.changed += 1;
        self.changed_paths.push(path.to_vec());
    }
}

/// The last field of a record, which may hold spaces itself.
fn path_after(fields: &[u8], before_path: usize) -> Option<&[u8]> {
    fields.splitn(before_path + 1, |b| *b == b' ').nth(before_path).filter(|path| !path.is_empty())
}

fn full_hash(text: &str) -> Option<String> {
    is_full_hash(text).then(|| text.to_owned())
}

/// Whether one of the paths has a content filter, out of `git check-attr -z filter`. Filters are never run, so
/// such a file may look changed when it is not.
pub fn names_a_filter(output: &[u8]) -> bool {
    let fields: Vec<&[u8]> = output.split(|b| *b == 0).collect();
    fields.chunks_exact(3).any(|fields| !matches!(fields, [_, _, b"unspecified" | b"unset"]))
}

/// The hashes that `git rev-list` lists, one a line. `None` when a line is anything else.
pub fn parse_hashes(output: &[u8]) -> Option<Vec<String>> {
    std::str::from_utf8(output).ok()?.lines().map(full_hash).collect()
}

/// Reads `git rev-list --left-right --count HEAD...@{upstream}`: `ahead<TAB>behind`.
pub fn parse_ahead_behind(output: &[u8]) -> Option<AheadBehind> {
    let (ahead, behind) = std::str::from_utf8(output).ok()?.trim().split_once('\t')?;
    Some(AheadBehind { ahead: ahead.parse().ok()?, behind: behind.parse().ok()? })
}

/// Reads what `git cat-file --batch` answers to one line per hash of `given`, in the same order. Where the output
/// breaks off, the rest stays unresolved.
pub fn parse_commits(given: &[&str], mut output: &[u8]) -> Vec<ResolvedCommit> {
    let mut resolve = |given: &&str| {
        let answer = Answer::take(&mut output).unwrap_or_default();
        ResolvedCommit {
            given: (*given).to_owned(),
            full: answer.hash,
            subject: answer.commit.and_then(subject),
        }
    };
    given.iter().map(&mut resolve).collect()
}

/// What Git says to one question; empty when there is no such commit (`… missing`, `… ambiguous`).
#[derive(Default)]
struct Answer<'a> {
    hash: Option<String>,
    commit: Option<&'a [u8]>,
}

impl<'a> Answer<'a> {
    /// Takes the next answer off the output; `None` when that is not whole.
    fn take(output: &mut &'a [u8]) -> Option<Self> {
        let end = output.iter().position(|b| *b == b'\n')?;
        let (line, rest) = (output.get(..end)?, output.get(end + 1..)?);
        let line = String::from_utf8_lossy(line);
        let words: Vec<&str> = line.split(' ').collect();
        let [hash, "commit", size] = words.as_slice() else {
            *output = rest;
            return Some(Self::default());
        };
        let size: usize = size.parse().ok()?;
        let commit = rest.get(..size)?;
        *output = rest.get(size.checked_add(1)?..)?;
        Some(Self { hash: full_hash(hash), commit: Some(commit) })
    }
}

/// The first paragraph of a commit's message as one line, like Git's `%s`.
fn subject(commit: &[u8]) -> Option<String> {
    const MAX_CHARS: usize = 500;
    let text = String::from_utf8_lossy(commit);
    let (_, message) = text.split_once("\n\n")?;
    let lines = message.lines().skip_while(|line| line.trim().is_empty());
    let paragraph: Vec<&str> = lines.map(str::trim).take_while(|line| !line.is_empty()).collect();
    let subject: String =
        paragraph.join(" ").chars().filter(|c| !c.is_control()).take(MAX_CHARS).collect();
    (!subject.is_empty()).then_some(subject)
}
