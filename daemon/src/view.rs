//! What people ask for: sessions, one session, the state of the whole. Read-only, from the ledger and, for
//! titles, from the tools' own files. The daemon's socket and `majordomusctl` without a daemon give the same
//! answers, since both ask here.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use jiff::Timestamp;
use majordomus_core::draft::title_of;
use majordomus_core::entry::Text;
use majordomus_core::envelope::sha256_hex;
use majordomus_core::ids::{LedgerSeq, SessionRow, Tool};
use majordomus_core::ledger::{EnvelopeRow, Match, NoteRow, Reader, SessionState};
use majordomus_core::note::inline;
use majordomus_core::session::{Fold, Summary, Thread};
use serde::{Deserialize, Serialize};

use crate::bodies::Bodies;
use crate::failure::Failure;

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionView {
    /// `claude` or `codex`.
    pub tool: Tool,
    /// The tool's id.
    pub id: String,
    /// Other ids under which it can be found.
    pub aliases: Vec<String>,
    /// The project's name.
    pub project: Option<String>,
    /// The first working directory.
    pub cwd: Option<String>,
    /// `open` or `closed`.
    pub state: String,
    /// Number of episodes.
    pub episodes: u32,
    /// Least time of its entries, as written.
    pub started_at: Option<String>,
    /// Greatest time of its entries, as written.
    pub last_at: Option<String>,
    /// Prompts of a person.
    pub prompts: u64,
    /// Answers.
    pub answers: u64,
    /// Tool calls by name.
    pub tool_calls: BTreeMap<String, u64>,
    /// Files that were changed.
    pub files_written: Vec<String>,
    /// Commits that were made.
    pub commits: Vec<String>,
    /// Whether it holds work.
    pub meaningful: bool,
    /// The tool's title, else the beginning of the first prompt.
    pub title: Option<String>,
    /// Its subagents.
    pub subagents: Vec<SubagentView>,
    /// The session that it was forked from.
    pub forked_from: Option<String>,
    /// What ran it, if a script did.
    pub scripted_by: Option<String>,
}

/// A subagent of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubagentView {
    /// Its id.
    pub id: String,
    /// Tool calls by name.
    pub tool_calls: BTreeMap<String, u64>,
    /// Files that it changed.
    pub files_written: Vec<String>,
    /// Commits that it made.
    pub commits: Vec<String>,
}

/// Which sessions to list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionFilter {
    /// Only those with an open episode.
    #[serde(default)]
    pub open: bool,
    /// Only those of this project.
    #[serde(default)]
    pub project: Option<String>,
    /// Only those active at or after this time.
    #[serde(default)]
    pub since: Option<Timestamp>,
    /// Only those of this tool.
    #[serde(default)]
    pub tool: Option<Tool>,
}

/// One session with all that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionDetail {
    /// As in the list.
    #[serde(flatten)]
    pub session: SessionView,
    /// Its files.
    pub sources: Vec<SourceView>,
    /// Its episodes.
    pub episode_list: Vec<EpisodeView>,
    /// What it refers to.
    pub references: ReferencesView,
    /// Its notes.
    pub notes: Vec<NoteView>,
    /// What the close-out could not account for.
    pub gaps: Vec<String>,
}

/// A file of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceView {
    /// Where it was seen last.
    pub path: String,
    /// `live`, `missing` or `unrecognised`.
    pub state: String,
    /// Bytes in the ledger.
    pub ledgered_bytes: u64,
    /// Bytes that wait for their line end.
    pub pending_bytes: u64,
}

/// An episode of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpisodeView {
    /// Its number, from 1.
    pub n: u32,
    /// `open` or `closed`.
    pub state: String,
    /// First time in it.
    pub started_at: Option<Timestamp>,
    /// When it was closed.
    pub closed_at: Option<Timestamp>,
    /// Why it was closed.
    pub reason: Option<String>,
    /// How it ended.
    pub outcome: Option<String>,
    /// Its envelope's id.
    pub envelope_id: Option<String>,
    /// Its envelope's file, below the state directory.
    pub envelope: Option<String>,
    /// SHA-256 of that file.
    pub sha256: Option<String>,
}

/// References of a session over all its episodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReferencesView {
    /// Commits.
    pub commits: Vec<String>,
    /// Files that were changed.
    pub files: Vec<String>,
    /// Web addresses that were fetched.
    pub urls: Vec<String>,
    /// Pull and merge requests.
    pub pull_requests: Vec<String>,
    /// MCP servers that were called.
    pub mcp_servers: Vec<String>,
}

/// A note.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoteView {
    /// The tool of its session.
    pub tool: Tool,
    /// Its session.
    pub session: String,
    /// Its session's title.
    #[serde(default)]
    pub title: Option<String>,
    /// Its kind.
    pub kind: String,
    /// Where it is.
    pub uri: Option<String>,
    /// The vault that holds it.
    pub vault: String,
    /// The last episode that it covers.
    pub episode: u32,
    /// Time of the last entry that it covers.
    pub last_synced: Option<Timestamp>,
    /// When it was written last.
    pub updated_at: Timestamp,
}

