//! The kinds of value that a key can have, and how each is read from TOML.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Serialize, Serializer};
use toml::de::DeValue;

use super::duration;

/// Why a value was not taken: what stood there, and what may stand there.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) found: String,
    pub(super) expected: String,
}

impl Refusal {
    /// The value has the wrong type. Its content is not repeated: it may be a secret.
    pub(super) fn of_type(value: &DeValue<'_>, expected: impl Into<String>) -> Self {
        let found = match value {
            DeValue::String(_) => "a text",
            DeValue::Integer(number) => {
                return Self { found: format!("the number {number}"), expected: expected.into() };
            }
            DeValue::Float(number) => {
                return Self { found: format!("the number {number}"), expected: expected.into() };
            }
            DeValue::Boolean(true) => "true",
            DeValue::Boolean(false) => "false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a section",
        };
        Self { found: found.to_owned(), expected: expected.into() }
    }

    /// The type is right and the content is not.
    fn of_content(text: &str, expected: impl Into<String>) -> Self {
        const SHOWN: usize = 40;
        let mut shown: String = text.chars().take(SHOWN).collect();
        if text.chars().nth(SHOWN).is_some() {
            shown.push('…');
        }
        Self { found: format!("{shown:?}"), expected: expected.into() }
    }
}

/// A kind of value that can be read from TOML.
pub(super) trait FromToml: Sized {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal>;
}

impl FromToml for bool {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        match value {
            DeValue::Boolean(claim) => Ok(*claim),
            other => Err(Refusal::of_type(other, "true or false")),
        }
    }
}

/// A whole number that is not negative, in any of TOML's notations.
fn whole_number(value: &DeValue<'_>, most: u64) -> Result<u64, Refusal> {
    let expected = || format!("a whole number from 0 to {most}");
    match value {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .filter(|number| *number <= most)
            .ok_or_else(|| Refusal::of_type(value, expected())),
        other => Err(Refusal::of_type(other, expected())),
    }
}

impl FromToml for u64 {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        // The largest integer that TOML promises to carry.
        whole_number(value, i64::MAX.unsigned_abs())
    }
}

impl FromToml for u32 {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let number = whole_number(value, u64::from(Self::MAX))?;
        Self::try_from(number).map_err(|_| Refusal::of_type(value, "a smaller number"))
    }
}

impl FromToml for String {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        match value {
            DeValue::String(text) => Ok(text.to_string()),
            other => Err(Refusal::of_type(other, "a text in quotes")),
        }
    }
}

impl FromToml for PathBuf {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        match value {
            DeValue::String(text) if text.is_empty() => {
                Err(Refusal::of_content(text, r#"a path such as "~/notes""#))
            }
            DeValue::String(text) => Ok(Self::from(text.as_ref())),
            other => Err(Refusal::of_type(other, r#"a path such as "~/notes""#)),
        }
    }
}

/// The empty text means unset, so that a default can be written down.
impl<T: FromToml> FromToml for Option<T> {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        match value {
            DeValue::String(text) if text.is_empty() => Ok(None),
            other => T::from_toml(other).map(Some),
        }
    }
}

impl<T: FromToml> FromToml for Vec<T> {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        match value {
            DeValue::Array(members) => {
                members.iter().map(|member| T::from_toml(member.get_ref())).collect()
            }
            other => Err(Refusal::of_type(other, r#"a list such as ["…", "…"]"#)),
        }
    }
}

impl FromToml for Duration {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let expected = r#"a duration such as "90s", "20m", "2h" or "7d""#;
        match value {
            DeValue::String(text) => {
                duration::parse(text).ok_or_else(|| Refusal::of_content(text, expected))
            }
            other => Err(Refusal::of_type(other, expected)),
        }
    }
}

/// Most bytes that something may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteLimit {
    /// As many as the disk has; written `"unlimited"`.
    Unlimited,
    /// This many bytes; written as a number or with a unit (`"20GiB"`).
    Bytes(u64),
}

impl FromToml for ByteLimit {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let expected = r#""unlimited", a number of bytes, or a size such as "20GiB""#;
        match value {
            DeValue::String(text) if text == "unlimited" => Ok(Self::Unlimited),
            DeValue::String(text) => {
                parse_size(text).map(Self::Bytes).ok_or_else(|| Refusal::of_content(text, expected))
            }
            DeValue::Integer(_) => u64::from_toml(value)
                .map(Self::Bytes)
                .map_err(|refusal| Refusal { expected: expected.to_owned(), ..refusal }),
            other => Err(Refusal::of_type(other, expected)),
        }
    }
}

impl Serialize for ByteLimit {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unlimited => out.serialize_str("unlimited"),
            Self::Bytes(bytes) => out.serialize_u64(*bytes),
        }
    }
}

/// A size such as `20GiB` or `500 MB`: `k`, `M`, `G`, `T` are decimal, with an `i` binary.
fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// How long something is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Until a person removes it; written `"forever"`.
    Forever,
    /// This long.
    For(Duration),
}

