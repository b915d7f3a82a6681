use super::*;

const OWN: &str = "019d924b-53f5-78f1-a0d4-69aa13191f54";
const PARENT: &str = "019d9249-e0ee-7020-a305-b6369cd02251";
/// Began before the thread [`OWN`] was made.
const OLD_TURN: &str = "019d924a-361e-7a82-8f76-6b8406143f52";
/// Began after it.
const NEW_TURN: &str = "019d924b-6b70-7963-9863-ad2e0ee1f9c1";

fn at(millis: i64) -> Option<Timestamp> {
    Timestamp::from_millisecond(1_776_275_909_000 + millis).ok()
}

fn header(
    thread: &mut Thread,
    meta: &serde_json::Value,
    millis: i64,
    ordinal: Option<i64>,
) -> Header {
    let text = meta.to_string();
    thread.header(&Fields::parse(&text).expect("object"), at(millis), ordinal)
}

fn thread(meta: &serde_json::Value) -> Thread {
    let mut thread = Thread::new("sessions/2026/04/15/rollout-2026-04-15T11-58-23-x.jsonl");
    assert_eq!(header(&mut thread, meta, 0, Some(0)), Header::First);
    thread
}

fn is_copy(thread: &mut Thread, turn: Option<&str>, millis: i64) -> bool {
    thread.copied_from(turn, at(millis), None).is_some()
}

fn role(meta: &serde_json::Value) -> (String, Role) {
    let identity = thread(meta).identity().expect("a header was read");
    (identity.session.to_string(), identity.role)
}

fn subagent() -> Role {
    Role::Subagent { agent: OWN.to_owned() }
}

#[test]
fn the_first_header_names_the_thread_and_no_later_one_does() {
    let mut thread = thread(&serde_json::json!({ "id": OWN, "source": "cli" }));
    assert_eq!(header(&mut thread, &serde_json::json!({ "id": OWN }), 10, None), Header::Again);
    assert_eq!(
        header(&mut thread, &serde_json::json!({ "id": PARENT }), 20, None),
        Header::Foreign
    );
    let identity = thread.identity().expect("a header was read");
    assert_eq!((identity.session.as_str(), identity.role), (OWN, Role::Main));
    assert_eq!(identity.forked_from.as_ref().map(NativeId::as_str), Some(PARENT));
}

#[test]
fn a_file_without_a_header_is_named_by_its_name() {
    for name in [
        format!("sessions/2026/04/15/rollout-2026-04-15T11-58-23-{OWN}.jsonl"),
        format!("archived_sessions/rollout-2026-04-15T11-58-23-{OWN}.jsonl.zst"),
        format!("sessions/2026/04/15/rollout-2026-04-15T11-58-23-{OWN}_{PARENT}.jsonl"),
    ] {
        let mut thread = Thread::new(&name);
        assert_eq!(thread.identity(), None, "nothing was read");
        let by_name = thread.identity_by_name().expect("a name");
        assert_eq!(by_name.session.as_str(), OWN, "{name}");
        thread.begins_without_header();
        assert_eq!(thread.identity(), Some(by_name));
    }
}

#[test]
fn a_name_without_an_id_is_the_last_resort() {
    let mut thread = Thread::new("sessions/copy of.jsonl.zst");
    thread.begins_without_header();
    assert_eq!(thread.identity(), None);
    assert_eq!(
        thread.identity_by_name().map(|it| it.session.to_string()).as_deref(),
        Some("copy of")
    );
}

#[test]
fn a_subagent_belongs_to_the_root_of_its_tree() {
    let source =
        serde_json::json!({ "subagent": { "thread_spawn": { "parent_thread_id": PARENT } } });
    let root = "019d9248-0000-7000-8000-000000000000";
    let meta = serde_json::json!({ "id": OWN, "session_id": root, "source": source });
    assert_eq!(role(&meta), (root.to_owned(), subagent()));
    let meta = serde_json::json!({ "id": OWN, "session_id": OWN, "source": source });
    assert_eq!(role(&meta), (PARENT.to_owned(), subagent()));
    let meta =
        serde_json::json!({ "id": OWN, "thread_source": "subagent", "parent_thread_id": PARENT });
    assert_eq!(role(&meta), (PARENT.to_owned(), subagent()));
    let meta =
        serde_json::json!({ "id": OWN, "thread_source": "subagent", "forked_from_id": PARENT });
    assert_eq!(role(&meta), (PARENT.to_owned(), subagent()));
    assert_eq!(thread(&meta).forked_from(), None, "a subagent is no fork of the user's");
}

