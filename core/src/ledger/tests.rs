//! Each query of the ledger is run here on a real database file.

use jiff::Timestamp;
use sqlx::Row as _;
use tempfile::TempDir;

use super::*;
use crate::entry::{
    AnswerVia, Context, Entry, EntryKind, Fact, PromptVia, Role, SourceIdentity, WrittenTime,
};
use crate::ids::{EntryId, LedgerSeq, LineHash, NativeId, SessionRow, SourceRow, Tool};

struct Scratch {
    _home: TempDir,
    ledger: Ledger,
    reader: Reader,
}

fn native(id: &str) -> NativeId {
    NativeId::new(id).expect("an id")
}

fn identity(session: &str) -> SourceIdentity {
    SourceIdentity { session: native(session), role: Role::Main, forked_from: None }
}

fn checkpoint(position: u64) -> Checkpoint {
    Checkpoint {
        file: FileId { device: 1, inode: 2 },
        generation: 0,
        size: position,
        mtime_ns: 4_000_000_000_000_000_000,
        position,
        chain: Chain::EMPTY.then(LineHash::of(&position.to_le_bytes())),
        anchor: LineHash::of(b"anchor"),
        pending: 3,
        reader: crate::entry::Reader::new(Tool::Claude, "projects/-w/x.jsonl"),
        status: SourceStatus::Live,
        error: None,
    }
}

fn event(position: u64, kind: EntryKind, id: Option<&str>, minute: u32) -> NewEvent {
    let fact = match kind {
        EntryKind::Prompt => vec![Fact::Prompt { via: PromptVia::User }],
        EntryKind::Answer => {
            vec![Fact::Answer { message: id.map(str::to_owned), via: AnswerVia::Message }]
        }
        _ => Vec::new(),
    };
    let entry = Entry {
        at: WrittenTime::parse(&format!("2026-03-01T10:{minute:02}:00.000Z")),
        identity: id.map(|id| EntryId::derive("test", &[id.as_bytes()])),
        context: Context { cwd: Some("/w/p".to_owned()), ..Context::default() },
        facts: fact,
        ..Entry::bare(kind)
    };
    NewEvent { position, length: 9, hash: LineHash::of(&position.to_le_bytes()), entry }
}

impl Scratch {
    async fn new() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("ledger.db");
        let ledger = Ledger::open(&path).await.expect("opened");
        let reader = ledger.reader().await.expect("opened");
        Self { _home: home, ledger, reader }
    }

    fn source(&mut self, path: &str) -> SourceRow {
        self.ledger.add_source(Tool::Claude, Path::new(path), &checkpoint(0)).expect("added")
    }

    fn append(&mut self, source: SourceRow, session: &str, events: &[NewEvent]) -> Appended {
        self.append_as(source, &identity(session), events)
    }

    fn append_as(
        &mut self,
        source: SourceRow,
        identity: &SourceIdentity,
        events: &[NewEvent],
    ) -> Appended {
        let end = events.last().map_or(0, |event| event.position + event.length + 1);
        let checkpoint = checkpoint(end);
        let from = events.first().map_or(0, |event| event.position);
        let batch = Batch {
            source,
            tool: Tool::Claude,
            identity,
            from,
            events,
            shapes: &[],
            checkpoint: &checkpoint,
        };
        self.ledger.append(&[batch]).expect("appended").remove(0)
    }

    async fn rows(&mut self, session: SessionRow) -> Vec<EventRow> {
        let mut rows = Vec::new();
        let all = LedgerSeq(i64::MAX);
        self.reader.events(session, LedgerSeq(0), all, |row| rows.push(row)).await.expect("read");
        rows
    }

    async fn state(&mut self, session: SessionRow) -> SessionState {
        self.reader.session(session).await.expect("read").expect("there")
    }

    async fn close(&mut self, session: SessionRow) -> CloseOutcome {
        let state = self.state(session).await;
        let envelope = EnvelopeRow {
            id: format!("{}-{}", session.0, state.episode),
            session,
            episode: state.episode,
            first: state.open_since.unwrap_or(LedgerSeq(0)),
            last: state.last,
            path: "sessions/x/1.json".to_owned(),
            sha256: format!("sha-{}", state.episode),
            previous: None,
            started_at: None,
            active_at: state.active_at,
            closed_at: "2026-03-01T11:00:00Z".parse().expect("a time"),
            reason: "idle".to_owned(),
            outcome: "completed".to_owned(),
            is_meaningful: true,
            is_scripted: false,
            has_changes: true,
        };
        self.ledger.close_episode(&envelope).await.expect("closed")
    }
}

