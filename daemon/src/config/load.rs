//! From flags, environment and file to the effective configuration.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::file::{self, FileConfig, Problem};
use super::origin::{self, Origin, Setting};
use super::value::{LogFormat, LogLevel};
use super::{Config, Env};
use crate::paths;

/// The command-line flags that bear on the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--config`
    pub config: Option<PathBuf>,
    /// `--log-format`
    pub log_format: Option<LogFormat>,
    /// `-v…`
    pub log_level: Option<LogLevel>,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file that somebody named is not there. A missing default file is no error.
    #[error(
        "config file {} ({asked_by}) does not exist; \
         correct the name, or copy config.example.toml there",
        .path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
        /// Who named it.
        asked_by: Origin,
    },
    /// The file is there and cannot be read.
    #[error("config file {}: {source}; make it a file that you can read", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file can be read and is wrong; at least one problem.
    #[error("{}", first_of(.0))]
    Invalid(Vec<Problem>),
}

impl ConfigError {
    /// Every fault as a line of its own.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Invalid(problems) => problems.iter().map(ToString::to_string).collect(),
            other => vec![other.to_string()],
        }
    }
}

fn first_of(problems: &[Problem]) -> String {
    let first = problems.first().map(ToString::to_string).unwrap_or_default();
    match problems.len() {
        0 | 1 => first,
        many => format!("{first} (and {} more; see `majordomusctl config check`)", many - 1),
    }
}

/// The effective configuration, with where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// Where the config file is, or would be; `None` where there is no home to look in.
    pub file: Option<PathBuf>,
    /// Who named the config file.
    pub file_origin: Origin,
    origins: BTreeMap<String, Origin>,
}

impl Loaded {
    /// Reads what the flags, the environment and the file say.
    pub fn read(env: &Env, flags: &Flags) -> Result<Self, ConfigError> {
        let named = paths::config_file(env, flags.config.as_deref());
        let found = match &named {
            None => None,
            Some((path, asked_by)) => match std::fs::read(path) {
                Ok(bytes) => Some(file::parse(&bytes, path).map_err(ConfigError::Invalid)?),
                Err(error) if error.kind() == io::ErrorKind::NotFound => match asked_by {
                    Origin::Flag(_) | Origin::Env("MAJORDOMUS_CONFIG") => {
                        let (path, asked_by) = (path.clone(), asked_by.clone());
                        return Err(ConfigError::Missing { path, asked_by });
                    }
                    _ => None,
                },
                Err(source) => {
                    return Err(ConfigError::Unreadable { path: path.clone(), source });
                }
            },
        };
        let (config, origins) = match found {
            Some(FileConfig { config, origins }) => (config, origins),
            None => (Config::default(), BTreeMap::new()),
        };
        let (file, file_origin) = split(named);
        let mut loaded = Self { config, file, file_origin, origins };
        loaded.apply_environment(env);
        loaded.apply_flags(flags);
        Ok(loaded)
    }

    /// The configuration of somebody who has neither file nor flags: what a command falls back to
    /// that has to work while the file is broken.
    pub fn without_file(env: &Env) -> Self {
        let (file, file_origin) = split(paths::config_file(env, None));
        let mut loaded =
            Self { config: Config::default(), file, file_origin, origins: BTreeMap::new() };
        loaded.apply_environment(env);
        loaded
    }

    /// Reads the text of a file as if it stood at `path`, without environment or flags.
    pub fn from_text(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let FileConfig { config, origins } =
            file::parse(text.as_bytes(), path).map_err(ConfigError::Invalid)?;
        let file = Some(path.to_path_buf());
        Ok(Self { config, file, file_origin: Origin::Default, origins })
    }

    /// Who set the key, such as `sessions.idle_after`.
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::Default)
    }

    /// The defaults alone.
    pub(super) fn defaults() -> Self {
        Self {
            config: Config::default(),
            file: None,
            file_origin: Origin::Default,
            origins: BTreeMap::new(),
        }
    }

    /// The value of a key, as JSON.
    pub(super) fn value(&self, key: &str) -> Option<serde_json::Value> {
        origin::flatten(&self.config)
            .into_iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    /// Every setting with its origin, secrets hidden: `config show`.
    pub fn show(&self) -> Vec<Setting> {
        origin::show(self)
    }

    /// Every key there is, with its section, in the order of their names.
    pub fn keys(&self) -> Vec<String> {
        origin::flatten(&self.config).into_iter().map(|(key, _)| key).collect()
    }

    /// The tools' own variables hold only where the file says nothing.
    fn apply_environment(&mut self, env: &Env) {
        if !self.origins.contains_key("sources.claude") {
            if let Some(list) = env.var("CLAUDE_CONFIG_DIR") {
                self.config.sources.claude =
                    split_list(list).iter().map(|part| env.absolute(part)).collect();
                self.set_by_env("sources.claude", "CLAUDE_CONFIG_DIR");
            } else if let Some(config_home) = env.xdg("XDG_CONFIG_HOME") {
                self.config.sources.claude =
                    vec![PathBuf::from("~/.claude"), config_home.join("claude")];
                self.set_by_env("sources.claude", "XDG_CONFIG_HOME");
            }
        }
        if !self.origins.contains_key("sources.codex")
            && let Some(root) = env.path_var("CODEX_HOME")
        {
            self.config.sources.codex = vec![root];
            self.set_by_env("sources.codex", "CODEX_HOME");
        }
        if !self.origins.contains_key("vault.url")
            && let Some(url) = env.var("AKB_MCP_URL")
        {
            self.config.vault.url = Some(url.to_string_lossy().into_owned());
            self.set_by_env("vault.url", "AKB_MCP_URL");
        }
    }

    fn apply_flags(&mut self, flags: &Flags) {
        if let Some(format) = flags.log_format {
            self.config.log.format = format;
            self.origins.insert("log.format".to_owned(), Origin::Flag("--log-format"));
        }
        if let Some(level) = flags.log_level {
            self.config.log.level = level;
            self.origins.insert("log.level".to_owned(), Origin::Flag("-v"));
        }
    }

    fn set_by_env(&mut self, key: &str, variable: &'static str) {
        self.origins.insert(key.to_owned(), Origin::Env(variable));
    }
}

fn split(named: Option<(PathBuf, Origin)>) -> (Option<PathBuf>, Origin) {
    match named {
        Some((path, origin)) => (Some(path), origin),
        None => (None, Origin::Default),
    }
}

/// `CLAUDE_CONFIG_DIR` may name several directories, separated by `,` or `:` (`interface.md`).
fn split_list(list: &OsStr) -> Vec<PathBuf> {
    list.as_bytes()
        .split(|byte| matches!(byte, b',' | b':'))
        .map(<[u8]>::trim_ascii)
        .filter(|part| !part.is_empty())
        .map(|part| PathBuf::from(OsStr::from_bytes(part)))
        .collect()
}
