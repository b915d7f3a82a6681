use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::entry::{Call, CallResult, FileChange, FileTouch, Role, TitleVia, Usage};

const OWN: &str = "019d924b-53f5-78f1-a0d4-69aa13191f54";
const PARENT: &str = "019d9249-e0ee-7020-a305-b6369cd02251";
const NAME: &str =
    "sessions/2026/04/15/rollout-2026-04-15T11-58-23-019d924b-53f5-78f1-a0d4-69aa13191f54.jsonl";

fn line(kind: &str, payload: &Value) -> Vec<u8> {
    json!({ "timestamp": "2026-04-15T17:58:29.448Z", "type": kind, "payload": payload })
        .to_string()
        .into_bytes()
}

fn meta(more: &Value) -> Vec<u8> {
    let mut payload = json!({
        "id": OWN, "cwd": "/w/p", "originator": "codex_cli_rs", "cli_version": "0.119.0", "source": "cli",
    });
    for (name, value) in more.as_object().expect("object") {
        payload[name] = value.clone();
    }
    line("session_meta", &payload)
}

/// The entry of one wrapped line in an ordinary session.
fn read(kind: &str, payload: &Value) -> Entry {
    let mut reader = Reader::new(NAME);
    reader.read(&meta(&json!({})));
    reader.read(&line(kind, payload))
}

fn event(payload: &Value) -> Entry {
    read("event_msg", payload)
}

fn item(item: &Value) -> Entry {
    event(&json!({ "type": "item_completed", "thread_id": "T", "item": item }))
}

fn response(payload: &Value) -> Entry {
    read("response_item", payload)
}

fn user(text: &str) -> Value {
    json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] })
}

fn reason(entry: &Entry) -> (EntryKind, &str) {
    match entry.facts.as_slice() {
        [Fact::Reason(reason)] => (entry.kind, reason),
        _ => (entry.kind, ""),
    }
}

#[test]
fn a_prompt_is_told_by_each_of_its_mirrors() {
    let prompt = |via| (EntryKind::Prompt, vec![Fact::Prompt { via }]);
    let of = |entry: Entry| (entry.kind, entry.facts);
    assert_eq!(
        of(event(&json!({ "type": "user_message", "message": "fix it" }))),
        prompt(PromptVia::Event)
    );
    let content = json!([{ "type": "text", "text": "fix it" }]);
    assert_eq!(
        of(item(&json!({ "type": "UserMessage", "content": content }))),
        prompt(PromptVia::Item)
    );
    assert_eq!(of(response(&user("fix it"))), prompt(PromptVia::Response));
}

#[test]
fn an_answer_is_told_by_each_of_its_mirrors() {
    let answer = |message: Option<&str>, via| {
        (EntryKind::Answer, vec![Fact::Answer { message: message.map(str::to_owned), via }])
    };
    let of = |entry: Entry| (entry.kind, entry.facts);
    let message = json!({ "type": "message", "id": "m1", "role": "assistant",
        "content": [{ "type": "output_text", "text": "done" }] });
    assert_eq!(of(response(&message)), answer(Some("m1"), AnswerVia::Response));
    assert_eq!(
        of(event(&json!({ "type": "agent_message", "message": "done" }))),
        answer(None, AnswerVia::Event)
    );
    let content = json!([{ "type": "Text", "text": "done" }]);
    let agent = json!({ "type": "AgentMessage", "id": "m1", "content": content });
    assert_eq!(of(item(&agent)), answer(Some("m1"), AnswerVia::Item));
    let silent = json!({ "type": "message", "role": "assistant", "content": [] });
    assert_eq!(response(&silent).kind, EntryKind::State);
}

