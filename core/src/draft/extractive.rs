//! The drafter that uses no model: it works offline, costs nothing, and says only what the ledger proves. What
//! people and models said is quoted in their own language and marked as theirs; the words between are English.
//! The same story gives the same bytes.

use std::borrow::Cow;
use std::collections::HashSet;

use jiff::Timestamp;

use super::rounds::{Round, rounds, rounds_of, shown};
use super::wording::{MAX_NAMED, commit_name, counted, failed, listed, named, quoted, sentence};
use super::{
    Evidence, Paragraph, SessionDraft, Statement, Story, StoryCommit, Turn, TurnText,
    is_same_commit, questions, speech,
};
use crate::ids::LedgerSeq;
use crate::note::inline;

/// The drafter's name in the tag `drafted-by:{drafter}`.
pub const NAME: &str = "extractive";

/// Paragraphs of a Narrative at most, the one on what was left out among them.
const MAX_PARAGRAPHS: usize = 12;
/// Characters of a quoted prompt, of a quoted answer.
const PROMPT_CHARS: usize = 220;
const ANSWER_CHARS: usize = 260;

/// Drafts the note of a session. `since` is the instant up to which the note covers the session already
/// (`last-synced`): the draft is of the whole story all the same, and its entry tells what is new since. Without
/// `since` the entry is that of a first capture.
pub fn draft(story: &Story, since: Option<Timestamp>) -> SessionDraft {
    let story = &*with_commits_once(story);
    let rounds = rounds(story);
    let (title, files) = (title(story), files(story));
    SessionDraft {
        summary: summary(story, &rounds, &files),
        narrative: told(story, &rounds),
        questions: questions::open_questions(story),
        commits: story.commits.clone(),
        sources: story.pull_requests.iter().chain(&story.urls).cloned().collect(),
        topics: topics(&files),
        entry: match since {
            None => captured(story, &rounds, &title, files.len()),
            Some(since) => resumed(story, &rounds, since),
        },
        title,
        files,
    }
}

/// A commit that is known by its short hash and by its long one, or twice, is one.
fn with_commits_once(story: &Story) -> Cow<'_, Story> {
    let mut once: Vec<StoryCommit> = Vec::new();
    for commit in &story.commits {
        let same = |known: &&mut StoryCommit| is_same_commit(&known.hash, &commit.hash);
        match once.iter_mut().find(same) {
            Some(known) => {
                if known.subject.is_none() {
                    known.subject.clone_from(&commit.subject);
                }
                known.made_by = known.made_by.or(commit.made_by);
            }
            None => once.push(commit.clone()),
        }
    }
    if once == story.commits {
        return Cow::Borrowed(story);
    }
    Cow::Owned(Story { commits: once, ..story.clone() })
}

/// The tool's own title, else what the first prompt says that is no greeting, else where the session was.
fn title(story: &Story) -> String {
    let prompts = story.turns.iter().filter_map(|turn| match &turn.what {
        TurnText::Prompt(text) => Some(text.as_str()),
        _ => None,
    });
    let own = story.title.as_deref().and_then(speech::title);
    let asked = || telling(prompts.filter_map(speech::title), |title| title.as_str());
    own.or_else(asked).unwrap_or_else(|| {
        let project = story.project.as_deref().map(inline::one_line);
        let project = project.filter(|name| !name.is_empty());
        project.map_or_else(
            || "Session without prompts".to_owned(),
            |name| format!("Session in {name}"),
        )
    })
}

/// The first whose text says something, else the first.
fn telling<T>(mut all: impl Iterator<Item = T>, text: impl Fn(&T) -> &str) -> Option<T> {
    let first = all.next()?;
    if !speech::is_weak(text(&first)) {
        return Some(first);
    }
    Some(all.find(|one| !speech::is_weak(text(one))).unwrap_or(first))
}

