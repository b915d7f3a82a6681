//! From the text of a config file to a [`Config`], with the line of every key.
//!
//! An own walk over the parsed table rather than a derived `Deserialize`: it finds every fault at
//! once, and each knows its line, its key, and the keys that could have been meant.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::origin::{Origin, flatten};
use super::value::{FromToml, Refusal};
use super::{
    Archive, Backfill, Config, Git, Log, MapTarget, Metrics, Notes, Projects, Redact, Sessions,
    Sources, Vault,
};

/// Something wrong with the configuration, in one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{fault}", place(.origin))]
pub struct Problem {
    /// Where the faulty value came from.
    pub origin: Origin,
    /// What is wrong with it.
    pub fault: Fault,
}

/// `PATH:LINE: `, as compilers write it, so that editors can jump there.
fn place(origin: &Origin) -> String {
    match origin {
        Origin::File { path, line } => format!("{}:{line}: ", path.display()),
        Origin::Default => String::new(),
        other => format!("{other}: "),
    }
}

/// What can be wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The text is no TOML.
    #[error("not valid TOML: {0}")]
    Syntax(String),
    /// The file is not UTF-8.
    #[error("not UTF-8: save the file as UTF-8 text")]
    Encoding,
    /// No such section.
    #[error("unknown section [{name}]; did you mean [{nearest}]?")]
    UnknownSection {
        /// As written.
        name: String,
        /// The section most like it.
        nearest: String,
    },
    /// No such key.
    #[error("unknown key {key}; did you mean {nearest}?")]
    UnknownKey {
        /// As written, with its section.
        key: String,
        /// The key most like it, with its section.
        nearest: String,
    },
    /// The key's value has the wrong type or content.
    #[error("{key} is {found}; expected {expected}")]
    WrongValue {
        /// The key with its section.
        key: String,
        /// What stands there.
        found: String,
        /// What may stand there.
        expected: String,
    },
    /// The value is well formed and cannot work.
    #[error("{key} {why}")]
    Unusable {
        /// The key with its section.
        key: String,
        /// What is wrong and what to do, as the rest of a sentence that the key begins.
        why: String,
    },
}

/// What a file says: the config with its values applied, and the line of each key it sets.
#[derive(Debug)]
pub(super) struct FileConfig {
    pub(super) config: Config,
    pub(super) origins: BTreeMap<String, Origin>,
}

/// Reads a file's bytes. Every fault is reported, in the order of the lines.
pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<FileConfig, Vec<Problem>> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
        Err(error) => {
            let line = 1 + newlines(bytes, error.valid_up_to());
            let origin = Origin::File { path: path.to_path_buf(), line };
            return Err(vec![Problem { origin, fault: Fault::Encoding }]);
        }
    };
    let table = match DeTable::parse(text) {
        Ok(table) => table.into_inner(),
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            let origin =
                Origin::File { path: path.to_path_buf(), line: 1 + newlines(text.as_bytes(), at) };
            let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
            return Err(vec![Problem { origin, fault: Fault::Syntax(message) }]);
        }
    };

    let mut config = Config::default();
    let mut walk = Walk {
        text,
        path,
        known: flatten(&config).into_iter().map(|(key, _)| key).collect(),
        origins: BTreeMap::new(),
        problems: Vec::new(),
    };
    read(&mut walk, &table, &mut config);
    if walk.problems.is_empty() {
        return Ok(FileConfig { config, origins: walk.origins });
    }
    walk.problems.sort_by_key(|problem| match problem.origin {
        Origin::File { line, .. } => line,
        _ => 0,
    });
    Err(walk.problems)
}

fn newlines(bytes: &[u8], before: usize) -> usize {
    bytes.iter().take(before).filter(|byte| **byte == b'\n').count()
}

