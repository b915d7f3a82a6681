//! Nothing is said that the ledger and Git do not know (notes.md "Trust").

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;

use super::rounds::ends_with_path;
use super::{Evidence, Paragraph, SessionDraft, Statement, Story, TurnText, is_same_commit};
use crate::ids::LedgerSeq;
use crate::note::inline;

/// A draft whose every statement is proven, and what was dropped from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// What may be stored.
    pub draft: SessionDraft,
    /// For `majordomusctl notes --rejected`.
    pub rejected: Vec<Rejected>,
}

/// A statement that was dropped.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejected {
    /// The statement.
    pub statement: Statement,
    /// Why.
    pub why: Rejection,
}

/// Why a statement was dropped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// Nothing proves it.
    #[error("it cites nothing")]
    NoEvidence,
    /// It cites a line of the ledger that is none of this session's.
    #[error("it cites event {}, which is not in this session", .0.0)]
    UnknownEvent(LedgerSeq),
    /// It names a commit that neither a tool's result nor Git proves.
    #[error("it names commit {0}, which no tool result and no Git object of this session proves")]
    UnknownCommit(String),
    /// It cites a file that no tool changed.
    #[error("it cites file {0}, which no tool changed in this session")]
    UnknownFile(String),
    /// It names an address that was never opened, nor given by the user.
    #[error("it names {0}, which was neither opened in this session nor given by the user")]
    UnknownUrl(String),
}

