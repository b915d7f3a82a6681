//! `majordomusctl status`

use anyhow::Result;

use super::Context;
use super::output::Tone;
use crate::api;
use crate::failure::Exit;
use crate::printable::printable;
use crate::socket::protocol::{PartStatus, Status};

pub(super) async fn run(context: &Context) -> Result<Exit> {
    let (status, exit) = match context.daemon()? {
        Some(mut client) => {
            let status: Status = client.ask("status", &serde_json::Value::Null)?;
            let same = status.version == env!("CARGO_PKG_VERSION");
            (status, if same { Exit::Ok } else { Exit::VersionSkew })
        }
        None => (stopped(context).await?, Exit::NotRunning),
    };
    if context.output.json {
        context.output.document(&status)?;
    } else {
        print(context, &status)?;
    }
    if exit == Exit::VersionSkew {
        super::output::complain(&format!(
            "the daemon is version {}, this is {}; restart the daemon",
            status.version,
            env!("CARGO_PKG_VERSION")
        ));
    }
    Ok(exit)
}

/// What the store tells without a daemon; empty when there is none yet.
async fn stopped(context: &Context) -> Result<Status> {
    let settings = &context.settings;
    let mut status = match context.store_if_there().await? {
        Some(mut reader) => {
            api::stored_status(&mut reader, &settings.paths, &settings.parts()).await?
        }
        None => api::empty_status(&settings.paths, &settings.parts()),
    };
    status.sources = api::unwatched_roots(&settings.roots);
    status.vault.error = settings.inspect_vault().err().map(|failure| failure.message);
    status.vault.ok = status.vault.error.is_none();
    Ok(status)
}

fn print(context: &Context, status: &Status) -> Result<()> {
    let output = context.output;
    let tone = match status.daemon.as_str() {
        "running" => Tone::Good,
        "stopped" => Tone::Bad,
        _ => Tone::Plain,
    };
    let since =
        status.pid.map(|pid| format!(", pid {pid}, up {} s", status.uptime_s)).unwrap_or_default();
    output.line(&format!(
        "daemon    {} (version {}{since})",
        output.paint(tone, &status.daemon),
        status.version
    ))?;
    for root in &status.sources {
        output.line(&format!(
            "source    {} {} ({})",
            root.tool,
            printable(&root.path),
            root.mode
        ))?;
    }
    output.line(&format!(
        "sessions  {} open, {} closed, {} episodes",
        status.sessions.open, status.sessions.closed, status.sessions.episodes
    ))?;
    output.line(&format!(
        "ledger    {} events, {} bytes; {} unreadable and {} unknown lines",
        status.ledger.events, status.ledger.bytes, status.ledger.unreadable, status.ledger.unknown
    ))?;
    let funnel = &status.funnel;
    output.line(&format!(
        "funnel    {} files seen, {} in the ledger, {} episodes closed, {} notes drafted, {} stored",
        funnel.seen, funnel.ledgered, funnel.closed, funnel.drafted, funnel.pushed
    ))?;
    for (reason, n) in &funnel.dropped {
        output.line(&format!("          {n} without a note: {}", reason.replace('_', " ")))?;
    }
    output.line(&format!("lag       {} bytes in {} files", status.lag.bytes, status.lag.files))?;
    output.line(&format!(
        "outbox    {} pending, {} failed",
        status.outbox.pending, status.outbox.failed
    ))?;
    output.line(&format!("vault     {}", part(context, &status.vault)))?;
    output.line(&format!("drafter   {}", part(context, &status.drafter)))?;
    output.line(&format!("state     {}", printable(&status.state_dir)))?;
    for problem in &status.problems {
        output.line(&format!("{} {}", output.paint(Tone::Bad, "problem  "), printable(problem)))?;
    }
    Ok(())
}

fn part(context: &Context, part: &PartStatus) -> String {
    match &part.error {
        None => format!("{} ({})", part.kind, context.output.paint(Tone::Good, "ok")),
        Some(error) => format!("{} ({})", part.kind, context.output.paint(Tone::Bad, error)),
    }
}
