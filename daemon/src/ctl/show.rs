//! `majordomusctl show`

use anyhow::Result;
use serde_json::json;

use super::Context;
use crate::failure::Exit;
use crate::printable::printable;
use crate::view::{self, SessionDetail};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Which session
    session: String,
}

pub(super) async fn run(context: &Context, arguments: Arguments) -> Result<Exit> {
    let name = arguments.session;
    let detail: SessionDetail = context
        .read("session.show", json!({"session": name}), async |reader| {
            view::detail(reader, &name).await
        })
        .await?;
    if context.output.json {
        context.output.document(&detail)?;
    } else {
        context.output.text(&render(&detail))?;
    }
    Ok(Exit::Ok)
}

fn render(detail: &SessionDetail) -> String {
    let session = &detail.session;
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let mut lines = vec![
        format!("{} {} ({})", session.tool, session.id, session.state),
        format!("title     {}", or_none(&session.title)),
        format!("project   {}", or_none(&session.project)),
        format!("directory {}", or_none(&session.cwd)),
        format!("time      {} to {}", or_none(&session.started_at), or_none(&session.last_at)),
        format!("counts    {} prompts, {} answers", session.prompts, session.answers),
    ];
    let calls: Vec<String> =
        session.tool_calls.iter().map(|(name, n)| format!("{name} {n}")).collect();
    list(&mut lines, "calls", &[calls.join(", ")]);
    if let Some(from) = &session.forked_from {
        lines.push(format!("forked    from {from}"));
    }
    list(&mut lines, "alias", &session.aliases);
    let episodes: Vec<String> = detail
        .episode_list
        .iter()
        .map(|episode| match (&episode.closed_at, &episode.reason, &episode.outcome) {
            (Some(at), Some(reason), Some(outcome)) => {
                format!("{} closed {at} ({reason}, {outcome})", episode.n)
            }
            _ => format!("{} open", episode.n),
        })
        .collect();
    list(&mut lines, "episode", &episodes);
    list(&mut lines, "file", &detail.references.files);
    list(&mut lines, "commit", &detail.references.commits);
    list(&mut lines, "pull req.", &detail.references.pull_requests);
    list(&mut lines, "url", &detail.references.urls);
    let subagents: Vec<String> = session
        .subagents
        .iter()
        .map(|agent| format!("{} ({} calls)", agent.id, agent.tool_calls.values().sum::<u64>()))
        .collect();
    list(&mut lines, "subagent", &subagents);
    let sources: Vec<String> =
        detail.sources.iter().map(|source| format!("{} ({})", source.path, source.state)).collect();
    list(&mut lines, "source", &sources);
    let notes: Vec<String> = detail.notes.iter().filter_map(|note| note.uri.clone()).collect();
    list(&mut lines, "note", &notes);
    list(&mut lines, "gap", &detail.gaps);
    let lines: Vec<_> = lines.iter().map(|line| printable(line)).collect();
    format!("{}\n", lines.join("\n"))
}

fn list(lines: &mut Vec<String>, name: &str, items: &[String]) {
    lines.extend(
        items.iter().filter(|item| !item.is_empty()).map(|item| format!("{name:<9} {item}")),
    );
}
