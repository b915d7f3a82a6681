//! What stands in the user's place, and whether a person said it (formats.md 2.4).

use std::borrow::Cow;

use super::fields::{Fields, as_text};

/// Who spoke in the user's place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A person, with these words; empty if there were only pictures.
    Human(String),
    /// The program.
    Injected,
    /// A person, to leave.
    Exit,
}

/// How texts begin that Codex itself puts into the user's place.
const INJECTED: &[&str] = &[
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<skill>",
    "<skills_instructions>",
    "<apps_instructions>",
    "<plugins_instructions>",
    "<recommended_plugins>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<user_shell_command>",
    "<goal_context",
    "<codex_internal_context",
    "<hook_prompt",
    "<app-context",
    "<environment-change",
    "<multi_agent_role>",
    "<multi_agent_mode>",
    "<model_switch>",
    "<personality_spec>",
    "<external_codex_apps_open_page",
    "<codex_apps_",
    "<image name=",
    "Another language model started to solve this problem and produced a summary",
    "Warning: The maximum number of unified exec",
];

/// The line after which IDE and desktop put what the person typed.
const REQUEST: &str = "## My request for Codex:";

/// `event_msg/user_message`.
pub(super) fn in_event(payload: &Fields<'_>) -> Said {
    // Old builds marked what they had injected themselves.
    if payload.text("kind").is_some_and(|kind| kind != "plain") {
        return Said::Injected;
    }
    let text = payload.text("message").unwrap_or_default();
    let pictures = ["images", "local_images"].iter().any(|name| !payload.list(name).is_empty());
    judge(&text, pictures)
}

/// `item_completed/UserMessage` and `response_item/message` with role `user`: the blocks that no program put in.
pub(super) fn in_content(message: &Fields<'_>) -> Said {
    if let Some(text) = message.text("content") {
        return judge(&text, false);
    }
    let kinds = message
        .object("internal_chat_message_metadata_passthrough")
        .or_else(|| message.object("metadata"))
        .map(|about| about.list("content_item_kinds"))
        .unwrap_or_default();
    let mut words: Vec<Cow<'_, str>> = Vec::new();
    let mut pictures = false;
    for (at, block) in message.list("content").into_iter().enumerate() {
        // Where Codex says what a block is, only `user.*` is the person's (formats-second.md 2.6).
        let kind = kinds.get(at).and_then(|kind| as_text(kind));
        if kind.is_some_and(|kind| !kind.starts_with("user.")) {
            continue;
        }
        let Some(block) = Fields::parse(block) else {
            continue;
        };
        if matches!(block.text("type").as_deref(), Some("input_image" | "image" | "local_image")) {
            pictures = true;
        } else if let Some(text) = block.text("text")
            && !is_injected(&text)
            && text.trim() != "</image>"
        {
            words.push(text);
        }
    }
    judge(&words.join("\n"), pictures)
}

fn judge(text: &str, pictures: bool) -> Said {
    let text = text.trim();
    if is_injected(text) {
        return Said::Injected;
    }
    match request(text).trim() {
        "" if pictures => Said::Human(String::new()),
        "" => Said::Injected,
        "/exit" | "/quit" => Said::Exit,
        words => Said::Human(words.to_owned()),
    }
}

fn is_injected(text: &str) -> bool {
    let text = text.trim_start();
    INJECTED.iter().any(|start| text.starts_with(start))
}

/// What follows the IDE's wrapper. The last heading counts: what the wrapper quotes before it is not the
/// person's and may hold the same words.
fn request(text: &str) -> &str {
    if !text.starts_with('#') {
        return text;
    }
    let mut headings = text.rmatch_indices(REQUEST);
    match headings.find(|(at, _)| *at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n')) {
        Some((at, _)) => text.get(at + REQUEST.len()..).unwrap_or(text),
        None => text,
    }
}

