use jiff::SignedDuration;

use super::*;
use crate::entry::{
    AnswerVia, Call, CallOutcome, CallResult, Context, EntryKind, Fact, FileTouch, PromptVia,
};
use crate::ledger::{EventKind, EventRow};

fn at(text: &str) -> Timestamp {
    text.parse().expect("a timestamp")
}

/// Builds the events of a session, one after the other.
#[derive(Default)]
struct Story {
    events: Vec<EventRow>,
}

impl Story {
    fn event(mut self, kind: EntryKind, agent: Option<&str>, facts: Vec<Fact>) -> Self {
        let seq = i64::try_from(self.events.len()).expect("few") + 1;
        let time = WrittenTime::parse(&format!("2026-03-01T10:{seq:02}:00.000Z"));
        let context = Context { agent: agent.map(str::to_owned), ..Context::default() };
        self.events.push(EventRow {
            seq: LedgerSeq(seq),
            kind: EventKind::Entry(kind),
            place: None,
            at: time,
            context,
            counts: true,
            facts,
            note: None,
        });
        self
    }

    fn prompt(self) -> Self {
        self.event(EntryKind::Prompt, None, vec![Fact::Prompt { via: PromptVia::User }])
    }

    fn answer(self, message: &str) -> Self {
        let fact = Fact::Answer { message: Some(message.to_owned()), via: AnswerVia::Message };
        self.event(EntryKind::Answer, None, vec![fact])
    }

    fn edit(self, agent: Option<&str>, id: &str, path: &str) -> Self {
        let touch = FileTouch { path: path.to_owned(), how: FileChange::Edited };
        let call =
            Call { id: id.to_owned(), name: "Edit".to_owned(), files: vec![touch], commits: false };
        self.event(EntryKind::ToolCall, agent, vec![Fact::Call(call)])
    }

    fn result(self, agent: Option<&str>, id: &str, outcome: CallOutcome, commits: &[&str]) -> Self {
        let result = CallResult {
            call: id.to_owned(),
            outcome,
            exit: None,
            commits: commits.iter().map(|&hash| hash.to_owned()).collect(),
        };
        self.event(EntryKind::ToolResult, agent, vec![Fact::Result(result)])
    }

    fn copy(mut self) -> Self {
        if let Some(last) = self.events.last_mut() {
            last.counts = false;
        }
        self
    }

    fn fold(&self) -> Summary {
        let mut fold = Fold::default();
        for event in &self.events {
            fold.push(event);
        }
        fold.finish()
    }
}

#[test]
fn lines_of_one_message_are_one_answer() {
    let summary = Story::default().prompt().answer("m1").answer("m1").answer("m2").fold();
    assert_eq!((summary.own.prompts, summary.own.answers), (1, 2));
}

#[test]
fn only_a_call_that_succeeded_changed_a_file() {
    let summary = Story::default()
        .edit(None, "c1", "/w/a.rs")
        .edit(None, "c2", "/w/b.rs")
        .edit(None, "c3", "/w/c.rs")
        .result(None, "c2", CallOutcome::Denied, &[])
        .result(None, "c1", CallOutcome::Ok, &[])
        .fold();
    assert_eq!(summary.own.files.keys().collect::<Vec<_>>(), ["/w/a.rs"]);
    assert_eq!(summary.own.failures, 1);
    assert!(summary.open_call_since.is_some(), "c3 has no result");
}

#[test]
fn hashes_in_the_output_of_another_command_are_no_commits() {
    let summary = Story::default()
        .edit(None, "c1", "/w/a.rs")
        .result(None, "c1", CallOutcome::Ok, &["1a2b3c4"])
        .fold();
    assert!(summary.own.commits.is_empty());
}

#[test]
fn a_copy_counts_nowhere_and_moves_no_time() {
    let summary = Story::default().prompt().copy().answer("m1").copy().prompt().fold();
    assert_eq!((summary.own.prompts, summary.own.answers), (1, 0));
    assert_eq!(
        summary.started_at.map(|moment| moment.written).as_deref(),
        Some("2026-03-01T10:03:00.000Z")
    );
    assert_eq!(summary.n_events, 3);
}

#[test]
fn a_subagents_work_stands_under_its_parent_and_makes_it_meaningful() {
    let summary = Story::default()
        .prompt()
        .edit(Some("a1"), "c1", "/w/a.rs")
        .result(Some("a1"), "c1", CallOutcome::Ok, &[])
        .fold();
    assert!(summary.own.tool_calls.is_empty());
    assert!(summary.agents["a1"].files.contains_key("/w/a.rs"));
    assert!(summary.is_meaningful() && summary.has_changes());
}

