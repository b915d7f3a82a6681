//! What was called, and what came of it.

use super::*;

fn called(name: &str, input: &Value) -> Vec<Fact> {
    read(&call(name, input)).facts
}

fn the_call(name: &str, input: &Value) -> crate::entry::Call {
    match called(name, input).into_iter().next() {
        Some(Fact::Call(call)) => call,
        other => panic!("no call: {other:?}"),
    }
}

#[test]
fn a_call_is_named_without_control_characters() {
    let name = format!("Task\" >\n<parameter{}", "x".repeat(200));
    let call = the_call(&name, &json!({}));
    assert!(call.name.starts_with("Task\" ><parameter"));
    assert_eq!((call.name.chars().count(), call.id.as_str()), (100, "toolu_1"));
}

#[test]
fn calls_name_the_files_that_they_change() {
    for (name, input, how) in [
        ("Write", json!({ "file_path": "/a" }), FileChange::Written),
        ("Edit", json!({ "file_path": "/a" }), FileChange::Edited),
        ("MultiEdit", json!({ "file_path": "/a", "edits": [] }), FileChange::Edited),
        ("NotebookEdit", json!({ "notebook_path": "/a" }), FileChange::Edited),
    ] {
        let files = the_call(name, &input).files;
        assert_eq!(files.len(), 1, "{name}");
        assert_eq!((files[0].path.as_str(), files[0].how), ("/a", how), "{name}");
    }
    assert!(the_call("Read", &json!({ "file_path": "/a" })).files.is_empty());
}

#[test]
fn only_a_command_that_commits_is_marked() {
    assert!(the_call("Bash", &json!({ "command": "git commit -m x" })).commits);
    assert!(the_call("PowerShell", &json!({ "command": "git commit -m x" })).commits);
    assert!(!the_call("Bash", &json!({ "command": "git status" })).commits);
    assert!(!the_call("Grep", &json!({ "command": "git commit" })).commits);
}

#[test]
fn no_text_of_a_command_stands_in_the_facts() {
    let facts = called("Bash", &json!({ "command": "echo s3cret", "description": "s3cret" }));
    assert!(!format!("{facts:?}").contains("s3cret"));
}

#[test]
fn some_calls_prove_more() {
    let facts = called("WebFetch", &json!({ "url": "https://u:p@example.com/a" }));
    assert!(facts.contains(&Fact::Url("https://example.com/a".into())));
    assert!(called("ExitPlanMode", &json!({ "plan": "p" })).contains(&Fact::Plan));
    let facts = called("AskUserQuestion", &json!({ "questions": [{}, {}] }));
    assert!(facts.contains(&Fact::Question { count: 2 }));
    let todos =
        json!([{ "status": "completed" }, { "status": "pending" }, { "status": "in_progress" }]);
    assert!(
        called("TodoWrite", &json!({ "todos": todos })).contains(&Fact::Todo { open: 2, done: 1 })
    );
}

#[test]
fn a_call_shows_its_telling_argument() {
    let shown = |name: &str, input: Value| texts(call(name, &input).as_bytes());
    let expected = |name: &str, argument: &str| {
        vec![Text::Call { id: "toolu_1".into(), name: name.into(), argument: argument.into() }]
    };
    let bash = json!({ "description": "d", "command": "ls -l" });
    assert_eq!(shown("Bash", bash), expected("Bash", "ls -l"));
    assert_eq!(shown("WebSearch", json!({ "query": "q" })), expected("WebSearch", "q"));
    assert_eq!(shown("Grep", json!({ "pattern": "p", "path": "/a" })), expected("Grep", "p"));
    assert_eq!(shown("Skill", json!({ "skill": "s" })), expected("Skill", "s"));
    assert_eq!(shown("Odd", json!({ "command": 1 })), expected("Odd", ""));
}

#[test]
fn text_and_call_on_one_line_give_both_facts() {
    let line = assistant(&json!([
        { "type": "text", "text": "I look." },
        { "type": "tool_use", "id": "t", "name": "Read", "input": {} },
    ]));
    let entry = read(&line);
    assert_eq!(entry.kind, EntryKind::Answer);
    assert!(entry.facts.iter().any(|fact| matches!(fact, Fact::Call(_))));
    assert_eq!(texts(line.as_bytes()).len(), 2);
    assert_eq!(read(&call("Read", &json!({}))).kind, EntryKind::ToolCall);
}