/// Finds the session that `name` stands for.
pub async fn find(reader: &mut Reader, name: &str) -> Result<SessionState> {
    match reader.find_session(name).await? {
        Match::One(state) => Ok(state),
        Match::None => {
            Err(Failure::not_found(format!("no session {name}; majordomusctl sessions lists them"))
                .into())
        }
        Match::Many(ids) => Err(Failure::usage(format!(
            "{name} stands for several sessions, give more of the id: {}",
            ids.join(", ")
        ))
        .into()),
    }
}

/// Folds a session's events from `first` to `last`.
pub async fn fold(
    reader: &mut Reader,
    session: SessionRow,
    first: LedgerSeq,
    last: LedgerSeq,
) -> Result<Summary> {
    let mut fold = Fold::default();
    reader.events(session, first, last, |event| fold.push(&event)).await?;
    Ok(fold.finish())
}

/// The summary of a whole session, from the cache if that is up to date.
pub async fn summary(reader: &mut Reader, state: &SessionState) -> Result<Summary> {
    if let Some(json) = reader.summary(state.row, state.last).await?
        && let Ok(summary) = serde_json::from_str(&json)
    {
        return Ok(summary);
    }
    fold(reader, state.row, LedgerSeq(0), state.last).await
}

/// Lists the sessions that `filter` lets through, the newest first.
pub async fn sessions(reader: &mut Reader, filter: &SessionFilter) -> Result<Vec<SessionView>> {
    let mut bodies = Bodies::default();
    let mut views = Vec::new();
    for state in reader.sessions().await? {
        let passes = !state.is_machine
            && (!filter.open || state.is_open())
            && filter.tool.is_none_or(|tool| tool == state.key.tool)
            && filter.since.is_none_or(|since| state.active_at.is_some_and(|at| at >= since));
        if !passes {
            continue;
        }
        let summary = summary(reader, &state).await?;
        if filter.project.is_some() && summary.project() != filter.project {
            continue;
        }
        views.push(view(reader, &mut bodies, &state, &summary).await?);
    }
    views.sort_by(|a, b| b.last_at.cmp(&a.last_at).then_with(|| a.id.cmp(&b.id)));
    Ok(views)
}

async fn view(
    reader: &mut Reader,
    bodies: &mut Bodies,
    state: &SessionState,
    summary: &Summary,
) -> Result<SessionView> {
    let forked_from = match state.forked_from {
        Some(row) => reader.session(row).await?.map(|origin| origin.key.native.to_string()),
        None => None,
    };
    let subagents = summary
        .agents
        .iter()
        .map(|(id, thread)| SubagentView {
            id: id.clone(),
            tool_calls: thread.tool_calls.clone(),
            files_written: files_written(thread),
            commits: thread.commits.clone(),
        })
        .collect();
    Ok(SessionView {
        tool: state.key.tool,
        id: state.key.native.to_string(),
        aliases: reader.aliases(state.row).await?,
        project: summary.project(),
        cwd: summary.cwds.first().cloned(),
        state: if state.is_open() { "open" } else { "closed" }.to_owned(),
        episodes: state.episode,
        started_at: summary.started_at.as_ref().map(|moment| moment.written.clone()),
        last_at: summary.last_at.as_ref().map(|moment| moment.written.clone()),
        prompts: summary.own.prompts,
        answers: summary.own.answers,
        tool_calls: summary.own.tool_calls.clone(),
        files_written: files_written(&summary.own),
        commits: summary.own.commits.clone(),
        meaningful: summary.is_meaningful(),
        title: title(reader, bodies, summary).await?,
        subagents,
        forked_from,
        scripted_by: summary.scripted.clone(),
    })
}

fn files_written(thread: &Thread) -> Vec<String> {
    thread.files.keys().cloned().collect()
}

/// The session's title: the tool's own, else the first prompt; one short line.
pub async fn title(
    reader: &mut Reader,
    bodies: &mut Bodies,
    summary: &Summary,
) -> Result<Option<String>> {
    let candidates = [summary.title.map(|(_, seq)| seq), summary.first_prompt];
    for seq in candidates.into_iter().flatten() {
        for text in bodies.texts_of(reader, seq).await? {
            if let Text::Title(text) | Text::Prompt(text) = text
                && let Some(line) = one_line(&text)
            {
                return Ok(Some(line));
            }
        }
    }
    Ok(None)
}

/// A text's title as its note would have it, markup reduced to its words; else its beginning. One short line
/// without control characters, since it goes to terminals.
fn one_line(text: &str) -> Option<String> {
    const MAX: usize = 80;
    let title = title_of(text)
        .unwrap_or_else(|| inline::shorten(&inline::one_line(text), MAX).into_owned());
    (!title.is_empty()).then_some(title)
}

