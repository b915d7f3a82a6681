//! A line's meaning by its type (formats.md 1.3–1.5).

use std::borrow::Cow;

use super::prompt::{self, Said, join, plain};
use super::tools;
use super::view::{
    Attachment, Content, Head, Origin, Raw, Shape, ToolUseResult, has_text, is_true, text,
};
use crate::entry::shape::is_name;
use crate::entry::{
    AnswerVia, Context, EndMark, Entry, EntryKind, Fact, PromptVia, Text, TitleVia, WrittenTime,
    evidence,
};
use crate::ids::{EntryId, NativeId};

/// The shape of an unknown line is named in so many characters.
const MAX_SHAPE_CHARS: usize = 60;

/// Judges a line. `of_agent`: it stands in a subagent's file.
pub(super) fn entry(head: &Head<'_>, of_agent: bool) -> Entry {
    let kind = text(head.kind).unwrap_or_default();
    let side = of_agent || is_true(head.sidechain);
    let mut facts = Vec::new();
    let kind = match &*kind {
        "user" => user(head, side, &mut facts),
        "assistant" => assistant(head, &mut facts),
        "attachment" => attachment(head, side, &mut facts),
        "system" => system(head, &mut facts),
        kind => state(kind, head, &mut facts),
    };
    let shape = shape_name(head);
    if kind == EntryKind::Unknown {
        facts.push(Fact::Reason(shape.clone()));
    }
    let stamp = text(head.session).and_then(|id| NativeId::new(&id));
    Entry {
        kind,
        at: written_time(head.timestamp),
        identity: identity(head),
        copied_from: copied_from(head, stamp.as_ref()),
        stamp,
        context: context(head),
        facts,
        shape,
        unknown: unknown_members(head),
    }
}

/// The line's identity across files: its `uuid`. Scripts and other tools write short ones (`u1`), which mean nothing
/// outside of their session: those are one entry only if time and content are the same too, as in a copy.
fn identity(head: &Head<'_>) -> Option<EntryId> {
    let uuid = text(head.uuid).filter(|uuid| !uuid.is_empty())?;
    if super::is_uuid(&uuid) {
        return Some(EntryId::derive("claude-uuid", &[uuid.as_bytes()]));
    }
    let time = text(head.timestamp).unwrap_or_default();
    let content = format!("{:?}", head.message.content);
    let parts = [uuid.as_bytes(), time.as_bytes(), content.as_bytes()];
    Some(EntryId::derive("claude-short-uuid", &parts))
}

/// Members and kinds of content blocks that are not known.
fn unknown_members(head: &Head<'_>) -> Vec<String> {
    // More of them on one line are data, not a format.
    const MAX: usize = 8;
    let mut unknown: Vec<String> =
        head.others.iter().filter(|name| is_name(name)).take(MAX).cloned().collect();
    if let Content::Blocks(blocks) = &head.message.content {
        for block in blocks {
            let kind = text(block.kind).unwrap_or(Cow::Borrowed("untyped"));
            if !is_known_block(&kind) && unknown.len() < MAX {
                unknown.push(format!("content[{}]", tools::tidy(&kind, MAX_SHAPE_CHARS)));
            }
        }
    }
    unknown
}

fn is_known_block(kind: &str) -> bool {
    matches!(
        kind,
        "text"
            | "thinking"
            | "redacted_thinking"
            | "image"
            | "document"
            | "fallback"
            | "tool_use"
            | "server_tool_use"
            | "mcp_tool_use"
            | "tool_reference"
            | "search_result"
            | "container_upload"
    ) || kind.ends_with("tool_result")
}

/// The type of a line.
fn shape_name(head: &Head<'_>) -> String {
    let kind = text(head.kind).unwrap_or(Cow::Borrowed("no type"));
    let sub = match &*kind {
        "attachment" => text(head.attachment.kind),
        _ => text(head.subtype),
    };
    match sub {
        Some(sub) => tools::tidy(&format!("{kind}/{sub}"), MAX_SHAPE_CHARS),
        None => tools::tidy(&kind, MAX_SHAPE_CHARS),
    }
}

fn written_time(raw: Raw<'_>) -> Option<WrittenTime> {
    if let Some(written) = text(raw) {
        return WrittenTime::parse(&written);
    }
    let number = raw?.get();
    let whole = number.split_once('.').map_or(number, |(whole, _)| whole);
    whole.parse().ok().and_then(WrittenTime::from_number)
}

