//! One claim each, on lines made for it.

mod answers;
mod arbitrary;
mod damage;
mod identity;
mod prompts;
mod states;
mod tools;

use serde_json::{Value, json};

use super::{Reader, texts};
use crate::entry::{
    AnswerVia, CallOutcome, CallResult, EndMark, Entry, EntryKind, Fact, FileChange, PromptVia,
    Role, Text, TitleVia,
};
use crate::ids::{EntryId, NativeId};

const SESSION: &str = "0f7cfa1e-53d1-4b6e-9a52-6d3a0a9c1b11";
const OTHER: &str = "5e8f8f0a-0c5b-4df6-8a3e-2f2f9d1c7a22";

fn main_path() -> String {
    format!("projects/-w-p/{SESSION}.jsonl")
}

fn read(line: &str) -> Entry {
    Reader::new(&main_path()).read(line.as_bytes())
}

/// An enveloped line of `kind`; `fields` are laid over the envelope.
fn line(kind: &str, fields: &Value) -> String {
    let mut line = json!({
        "parentUuid": null, "isSidechain": false, "userType": "external", "cwd": "/w/p",
        "sessionId": SESSION, "version": "2.1.0", "gitBranch": "main", "type": kind,
        "uuid": "8f1c2d3e-0000-4000-8000-000000000001", "timestamp": "2026-03-01T08:00:00.000Z",
    });
    for (key, value) in fields.as_object().expect("fields") {
        line[key] = value.clone();
    }
    line.to_string()
}

fn user(content: &Value, more: &Value) -> String {
    let mut fields = json!({ "message": { "role": "user", "content": content } });
    for (key, value) in more.as_object().expect("fields") {
        fields[key] = value.clone();
    }
    line("user", &fields)
}

fn said(text: &str) -> String {
    user(&json!(text), &json!({}))
}

fn assistant(blocks: &Value) -> String {
    line(
        "assistant",
        &json!({ "message": {
            "id": "msg_1", "role": "assistant", "model": "claude-x", "content": blocks,
            "usage": { "input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 7,
                       "cache_creation_input_tokens": 11.0 },
        }}),
    )
}

fn call(name: &str, input: &Value) -> String {
    assistant(&json!([{ "type": "tool_use", "id": "toolu_1", "name": name, "input": input }]))
}

fn result(content: &Value, is_error: bool, own: &Value) -> String {
    let block = json!([{ "type": "tool_result", "tool_use_id": "toolu_1", "content": content,
                         "is_error": is_error }]);
    user(&block, &json!({ "toolUseResult": own }))
}

fn result_of(line: &str) -> CallResult {
    match read(line).facts.into_iter().next() {
        Some(Fact::Result(result)) => result,
        other => panic!("no result: {other:?}"),
    }
}

fn is_prompt(line: &str) -> bool {
    let entry = read(line);
    let says = entry.facts.iter().any(|fact| matches!(fact, Fact::Prompt { .. }));
    assert_eq!(says, entry.kind == EntryKind::Prompt);
    assert_eq!(says, texts(line.as_bytes()).iter().any(|text| matches!(text, Text::Prompt(_))));
    says
}

fn prompt_text(line: &str) -> String {
    match texts(line.as_bytes()).as_slice() {
        [Text::Prompt(text)] => text.clone(),
        other => panic!("not one prompt: {other:?}"),
    }
}
