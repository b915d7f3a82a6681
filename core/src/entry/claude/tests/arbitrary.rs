//! Bytes that nobody wrote.

use proptest::prelude::*;

use super::*;

/// Valid lines to be damaged.
fn samples() -> Vec<String> {
    vec![
        said("Fix the parser <system-reminder>x</system-reminder>"),
        said("<command-name>/exit</command-name>"),
        assistant(&json!([{ "type": "text", "text": "Done" }, { "type": "thinking" }])),
        call("Edit", &json!({ "file_path": "/a", "new_string": "\u{1f600}" })),
        call("TodoWrite", &json!({ "todos": [{ "status": "completed" }] })),
        result(
            &json!("[main 1a2b3c4] x"),
            false,
            &json!({ "stdout": "[main 1a2b3c4] x", "gitOperation": {} }),
        ),
        result(&json!([{ "type": "text", "text": "Exit code 1" }]), true, &json!("Error")),
        line("attachment", &json!({ "attachment": { "type": "queued_command", "prompt": "x" } })),
        json!({ "type": "worktree-state", "worktreeSession": { "originalCwd": "/w" } }).to_string(),
    ]
}

fn read_all_ways(line: &[u8]) {
    for path in [main_path(), format!("projects/-w/{SESSION}/subagents/agent-a.jsonl")] {
        let mut reader = Reader::new(&path);
        let entry = reader.read(line);
        if entry.kind == EntryKind::Unreadable {
            assert!(matches!(entry.facts.as_slice(), [Fact::Reason(_)]));
        }
    }
    texts(line);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(line in proptest::collection::vec(any::<u8>(), 0..400)) {
        read_all_ways(&line);
    }

    #[test]
    fn any_path_is_taken_without_panic(path in ".{0,80}") {
        let mut reader = Reader::new(&path);
        reader.read(said("x").as_bytes());
        prop_assert!(reader.identity().is_some());
    }

    #[test]
    fn damaged_lines_are_read_without_panic(
        which in any::<prop::sample::Index>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0..5_u8, any::<u8>()), 1..6),
        glued in any::<prop::sample::Index>(),
    ) {
        let samples = samples();
        let mut line = which.get(&samples).clone().into_bytes();
        for (at, what, byte) in edits {
            if line.is_empty() {
                break;
            }
            let at = at.index(line.len());
            match what {
                0 => line[at] = byte,
                1 => line.truncate(at),
                2 => { line.remove(at); }
                3 => line.insert(at, byte),
                _ => line.extend_from_slice(glued.get(&samples).as_bytes()),
            }
        }
        read_all_ways(&line);
    }

    #[test]
    fn a_field_of_any_type_is_tolerated(
        which in any::<prop::sample::Index>(),
        field in any::<prop::sample::Index>(),
        odd in any::<prop::sample::Index>(),
    ) {
        let odds = [json!(null), json!(true), json!(-1.5), json!("x"), json!([1, {}]), json!({ "type": 1 })];
        let mut line: Value = serde_json::from_str(which.get::<String>(&samples())).expect("a sample");
        let object = line.as_object_mut().expect("an object");
        let keys: Vec<String> = object.keys().cloned().collect();
        object.insert(field.get(&keys).clone(), odd.get(&odds).clone());
        let entry = Reader::new(&main_path()).read(line.to_string().as_bytes());
        prop_assert_ne!(entry.kind, EntryKind::Unreadable);
    }
}