fn kinds(rows: &[EventRow]) -> Vec<&'static str> {
    rows.iter().map(|row| row.kind.as_str()).collect()
}

#[tokio::test]
async fn the_ledger_refuses_update_delete_and_replace() {
    let mut scratch = Scratch::new().await;
    let source = scratch.source("/a");
    scratch.append(source, "s1", &[event(0, EntryKind::Prompt, Some("u1"), 0)]);
    for statement in [
        "UPDATE event SET kind = 'x'",
        "DELETE FROM event",
        "INSERT OR REPLACE INTO event (seq, kind) VALUES (1, 'x')",
    ] {
        let result = sqlx::query(statement).execute(&mut scratch.ledger.connection).await;
        let error = result.expect_err(statement).to_string();
        assert!(error.contains("append-only"), "{statement}: {error}");
    }
}

#[tokio::test]
async fn an_append_opens_an_episode_once_and_moves_the_checkpoint() {
    let mut scratch = Scratch::new().await;
    let source = scratch.source("/a");
    let first = scratch.append(source, "s1", &[event(0, EntryKind::State, None, 0)]);
    assert_eq!(first.opened, Some(1));
    let second = scratch.append(source, "s1", &[event(10, EntryKind::Prompt, Some("u1"), 1)]);
    assert_eq!(second.opened, None);
    let rows = scratch.rows(first.session).await;
    assert_eq!(kinds(&rows), ["session.opened", "state", "prompt"]);
    assert_eq!(rows[2].context.cwd.as_deref(), Some("/w/p"));
    let place = rows[2].place.expect("a place");
    assert_eq!((place.position, place.length), (10, 9));
    assert_eq!(scratch.reader.place_of(rows[2].seq).await.expect("read"), Some(place));
    let stored = scratch.reader.source_at(Path::new("/a")).await.expect("read").expect("there");
    assert_eq!((stored.checkpoint, stored.session), (checkpoint(20), Some(first.session)));
}

#[tokio::test]
async fn the_same_place_cannot_be_recorded_twice() {
    let mut scratch = Scratch::new().await;
    let source = scratch.source("/a");
    let events = [event(0, EntryKind::Prompt, Some("u1"), 0)];
    scratch.append(source, "s1", &events);
    let (identity, checkpoint) = (identity("s1"), checkpoint(10));
    let batch = Batch {
        source,
        tool: Tool::Claude,
        identity: &identity,
        from: 10,
        events: &events,
        shapes: &[],
        checkpoint: &checkpoint,
    };
    assert!(scratch.ledger.append(&[batch]).is_err());
    let totals = scratch.reader.totals().await.expect("read");
    assert_eq!(totals.events, 2, "nothing of the failed append stays");
}

#[tokio::test]
async fn what_was_read_beside_another_pass_changes_nothing() {
    let mut scratch = Scratch::new().await;
    let source = scratch.source("/a");
    let events = [event(0, EntryKind::Prompt, Some("u1"), 0)];
    scratch.append(source, "s1", &events);
    let (identity, behind) = (identity("s1"), checkpoint(10));
    for from in [0, 5, 20] {
        let batch = Batch {
            source,
            tool: Tool::Claude,
            identity: &identity,
            from,
            events: &events,
            shapes: &[],
            checkpoint: &behind,
        };
        assert!(scratch.ledger.append(&[batch]).expect("no failure").is_empty());
        let back = Checkpoint { position: 0, ..checkpoint(0) };
        let mut transaction = scratch.ledger.transaction().expect("begun");
        transaction.set_checkpoint(source, from, &back).expect("no failure");
        transaction.commit().expect("committed");
    }
    let stored = scratch.reader.source_at(Path::new("/a")).await.expect("read").expect("there");
    assert_eq!(stored.checkpoint, behind, "a position never goes back");
    assert_eq!(scratch.reader.totals().await.expect("read").events, 2);
    let again = scratch.source("/a");
    assert_eq!(again, source, "two passes that meet a new file give it one row");
}