fn copied_from(head: &Head<'_>, stamp: Option<&NativeId>) -> Option<NativeId> {
    let forked = text(head.forked_from.session).and_then(|id| NativeId::new(&id));
    forked.or_else(|| {
        let asked_in = text(head.request_session).and_then(|id| NativeId::new(&id))?;
        (stamp.is_some_and(|stamp| *stamp != asked_in)).then_some(asked_in)
    })
}

fn context(head: &Head<'_>) -> Context {
    Context {
        cwd: kept(head.cwd),
        branch: kept(head.branch),
        version: kept(head.version),
        agent: is_true(head.sidechain)
            .then(|| kept(head.agent).unwrap_or_else(|| "sidechain".to_owned())),
    }
}

/// A string that is kept: not empty, and without NULs, at which databases cut (formats.md F10).
fn kept(raw: Raw<'_>) -> Option<String> {
    let text = text(raw)?;
    let text = if text.contains('\0') { text.replace('\0', "") } else { text.into_owned() };
    (!text.is_empty()).then_some(text)
}

fn user(head: &Head<'_>, side: bool, facts: &mut Vec<Fact>) -> EntryKind {
    if tool_results(head, facts) {
        return EntryKind::ToolResult;
    }
    match said(head, side) {
        Said::Prompt(_) => {
            facts.push(Fact::Prompt { via: PromptVia::User });
            facts.extend(scripted(head));
            EntryKind::Prompt
        }
        Said::Command { exit } => {
            facts.extend(exit.then_some(Fact::End(EndMark::Exit)));
            EntryKind::Command
        }
        Said::Interrupted => {
            facts.push(Fact::Interrupted);
            EntryKind::Injected
        }
        Said::Injected => EntryKind::Injected,
        Said::Summary => EntryKind::Compaction,
    }
}

/// Who speaks on a `user` line that is no tool result.
fn said(head: &Head<'_>, side: bool) -> Said {
    if is_true(head.compact_summary) {
        return Said::Summary;
    }
    let said = prompt::judge(&head.message.content);
    // Flags of the line only take away: what the text shows to be a mark or summary stays one.
    let by_a_human =
        !is_true(head.meta) && !is_true(head.transcript_only) && !side && is_human(&head.origin);
    match said {
        Said::Prompt(_) if !by_a_human => Said::Injected,
        Said::Command { .. } if side || is_true(head.meta) => Said::Command { exit: false },
        said => said,
    }
}

/// No origin is a human's: only newer versions write one.
fn is_human(origin: &Origin<'_>) -> bool {
    match origin.shape {
        Shape::Absent => true,
        Shape::Object => matches!(text(origin.kind).as_deref(), Some("human")),
        Shape::Other => false,
    }
}

/// A script's run is marked where its task stands.
fn scripted(head: &Head<'_>) -> Option<Fact> {
    let entrypoint = text(head.entrypoint).filter(|entrypoint| entrypoint.starts_with("sdk-"))?;
    Some(Fact::Scripted(tools::tidy(&entrypoint, MAX_SHAPE_CHARS)))
}

/// Facts of the tool results on a line. `false` if the line is none: it holds no `tool_result` block and
/// nothing in the tool's own form.
fn tool_results(head: &Head<'_>, facts: &mut Vec<Fact>) -> bool {
    let Content::Blocks(blocks) = &head.message.content else {
        return head.tool_use_result.shape != Shape::Absent;
    };
    let is_result = |kind: Raw<'_>| text(kind).as_deref() == Some("tool_result");
    let results = blocks.iter().filter(|block| is_result(block.kind)).count();
    if results == 0 {
        return head.tool_use_result.shape != Shape::Absent;
    }
    let unknown = ToolUseResult::default();
    let own = if results == 1 { &head.tool_use_result } else { &unknown };
    for block in blocks.iter().filter(|block| is_result(block.kind)) {
        tools::result_facts(block, own, has_text(head.denial), facts);
    }
    if results < blocks.len() && prompt::is_interrupted(blocks) {
        facts.push(Fact::Interrupted);
    }
    true
}