#[test]
fn what_the_program_says_is_no_prompt() {
    assert_eq!(response(&user("<environment_context>x")).kind, EntryKind::Injected);
    let developer = json!({ "type": "message", "role": "developer", "content": [{ "text": "x" }] });
    assert_eq!(response(&developer).kind, EntryKind::Injected);
    let exit = event(&json!({ "type": "user_message", "message": "/exit" }));
    assert_eq!((exit.kind, exit.facts), (EntryKind::Command, vec![Fact::End(EndMark::Exit)]));
}

#[test]
fn nobody_prompts_in_a_subagents_thread() {
    let mut reader = Reader::new(NAME);
    let first =
        reader.read(&meta(&json!({ "thread_source": "subagent", "parent_thread_id": PARENT })));
    assert_eq!(first.context.agent.as_deref(), Some(OWN));
    let task =
        reader.read(&line("event_msg", &json!({ "type": "user_message", "message": "look" })));
    assert_eq!((task.kind, task.facts, task.identity), (EntryKind::Injected, vec![], None));
    let exit =
        reader.read(&line("event_msg", &json!({ "type": "user_message", "message": "/exit" })));
    assert_eq!((exit.kind, exit.facts), (EntryKind::Injected, vec![]));
    assert_eq!(reader.read(b"broken").context.agent.as_deref(), Some(OWN));
}

#[test]
fn a_header_gives_place_version_git_and_origin() {
    let mut reader = Reader::new(NAME);
    let git = json!({ "commit_hash": "abc", "branch": "main", "repository_url": "https://t@example.com/o/r" });
    let entry =
        reader.read(&meta(&json!({ "git": git, "forked_from_id": PARENT, "source": "exec" })));
    assert_eq!(entry.kind, EntryKind::State);
    assert_eq!(entry.context.cwd.as_deref(), Some("/w/p"));
    assert_eq!(entry.context.branch.as_deref(), Some("main"));
    assert_eq!(entry.context.version.as_deref(), Some("0.119.0"));
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        entry.facts,
        [
            Fact::Git {
                head: text("abc"),
                branch: text("main"),
                remote: text("https://example.com/o/r")
            },
            Fact::Fork { from: PARENT.to_owned() },
            Fact::Scripted("codex_cli_rs".to_owned()),
        ]
    );
    let plain = Reader::new(NAME).read(&meta(&json!({ "git": {} })));
    assert_eq!(plain.facts, []);
}

#[test]
fn a_foreign_header_is_itself_a_copy_and_gives_no_facts() {
    let mut reader = Reader::new(NAME);
    reader.read(&meta(&json!({})));
    let entry = reader.read(&meta(&json!({ "id": PARENT, "git": { "branch": "x" } })));
    assert_eq!((entry.copied_from, entry.facts.len()), (NativeId::new(PARENT), 0));
    assert_eq!(entry.context, super::super::Context::default());
}

#[test]
fn a_copied_entry_has_the_identity_that_it_has_in_its_origin() {
    let spoken = line("response_item", &user("fix it"));
    let mut origin = Reader::new(NAME);
    origin.read(&meta(&json!({ "id": PARENT })));
    let mut fork = Reader::new(NAME);
    fork.read(&meta(&json!({})));
    fork.read(&meta(&json!({ "id": PARENT })));
    let copy = fork.read(&spoken);
    assert_eq!(copy.copied_from, NativeId::new(PARENT));
    assert!(copy.identity.is_some());
    assert_eq!(copy.identity, origin.read(&spoken).identity);
    assert_ne!(copy.identity, response(&user("fix it")).identity);
}

#[test]
fn noise_has_no_identity() {
    assert_eq!(event(&json!({ "type": "token_count" })).identity, None);
    assert_eq!(response(&json!({ "type": "reasoning" })).identity, None);
    let changes = json!({ "/a": { "type": "add" } });
    assert!(
        event(&json!({ "type": "patch_apply_end", "success": true, "changes": changes }))
            .identity
            .is_some()
    );
}

