//! `majordomusctl draft`

use std::path::PathBuf;

use anyhow::Result;
use jiff::tz::TimeZone;
use serde_json::json;

use super::Context;
use crate::clock;
use crate::failure::Exit;
use crate::printable::{printable, printable_lines};
use crate::view;
use crate::write::{self, Drafted};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Which session
    session: String,
    /// Which drafter; this version has the one that uses no model
    #[arg(long, value_name = "DRAFTER", value_parser = ["extractive"], default_value = "extractive")]
    drafter: String,
    /// Write the notes as Markdown files below this directory instead of printing them
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(super) async fn run(context: &Context, arguments: Arguments) -> Result<Exit> {
    let mut reader = context.store().await?;
    let state = view::find(&mut reader, &arguments.session).await?;
    let git = context.settings.git();
    let time_zone = TimeZone::system();
    let redactor = context.settings.redactor()?;
    let with = (&git, &redactor, &time_zone);
    let drafts: Vec<Drafted> =
        write::compose(&mut reader, with, &state, None, None).await?.into_iter().collect();
    if let Some(directory) = arguments.out {
        let vault = write::directory_vault(&directory)?;
        for draft in &drafts {
            let stored = vault.put(write::put_note(draft, clock::now())).await?;
            context.output.line(&printable(&stored.path))?;
        }
        return Ok(Exit::Ok);
    }
    if context.output.json {
        let documents: Vec<_> = drafts.iter().map(document).collect();
        context.output.document(&documents)?;
    } else if drafts.is_empty() {
        context.output.line("no notes for this session")?;
    } else {
        for draft in &drafts {
            context.output.line(&printable_lines(&draft.note.body))?;
        }
    }
    Ok(Exit::Ok)
}

fn document(draft: &Drafted) -> serde_json::Value {
    json!({
        "kind": draft.note.kind.as_str(),
        "collection": draft.note.kind.collection(),
        "slug": draft.slug,
        "title": draft.note.title,
        "summary": draft.note.summary,
        "status": draft.note.status.as_str(),
        "tags": draft.note.tags.iter().collect::<Vec<_>>(),
        "body": draft.note.body,
    })
}