fn assistant(head: &Head<'_>, facts: &mut Vec<Fact>) -> EntryKind {
    let message = &head.message;
    if is_synthetic(head) {
        facts.push(Fact::ApiError);
        return EntryKind::Telemetry;
    }
    let (mut answers, mut thinks) = (false, false);
    let mut calls = Vec::new();
    match &message.content {
        Content::Absent => {}
        Content::Text(text) => answers = !text.trim().is_empty(),
        Content::Blocks(blocks) => {
            for block in blocks {
                match text(block.kind).as_deref() {
                    Some("text") => answers |= has_text(block.text),
                    Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
                        tools::call_facts(block, &mut calls);
                    }
                    // Tools that run at the provider answer within the message.
                    Some(kind) if kind.ends_with("_tool_result") => {
                        tools::result_facts(block, &ToolUseResult::default(), false, &mut calls);
                    }
                    Some("thinking" | "redacted_thinking") => thinks = true,
                    _ => {}
                }
            }
        }
    }
    if answers {
        let id = Some(tools::id(message.id)).filter(|id| !id.is_empty());
        facts.push(Fact::Answer { message: id, via: AnswerVia::Message });
    }
    let kind = match (answers, calls.first(), thinks) {
        (true, _, _) => EntryKind::Answer,
        (false, Some(Fact::Result(_)), _) => EntryKind::ToolResult,
        (false, Some(_), _) => EntryKind::ToolCall,
        (false, None, true) => EntryKind::Thinking,
        (false, None, false) => EntryKind::Telemetry,
    };
    facts.extend(calls);
    facts.extend(tools::usage(message).map(Fact::Usage));
    kind
}

/// The text on the line is the tool's own, not the model's.
fn is_synthetic(head: &Head<'_>) -> bool {
    is_true(head.api_error) || text(head.message.model).as_deref() == Some("<synthetic>")
}

/// Types of attachments that are known and tell nothing of the work.
const ATTACHMENTS: &[&str] = &[
    "agent_listing_delta",
    "agent_mention",
    "auto_mode",
    "auto_mode_exit",
    "batching_reminder_sent",
    "budget_usd",
    "command_permissions",
    "compact_file_reference",
    "companion_intro",
    "date",
    "date_change",
    "deferred_tools_delta",
    "diagnostics",
    "directory",
    "dynamic_skill",
    "edited_image_file",
    "edited_text_file",
    "environment",
    "file",
    "hook_additional_context",
    "hook_blocking_error",
    "hook_cancelled",
    "hook_non_blocking_error",
    "hook_stopped_continuation",
    "hook_success",
    "hook_system_message",
    "invoked_skills",
    "mcp_instructions_delta",
    "model",
    "nested_memory",
    "opened_file_in_ide",
    "output_style",
    "plan_file_reference",
    "plan_mode",
    "plan_mode_exit",
    "plan_mode_reentry",
    "prompt_snapshot",
    "read_truncation_notice",
    "relevant_memories",
    "remote_session_change",
    "selected_lines_in_ide",
    "session_context",
    "silent_turn_reminder",
    "skill_listing",
    "task_reminder",
    "task_status",
    "team_context",
    "teammate_mailbox",
    "todo_reminder",
    "total_tokens_reminder",
    "ultra_effort_enter",
    "ultra_effort_exit",
];

fn attachment(head: &Head<'_>, side: bool, facts: &mut Vec<Fact>) -> EntryKind {
    match text(head.attachment.kind).as_deref() {
        Some("queued_command") => match queued(head, side) {
            Said::Prompt(_) => {
                facts.push(Fact::Prompt { via: PromptVia::Queued });
                facts.extend(scripted(head));
                EntryKind::Prompt
            }
            Said::Command { .. } => EntryKind::Command,
            Said::Injected | Said::Interrupted | Said::Summary => EntryKind::Injected,
        },
        Some(kind) if ATTACHMENTS.contains(&kind) => EntryKind::State,
        _ => EntryKind::Unknown,
    }
}

/// Who speaks in a command that was typed while the model was busy.
fn queued(head: &Head<'_>, side: bool) -> Said {
    let Attachment { prompt, mode, origin, meta, .. } = &head.attachment;
    let is_prompt = matches!(text(*mode).as_deref(), None | Some("prompt"));
    if side || !is_prompt || is_true(*meta) || is_true(head.meta) || !is_human(origin) {
        return Said::Injected;
    }
    prompt::judge(prompt)
}

/// Subtypes of `system` lines that are known and tell nothing of the work.
const SYSTEM: &[&str] = &[
    "agents_killed",
    "api_error",
    "api_refusal",
    "away_summary",
    "bridge_status",
    "error",
    "informational",
    "memory_saved",
    "microcompact_boundary",
    "model_refusal_fallback",
    "scheduled_task_fire",
    "session_start",
    "stop_hook_summary",
    "thinking",
    "turn_duration",
];

