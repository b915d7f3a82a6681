//! What the model says.

use super::*;

#[test]
fn text_of_the_model_is_an_answer_of_its_message() {
    let line =
        assistant(&json!([{ "type": "text", "text": "One" }, { "type": "text", "text": "Two" }]));
    let entry = read(&line);
    assert_eq!(entry.kind, EntryKind::Answer);
    let answer = Fact::Answer { message: Some("msg_1".into()), via: AnswerVia::Message };
    assert_eq!(entry.facts[0], answer);
    assert_eq!(texts(line.as_bytes()), [Text::Answer("One\n\nTwo".into())]);
}

#[test]
fn usage_carries_message_and_model() {
    let entry = read(&assistant(&json!([{ "type": "thinking", "thinking": "" }])));
    assert_eq!(entry.kind, EntryKind::Thinking);
    let [Fact::Usage(usage)] = entry.facts.as_slice() else { panic!("{:?}", entry.facts) };
    assert_eq!(
        (usage.message.as_deref(), usage.model.as_deref()),
        (Some("msg_1"), Some("claude-x"))
    );
    let tokens = (usage.input, usage.output, usage.cache_read, usage.cache_write);
    assert_eq!(tokens, (3, 5, 7, 11));
}

#[test]
fn blank_text_is_no_answer() {
    let entry = read(&assistant(&json!([{ "type": "text", "text": " \n" }])));
    assert_eq!(entry.kind, EntryKind::Telemetry);
    assert!(!entry.facts.iter().any(|fact| matches!(fact, Fact::Answer { .. })));
}

#[test]
fn an_error_of_the_provider_is_no_answer() {
    let usage = json!({ "input_tokens": 1 });
    let text = json!([{ "type": "text", "text": "API Error" }]);
    for fields in [
        json!({ "message": { "model": "<synthetic>", "content": text, "usage": usage } }),
        json!({ "isApiErrorMessage": true, "message": { "content": text, "usage": usage } }),
    ] {
        let line = line("assistant", &fields);
        let entry = read(&line);
        assert_eq!((entry.kind, entry.facts), (EntryKind::Telemetry, vec![Fact::ApiError]));
        assert!(texts(line.as_bytes()).is_empty());
    }
}