fn summary(story: &Story, rounds: &[Round<'_>], files: &[String]) -> Vec<Statement> {
    let mut sentences = Vec::new();
    sentences.extend(what_was_asked(rounds));
    sentences.extend(what_changed(story, rounds, files));
    sentences.extend(how_it_ended(story, rounds));
    sentences
}

fn what_was_asked(rounds: &[Round<'_>]) -> Option<Statement> {
    let gists = rounds.iter().enumerate().filter_map(|(nth, round)| {
        let (seq, text) = round.prompts.first()?;
        Some((nth, *seq, speech::prompt_gist(text, PROMPT_CHARS)?))
    });
    let (nth, seq, gist) = telling(gists, |(_, _, gist)| gist.as_str())?;
    let more: usize =
        rounds.iter().skip(nth).map(|round| round.prompts.len()).sum::<usize>().saturating_sub(1);
    let tail = match more {
        0 => String::new(),
        _ => format!(", and {} followed", counted(more, "further prompt")),
    };
    let gist = if more > 0 { gist.trim_end_matches(['.', '。']) } else { &gist };
    let text = sentence(&format!("The user asked: {}{tail}", quoted(gist)));
    Some(Statement { text, evidence: vec![Evidence::Event(seq)] })
}

fn what_changed(story: &Story, rounds: &[Round<'_>], files: &[String]) -> Option<Statement> {
    let mut parts = Vec::new();
    let mut evidence = Vec::new();
    if !files.is_empty() {
        let verb = if files.len() == 1 { "was" } else { "were" };
        let names = named(files.iter().map(String::as_str));
        parts.push(format!("{} {verb} changed ({names})", counted(files.len(), "file")));
        evidence.extend(story.files.iter().map(|file| Evidence::File(file.path.clone())));
    }
    if !story.commits.is_empty() {
        let verb = if story.commits.len() == 1 { "was" } else { "were" };
        let names = story.commits.iter().take(MAX_NAMED).map(commit_name).collect::<Vec<_>>();
        let more = story.commits.len().saturating_sub(MAX_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        parts.push(format!(
            "{} {verb} made ({}{more})",
            counted(story.commits.len(), "commit"),
            names.join(", ")
        ));
        evidence.extend(story.commits.iter().map(|commit| Evidence::Commit(commit.hash.clone())));
    }
    if parts.is_empty() {
        if rounds.iter().any(Round::changed) {
            return None;
        }
        let last = story.turns.last()?;
        // What a command wrote is not on record.
        let commands = rounds.iter().any(|round| round.commands > 0);
        let text = if commands {
            "No edit with an editing tool and no commit is on record."
        } else {
            "No change to a file and no commit is on record."
        };
        let evidence = vec![Evidence::Event(last.seq)];
        return Some(Statement { text: text.to_owned(), evidence });
    }
    Some(Statement { text: sentence(&parts.join(" and ")), evidence })
}

fn how_it_ended(story: &Story, rounds: &[Round<'_>]) -> Option<Statement> {
    let last = rounds.last()?;
    let mut evidence: Vec<Evidence> = Vec::new();
    let mut text = match (reported(last), last.prompts.last()) {
        (Some((seq, gist)), _) => {
            evidence.push(Evidence::Event(seq));
            sentence(&format!("It ended with: {}", quoted(&gist)))
        }
        (None, Some((seq, _))) if last.answers.is_empty() && last.calls.is_empty() => {
            evidence.push(Evidence::Event(*seq));
            "The last prompt got no answer.".to_owned()
        }
        _ => match rounds.iter().rev().find_map(reported) {
            Some((seq, gist)) => {
                evidence.push(Evidence::Event(seq));
                sentence(&format!("The agent had reported: {}", quoted(&gist)))
            }
            None => String::new(),
        },
    };
    if story.open_todos > 0 {
        let count = story.open_todos as usize;
        let verb = if count == 1 { "was" } else { "were" };
        let open = format!("{} of the to-do list {verb} left open.", counted(count, "item"));
        evidence.extend(story.turns.last().map(|turn| Evidence::Event(turn.seq)));
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&open);
    }
    (!text.is_empty()).then_some(Statement { text, evidence })
}

/// The Narrative: a paragraph for each round that is told.
fn told(story: &Story, rounds: &[Round<'_>]) -> Vec<Paragraph> {
    let mut opened = false;
    let all: Vec<Option<Paragraph>> = rounds
        .iter()
        .map(|round| {
            let paragraph = paragraph(story, round, opened)?;
            opened |= !round.prompts.is_empty();
            Some(paragraph)
        })
        .collect();
    let tellable: Vec<usize> = (0..all.len()).filter(|at| all[*at].is_some()).collect();
    let chosen = choose(rounds, &tellable);
    let left_out = left_out(rounds, &tellable, &chosen);
    let mut paragraphs: Vec<Paragraph> = all
        .into_iter()
        .enumerate()
        .filter(|(at, _)| chosen.contains(at))
        .filter_map(|(_, paragraph)| paragraph)
        .collect();
    paragraphs.extend(left_out);
    paragraphs
}

/// Which rounds are told when there are too many: the first, the last, those with commits, those with edits, and
/// then the earlier.
fn choose(rounds: &[Round<'_>], tellable: &[usize]) -> Vec<usize> {
    if tellable.len() <= MAX_PARAGRAPHS {
        return tellable.to_vec();
    }
    let (first, last) = (tellable.first().copied(), tellable.last().copied());
    let rank = |at: usize| {
        let outer = Some(at) == first || Some(at) == last;
        let round = &rounds[at];
        (!outer, round.commits.is_empty(), round.edits == 0, !round.may_have_changed(), at)
    };
    let mut ranked = tellable.to_vec();
    ranked.sort_by_key(|at| rank(*at));
    ranked.truncate(MAX_PARAGRAPHS - 1);
    ranked.sort_unstable();
    ranked
}

fn left_out(rounds: &[Round<'_>], tellable: &[usize], chosen: &[usize]) -> Option<Paragraph> {
    let left: Vec<&Round<'_>> =
        tellable.iter().filter(|at| !chosen.contains(at)).map(|at| &rounds[*at]).collect();
    let prompts: Vec<LedgerSeq> =
        left.iter().flat_map(|round| round.prompts.iter().map(|(seq, _)| *seq)).collect();
    if prompts.is_empty() {
        return None;
    }
    let unchanged = !left.iter().any(|round| round.may_have_changed());
    let tail = if unchanged { ", which led to no recorded change," } else { "" };
    let verb = if prompts.len() == 1 { "is" } else { "are" };
    let text = format!("{}{tail} {verb} not told here.", counted(prompts.len(), "further prompt"));
    let evidence = prompts.into_iter().map(Evidence::Event).collect();
    Some(Paragraph { sentences: vec![Statement { text, evidence }] })
}

fn paragraph(story: &Story, round: &Round<'_>, opened: bool) -> Option<Paragraph> {
    let mut sentences = Vec::new();
    if let Some((seq, text)) = round.prompts.first()
        && let Some(gist) = speech::prompt_gist(text, PROMPT_CHARS)
    {
        let lead = if opened { "The user then wrote" } else { "The user wrote" };
        let times = match round.prompts.len() {
            0 | 1 => String::new(),
            2 => ", twice".to_owned(),
            n => format!(", {n} times"),
        };
        let evidence = match round.prompts.len() {
            0 | 1 => vec![Evidence::Event(*seq)],
            _ => round.prompts.iter().map(|(seq, _)| Evidence::Event(*seq)).collect(),
        };
        let gist = if times.is_empty() { &gist } else { gist.trim_end_matches(['.', '。']) };
        let text = sentence(&format!("{lead}: {}{times}", quoted(gist)));
        sentences.push(Statement { text, evidence });
    }
    sentences.extend(work(story, round));
    sentences.extend(committed(story, round));
    if let Some((seq, gist)) = reported(round) {
        let verb = if round.calls.is_empty() { "answered" } else { "reported" };
        let text = sentence(&format!("The agent {verb}: {}", quoted(&gist)));
        sentences.push(Statement { text, evidence: vec![Evidence::Event(seq)] });
    }
    (!sentences.is_empty()).then_some(Paragraph { sentences })
}

/// What was done, in counts.
fn work(story: &Story, round: &Round<'_>) -> Option<Statement> {
    let mut parts = Vec::new();
    if round.edits > 0 {
        let paths = round.files.iter().filter_map(|at| story.files.get(*at));
        let names = named(paths.map(|file| shown(story, &file.path)));
        let place = if names.is_empty() { String::new() } else { format!(" in {names}") };
        let failed = failed(round.failed_edits, "more failed");
        parts.push(format!("made {}{place}{failed}", counted(round.edits, "edit")));
    } else if round.failed_edits > 0 {
        parts.push(format!("tried {} without success", counted(round.failed_edits, "edit")));
    }
    if round.commands > 0 {
        let failed = failed(round.failed_commands, "failed");
        parts.push(format!("ran {}{failed}", counted(round.commands, "command")));
    }
    if round.lookups > 0 {
        parts.push(format!("made {} on the web", counted(round.lookups, "look-up")));
    }
    if round.agents > 0 {
        parts.push(format!("started {}", counted(round.agents, "subagent")));
    }
    if round.denied > 0 {
        parts.push(format!("had {} refused", counted(round.denied, "tool call")));
    }
    if parts.is_empty() {
        return None;
    }
    let mut evidence: Vec<Evidence> = round.calls.iter().map(|seq| Evidence::Event(*seq)).collect();
    let files = round.files.iter().filter_map(|at| story.files.get(*at));
    evidence.extend(files.map(|file| Evidence::File(file.path.clone())));
    Some(Statement { text: sentence(&format!("The agent {}", listed(&parts))), evidence })
}

fn committed(story: &Story, round: &Round<'_>) -> Option<Statement> {
    let commits: Vec<&StoryCommit> =
        round.commits.iter().filter_map(|at| story.commits.get(*at)).collect();
    if commits.is_empty() {
        return None;
    }
    let names: Vec<String> = commits.iter().map(|commit| commit_name(commit)).collect();
    let evidence = commits.iter().map(|commit| Evidence::Commit(commit.hash.clone())).collect();
    Some(Statement { text: sentence(&format!("It was committed as {}", listed(&names))), evidence })
}

/// The gist of what the model said at a round's end.
fn reported(round: &Round<'_>) -> Option<(LedgerSeq, String)> {
    round
        .answers
        .iter()
        .find_map(|(seq, text)| speech::answer_gist(text, ANSWER_CHARS).map(|gist| (*seq, gist)))
}

fn captured(story: &Story, rounds: &[Round<'_>], title: &str, files: usize) -> Option<Statement> {
    let evidence: Vec<Evidence> =
        story.turns.iter().map(|turn| Evidence::Event(turn.seq)).collect();
    if evidence.is_empty() {
        return None;
    }
    let title = inline::inert(title);
    let numbers = numbers(rounds, files, story.commits.len());
    Some(Statement { text: sentence(&format!("Session captured. {title}{numbers}")), evidence })
}

/// What is new: the turns after `since`. A turn without a time stands with the one before it.
fn resumed(story: &Story, all: &[Round<'_>], since: Timestamp) -> Option<Statement> {
    let mut at = story.started_at;
    let turns: Vec<&Turn> = story
        .turns
        .iter()
        .filter(|turn| {
            at = turn.at.unwrap_or(at);
            at > since
        })
        .collect();
    if turns.is_empty() {
        return None;
    }
    let is_new = |seq: Option<LedgerSeq>| turns.iter().any(|turn| Some(turn.seq) == seq);
    // Only commits that a command of a new round explains: the others may be old ones.
    let fresh = all.iter().filter(|round| is_new(round.starts_at()));
    let explained: Vec<usize> = fresh.flat_map(|round| round.commits.iter().copied()).collect();
    let is_fresh = |at: &usize| {
        explained.contains(at) || story.commits.get(*at).is_some_and(|one| is_new(one.made_by))
    };
    let commits = (0..story.commits.len()).filter(is_fresh).count();
    let evidence = turns.iter().map(|turn| Evidence::Event(turn.seq)).collect();
    let rounds = rounds_of(story, turns);
    let files: HashSet<usize> = rounds.iter().flat_map(|round| &round.files).copied().collect();
    let numbers = numbers(&rounds, files.len(), commits);
    let first = rounds.iter().find_map(|round| {
        round.prompts.first().and_then(|(_, text)| speech::prompt_gist(text, 120))
    });
    let what = first.map_or_else(|| "The agent went on".to_owned(), |gist| quoted(&gist));
    Some(Statement { text: sentence(&format!("Session resumed. {what}{numbers}")), evidence })
}

/// What was counted, in brackets; nothing when nothing was.
fn numbers(rounds: &[Round<'_>], files: usize, commits: usize) -> String {
    let prompts = rounds.iter().map(|round| round.prompts.len()).sum();
    let counts = [
        (prompts, counted(prompts, "prompt")),
        (files, format!("{} changed", counted(files, "file"))),
        (commits, counted(commits, "commit")),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text);
    let counts = counts.collect::<Vec<_>>().join(", ");
    if counts.is_empty() { counts } else { format!(" ({counts})") }
}

/// The changed files as they are shown, once each, without those in temporary directories outside the project.
fn files(story: &Story) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for file in &story.files {
        let path = shown(story, &file.path);
        let passing = ["/tmp/", "/private/tmp/", "/var/folders/", "/dev/"]
            .iter()
            .any(|dir| path.starts_with(dir));
        if !passing && !paths.iter().any(|known| known == path) {
            paths.push(path.to_owned());
        }
    }
    paths
}

/// Languages of the changed files, the most frequent first, two at most.
fn topics(files: &[String]) -> Vec<String> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for path in files {
        let Some(language) = path.rsplit_once('.').and_then(|(_, ending)| language(ending)) else {
            continue;
        };
        match counts.iter_mut().find(|(known, _)| *known == language) {
            Some((_, count)) => *count += 1,
            None => counts.push((language, 1)),
        }
    }
    counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    counts.into_iter().take(2).map(|(language, _)| language.to_owned()).collect()
}

fn language(ending: &str) -> Option<&'static str> {
    Some(match ending {
        "rs" => "rust",
        "py" => "python",
        "ts" | "tsx" => "typescript",
        "js" | "jsx" | "mjs" => "javascript",
        "go" => "go",
        "java" => "java",
        "kt" => "kotlin",
        "swift" => "swift",
        "c" | "h" => "c",
        "cpp" | "cc" | "hpp" => "cpp",
        "cs" => "csharp",
        "rb" => "ruby",
        "php" => "php",
        "ex" | "exs" => "elixir",
        "sql" => "sql",
        "sh" => "shell",
        "css" | "scss" => "css",
        "html" => "html",
        "tf" => "terraform",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