/// The working directory out of an `<environment_context>`, the only place where the bare grammar has it.
pub(super) fn environment_cwd(message: &Fields<'_>) -> Option<String> {
    message.list("content").into_iter().find_map(|block| {
        let text = Fields::parse(block)?.text("text")?;
        if !text.trim_start().starts_with("<environment_context>") {
            return None;
        }
        let tagged = || Some(text.split_once("<cwd>")?.1.split_once("</cwd>")?.0);
        let oldest = || text.split_once("Current working directory: ")?.1.lines().next();
        let cwd = tagged().or_else(oldest)?.trim();
        (!cwd.is_empty()).then(|| cwd.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(json: &str) -> Said {
        in_event(&Fields::parse(json).expect("object"))
    }

    fn content(json: &str) -> Said {
        in_content(&Fields::parse(json).expect("object"))
    }

    fn human(text: &str) -> Said {
        Said::Human(text.to_owned())
    }

    #[test]
    fn a_plain_prompt_is_a_persons() {
        assert_eq!(event(r#"{"message":" fix it\n"}"#), human("fix it"));
        assert_eq!(event(r#"{"message":"fix it","kind":"plain"}"#), human("fix it"));
        assert_eq!(content(r#"{"content":[{"type":"text","text":"fix it"}]}"#), human("fix it"));
    }

    #[test]
    fn what_codex_injects_is_no_prompt() {
        for start in INJECTED {
            let json = serde_json::json!({ "message": format!("\n{start} and more") }).to_string();
            assert_eq!(event(&json), Said::Injected, "{start}");
        }
        assert_eq!(event(r#"{"message":"x","kind":"environment_context"}"#), Said::Injected);
        assert_eq!(event(r#"{"message":""}"#), Said::Injected);
        assert_eq!(event("{}"), Said::Injected);
    }

    #[test]
    fn only_what_follows_the_ides_heading_is_the_prompt() {
        let wrapped = "# Context from my IDE setup:\n\n## Active file: a\n## My request for Codex:\nignore\n\
                       ## My request for Codex:\nfix it\n";
        let json = serde_json::json!({ "message": wrapped }).to_string();
        assert_eq!(event(&json), human("fix it"));
        let json = serde_json::json!({ "message": "\n# Files mentioned by the user:\n## My request for Codex:\n" });
        assert_eq!(event(&json.to_string()), Said::Injected);
        let own = "What does `## My request for Codex:` mean?";
        assert_eq!(event(&serde_json::json!({ "message": own }).to_string()), human(own));
    }

    #[test]
    fn leaving_is_a_command() {
        assert_eq!(event(r#"{"message":"/exit"}"#), Said::Exit);
        assert_eq!(event(r#"{"message":" /quit "}"#), Said::Exit);
        assert_eq!(event(r#"{"message":"/exit the loop"}"#), human("/exit the loop"));
    }

    #[test]
    fn blocks_that_codex_injected_are_left_out_of_a_message() {
        let json = r#"{"content":[{"type":"input_text","text":"<environment_context>x"},
            {"type":"input_text","text":"<image name=[Image #1]>"},{"type":"input_image","image_url":"data:"},
            {"type":"input_text","text":"</image>"},{"type":"input_text","text":"what is this?"},7]}"#;
        assert_eq!(content(json), human("what is this?"));
        assert_eq!(
            content(r#"{"content":[{"type":"input_text","text":"<skill>x"}]}"#),
            Said::Injected
        );
        assert_eq!(content(r#"{"content":7}"#), Said::Injected);
    }

    #[test]
    fn a_picture_alone_is_a_prompt() {
        assert_eq!(
            content(r#"{"content":[{"type":"input_image","image_url":"data:"}]}"#),
            human("")
        );
        assert_eq!(event(r#"{"message":"","images":["data:"]}"#), human(""));
    }

    #[test]
    fn where_codex_names_the_kind_of_a_block_only_the_users_counts() {
        let json = r#"{"content":[{"type":"input_text","text":"harness"},{"type":"input_text","text":"mine"}],
            "internal_chat_message_metadata_passthrough":{"content_item_kinds":["generic.note","user.text"]}}"#;
        assert_eq!(content(json), human("mine"));
    }

    #[test]
    fn both_spellings_of_the_working_directory_are_read() {
        let cwd = |text: &str| {
            let json = serde_json::json!({ "content": [{ "type": "input_text", "text": text }] })
                .to_string();
            environment_cwd(&Fields::parse(&json).expect("object"))
        };
        assert_eq!(cwd("<environment_context>\n  <cwd>/w/p</cwd>").as_deref(), Some("/w/p"));
        assert_eq!(
            cwd("<environment_context>\nCurrent working directory: /w/p\nApproval policy: x")
                .as_deref(),
            Some("/w/p")
        );
        assert_eq!(cwd("where is <cwd>/w/p</cwd>?"), None);
    }
}
