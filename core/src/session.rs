//! A session is what its events fold to. Pure: events in, summary out; the same events give the same summary
//! whenever and however often they are folded.
//!
//! Copies never count (their `counts` is false). The session's own thread and each subagent's are kept apart:
//! what a subagent did stands under its parent (envelope.md, "Words").

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::entry::{
    AnswerVia, Call, CallOutcome, CallResult, EntryKind, Fact, FileChange, FileTouch, PromptVia,
    TitleVia, Usage, WrittenTime,
};
use crate::ids::{LedgerSeq, SourceRow};
use crate::ledger::{EventKind, EventRow};

/// Silence longer than this is not counted as time at work.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(5);

/// What one thread (the session's own or a subagent's) did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Prompts of a person.
    pub prompts: u64,
    /// Answers with text; the lines of one API message are one answer.
    pub answers: u64,
    /// Tool calls by name.
    pub tool_calls: BTreeMap<String, u64>,
    /// Calls that failed or were denied.
    pub failures: u64,
    /// Files that were changed, and how last.
    pub files: BTreeMap<String, FileChange>,
    /// Commits that were made, in order.
    pub commits: Vec<String>,
}

impl Thread {
    /// Number of tool calls.
    pub fn n_calls(&self) -> u64 {
        self.tool_calls.values().sum()
    }

    /// Whether files or commits were made.
    pub fn has_changes(&self) -> bool {
        !self.files.is_empty() || !self.commits.is_empty()
    }
}

/// Tokens of one model. All counts are tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Input, without cache reads and writes.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Input read from the provider's cache.
    pub cache_read: u64,
    /// Input written to the provider's cache.
    pub cache_write: u64,
}

/// Git as the tool recorded it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedGit {
    /// Commit at the start.
    pub head: Option<String>,
    /// Branch at the start.
    pub first_branch: Option<String>,
    /// Branch at the end.
    pub last_branch: Option<String>,
    /// Remote, credentials stripped.
    pub remote: Option<String>,
}

/// How the last turn stands; the outcome is read from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastWord {
    /// Nothing happened.
    #[default]
    None,
    /// The user spoke and got no answer.
    Prompt,
    /// The model answered.
    Answer,
    /// A tool was called and gave nothing back.
    OpenCall,
    /// A tool gave something back and the model said no more.
    Result,
    /// The user interrupted.
    Interrupted,
    /// The provider failed.
    ApiError,
}

/// What a range of a session's events folds to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The session's own thread.
    pub own: Thread,
    /// Its subagents' threads by their ids.
    pub agents: BTreeMap<String, Thread>,
    /// Least time of the entries in its own files, as written.
    pub started_at: Option<Moment>,
    /// Greatest time of the entries in its own files, as written.
    pub last_at: Option<Moment>,
    /// Greatest time of all entries, subagents' included.
    pub active_until: Option<Timestamp>,
    /// Time at work in seconds: the gaps between entries, each counted up to five minutes.
    pub active_s: i64,
    /// Working directories in the order in which they were met.
    pub cwds: Vec<String>,
    /// Tool versions in the order in which they were met.
    pub versions: Vec<String>,
    /// Git as recorded in the transcript.
    pub git: RecordedGit,
    /// The directory that a worktree session was started for.
    pub worktree_of: Option<String>,
    /// Where the best title stands.
    pub title: Option<(TitleVia, LedgerSeq)>,
    /// Where the first prompt stands.
    pub first_prompt: Option<LedgerSeq>,
    /// What ran it, if a script did.
    pub scripted: Option<String>,
    /// Tokens by model.
    pub tokens: BTreeMap<String, Tokens>,
    /// Addresses that were fetched.
    pub urls: Vec<String>,
    /// Pull and merge requests.
    pub pull_requests: Vec<String>,
    /// Events with a plan.
    pub plans: Vec<LedgerSeq>,
    /// Events with questions to the user.
    pub questions: Vec<LedgerSeq>,
    /// Events at which the history was compacted.
    pub checkpoints: Vec<LedgerSeq>,
    /// MCP servers that were called.
    pub mcp_servers: Vec<String>,
    /// Todo items that were open and done at the last list.
    pub todos: Option<(u32, u32)>,
    /// How the own thread's last turn stands.
    pub last_word: LastWord,
    /// The oldest tool call still without a result, if one is.
    pub open_call_since: Option<Timestamp>,
    /// Lines that could not be read, and lines of unknown shape.
    pub odd_lines: (u64, u64),
    /// Events that were folded.
    pub n_events: u64,
}