fn read(walk: &mut Walk<'_>, top: &DeTable<'_>, config: &mut Config) {
    walk.names(top, "");
    if let Some(table) = walk.section(top, "sources") {
        let Sources { claude, codex, poll_interval } = &mut config.sources;
        walk.key(table, "sources.claude", claude);
        walk.key(table, "sources.codex", codex);
        walk.key(table, "sources.poll_interval", poll_interval);
    }
    if let Some(table) = walk.section(top, "sessions") {
        let Sessions { idle_after, end_grace, max_open_call } = &mut config.sessions;
        walk.key(table, "sessions.idle_after", idle_after);
        walk.key(table, "sessions.end_grace", end_grace);
        walk.key(table, "sessions.max_open_call", max_open_call);
    }
    if let Some(table) = walk.section(top, "projects") {
        let Projects { mode, include, exclude, map } = &mut config.projects;
        walk.key(table, "projects.mode", mode);
        walk.key(table, "projects.include", include);
        walk.key(table, "projects.exclude", exclude);
        walk.map(table, map);
    }
    if let Some(table) = walk.section(top, "notes") {
        read_notes(walk, table, &mut config.notes);
    }
    if let Some(table) = walk.section(top, "vault") {
        let Vault { kind, path, url, name, token_env, token_file } = &mut config.vault;
        walk.key(table, "vault.kind", kind);
        walk.key(table, "vault.path", path);
        walk.key(table, "vault.url", url);
        walk.key(table, "vault.name", name);
        walk.key(table, "vault.token_env", token_env);
        walk.key(table, "vault.token_file", token_file);
    }
    if let Some(table) = walk.section(top, "redact") {
        let Redact { enabled, extra, allow } = &mut config.redact;
        walk.key(table, "redact.enabled", enabled);
        walk.key(table, "redact.extra", extra);
        walk.key(table, "redact.allow", allow);
    }
    if let Some(table) = walk.section(top, "archive") {
        let Archive { enabled, max_bytes, keep } = &mut config.archive;
        walk.key(table, "archive.enabled", enabled);
        walk.key(table, "archive.max_bytes", max_bytes);
        walk.key(table, "archive.keep", keep);
    }
    if let Some(table) = walk.section(top, "backfill") {
        let Backfill { notes_since } = &mut config.backfill;
        walk.key(table, "backfill.notes_since", notes_since);
    }
    if let Some(table) = walk.section(top, "git") {
        let Git { enabled, timeout } = &mut config.git;
        walk.key(table, "git.enabled", enabled);
        walk.key(table, "git.timeout", timeout);
    }
    if let Some(table) = walk.section(top, "log") {
        let Log { level, format } = &mut config.log;
        walk.key(table, "log.level", level);
        walk.key(table, "log.format", format);
    }
    if let Some(table) = walk.section(top, "metrics") {
        let Metrics { prometheus_listen } = &mut config.metrics;
        walk.key(table, "metrics.prometheus_listen", prometheus_listen);
    }
}

fn read_notes(walk: &mut Walk<'_>, table: &DeTable<'_>, notes: &mut Notes) {
    walk.key(table, "notes.drafter", &mut notes.drafter);
    walk.key(table, "notes.model", &mut notes.model);
    walk.key(table, "notes.idea_model", &mut notes.idea_model);
    walk.key(table, "notes.base_url", &mut notes.base_url);
    walk.key(table, "notes.api_key_env", &mut notes.api_key_env);
    walk.key(table, "notes.api_key_file", &mut notes.api_key_file);
    walk.key(table, "notes.lang", &mut notes.lang);
    walk.key(table, "notes.max_input_tokens", &mut notes.max_input_tokens);
    walk.key(table, "notes.daily_token_budget", &mut notes.daily_token_budget);
    walk.key(table, "notes.timeout", &mut notes.timeout);
    walk.key(table, "notes.precision", &mut notes.precision);
    walk.key(table, "notes.scripted", &mut notes.scripted);
    if let Some(caps) = walk.section(table, "notes.max_per_session") {
        let most = &mut notes.max_per_session;
        walk.key(caps, "notes.max_per_session.til", &mut most.til);
        walk.key(caps, "notes.max_per_session.task", &mut most.task);
        walk.key(caps, "notes.max_per_session.idea", &mut most.idea);
        walk.key(caps, "notes.max_per_session.decision", &mut most.decision);
    }
}

/// The walk over one file: what it knows of the text, and what it has met so far.
struct Walk<'t> {
    text: &'t str,
    path: &'t Path,
    /// Every key there is, with its section.
    known: Vec<String>,
    origins: BTreeMap<String, Origin>,
    problems: Vec<Problem>,
}

