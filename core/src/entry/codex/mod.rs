//! Codex's lines (formats.md part 2), in three grammars that are told apart line by line: bare response items
//! (2025), `{timestamp, type, payload}`, and the same with an `ordinal` and items (2026).
//!
//! - [`lines`]: bytes become an object; [`fields`]: an object's members, read only when asked for;
//! - [`place`]: the grammar and the type of a record;
//! - [`origin`]: whose the file is and which lines were copied from another;
//! - [`prompts`], [`calls`], [`outputs`], [`patch`], [`events`]: what a line says.

mod calls;
mod events;
mod fields;
mod known;
mod lines;
mod origin;
mod outputs;
mod patch;
mod place;
mod prompts;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use self::calls::Asked;
use self::fields::Fields;
use self::lines::Record;
use self::origin::{Header, Thread};
use self::outputs::Output;
use self::place::{Place, shape};
use self::prompts::Said;
use super::evidence::{clean_remote, commit_lines};
use super::{
    AnswerVia, CallOutcome, CallResult, EndMark, Entry, EntryKind, Fact, PromptVia, SourceIdentity,
    Text, WrittenTime,
};
use crate::ids::{EntryId, NativeId};

/// Names of tools, models and agents are cut to this many characters.
const MAX_NAME: usize = 100;

/// Ids, directories and other small texts are cut to this many characters.
const MAX_TEXT: usize = 1_024;

/// The type of an unknown line is cut to this many characters.
const MAX_SHAPE: usize = 60;

/// Reads one Codex transcript.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reader {
    thread: Thread,
    /// The file began with a header of the bare grammar.
    bare: bool,
    /// Lines read: bare lines carry no time, and equal ones are still different entries.
    lines: u64,
    running: Running,
    /// The version in the header.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

/// Commands that may commit and have not ended: their `[branch hash]` lines come in a later result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Running {
    /// Ids of calls without a result.
    calls: Vec<String>,
    /// Sessions of commands that go on.
    sessions: Vec<String>,
}

/// No more of either are remembered; the oldest goes first.
const MAX_RUNNING: usize = 16;

impl Running {
    fn asked(&mut self, asked: &mut Asked) {
        if let Some(session) = &asked.session {
            asked.call.commits |= self.sessions.contains(session);
        }
        if asked.call.commits && !asked.call.id.is_empty() {
            remember(&mut self.calls, asked.call.id.clone());
        }
    }

    fn answered(&mut self, call: &str, output: &Output) {
        let Some(at) = self.calls.iter().position(|id| id == call) else {
            return;
        };
        self.calls.remove(at);
        if let Some(session) = &output.session {
            remember(&mut self.sessions, session.clone());
        }
    }
}

fn remember(list: &mut Vec<String>, id: String) {
    if !list.contains(&id) {
        if list.len() >= MAX_RUNNING {
            list.remove(0);
        }
        list.push(id);
    }
}

impl Reader {
    /// Starts at the first line of the file at `path` (below the root).
    pub fn new(path: &str) -> Self {
        Self { thread: Thread::new(path), ..Self::default() }
    }

    /// Reads the next line.
    pub fn read(&mut self, line: &[u8]) -> Entry {
        self.lines += 1;
        let mut entry = if line.trim_ascii().is_empty() {
            Entry::bare(EntryKind::State)
        } else {
            let bare = self.bare;
            lines::open(line, bare, |record| self.record(&record)).unwrap_or_else(Entry::unreadable)
        };
        entry.context.agent = self.thread.agent();
        entry
    }

    /// See [`super::Reader::version`].
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// See [`super::Reader::identity`].
    pub fn identity(&self) -> Option<SourceIdentity> {
        self.thread.identity()
    }

    /// See [`super::Reader::identity_by_name`].
    pub fn identity_by_name(&self) -> Option<SourceIdentity> {
        self.thread.identity_by_name()
    }

    fn record(&mut self, record: &Record<'_>) -> Entry {
        let fields = &record.fields;
        let at = time(fields);
        let place = Place::of(fields);
        let (mut entry, copied_from) = self.place(record, &place, at.as_ref());
        entry.at = at;
        entry.copied_from = copied_from;
        entry.shape = place.shape(fields);
        entry.unknown = known::unknown(fields, place.payload());
        if let Some(version) = &entry.context.version {
            self.version = Some(version.clone());
        }
        if self.thread.is_helper() && matches!(entry.kind, EntryKind::Prompt | EntryKind::Command) {
            // The parent agent speaks here, no person.
            entry.kind = EntryKind::Injected;
            entry.facts.retain(|fact| !matches!(fact, Fact::Prompt { .. } | Fact::End(_)));
        }
        entry.identity = self.entry_id(record.text, &entry);
        if record.torn > 0 {
            let reason = format!("damaged: {} bytes of a torn record before this one", record.torn);
            entry.facts.push(Fact::Reason(reason));
        }
        entry
    }