/// A time as written, with its instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// The instant.
    pub at: Timestamp,
    /// As the tool wrote it.
    pub written: String,
}

impl From<&WrittenTime> for Moment {
    fn from(time: &WrittenTime) -> Self {
        Self { at: time.instant(), written: time.as_written() }
    }
}

impl Summary {
    /// Work happened: the model did something, and a person asked for it or something changed
    /// (formats.md 1.8 and 2.7).
    pub fn is_meaningful(&self) -> bool {
        let did = self.own.answers > 0 || self.own.n_calls() > 0 || !self.agents.is_empty();
        did && (self.own.prompts > 0 || self.has_changes())
    }

    /// Files or commits were made, by the session or a subagent.
    pub fn has_changes(&self) -> bool {
        self.own.has_changes() || self.agents.values().any(Thread::has_changes)
    }

    /// The directory that names the project: the one that a worktree belongs to, else the first.
    pub fn project_dir(&self) -> Option<&str> {
        self.worktree_of.as_deref().or_else(|| self.cwds.first().map(String::as_str))
    }

    /// The project's name: the last component of its directory, with tools' own worktrees folded into the
    /// repository that they belong to (cases.md 130). `None` when there is no directory: nothing is guessed.
    pub fn project(&self) -> Option<String> {
        let dir = self.project_dir()?;
        let mut dir = dir;
        for marker in ["/.claude/worktrees/", "\\.claude\\worktrees\\"] {
            dir = dir.split(marker).next().unwrap_or(dir);
        }
        let name = dir.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next()?;
        let name: String = name.chars().filter(|c| !c.is_control()).collect();
        (!name.is_empty()).then_some(name)
    }
}

/// Folds events in ledger order.
#[derive(Debug, Default)]
pub struct Fold {
    summary: Summary,
    own: Pairing,
    agents: HashMap<String, Pairing>,
    last_time: Option<Timestamp>,
    last_kind: Option<EntryKind>,
    active: SignedDuration,
    /// Least and greatest time in each file, and whether the session's own thread stands in it.
    spans: Vec<Span>,
    /// The last usage of each API message.
    usage: HashMap<String, Usage>,
    running_total: HashMap<String, Usage>,
    model: Option<String>,
}

/// The times of one file of the session.
#[derive(Debug)]
struct Span {
    source: Option<SourceRow>,
    is_own: bool,
    first: Option<Moment>,
    last: Option<Moment>,
}

/// What has to be remembered of a thread to pair its lines.
#[derive(Debug, Default)]
struct Pairing {
    calls: HashMap<String, OpenCall>,
    /// Ids and names: models give one id to two calls.
    call_ids: HashSet<(String, String)>,
    messages: HashSet<String>,
    prompts: Mirrored,
    answers: Mirrored,
}

#[derive(Debug)]
struct OpenCall {
    files: Vec<FileTouch>,
    commits: bool,
    at: Option<Timestamp>,
}

/// Codex writes the same text in two places; one of them counts.
#[derive(Debug, Default)]
struct Mirrored {
    preferred: u64,
    mirror: u64,
}

impl Mirrored {
    fn count(&self) -> u64 {
        if self.preferred > 0 { self.preferred } else { self.mirror }
    }
}

impl Fold {
    /// Takes the next event.
    pub fn push(&mut self, event: &EventRow) {
        let EventKind::Entry(kind) = event.kind else { return };
        self.summary.n_events += 1;
        match kind {
            EntryKind::Unreadable => self.summary.odd_lines.0 += 1,
            EntryKind::Unknown => self.summary.odd_lines.1 += 1,
            _ => {}
        }
        if !event.counts {
            return;
        }
        self.take_time(event);
        self.take_context(event);
        // A boundary and the summary that follows it are one compaction.
        if kind == EntryKind::Compaction && self.last_kind != Some(EntryKind::Compaction) {
            self.summary.checkpoints.push(event.seq);
        }
        self.last_kind = Some(kind);
        for fact in &event.facts {
            self.take_fact(event, fact);
        }
    }

