//! The daemon's command line: arguments, logging, signals, exit code.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{ArgAction, Parser, ValueEnum};
use futures_util::StreamExt as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::config::{Env, Flags, Loaded, LogFormat, LogLevel};
use crate::failure::{Exit, Failure, exit_of, one_line};
use crate::printable::printable;
use crate::run::{self, Order, STATE, Settings};

/// Keeps a ledger of your coding-agent sessions and writes notes about them.
///
/// Stays in the foreground; systemd or launchd supervise it. Without any config file it watches ~/.claude and
/// ~/.codex and writes notes to a local directory of Markdown files.
#[derive(Debug, Parser)]
#[command(name = "majordomusd", version, max_term_width = 100)]
struct Arguments {
    /// Use this config file instead of ~/.config/majordomus/config.toml
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Catch up with every source, close what is idle, draft, store, then exit
    #[arg(long)]
    once: bool,

    /// Check the configuration, the paths and the vault, then exit
    #[arg(long, conflicts_with = "once")]
    check: bool,

    /// How log lines look
    #[arg(long, value_enum, value_name = "FORMAT")]
    log_format: Option<Format>,

    /// Log more; twice for everything
    #[arg(short, action = ArgAction::Count)]
    verbose: u8,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Signals that wait to be obeyed.
const ORDERS: usize = 8;

/// Runs `majordomusd`.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return crate::failure::end_of_parsing("majordomusd", &error),
    };
    match start(&arguments) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => {
            eprint_line(&format!("majordomusd: {}", one_line(&error)));
            ExitCode::from(exit_of(&error).code())
        }
    }
}

/// Standard error is where a person looks when a program does not start; nothing can be done when it is gone.
fn eprint_line(line: &str) {
    use std::io::Write as _;
    if writeln!(std::io::stderr().lock(), "{}", printable(line)).is_err() {
        tracing::debug!("standard error is closed");
    }
}

fn start(arguments: &Arguments) -> Result<Exit> {
    let env = Env::of_process();
    let flags = Flags {
        config: arguments.config.clone(),
        log_format: arguments.log_format.map(|format| match format {
            Format::Text => LogFormat::Text,
            Format::Json => LogFormat::Json,
        }),
        log_level: match arguments.verbose {
            0 => None,
            1 => Some(LogLevel::Debug),
            _ => Some(LogLevel::Trace),
        },
    };
    let loaded = load(&env, &flags)?;
    let settings = Settings::new(&loaded, &env)?;
    if !is_sound(&env, &loaded, &settings) {
        return Ok(Exit::ConfigInvalid);
    }
    if arguments.check {
        return check(&settings);
    }
    start_logging(&settings)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let ended = runtime.block_on(supervise(settings, arguments.once, &env, &flags));
    // A thread may still read a file for nobody: the ledger is sound whenever the process ends.
    runtime.shutdown_background();
    ended
}

/// Reads the configuration; every fault is a line of its own.
fn load(env: &Env, flags: &Flags) -> Result<Loaded> {
    Loaded::read(env, flags).map_err(|error| {
        let lines = error.lines();
        let (last, before) = match lines.split_last() {
            Some((last, before)) => (last.clone(), before),
            None => (error.to_string(), &[][..]),
        };
        for line in before {
            eprint_line(&format!("majordomusd: {line}"));
        }
        Failure::new(Exit::ConfigInvalid, last).into()
    })
}

/// Says what keeps the daemon from doing what the configuration says; true if there is nothing.
fn is_sound(env: &Env, loaded: &Loaded, settings: &Settings) -> bool {
    let problems = crate::config::check(loaded, env, &settings.paths);
    for problem in &problems {
        eprint_line(&format!("majordomusd: {problem}"));
    }
    problems.is_empty()
}

fn check(settings: &Settings) -> Result<Exit> {
    settings.inspect_directories()?;
    for root in &settings.roots {
        let state = if root.path.is_dir() { "" } else { " (not there yet)" };
        eprint_line(&format!("watches {} {}{state}", root.tool, root.path.display()));
    }
    eprint_line(&format!("state in {}", settings.paths.state_dir.display()));
    eprint_line(&format!("notes in {}", settings.paths.vault_dir.display()));
    eprint_line("the configuration is valid");
    Ok(Exit::Ok)
}

fn start_logging(settings: &Settings) -> Result<()> {
    use tracing_subscriber::EnvFilter;

    let log = &settings.config.log;
    let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    // A person at a terminal gets plain lines for what happens; the log adds what goes wrong.
    let level = match log.level {
        LogLevel::Info if is_terminal => "warn".to_owned(),
        level => level.to_string(),
    };
    let filter = EnvFilter::try_new(format!("{level},sqlx=warn,{STATE}=info"))
        .with_context(|| format!("bad log level {level}"))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match log.format {
        LogFormat::Json => builder.json().try_init(),
        LogFormat::Text => builder.with_target(false).with_ansi(is_terminal).try_init(),
    }
    .map_err(|error| anyhow::anyhow!("cannot start logging: {error}"))
}

/// Runs until the work is done or a signal ends it.
async fn supervise(settings: Settings, once: bool, env: &Env, flags: &Flags) -> Result<Exit> {
    let stop = CancellationToken::new();
    let mut signals = signal_hook_tokio::Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1])
        .context("cannot listen to signals")?;
    let (orders, received) = mpsc::channel(ORDERS);
    let mut running = std::pin::pin!(run::run(settings, once, stop.clone(), received));
    let outcome = loop {
        tokio::select! {
            outcome = &mut running => break outcome,
            signal = signals.next() => match signal {
                Some(SIGHUP) => reload(env, flags, &orders),
                Some(SIGUSR1) => give(&orders, Order::LogState),
                Some(_) if stop.is_cancelled() => {
                    // The second request: the ledger is sound whenever the process ends.
                    return Ok(Exit::Ok);
                }
                Some(_) => stop.cancel(),
                None => break (&mut running).await,
            },
        }
    };
    let outcome = outcome?;
    Ok(if once && outcome.undelivered > 0 { Exit::Failed } else { Exit::Ok })
}

/// Reads the configuration again; one that is invalid is refused and the old one stays.
fn reload(env: &Env, flags: &Flags, orders: &mpsc::Sender<Order>) {
    let settings = Loaded::read(env, flags).map_err(|error| error.lines()).and_then(|loaded| {
        let settings = Settings::new(&loaded, env).map_err(|error| vec![one_line(&error)])?;
        let problems = crate::config::check(&loaded, env, &settings.paths);
        if problems.is_empty() {
            Ok(settings)
        } else {
            Err(problems.iter().map(ToString::to_string).collect())
        }
    });
    match settings {
        Ok(settings) => give(orders, Order::Reload(Box::new(settings))),
        Err(problems) => {
            for problem in problems {
                let problem = printable(&problem);
                tracing::error!("the configuration was refused, the old one stays: {problem}");
            }
        }
    }
}

/// Hands an order to the daemon. Signals come faster than they can be obeyed only by mistake.
fn give(orders: &mpsc::Sender<Order>, order: Order) {
    if let Err(error) = orders.try_send(order) {
        tracing::warn!("a signal was dropped: {error}");
    }
}
