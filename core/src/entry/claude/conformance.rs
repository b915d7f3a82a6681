//! Real session files against facts that were counted without this code.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;

use super::{Reader, texts};
use crate::entry::{CallOutcome, Entry, EntryKind, Fact, Text, WrittenTime};
use crate::ids::EntryId;

/// Facts for which the expectation is judged wrong: end of the path, fact, reason.
const MISJUDGED: &[(&str, &str, &str)] = &[
    ("0fae0449-64d3-4788-8622-d3a47d82c14b.jsonl", "commits", REBASED),
    ("agent-a0ad4f44468bdf20d.jsonl", "session_id", PARENT),
    ("21849da6-9912-558d-9397-c13f352b139d.jsonl", "session_id", STEM),
    ("21849da6-9912-558d-9397-c13f352b139d.jsonl", "human_prompts", SHORT),
    ("8c5dc068-b59a-5081-8530-f68448192d51.jsonl", "human_prompts", SHORT),
    ("cfc75602-348f-5e2b-bdc6-8c07b7606ca0.jsonl", "assistant_text_messages", SHORT),
    ("cfc75602-348f-5e2b-bdc6-8c07b7606ca0.jsonl", "tool_calls", SHORT),
    ("2f4df90a-7422-59c2-bab9-6d0eb72633d4.jsonl", "session_id", STEM),
    ("580b0f9f-39d5-587a-80ff-646d59a58711.jsonl", "session_id", STEM),
    ("6a56e11b-1d09-5905-90f4-ac6def36a654.jsonl", "session_id", STEM),
    ("8c5dc068-b59a-5081-8530-f68448192d51.jsonl", "session_id", STEM),
    ("cfc75602-348f-5e2b-bdc6-8c07b7606ca0.jsonl", "session_id", STEM),
    (
        "cfc75602-348f-5e2b-bdc6-8c07b7606ca0.jsonl",
        "last_timestamp",
        "the expectation took the greatest string, which is no time",
    ),
];

const REBASED: &str = "`git rebase --continue` printed the line of a commit that it made; the expectation looks \
                       only at commands with the word `commit`, formats.md 1.7 also at this one";
const SHORT: &str =
    "two lines with other contents carry one short uuid, which is no identity by itself";
const PARENT: &str =
    "no line has a session id, but the directory above `subagents` is the parent's";
const STEM: &str = "the stem is a UUID: it is the session, whatever the lines say (formats.md 1.6)";

/// What a file says, added up without regard to other files.
#[derive(Debug, Default)]
struct Counted {
    session: Option<String>,
    cwd: Option<String>,
    times: Vec<WrittenTime>,
    bad_lines: u64,
    prompts: u64,
    heads: Vec<String>,
    answers: HashSet<String>,
    calls: BTreeMap<String, u64>,
    files: BTreeSet<String>,
    commits: BTreeSet<String>,
    unknown: BTreeMap<String, u64>,
}

/// What is known while a file is read.
#[derive(Default)]
struct Fold {
    counted: Counted,
    seen: HashSet<EntryId>,
    calls: HashSet<String>,
    committing: HashSet<String>,
    files: HashMap<String, String>,
}

/// Folds one file; repeated identities count once.
fn count(path: &str, bytes: &[u8]) -> Counted {
    let mut reader = Reader::new(path);
    let of_agent = reader.agent.is_some();
    let mut fold = Fold::default();
    for line in lines(bytes) {
        let entry = reader.read(line);
        fold.note_line(&entry);
        if entry.identity.is_none_or(|identity| fold.seen.insert(identity)) {
            fold.add(&entry, of_agent, line);
        }
    }
    fold.counted.session = reader.identity_by_name().map(|i| i.session.as_str().to_owned());
    fold.counted
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = memchr::memchr_iter(b'\n', bytes).chain([bytes.len()]);
    let mut start = 0;
    ends.map(move |end| &bytes[std::mem::replace(&mut start, end + 1)..end])
        .filter(|line| !line.trim_ascii().is_empty())
}