    /// What the events folded to.
    pub fn finish(mut self) -> Summary {
        self.finish_times();
        self.summary.own.prompts = self.own.prompts.count();
        self.summary.own.answers = self.own.answers.count();
        for (agent, pairing) in &self.agents {
            if let Some(thread) = self.summary.agents.get_mut(agent) {
                thread.prompts = pairing.prompts.count();
                thread.answers = pairing.answers.count();
            }
        }
        for usage in self.usage.into_values().chain(self.running_total.into_values()) {
            let model = usage.model.or_else(|| self.model.clone());
            let tokens = self.summary.tokens.entry(model.unwrap_or_else(|| "unknown".to_owned()));
            let tokens = tokens.or_default();
            tokens.input += usage.input;
            tokens.output += usage.output;
            tokens.cache_read += usage.cache_read;
            tokens.cache_write += usage.cache_write;
        }
        let open =
            self.own.calls.values().chain(self.agents.values().flat_map(|a| a.calls.values()));
        self.summary.open_call_since = open.filter_map(|call| call.at).min();
        if !self.own.calls.is_empty() && self.summary.last_word == LastWord::Result {
            self.summary.last_word = LastWord::OpenCall;
        }
        self.summary
    }

    fn take_time(&mut self, event: &EventRow) {
        let source = event.place.map(|place| place.source);
        let known = self.spans.iter().position(|span| span.source == source);
        let at = known.unwrap_or(self.spans.len());
        if known.is_none() {
            self.spans.push(Span { source, is_own: false, first: None, last: None });
        }
        let span = &mut self.spans[at];
        span.is_own |= event.context.agent.is_none();
        let Some(time) = &event.at else { return };
        let at = time.instant();
        if span.first.as_ref().is_none_or(|first| at < first.at) {
            span.first = Some(time.into());
        }
        if span.last.as_ref().is_none_or(|last| at > last.at) {
            span.last = Some(time.into());
        }
        if let Some(before) = self.last_time {
            let gap = at.duration_since(before);
            if gap.is_positive() {
                self.active = self.active.saturating_add(gap.min(LONGEST_PAUSE));
            }
        }
        self.last_time = self.last_time.max(Some(at));
    }

    /// The session's times are those of its own files; where only subagents' files are left, of those.
    fn finish_times(&mut self) {
        let has_own = self.spans.iter().any(|span| span.is_own);
        for span in self.spans.drain(..).filter(|span| span.is_own || !has_own) {
            let summary = &mut self.summary;
            if let Some(first) = span.first
                && summary.started_at.as_ref().is_none_or(|known| first.at < known.at)
            {
                summary.started_at = Some(first);
            }
            if let Some(last) = span.last
                && summary.last_at.as_ref().is_none_or(|known| last.at > known.at)
            {
                summary.last_at = Some(last);
            }
        }
        self.summary.active_until = self.last_time;
        self.summary.active_s = self.active.as_secs();
    }

    fn take_context(&mut self, event: &EventRow) {
        if event.context.agent.is_some() {
            return;
        }
        if let Some(cwd) = &event.context.cwd {
            push_new(&mut self.summary.cwds, cwd);
        }
        if let Some(version) = &event.context.version {
            push_new(&mut self.summary.versions, version);
        }
        if let Some(branch) = &event.context.branch {
            self.take_branch(branch);
        }
    }

    fn take_branch(&mut self, branch: &str) {
        let git = &mut self.summary.git;
        git.first_branch.get_or_insert_with(|| branch.to_owned());
        if git.last_branch.as_deref() != Some(branch) {
            git.last_branch = Some(branch.to_owned());
        }
    }

