//! Where an effective value came from, and the list that `config show` prints.

use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::Config;
use super::load::Loaded;

/// Text shown in place of a secret.
const HIDDEN: &str = "(hidden)";

/// Who set a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody.
    Default,
    /// An environment variable, by its name.
    Env(&'static str),
    /// A line of the config file, counted from 1.
    File {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
    },
    /// A command-line flag, by its name.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => out.write_str("default"),
            Self::Env(name) => write!(out, "env {name}"),
            Self::File { path, line } => write!(out, "file {}:{line}", path.display()),
            Self::Flag(name) => write!(out, "flag {name}"),
        }
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

/// One line of `config show`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Section and key, such as `sessions.idle_after`.
    pub key: String,
    /// The effective value; `null` where unset, secrets replaced.
    pub value: Value,
    /// Who set it.
    pub origin: Origin,
}

/// Every key with its value as JSON, in the order of their names.
pub(super) fn flatten(config: &Config) -> Vec<(String, Value)> {
    #[expect(clippy::expect_used, reason = "maps have text keys and no value refuses to serialize")]
    let tree = serde_json::to_value(config).expect("a config serializes");
    let mut leaves = Vec::new();
    flatten_into(&mut leaves, "", tree);
    leaves
}

/// The keys whose values differ between two configurations, in the order of their names.
pub fn changed_keys(old: &Config, new: &Config) -> Vec<String> {
    // Both have the same keys in the same order: they are the same structure.
    let pairs = flatten(old).into_iter().zip(flatten(new));
    pairs.filter(|(old, new)| old != new).map(|((key, _), _)| key).collect()
}

fn flatten_into(leaves: &mut Vec<(String, Value)>, key: &str, value: Value) {
    match value {
        // The map's keys are the user's paths, not names of settings.
        Value::Object(members) if key != "projects.map" => {
            for (name, member) in members {
                let key = if key.is_empty() { name } else { format!("{key}.{name}") };
                flatten_into(leaves, &key, member);
            }
        }
        leaf => leaves.push((key.to_owned(), leaf)),
    }
}

/// Every setting with its origin, secrets hidden.
pub(super) fn show(loaded: &Loaded) -> Vec<Setting> {
    flatten(&loaded.config)
        .into_iter()
        .map(|(key, value)| Setting {
            value: without_secrets(&key, value),
            origin: loaded.origin(&key),
            key,
        })
        .collect()
}

/// Names of variables and files are no secrets; what a person may have put in their place is.
fn without_secrets(key: &str, value: Value) -> Value {
    match (key, value) {
        ("vault.url" | "notes.base_url", Value::String(url)) => url_without_secrets(&url).into(),
        ("vault.token_env" | "notes.api_key_env", Value::String(name))
            if !is_variable_name(&name) =>
        {
            HIDDEN.into()
        }
        // A pattern without any operator is the secret itself.
        ("redact.extra", Value::Array(patterns)) => patterns
            .into_iter()
            .map(|pattern| match pattern.as_str() {
                Some(text) if text.contains(['\\', '[', '(', '.', '*', '+', '?', '|']) => pattern,
                _ => HIDDEN.into(),
            })
            .collect(),
        (_, value) => value,
    }
}

/// The address with user, password and query replaced.
fn url_without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let end_of_host = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end_of_host);
    let host = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{HIDDEN}@{host}"),
        None => authority.to_owned(),
    };
    let tail = match tail.split_once(['?', '#']) {
        Some((path, _)) => format!("{path}?{HIDDEN}"),
        None => tail.to_owned(),
    };
    let separator = if scheme.is_empty() { "" } else { "://" };
    format!("{scheme}{separator}{host}{tail}")
}

/// Whether the text can be the name of an environment variable.
pub(super) fn is_variable_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}