impl Fold {
    /// Facts of a line that count even where it is a copy.
    fn note_line(&mut self, entry: &Entry) {
        let counted = &mut self.counted;
        counted.times.extend(entry.at.clone());
        if counted.cwd.is_none() {
            counted.cwd.clone_from(&entry.context.cwd);
        }
        for fact in &entry.facts {
            let Fact::Reason(reason) = fact else { continue };
            if entry.kind == EntryKind::Unknown {
                *counted.unknown.entry(reason.clone()).or_default() += 1;
            } else {
                counted.bad_lines += 1;
            }
        }
    }

    fn add(&mut self, entry: &Entry, of_agent: bool, line: &[u8]) {
        // Of a main file only the lines of its own thread are counted.
        let own_thread = of_agent || entry.context.agent.is_none();
        if !own_thread {
            return;
        }
        for fact in &entry.facts {
            match fact {
                Fact::Prompt { .. } => {
                    self.counted.prompts += 1;
                    self.counted.heads.push(prompt_head(line));
                }
                Fact::Answer { message, .. } => {
                    let by_line = format!("{:?}", entry.identity);
                    self.counted.answers.insert(message.clone().unwrap_or(by_line));
                }
                Fact::Call(call) if self.calls.insert(call.id.clone()) => {
                    *self.counted.calls.entry(call.name.clone()).or_default() += 1;
                    if call.commits {
                        self.committing.insert(call.id.clone());
                    }
                    for file in &call.files {
                        self.files.insert(call.id.clone(), file.path.clone());
                    }
                }
                Fact::Result(result) if result.outcome == CallOutcome::Ok => {
                    self.counted.files.extend(self.files.get(&result.call).cloned());
                    if self.committing.contains(&result.call) {
                        self.counted.commits.extend(result.commits.iter().cloned());
                    }
                }
                Fact::Commit(sha) => {
                    self.counted.commits.insert(sha.clone());
                }
                _ => {}
            }
        }
    }
}

fn prompt_head(line: &[u8]) -> String {
    match texts(line).as_slice() {
        [Text::Prompt(text)] => text.chars().take(60).collect(),
        other => format!("not one prompt: {other:?}"),
    }
}

/// Where the expectation and what was counted differ: the fact, and both values.
fn differences(expected: &Value, counted: &Counted) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let mut compare = |fact: &'static str, expected: &dyn Debug, counted: &dyn Debug| {
        let (expected, counted) = (format!("{expected:?}"), format!("{counted:?}"));
        if expected != counted {
            found.push((fact, format!("expected {expected}, counted {counted}")));
        }
    };
    let text = |key: &str| expected[key].as_str().map(str::to_owned);
    let number = |key: &str| expected[key].as_u64();
    let set = |key: &str| -> BTreeSet<String> {
        let list = expected[key].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let instant = |key: &str| text(key).and_then(|t| WrittenTime::parse(&t)).map(|t| t.instant());
    let calls: BTreeMap<String, u64> = expected["tool_calls"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, n)| (super::tools::tidy(name, 100), n.as_u64().unwrap_or_default()))
        .collect();
    let heads: Vec<String> = expected["prompt_heads"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|head| head.as_str().map(|head| head.trim().to_owned()))
        .collect();
    let counted_heads: Vec<String> =
        counted.heads.iter().map(|head| head.trim().to_owned()).take(heads.len()).collect();

    compare("session_id", &text("session_id"), &counted.session);
    compare("cwd", &text("cwd"), &counted.cwd);
    let times = || counted.times.iter().map(WrittenTime::instant);
    compare("first_timestamp", &instant("first_timestamp"), &times().min());
    compare("last_timestamp", &instant("last_timestamp"), &times().max());
    compare("bad_lines", &number("bad_lines"), &Some(counted.bad_lines));
    compare("human_prompts", &number("human_prompts"), &Some(counted.prompts));
    compare("prompt_heads", &heads, &counted_heads);
    let answers = u64::try_from(counted.answers.len()).ok();
    compare("assistant_text_messages", &number("assistant_text_messages"), &answers);
    compare("tool_calls", &calls, &counted.calls);
    compare("files_written", &set("files_written"), &counted.files);
    compare("commits", &set("commits"), &counted.commits);
    found
}

