//! `majordomusctl notes`

use anyhow::Result;
use serde_json::json;

use super::Context;
use super::output::Cell;
use crate::failure::Exit;
use crate::view::{self, NoteView};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Only the notes of this session
    session: Option<String>,
}

pub(super) async fn run(context: &Context, arguments: Arguments) -> Result<Exit> {
    let name = arguments.session;
    let notes: Vec<NoteView> = context
        .read("notes.list", json!({"session": name}), async |reader| {
            view::notes(reader, name.as_deref()).await
        })
        .await?;
    if context.output.json {
        context.output.document(&notes)?;
        return Ok(Exit::Ok);
    }
    if notes.is_empty() {
        context.output.line("no notes")?;
        return Ok(Exit::Ok);
    }
    let rows: Vec<Vec<Cell>> = notes
        .iter()
        .map(|note| {
            vec![
                note.kind.clone().into(),
                note.updated_at.strftime("%Y-%m-%d %H:%M").to_string().into(),
                note.session.clone().into(),
                note.title.clone().unwrap_or_default().into(),
                place(context, note).into(),
            ]
        })
        .collect();
    context.output.table(&["KIND", "UPDATED", "SESSION", "TITLE", "NOTE"], rows)?;
    Ok(Exit::Ok)
}

/// Where the note can be opened: its file, if the vault is a directory.
fn place(context: &Context, note: &NoteView) -> String {
    let Some(uri) = &note.uri else { return "(not stored yet)".to_owned() };
    match uri.strip_prefix("vault://local/") {
        Some(path) => context.settings.paths.vault_dir.join(path).display().to_string(),
        None => uri.clone(),
    }
}
