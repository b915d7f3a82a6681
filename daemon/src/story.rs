//! A session as the drafter wants it: who said what, in causal order, read through the places of the ledger.

use std::collections::HashMap;

use anyhow::Result;
use jiff::Timestamp;
use majordomus_core::draft::{Story, StoryCommit, Turn, TurnText, is_same_commit};
use majordomus_core::entry::{AnswerVia, CallOutcome, Fact, FileTouch, PromptVia, Text};
use majordomus_core::ids::LedgerSeq;
use majordomus_core::ledger::{EventKind, EventRow, Place, Reader, SessionState};
use majordomus_core::session::{Fold, Summary, Thread};

use crate::bodies::Bodies;

/// Text of one prompt, answer or argument that a drafter gets at most, in characters.
const MAX_TEXT: usize = 16_000;

/// Turns that a story holds at most: the first and the last of a longer session.
const MAX_TURNS: usize = 20_000;

/// A line whose text is to be read.
struct Told {
    seq: LedgerSeq,
    at: Option<Timestamp>,
    place: Place,
    wants: Wants,
}

/// What the results of the calls tell.
#[derive(Default)]
struct Calls {
    /// How each went.
    outcomes: HashMap<String, CallOutcome>,
    /// Events of the calls that commit.
    committing: HashMap<String, LedgerSeq>,
    /// Hashes that their results name, each with the event of its call.
    made: Vec<(String, LedgerSeq)>,
}

impl Calls {
    /// The call that made a commit.
    fn maker(&self, hash: &str) -> Option<LedgerSeq> {
        self.made.iter().find(|(known, _)| is_same_commit(known, hash)).map(|(_, seq)| *seq)
    }
}

/// Which texts of a line count. Codex writes prompts and answers in several places, one of which counts.
#[derive(Clone, Copy, Default)]
struct Wants {
    prompt: Option<PromptVia>,
    answer: Option<AnswerVia>,
    calls: bool,
}

/// Reads the story of a session, all its episodes, as of `state`.
pub async fn read(reader: &mut Reader, state: &SessionState) -> Result<(Story, Summary)> {
    let mut fold = Fold::default();
    let mut told = Vec::new();
    let mut calls = Calls::default();
    reader
        .events(state.row, LedgerSeq(0), state.last, |event| {
            fold.push(&event);
            take(&event, &mut told, &mut calls);
        })
        .await?;
    let summary = fold.finish();
    let told = in_causal_order(keep_both_ends(choose_mirrors(told)));
    let mut bodies = Bodies::default();
    let mut turns = Vec::with_capacity(told.len());
    for line in told {
        for text in bodies.texts(reader, line.place).await? {
            if let Some(what) = turn_text(text, line.wants, &calls.outcomes) {
                turns.push(Turn { seq: line.seq, at: line.at, what });
            }
        }
    }
    let title = match summary.title {
        Some((_, seq)) => title_at(reader, &mut bodies, seq).await?,
        None => None,
    };
    Ok((story(state, &summary, title, turns, &calls), summary))
}

async fn title_at(
    reader: &mut Reader,
    bodies: &mut Bodies,
    seq: LedgerSeq,
) -> Result<Option<String>> {
    let texts = bodies.texts_of(reader, seq).await?;
    Ok(texts.into_iter().find_map(|text| match text {
        Text::Title(title) => Some(title),
        _ => None,
    }))
}

/// Notes an event's line if its text belongs to the story: what the session's own thread said and did.
fn take(event: &EventRow, told: &mut Vec<Told>, calls: &mut Calls) {
    let (EventKind::Entry(_), Some(place), true) = (event.kind, event.place, event.counts) else {
        return;
    };
    for fact in &event.facts {
        match fact {
            Fact::Call(call) if call.commits && event.context.agent.is_none() => {
                calls.committing.insert(call.id.clone(), event.seq);
            }
            Fact::Result(result) => {
                calls.outcomes.insert(result.call.clone(), result.outcome);
                if let Some(seq) = calls.committing.get(&result.call) {
                    calls.made.extend(result.commits.iter().map(|hash| (hash.clone(), *seq)));
                }
            }
            _ => {}
        }
    }
    if event.context.agent.is_some() {
        return;
    }
    let mut wants = Wants::default();
    for fact in &event.facts {
        match fact {
            Fact::Prompt { via } => wants.prompt = Some(*via),
            Fact::Answer { via, .. } => wants.answer = Some(*via),
            Fact::Call(_) => wants.calls = true,
            _ => {}
        }
    }
    if wants.prompt.is_some() || wants.answer.is_some() || wants.calls {
        told.push(Told { seq: event.seq, at: event.instant(), place, wants });
    }
}

