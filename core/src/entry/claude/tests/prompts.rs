//! Who speaks.

use super::*;

#[test]
fn plain_text_is_a_prompt() {
    assert!(is_prompt(&said("Fix the parser")));
    assert_eq!(read(&said("x")).facts, [Fact::Prompt { via: PromptVia::User }]);
}

#[test]
fn flags_of_the_line_take_a_prompt_away() {
    for flags in [
        json!({ "isMeta": true }),
        json!({ "isSidechain": true }),
        json!({ "isVisibleInTranscriptOnly": true }),
        json!({ "origin": { "kind": "task-notification" } }),
    ] {
        assert!(!is_prompt(&user(&json!("text"), &flags)), "{flags}");
    }
    assert!(is_prompt(&user(&json!("text"), &json!({ "origin": { "kind": "human" } }))));
}

#[test]
fn texts_of_machines_are_injected() {
    for text in [
        "<task-notification>\n<task-id>1</task-id></task-notification>",
        "<teammate-message teammate_id=\"lead\">go</teammate-message>",
        "<tick>1</tick>",
        "<user-prompt-submit-hook>x</user-prompt-submit-hook>",
        "Stop hook feedback:\n- no",
        "Operation stopped by hook: no",
        "Base directory for this skill: /s",
        "<system-reminder>be brief</system-reminder>",
        "<system-reminder>never closed",
        "  \u{feff}",
    ] {
        assert!(!is_prompt(&said(text)), "{text}");
        assert_eq!(read(&said(text)).kind, EntryKind::Injected, "{text}");
    }
}

#[test]
fn an_envelope_is_cut_off_and_the_rest_is_the_prompt() {
    let text = "<ide_opened_file>The user opened /a</ide_opened_file>\n\
                <system-reminder>x</system-reminder> Do it <system-reminder>y</system-reminder>";
    assert_eq!(prompt_text(&said(text)), "Do it");
    let blocks = json!([
        { "type": "text", "text": "<ide_selection>lines</ide_selection>" },
        { "type": "text", "text": "One" }, "stray", { "type": "text", "text": "Two" },
    ]);
    assert_eq!(prompt_text(&user(&blocks, &json!({}))), "One\n\nTwo");
}

#[test]
fn an_image_alone_is_a_prompt() {
    let image = json!([{ "type": "image", "source": { "type": "base64", "data": "AA" } }]);
    assert!(is_prompt(&user(&image, &json!({}))));
    assert!(!is_prompt(&user(&json!([]), &json!({}))));
}

#[test]
fn commands_of_the_tool_and_their_echoes_are_commands() {
    for text in [
        "<command-name>/clear</command-name>\n<command-message>clear</command-message>",
        "<local-command-stdout>done</local-command-stdout>",
        "<local-command-caveat>Caveat: x</local-command-caveat>",
        "<bash-input>ls</bash-input>",
        "<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>",
        "<user-memory-input>note</user-memory-input>",
    ] {
        assert!(!is_prompt(&said(text)), "{text}");
        assert_eq!(read(&said(text)).kind, EntryKind::Command, "{text}");
    }
}

#[test]
fn exit_and_quit_end_the_session() {
    for name in ["/exit", "/quit"] {
        let entry = read(&said(&format!("<command-name>{name}</command-name>")));
        assert_eq!(entry.kind, EntryKind::Command);
        assert_eq!(entry.facts, [Fact::End(EndMark::Exit)]);
    }
    let logged =
        json!({ "subtype": "local_command", "content": "<command-name>/exit</command-name>" });
    assert_eq!(read(&line("system", &logged)).facts, [Fact::End(EndMark::Exit)]);
}

#[test]
fn a_command_of_the_users_own_is_a_prompt() {
    let text = "<command-message>review is running…</command-message>\n\
                <command-name>/team:review</command-name>\n<command-args>all files</command-args>";
    assert_eq!(prompt_text(&said(text)), "/team:review all files");
    assert_eq!(prompt_text(&said("<command-name>todo</command-name>")), "/todo");
}

#[test]
fn an_interruption_is_a_mark_and_no_prompt() {
    let mark = json!([{ "type": "text", "text": "[Request interrupted by user]" }]);
    let entry = read(&user(&mark, &json!({})));
    assert_eq!((entry.kind, entry.facts), (EntryKind::Injected, vec![Fact::Interrupted]));
    let beside = json!([
        { "type": "tool_result", "tool_use_id": "t", "content": "x", "is_error": true },
        { "type": "text", "text": "[Request interrupted by user for tool use]" },
    ]);
    let entry = read(&user(&beside, &json!({})));
    assert_eq!(entry.kind, EntryKind::ToolResult);
    assert!(entry.facts.contains(&Fact::Interrupted));
}

#[test]
fn a_summary_after_compaction_is_no_prompt() {
    let flagged = user(&json!("Summary"), &json!({ "isCompactSummary": true }));
    let told = said("This session is being continued from a previous conversation that …");
    for line in [flagged, told] {
        assert!(!is_prompt(&line));
        assert_eq!(read(&line).kind, EntryKind::Compaction);
    }
}

#[test]
fn what_was_typed_meanwhile_is_a_prompt_if_a_human_typed_it() {
    let queued = |attachment: Value| line("attachment", &json!({ "attachment": attachment }));
    let typed = queued(
        json!({ "type": "queued_command", "prompt": "also tests", "commandMode": "prompt" }),
    );
    assert!(is_prompt(&typed));
    assert_eq!(prompt_text(&typed), "also tests");
    assert_eq!(read(&typed).facts, [Fact::Prompt { via: PromptVia::Queued }]);
    let blocks = json!([{ "type": "image" }, { "type": "text", "text": "this" }]);
    assert!(is_prompt(&queued(json!({ "type": "queued_command", "prompt": blocks }))));
    for machine in [
        json!({ "type": "queued_command", "prompt": "x", "commandMode": "task-notification" }),
        json!({ "type": "queued_command", "prompt": "<task-notification>x" }),
        json!({ "type": "queued_command", "prompt": "x", "origin": { "kind": "coordinator" } }),
    ] {
        assert!(!is_prompt(&queued(machine.clone())), "{machine}");
    }
}

#[test]
fn a_prompt_of_a_script_says_so() {
    let line = user(&json!("task"), &json!({ "entrypoint": "sdk-py" }));
    assert!(read(&line).facts.contains(&Fact::Scripted("sdk-py".into())));
    let line = user(&json!("task"), &json!({ "entrypoint": "cli" }));
    assert_eq!(read(&line).facts.len(), 1);
}

#[test]
fn a_sidechain_in_the_main_file_is_an_agents() {
    let line = user(&json!("x"), &json!({ "isSidechain": true }));
    assert_eq!(read(&line).context.agent.as_deref(), Some("sidechain"));
    let line = user(&json!("x"), &json!({ "isSidechain": true, "agentId": "ab" }));
    assert_eq!(read(&line).context.agent.as_deref(), Some("ab"));
    assert_eq!(read(&said("x")).context.agent, None);
}