#[test]
fn a_call_and_its_result_are_told() {
    let arguments = json!({ "cmd": "git commit -m x", "workdir": "/w/p/sub" }).to_string();
    let call = response(&json!({
        "type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": "c1",
    }));
    assert_eq!((call.kind, call.context.cwd.as_deref()), (EntryKind::ToolCall, Some("/w/p/sub")));
    assert_eq!(
        call.facts,
        [Fact::Call(Call {
            id: "c1".to_owned(),
            name: "exec_command".to_owned(),
            files: vec![],
            commits: true,
        })]
    );
    let result = response(&json!({
        "type": "function_call_output", "call_id": "c1",
        "output": "Chunk ID: 1\nWall time: 1 seconds\nProcess exited with code 0\nOutput:\n[main 1a2b3c4] x\n",
    }));
    assert_eq!(
        result.facts,
        [Fact::Result(CallResult {
            call: "c1".to_owned(),
            outcome: CallOutcome::Ok,
            exit: Some(0),
            commits: vec!["1a2b3c4".to_owned()],
        })]
    );
}

#[test]
fn the_end_of_a_command_that_commits_is_awaited_in_a_later_call() {
    let mut reader = Reader::new(NAME);
    let ask = |name: &str, id: &str, arguments: &Value| {
        let call = json!({ "type": "function_call", "name": name, "call_id": id, "arguments": arguments.to_string() });
        line("response_item", &call)
    };
    let commits =
        |entry: &Entry| matches!(entry.facts.first(), Some(Fact::Call(call)) if call.commits);
    reader.read(&ask("exec_command", "c1", &json!({ "cmd": "git commit -m x" })));
    let running = "Chunk ID: 1\nProcess running with session ID 7\nOutput:\n";
    reader.read(&line(
        "response_item",
        &json!({
            "type": "function_call_output", "call_id": "c1", "output": running,
        }),
    ));
    // What a restart loads is what was saved.
    let saved = serde_json::to_string(&reader).expect("plain data");
    let mut reader: Reader = serde_json::from_str(&saved).expect("plain data");
    assert!(commits(&reader.read(&ask(
        "write_stdin",
        "c2",
        &json!({ "session_id": 7, "chars": "" })
    ))));
    assert!(!commits(&reader.read(&ask(
        "write_stdin",
        "c3",
        &json!({ "session_id": 8, "chars": "" })
    ))));
}

#[test]
fn what_codex_itself_saw_is_proof() {
    let changes =
        json!({ "/w/a": { "type": "add" }, "/w/b": { "type": "update", "move_path": null } });
    let files = vec![
        Fact::File(FileTouch { path: "/w/a".to_owned(), how: FileChange::Written }),
        Fact::File(FileTouch { path: "/w/b".to_owned(), how: FileChange::Edited }),
    ];
    let applied = event(&json!({ "type": "patch_apply_end", "success": true, "changes": changes }));
    assert_eq!((applied.kind, &applied.facts), (EntryKind::ToolResult, &files));
    assert_eq!(
        item(&json!({ "type": "FileChange", "status": "completed", "changes": changes })).facts,
        files
    );
    assert_eq!(
        event(&json!({ "type": "patch_apply_end", "success": false, "changes": changes })).facts,
        []
    );
    assert_eq!(
        item(&json!({ "type": "FileChange", "status": "failed", "changes": changes })).facts,
        []
    );
    let command = |exit: i32, line: &str| {
        item(&json!({
            "type": "CommandExecution", "id": "e1", "command": ["/bin/bash", "-lc", line], "exit_code": exit,
            "aggregated_output": "[main 1a2b3c4] x\n 1 file changed\n",
        }))
    };
    assert_eq!(command(0, "git commit -m x").facts, [Fact::Commit("1a2b3c4".to_owned())]);
    assert_eq!(command(1, "git commit -m x").facts, []);
    assert_eq!(command(0, "cat log").facts, []);
}

