//! Nothing lost, nothing doubled, nothing put to the wrong session, whatever happens to the files. The real
//! planning, reading and ledger run over a scratch home; a model beside them knows what must come of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use majordomus_core::ids::{LedgerSeq, NativeId};
use majordomus_core::ledger::{Reader, SourceStatus};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::scan::{Candidate, WatchRoot};

mod model;

const ONE: &str = "0b2c9d1e-0001-4000-8000-000000000001";
const TWO: &str = "0b2c9d1e-0002-4000-8000-000000000002";
const THREAD: &str = "01a0aaaa-0000-7000-8000-000000000003";

/// Time of line `n`: unique, so that an event is known by it.
fn time(n: u64) -> Timestamp {
    let start: Timestamp = "2026-03-01T10:00:00Z".parse().expect("a time");
    start + jiff::SignedDuration::from_secs(i64::try_from(n).expect("fits"))
}

fn claude_line(session: &str, n: u64) -> String {
    serde_json::json!({
        "type": "user", "uuid": format!("aaaaaaaa-0000-4000-8000-{n:012}"), "parentUuid": null,
        "sessionId": session, "timestamp": time(n).to_string(), "cwd": "/w/app",
        "message": {"role": "user", "content": format!("say {n} {}", "x".repeat(usize::try_from(n % 7).expect("fits")))},
    })
    .to_string()
}

fn codex_line(n: u64) -> String {
    let content = serde_json::json!([{"type": "output_text", "text": format!("said {n}")}]);
    serde_json::json!({
        "timestamp": time(n).to_string(), "type": "response_item",
        "payload": {"type": "message", "role": "assistant", "content": content},
    })
    .to_string()
}

fn codex_meta() -> String {
    serde_json::json!({
        "timestamp": time(0).to_string(), "type": "session_meta",
        "payload": {"id": THREAD, "timestamp": time(0).to_string(), "cwd": "/w/svc", "originator": "codex_cli_rs",
                    "cli_version": "0.120.0", "source": "cli"},
    })
    .to_string()
}

/// What the ledger has of one line.
type Row = (u32, u64, u64, &'static str, Option<Timestamp>, bool, String);

/// A scratch home with a ledger.
struct Home {
    dir: TempDir,
    ledger: Option<Arc<Mutex<Ledger>>>,
    /// Every path that a session file ever had: what notifications would name.
    named: BTreeSet<PathBuf>,
    tick: u64,
}

impl Home {
    async fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let mut home = Self { dir, ledger: None, named: BTreeSet::new(), tick: 0 };
        home.reopen().await;
        home
    }

    /// What a crash leaves, and the next start.
    async fn reopen(&mut self) {
        self.ledger = None;
        let ledger = Ledger::open(&self.dir.path().join("ledger.db")).await.expect("opened");
        self.ledger = Some(Arc::new(Mutex::new(ledger)));
    }

    fn ledger(&self) -> &Arc<Mutex<Ledger>> {
        self.ledger.as_ref().expect("open")
    }

    fn tailer(&self) -> Tailer {
        Tailer {
            ledger: Arc::clone(self.ledger()),
            policy: Arc::default(),
            stop: CancellationToken::new(),
        }
    }

    async fn reader(&self) -> Reader {
        self.ledger().lock().await.reader().await.expect("opened")
    }

    fn roots(&self) -> [WatchRoot; 2] {
        [Tool::Claude, Tool::Codex]
            .map(|tool| WatchRoot { tool, path: self.dir.path().join(tool.as_str()) })
    }

    fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    /// Gives a file a change time of its own: two writes within one tick of the clock cannot be told apart.
    fn stamp(&mut self, path: &Path) {
        self.tick += 1;
        self.named.insert(path.to_owned());
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_900_000_000 + self.tick);
        File::options().write(true).open(path).and_then(|file| file.set_modified(at)).expect("set");
    }

    fn write(&mut self, path: &Path, bytes: &[u8]) {
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, bytes).expect("written");
        self.stamp(path);
    }

    fn append(&mut self, path: &Path, bytes: &[u8]) {
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        let mut file = File::options().create(true).append(true).open(path).expect("opened");
        file.write_all(bytes).expect("written");
        self.stamp(path);
    }

    async fn plan(&self, scope: Scope) -> Vec<Work> {
        let roots = self.roots();
        let candidates = match scope {
            Scope::Everything => roots.iter().flat_map(|root| root.scan().files).collect(),
            Scope::Some => (self.named.iter())
                .filter_map(|path| roots.iter().find_map(|root| root.candidate(path)))
                .collect(),
        };
        plan(&mut self.reader().await, candidates, scope).await.expect("planned")
    }

    async fn read(&self, work: Vec<Work>) -> Tailed {
        let tailed = self.tailer().tail(work, &mut |_, _| {}).await;
        let tailed = tailed.expect("read");
        assert!(tailed.problems.is_empty(), "{:?}", tailed.problems);
        tailed
    }

    async fn look(&self, scope: Scope) -> Tailed {
        self.read(self.plan(scope).await).await
    }

    async fn accept(&self) {
        let waiting = self.reader().await.pending_sources().await.expect("listed");
        self.tailer().accept_unfinished(waiting).await.expect("read");
    }

    async fn sources(&self) -> BTreeMap<SourceRow, SourceState> {
        let mut all = BTreeMap::new();
        let mut reader = self.reader().await;
        reader.sources(|source| drop(all.insert(source.row, source))).await.expect("listed");
        all
    }

    /// The lines of each session, by source, in ledger order.
    async fn rows(&self) -> BTreeMap<NativeId, Vec<(SourceRow, Row)>> {
        let mut reader = self.reader().await;
        let mut all = BTreeMap::new();
        for state in reader.sessions().await.expect("listed") {
            let mut rows = Vec::new();
            let take = |event: majordomus_core::ledger::EventRow| {
                let Some(place) = event.place else { return };
                let facts = format!("{:?}", event.facts);
                let (at, kind) = (event.instant(), event.kind.as_str());
                let row =
                    (place.generation, place.position, place.length, kind, at, event.counts, facts);
                rows.push((place.source, row));
            };
            reader.events(state.row, LedgerSeq(0), LedgerSeq(i64::MAX), take).await.expect("read");
            all.insert(state.key.native, rows);
        }
        all
    }

    /// The lines of each session without the source that they stand in.
    async fn lines(&self) -> BTreeMap<NativeId, Vec<Row>> {
        let rows = self.rows().await;
        rows.into_iter()
            .map(|(session, rows)| (session, rows.into_iter().map(|(_, row)| row).collect()))
            .collect()
    }
}

