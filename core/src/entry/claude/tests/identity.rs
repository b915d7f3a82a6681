//! Whose the lines are.

use super::*;

#[test]
fn a_stem_that_is_a_uuid_is_the_session_at_once() {
    let mut reader = Reader::new(&main_path());
    let identity = reader.identity().expect("by name");
    assert_eq!((identity.session.as_str(), &identity.role), (SESSION, &Role::Main));
    reader.read(said("x").replace(SESSION, OTHER).as_bytes());
    assert_eq!(reader.identity().expect("by name").session.as_str(), SESSION);
}

#[test]
fn any_other_stem_waits_for_the_first_session_id() {
    let mut reader = Reader::new("projects/-w-p/notes.jsonl");
    reader.read(br#"{"type":"summary","summary":"s","leafUuid":"l"}"#);
    assert_eq!(reader.identity(), None);
    assert_eq!(reader.identity_by_name().expect("stem").session.as_str(), "notes");
    reader.read(said("x").as_bytes());
    reader.read(said("x").replace(SESSION, OTHER).as_bytes());
    assert_eq!(reader.identity().expect("line").session.as_str(), SESSION);
}

#[test]
fn a_flat_agent_file_belongs_to_the_session_of_its_lines() {
    let mut reader = Reader::new("projects/-w-p/agent-ab12.jsonl");
    assert_eq!(reader.identity_by_name(), None);
    let entry = reader.read(said("do it").as_bytes());
    let identity = reader.identity().expect("line");
    assert_eq!(identity.session.as_str(), SESSION);
    assert_eq!(identity.role, Role::Subagent { agent: "ab12".into() });
    assert_eq!(entry.context.agent.as_deref(), Some("ab12"));
    assert_eq!(entry.kind, EntryKind::Injected);
}

#[test]
fn an_agent_file_below_a_session_belongs_to_it_at_once() {
    let path = format!("projects/-w-p/{SESSION}/subagents/workflows/wf_1/agent-ab12.jsonl");
    let identity = Reader::new(&path).identity().expect("directory");
    assert_eq!(identity.session.as_str(), SESSION);
    assert_eq!(identity.role, Role::Subagent { agent: "ab12".into() });
}

#[test]
fn a_fork_names_its_origin_once() {
    let mut reader = Reader::new(&main_path());
    let copied = user(&json!("x"), &json!({ "forkedFrom": { "sessionId": OTHER } }));
    let first = reader.read(copied.as_bytes());
    assert_eq!(first.copied_from.as_ref().map(NativeId::as_str), Some(OTHER));
    assert!(first.facts.contains(&Fact::Fork { from: OTHER.into() }));
    assert!(!reader.read(copied.as_bytes()).facts.iter().any(|f| matches!(f, Fact::Fork { .. })));
    let origin = reader.identity().expect("name").forked_from;
    assert_eq!(origin.expect("told").as_str(), OTHER);
}

#[test]
fn a_message_asked_for_in_another_session_is_a_copy() {
    let copy = user(&json!("x"), &json!({ "requestSessionId": OTHER }));
    assert_eq!(read(&copy).copied_from.expect("copied").as_str(), OTHER);
    let own = user(&json!("x"), &json!({ "requestSessionId": SESSION }));
    assert_eq!(read(&own).copied_from, None);
}

#[test]
fn a_saved_reader_goes_on_and_survives_unknown_and_missing_fields() {
    let mut reader = Reader::new("projects/-w-p/notes.jsonl");
    reader.read(said("x").as_bytes());
    let saved = serde_json::to_string(&reader).expect("saved");
    assert_eq!(serde_json::from_str::<Reader>(&saved).expect("loaded"), reader);
    let reader: Reader = serde_json::from_str(r#"{"news":1}"#).expect("tolerated");
    assert_eq!(reader.identity_by_name(), None);
}

#[test]
fn the_uuid_is_the_identity_wherever_the_line_stands() {
    let entry = read(&said("x"));
    let uuid = b"8f1c2d3e-0000-4000-8000-000000000001";
    assert_eq!(entry.identity, Some(EntryId::derive("claude-uuid", &[uuid])));
    assert_eq!(entry.stamp.expect("stamp").as_str(), SESSION);
}

#[test]
fn a_short_uuid_is_an_identity_only_together_with_time_and_content() {
    let line = |uuid: &str, text: &str, at: &str| {
        let line = json!({"type": "user", "uuid": uuid, "sessionId": SESSION, "timestamp": at,
            "message": {"role": "user", "content": text}});
        read(&line.to_string()).identity
    };
    let at = "2026-01-01T00:00:00.000Z";
    assert_eq!(line("u1", "x", at), line("u1", "x", at));
    assert_ne!(line("u1", "x", at), line("u1", "y", at));
    assert_ne!(line("u1", "x", at), line("u1", "x", "2026-01-01T00:00:01.000Z"));
}