#[test]
fn a_mirrored_prompt_counts_once_and_the_mirror_alone_counts_too() {
    let via = |via| vec![Fact::Prompt { via }];
    let mirrored = Story::default()
        .event(EntryKind::Prompt, None, via(PromptVia::Response))
        .event(EntryKind::Prompt, None, via(PromptVia::Event))
        .fold();
    let alone = Story::default().event(EntryKind::Prompt, None, via(PromptVia::Response)).fold();
    assert_eq!((mirrored.own.prompts, alone.own.prompts), (1, 1));
}

#[test]
fn a_call_is_not_open_any_more_once_the_user_spoke_again() {
    let summary = Story::default().edit(None, "c1", "/w/a.rs").prompt().fold();
    assert_eq!(summary.open_call_since, None);
}

#[test]
fn case_130_a_tools_own_worktree_is_folded_into_its_repository() {
    let project = |cwd: &str| {
        let summary = Summary { cwds: vec![cwd.to_owned()], ..Summary::default() };
        summary.project()
    };
    assert_eq!(project("/home/u/app/.claude/worktrees/fix-1").as_deref(), Some("app"));
    assert_eq!(project("C:\\Users\\u\\app").as_deref(), Some("app"));
    assert_eq!(project("/home/u/app/").as_deref(), Some("app"));
    assert_eq!(Summary::default().project(), None);
}

const RULES: ClosingRules = ClosingRules {
    idle_after: SignedDuration::from_mins(20),
    end_grace: SignedDuration::from_secs(60),
    max_open_call: SignedDuration::from_hours(2),
};

fn pulse(active: &str) -> Pulse {
    Pulse { active_at: at(active), seen_at: None, ended_at: None, open_call_since: None }
}

#[test]
fn a_close_after_downtime_is_dated_by_the_last_activity() {
    let decision = decide(&pulse("2026-03-01T10:00:00Z"), &RULES, at("2026-04-01T00:00:00Z"));
    let expected = Decision::Close { reason: CloseReason::Idle, at: at("2026-03-01T10:20:00Z") };
    assert_eq!(decision, expected);
}

#[test]
fn what_was_seen_to_grow_is_alive_whatever_its_lines_say() {
    let seen = Pulse { seen_at: Some(at("2026-04-01T00:00:00Z")), ..pulse("2025-01-01T00:00:00Z") };
    let decision = decide(&seen, &RULES, at("2026-04-01T00:10:00Z"));
    assert_eq!(decision, Decision::Keep { until: at("2026-04-01T00:20:00Z") });
}

#[test]
fn a_tool_call_without_its_result_keeps_the_episode_open_up_to_the_limit() {
    let open = Pulse {
        open_call_since: Some(at("2026-03-01T10:00:00Z")),
        ..pulse("2026-03-01T10:00:00Z")
    };
    let early = decide(&open, &RULES, at("2026-03-01T11:00:00Z"));
    assert_eq!(early, Decision::Keep { until: at("2026-03-01T12:00:00Z") });
    let late = decide(&open, &RULES, at("2026-03-01T12:00:00Z"));
    assert!(matches!(late, Decision::Close { reason: CloseReason::Idle, .. }));
}

#[test]
fn an_end_mark_closes_after_a_short_grace() {
    let ended =
        Pulse { ended_at: Some(at("2026-03-01T10:00:05Z")), ..pulse("2026-03-01T10:00:05Z") };
    assert_eq!(
        decide(&ended, &RULES, at("2026-03-01T10:01:00Z")),
        Decision::Keep { until: at("2026-03-01T10:01:05Z") }
    );
    assert_eq!(
        decide(&ended, &RULES, at("2026-03-01T10:01:05Z")),
        Decision::Close { reason: CloseReason::Ended, at: at("2026-03-01T10:01:05Z") }
    );
}

#[test]
fn an_end_mark_never_delays_a_close() {
    let rules = ClosingRules { idle_after: SignedDuration::from_secs(2), ..RULES };
    let ended =
        Pulse { ended_at: Some(at("2026-03-01T10:00:00Z")), ..pulse("2026-03-01T10:00:00Z") };
    assert_eq!(
        decide(&ended, &rules, at("2026-03-01T10:00:02Z")),
        Decision::Close { reason: CloseReason::Idle, at: at("2026-03-01T10:00:02Z") }
    );
}