    fn take_fact(&mut self, event: &EventRow, fact: &Fact) {
        let agent = event.context.agent.as_deref();
        let summary = &mut self.summary;
        let (thread, pairing) = match agent {
            None => (&mut summary.own, &mut self.own),
            Some(agent) => (
                summary.agents.entry(agent.to_owned()).or_default(),
                self.agents.entry(agent.to_owned()).or_default(),
            ),
        };
        let word = match fact {
            Fact::Prompt { via } => {
                match via {
                    PromptVia::Response => pairing.prompts.mirror += 1,
                    _ => pairing.prompts.preferred += 1,
                }
                // What was not answered before the user spoke again will not be answered.
                pairing.calls.clear();
                Some(LastWord::Prompt)
            }
            Fact::Answer { message, via } => {
                let is_new = message.as_ref().is_none_or(|id| pairing.messages.insert(id.clone()));
                if is_new {
                    match via {
                        AnswerVia::Message | AnswerVia::Response => pairing.answers.preferred += 1,
                        AnswerVia::Event | AnswerVia::Item => pairing.answers.mirror += 1,
                    }
                }
                Some(LastWord::Answer)
            }
            Fact::Call(call) => {
                take_call(thread, pairing, call, event.instant());
                if let Some(server) = mcp_server(&call.name) {
                    push_new(&mut summary.mcp_servers, server);
                }
                Some(LastWord::OpenCall)
            }
            Fact::Result(result) => {
                take_result(thread, pairing, result);
                Some(LastWord::Result)
            }
            Fact::File(touch) => {
                thread.files.insert(touch.path.clone(), touch.how);
                None
            }
            Fact::Commit(hash) => {
                push_commit(&mut thread.commits, hash);
                None
            }
            Fact::Interrupted => {
                pairing.calls.clear();
                Some(LastWord::Interrupted)
            }
            Fact::ApiError => Some(LastWord::ApiError),
            Fact::Usage(usage) => {
                self.take_usage(agent, usage);
                None
            }
            other => {
                self.take_session_fact(event.seq, agent, other);
                None
            }
        };
        if let (Some(word), None) = (word, agent) {
            self.summary.last_word = word;
        }
        if matches!(fact, Fact::Prompt { .. }) && agent.is_none() {
            self.summary.first_prompt.get_or_insert(event.seq);
        }
    }

    fn take_usage(&mut self, agent: Option<&str>, usage: &Usage) {
        if usage.running_total {
            self.running_total.insert(agent.unwrap_or_default().to_owned(), usage.clone());
        } else if let Some(message) = &usage.message {
            self.usage.insert(message.clone(), usage.clone());
        } else {
            let key = format!("without-id-{}", self.usage.len());
            self.usage.insert(key, usage.clone());
        }
    }

    fn take_session_fact(&mut self, seq: LedgerSeq, agent: Option<&str>, fact: &Fact) {
        let summary = &mut self.summary;
        match fact {
            Fact::Model(model) => self.model = Some(model.clone()),
            Fact::Url(url) => push_new(&mut summary.urls, url),
            Fact::PullRequest { url } => push_new(&mut summary.pull_requests, url),
            Fact::Title(via) if summary.title.is_none_or(|(best, _)| *via >= best) => {
                summary.title = Some((*via, seq));
            }
            Fact::Plan => summary.plans.push(seq),
            Fact::Question { .. } => summary.questions.push(seq),
            Fact::Todo { open, done } if agent.is_none() => summary.todos = Some((*open, *done)),
            Fact::Git { head, branch, remote } if agent.is_none() => {
                if summary.git.head.is_none() {
                    summary.git.head.clone_from(head);
                }
                if summary.git.remote.is_none() {
                    summary.git.remote.clone_from(remote);
                }
                if let Some(branch) = branch {
                    self.take_branch(branch);
                }
            }
            Fact::Worktree { original } => {
                summary.worktree_of.get_or_insert_with(|| original.clone());
            }
            Fact::Scripted(by) if agent.is_none() => {
                summary.scripted.get_or_insert_with(|| by.clone());
            }
            Fact::Subagent { agent } => {
                summary.agents.entry(agent.clone()).or_default();
            }
            _ => {}
        }
    }
}

fn take_call(thread: &mut Thread, pairing: &mut Pairing, call: &Call, at: Option<Timestamp>) {
    let is_new =
        call.id.is_empty() || pairing.call_ids.insert((call.id.clone(), call.name.clone()));
    if !is_new {
        return;
    }
    *thread.tool_calls.entry(call.name.clone()).or_default() += 1;
    if !call.id.is_empty() {
        let open = OpenCall { files: call.files.clone(), commits: call.commits, at };
        pairing.calls.insert(call.id.clone(), open);
    }
}