/// Leaves out the mirrors of texts that stand elsewhere too.
fn choose_mirrors(told: Vec<Told>) -> Vec<Told> {
    let is_preferred_prompt = |via: &PromptVia| *via != PromptVia::Response;
    let is_preferred_answer =
        |via: &AnswerVia| matches!(via, AnswerVia::Message | AnswerVia::Response);
    let has_prompts =
        told.iter().filter_map(|line| line.wants.prompt.as_ref()).any(is_preferred_prompt);
    let has_answers =
        told.iter().filter_map(|line| line.wants.answer.as_ref()).any(is_preferred_answer);
    told.into_iter()
        .filter_map(|mut line| {
            line.wants.prompt =
                line.wants.prompt.filter(|via| !has_prompts || is_preferred_prompt(via));
            line.wants.answer =
                line.wants.answer.filter(|via| !has_answers || is_preferred_answer(via));
            let tells =
                line.wants.prompt.is_some() || line.wants.answer.is_some() || line.wants.calls;
            tells.then_some(line)
        })
        .collect()
}

/// The first and the last lines of a session that is too long to be read whole.
fn keep_both_ends(mut told: Vec<Told>) -> Vec<Told> {
    if told.len() > MAX_TURNS {
        let middle = MAX_TURNS / 2..told.len() - MAX_TURNS / 2;
        told.drain(middle);
    }
    told
}

/// File order is not causal order: real files hold an answer before its prompt (formats.md F16). Lines without a
/// time stay behind the line before them.
fn in_causal_order(told: Vec<Told>) -> Vec<Told> {
    let mut last = None;
    let mut keyed: Vec<(Option<Timestamp>, Told)> = told
        .into_iter()
        .map(|line| {
            last = line.at.or(last);
            (last, line)
        })
        .collect();
    keyed.sort_by_key(|(at, line)| (*at, line.seq));
    keyed.into_iter().map(|(_, line)| line).collect()
}

fn turn_text(
    text: Text,
    wants: Wants,
    outcomes: &HashMap<String, CallOutcome>,
) -> Option<TurnText> {
    match text {
        Text::Prompt(text) if wants.prompt.is_some() => Some(TurnText::Prompt(bounded(text))),
        Text::Answer(text) if wants.answer.is_some() => Some(TurnText::Answer(bounded(text))),
        Text::Call { id, name, argument } if wants.calls => {
            let outcome = outcomes.get(&id).copied().unwrap_or(CallOutcome::Running);
            Some(TurnText::Call { name, argument: bounded(argument), outcome })
        }
        _ => None,
    }
}

fn bounded(text: String) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((at, _)) => text[..at].to_owned(),
        None => text,
    }
}

fn story(
    state: &SessionState,
    summary: &Summary,
    title: Option<String>,
    turns: Vec<Turn>,
    calls: &Calls,
) -> Story {
    let threads = || std::iter::once(&summary.own).chain(summary.agents.values());
    let touches = |thread: &Thread| -> Vec<FileTouch> {
        thread.files.iter().map(|(path, how)| FileTouch { path: path.clone(), how: *how }).collect()
    };
    let mut files: Vec<FileTouch> = threads().flat_map(touches).collect();
    files.sort();
    files.dedup_by(|a, b| a.path == b.path);
    let mut commits: Vec<StoryCommit> = Vec::new();
    for hash in threads().flat_map(|thread| &thread.commits) {
        if !commits.iter().any(|known| known.hash == *hash) {
            let made_by = calls.maker(hash);
            commits.push(StoryCommit { hash: hash.clone(), subject: None, made_by });
        }
    }
    let fallback = state.active_at.unwrap_or(Timestamp::UNIX_EPOCH);
    Story {
        key: state.key.clone(),
        project: summary.project(),
        cwd: summary.cwds.first().cloned(),
        title,
        started_at: summary.started_at.as_ref().map_or(fallback, |moment| moment.at),
        last_at: summary.last_at.as_ref().map_or(fallback, |moment| moment.at),
        turns,
        files,
        commits,
        urls: summary.urls.clone(),
        pull_requests: summary.pull_requests.clone(),
        open_todos: summary.todos.map_or(0, |(open, _)| open),
    }
}
