//! `majordomusctl`: asks the daemon, or reads the store itself when no daemon runs. One file per command.

mod close;
mod config;
mod draft;
mod envelope;
mod notes;
mod output;
mod sessions;
mod show;
mod status;
mod stop;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::output::Output;
use crate::config::{Env, Flags, Loaded};
use crate::failure::{Exit, Failure, exit_of, one_line};
use crate::run::Settings;
use crate::socket::client::{Client, NoDaemon};

/// Asks majordomusd about your coding-agent sessions and tells it what to do.
///
/// A session is named by its id, any unique prefix of it, or `last`. Reading commands work without the daemon.
///
/// Exit codes: 0 ok, 1 failed, 2 usage, 3 daemon not running, 4 not found, 5 config invalid, 6 daemon does not
/// answer, 7 store damaged, 9 version skew, 10 identity field refused, 12 nothing open, 13 refused by policy,
/// 69 vault unreachable, 75 already running.
#[derive(Debug, Parser)]
#[command(name = "majordomusctl", version, max_term_width = 100)]
struct Arguments {
    /// Use this config file instead of ~/.config/majordomus/config.toml
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Whether the daemon is up, what it watches, and how far it is
    Status,
    /// List sessions, the newest first
    Sessions(sessions::Arguments),
    /// One session: episodes, references, notes, gaps
    Show(show::Arguments),
    /// Close a session now instead of when it is idle
    Close(close::Arguments),
    /// Print the record of a closed episode
    Envelope(envelope::Arguments),
    /// Drafted notes and where they are
    Notes(notes::Arguments),
    /// Show the notes that would be written, without storing anything
    Draft(draft::Arguments),
    /// Stop the daemon
    Stop,
    /// Look at the configuration
    Config {
        #[command(subcommand)]
        command: config::Command,
    },
}

/// What a command works with.
struct Context {
    settings: Settings,
    output: Output,
}

/// Runs `majordomusctl`.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return crate::failure::end_of_parsing("majordomusctl", &error),
    };
    match run(arguments) {
        Ok(exit) => ExitCode::from(exit.code()),
        // A closed pipe (`| head`) is a reader that has seen enough.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&one_line(&error));
            ExitCode::from(exit_of(&error).code())
        }
    }
}

fn run(arguments: Arguments) -> Result<Exit> {
    let env = Env::of_process();
    let flags = Flags { config: arguments.config, ..Flags::default() };
    let output = Output::new(arguments.json, &env);
    if let Command::Config { command } = arguments.command {
        return config::run(command, &env, &flags, output);
    }
    let loaded = Loaded::read(&env, &flags)
        .map_err(|error| Failure::new(Exit::ConfigInvalid, error.to_string()))?;
    let context = Context { settings: Settings::new(&loaded, &env)?, output };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        match arguments.command {
            Command::Status => status::run(&context).await,
            Command::Sessions(arguments) => sessions::run(&context, arguments).await,
            Command::Show(arguments) => show::run(&context, arguments).await,
            Command::Close(arguments) => close::run(&context, arguments),
            Command::Envelope(arguments) => envelope::run(&context, arguments).await,
            Command::Notes(arguments) => notes::run(&context, arguments).await,
            Command::Draft(arguments) => draft::run(&context, arguments).await,
            Command::Stop => stop::run(&context),
            Command::Config { .. } => Ok(Exit::Ok),
        }
    })
}

impl Context {
    /// Connects to the daemon; `None` when none runs.
    fn daemon(&self) -> Result<Option<Client>> {
        match Client::connect(&self.settings.paths.socket.path) {
            Ok(mut client) => {
                client.ping()?;
                Ok(Some(client))
            }
            Err(NoDaemon::NotRunning) => Ok(None),
            Err(NoDaemon::Failed(error)) => Err(Failure::new(
                Exit::Unresponsive,
                format!(
                    "cannot use the socket {}: {error}",
                    self.settings.paths.socket.path.display()
                ),
            )
            .into()),
        }
    }

    /// Connects to the daemon that a command needs.
    fn needs_daemon(&self) -> Result<Client> {
        self.daemon()?.ok_or_else(|| {
            Failure::new(
                Exit::NotRunning,
                format!(
                    "majordomusd is not running (no answer at {}); start it with: majordomusd",
                    self.settings.paths.socket.path.display()
                ),
            )
            .into()
        })
    }

    /// Opens the store read-only. Without one there is nothing to read.
    async fn store(&self) -> Result<majordomus_core::ledger::Reader> {
        let path = &self.settings.paths.ledger;
        self.store_if_there().await?.ok_or_else(|| {
            Failure::not_found(format!(
                "there is no ledger at {}; run majordomusd first",
                path.display()
            ))
            .into()
        })
    }

    /// Opens the store read-only; `None` while there is none, or none that was made ready yet.
    async fn store_if_there(&self) -> Result<Option<majordomus_core::ledger::Reader>> {
        let path = &self.settings.paths.ledger;
        if !path.exists() {
            return Ok(None);
        }
        let mut reader = majordomus_core::ledger::Reader::open(path).await?;
        match reader.is_ready().await {
            Ok(is_ready) => Ok(is_ready.then_some(reader)),
            Err(error) if error.is_from_newer_version() => Err(error.into()),
            Err(error) => {
                Err(error).with_context(|| format!("cannot read the ledger {}", path.display()))
            }
        }
    }

    /// Asks the daemon, or without one the store.
    async fn read<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
        from_store: impl AsyncFnOnce(&mut majordomus_core::ledger::Reader) -> Result<T>,
    ) -> Result<T> {
        match self.daemon()? {
            Some(mut client) => Ok(client.ask(method, &params)?),
            None => from_store(&mut self.store().await?).await,
        }
    }
}