    /// What the record says, and where it was copied from.
    fn place(
        &mut self,
        record: &Record<'_>,
        place: &Place<'_>,
        at: Option<&WrittenTime>,
    ) -> (Entry, Option<NativeId>) {
        let instant = at.map(WrittenTime::instant);
        let ordinal = record.fields.integer("ordinal");
        match place {
            Place::Header(meta) => return self.header(meta, at, ordinal),
            Place::BareHeader => {
                self.thread.bare_header(&record.fields);
                self.bare = true;
                return (with(EntryKind::State, git(&record.fields)), None);
            }
            Place::ExecJson(kind) => return (unknown(&format!("exec-json/{kind}")), None),
            _ => self.thread.begins_without_header(),
        }
        let copied_from = self.thread.copied_from(place.turn().as_deref(), instant, ordinal);
        let entry = match place {
            Place::Turn(payload) => events::turn_context(payload),
            Place::Item(payload) => self.item(payload.as_ref(), &record.fields),
            Place::Event(kind, payload) => events::event(kind, payload)
                .unwrap_or_else(|| unknown(&place.shape(&record.fields))),
            Place::Noise(kind) => Entry::bare(*kind),
            Place::Unknown(shape) => unknown(shape),
            Place::Header(_) | Place::BareHeader | Place::ExecJson(_) => {
                Entry::bare(EntryKind::State)
            }
        };
        (entry, copied_from)
    }

    fn header(
        &mut self,
        meta: &Fields<'_>,
        at: Option<&WrittenTime>,
        ordinal: Option<i64>,
    ) -> (Entry, Option<NativeId>) {
        let mut entry = Entry::bare(EntryKind::State);
        let header = self.thread.header(meta, at.map(WrittenTime::instant), ordinal);
        if header == Header::Foreign {
            return (entry, self.thread.origin());
        }
        let small = |text: Option<Cow<'_, str>>| {
            text.map(|text| tidy(&text, MAX_TEXT)).filter(|text| !text.is_empty())
        };
        entry.context.cwd = small(meta.text("cwd"));
        entry.context.version = small(meta.text("cli_version"));
        entry.context.branch = meta.object("git").and_then(|git| small(git.text("branch")));
        entry.facts.extend(git(meta));
        if header == Header::First {
            let from =
                self.thread.forked_from().map(|from| Fact::Fork { from: from.as_str().to_owned() });
            entry.facts.extend(from);
            entry.facts.extend(scripted(meta));
        }
        (entry, None)
    }

    /// A response item: `payload`, or the bare record itself.
    fn item(&mut self, payload: Option<&Fields<'_>>, record: &Fields<'_>) -> Entry {
        let item = payload.unwrap_or(record);
        let kind = item.text("type").unwrap_or_default();
        if let Some(mut asked) = calls::asked(&kind, item) {
            self.running.asked(&mut asked);
            let mut entry = with(EntryKind::ToolCall, asked.facts.split_off(0));
            entry.context.cwd = asked.absolute_workdir();
            entry.facts.insert(0, Fact::Call(asked.call));
            return entry;
        }
        match kind.as_ref() {
            "message" => {
                let mut entry = message(item);
                if payload.is_none() && entry.kind == EntryKind::Injected {
                    entry.context.cwd =
                        prompts::environment_cwd(item).map(|cwd| tidy(&cwd, MAX_TEXT));
                }
                entry
            }
            "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
                let output = outputs::output(item.raw("output"));
                let call = tidy(&item.text("call_id").unwrap_or_default(), MAX_TEXT);
                self.running.answered(&call, &output);
                result(call, &output)
            }
            "reasoning" => Entry::bare(EntryKind::Thinking),
            "ghost_snapshot"
            | "compaction"
            | "compaction_summary"
            | "context_compaction"
            | "agent_message"
            | "additional_tools"
            | "configuration_update"
            | "tool_search_output"
            | "other" => Entry::bare(EntryKind::State),
            _ => unknown(&shape("response_item", Some(item))),
        }
    }

    /// The identity of an entry that must not be counted twice.
    fn entry_id(&self, text: &str, entry: &Entry) -> Option<EntryId> {
        let proves = |fact: &Fact| matches!(fact, Fact::File(_) | Fact::Commit(_) | Fact::Plan);
        if !entry.kind.is_meaningful() && !entry.facts.iter().any(proves) {
            return None;
        }
        let thread = entry.copied_from.as_ref().map_or(self.thread.own_name(), NativeId::as_str);
        // Two equal lines of one thread are one entry written twice, if their times are equal too.
        let place = if entry.at.is_none() { self.lines.to_le_bytes() } else { [0; 8] };
        Some(EntryId::derive("codex-line", &[thread.as_bytes(), text.as_bytes(), &place]))
    }
}