#[test]
fn a_running_total_leaves_out_what_came_from_the_cache() {
    let total = json!({ "input_tokens": 100, "cached_input_tokens": 60, "cache_write_input_tokens": 10,
        "output_tokens": 7, "total_tokens": 107 });
    let entry = event(&json!({ "type": "token_count", "info": { "total_token_usage": total } }));
    let usage = Usage {
        input: 30,
        output: 7,
        cache_read: 60,
        cache_write: 10,
        running_total: true,
        ..Usage::default()
    };
    assert_eq!((entry.kind, entry.facts), (EntryKind::Telemetry, vec![Fact::Usage(usage)]));
    assert_eq!(event(&json!({ "type": "token_count", "info": null })).facts, []);
}

#[test]
fn state_lines_give_their_small_facts() {
    let turn = read("turn_context", &json!({ "cwd": "/w/q", "model": "gpt-x" }));
    assert_eq!((turn.kind, turn.context.cwd.as_deref()), (EntryKind::State, Some("/w/q")));
    assert_eq!(turn.facts, [Fact::Model("gpt-x".to_owned())]);
    let facts = |payload: Value| event(&payload).facts;
    assert_eq!(
        facts(json!({ "type": "turn_aborted", "reason": "interrupted" })),
        [Fact::Interrupted]
    );
    assert_eq!(facts(json!({ "type": "turn_aborted", "reason": "review_ended" })), []);
    assert_eq!(facts(json!({ "type": "thread_rolled_back", "num_turns": 2 })), [Fact::Rollback(2)]);
    assert_eq!(facts(json!({ "type": "error", "message": "x" })), [Fact::ApiError]);
    assert_eq!(
        facts(json!({ "type": "thread_name_updated", "thread_name": "x" })),
        [Fact::Title(TitleVia::Custom)]
    );
    let agent = [Fact::Subagent { agent: PARENT.to_owned() }];
    assert_eq!(facts(json!({ "type": "sub_agent_activity", "agent_thread_id": PARENT })), agent);
    assert_eq!(item(&json!({ "type": "Plan", "text": "x" })).facts, [Fact::Plan]);
    let spawned = json!({ "agent_id": PARENT, "nickname": "x" }).to_string();
    let result =
        response(&json!({ "type": "function_call_output", "call_id": "c", "output": spawned }));
    assert_eq!(result.facts.get(1..), Some(&agent[..]));
}

#[test]
fn a_compaction_is_only_a_mark() {
    for entry in [
        read(
            "compacted",
            &json!({ "message": "summary", "replacement_history": [user("old prompt")] }),
        ),
        event(&json!({ "type": "context_compacted" })),
        item(&json!({ "type": "ContextCompaction" })),
    ] {
        assert_eq!(
            (entry.kind, entry.facts.len(), entry.identity),
            (EntryKind::Compaction, 0, None)
        );
    }
}

#[test]
fn unknown_shapes_are_named_and_keep_their_time() {
    let entry = event(&json!({ "type": "brand_new" }));
    assert_eq!(reason(&entry), (EntryKind::Unknown, "event_msg/brand_new"));
    assert!(entry.at.is_some());
    assert_eq!(reason(&item(&json!({ "type": "New" }))).1, "event_msg/item_completed/New");
    assert_eq!(reason(&response(&json!({ "role": "user", "content": [] }))).1, "response_item");
    assert_eq!(reason(&read("novel", &json!(7))).1, "novel");
    let long = read(&format!("a\n{}", "b".repeat(100)), &json!({}));
    assert_eq!(reason(&long).1.chars().count(), 60);
    assert!(!reason(&long).1.contains('\n'));
}

