//! Lines that are damaged or odd.

use super::*;

fn reasons(line: &[u8]) -> (EntryKind, Vec<String>) {
    let entry = Reader::new(&main_path()).read(line);
    let reasons = entry.facts.into_iter().filter_map(|fact| match fact {
        Fact::Reason(reason) => Some(reason),
        _ => None,
    });
    (entry.kind, reasons.collect())
}

#[test]
fn what_is_no_object_is_unreadable() {
    for line in [&b"\0\0\0"[..], b"[1]", b"\"s\"", b"{\"type\":\"us", b"null", b"\xff\xfe"] {
        let (kind, reasons) = reasons(line);
        assert_eq!((kind, reasons.len()), (EntryKind::Unreadable, 1), "{line:?}");
    }
}

#[test]
fn a_record_glued_to_a_torn_one_is_kept() {
    let torn = &said("the first text was cut")[..120];
    let line = format!("{torn}{}", said("the second is whole"));
    let (kind, reasons) = reasons(line.as_bytes());
    assert_eq!(kind, EntryKind::Prompt);
    assert!(reasons[0].starts_with("damaged: 120 bytes"), "{reasons:?}");
    assert_eq!(prompt_text(&line), "the second is whole");
}

#[test]
fn a_record_after_nuls_is_kept() {
    let line = format!("\0\0\0\0{}", said("after the crash"));
    assert_eq!(reasons(line.as_bytes()).0, EntryKind::Prompt);
}

#[test]
fn an_object_inside_a_torn_record_is_not_taken_for_one() {
    let line =
        br#"{"type":"user","sessionId":"s","message":{"content":[{"type":"text","text":"x"}"#;
    assert_eq!(reasons(line).0, EntryKind::Unreadable);
}

#[test]
fn of_several_objects_the_last_is_read() {
    let line = format!("{}{}", said("one"), said("two"));
    let (kind, reasons) = reasons(line.as_bytes());
    assert_eq!((kind, reasons.len()), (EntryKind::Prompt, 1));
    assert_eq!(prompt_text(&line), "two");
}

#[test]
fn a_long_record_with_many_objects_is_found_behind_a_torn_one() {
    let torn = &said("cut")[..60];
    let blocks: Vec<Value> =
        (0..3_000).map(|n| json!({ "type": "image", "n": { "n": n } })).collect();
    let line = format!("{torn}{}", user(&json!(blocks), &json!({})));
    assert_eq!(reasons(line.as_bytes()).0, EntryKind::Prompt);
}

#[test]
fn a_line_of_many_starts_is_given_up_in_time() {
    let line = "{\"a\":".repeat(100_000);
    assert_eq!(reasons(line.as_bytes()).0, EntryKind::Unreadable);
}

#[test]
fn fields_of_another_type_and_doubled_keys_do_not_cost_the_line() {
    for fields in [
        json!({ "sessionId": 1, "uuid": [], "cwd": {}, "version": false, "gitBranch": 1.5 }),
        json!({ "toolUseResult": null, "attachment": 3, "origin": null, "forkedFrom": "x" }),
        json!({ "worktreeSession": [1], "timestamp": {}, "isMeta": "no" }),
    ] {
        assert!(is_prompt(&user(&json!("kept"), &fields)), "{fields}");
    }
    let doubled = said("kept").replacen('{', r#"{"type":"assistant","message":7,"cwd":null,"#, 1);
    assert!(is_prompt(&doubled));
}

#[test]
fn surrogates_nuls_and_bad_bytes_do_not_cost_the_line() {
    let line = said("cut XX here").replace("XX", r"\ud83d and \u0000");
    assert_eq!(prompt_text(&line), "cut \u{fffd} and  here");
    let mut bytes = said("cut XX here").into_bytes();
    let at = bytes.windows(2).position(|two| two == b"XX").expect("there");
    bytes[at] = 0xff;
    assert_eq!(reasons(&bytes).0, EntryKind::Prompt);
}

#[test]
fn deep_nesting_does_not_cost_the_line() {
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let open = r#"[{"type":"tool_result","content":"#.repeat(5_000);
    let blocks = format!("{open}null{}", "}]".repeat(5_000));
    for deep in [deep, blocks] {
        let line =
            said("kept").replacen('{', &format!(r#"{{"toolUseResult":null,"data":{deep},"#), 1);
        assert!(is_prompt(&line));
        let line = user(&json!("DEEP"), &json!({})).replace("\"DEEP\"", &deep);
        assert_ne!(read(&line).kind, EntryKind::Unreadable);
        texts(line.as_bytes());
    }
}