fn system(head: &Head<'_>, facts: &mut Vec<Fact>) -> EntryKind {
    match text(head.subtype).as_deref() {
        Some("compact_boundary") => EntryKind::Compaction,
        Some("local_command") => {
            let exits = text(head.content).and_then(|text| prompt::slash_command(&text))
                == Some(Said::Command { exit: true });
            facts.extend(exits.then_some(Fact::End(EndMark::Exit)));
            EntryKind::Command
        }
        Some(subtype) if !SYSTEM.contains(&subtype) => EntryKind::Unknown,
        _ => EntryKind::Telemetry,
    }
}

/// Lines outside the conversation.
fn state(kind: &str, head: &Head<'_>, facts: &mut Vec<Fact>) -> EntryKind {
    match kind {
        "ai-title" => {
            facts.extend(has_text(head.ai_title).then_some(Fact::Title(TitleVia::Generated)));
        }
        "custom-title" => {
            facts.extend(has_text(head.custom_title).then_some(Fact::Title(TitleVia::Custom)));
        }
        "pr-link" => {
            let url = text(head.pr_url).and_then(|url| evidence::clean_url(&url));
            facts.extend(url.map(|url| Fact::PullRequest { url }));
        }
        "worktree-state" => {
            facts.extend(kept(head.worktree.original).map(|original| Fact::Worktree { original }));
        }
        "cost-state" => facts.push(Fact::End(EndMark::CostState)),
        "agent-color"
        | "agent-name"
        | "agent-setting"
        | "atis-latch"
        | "attribution-snapshot"
        | "bridge-session"
        | "content-replacement"
        | "file-history-delta"
        | "file-history-snapshot"
        | "frame-link"
        | "last-prompt"
        | "marble-origami-commit"
        | "mode"
        | "permission-mode"
        | "queue-operation"
        | "relocated"
        | "result"
        | "speculation-accept"
        | "started"
        | "summary"
        | "tag"
        | "task-summary" => {}
        "api-request" | "api-request-blob" | "api-request-shape" | "progress" | "tools-used"
        | "turn_end" => return EntryKind::Telemetry,
        _ => return EntryKind::Unknown,
    }
    EntryKind::State
}

/// See [`crate::entry::texts`].
pub(super) fn texts(head: Head<'_>) -> Vec<Text> {
    let mut texts = Vec::new();
    match text(head.kind).as_deref() {
        Some("user") => user_texts(&head, &mut texts),
        Some("assistant") if !is_synthetic(&head) => answer_texts(head, &mut texts),
        Some("attachment") if text(head.attachment.kind).as_deref() == Some("queued_command") => {
            if let Said::Prompt(prompt) = queued(&head, is_true(head.sidechain)) {
                texts.push(Text::Prompt(shown(prompt)));
            }
        }
        Some("ai-title") => texts.extend(kept(head.ai_title).map(Text::Title)),
        Some("custom-title") => texts.extend(kept(head.custom_title).map(Text::Title)),
        _ => {}
    }
    texts
}

fn user_texts(head: &Head<'_>, texts: &mut Vec<Text>) {
    if tool_results(head, &mut Vec::new()) {
        if let Content::Blocks(blocks) = &head.message.content {
            for block in blocks {
                if text(block.kind).as_deref() == Some("tool_result") {
                    texts.push(output(block));
                }
            }
        }
    } else if let Said::Prompt(prompt) = said(head, is_true(head.sidechain)) {
        texts.push(Text::Prompt(shown(prompt)));
    }
}

fn output(block: &super::view::Block<'_>) -> Text {
    Text::Output { call: tools::id(block.call), text: shown(tools::output(block)) }
}

fn answer_texts(head: Head<'_>, texts: &mut Vec<Text>) {
    let blocks = match head.message.content {
        Content::Blocks(blocks) => blocks,
        content => {
            let answer = plain(content).into_owned();
            texts.extend((!answer.trim().is_empty()).then(|| Text::Answer(shown(answer))));
            return;
        }
    };
    let mut answer = String::new();
    let mut rest = Vec::new();
    for block in &blocks {
        match text(block.kind).as_deref() {
            Some("text") if has_text(block.text) => {
                join(&mut answer, &text(block.text).unwrap_or_default());
            }
            Some("tool_use" | "server_tool_use" | "mcp_tool_use") => rest.push(Text::Call {
                id: tools::id(block.id),
                name: tools::name(block),
                argument: shown(tools::argument(&block.input)),
            }),
            Some(kind) if kind.ends_with("_tool_result") => rest.push(output(block)),
            _ => {}
        }
    }
    texts.extend((!answer.is_empty()).then(|| Text::Answer(shown(answer))));
    texts.extend(rest);
}

/// Text without NULs.
fn shown(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "") } else { text }
}
