//! Failures that a caller tells apart, and the exit codes that they become (interface.md). Everything else is
//! exit 1.

use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

use majordomus_core::ledger::LedgerError;
use serde::{Deserialize, Serialize};

use crate::printable::printable;

/// How a program of the pair ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// Done.
    Ok,
    /// Failed or unhealthy.
    Failed,
    /// The command line is wrong.
    Usage,
    /// The daemon is not running.
    NotRunning,
    /// There is no such thing.
    NotFound,
    /// The configuration is invalid.
    ConfigInvalid,
    /// The daemon does not answer.
    Unresponsive,
    /// The store is damaged.
    Damaged,
    /// Daemon and companion have different versions.
    VersionSkew,
    /// A summary tries to set a field of the record's identity.
    IdentityField,
    /// No episode is open.
    NothingOpen,
    /// Policy forbids it.
    Policy,
    /// The vault cannot be reached.
    VaultUnreachable,
    /// Another daemon has the state directory.
    AlreadyRunning,
}

impl Exit {
    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotRunning => 3,
            Self::NotFound => 4,
            Self::ConfigInvalid => 5,
            Self::Unresponsive => 6,
            Self::Damaged => 7,
            Self::VersionSkew => 9,
            Self::IdentityField => 10,
            Self::NothingOpen => 12,
            Self::Policy => 13,
            Self::VaultUnreachable => 69,
            Self::AlreadyRunning => 75,
        }
    }
}

/// A failure with its exit and one line for the person at the keyboard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// How the program ends.
    pub exit: Exit,
    /// What failed, on what, and what to do.
    pub message: String,
}

impl Failure {
    /// Any failure.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Exit::NotFound, message)
    }

    /// The command line is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// The store is damaged.
    pub fn damaged(message: impl Into<String>) -> Self {
        Self::new(Exit::Damaged, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The exit that an error stands for, wherever in its chain that is said.
pub fn exit_of(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            return failure.exit;
        }
        if cause.is::<crate::lock::AlreadyRunning>() {
            return Exit::AlreadyRunning;
        }
        if let Some(ledger) = cause.downcast_ref::<LedgerError>() {
            if ledger.is_corruption() {
                return Exit::Damaged;
            }
            if ledger.is_from_newer_version() {
                return Exit::VersionSkew;
            }
        }
    }
    Exit::Failed
}

/// An error with its causes as one line. A cause that repeats what was said is left out.
pub fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if line.is_empty() {
            line = cause;
        } else if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    let ledger = error.chain().find_map(|cause| cause.downcast_ref::<LedgerError>());
    line.push_str(ledger.map(remedy).unwrap_or_default());
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a person can do about the ledger.
fn remedy(error: &LedgerError) -> &'static str {
    match error {
        _ if error.is_corruption() => {
            "; the ledger is damaged: move ledger.db* out of the state directory, and majordomusd reads the session \
             files again"
        }
        LedgerError::Open { .. } => "; check that it is a file and yours",
        _ => "",
    }
}

/// Ends a program whose arguments ask for help or are wrong; the complaint is one line.
pub fn end_of_parsing(program: &str, error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // A closed pipe (`--help | head`) is a reader that has seen enough.
        return error.print().map_or(ExitCode::SUCCESS, |()| ExitCode::SUCCESS);
    }
    let text = error.to_string();
    // Clap draws the usage below; what is wrong stands above it.
    let lines = text.lines().take_while(|line| !line.starts_with("Usage:"));
    let said = lines.map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let what = printable(said.strip_prefix("error: ").unwrap_or(&said));
    let what = what.trim_end_matches(['.', ':']);
    if writeln!(io::stderr().lock(), "{program}: {what}; see {program} --help").is_err() {
        tracing::debug!("standard error is closed");
    }
    ExitCode::from(Exit::Usage.code())
}