#[tokio::test]
async fn case_016_an_entry_counts_once_and_the_copy_makes_a_fork() {
    let mut scratch = Scratch::new().await;
    let (parent, fork) = (scratch.source("/a"), scratch.source("/b"));
    let copied = event(0, EntryKind::Prompt, Some("u1"), 0);
    let parent = scratch.append(parent, "s1", std::slice::from_ref(&copied));
    let own = event(10, EntryKind::Prompt, Some("u2"), 5);
    let fork = scratch.append(fork, "s2", &[copied, own]);
    let counts: Vec<bool> = scratch.rows(fork.session).await.iter().map(|row| row.counts).collect();
    assert_eq!(counts, [false, true, true], "the copy, the opening, the own prompt");
    assert_eq!(scratch.state(fork.session).await.forked_from, Some(parent.session));
    assert_eq!(scratch.state(parent.session).await.forked_from, None);
}

#[tokio::test]
async fn a_copy_that_was_met_before_its_origin_gives_way_to_it() {
    let mut scratch = Scratch::new().await;
    let (parent, fork) = (scratch.source("/a"), scratch.source("/b"));
    let original = event(0, EntryKind::Prompt, Some("u1"), 0);
    let mut copied = original.clone();
    copied.entry.copied_from = Some(native("s1"));
    let fork = scratch.append(fork, "s2", &[copied]);
    assert!(scratch.rows(fork.session).await.iter().all(|row| row.counts), "its origin is unknown");
    let parent = scratch.append(parent, "s1", &[original]);
    let counted =
        |rows: Vec<EventRow>| rows.iter().filter(|row| row.counts && row.place.is_some()).count();
    assert_eq!(counted(scratch.rows(fork.session).await), 0);
    assert_eq!(counted(scratch.rows(parent.session).await), 1);
    assert_eq!(scratch.state(fork.session).await.forked_from, Some(parent.session));
}

#[tokio::test]
async fn a_subagents_replay_that_was_met_first_gives_way_to_the_session_itself() {
    let mut scratch = Scratch::new().await;
    let (replay, main) = (scratch.source("/agent-1"), scratch.source("/a"));
    let mut replayed = event(0, EntryKind::Answer, Some("u1"), 0);
    replayed.entry.context.agent = Some("1".to_owned());
    let role = Role::Subagent { agent: "1".to_owned() };
    let agent = SourceIdentity { role, ..identity("s1") };
    scratch.append_as(replay, &agent, &[replayed]);
    let done = scratch.append(main, "s1", &[event(0, EntryKind::Answer, Some("u1"), 0)]);
    let rows = scratch.rows(done.session).await;
    let counted: Vec<_> = rows
        .iter()
        .filter(|row| row.counts && row.place.is_some())
        .map(|row| &row.context.agent)
        .collect();
    assert_eq!(counted, [&None]);
}

#[tokio::test]
async fn a_close_appends_one_event_and_only_work_opens_the_next_episode() {
    let mut scratch = Scratch::new().await;
    let source = scratch.source("/a");
    let done = scratch.append(source, "s1", &[event(0, EntryKind::Prompt, Some("u1"), 0)]);
    assert!(matches!(scratch.close(done.session).await, CloseOutcome::Closed(_)));
    assert!(!scratch.state(done.session).await.is_open());
    assert_eq!(scratch.close(done.session).await, CloseOutcome::Moved, "nothing is open");

    let title = scratch.append(source, "s1", &[event(10, EntryKind::State, None, 9)]);
    assert_eq!(title.opened, None, "a trailing title opens nothing");
    let work = scratch.append(source, "s1", &[event(20, EntryKind::Prompt, Some("u2"), 30)]);
    assert_eq!(work.opened, Some(2));
    let rows = scratch.rows(done.session).await;
    assert_eq!(
        kinds(&rows),
        ["session.opened", "prompt", "session.closed", "state", "session.opened", "prompt"]
    );
    let state = scratch.state(done.session).await;
    assert_eq!(state.open_since, Some(rows[4].seq));
    let envelopes = scratch.reader.envelopes_of(done.session).await.expect("read");
    assert_eq!(envelopes.len(), 1);
    assert_eq!(scratch.reader.last_envelope().await.expect("read").as_deref(), Some("sha-1"));
}

