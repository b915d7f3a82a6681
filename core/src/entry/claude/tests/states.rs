//! Lines outside the conversation.

use super::*;

fn facts(json: &Value) -> Vec<Fact> {
    let entry = read(&json.to_string());
    assert_eq!(entry.kind, EntryKind::State, "{json}");
    entry.facts
}

#[test]
fn titles_say_who_gave_them() {
    let generated = json!({ "type": "ai-title", "aiTitle": "T", "sessionId": SESSION });
    assert_eq!(facts(&generated), [Fact::Title(TitleVia::Generated)]);
    assert_eq!(texts(generated.to_string().as_bytes()), [Text::Title("T".into())]);
    let custom = json!({ "type": "custom-title", "customTitle": "C" });
    assert_eq!(facts(&custom), [Fact::Title(TitleVia::Custom)]);
    assert!(
        facts(&json!({ "type": "summary", "summary": "of another", "leafUuid": "l" })).is_empty()
    );
}

#[test]
fn state_lines_prove_what_they_can() {
    let link = json!({ "type": "pr-link", "prUrl": "https://example.com/o/r/pull/7" });
    assert_eq!(facts(&link), [Fact::PullRequest { url: "https://example.com/o/r/pull/7".into() }]);
    let entered = json!({ "type": "worktree-state", "worktreeSession": { "originalCwd": "/w/p" } });
    assert_eq!(facts(&entered), [Fact::Worktree { original: "/w/p".into() }]);
    assert!(facts(&json!({ "type": "worktree-state", "worktreeSession": null })).is_empty());
    assert_eq!(facts(&json!({ "type": "cost-state" })), [Fact::End(EndMark::CostState)]);
}

#[test]
fn a_boundary_is_a_compaction_and_other_system_lines_are_noise() {
    let system = |subtype: &str| read(&line("system", &json!({ "subtype": subtype }))).kind;
    assert_eq!(system("compact_boundary"), EntryKind::Compaction);
    assert_eq!(system("turn_duration"), EntryKind::Telemetry);
    assert_eq!(
        read(&line("progress", &json!({ "data": { "type": "agent_progress" } }))).kind,
        EntryKind::Telemetry
    );
}

#[test]
fn an_unknown_type_keeps_its_envelope_and_names_its_shape() {
    let entry = read(&line("new\nthing", &json!({ "subtype": "x".repeat(80) })));
    assert_eq!(entry.kind, EntryKind::Unknown);
    let [Fact::Reason(shape)] = entry.facts.as_slice() else { panic!("{:?}", entry.facts) };
    assert!(shape.starts_with("newthing/xxx"));
    assert_eq!(shape.chars().count(), 60);
    assert!(entry.identity.is_some() && entry.at.is_some() && entry.stamp.is_some());
    assert_eq!(entry.context.cwd.as_deref(), Some("/w/p"));
    let odd = line("attachment", &json!({ "attachment": { "type": "new" } }));
    assert_eq!(read(&odd).facts, [Fact::Reason("attachment/new".into())]);
}

#[test]
fn context_is_what_the_line_carries() {
    let context = read(&said("x")).context;
    assert_eq!(context.branch.as_deref(), Some("main"));
    assert_eq!(context.version.as_deref(), Some("2.1.0"));
    let bare = read(&user(&json!("x"), &json!({ "gitBranch": "", "cwd": 7 }))).context;
    assert_eq!((bare.branch, bare.cwd), (None, None));
}

#[test]
fn times_come_as_numbers_too() {
    let entry = read(&user(&json!("x"), &json!({ "timestamp": 1_772_352_000_123_i64 })));
    let string = read(&user(&json!("x"), &json!({ "timestamp": "2026-03-01T08:00:00.123Z" })));
    let instant = |entry: &Entry| entry.at.as_ref().map(crate::entry::WrittenTime::instant);
    assert_eq!(instant(&entry), instant(&string));
    assert!(instant(&entry).is_some());
}