fn corpus() -> Option<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    if corpus.is_dir() {
        return Some(corpus);
    }
    println!("skipped: no corpus at {}", corpus.display());
    None
}

/// The Claude files of an expectation: path below the Claude root, expectation, bytes.
fn expectations(corpus: &Path, name: &str) -> Vec<(String, Value, Vec<u8>)> {
    let json = std::fs::read(corpus.join(name)).expect("expectations");
    let all: BTreeMap<String, Value> = serde_json::from_slice(&json).expect("JSON");
    all.into_iter()
        .filter_map(|(path, expected)| {
            let below = path.strip_prefix("claude/")?.to_owned();
            Some((below, expected, std::fs::read(corpus.join(&path)).expect("session file")))
        })
        .collect()
}

/// Compares all files of an expectation.
fn check(name: &str) {
    let Some(corpus) = corpus() else { return };
    let files = expectations(&corpus, name);
    assert!(!files.is_empty(), "{name} has no Claude files");
    let mut differing = Vec::new();
    for (path, expected, bytes) in &files {
        let judged: BTreeSet<&str> =
            MISJUDGED.iter().filter(|(end, ..)| path.ends_with(end)).map(|j| j.1).collect();
        let found = differences(expected, &count(path, bytes));
        for stale in judged.iter().filter(|fact| !found.iter().any(|(f, _)| f == *fact)) {
            differing.push(format!("{path}: {stale}: judged as differing, but it agrees"));
        }
        for (fact, values) in found.iter().filter(|(fact, _)| !judged.contains(fact)) {
            differing.push(format!("{path}: {fact}: {values}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[test]
fn what_was_checked_by_eye_is_counted_alike() {
    check("expected.json");
}

#[test]
fn what_a_machine_counted_is_counted_alike_or_judged() {
    check("expected-machine.json");
}

/// All session files of Claude Code in the corpus, with their paths below a root.
fn session_files(corpus: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let roots = ["claude", "synthetic/claude", "clients/claude", "clients/newest/out/claude"];
    for root in roots.map(|root| corpus.join(root)) {
        let mut directories = vec![root.join("projects")];
        while let Some(directory) = directories.pop() {
            for item in std::fs::read_dir(directory).into_iter().flatten().flatten() {
                let path = item.path();
                if path.is_dir() {
                    directories.push(path);
                } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                    let below = path.strip_prefix(&root).expect("below the root");
                    let bytes = std::fs::read(&path).expect("session file");
                    files.push((below.to_string_lossy().into_owned(), bytes));
                }
            }
        }
    }
    files
}

#[test]
fn every_shape_in_the_corpus_is_known() {
    let Some(corpus) = corpus() else { return };
    let made_up = ["no type", "some-future-type", "compacted"];
    for (path, bytes) in session_files(&corpus) {
        let unknown = count(&path, &bytes).unknown;
        let strangers: Vec<_> =
            unknown.keys().filter(|shape| !made_up.contains(&shape.as_str())).collect();
        assert!(strangers.is_empty(), "{path}: {strangers:?}");
    }
}

#[test]
#[ignore = "a measurement: cargo test --release -p majordomus-core -- --ignored --nocapture speed"]
fn speed_of_reading() {
    let Some(corpus) = corpus() else { return };
    let files = session_files(&corpus);
    let bytes: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    for _ in 0..3 {
        let start = Instant::now();
        let mut entries = 0_u64;
        for (path, bytes) in &files {
            let mut reader = Reader::new(path);
            for line in lines(bytes) {
                std::hint::black_box(reader.read(line));
                entries += 1;
            }
        }
        let micros = start.elapsed().as_micros().max(1);
        println!("{entries} lines, {bytes} bytes: {} MB/s", bytes as u128 / micros);
    }
}
