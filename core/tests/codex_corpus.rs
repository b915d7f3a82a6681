//! Real Codex rollouts, counted as the corpus's own script counted them.
#![expect(clippy::expect_used, reason = "a test, of files that are known")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use majordomus_core::entry::{
    AnswerVia, CallOutcome, Entry, EntryKind, Fact, FileTouch, PromptVia, Reader, Role, Text, texts,
};
use majordomus_core::ids::Tool;
use serde_json::{Value, json};

fn corpus() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    if !path.is_dir() {
        println!("skipped: no corpus at {}", path.display());
        return None;
    }
    Some(path)
}

/// What one file holds, copies of other threads included.
#[derive(Default)]
struct Counted {
    prompts: HashMap<&'static str, Vec<String>>,
    answers: usize,
    agent_messages: usize,
    calls: BTreeMap<String, u64>,
    files: BTreeSet<String>,
    commits: BTreeSet<String>,
    first: Option<String>,
    last: Option<String>,
    cwd: Option<String>,
    bad: u64,
    compactions: u64,
    session: Option<String>,
    own: Option<String>,
    helper: bool,
    unknown: BTreeSet<String>,
    copies: usize,
}

struct Fold {
    counted: Counted,
    patches: HashMap<String, Vec<FileTouch>>,
    committing: BTreeSet<String>,
}

fn count(root: &Path, relative: &str) -> Counted {
    let path = relative.strip_prefix("codex/").unwrap_or(relative);
    let bytes = std::fs::read(root.join(relative)).expect("a file of the corpus");
    let mut reader = Reader::new(Tool::Codex, path);
    let mut fold =
        Fold { counted: Counted::default(), patches: HashMap::new(), committing: BTreeSet::new() };
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        let entry = reader.read(line);
        fold.take(&entry, line);
    }
    let mut counted = fold.counted;
    if let Some(identity) = reader.identity().or_else(|| reader.identity_by_name()) {
        counted.helper = !matches!(identity.role, Role::Main);
        counted.own = Some(match &identity.role {
            Role::Subagent { agent } => agent.clone(),
            _ => identity.session.to_string(),
        });
        counted.session = Some(identity.session.to_string());
    }
    counted
}

impl Fold {
    fn take(&mut self, entry: &Entry, line: &[u8]) {
        let counted = &mut self.counted;
        counted.copies += usize::from(entry.copied_from.is_some());
        counted.bad += u64::from(entry.kind == EntryKind::Unreadable);
        if let Some(at) = entry.at.as_ref().map(majordomus_core::entry::WrittenTime::as_written) {
            if counted.first.as_ref().is_none_or(|first| at < *first) {
                counted.first = Some(at.clone());
            }
            if counted.last.as_ref().is_none_or(|last| at > *last) {
                counted.last = Some(at);
            }
        }
        if matches!(entry.kind, EntryKind::State | EntryKind::Injected) && counted.cwd.is_none() {
            counted.cwd.clone_from(&entry.context.cwd);
        }
        for fact in &entry.facts {
            self.fact(fact, entry, line);
        }
    }

    fn fact(&mut self, fact: &Fact, entry: &Entry, line: &[u8]) {
        let counted = &mut self.counted;
        match fact {
            Fact::Prompt { via } => {
                let name = match via {
                    PromptVia::Event => "event_msg",
                    PromptVia::Item => "item_completed",
                    _ => "response_item",
                };
                let text = texts(Tool::Codex, line).into_iter().find_map(|text| match text {
                    Text::Prompt(text) => Some(text),
                    _ => None,
                });
                counted.prompts.entry(name).or_default().push(text.unwrap_or_default());
            }
            Fact::Answer { via: AnswerVia::Response, .. } => counted.answers += 1,
            Fact::Answer { via: AnswerVia::Event, .. } => counted.agent_messages += 1,
            Fact::Call(call) => {
                *counted.calls.entry(call.name.clone()).or_default() += 1;
                self.patches.insert(call.id.clone(), call.files.clone());
                if call.commits {
                    self.committing.insert(call.id.clone());
                }
            }
            Fact::Result(result) => {
                if result.outcome == CallOutcome::Ok {
                    let files = self.patches.remove(&result.call).unwrap_or_default();
                    counted.files.extend(files.into_iter().map(|file| file.path));
                }
                if self.committing.contains(&result.call) {
                    counted.commits.extend(result.commits.iter().cloned());
                }
            }
            Fact::File(file) => {
                counted.files.insert(file.path.clone());
            }
            Fact::Commit(hash) => {
                counted.commits.insert(hash.clone());
            }
            Fact::Reason(shape) if entry.kind == EntryKind::Unknown => {
                counted.unknown.insert(shape.clone());
            }
            _ => {}
        }
        counted.compactions += u64::from(entry.kind == EntryKind::Compaction);
    }
}

