//! `majordomusctl close`

use std::io::Read as _;

use anyhow::{Context as _, Result};
use majordomus_core::envelope::identity_field;

use super::Context;
use crate::failure::{Exit, Failure};
use crate::printable::printable;
use crate::socket::protocol::{CloseParams, ClosedView};

/// An authored summary is a page, not a book.
const MAX_SUMMARY: u64 = 256 * 1024;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Which session
    #[arg(required_unless_present = "all")]
    session: Option<String>,
    /// Every open session
    #[arg(long, conflicts_with = "session")]
    all: bool,
    /// Read a summary from standard input (`-`) and store it as the record's body
    #[arg(long, value_name = "-", value_parser = ["-"], requires = "session")]
    summary: Option<String>,
}

pub(super) fn run(context: &Context, arguments: Arguments) -> Result<Exit> {
    let mut client = context.needs_daemon()?;
    let summary = arguments.summary.map(|_| read_summary()).transpose()?;
    let params = CloseParams { session: arguments.session, all: arguments.all, summary };
    let closed: Vec<ClosedView> = client.order("session.close", &serde_json::to_value(params)?)?;
    if context.output.json {
        context.output.document(&closed)?;
    } else {
        for closed in &closed {
            context.output.line(&format!(
                "closed {} {} episode {}: {}",
                closed.tool,
                printable(&closed.session),
                closed.episode,
                printable(&closed.envelope)
            ))?;
        }
    }
    Ok(Exit::Ok)
}

fn read_summary() -> Result<String> {
    let mut summary = String::new();
    std::io::stdin()
        .lock()
        .take(MAX_SUMMARY + 1)
        .read_to_string(&mut summary)
        .context("cannot read the summary from standard input; it must be UTF-8 text")?;
    if summary.len() as u64 > MAX_SUMMARY {
        return Err(Failure::usage("the summary is over 256 KiB; shorten it").into());
    }
    if let Some(field) = identity_field(&summary) {
        return Err(Failure::new(
            Exit::IdentityField,
            format!(
                "the summary sets the identity field {field}, which is computed; take that line out and close \
                 again (the episode stays open)"
            ),
        )
        .into());
    }
    Ok(summary)
}
