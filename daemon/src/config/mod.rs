//! The configuration: what a person may set, what holds when nobody sets it, and where each
//! effective value came from.
//!
//! Knows the file format, the flags and the environment it is handed; never reads the process
//! environment itself (see [`Env`]). Invariant: a [`Config`] is whole and typed; whatever is wrong
//! with a file is said as one line that names file, line, key, what was found and what is expected.
//! Precedence: flag, then `MAJORDOMUS_*`, then the file, then the tools' own variables
//! (`CLAUDE_CONFIG_DIR`, `CODEX_HOME`, `AKB_MCP_URL`), then the default.

mod check;
mod duration;
mod env;
mod file;
mod load;
mod origin;
mod unused;
mod value;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

pub use check::check;
pub use duration::{format as format_duration, parse as parse_duration};
pub use env::Env;
pub use file::{Fault, Problem};
pub use load::{ConfigError, Flags, Loaded};
pub use origin::{Origin, Setting, changed_keys};
pub use unused::unused;
pub use value::{
    ByteLimit, Drafter, Keep, Listen, LogFormat, LogLevel, Precision, ProjectMode, Scripted,
    VaultKind,
};

/// Every setting, with the defaults of `interface.md` in [`Config::default`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Config {
    /// Where session files are looked for.
    pub sources: Sources,
    /// When a session counts as over.
    pub sessions: Sessions,
    /// Which projects take part.
    pub projects: Projects,
    /// How notes are drafted.
    pub notes: Notes,
    /// Where notes go.
    pub vault: Vault,
    /// What is masked before anything leaves the ledger.
    pub redact: Redact,
    /// Copies of transcripts.
    pub archive: Archive,
    /// What is done with history found on the first start.
    pub backfill: Backfill,
    /// How repositories are asked for facts.
    pub git: Git,
    /// The daemon's own log.
    pub log: Log,
    /// Numbers for Prometheus.
    pub metrics: Metrics,
}

/// `[sources]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sources {
    /// Roots of Claude Code, as written (`~` not yet expanded). An empty list: not watched.
    #[serde(serialize_with = "value::paths_as_text")]
    pub claude: Vec<PathBuf>,
    /// Roots of Codex CLI, as written.
    #[serde(serialize_with = "value::paths_as_text")]
    pub codex: Vec<PathBuf>,
    /// How often a root is looked through where the system gives no notice of changes.
    #[serde(serialize_with = "duration::as_text")]
    pub poll_interval: Duration,
}

impl Default for Sources {
    fn default() -> Self {
        Self {
            claude: vec!["~/.claude".into(), "~/.config/claude".into()],
            codex: vec!["~/.codex".into()],
            poll_interval: Duration::from_secs(10),
        }
    }
}

/// `[sessions]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sessions {
    /// Silence after which an episode is closed.
    #[serde(serialize_with = "duration::as_text")]
    pub idle_after: Duration,
    /// Wait after an explicit end, for lines that arrive late.
    #[serde(serialize_with = "duration::as_text")]
    pub end_grace: Duration,
    /// How long a tool call without a result keeps an episode open.
    #[serde(serialize_with = "duration::as_text")]
    pub max_open_call: Duration,
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            idle_after: Duration::from_mins(20),
            end_grace: Duration::from_mins(1),
            max_open_call: Duration::from_hours(2),
        }
    }
}

/// `[projects]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Projects {
    /// Whether projects take part unless excluded, or only when listed.
    pub mode: ProjectMode,
    /// Path globs or remotes that take part where `mode` is `listed`.
    pub include: Vec<String>,
    /// Path globs or remotes that never take part.
    pub exclude: Vec<String>,
    /// Path to project name and vault, for paths whose own name would mislead.
    pub map: BTreeMap<String, MapTarget>,
}

impl Default for Projects {
    fn default() -> Self {
        Self {
            mode: ProjectMode::All,
            include: Vec::new(),
            exclude: vec!["~/private/**".to_owned()],
            map: BTreeMap::new(),
        }
    }
}

/// What a path of `[projects.map]` stands for; either may be left to the usual rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MapTarget {
    /// The project's name.
    pub project: Option<String>,
    /// The vault that its notes go to.
    pub vault: Option<String>,
}

/// `[notes]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Notes {
    /// Who writes the notes.
    pub drafter: Drafter,
    /// The model asked; `None` leaves it to the drafter (only a CLI has a default of its own).
    pub model: Option<String>,
    /// The model asked for ideas; `None`: the same as `model`.
    pub idea_model: Option<String>,
    /// Address of the model API; `None`: the provider's own.
    pub base_url: Option<String>,
    /// Name of the environment variable that holds the API key; `None`: the provider's usual one.
    pub api_key_env: Option<String>,
    /// File that holds the API key; wins over the variable.
    #[serde(serialize_with = "value::path_as_text")]
    pub api_key_file: Option<PathBuf>,
    /// Language of the prose; `None`: that of the user's own prompts.
    pub lang: Option<String>,
    /// Most tokens sent to a model for one session.
    pub max_input_tokens: u64,
    /// Most tokens, in and out, spent on models in one day; 0 asks no model at all.
    pub daily_token_budget: u64,
    /// Most time one call to a model may take.
    #[serde(serialize_with = "duration::as_text")]
    pub timeout: Duration,
    /// Most notes of each kind from one session.
    pub max_per_session: MaxPerSession,
    /// How sure a note must be before it is kept.
    pub precision: Precision,
    /// When sessions started by scripts are drafted.
    pub scripted: Scripted,
}