fn block_on<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(test)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_growth_with_crashes_gives_what_one_reading_gives(
        cuts in prop::collection::vec((0..100_usize, any::<bool>(), any::<bool>()), 0..10),
    ) {
        let lines = |session, first: u64| -> String {
            (first..first + 8).map(|n| claude_line(session, n) + "\n").collect()
        };
        let torn = lines(TWO, 100) + "{\"type\":\"us";
        let files = [(ONE, lines(ONE, 1).into_bytes()), (TWO, torn.into_bytes())];
        block_on(async {
            let mut apart = BTreeMap::new();
            for (session, text) in &files {
                let mut home = Home::new().await;
                let path = home.path(&format!("claude/projects/-w-app/{session}.jsonl"));
                home.write(&path, text);
                home.look(Scope::Everything).await;
                apart.extend(home.lines().await);
            }
            let mut home = Home::new().await;
            let mut done = [0, 0];
            let finish = [(100, false, true), (100, true, true)];
            for (percent, second, everything) in cuts.iter().chain(&finish) {
                let (session, text) = &files[usize::from(*second)];
                let path = home.path(&format!("claude/projects/-w-app/{session}.jsonl"));
                let done = &mut done[usize::from(*second)];
                let end = (text.len() * percent / 100).max(*done);
                home.append(&path, &text[*done..end]);
                *done = end;
                home.look(if *everything { Scope::Everything } else { Scope::Some }).await;
                if percent % 3 == 0 {
                    home.reopen().await;
                }
            }
            let mixed = home.lines().await;
            assert_eq!(mixed, apart);
        });
    }
}

/// The corpus, or a word that it is not here.
fn corpus(test: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("{test}: skipped, the corpus is not here");
    None
}