impl Counted {
    fn human(&self) -> (&'static str, &[String]) {
        for name in ["event_msg", "item_completed", "response_item"] {
            if let Some(prompts) = self.prompts.get(name) {
                return (name, prompts);
            }
        }
        ("none", &[])
    }

    /// The fields of `expected.json` that this parser answers for.
    fn as_expected(&self) -> Value {
        let (_, prompts) = self.human();
        let heads: Vec<String> = prompts.iter().map(|prompt| head(prompt)).collect();
        json!({
            "kind": if self.helper { "subagent" } else { "main" },
            "session_id": self.own,
            "cwd": self.cwd,
            "first_timestamp": self.first,
            "last_timestamp": self.last,
            "bad_lines": self.bad,
            "human_prompts": prompts.len(),
            "prompt_heads": heads,
            "assistant_text_messages": self.answers,
            "agent_message_events": self.agent_messages,
            "tool_calls": self.calls,
            "files_written": self.files,
            "commits": self.commits,
        })
    }
}

fn head(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(40).collect()
}

/// What differs, one line per field.
fn differences(expected: &Value, counted: &Counted) -> String {
    let mut out = String::new();
    let ours = counted.as_expected();
    for (name, mine) in ours.as_object().expect("object") {
        let mut theirs = expected[name].clone();
        let mut mine = mine.clone();
        if let (Some(list), "files_written" | "commits") = (theirs.as_array_mut(), name.as_str()) {
            list.sort_by_key(ToString::to_string);
        }
        if name == "prompt_heads" {
            let Some(list) = theirs.as_array() else {
                continue;
            };
            let shown: Vec<String> =
                list.iter().map(|text| head(text.as_str().unwrap_or_default())).collect();
            if let Some(all) = mine.as_array_mut() {
                all.truncate(shown.len());
            }
            theirs = json!(shown);
        }
        if theirs != mine {
            writeln!(out, "  {name}\n    expected {theirs}\n    counted  {mine}").expect("string");
        }
    }
    out
}

fn compare(name: &str) {
    let Some(root) = corpus() else { return };
    let text = std::fs::read_to_string(root.join(name)).expect("expected facts");
    let expected: BTreeMap<String, Value> = serde_json::from_str(&text).expect("JSON");
    let mut report = String::new();
    let mut files = 0;
    for (path, expected) in expected.iter().filter(|(path, _)| path.starts_with("codex/")) {
        files += 1;
        let differences = differences(expected, &count(&root, path));
        if !differences.is_empty() {
            writeln!(report, "{path}\n{differences}").expect("string");
        }
    }
    assert!(files > 0, "no Codex file in {name}");
    assert!(report.is_empty(), "{files} files\n{report}");
}

#[test]
fn every_fact_that_was_checked_by_eye_is_found() {
    compare("expected.json");
}

#[test]
fn every_fact_that_the_script_counted_is_found() {
    compare("expected-machine.json");
}

/// Rollouts below `folder`, relative to the corpus.
fn rollouts(root: &Path, folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root.join(folder)).expect("a folder of the corpus") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name in UTF-8");
        let path = format!("{folder}/{name}");
        if root.join(&path).is_dir() {
            found.extend(rollouts(root, &path));
        } else if name.starts_with("rollout-") {
            found.push(path);
        }
    }
    found
}

#[test]
fn no_line_of_the_real_programs_is_unknown_or_unreadable() {
    let Some(root) = corpus() else { return };
    for path in rollouts(&root, "clients") {
        let counted = count(&root, &path);
        assert_eq!((counted.bad, &counted.unknown), (0, &BTreeSet::new()), "{path}");
        let (via, prompts) = counted.human();
        assert!(via == "item_completed" && !prompts.is_empty(), "{path}: {via}");
        assert!(path.contains(counted.session.as_deref().unwrap_or("none")), "{path}");
    }
}

#[test]
fn exactly_the_copied_history_is_marked() {
    let Some(root) = corpus() else { return };
    for path in rollouts(&root, "codex").into_iter().chain(rollouts(&root, "clients")) {
        // By eye: a fork with 322 lines of its origin, and two subagents with their parent's header and turn.
        let copies = match path.rsplit('-').next() {
            Some("041ade599da6.jsonl") => 322,
            Some("69aa13191f54.jsonl" | "5e5a0e068c59.jsonl") => 17,
            _ => 0,
        };
        assert_eq!(count(&root, &path).copies, copies, "{path}");
    }
}
