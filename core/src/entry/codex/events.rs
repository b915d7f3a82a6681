//! `event_msg` lines: mirrors of prompts and answers, what Codex itself saw of commands and patches, counters
//! (formats.md 2.3, 2.7).

use super::super::evidence::{commit_lines, is_commit_command};
use super::super::{AnswerVia, Entry, EntryKind, Fact, PromptVia, TitleVia, Usage};
use super::fields::Fields;
use super::prompts::{self, Said};
use super::{MAX_NAME, MAX_TEXT, answer, calls, patch, prompt, tidy, with};

/// Reads an event; `None` if its kind is not known.
pub(super) fn event(kind: &str, payload: &Fields<'_>) -> Option<Entry> {
    Some(match kind {
        "user_message" => prompt(&prompts::in_event(payload), PromptVia::Event),
        "agent_message" => {
            let spoken = payload.text("message").is_some_and(|text| !text.trim().is_empty());
            answer(spoken, None, AnswerVia::Event)
        }
        "agent_reasoning" | "agent_reasoning_raw_content" | "agent_reasoning_section_break" => {
            Entry::bare(EntryKind::Thinking)
        }
        "token_count" => with(EntryKind::Telemetry, usage(payload)),
        "task_complete" | "turn_complete" => {
            with(EntryKind::Telemetry, payload.raw("error").map(|_| Fact::ApiError))
        }
        "error" => with(EntryKind::Telemetry, [Fact::ApiError]),
        "turn_aborted" => {
            // `review_ended` and `budget_limited` are not the user's doing.
            let reason = payload.text("reason");
            let by_user = matches!(reason.as_deref(), None | Some("interrupted" | "replaced"));
            with(EntryKind::State, by_user.then_some(Fact::Interrupted))
        }
        "context_compacted" => Entry::bare(EntryKind::Compaction),
        "thread_rolled_back" => {
            let turns = payload.integer("num_turns").and_then(|turns| u32::try_from(turns).ok());
            with(EntryKind::State, turns.map(Fact::Rollback))
        }
        "patch_apply_end" => {
            let applied = payload.is_true("success")
                || (payload.raw("success").is_none() && is(payload, "status", "completed"));
            with(EntryKind::ToolResult, changed(payload, applied))
        }
        "exec_command_end" => with(EntryKind::ToolResult, committed(payload)),
        "thread_name_updated" => {
            let named = payload.text("thread_name").is_some_and(|name| !name.trim().is_empty());
            with(EntryKind::State, named.then_some(Fact::Title(TitleVia::Custom)))
        }
        "thread_settings_applied" => {
            let settings = payload.object("thread_settings");
            settings.as_ref().map_or_else(|| Entry::bare(EntryKind::State), turn_context)
        }
        "sub_agent_activity" => with(EntryKind::State, subagent(payload, "agent_thread_id")),
        "collab_agent_spawn_end" => with(EntryKind::State, subagent(payload, "new_thread_id")),
        "item_completed" => {
            return payload.object("item").and_then(|item| item_completed(&item));
        }
        "task_started"
        | "turn_started"
        | "item_started"
        | "mcp_tool_call_begin"
        | "mcp_tool_call_end"
        | "web_search_begin"
        | "web_search_end"
        | "image_generation_begin"
        | "image_generation_end"
        | "view_image_tool_call"
        | "stream_error"
        | "warning"
        | "exec_command_begin"
        | "patch_apply_begin"
        | "background_event"
        | "plan_update"
        | "turn_diff" => Entry::bare(EntryKind::Telemetry),
        "entered_review_mode"
        | "exited_review_mode"
        | "undo_started"
        | "undo_completed"
        | "thread_goal_updated"
        | "guardian_assessment"
        | "shutdown_complete"
        | "session_configured"
        | "model_reroute"
        | "deprecation_notice" => Entry::bare(EntryKind::State),
        _ if kind.starts_with("collab_") || kind.starts_with("dynamic_tool_call_") => {
            Entry::bare(EntryKind::Telemetry)
        }
        _ => return None,
    })
}

/// The items of the paginated grammar; a `CommandExecution` and a `FileChange` are Codex's own proof.
fn item_completed(item: &Fields<'_>) -> Option<Entry> {
    Some(match item.text("type")?.as_ref() {
        "UserMessage" => prompt(&prompts::in_content(item), PromptVia::Item),
        "AgentMessage" => answer(item_text(item).is_some(), item.text("id"), AnswerVia::Item),
        "Reasoning" => Entry::bare(EntryKind::Thinking),
        "CommandExecution" => with(EntryKind::ToolResult, committed(item)),
        "FileChange" => with(EntryKind::ToolResult, changed(item, is(item, "status", "completed"))),
        "Plan" => with(EntryKind::State, [Fact::Plan]),
        "ContextCompaction" => Entry::bare(EntryKind::Compaction),
        "HookPrompt" => Entry::bare(EntryKind::Injected),
        "SubAgentActivity" => with(EntryKind::State, subagent(item, "agent_thread_id")),
        "CollabAgentToolCall" => with(EntryKind::State, subagent(item, "new_thread_id")),
        "McpToolCall" | "DynamicToolCall" | "WebSearch" | "ImageView" | "ImageGeneration"
        | "Sleep" | "EnteredReviewMode" | "ExitedReviewMode" | "FunctionCallOutput"
        | "Extension" => Entry::bare(EntryKind::Telemetry),
        _ => return None,
    })
}