#[tokio::test]
async fn snapshots_of_a_growing_file_give_what_one_reading_gives() {
    let Some(corpus) = corpus("growth") else { return };
    for growing in ["06210e47", "4e836284"] {
        let mut names: Vec<PathBuf> = fs::read_dir(corpus.join("growth").join(growing))
            .expect("listed")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        names.sort();
        let texts: Vec<Vec<u8>> = names.iter().map(|name| fs::read(name).expect("read")).collect();
        let (mut fed, mut whole) = (Home::new().await, Home::new().await);
        let below = format!("claude/projects/-w-app/{ONE}.jsonl");
        let mut before: &[u8] = b"";
        let mut is_append = true;
        for text in &texts {
            let path = fed.path(&below);
            if let Some(new) = text.strip_prefix(before) {
                fed.append(&path, new);
            } else {
                is_append = false;
                fed.write(&path, text);
            }
            before = text;
            fed.look(Scope::Some).await;
            fed.accept().await;
        }
        let path = whole.path(&below);
        whole.write(&path, before);
        whole.look(Scope::Everything).await;
        whole.accept().await;
        let counted = |lines: BTreeMap<NativeId, Vec<Row>>| {
            let rows = lines.into_values().flatten().filter(|row| row.5);
            let mut rows: Vec<_> = rows.map(|row| (row.3, row.4, row.6)).collect();
            rows.sort();
            rows
        };
        let (fed, whole) = (fed.lines().await, whole.lines().await);
        if is_append {
            assert_eq!(fed, whole, "{growing}");
        } else {
            // A rewrite: what stands in the last content counts as it would have, and nothing of it twice.
            let (fed, mut whole) = (counted(fed), counted(whole));
            for row in fed {
                if let Some(at) = whole.iter().position(|other| *other == row) {
                    whole.remove(at);
                }
            }
            assert!(whole.is_empty(), "{growing}: {} lines are lost", whole.len());
        }
    }
}

/// Puts lines without a `uuid` into a file.
fn nameless(title: &str) -> String {
    serde_json::json!({"type": "ai-title", "sessionId": ONE, "aiTitle": title}).to_string() + "\n"
}

fn counting(lines: &BTreeMap<NativeId, Vec<Row>>) -> usize {
    lines.values().flatten().filter(|row| row.5).count()
}

#[tokio::test]
async fn lines_without_an_identity_count_once_over_a_rewrite() {
    let mut home = Home::new().await;
    let path = home.path(&format!("claude/projects/-w-app/{ONE}.jsonl"));
    let said = |n| claude_line(ONE, n) + "\n";
    home.write(&path, [said(1), nameless("a"), nameless("b"), nameless("a")].concat().as_bytes());
    home.look(Scope::Everything).await;
    assert_eq!(counting(&home.lines().await), 4);
    let again = [said(2), nameless("a"), nameless("a"), nameless("a"), nameless("c")].concat();
    for _ in 0..2 {
        home.write(&path, again.as_bytes());
        home.look(Scope::Everything).await;
        assert_eq!(counting(&home.lines().await), 7, "the prompt, the third a, and c are new");
        home.write(&path, b"");
        home.look(Scope::Everything).await;
    }
}

#[tokio::test]
async fn a_file_whose_name_told_the_session_goes_on_where_it_was() {
    let mut home = Home::new().await;
    let path = home.path("claude/projects/-w-app/notes.jsonl");
    let line = |n: u64| {
        let message = format!("{{\"role\":\"user\",\"content\":\"{n}\"}}");
        format!("{{\"type\":\"user\",\"message\":{message}}}\n")
    };
    home.write(&path, line(1).as_bytes());
    home.look(Scope::Everything).await;
    home.accept().await;
    assert_eq!(counting(&home.lines().await), 1, "nothing but the name tells");
    home.append(&path, line(2).as_bytes());
    home.look(Scope::Everything).await;
    home.append(&path, line(3).as_bytes());
    home.look(Scope::Everything).await;
    assert_eq!(counting(&home.lines().await), 3);
}

#[tokio::test]
async fn a_file_that_waited_for_its_session_keeps_what_its_name_tells() {
    let mut home = Home::new().await;
    let path = home.path("claude/projects/-w-app/agent-7.jsonl");
    home.write(&path, b"{\"type\":\"summary\",\"summary\":\"x\"}\n");
    home.look(Scope::Everything).await;
    home.accept().await;
    home.append(&path, (claude_line(ONE, 1) + "\n").as_bytes());
    home.look(Scope::Everything).await;
    let mut reader = home.reader().await;
    let state = reader.sessions().await.expect("listed").remove(0);
    let mut agents = Vec::new();
    let take = |event: majordomus_core::ledger::EventRow| {
        if event.place.is_some() {
            agents.push(event.context.agent);
        }
    };
    reader.events(state.row, LedgerSeq(0), LedgerSeq(i64::MAX), take).await.expect("read");
    assert_eq!(agents, [Some("7".to_owned()), Some("7".to_owned())]);
}

