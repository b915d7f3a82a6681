//! Stories for tests.

use jiff::{SignedDuration, Timestamp};

use super::{Story, StoryCommit, Turn, TurnText};
use crate::entry::{CallOutcome, FileChange, FileTouch};
use crate::ids::{LedgerSeq, NativeId, SessionKey, Tool};

/// Tells a story turn by turn: one a minute, from 2026-12-01T09:00:00Z, with events numbered from 1.
pub struct StoryBuilder(Story);

impl StoryBuilder {
    pub fn new() -> Self {
        let start: Timestamp = "2026-12-01T09:00:00Z".parse().expect("a timestamp");
        let native = NativeId::new("s-1").expect("an id");
        Self(Story {
            key: SessionKey { tool: Tool::Claude, native },
            project: Some("app".to_owned()),
            cwd: Some("/w/app".to_owned()),
            title: None,
            started_at: start,
            last_at: start,
            turns: Vec::new(),
            files: Vec::new(),
            commits: Vec::new(),
            urls: Vec::new(),
            pull_requests: Vec::new(),
            open_todos: 0,
        })
    }

    pub fn title(mut self, title: &str) -> Self {
        self.0.title = Some(title.to_owned());
        self
    }

    pub fn prompt(self, text: &str) -> Self {
        self.turn(TurnText::Prompt(text.to_owned()))
    }

    pub fn answer(self, text: &str) -> Self {
        self.turn(TurnText::Answer(text.to_owned()))
    }

    pub fn call(self, name: &str, argument: &str, outcome: CallOutcome) -> Self {
        self.turn(TurnText::Call { name: name.to_owned(), argument: argument.to_owned(), outcome })
    }

    pub fn edit(mut self, path: &str) -> Self {
        if !self.0.files.iter().any(|file| file.path == path) {
            self.0.files.push(FileTouch { path: path.to_owned(), how: FileChange::Edited });
        }
        self.call("Edit", path, CallOutcome::Ok)
    }

    pub fn run(self, command: &str) -> Self {
        self.call("Bash", command, CallOutcome::Ok)
    }

    pub fn fail(self, command: &str) -> Self {
        self.call("Bash", command, CallOutcome::Failed)
    }

    pub fn commit(mut self, hash: &str, subject: &str) -> Self {
        let subject = Some(subject.to_owned());
        self.0.commits.push(StoryCommit { hash: hash.to_owned(), subject, made_by: None });
        self
    }

    /// The last call made a commit, of which nothing but the hash is known.
    pub fn committed(mut self, hash: &str) -> Self {
        let made_by = self.0.turns.last().map(|turn| turn.seq);
        self.0.commits.push(StoryCommit { hash: hash.to_owned(), subject: None, made_by });
        self
    }

    pub fn url(mut self, url: &str) -> Self {
        self.0.urls.push(url.to_owned());
        self
    }

    pub fn open_todos(mut self, count: u32) -> Self {
        self.0.open_todos = count;
        self
    }

    pub fn build(self) -> Story {
        self.0
    }

    fn turn(mut self, what: TurnText) -> Self {
        let nth = i64::try_from(self.0.turns.len()).expect("few turns");
        let at = self.0.started_at + SignedDuration::from_mins(nth);
        self.0.turns.push(Turn { seq: LedgerSeq(nth + 1), at: Some(at), what });
        self.0.last_at = at;
        self
    }
}