#[tokio::test]
async fn a_close_of_a_session_that_moved_meanwhile_does_nothing() {
    let mut scratch = Scratch::new().await;
    let source = scratch.source("/a");
    let done = scratch.append(source, "s1", &[event(0, EntryKind::Prompt, Some("u1"), 0)]);
    let before = scratch.state(done.session).await;
    scratch.append(source, "s1", &[event(10, EntryKind::Answer, Some("m1"), 1)]);
    let envelope = EnvelopeRow {
        id: "x".to_owned(),
        session: done.session,
        episode: 1,
        first: LedgerSeq(1),
        last: before.last,
        path: String::new(),
        sha256: String::new(),
        previous: None,
        started_at: None,
        active_at: None,
        closed_at: Timestamp::UNIX_EPOCH,
        reason: "idle".to_owned(),
        outcome: "unknown".to_owned(),
        is_meaningful: true,
        is_scripted: false,
        has_changes: false,
    };
    assert_eq!(scratch.ledger.close_episode(&envelope).await.expect("tried"), CloseOutcome::Moved);
    assert!(scratch.state(done.session).await.is_open());
}

#[tokio::test]
async fn activity_is_never_later_than_the_file_that_shows_it() {
    let mut scratch = Scratch::new().await;
    let source = scratch.source("/a");
    let mut future = event(0, EntryKind::Prompt, Some("u1"), 0);
    future.entry.at = WrittenTime::parse("2199-01-01T00:00:00.000Z");
    let done = scratch.append(source, "s1", &[future]);
    let file_time = Timestamp::from_nanosecond(4_000_000_000_000_000_000).expect("a time");
    assert_eq!(scratch.state(done.session).await.active_at, Some(file_time));
}

#[tokio::test]
async fn a_session_is_found_by_prefix_alias_and_last() {
    let mut scratch = Scratch::new().await;
    let source = scratch.source("/a");
    let mut stamped = event(0, EntryKind::Prompt, Some("u1"), 0);
    stamped.entry.stamp = Some(native("older-id"));
    let first = scratch.append(source, "abc1", &[stamped]);
    let other = scratch.source("/b");
    let second = scratch.append(other, "abc2", &[event(0, EntryKind::Prompt, Some("u2"), 5)]);
    // A file without a single time is as old as its last copy: it is nobody's last session.
    let timeless = scratch.source("/c");
    let mut title = event(0, EntryKind::State, None, 0);
    title.entry.at = None;
    scratch.append(timeless, "timeless", &[title]);
    let mut find = async |name: &str| scratch.reader.find_session(name).await.expect("looked");
    assert!(matches!(find("abc1").await, Match::One(state) if state.row == first.session));
    assert!(matches!(find("old").await, Match::One(state) if state.row == first.session));
    assert!(matches!(find("last").await, Match::One(state) if state.row == second.session));
    assert_eq!(find("abc").await, Match::Many(vec!["abc1".to_owned(), "abc2".to_owned()]));
    assert_eq!(find("%").await, Match::None, "a name is no pattern");
    assert_eq!(scratch.reader.aliases(first.session).await.expect("read"), ["older-id"]);
}

#[tokio::test]
async fn a_closed_episode_is_drafted_once() {
    let mut scratch = Scratch::new().await;
    let source = scratch.source("/a");
    let done = scratch.append(source, "s1", &[event(0, EntryKind::Prompt, Some("u1"), 0)]);
    let session = done.session;
    scratch.close(session).await;
    let since = Timestamp::MIN;
    let tasks = scratch.reader.undrafted(since).await.expect("read");
    assert_eq!(tasks, [DraftTask { session, episode: 1, is_scripted: false, has_changes: true }]);
    let note = NoteRow {
        session,
        kind: "session".to_owned(),
        slug: "session-s1".to_owned(),
        vault: "local".to_owned(),
        uri: Some("vault://x".to_owned()),
        version: Some("v1".to_owned()),
        lines: vec![1, u64::MAX],
        synced_at: Some(Timestamp::UNIX_EPOCH),
        episode: 1,
        updated_at: Timestamp::UNIX_EPOCH,
    };
    scratch.ledger.record_note(&note).await.expect("recorded");
    assert_eq!(scratch.reader.undrafted(since).await.expect("read"), []);
    assert_eq!(scratch.reader.notes(Some(session)).await.expect("read"), [note]);

    scratch.append(source, "s1", &[event(10, EntryKind::Prompt, Some("u2"), 30)]);
    scratch.close(session).await;
    assert_eq!(scratch.reader.undrafted(since).await.expect("read")[0].episode, 2);
    scratch.ledger.skip_note(session, 2, "scripted").await.expect("recorded");
    assert_eq!(scratch.reader.undrafted(since).await.expect("read"), []);
    let skipped = scratch.reader.skipped(since).await.expect("read");
    assert_eq!(skipped, [("scripted".to_owned(), 1)]);
}