fn message(item: &Fields<'_>) -> Entry {
    match item.text("role").as_deref() {
        Some("user") => prompt(&prompts::in_content(item), PromptVia::Response),
        Some("assistant") => {
            answer(events::item_text(item).is_some(), item.text("id"), AnswerVia::Response)
        }
        _ => Entry::bare(EntryKind::Injected),
    }
}

/// An entry of `kind` with `facts`.
fn with(kind: EntryKind, facts: impl IntoIterator<Item = Fact>) -> Entry {
    Entry { facts: facts.into_iter().collect(), ..Entry::bare(kind) }
}

fn prompt(said: &Said, via: PromptVia) -> Entry {
    match said {
        Said::Human(_) => with(EntryKind::Prompt, [Fact::Prompt { via }]),
        Said::Injected => Entry::bare(EntryKind::Injected),
        Said::Exit => with(EntryKind::Command, [Fact::End(EndMark::Exit)]),
    }
}

fn answer(spoken: bool, message: Option<Cow<'_, str>>, via: AnswerVia) -> Entry {
    if !spoken {
        return Entry::bare(EntryKind::State);
    }
    let message = message.map(|id| tidy(&id, MAX_NAME)).filter(|id| !id.is_empty());
    with(EntryKind::Answer, [Fact::Answer { message, via }])
}

fn result(call: String, output: &Output) -> Entry {
    let fact = Fact::Result(CallResult {
        call,
        outcome: output.outcome,
        exit: output.exit,
        commits: commit_lines(&output.text),
    });
    let mut entry = with(EntryKind::ToolResult, [fact]);
    if output.outcome == CallOutcome::Ok {
        entry.facts.extend(spawned(&output.text).map(|agent| Fact::Subagent { agent }));
    }
    entry
}

/// The id in the result of `spawn_agent`: `{"agent_id":"<thread>",…}`.
fn spawned(output: &str) -> Option<String> {
    if !output.starts_with("{\"agent_id\"") {
        return None;
    }
    let id = NativeId::new(&Fields::parse(output)?.text("agent_id")?)?;
    Some(tidy(id.as_str(), MAX_NAME))
}

/// Git at the start of the thread.
fn git(header: &Fields<'_>) -> Option<Fact> {
    let git = header.object("git")?;
    let small = |name: &str| {
        git.text(name).map(|text| tidy(&text, MAX_TEXT)).filter(|text| !text.is_empty())
    };
    let (head, branch) = (small("commit_hash"), small("branch"));
    let remote = small("repository_url").map(|remote| clean_remote(&remote));
    let any = head.is_some() || branch.is_some() || remote.is_some();
    any.then_some(Fact::Git { head, branch, remote })
}

/// `codex exec` and what is built on it.
fn scripted(meta: &Fields<'_>) -> Option<Fact> {
    let originator = tidy(&meta.text("originator").unwrap_or_default(), MAX_NAME);
    let is_exec =
        originator == "codex_exec" || meta.text("source").is_some_and(|source| source == "exec");
    is_exec.then_some(Fact::Scripted(originator))
}

fn time(fields: &Fields<'_>) -> Option<WrittenTime> {
    match fields.text("timestamp") {
        Some(text) => WrittenTime::parse(&text),
        None => fields.integer("timestamp").and_then(WrittenTime::from_number),
    }
}

fn unknown(shape: &str) -> Entry {
    let shape = tidy(shape, MAX_SHAPE);
    Entry::unknown(if shape.is_empty() { "untyped" } else { &shape })
}

/// A foreign text as it may be kept: no control characters, no blanks around it, at most `max` characters.
fn tidy(text: &str, max: usize) -> String {
    let plain: String = text.trim().chars().filter(|c| !c.is_control()).take(max).collect();
    plain.trim_end().to_owned()
}

/// See [`super::texts`].
pub fn texts(line: &[u8]) -> Vec<Text> {
    lines::open(line, true, |record| match Place::of(&record.fields) {
        Place::Item(payload) => item_texts(payload.as_ref().unwrap_or(&record.fields)),
        Place::Event(kind, payload) => events::texts(&kind, &payload),
        _ => Vec::new(),
    })
    .unwrap_or_default()
}

fn item_texts(item: &Fields<'_>) -> Vec<Text> {
    let kind = item.text("type").unwrap_or_default();
    if let Some(asked) = calls::asked(&kind, item) {
        return vec![Text::Call {
            id: asked.call.id,
            name: asked.call.name,
            argument: asked.argument,
        }];
    }
    match kind.as_ref() {
        "message" => match item.text("role").as_deref() {
            Some("user") => match prompts::in_content(item) {
                Said::Human(text) if !text.is_empty() => vec![Text::Prompt(text)],
                _ => Vec::new(),
            },
            Some("assistant") => events::item_text(item).map(Text::Answer).into_iter().collect(),
            _ => Vec::new(),
        },
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            let call = tidy(&item.text("call_id").unwrap_or_default(), MAX_TEXT);
            vec![Text::Output { call, text: outputs::output(item.raw("output")).text }]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
