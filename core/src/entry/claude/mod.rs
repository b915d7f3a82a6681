//! Claude Code's lines (formats.md part 1).
//!
//! [`view`] is the shape of a line, `damage` finds the object in it, `lines` judges it by its type with the help
//! of `prompt` (who speaks) and `tools` (what was done).

mod damage;
mod known;
mod lines;
mod prompt;
mod tools;
mod view;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::view::{Head, text};
use super::{Entry, Fact, Role, SourceIdentity, Text, json};
use crate::ids::NativeId;

/// Reads one Claude Code transcript. It remembers only what tells whose the lines are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reader {
    /// The file's stem.
    stem: String,
    /// The subagent whose file it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// The session, as soon as the name or a line tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<NativeId>,
    /// The session that this one was copied from, once a line says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<NativeId>,
    /// The version that the last line named.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

impl Reader {
    /// Starts at the first line of the file at `path` (below the root, components split by `/`).
    pub fn new(path: &str) -> Self {
        let (directories, name) = path.rsplit_once('/').unwrap_or(("", path));
        let stem = name.strip_suffix(".jsonl").unwrap_or(name);
        let agent = stem.strip_prefix("agent-").filter(|agent| !agent.is_empty());
        let session = match agent {
            Some(_) => session_above_subagents(directories),
            None => is_uuid(stem).then(|| NativeId::new(stem)).flatten(),
        };
        Self { stem: stem.to_owned(), agent: agent.map(str::to_owned), session, ..Self::default() }
    }

    /// Reads the next line.
    pub fn read(&mut self, line: &[u8]) -> Entry {
        let line = json::readable(line);
        let mut entry = match damage::head(&line) {
            Ok(found) => {
                let mut entry = lines::entry(&found.head, self.agent.is_some());
                self.learn(&found.head, &mut entry);
                entry.facts.extend(found.damage.map(Fact::Reason));
                entry
            }
            Err(reason) => Entry::unreadable(reason),
        };
        if self.agent.is_some() {
            entry.context.agent.clone_from(&self.agent);
        }
        entry
    }

    /// Takes from a line what tells whose the source is.
    fn learn(&mut self, head: &Head<'_>, entry: &mut Entry) {
        if entry.context.version.is_some() && self.version != entry.context.version {
            self.version.clone_from(&entry.context.version);
        }
        if self.session.is_none() {
            self.session.clone_from(&entry.stamp);
        }
        if self.origin.is_none()
            && self.agent.is_none()
            && let Some(from) = entry.copied_from.as_ref()
            && Some(from) != self.session.as_ref()
        {
            self.origin = Some(from.clone());
            if text(head.forked_from.session).is_some() {
                entry.facts.push(Fact::Fork { from: from.as_str().to_owned() });
            }
        }
    }

    /// See [`super::Reader::version`].
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// See [`super::Reader::identity`].
    pub fn identity(&self) -> Option<SourceIdentity> {
        self.session.clone().map(|session| self.with_session(session))
    }

    /// See [`super::Reader::identity_by_name`]. The name of a subagent's file tells no session: without a line
    /// that does, it stays an orphan.
    pub fn identity_by_name(&self) -> Option<SourceIdentity> {
        self.identity().or_else(|| {
            if self.agent.is_some() {
                return None;
            }
            NativeId::new(&self.stem).map(|session| self.with_session(session))
        })
    }

    fn with_session(&self, session: NativeId) -> SourceIdentity {
        let role = match &self.agent {
            Some(agent) => Role::Subagent { agent: agent.clone() },
            None => Role::Main,
        };
        SourceIdentity { session, role, forked_from: self.origin.clone() }
    }
}

/// The session in whose directory a subagent's file lies: `…/<session>/subagents/…`.
fn session_above_subagents(directories: &str) -> Option<NativeId> {
    let mut above = None;
    for component in directories.split('/') {
        if component == "subagents" {
            return above.and_then(NativeId::new);
        }
        above = Some(component);
    }
    None
}

/// A UUID in the hyphenated form, the only one that Claude Code writes.
fn is_uuid(text: &str) -> bool {
    text.len() == 36 && Uuid::try_parse(text).is_ok()
}

/// See [`super::texts`].
pub fn texts(line: &[u8]) -> Vec<Text> {
    let line = json::readable(line);
    damage::head(&line).map(|found| lines::texts(found.head)).unwrap_or_default()
}