#[tokio::test]
async fn history_before_the_cutoff_is_counted_and_not_drafted() {
    let mut scratch = Scratch::new().await;
    let source = scratch.source("/a");
    let done = scratch.append(source, "s1", &[event(0, EntryKind::Prompt, Some("u1"), 0)]);
    scratch.close(done.session).await;
    let since: Timestamp = "2026-03-02T00:00:00Z".parse().expect("a time");
    assert_eq!(scratch.reader.undrafted(since).await.expect("read"), []);
    let skipped = scratch.reader.skipped(since).await.expect("read");
    assert_eq!(skipped, [(PENDING_REASON_HISTORY.to_owned(), 1)]);
}

#[tokio::test]
async fn sources_are_found_by_file_by_session_and_by_their_unfinished_line() {
    let mut scratch = Scratch::new().await;
    let source = scratch.source("/a");
    let done = scratch.append(source, "s1", &[event(0, EntryKind::Prompt, Some("u1"), 0)]);
    let file = FileId { device: 1, inode: 2 };
    let rows = |sources: Vec<SourceState>| sources.into_iter().map(|s| s.row).collect::<Vec<_>>();
    assert_eq!(rows(scratch.reader.sources_of_file(file).await.expect("read")), [source]);
    assert_eq!(rows(scratch.reader.sources_of(done.session).await.expect("read")), [source]);
    assert_eq!(rows(scratch.reader.pending_sources().await.expect("read")), [source]);
    let mut transaction = scratch.ledger.transaction().expect("begun");
    transaction.move_source(source, Path::new("/moved")).expect("moved");
    transaction.mark_missing(source).expect("marked");
    transaction.commit().expect("committed");
    let state = scratch.reader.source(source).await.expect("read").expect("there");
    assert_eq!(state.path, Path::new("/moved"));
    assert_eq!(state.checkpoint.status, SourceStatus::Missing);
    assert_eq!(rows(scratch.reader.pending_sources().await.expect("read")), []);
    let mut transaction = scratch.ledger.transaction().expect("begun");
    transaction.set_checkpoint(source, 10, &checkpoint(99)).expect("set");
    transaction.commit().expect("committed");
    let mut all = Vec::new();
    scratch.reader.sources(|source| all.push(source.checkpoint.position)).await.expect("read");
    assert_eq!(all, [99]);
}