#[expect(clippy::expect_used, reason = "a constant pattern; a test compiles it")]
static URL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"https?://[^\s<>"”’)\]|`]+"#).expect("a valid pattern"));
#[expect(clippy::expect_used, reason = "a constant pattern; a test compiles it")]
static HEX: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b[0-9a-f]{7,40}\b").expect("a valid pattern"));

/// Drops every statement that cites nothing, or cites or names a commit, file or address that the story does
/// not have. What the user wrote in a prompt that the statement cites may be repeated. Commits and files listed
/// as artifacts are held to the same lists.
pub fn check_evidence(draft: SessionDraft, story: &Story) -> Checked {
    let known = Known::of(story);
    let mut rejected = Vec::new();
    let mut keep = |statements: Vec<Statement>| -> Vec<Statement> {
        let mut kept = Vec::new();
        for statement in statements {
            match known.check(&statement) {
                Ok(()) => kept.push(statement),
                Err(why) => rejected.push(Rejected { statement, why }),
            }
        }
        kept
    };
    let summary = keep(draft.summary);
    let narrative = draft.narrative.into_iter().map(|paragraph| keep(paragraph.sentences));
    let narrative = narrative
        .filter(|sentences| !sentences.is_empty())
        .map(|sentences| Paragraph { sentences })
        .collect();
    let draft = SessionDraft {
        summary,
        narrative,
        questions: keep(draft.questions),
        entry: keep(draft.entry.into_iter().collect()).pop(),
        commits: draft.commits.into_iter().filter(|commit| known.commit(&commit.hash)).collect(),
        files: draft.files.into_iter().filter(|path| known.shows_file(path)).collect(),
        sources: draft
            .sources
            .into_iter()
            .filter(|url| known.urls.contains(url.as_str()))
            .collect(),
        title: draft.title,
        topics: draft.topics,
    };
    Checked { draft, rejected }
}

/// What the story proves.
struct Known<'a> {
    story: &'a Story,
    events: HashSet<LedgerSeq>,
    files: HashSet<&'a str>,
    urls: HashSet<&'a str>,
}

impl<'a> Known<'a> {
    fn of(story: &'a Story) -> Self {
        let urls = story.urls.iter().chain(&story.pull_requests);
        Self {
            story,
            events: story.turns.iter().map(|turn| turn.seq).collect(),
            files: story.files.iter().map(|file| file.path.as_str()).collect(),
            urls: urls.map(String::as_str).collect(),
        }
    }

    fn check(&self, statement: &Statement) -> Result<(), Rejection> {
        if statement.evidence.is_empty() {
            return Err(Rejection::NoEvidence);
        }
        for evidence in &statement.evidence {
            match evidence {
                Evidence::Event(seq) if !self.events.contains(seq) => {
                    return Err(Rejection::UnknownEvent(*seq));
                }
                Evidence::Commit(hash) if !self.commit(hash) => {
                    return Err(Rejection::UnknownCommit(hash.clone()));
                }
                Evidence::File(path) if !self.files.contains(path.as_str()) => {
                    return Err(Rejection::UnknownFile(path.clone()));
                }
                _ => {}
            }
        }
        self.check_text(statement)
    }

    fn check_text(&self, statement: &Statement) -> Result<(), Rejection> {
        let text = inline::plain(&statement.text);
        for url in URL.find_iter(&text) {
            let url = url.as_str().trim_end_matches(['.', ',', ';', ':', '!', '?', '…']);
            if !self.urls.contains(url) && !self.user_wrote(statement, url) {
                return Err(Rejection::UnknownUrl(url.to_owned()));
            }
        }
        for found in HEX.find_iter(&URL.replace_all(&text, " ")) {
            let hash = found.as_str();
            let mixed = hash.bytes().any(|b| b.is_ascii_digit())
                && hash.bytes().any(|b| b.is_ascii_alphabetic());
            if mixed
                && !self.commit(hash)
                && !self.named_by_a_file(hash)
                && !self.user_wrote(statement, hash)
            {
                return Err(Rejection::UnknownCommit(hash.to_owned()));
            }
        }
        Ok(())
    }

    /// A short hash and a long one name one commit.
    fn commit(&self, hash: &str) -> bool {
        let is_it = |known: &str| known.len() >= 7 && is_same_commit(known, hash);
        hash.len() >= 7 && self.story.commits.iter().any(|commit| is_it(&commit.hash))
    }

    fn named_by_a_file(&self, text: &str) -> bool {
        self.files.iter().any(|path| path.contains(text))
    }

    /// Paths are shown relative to the working directory.
    fn shows_file(&self, shown: &str) -> bool {
        self.files.iter().any(|path| ends_with_path(path, shown))
    }

    fn user_wrote(&self, statement: &Statement, text: &str) -> bool {
        self.story.turns.iter().any(|turn| match &turn.what {
            TurnText::Prompt(prompt) => {
                prompt.contains(text) && statement.evidence.contains(&Evidence::Event(turn.seq))
            }
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::extractive;
    use crate::draft::fixture::StoryBuilder;

    fn story() -> Story {
        StoryBuilder::new()
            .prompt("Please port https://given.by/user from deadbe1")
            .edit("/w/app/src/a.rs")
            .answer("Ported as shown at https://made.up/page, commit abc1234f.")
            .commit("0123abc4567", "Port it")
            .build()
    }

    fn statement(text: &str, evidence: Vec<Evidence>) -> Statement {
        Statement { text: text.to_owned(), evidence }
    }

    fn verdict(text: &str, evidence: Vec<Evidence>) -> Option<Rejection> {
        let story = story();
        let mut draft = extractive::draft(&story, None);
        draft.summary = vec![statement(text, evidence)];
        let checked = check_evidence(draft, &story);
        checked.rejected.into_iter().find(|r| r.statement.text == text).map(|r| r.why)
    }

    #[test]
    fn a_statement_without_evidence_is_dropped() {
        assert_eq!(verdict("x", vec![]), Some(Rejection::NoEvidence));
    }

    #[test]
    fn foreign_events_commits_and_files_are_no_evidence() {
        let seq = LedgerSeq(99);
        assert_eq!(verdict("x", vec![Evidence::Event(seq)]), Some(Rejection::UnknownEvent(seq)));
        let hash = "fffffff1".to_owned();
        assert_eq!(
            verdict("x", vec![Evidence::Commit(hash.clone())]),
            Some(Rejection::UnknownCommit(hash))
        );
        let path = "/w/app/b.rs".to_owned();
        assert_eq!(
            verdict("x", vec![Evidence::File(path.clone())]),
            Some(Rejection::UnknownFile(path))
        );
        assert_eq!(verdict("x", vec![Evidence::Commit("0123abc".to_owned())]), None);
        assert_eq!(verdict("x", vec![Evidence::File("/w/app/src/a.rs".to_owned())]), None);
    }

    #[test]
    fn a_commit_or_address_that_only_the_model_named_is_dropped() {
        let answer = vec![Evidence::Event(LedgerSeq(3))];
        assert_eq!(
            verdict("Commit abc1234f.", answer.clone()),
            Some(Rejection::UnknownCommit("abc1234f".to_owned()))
        );
        assert_eq!(
            verdict(r"See https:\//made.up/page.", answer),
            Some(Rejection::UnknownUrl("https://made.up/page".to_owned()))
        );
    }

    #[test]
    fn what_the_user_wrote_may_be_repeated() {
        let prompt = vec![Evidence::Event(LedgerSeq(1))];
        assert_eq!(verdict("Asked to port https://given.by/user from deadbe1.", prompt), None);
    }

    #[test]
    fn of_the_extractive_draft_only_the_models_own_claims_can_fall() {
        let story = story();
        let checked = check_evidence(extractive::draft(&story, None), &story);
        assert!(!checked.draft.narrative.is_empty());
        for rejected in &checked.rejected {
            assert_eq!(rejected.statement.evidence, [Evidence::Event(LedgerSeq(3))]);
        }
        assert_eq!(checked.rejected.len(), 2, "{:?}", checked.rejected);
    }
}