/// The text of an `AgentMessage` or `Plan`.
pub(super) fn item_text(item: &Fields<'_>) -> Option<String> {
    let blocks = item.list("content").into_iter();
    let text: Vec<_> = blocks.filter_map(|block| Fields::parse(block)?.text("text")).collect();
    let text = if text.is_empty() { item.text("text")?.into_owned() } else { text.join("\n") };
    (!text.trim().is_empty()).then_some(text)
}

/// `turn_context` and `thread_settings`: the model at work, and where.
pub(super) fn turn_context(payload: &Fields<'_>) -> Entry {
    let model =
        payload.text("model").map(|model| tidy(&model, MAX_NAME)).filter(|model| !model.is_empty());
    let mut entry = with(EntryKind::State, model.map(Fact::Model));
    entry.context.cwd =
        payload.text("cwd").map(|cwd| tidy(&cwd, MAX_TEXT)).filter(|cwd| !cwd.is_empty());
    entry
}

fn is(fields: &Fields<'_>, name: &str, value: &str) -> bool {
    fields.text(name).is_some_and(|text| text == value)
}

/// The running total of the thread. `info` is `null` when only the rate limits are news.
fn usage(payload: &Fields<'_>) -> Option<Fact> {
    let total = payload.object("info")?.object("total_token_usage")?;
    let count =
        |name: &str| total.integer(name).and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
    let cache_read = count("cached_input_tokens");
    let cache_write = count("cache_write_input_tokens");
    Some(Fact::Usage(Usage {
        // Codex counts what came from the cache as input too.
        input: count("input_tokens").saturating_sub(cache_read).saturating_sub(cache_write),
        output: count("output_tokens"),
        cache_read,
        cache_write,
        running_total: true,
        ..Usage::default()
    }))
}

fn changed(report: &Fields<'_>, applied: bool) -> Vec<Fact> {
    let changes = report.object("changes").filter(|_| applied);
    changes
        .map(|changes| patch::changes(&changes))
        .unwrap_or_default()
        .into_iter()
        .map(Fact::File)
        .collect()
}

/// The commits of a command that ended well.
fn committed(report: &Fields<'_>) -> Vec<Fact> {
    let commits = report.integer("exit_code") == Some(0)
        && report
            .raw("command")
            .and_then(calls::command)
            .is_some_and(|line| is_commit_command(&line));
    if !commits {
        return Vec::new();
    }
    commit_lines(&command_output(report)).into_iter().map(Fact::Commit).collect()
}

/// What a command printed; the same text stands there up to four times.
pub(super) fn command_output(report: &Fields<'_>) -> String {
    ["aggregated_output", "stdout", "formatted_output"]
        .iter()
        .find_map(|name| report.text(name).filter(|text| !text.is_empty()))
        .unwrap_or_default()
        .into_owned()
}

fn subagent(payload: &Fields<'_>, name: &str) -> Option<Fact> {
    let agent = tidy(&payload.text(name)?, MAX_NAME);
    (!agent.is_empty()).then_some(Fact::Subagent { agent })
}

/// What an event says, for those who read it; see [`super::texts`].
pub(super) fn texts(kind: &str, payload: &Fields<'_>) -> Vec<super::super::Text> {
    use super::super::Text;
    let spoken = |said: Said| match said {
        Said::Human(text) if !text.is_empty() => vec![Text::Prompt(text)],
        _ => Vec::new(),
    };
    let answered = |text: Option<String>| text.map(Text::Answer).into_iter().collect();
    match kind {
        "user_message" => spoken(prompts::in_event(payload)),
        "agent_message" => {
            answered(payload.text("message").filter(|text| !text.trim().is_empty()).map(Into::into))
        }
        "thread_name_updated" => {
            let name = payload.text("thread_name").map(|name| name.trim().to_owned());
            name.filter(|name| !name.is_empty()).map(Text::Title).into_iter().collect()
        }
        "exec_command_end" => executed(payload, "call_id"),
        "item_completed" => {
            let Some(item) = payload.object("item") else {
                return Vec::new();
            };
            match item.text("type").as_deref() {
                Some("UserMessage") => spoken(prompts::in_content(&item)),
                Some("AgentMessage" | "Plan") => answered(item_text(&item)),
                Some("CommandExecution") => executed(&item, "id"),
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

fn executed(report: &Fields<'_>, id: &str) -> Vec<super::super::Text> {
    use super::super::Text;
    let id = tidy(&report.text(id).unwrap_or_default(), MAX_TEXT);
    let argument = report.raw("command").and_then(calls::command).unwrap_or_default();
    let output = Text::Output { call: id.clone(), text: command_output(report) };
    vec![Text::Call { id, name: "exec_command".to_owned(), argument }, output]
}
