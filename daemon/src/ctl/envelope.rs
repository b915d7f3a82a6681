//! `majordomusctl envelope`

use anyhow::Result;
use serde_json::json;

use super::Context;
use crate::failure::Exit;
use crate::view;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Which session, and after a slash which episode; without one the last
    #[arg(value_name = "SESSION[/N]")]
    session: String,
}

pub(super) async fn run(context: &Context, arguments: Arguments) -> Result<Exit> {
    let name = arguments.session;
    let state_dir = &context.settings.paths.state_dir;
    let text: String = context
        .read("session.envelope", json!({"session": name}), async |reader| {
            let bytes = view::envelope(reader, state_dir, &name).await?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        })
        .await?;
    // The record is JSON, with or without --json, and its bytes are those that were hashed.
    context.output.text(&text)?;
    Ok(Exit::Ok)
}