/// One session with all that is known of it.
pub async fn detail(reader: &mut Reader, name: &str) -> Result<SessionDetail> {
    let state = find(reader, name).await?;
    let summary = summary(reader, &state).await?;
    let session = view(reader, &mut Bodies::default(), &state, &summary).await?;
    let sources = reader
        .sources_of(state.row)
        .await?
        .into_iter()
        .map(|source| SourceView {
            path: source.path.display().to_string(),
            state: source.checkpoint.status.as_str().to_owned(),
            ledgered_bytes: source.checkpoint.position,
            pending_bytes: source.checkpoint.pending,
        })
        .collect();
    let mut episodes: Vec<EpisodeView> =
        reader.envelopes_of(state.row).await?.into_iter().map(closed_episode).collect();
    if let Some(first) = state.open_since {
        let open = fold(reader, state.row, first, state.last).await?;
        episodes.push(open_episode(state.episode, &open));
    }
    let threads = || std::iter::once(&summary.own).chain(summary.agents.values());
    let references = ReferencesView {
        commits: threads().flat_map(|thread| thread.commits.clone()).collect(),
        files: threads().flat_map(files_written).collect(),
        urls: summary.urls.clone(),
        pull_requests: summary.pull_requests.clone(),
        mcp_servers: summary.mcp_servers.clone(),
    };
    let notes = notes_of(reader, Some(&state)).await?;
    Ok(SessionDetail {
        session,
        sources,
        episode_list: episodes,
        references,
        notes,
        gaps: Vec::new(),
    })
}

fn closed_episode(envelope: EnvelopeRow) -> EpisodeView {
    EpisodeView {
        n: envelope.episode,
        state: "closed".to_owned(),
        started_at: envelope.started_at,
        closed_at: Some(envelope.closed_at),
        reason: Some(envelope.reason),
        outcome: Some(envelope.outcome),
        envelope_id: Some(envelope.id),
        envelope: Some(envelope.path),
        sha256: Some(envelope.sha256),
    }
}

fn open_episode(n: u32, summary: &Summary) -> EpisodeView {
    EpisodeView {
        n,
        state: "open".to_owned(),
        started_at: summary.started_at.as_ref().map(|moment| moment.at),
        closed_at: None,
        reason: None,
        outcome: None,
        envelope_id: None,
        envelope: None,
        sha256: None,
    }
}

/// The notes of a session, or of all.
pub async fn notes(reader: &mut Reader, name: Option<&str>) -> Result<Vec<NoteView>> {
    let state = match name {
        Some(name) => Some(find(reader, name).await?),
        None => None,
    };
    notes_of(reader, state.as_ref()).await
}

async fn notes_of(reader: &mut Reader, state: Option<&SessionState>) -> Result<Vec<NoteView>> {
    let mut views = Vec::new();
    let mut bodies = Bodies::default();
    for note in reader.notes(state.map(|state| state.row)).await? {
        let NoteRow { session, kind, vault, uri, synced_at, episode, updated_at, .. } = note;
        let Some(state) = reader.session(session).await? else { continue };
        let summary = summary(reader, &state).await?;
        views.push(NoteView {
            title: title(reader, &mut bodies, &summary).await?,
            tool: state.key.tool,
            session: state.key.native.to_string(),
            kind,
            uri,
            vault,
            episode,
            last_synced: synced_at,
            updated_at,
        });
    }
    Ok(views)
}

/// The bytes of an envelope: `name` is a session, or a session and an episode's number after a slash; without a
/// number the last.
pub async fn envelope(reader: &mut Reader, state_dir: &Path, name: &str) -> Result<Vec<u8>> {
    let (session, episode) = match name.rsplit_once('/') {
        Some((session, n)) => match n.parse::<u32>() {
            Ok(n) => (session, Some(n)),
            Err(_) => {
                return Err(Failure::usage(format!("{n} is no episode's number: SESSION/1")).into());
            }
        },
        None => (name, None),
    };
    let state = find(reader, session).await?;
    let mut envelopes = reader.envelopes_of(state.row).await?;
    let found = match episode {
        Some(n) => envelopes.into_iter().find(|envelope| envelope.episode == n),
        None => envelopes.pop(),
    };
    let Some(row) = found else {
        let what = episode.map_or_else(|| "closed episode".to_owned(), |n| format!("episode {n}"));
        return Err(Failure::not_found(format!(
            "session {session} has no {what}; majordomusctl show {session} lists them"
        ))
        .into());
    };
    let path = state_dir.join(&row.path);
    let bytes = std::fs::read(&path).map_err(|error| {
        Failure::damaged(format!("cannot read the envelope {}: {error}", path.display()))
    })?;
    if sha256_hex(&bytes) != row.sha256 {
        return Err(Failure::damaged(format!(
            "the envelope {} is not what was written: its SHA-256 differs from the ledger's",
            path.display()
        ))
        .into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_words_of_its_markup() {
        assert_eq!(
            one_line("[Design talk](chat://6a60) with `code` and **more**\nSecond line").as_deref(),
            Some("Design talk with code and more")
        );
        assert_eq!(one_line("# Plan\n\ntext").as_deref(), Some("Plan: text"));
        assert_eq!(one_line("a\u{1b}[31mb\u{202e}c d e").as_deref(), Some("abc d e"));
        assert_eq!(one_line("\u{1b}[31m\n"), None);
        assert_eq!(one_line("!?").as_deref(), Some("!?"));
    }
}