impl Default for Notes {
    fn default() -> Self {
        Self {
            drafter: Drafter::Extractive,
            model: None,
            idea_model: None,
            base_url: None,
            api_key_env: None,
            api_key_file: None,
            lang: None,
            max_input_tokens: 60_000,
            daily_token_budget: 1_000_000,
            timeout: Duration::from_mins(2),
            max_per_session: MaxPerSession::default(),
            precision: Precision::Normal,
            scripted: Scripted::Changed,
        }
    }
}

impl Notes {
    /// The environment variable to take the API key from; `None` where the drafter needs no key.
    pub fn key_variable(&self) -> Option<&str> {
        match (&self.api_key_env, self.drafter) {
            (Some(name), _) => Some(name),
            (None, Drafter::Anthropic) => Some("ANTHROPIC_API_KEY"),
            (None, Drafter::Openai) => Some("OPENAI_API_KEY"),
            (None, Drafter::Extractive | Drafter::ClaudeCli | Drafter::CodexCli) => None,
        }
    }
}

/// `[notes.max_per_session]`: caps by kind; 0 switches a kind off. The session note is not capped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MaxPerSession {
    /// Notes on something learned.
    pub til: u32,
    /// Postponed work.
    pub task: u32,
    /// Ideas about the project.
    pub idea: u32,
    /// Long-lived decisions.
    pub decision: u32,
}

impl Default for MaxPerSession {
    fn default() -> Self {
        Self { til: 3, task: 5, idea: 2, decision: 3 }
    }
}

/// `[vault]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Vault {
    /// Which kind of vault.
    pub kind: VaultKind,
    /// Directory of a local vault, as written; `None`: the data directory's.
    #[serde(serialize_with = "value::path_as_text")]
    pub path: Option<PathBuf>,
    /// Address of an AKB server's MCP endpoint.
    pub url: Option<String>,
    /// The vault's name.
    pub name: Option<String>,
    /// Name of the environment variable that holds the token.
    pub token_env: String,
    /// File that holds the token; wins over the variable.
    #[serde(serialize_with = "value::path_as_text")]
    pub token_file: Option<PathBuf>,
}

impl Default for Vault {
    fn default() -> Self {
        Self {
            kind: VaultKind::Local,
            path: None,
            url: None,
            name: None,
            token_env: "AKB_PAT".to_owned(),
            token_file: None,
        }
    }
}

/// `[redact]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Redact {
    /// Whether secrets are masked.
    pub enabled: bool,
    /// Regular expressions masked besides the built-in ones.
    pub extra: Vec<String>,
    /// Regular expressions that are never masked.
    pub allow: Vec<String>,
}

impl Default for Redact {
    fn default() -> Self {
        Self { enabled: true, extra: Vec::new(), allow: Vec::new() }
    }
}

/// `[archive]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Archive {
    /// Whether a closed session's transcript is copied.
    pub enabled: bool,
    /// Most that the archive may take on disk.
    pub max_bytes: ByteLimit,
    /// How long a copy is kept.
    pub keep: Keep,
}

impl Default for Archive {
    fn default() -> Self {
        Self { enabled: true, max_bytes: ByteLimit::Unlimited, keep: Keep::Forever }
    }
}

/// `[backfill]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Backfill {
    /// History younger than this gets notes; older history is only put into the ledger.
    #[serde(serialize_with = "duration::as_text")]
    pub notes_since: Duration,
}

impl Default for Backfill {
    fn default() -> Self {
        Self { notes_since: Duration::from_hours(7 * 24) }
    }
}

/// `[git]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Git {
    /// Whether repositories are asked at all.
    pub enabled: bool,
    /// Most time one question to Git may take.
    #[serde(serialize_with = "duration::as_text")]
    pub timeout: Duration,
}

impl Default for Git {
    fn default() -> Self {
        Self { enabled: true, timeout: Duration::from_secs(5) }
    }
}

/// `[log]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Log {
    /// The least serious message that is written.
    pub level: LogLevel,
    /// How a message is written.
    pub format: LogFormat,
}

/// `[metrics]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Metrics {
    /// Where Prometheus may ask over HTTP.
    pub prometheus_listen: Listen,
}

impl Metrics {
    /// The address to listen on, if any.
    pub fn address(&self) -> Option<SocketAddr> {
        match self.prometheus_listen {
            Listen::Off => None,
            Listen::At(address) => Some(address),
        }
    }
}