impl FromToml for Keep {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        match value {
            DeValue::String(text) if text == "forever" => Ok(Self::Forever),
            other => Duration::from_toml(other).map(Self::For).map_err(|refusal| Refusal {
                expected: r#""forever" or a duration such as "90d""#.to_owned(),
                ..refusal
            }),
        }
    }
}

impl Serialize for Keep {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Forever => out.serialize_str("forever"),
            Self::For(duration) => duration::as_text(duration, out),
        }
    }
}

/// Where a service may be asked over the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Listen {
    /// Nowhere; written `"off"`.
    #[default]
    Off,
    /// At this address; written `"127.0.0.1:9464"`.
    At(SocketAddr),
}

impl FromToml for Listen {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let expected = r#""off" or an address and port such as "127.0.0.1:9464""#;
        let DeValue::String(text) = value else {
            return Err(Refusal::of_type(value, expected));
        };
        if text == "off" || text.is_empty() {
            return Ok(Self::Off);
        }
        let numeric = match text.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => text.to_string(),
        };
        numeric.parse().map(Self::At).map_err(|_| Refusal::of_content(text, expected))
    }
}

impl Serialize for Listen {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => out.serialize_str("off"),
            Self::At(address) => out.collect_str(address),
        }
    }
}

/// An enum whose members are words of the config file.
macro_rules! words {
    ($(#[$about:meta])* $name:ident {
        $($(#[$member_about:meta])* $member:ident = $word:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum $name {
            $($(#[$member_about])* $member,)+
        }

        impl $name {
            /// Every member.
            pub const ALL: &'static [Self] = &[$(Self::$member),+];

            /// The word that stands for it in the config file.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$member => $word,)+
                }
            }
        }

        impl std::str::FromStr for $name {
            /// The words that would have been understood.
            type Err = String;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL
                    .iter()
                    .copied()
                    .find(|member| member.as_str() == text)
                    .ok_or_else(|| one_of(&[$($word),+]))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(self.as_str())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.serialize_str(self.as_str())
            }
        }

        impl FromToml for $name {
            fn from_toml(value: &DeValue<'_>) -> Result<Self, Refusal> {
                match value {
                    DeValue::String(text) => {
                        text.parse().map_err(|expected: String| Refusal::of_content(text, expected))
                    }
                    other => Err(Refusal::of_type(other, one_of(&[$($word),+]))),
                }
            }
        }
    };
}

/// `one of "a", "b"`
fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    format!("one of {}", quoted.join(", "))
}

words! {
    /// Which projects take part.
    ProjectMode {
        /// Every one that is not excluded.
        #[default]
        All = "all",
        /// Only those in `include`.
        Listed = "listed",
    }
}

words! {
    /// Who writes the notes.
    Drafter {
        /// The built-in rules: offline, no model.
        #[default]
        Extractive = "extractive",
        /// The Anthropic API.
        Anthropic = "anthropic",
        /// The OpenAI API, or one that speaks it.
        Openai = "openai",
        /// A fenced `claude -p`.
        ClaudeCli = "claude-cli",
        /// A fenced `codex exec`.
        CodexCli = "codex-cli",
    }
}

impl Drafter {
    /// Whether it calls a model API itself, and so needs to be told which model.
    pub fn is_api(self) -> bool {
        matches!(self, Self::Anthropic | Self::Openai)
    }
}

words! {
    /// How sure a note must be before it is kept.
    Precision {
        /// The usual gates.
        #[default]
        Normal = "normal",
        /// Fewer notes, each better supported.
        High = "high",
    }
}

words! {
    /// When a session that a script started is drafted.
    Scripted {
        /// If it changed files or made commits.
        #[default]
        Changed = "changed",
        /// Like any other.
        Always = "always",
        /// Not at all.
        Never = "never",
    }
}

words! {
    /// Which kind of vault notes go to.
    VaultKind {
        /// A directory on this machine.
        #[default]
        Local = "local",
        /// An AKB server.
        Akb = "akb",
    }
}

words! {
    /// The least serious message that is logged.
    LogLevel {
        /// Failures only.
        Error = "error",
        /// And what may become one.
        Warn = "warn",
        /// And what was done.
        #[default]
        Info = "info",
        /// And why.
        Debug = "debug",
        /// And how.
        Trace = "trace",
    }
}

words! {
    /// How a log line is written.
    LogFormat {
        /// For people.
        #[default]
        Text = "text",
        /// One JSON object per line.
        Json = "json",
    }
}

/// For `#[serde(serialize_with)]`: serde refuses paths that are not UTF-8, a display need not.
pub(super) fn paths_as_text<S: Serializer>(paths: &[PathBuf], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(paths.iter().map(|path| lossy(path).to_string()))
}

/// For `#[serde(serialize_with)]`.
#[expect(clippy::ref_option, reason = "the signature is serde's")]
pub(super) fn path_as_text<S: Serializer>(
    path: &Option<PathBuf>,
    out: S,
) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => out.collect_str(&lossy(path)),
        None => out.serialize_none(),
    }
}

fn lossy(path: &Path) -> impl Display + '_ {
    path.display()
}