#[tokio::test]
async fn summaries_settings_and_observations_are_kept() {
    let mut scratch = Scratch::new().await;
    let source = scratch.source("/a");
    let done = scratch.append(source, "s1", &[event(0, EntryKind::Prompt, Some("u1"), 0)]);
    scratch.ledger.set_summary(done.session, done.last, "{}").await.expect("set");
    let summary = scratch.reader.summary(done.session, done.last).await.expect("read");
    assert_eq!(summary.as_deref(), Some("{}"));
    scratch
        .ledger
        .note_git(done.session, Timestamp::UNIX_EPOCH, r#"{"x":1}"#)
        .await
        .expect("noted");
    let rows = scratch.rows(done.session).await;
    assert_eq!(rows[2].note.as_deref(), Some(r#"{"x":1}"#));
    let last = scratch.state(done.session).await.last;
    assert_eq!(
        scratch.reader.summary(done.session, last).await.expect("read"),
        None,
        "out of date"
    );
    scratch.ledger.set_meta("k", "v").await.expect("set");
    assert_eq!(scratch.reader.meta("k").await.expect("read").as_deref(), Some("v"));
    assert!(scratch.reader.has_session_in("/w").await.expect("read"));
    assert!(!scratch.reader.has_session_in("/w/pp").await.expect("read"));
    let newest = |text: &str| text.parse::<Timestamp>().expect("a time");
    let entry = newest("2026-03-01T10:00:00Z");
    let later = scratch.reader.newest_entry(newest("2027-01-01T00:00:00Z")).await.expect("read");
    let earlier = scratch.reader.newest_entry(newest("2026-01-01T00:00:00Z")).await.expect("read");
    assert_eq!((later, earlier), (Some(entry), None));
    assert_eq!(scratch.reader.sessions().await.expect("read").len(), 1);
    assert_eq!(scratch.reader.open_sessions().await.expect("read").len(), 1);
}

#[tokio::test]
async fn an_end_mark_is_noted_and_later_work_clears_it() {
    let mut scratch = Scratch::new().await;
    let source = scratch.source("/a");
    let mut end = event(0, EntryKind::Command, Some("u1"), 3);
    end.entry.facts = vec![Fact::End(crate::entry::EndMark::Exit)];
    let done = scratch.append(source, "s1", &[end]);
    let ended = scratch.state(done.session).await.ended_at.expect("ended");
    assert_eq!(ended.to_string(), "2026-03-01T10:03:00Z");
    scratch.append(source, "s1", &[event(10, EntryKind::State, None, 4)]);
    assert!(scratch.state(done.session).await.ended_at.is_some(), "a title changes nothing");
    scratch.append(source, "s1", &[event(20, EntryKind::Prompt, Some("u2"), 5)]);
    assert_eq!(scratch.state(done.session).await.ended_at, None);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_told_as_damage() {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("ledger.db");
    std::fs::write(&path, vec![b'x'; 8192]).expect("written");
    let error = Ledger::open(&path).await.expect_err("no database");
    assert!(error.is_corruption(), "{error:?}");
}

#[tokio::test]
async fn a_ledger_without_its_schema_is_not_ready() {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("ledger.db");
    std::fs::write(&path, "").expect("written");
    assert!(!Reader::open(&path).await.expect("opened").is_ready().await.expect("looked"));
    let ledger = Ledger::open(&path).await.expect("opened");
    assert!(ledger.reader().await.expect("opened").is_ready().await.expect("looked"));
}

#[tokio::test]
async fn totals_count_by_state() {
    let mut scratch = Scratch::new().await;
    let source = scratch.source("/a");
    let mut odd = event(10, EntryKind::Unreadable, None, 0);
    odd.entry = Entry::unreadable("broken");
    scratch.append(source, "s1", &[event(0, EntryKind::Prompt, Some("u1"), 0), odd]);
    let totals = scratch.reader.totals().await.expect("read");
    assert_eq!((totals.events, totals.unreadable, totals.unknown), (3, 1, 0));
    assert_eq!((totals.open_sessions, totals.closed_sessions, totals.episodes), (1, 0, 1));
    assert_eq!((totals.sources, totals.source_bytes, totals.ledgered_sources), (1, 20, 1));
    let columns = sqlx::query("SELECT count(*) FROM event WHERE hash IS NOT NULL")
        .fetch_one(&mut scratch.ledger.connection)
        .await
        .expect("counted");
    assert_eq!(columns.get::<i64, _>(0), 2);
}

#[tokio::test]
async fn after_a_transaction_that_found_no_room_the_next_one_works() {
    let mut scratch = Scratch::new().await;
    let source = scratch.source("/a");
    scratch.append(source, "s1", &[event(0, EntryKind::Prompt, Some("u1"), 0)]);
    let limit = |ledger: &Ledger, pages: i64| {
        ledger.appender.connection.pragma_update(None, "max_page_count", pages).expect("set");
    };
    limit(&scratch.ledger, 1);
    let events: Vec<NewEvent> =
        (1..2_000).map(|n| event(n * 10, EntryKind::Answer, Some(&format!("m{n}")), 1)).collect();
    let (identity, end) = (identity("s1"), checkpoint(20_000));
    let batch = Batch {
        source,
        tool: Tool::Claude,
        identity: &identity,
        from: 10,
        events: &events,
        shapes: &[],
        checkpoint: &end,
    };
    let full = scratch.ledger.append(&[batch]).expect_err("no room");
    assert!(!full.is_corruption(), "{full}");
    limit(&scratch.ledger, 1_000_000);
    let appended = scratch.append(source, "s1", &events);
    assert_eq!(scratch.rows(appended.session).await.len(), 1 + 1 + 1_999, "once each");
}

#[tokio::test]
async fn counting_for_the_status_walks_no_events() {
    let mut scratch = Scratch::new().await;
    let plan = format!("EXPLAIN QUERY PLAN {}", session::TOTALS);
    let rows = sqlx::query(sqlx::AssertSqlSafe(plan))
        .fetch_all(&mut scratch.reader.connection)
        .await
        .expect("explained");
    for row in rows {
        let step: String = row.try_get(3).expect("text");
        assert!(!step.starts_with("SCAN event"), "{step}");
    }
}