#[test]
fn a_helper_without_a_parent_is_a_machines() {
    for source in [
        serde_json::json!({ "subagent": "review" }),
        serde_json::json!({ "subagent": { "other": "guardian" } }),
        serde_json::json!({ "internal": "memory_consolidation" }),
    ] {
        assert_eq!(
            role(&serde_json::json!({ "id": OWN, "source": source })),
            (OWN.to_owned(), Role::Machine)
        );
    }
    for kind in ["guardian_review", "memory_consolidation"] {
        let meta = serde_json::json!({ "id": OWN, "source": "cli", "thread_source": kind });
        assert_eq!(role(&meta), (OWN.to_owned(), Role::Machine));
    }
    let meta = serde_json::json!({ "id": OWN, "source": "vscode", "thread_source": "agent_created_thread" });
    assert_eq!(role(&meta), (OWN.to_owned(), Role::Main));
}

#[test]
fn lines_below_the_start_of_a_subagents_own_history_are_copies() {
    let mut thread = thread(&serde_json::json!({
        "id": OWN, "session_id": PARENT, "parent_thread_id": PARENT, "thread_source": "subagent",
        "subagent_history_start_ordinal": 3,
    }));
    assert_eq!(thread.copied_from(None, at(0), Some(2)), NativeId::new(PARENT));
    assert_eq!(thread.copied_from(None, at(0), Some(3)), None);
}

#[test]
fn a_fork_that_only_refers_to_its_origin_holds_no_copies() {
    let meta = serde_json::json!({ "id": OWN, "forked_from_id": PARENT, "forked_from_ordinal_exclusive": 61 });
    let mut without = thread(&meta);
    assert_eq!(without.copied_from(None, at(0), Some(5)), None);
    let mut with = thread(&meta);
    assert_eq!(
        header(&mut with, &serde_json::json!({ "id": PARENT }), 1, Some(1)),
        Header::Foreign
    );
    assert_eq!(with.copied_from(None, at(900_000), Some(60)), NativeId::new(PARENT));
    assert_eq!(with.copied_from(None, at(900_000), Some(61)), None);
}

#[test]
fn history_after_a_foreign_header_lasts_until_the_first_pause() {
    let mut thread = thread(&serde_json::json!({ "id": OWN, "forked_from_id": PARENT }));
    assert!(!is_copy(&mut thread, None, 100));
    header(&mut thread, &serde_json::json!({ "id": PARENT }), 6_000, None);
    assert!(is_copy(&mut thread, None, 6_001));
    // A long history takes more than a second to copy, but without pauses.
    assert!(is_copy(&mut thread, None, 6_900));
    assert!(is_copy(&mut thread, None, 7_800));
    assert!(!is_copy(&mut thread, None, 9_000));
    assert!(!is_copy(&mut thread, None, 9_001), "the pause ends it for good");
}

#[test]
fn the_first_turn_of_its_own_ends_the_copy_at_once() {
    let mut thread = thread(&serde_json::json!({ "id": OWN, "forked_from_id": PARENT }));
    header(&mut thread, &serde_json::json!({ "id": PARENT }), 0, None);
    assert!(is_copy(&mut thread, Some(OLD_TURN), 1));
    assert!(is_copy(&mut thread, None, 2));
    assert!(!is_copy(&mut thread, Some(NEW_TURN), 3));
    assert!(!is_copy(&mut thread, None, 4));
}

#[test]
fn a_turn_older_than_the_thread_is_a_copy_even_after_a_pause() {
    let mut thread = thread(&serde_json::json!({ "id": OWN, "forked_from_id": PARENT }));
    header(&mut thread, &serde_json::json!({ "id": PARENT }), 0, None);
    assert!(!is_copy(&mut thread, None, 5_000));
    assert!(is_copy(&mut thread, Some(OLD_TURN), 5_001));
    assert!(is_copy(&mut thread, None, 5_002));
}

#[test]
fn a_thread_that_was_not_forked_has_no_copies() {
    let mut thread = thread(&serde_json::json!({ "id": OWN }));
    assert!(!is_copy(&mut thread, Some(OLD_TURN), 0));
    assert!(!is_copy(&mut thread, None, 1));
}

#[test]
fn only_uuids_of_version_7_tell_their_time() {
    assert!(creation(OLD_TURN) < creation(OWN) && creation(OWN) < creation(NEW_TURN));
    assert_eq!(creation("613a9a68-8816-40b2-a2d4-041ade599da6"), None);
    assert_eq!(creation("é19d924a-361e-7a82-8f76-6b8406143f5"), None);
}
