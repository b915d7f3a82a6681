use super::*;

#[test]
fn sentences_end_at_stops_and_not_in_names() {
    assert_eq!(
        sentences("Fix src/main.rs in v1.2. Use e.g. serde! Then?\n\nNext para"),
        ["Fix src/main.rs in v1.2.", "Use e.g. serde!", "Then?", "Next para"]
    );
    assert_eq!(sentences("直してください。次は？終わり"), ["直してください。", "次は？", "終わり"]);
}

#[test]
fn markup_is_taken_off_and_code_left_out() {
    let text = "## Plan\n\n**Fix** the `parser`, see [docs](https://d.rs/x).\n```\ncode. more\n```\n| a |\n1. First item\n- [ ] Second";
    assert_eq!(sentences(text), ["Fix the parser, see docs.", "First item", "Second"]);
    assert_eq!(prompt_gist("```\nfn main() {}\n```", 80).as_deref(), Some("fn main() {}"));
}

#[test]
fn a_hard_wrapped_sentence_is_one() {
    assert_eq!(
        sentences("The parser stops\nat empty lines.\nPlease fix."),
        ["The parser stops at empty lines.", "Please fix."]
    );
}

#[test]
fn a_hard_wrapped_line_may_go_on_with_a_name() {
    assert_eq!(
        sentences("Please move this app from\nPostgres to\n@acme/store-js in\nphases."),
        ["Please move this app from Postgres to @acme/store-js in phases."]
    );
    assert_eq!(
        sentences("Fix the tests\nError: no such file"),
        ["Fix the tests", "Error: no such file"]
    );
}

#[test]
fn a_short_request_before_a_long_explanation_is_the_request() {
    let prompt = "Fix the tests. They fail on the build server since the last merge.";
    assert_eq!(title(prompt), Some("Fix the tests".into()));
    assert_eq!(prompt_gist(prompt, 200).as_deref(), Some(prompt));
    assert_eq!(title("これは本当？\nこの文書にはこう書いてあります"), Some("これは本当？".into()));
    assert_eq!(prompt_gist("Hello there! Fix it.", 80).as_deref(), Some("Fix it."));
    assert_eq!(
        prompt_gist("Yes. Use the second one.", 80).as_deref(),
        Some("Yes. Use the second one.")
    );
    let long = format!("Why? {}", "word ".repeat(60));
    assert!(
        prompt_gist(&long, 100)
            .is_some_and(|gist| gist.starts_with("Why? word") && gist.ends_with('…'))
    );
}

#[test]
fn a_label_is_told_with_what_it_stands_over() {
    assert_eq!(
        title("Quality score\n\nShow it as a chart"),
        Some("Quality score: Show it as a chart".into())
    );
    assert_eq!(title("fix tests"), Some("fix tests".into()));
}

#[test]
fn of_a_filled_in_template_the_users_words_count() {
    let template = |input: &str| {
        format!("## User Input\n\n```text\n{input}\n```\n\nYou **MUST** consider it.\n\n## Outline")
    };
    assert_eq!(prompt_gist(&template("add a login page"), 80).as_deref(), Some("add a login page"));
    let empty = prompt_gist(&template("$ARGUMENTS"), 80);
    assert_eq!(empty.as_deref(), Some("User Input You MUST consider it."));
}

#[test]
fn a_piece_of_a_sentence_or_a_name_out_of_a_list_is_no_gist() {
    for piece in [
        "Run:\n```\nmake\n```\nor open both of the files and paste it by hand.",
        "Use sudo! without it nothing works in the shell here).",
        "Changes:\n- Parser - returns false for an empty line now\n- Lexer - returns true for an empty line now",
    ] {
        assert_eq!(answer_gist(piece, 200), None, "{piece}");
    }
    assert_eq!(
        answer_gist("Changes:\n- The parser now returns false for an empty line.", 200),
        Some("The parser now returns false for an empty line.".into())
    );
}

#[test]
fn a_title_skips_a_greeting_and_is_short() {
    assert_eq!(
        title("Hi!\nThe parser stops at empty lines."),
        Some("The parser stops at empty lines".into())
    );
    let long = title(&"word ".repeat(60)).unwrap_or_default();
    assert!(long.chars().count() <= 80 && long.ends_with("word…"), "{long}");
    assert_eq!(title("\u{1b}[31m***\u{202e}"), None);
    assert_eq!(
        title("빈 줄에서 파서가 멈춥니다. 고쳐 주세요."),
        Some("빈 줄에서 파서가 멈춥니다".into())
    );
}

#[test]
fn a_prompt_that_announces_a_plan_is_named_by_it() {
    let prompt = "Implement the following plan:\n\n# Skip empty lines\n\n## Context\nMore.";
    assert_eq!(title(prompt), Some("Implement the following plan: Skip empty lines".into()));
}

#[test]
fn an_answers_gist_is_prose_rather_than_a_list_item() {
    let text = "Now it works:\n\n- the reader was rewritten for lists\n\nThe parser skips empty lines from now on.";
    assert_eq!(answer_gist(text, 80), Some("The parser skips empty lines from now on.".into()));
}

#[test]
fn an_answers_gist_is_no_opener_announcement_or_error() {
    let text = "Perfect! Let me summarize:\n\n## Summary\n\nThe parser now skips empty lines and keeps the offset.";
    assert_eq!(
        answer_gist(text, 200),
        Some("The parser now skips empty lines and keeps the offset.".into())
    );
    for empty in [
        "Done.",
        "I'll check the file now.",
        "API Error: 500 the server had an internal error today",
        "Shall I go on with all of the rest now?",
    ] {
        assert_eq!(answer_gist(empty, 200), None, "{empty}");
    }
    assert_eq!(
        answer_gist("원인은 빈 줄 처리였고 이제 건너뜁니다.", 200),
        Some("원인은 빈 줄 처리였고 이제 건너뜁니다.".into())
    );
}