#[test]
fn a_result_is_ok_unless_it_says_otherwise() {
    let absent = json!([{ "type": "tool_result", "tool_use_id": "toolu_1" }]);
    let absent = user(&absent, &json!({ "toolUseResult": {} }));
    assert_eq!(result_of(&absent).outcome, CallOutcome::Ok);
    assert_eq!(result_of(&absent).call, "toolu_1");
    let failed = result(&json!("Exit code 2\nno such file"), true, &json!("Error: Exit code 2"));
    assert_eq!(result_of(&failed).outcome, CallOutcome::Failed);
    assert_eq!(result_of(&failed).exit, Some(2));
    let blocks = json!([{ "type": "text", "text": "<tool_use_error>x</tool_use_error>" }]);
    assert_eq!(result_of(&result(&blocks, false, &json!([]))).outcome, CallOutcome::Failed);
}

#[test]
fn a_denial_is_told_from_a_failure() {
    for text in [
        "The user doesn't want to proceed with this tool use. The tool use was rejected",
        "Permission to use Bash with command rm x has been denied.",
        "[Request interrupted by user for tool use]",
    ] {
        let line = result(&json!(text), true, &json!("Error: …"));
        assert_eq!(result_of(&line).outcome, CallOutcome::Denied, "{text}");
        assert!(!is_prompt(&line));
    }
    let block = json!([{ "type": "tool_result", "tool_use_id": "t", "content": "needs approval", "is_error": true }]);
    let kind = user(&block, &json!({ "toolDenialKind": "user-rejected" }));
    assert_eq!(result_of(&kind).outcome, CallOutcome::Denied);
}

#[test]
fn a_file_that_quotes_a_denial_was_read() {
    let text = "The user doesn't want to proceed with this tool use";
    let line = result(&json!(text), false, &json!({ "type": "text", "file": {} }));
    assert_eq!(result_of(&line).outcome, CallOutcome::Ok);
}

#[test]
fn work_in_the_background_goes_on() {
    for own in [
        json!({ "stdout": "", "backgroundTaskId": "b1" }),
        json!({ "isAsync": true, "status": "async_launched" }),
    ] {
        assert_eq!(
            result_of(&result(&json!("started"), false, &own)).outcome,
            CallOutcome::Running
        );
    }
}

#[test]
fn commit_lines_count_only_in_the_output_of_a_command_that_did_not_fail() {
    let output = "hook\n[main 1a2b3c4] Subject\n 1 file changed";
    let commits = |line: &str| result_of(line).commits;
    let stdout = json!({ "stdout": output, "stderr": "" });
    assert_eq!(commits(&result(&json!(""), false, &stdout)), ["1a2b3c4"]);
    assert_eq!(commits(&result(&json!(output), false, &Value::Null)), ["1a2b3c4"]);
    assert!(commits(&result(&json!(output), true, &json!("Error"))).is_empty());
    let read = json!({ "type": "text", "file": { "content": output } });
    assert!(commits(&result(&json!(output), false, &read)).is_empty());
}

#[test]
fn what_the_tool_saw_of_git_is_proof() {
    let git = json!({ "commit": { "sha": "1a2b3c4", "kind": "committed" },
                      "pr": { "url": "https://example.com/o/r/pull/1" } });
    let facts =
        read(&result(&json!("ok"), false, &json!({ "stdout": "ok", "gitOperation": git }))).facts;
    assert!(facts.contains(&Fact::Commit("1a2b3c4".into())));
    assert!(facts.contains(&Fact::PullRequest { url: "https://example.com/o/r/pull/1".into() }));
    let odd = json!({ "gitOperation": { "commit": { "sha": "not a hash" } } });
    assert_eq!(read(&result(&json!("ok"), false, &odd)).facts.len(), 1);
}

#[test]
fn a_started_subagent_is_named() {
    let own = json!({ "status": "completed", "agentId": "ab12" });
    let facts = read(&result(&json!([]), false, &own)).facts;
    assert!(facts.contains(&Fact::Subagent { agent: "ab12".into() }));
}

#[test]
fn answers_to_questions_are_results_and_no_prompts() {
    let own = json!({ "questions": [], "answers": { "Which?": "The first" } });
    let line = result(&json!("User has answered your questions"), false, &own);
    assert!(!is_prompt(&line));
    let output = "User has answered your questions".to_owned();
    assert_eq!(texts(line.as_bytes()), [Text::Output { call: "toolu_1".into(), text: output }]);
}

#[test]
fn the_tools_own_form_is_not_given_to_one_of_several_results() {
    let blocks = json!([
        { "type": "tool_result", "tool_use_id": "a", "content": "x" },
        { "type": "tool_result", "tool_use_id": "b", "content": "y" },
    ]);
    let own = json!({ "gitOperation": { "commit": { "sha": "1a2b3c4" } } });
    assert_eq!(read(&user(&blocks, &json!({ "toolUseResult": own }))).facts.len(), 2);
}