#[test]
fn saved_output_of_codex_exec_is_never_content() {
    let mut reader = Reader::new("sessions/x.jsonl");
    let message = br#"{"type":"item.completed","item":{"type":"agent_message","text":"hi"}}"#;
    assert_eq!(reason(&reader.read(message)), (EntryKind::Unknown, "exec-json/item.completed"));
    assert_eq!(
        reason(&reader.read(br#"{"type":"thread.started","thread_id":"x"}"#)).1,
        "exec-json/thread.started"
    );
    assert!(texts(message).is_empty());
}

#[test]
fn lines_that_are_no_objects_are_unreadable_and_cost_nothing_else() {
    let mut reader = Reader::new(NAME);
    reader.read(&meta(&json!({})));
    assert_eq!(reason(&reader.read(b"[]")), (EntryKind::Unreadable, "not a JSON object"));
    assert_eq!(reason(&reader.read(b"{\"type\":")), (EntryKind::Unreadable, "not JSON"));
    assert_eq!(reason(&reader.read(&[0, 0])), (EntryKind::Unreadable, "NUL bytes"));
    assert_eq!(reader.read(b" \r").kind, EntryKind::State);
    assert_eq!(reader.read(&line("response_item", &user("go on"))).kind, EntryKind::Prompt);
}

#[test]
fn a_record_glued_to_a_torn_one_is_read_and_the_damage_told() {
    let mut glued = br#"{"timestamp":"2026-04-15T17:5"#.to_vec();
    glued.extend(line("response_item", &user("fix it")));
    let entry = Reader::new(NAME).read(&glued);
    assert_eq!(entry.kind, EntryKind::Prompt);
    assert_eq!(
        entry.facts.last(),
        Some(&Fact::Reason("damaged: 29 bytes of a torn record before this one".to_owned()))
    );
    assert_eq!(texts(&glued), [Text::Prompt("fix it".to_owned())]);
}

#[test]
fn the_bare_grammar_is_read() {
    let mut reader = Reader::new("sessions/rollout-2025-08-25T11-31-40-x.jsonl");
    let header = json!({ "id": OWN, "timestamp": "2025-08-25T10:59:03.435Z", "instructions": null,
        "git": { "branch": "main" } });
    let head = reader.read(header.to_string().as_bytes());
    assert_eq!((head.kind, head.at.is_some(), head.facts.len()), (EntryKind::State, true, 1));
    assert_eq!(
        reader.identity().map(|it| (it.session.to_string(), it.role)),
        Some((OWN.to_owned(), Role::Main))
    );
    let environment = user("<environment_context>\nCurrent working directory: /w\nx");
    let entry = reader.read(environment.to_string().as_bytes());
    assert_eq!((entry.kind, entry.context.cwd.as_deref()), (EntryKind::Injected, Some("/w")));
    assert_eq!(reader.read(br#"{"record_type":"state"}"#).kind, EntryKind::State);
    let yes = user("yes").to_string();
    let (first, second) = (reader.read(yes.as_bytes()), reader.read(yes.as_bytes()));
    assert_eq!((first.kind, second.kind), (EntryKind::Prompt, EntryKind::Prompt));
    assert_ne!(first.identity, second.identity, "a bare line has no time to tell it from its like");
}

#[test]
fn a_saved_reader_of_another_version_loads() {
    assert_eq!(serde_json::from_str::<Reader>("{}").expect("defaults"), Reader::default());
    let newer = r#"{"thread":{"stem":"x","new":1},"new":{"a":[]},"lines":3}"#;
    assert_eq!(serde_json::from_str::<Reader>(newer).expect("ignores").lines, 3);
}

#[test]
fn texts_are_what_a_person_would_read() {
    let text = |kind: &str, payload: &Value| texts(&line(kind, payload));
    let wrapped = "# Context from my IDE setup:\n## My request for Codex:\nfix it";
    let prompt = [Text::Prompt("fix it".to_owned())];
    assert_eq!(text("event_msg", &json!({ "type": "user_message", "message": wrapped })), prompt);
    assert_eq!(text("response_item", &user(wrapped)), prompt);
    assert_eq!(text("response_item", &user("<skill>x")), []);
    let named = json!({ "type": "thread_name_updated", "thread_name": " Parser " });
    assert_eq!(text("event_msg", &named), [Text::Title("Parser".to_owned())]);
    let arguments = json!({ "command": ["bash", "-lc", "ls -l"] }).to_string();
    let call = json!({ "type": "function_call", "name": "shell", "call_id": "c1", "arguments": arguments });
    assert_eq!(
        text("response_item", &call),
        [Text::Call {
            id: "c1".to_owned(),
            name: "shell".to_owned(),
            argument: "ls -l".to_owned(),
        }]
    );
    let output = json!({ "type": "function_call_output", "call_id": "c1", "output": "Exit code: 0\nOutput:\nx" });
    let shown = Text::Output { call: "c1".to_owned(), text: "x".to_owned() };
    assert_eq!(text("response_item", &output), [shown]);
    assert_eq!(
        text("compacted", &json!({ "message": "x", "replacement_history": [user("x")] })),
        []
    );
}

/// Lines of all kinds, to be damaged.
fn samples() -> Vec<Vec<u8>> {
    let changes = json!({ "/w/é": { "type": "update", "move_path": "/w/b" } });
    vec![
        meta(
            &json!({ "source": { "subagent": { "thread_spawn": { "parent_thread_id": PARENT } } } }),
        ),
        meta(&json!({ "id": PARENT, "forked_from_ordinal_exclusive": 3 })),
        line("turn_context", &json!({ "turn_id": OWN, "cwd": "/w", "model": "m" })),
        line("response_item", &user("# Context from my IDE setup:\n## My request for Codex:\né")),
        line(
            "response_item",
            &json!({ "type": "function_call", "name": "shell", "call_id": "c",
            "arguments": "{\"command\":[\"bash\",\"-lc\",\"apply_patch <<E\\n*** Begin Patch\\n*** Add File: é\\n\"]}" }),
        ),
        line(
            "response_item",
            &json!({ "type": "function_call_output", "call_id": "c",
            "output": "Chunk ID: é\nProcess exited with code 0\nOutput:\n[main 1a2b3c4] x" }),
        ),
        line(
            "event_msg",
            &json!({ "type": "patch_apply_end", "success": true, "changes": changes }),
        ),
        line(
            "event_msg",
            &json!({ "type": "item_completed", "item": { "type": "CommandExecution",
            "command": ["sh", "-c", "git commit"], "exit_code": 0, "stdout": "[a 1234567] x" } }),
        ),
        json!({ "id": OWN, "timestamp": 1_776_275_909, "git": {} }).to_string().into_bytes(),
        br#"{"record_type":"state"}"#.to_vec(),
    ]
}

proptest! {
    #[test]
    fn no_bytes_stop_the_reader(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..8)) {
        let mut reader = Reader::new(NAME);
        for line in &lines {
            reader.read(line);
            texts(line);
        }
        reader.identity_by_name();
    }

    #[test]
    fn no_damage_to_real_lines_stops_the_reader(
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), prop::option::of(any::<u8>()), 0_usize..9),
            1..12,
        ),
    ) {
        let mut reader = Reader::new(NAME);
        for (which, at, byte, cut) in edits {
            let samples = samples();
            let mut line = samples[which.index(samples.len())].clone();
            let at = at.index(line.len());
            match byte {
                Some(byte) => line[at] = byte,
                None => { line.drain(at..(at + cut).min(line.len())); }
            }
            let entry = reader.read(&line);
            texts(&line);
            prop_assert_eq!(entry.context.agent.is_some(), matches!(
                reader.identity().map(|it| it.role), Some(Role::Subagent { .. })
            ));
        }
        let saved = serde_json::to_string(&reader).expect("plain data");
        prop_assert_eq!(serde_json::from_str::<Reader>(&saved).expect("plain data"), reader);
    }

    #[test]
    fn any_name_of_a_file_gives_an_identity_or_none(path in "\\PC{0,60}") {
        let reader = Reader::new(&path);
        prop_assert_eq!(reader.identity(), None);
        reader.identity_by_name();
    }
}
