//! Events in, summary out. Lines of a thread are paired here: a call with its result, the lines of one message, the
//! mirrors that Codex writes of each text.

use std::collections::{HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};

use super::{LastWord, Moment, Summary, Thread};
use crate::entry::{
    AnswerVia, Call, CallOutcome, CallResult, EntryKind, Fact, FileTouch, PromptVia, Usage,
};
use crate::ids::{LedgerSeq, SourceRow};
use crate::ledger::{EventKind, EventRow};

/// Silence longer than this is not counted as time at work.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(5);

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