impl Walk<'_> {
    /// Takes one key's value, if the table has it. `key` carries its section.
    fn key<T: FromToml>(&mut self, table: &DeTable<'_>, key: &str, into: &mut T) {
        let Some((name, value)) = table.get_key_value(last_name(key)) else {
            return;
        };
        match T::from_toml(value.get_ref()) {
            Ok(value) => {
                *into = value;
                self.origins.insert(key.to_owned(), self.origin(name.span().start));
            }
            Err(refusal) => self.refuse(name.span().start, key, refusal),
        }
    }

    /// A table by its name, its unknown keys already reported.
    fn section<'d>(&mut self, table: &'d DeTable<'_>, key: &str) -> Option<&'d DeTable<'d>> {
        let (name, value) = table.get_key_value(last_name(key))?;
        let DeValue::Table(section) = value.get_ref() else {
            let expected = format!("a section such as [{key}]");
            self.refuse(name.span().start, key, Refusal::of_type(value.get_ref(), expected));
            return None;
        };
        self.names(section, key);
        Some(section)
    }

    /// Reports the names of a table that mean nothing there.
    fn names(&mut self, table: &DeTable<'_>, section: &str) {
        for (name, value) in table {
            let key = join(section, name.get_ref());
            let inside = format!("{key}.");
            if self.known.iter().any(|known| *known == key || known.starts_with(&inside)) {
                continue;
            }
            let is_section = section.is_empty() && matches!(value.get_ref(), DeValue::Table(_));
            let fault = if is_section {
                Fault::UnknownSection { nearest: self.nearest_section(&key), name: key }
            } else {
                Fault::UnknownKey { nearest: self.nearest_key(section, name.get_ref()), key }
            };
            self.report(name.span().start, fault);
        }
    }

    fn nearest_section(&self, name: &str) -> String {
        let sections = self.known.iter().filter_map(|known| known.split('.').next());
        nearest(name, sections).to_owned()
    }

    /// The key of this section most like the name, unless one other section has exactly that name.
    fn nearest_key(&self, section: &str, name: &str) -> String {
        let mut elsewhere = self.known.iter().filter(|key| *key == name || last_name(key) == name);
        if let (Some(only), None) = (elsewhere.next(), elsewhere.next()) {
            return only.clone();
        }
        let inside = format!("{section}.");
        let here =
            self.known.iter().filter(|known| section.is_empty() || known.starts_with(&inside)).map(
                |known| {
                    // `notes.max_per_session.til` seen from `[notes]` is `max_per_session`.
                    let depth = if section.is_empty() { known.len() } else { inside.len() };
                    match known.get(depth..).and_then(|rest| rest.split_once('.')) {
                        Some((name, _)) => known.get(..depth + name.len()).unwrap_or(known),
                        None => known.as_str(),
                    }
                },
            );
        here.max_by(|left, right| {
            likeness(name, last_name(left)).total_cmp(&likeness(name, last_name(right)))
        })
        .unwrap_or_default()
        .to_owned()
    }

    /// `[projects.map]`: a path to a project's name, or to `{ project, vault }`.
    fn map(&mut self, table: &DeTable<'_>, into: &mut BTreeMap<String, MapTarget>) {
        const KEY: &str = "projects.map";
        let Some((name, value)) = table.get_key_value("map") else {
            return;
        };
        let DeValue::Table(entries) = value.get_ref() else {
            let expected = "a section such as [projects.map]";
            self.refuse(name.span().start, KEY, Refusal::of_type(value.get_ref(), expected));
            return;
        };
        self.origins.insert(KEY.to_owned(), self.origin(name.span().start));
        for (path, target) in entries {
            if let Some(target) = self.map_target(path, target.get_ref()) {
                into.insert(path.get_ref().to_string(), target);
            }
        }
    }

    fn map_target(
        &mut self,
        path: &Spanned<std::borrow::Cow<'_, str>>,
        value: &DeValue<'_>,
    ) -> Option<MapTarget> {
        let key = format!("projects.map.{:?}", path.get_ref());
        match value {
            DeValue::String(project) => {
                Some(MapTarget { project: Some(project.to_string()), vault: None })
            }
            DeValue::Table(fields) => {
                let mut target = MapTarget::default();
                self.key(fields, &format!("{key}.project"), &mut target.project);
                self.key(fields, &format!("{key}.vault"), &mut target.vault);
                for (name, _) in fields {
                    if !matches!(name.get_ref().as_ref(), "project" | "vault") {
                        let nearest = nearest(name.get_ref(), ["project", "vault"].into_iter());
                        let fault = Fault::UnknownKey {
                            key: format!("{key}.{}", name.get_ref()),
                            nearest: nearest.to_owned(),
                        };
                        self.report(name.span().start, fault);
                    }
                }
                Some(target)
            }
            other => {
                let expected = r#"a project's name, or { project = "…", vault = "…" }"#;
                self.refuse(path.span().start, &key, Refusal::of_type(other, expected));
                None
            }
        }
    }

    fn origin(&self, offset: usize) -> Origin {
        Origin::File {
            path: PathBuf::from(self.path),
            line: 1 + newlines(self.text.as_bytes(), offset),
        }
    }

    fn refuse(&mut self, offset: usize, key: &str, refusal: Refusal) {
        let Refusal { found, expected } = refusal;
        self.report(offset, Fault::WrongValue { key: key.to_owned(), found, expected });
    }

    fn report(&mut self, offset: usize, fault: Fault) {
        self.problems.push(Problem { origin: self.origin(offset), fault });
    }
}

/// The key with its section. A name that TOML would quote is quoted: `"a.b"` is no `b` of `[a]`.
fn join(section: &str, name: &str) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let name = if name.chars().all(is_bare) { name.to_owned() } else { format!("{name:?}") };
    if section.is_empty() { name } else { format!("{section}.{name}") }
}

fn last_name(key: &str) -> &str {
    key.rsplit_once('.').map_or(key, |(_, name)| name)
}

fn nearest<'k>(name: &str, candidates: impl Iterator<Item = &'k str>) -> &'k str {
    candidates
        .max_by(|left, right| likeness(name, left).total_cmp(&likeness(name, right)))
        .unwrap_or_default()
}

/// 0 for nothing in common, 1 for equal, blind to case and to `-` for `_`.
fn likeness(left: &str, right: &str) -> f64 {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    strsim::normalized_damerau_levenshtein(&plain(left), &plain(right))
}