fn take_result(thread: &mut Thread, pairing: &mut Pairing, result: &CallResult) {
    let open = pairing.calls.remove(&result.call);
    match result.outcome {
        CallOutcome::Failed | CallOutcome::Denied => thread.failures += 1,
        CallOutcome::Ok | CallOutcome::Running => {
            let Some(open) = open else { return };
            for touch in open.files {
                thread.files.insert(touch.path, touch.how);
            }
            if open.commits {
                for hash in &result.commits {
                    push_commit(&mut thread.commits, hash);
                }
            }
        }
    }
}

/// The server of an MCP tool's name, `mcp__server__tool` or `mcp__server.tool`.
fn mcp_server(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("mcp__")?;
    Some(rest.split("__").next().unwrap_or(rest).split('.').next().unwrap_or(rest))
}

/// Adds a commit unless it is there, in a longer or a shorter form; the longer form stays.
fn push_commit(commits: &mut Vec<String>, hash: &str) {
    let same = |known: &String| known.starts_with(hash) || hash.starts_with(known.as_str());
    match commits.iter_mut().find(|known| same(known)) {
        Some(known) if known.len() < hash.len() => hash.clone_into(known),
        Some(_) => {}
        None => commits.push(hash.to_owned()),
    }
}

/// Lists in a summary stay bounded: nothing grows with history.
const MAX_LIST: usize = 2_000;

fn push_new(list: &mut Vec<String>, item: &str) {
    if list.len() < MAX_LIST && !list.iter().any(|known| known == item) {
        list.push(item.to_owned());
    }
}

/// When sessions are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosingRules {
    /// Silence after which an episode is over.
    pub idle_after: SignedDuration,
    /// Silence after a sign of the tool that the session ended.
    pub end_grace: SignedDuration,
    /// How long a tool call without its result keeps the episode open.
    pub max_open_call: SignedDuration,
}

/// What is known of an open episode's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// Last activity by the entries' own times.
    pub active_at: Timestamp,
    /// When the daemon itself saw the source grow last; entries may carry old times.
    pub seen_at: Option<Timestamp>,
    /// When the tool said that the session ended, if nothing happened since.
    pub ended_at: Option<Timestamp>,
    /// The oldest tool call still without a result.
    pub open_call_since: Option<Timestamp>,
}

/// Why an episode closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CloseReason {
    /// It was silent for long enough.
    Idle,
    /// The tool said that it ended.
    Ended,
    /// Somebody asked for it.
    Manual,
    /// The daemon was told to close everything before it stops.
    Shutdown,
}

impl CloseReason {
    /// The name in envelope and ledger.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Ended => "ended",
            Self::Manual => "manual",
            Self::Shutdown => "shutdown",
        }
    }
}

/// Whether an episode is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is not, and cannot be before `until`.
    Keep {
        /// When to look again.
        until: Timestamp,
    },
    /// It is.
    Close {
        /// Why.
        reason: CloseReason,
        /// When it ended: computed from the last activity, never "now".
        at: Timestamp,
    },
}

/// Decides whether an episode is over at `now`. The close's time follows from what happened, so that a daemon
/// that was away writes what one that was there would have written.
pub fn decide(pulse: &Pulse, rules: &ClosingRules, now: Timestamp) -> Decision {
    let after =
        |at: Timestamp, wait: SignedDuration| at.checked_add(wait).unwrap_or(Timestamp::MAX);
    // What was seen to grow is alive, whatever its lines say; what claims the future is not.
    let alive_at = pulse.active_at.max(pulse.seen_at.unwrap_or(Timestamp::MIN));
    let mut until = after(alive_at, rules.idle_after);
    let mut at = after(pulse.active_at, rules.idle_after);
    if let Some(since) = pulse.open_call_since {
        // Long builds are not idleness.
        until = until.max(after(since, rules.max_open_call));
        at = at.max(after(since, rules.max_open_call));
    }
    let mut reason = CloseReason::Idle;
    if let Some(ended_at) = pulse.ended_at {
        let seen_end = ended_at.max(pulse.seen_at.unwrap_or(Timestamp::MIN));
        let grace_over = after(seen_end, rules.end_grace);
        if grace_over < until {
            (until, at, reason) =
                (grace_over, after(ended_at, rules.end_grace), CloseReason::Ended);
        }
    }
    if now >= until { Decision::Close { reason, at } } else { Decision::Keep { until } }
}

#[cfg(test)]
mod tests;
