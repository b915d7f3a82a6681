//! The shared corpus of real session files. Skipped, with a word, where it is not there.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{Home, copy_tree, corpus};

/// Files whose machine-made expectation is not followed, and why.
const MISJUDGED: [(&str, &str); 8] = [
    ("21a2c32d-e75c-56fc-a78a-8a30762ac732", "answers without a message id are answers each"),
    ("98fd1e3e-a53c-56ea-b36b-1acfd9c2f726", "answers without a message id are answers each"),
    (
        "f7594e2b-a01a-4dde-b65e-7fd0625e8c42",
        "a tool's name is kept without its control characters",
    ),
    ("0fae0449-64d3-4788-8622-d3a47d82c14b", "`git rebase --continue` makes a commit too"),
    ("21849da6-9912-558d-9397-c13f352b139d", "three files hold the same entries, which count once"),
    ("580b0f9f-39d5-587a-80ff-646d59a58711", "three files hold the same entries, which count once"),
    ("8c5dc068-b59a-5081-8530-f68448192d51", "three files hold the same entries, which count once"),
    (
        "cfc75602-348f-5e2b-bdc6-8c07b7606ca0",
        "its times and ids are the words `[trimmed for fixture]`",
    ),
];

/// Copies the corpus into a scratch home and catches up.
fn caught_up(test: &str) -> Option<(Home, Value)> {
    let corpus = corpus(test)?;
    let home = Home::with_idle_after("20m");
    copy_tree(&corpus.join("claude"), &home.path("home/.claude"));
    copy_tree(&corpus.join("codex"), &home.path("home/.codex"));
    let text = std::fs::read_to_string(corpus.join("expected-machine.json")).expect("read");
    let mut expected: BTreeMap<String, Value> = serde_json::from_str(&text).expect("JSON");
    let text = std::fs::read_to_string(corpus.join("expected.json")).expect("read");
    // The facts that were checked by eye win over those that were not.
    expected.extend(serde_json::from_str::<BTreeMap<String, Value>>(&text).expect("JSON"));
    home.once().ok();
    Some((home, serde_json::to_value(expected).expect("JSON")))
}

#[test]
fn the_corpus_is_read_whole_and_the_sessions_are_as_expected() {
    let Some((home, expected)) = caught_up("corpus") else { return };
    let sessions = home.ask(&["sessions"]);
    let by_id: BTreeMap<&str, &Value> = sessions
        .as_array()
        .expect("a list")
        .iter()
        .map(|session| (session["id"].as_str().expect("text"), session))
        .collect();
    let mut wrong = Vec::new();
    let mut n = 0;
    for (path, facts) in expected.as_object().expect("an object") {
        // Subagents stand under their parents; what was copied from a parent is not to be counted.
        if facts["kind"] != "main" || facts["inherited_prefix_included"] == true {
            continue;
        }
        n += 1;
        let stem = path.rsplit('/').next().expect("a name").trim_end_matches(".jsonl");
        let id = facts["session_id"].as_str().expect("text");
        // formats.md 1.6: the stem names the session where it is a UUID, whatever its lines say.
        let Some(session) = by_id.get(id).or_else(|| by_id.get(stem)) else {
            wrong.push(format!("{path}: no session {id}"));
            continue;
        };
        for (ours, theirs) in [
            ("cwd", "cwd"),
            ("started_at", "first_timestamp"),
            ("last_at", "last_timestamp"),
            ("prompts", "human_prompts"),
            ("answers", "assistant_text_messages"),
            ("tool_calls", "tool_calls"),
            ("commits", "commits"),
            ("meaningful", "meaningful"),
        ] {
            if session[ours] != facts[theirs] {
                wrong.push(format!(
                    "{path}: {ours} is {}, expected {}",
                    session[ours], facts[theirs]
                ));
            }
        }
    }
    assert!(n > 100, "{n} files");
    wrong.retain(|line| !MISJUDGED.iter().any(|(file, _)| line.contains(file)));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_prompt_of_the_corpus_stands_in_the_ledger_or_in_an_envelope() {
    let Some((home, expected)) = caught_up("corpus privacy") else { return };
    // Short ones are words that stand anywhere, and a prompt may be nothing but the path of the project.
    let prompts: Vec<&str> = expected
        .as_object()
        .expect("an object")
        .values()
        .filter_map(|facts| facts["prompt_heads"].as_array())
        .flatten()
        .filter_map(Value::as_str)
        .filter(|prompt| prompt.len() >= 30 && prompt.contains(' '))
        .collect();
    assert!(prompts.len() > 100);
    for file in crate::support::files_below(&home.state()) {
        let text = String::from_utf8_lossy(&std::fs::read(&file).expect("read")).into_owned();
        for prompt in &prompts {
            assert!(!text.contains(prompt), "{} holds a prompt: {prompt}", file.display());
        }
    }
}

#[test]
fn a_second_run_over_the_corpus_adds_nothing() {
    let Some((home, _)) = caught_up("corpus twice") else { return };
    let events = || home.ctl(&["status", "--json"]).json()["ledger"]["events"].clone();
    let (before, envelopes, notes) = (events(), home.envelopes(), home.notes());
    home.once().ok();
    assert_eq!((events(), home.envelopes(), home.notes()), (before, envelopes, notes));
}

#[test]
fn the_hand_made_files_give_what_the_formats_demand() {
    let Some(corpus) = corpus("synthetic") else { return };
    let home = Home::with_idle_after("20m");
    copy_tree(&corpus.join("synthetic/claude"), &home.path("home/.claude"));
    copy_tree(&corpus.join("synthetic/codex"), &home.path("home/.codex"));
    home.once().ok();
    let claude = |n: u32| home.session(&format!("11111111-1111-4111-8111-111111111{n}"));
    let codex = |n: u32| home.session(&format!("01a0aaaa-0000-7000-8000-00000000000{n}"));
    // formats.md part 5, and what the index of these files says of each: prompts, answers, and whether it holds work.
    let expected = [
        (claude(111), "torn, glued and damaged lines", (4, 2, true)),
        (claude(112), "a record glued to a torn one", (2, 0, false)),
        (claude(113), "a line of 6 MB", (1, 1, true)),
        (claude(114), "one session in two projects", (3, 3, true)),
        (claude(115), "a fork, without what it copied", (1, 1, true)),
        (claude(117), "an exit alone", (0, 0, false)),
        (codex(1), "active and archived", (1, 1, true)),
        (codex(3), "packed", (1, 1, true)),
    ];
    assert!(claude(116).is_null(), "titles of other sessions alone are no session");
    for (session, what, facts) in expected {
        let found = (&session["prompts"], &session["answers"], &session["meaningful"]);
        let (prompts, answers, meaningful) = facts;
        let expected = (&prompts.into(), &answers.into(), &meaningful.into());
        assert_eq!(found, expected, "{what}");
    }
    assert_eq!(codex(1)["commits"].as_array().map(Vec::len), Some(1));
    assert_eq!(claude(115)["forked_from"], claude(114)["id"]);
    assert_eq!(codex(2), Value::Null, "a subagent stands under its parent");
    assert_eq!(codex(4), Value::Null, "a git-lfs pointer is no session");
}
