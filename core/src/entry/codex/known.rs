//! The members of a line and of its payload that some version of Codex is known to write (formats.md 2.3). Others are
//! counted, so that a new one is noticed.

use super::fields::Fields;

/// The names of the members that are not known.
pub(super) fn unknown(line: &Fields<'_>, payload: Option<&Fields<'_>>) -> Vec<String> {
    let at_top = |name: &&str| !AT_TOP.contains(name) && (payload.is_some() || !is_known(name));
    let mut unknown: Vec<String> = names(line).filter(at_top).map(str::to_owned).collect();
    if let Some(payload) = payload {
        unknown.extend(names(payload).filter(|name| !is_known(name)).map(str::to_owned));
    }
    unknown.truncate(MAX_UNKNOWN);
    unknown
}

/// More new members than this on one line are data, not a format.
const MAX_UNKNOWN: usize = 8;

fn names<'f>(fields: &'f Fields<'_>) -> impl Iterator<Item = &'f str> {
    fields.members().map(|(name, _)| name).filter(|name| super::super::shape::is_name(name))
}

fn is_known(member: &str) -> bool {
    KNOWN.binary_search(&member).is_ok()
}

/// Members of a wrapped line.
const AT_TOP: &[&str] = &["timestamp", "type", "payload", "ordinal", "metadata", "record_type"];

/// Members of a payload, sorted.
const KNOWN: &[&str] = &[
    "account_scoped",
    "action",
    "active_permission_profile",
    "additional_speed_tiers",
    "affected_file_paths",
    "agent_nickname",
    "agent_path",
    "agent_role",
    "agent_thread_id",
    "aggregated_output",
    "approval_policy",
    "approvals_reviewer",
    "arguments",
    "attempt",
    "audio",
    "author",
    "auto_approved",
    "base_instructions",
    "call_id",
    "changes",
    "cli_version",
    "client_id",
    "codex_error_info",
    "collaboration_mode",
    "collaboration_mode_kind",
    "command",
    "comp_hash",
    "compaction_response_id",
    "completed_at",
    "completed_at_ms",
    "content",
    "context_window",
    "current_date",
    "cwd",
    "decision",
    "delta",
    "description",
    "developer_instructions",
    "disabled_plugin_ids",
    "duration",
    "duration_ms",
    "dynamic_tools",
    "effort",
    "encrypted_content",
    "end_byte_offset",
    "end_ordinal_exclusive",
    "error",
    "execution",
    "exit_code",
    "file_system_sandbox_policy",
    "first_window_id",
    "forked_from_id",
    "forked_from_ordinal_exclusive",
    "formatted_output",
    "full",
    "ghost_commit",
    "git",
    "history_base",
    "history_mode",
    "id",
    "images",
    "info",
    "input",
    "instructions",
    "internal_chat_message_metadata_passthrough",
    "invocation",
    "item",
    "kind",
    "last_agent_message",
    "latest_token_usage_record",
    "local_audio",
    "local_images",
    "max_output_tokens",
    "mcp_servers",
    "memory_citation",
    "memory_mode",
    "message",
    "metadata",
    "model",
    "model_context_window",
    "model_provider",
    "multi_agent_version",
    "name",
    "namespace",
    "network",
    "new_agent_nickname",
    "new_agent_role",
    "new_thread_id",
    "num_turns",
    "occurred_at_ms",
    "originator",
    "output",
    "parent_thread_id",
    "parsed_cmd",
    "path",
    "permission_profile",
    "permissions",
    "personality",
    "phase",
    "plan",
    "previous_window_id",
    "process_id",
    "prompt",
    "query",
    "rate_limits",
    "realtime_active",
    "reason",
    "receiver_thread_id",
    "recipient",
    "replacement_history",
    "replacement_history_metadata",
    "request_id",
    "response",
    "response_id",
    "result",
    "results",
    "resume_metadata",
    "retained_context",
    "review_output",
    "revised_prompt",
    "role",
    "root_turn_id",
    "runtime_workspace_roots",
    "sandbox_policy",
    "saved_path",
    "sender_thread_id",
    "session_id",
    "source",
    "started_at",
    "started_at_ms",
    "state",
    "status",
    "stderr",
    "stdout",
    "subagent_history_start_ordinal",
    "success",
    "summary",
    "target",
    "text",
    "text_elements",
    "thread_goal",
    "thread_id",
    "thread_name",
    "thread_settings",
    "thread_source",
    "thread_token_usage",
    "time_to_first_token_ms",
    "timestamp",
    "timezone",
    "tool",
    "tools",
    "trigger",
    "truncation_policy",
    "turn_attribution",
    "turn_id",
    "turn_token_usage",
    "type",
    "unified_diff",
    "usage",
    "user_facing_hint",
    "user_instructions",
    "window_id",
    "window_number",
    "workspace_roots",
];

#[cfg(test)]
mod tests {
    #[test]
    fn the_list_is_sorted() {
        assert!(super::KNOWN.is_sorted());
    }
}