#[tokio::test]
async fn a_crash_before_the_first_lines_starts_with_the_first_line() {
    let mut home = Home::new().await;
    let below = format!("sessions/2026/03/01/rollout-2026-03-01T10-00-00-{THREAD}.jsonl");
    let path = home.path(&format!("codex/{below}"));
    home.write(
        &path,
        [codex_meta(), "\n".to_owned(), codex_line(1), "\n".to_owned()].concat().as_bytes(),
    );
    let other = Home::new().await;
    fs::create_dir_all(other.path("codex")).expect("made");
    // The row as it stands after the source was added and before its lines were.
    home.look(Scope::Everything).await;
    let read = home.sources().await.into_values().next().expect("a source");
    let start = file::start_of(&read.checkpoint);
    other.ledger().lock().await.add_source(Tool::Codex, &path, &start).expect("added");
    let candidate = Candidate { tool: Tool::Codex, path, below_root: below };
    let work =
        plan(&mut other.reader().await, vec![candidate], Scope::Some).await.expect("planned");
    other.read(work).await;
    assert_eq!(other.lines().await, home.lines().await);
}

#[tokio::test]
async fn a_moved_file_is_not_missing_whatever_is_named_first() {
    let mut home = Home::new().await;
    let name = format!("rollout-2026-03-01T10-00-00-{THREAD}.jsonl");
    let from = home.path(&format!("codex/sessions/{name}"));
    let to = home.path(&format!("codex/archived_sessions/{name}"));
    home.write(&from, (codex_meta() + "\n").as_bytes());
    home.look(Scope::Everything).await;
    for (from, to) in [(&from, &to), (&to, &from)] {
        fs::create_dir_all(to.parent().expect("a directory")).expect("made");
        fs::rename(from, to).expect("moved");
        home.named.insert(to.clone());
        home.look(Scope::Some).await;
        let sources = home.sources().await;
        let states: Vec<_> = sources.values().map(|it| (&it.path, it.checkpoint.status)).collect();
        assert_eq!(states, [(to, SourceStatus::Live)]);
    }
}

#[tokio::test]
async fn growth_met_under_a_second_name_is_read() {
    let mut home = Home::new().await;
    let path = home.path(&format!("claude/projects/-w-app/{ONE}.jsonl"));
    home.write(&path, (claude_line(ONE, 1) + "\n").as_bytes());
    home.look(Scope::Everything).await;
    home.append(&path, (claude_line(ONE, 2) + "\n").as_bytes());
    let second = home.path("claude/projects/-w-second");
    std::os::unix::fs::symlink(path.parent().expect("a directory"), &second).expect("linked");
    let named = second.join(path.file_name().expect("a name"));
    let candidate = home.roots()[0].candidate(&named).expect("a candidate");
    let mut reader = home.reader().await;
    let work = plan(&mut reader, vec![candidate], Scope::Everything).await.expect("planned");
    assert_eq!(home.read(work).await.events, 1);
    assert_eq!(home.sources().await.len(), 1);
}

#[tokio::test]
async fn a_pipe_with_a_session_files_name_holds_nothing_up() {
    let home = Home::new().await;
    let path = home.path(&format!("claude/projects/-w-app/{ONE}.jsonl"));
    fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).expect("made");
    let candidate = home.roots()[0].candidate(&path).expect("a candidate");
    let mut reader = home.reader().await;
    let work = plan(&mut reader, vec![candidate], Scope::Some).await.expect("planned");
    let tailed = home.tailer().tail(work, &mut |_, _| {}).await;
    assert!(tailed.expect("read").problems[0].contains("not a regular file"));
}

#[tokio::test]
async fn the_file_that_a_tool_deletes_next_is_read_first() {
    let mut home = Home::new().await;
    let paths =
        [TWO, ONE].map(|session| home.path(&format!("claude/projects/-w-app/{session}.jsonl")));
    let mut written = 0;
    for (path, session) in paths.iter().zip([TWO, ONE]) {
        let line = claude_line(session, 1) + "\n";
        written += line.len() as u64;
        home.write(path, line.as_bytes());
    }
    let (work, bytes) = oldest_first(home.plan(Scope::Everything).await);
    assert_eq!(work.into_iter().map(|item| item.path).collect::<Vec<_>>(), paths);
    assert_eq!(bytes, written);
}
