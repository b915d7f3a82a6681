use jiff::tz::TimeZone;

use super::*;
use crate::draft::check_evidence;
use crate::draft::fixture::StoryBuilder;
use crate::entry::CallOutcome;
use crate::ids::NativeId;
use crate::note::{session, timeline};

/// The note's body as it would be stored.
fn body(story: &Story) -> String {
    let checked = check_evidence(draft(story, None), story);
    assert_eq!(checked.rejected, []);
    let draft = checked.draft;
    let entry = draft.entry.clone().expect("an entry");
    let entry = timeline::entry(&entry.text, &story.key.native, story.last_at, &TimeZone::UTC);
    timeline::merge_entry(&entry, &session::render_truth(&draft.sections(&[])))
}

#[test]
fn a_bug_fix_with_a_commit() {
    let story = StoryBuilder::new()
        .prompt("The parser stops at empty lines. Please fix it, with a test.")
        .fail("cargo test parser")
        .edit("/w/app/src/parser.rs")
        .edit("/w/app/tests/parser.rs")
        .edit("/w/app/src/parser.rs")
        .run("cargo test parser")
        .answer("Fixed! The parser treated an empty line as the end of input; it now skips it.\n\nAll tests pass.")
        .prompt("commit it")
        .run("git commit -am 'Skip empty lines in the parser'")
        .answer("Committed.")
        .commit("0123abc4567", "Skip empty lines in the parser")
        .url("https://docs.rs/memchr")
        .build();
    insta::assert_snapshot!(body(&story), @r#"
    # The parser stops at empty lines

    > **Summary:** The user asked: “The parser stops at empty lines. Please fix it, with a test”, and 1 further prompt followed. 2 files were changed (`src/parser.rs` and `tests/parser.rs`) and 1 commit was made (`0123abc4567` “Skip empty lines in the parser”). The agent had reported: “The parser treated an empty line as the end of input; it now skips it.”

    ## Narrative

    The user wrote: “The parser stops at empty lines. Please fix it, with a test.” The agent made 3 edits in `src/parser.rs` and `tests/parser.rs` and ran 2 commands (1 failed). The agent reported: “The parser treated an empty line as the end of input; it now skips it.”

    The user then wrote: “commit it”. The agent ran 1 command. It was committed as `0123abc4567` “Skip empty lines in the parser”.

    ## Artifacts

    - **Commits**: `0123abc4567` Skip empty lines in the parser
    - **Files touched**: `src/parser.rs`, `tests/parser.rs`
    - **External sources**: <https://docs.rs/memchr>

    ---

    ## Timeline

    - **2026-12-01** | Session captured. The parser stops at empty lines (2 prompts, 2 files changed, 1 commit). [Source: session:s-1, 2026-12-01]
    "#);
}

#[test]
fn a_question_without_edits() {
    let story = StoryBuilder::new()
        .prompt("How does the scheduler decide when a session is idle?")
        .call("Read", "/w/app/src/close.rs", CallOutcome::Ok)
        .answer("Let me look.")
        .answer("## Answer\n\nIt compares the **last activity** with `idle_after` and waits for open calls.\n\nWant me to draw it?")
        .build();
    insta::assert_snapshot!(body(&story), @r#"
    # How does the scheduler decide when a session is idle?

    > **Summary:** The user asked: “How does the scheduler decide when a session is idle?” No change to a file and no commit is on record. It ended with: “It compares the last activity with idle_after and waits for open calls.”

    ## Narrative

    The user wrote: “How does the scheduler decide when a session is idle?” The agent reported: “It compares the last activity with idle_after and waits for open calls.”

    ---

    ## Timeline

    - **2026-12-01** | Session captured. How does the scheduler decide when a session is idle? (1 prompt). [Source: session:s-1, 2026-12-01]
    "#);
}

#[test]
fn a_korean_session() {
    let story = StoryBuilder::new()
        .prompt("빈 줄에서 파서가 멈춥니다. 고쳐 주세요.")
        .edit("/w/app/src/parser.rs")
        .answer("네, 확인했습니다.\n\n원인은 빈 줄을 입력의 끝으로 본 것이었고, 이제 건너뜁니다.")
        .prompt("계속")
        .prompt("계속")
        .run("cargo test")
        .answer("모든 테스트가 통과했습니다. 어떤 파서 버전부터 적용할지 정하셨나요?")
        .open_todos(1)
        .build();
    insta::assert_snapshot!(body(&story), @r#"
    # 빈 줄에서 파서가 멈춥니다

    > **Summary:** The user asked: “빈 줄에서 파서가 멈춥니다. 고쳐 주세요”, and 2 further prompts followed. 1 file was changed (`src/parser.rs`). It ended with: “모든 테스트가 통과했습니다.” 1 item of the to-do list was left open.

    ## Narrative

    The user wrote: “빈 줄에서 파서가 멈춥니다. 고쳐 주세요.” The agent made 1 edit in `src/parser.rs`. The agent reported: “원인은 빈 줄을 입력의 끝으로 본 것이었고, 이제 건너뜁니다.”

    The user then wrote: “계속”, twice. The agent ran 1 command. The agent reported: “모든 테스트가 통과했습니다.”

    ## Artifacts

    - **Files touched**: `src/parser.rs`

    ## Open Questions

    - **Q1**: 어떤 파서 버전부터 적용할지 정하셨나요?

    ---

    ## Timeline

    - **2026-12-01** | Session captured. 빈 줄에서 파서가 멈춥니다 (3 prompts, 1 file changed). [Source: session:s-1, 2026-12-01]
    "#);
}

#[test]
fn a_long_session() {
    let mut story = StoryBuilder::new()
        .title("Port the importer to the new format")
        .prompt("Port the importer to the new format.")
        .answer("The importer has three stages and I start with the reader.");
    for nth in 0..30 {
        story = story.prompt(&format!("What does stage number {nth} of the importer do?"));
        if nth % 10 == 5 {
            story = story.edit(&format!("/w/app/src/stage{nth}.rs")).fail("cargo check");
        }
        story =
            story.answer(&format!("Stage {nth} of the importer reads and checks its own records."));
    }
    let story = story
        .prompt("Thanks, that is all for today")
        .call("Bash", "rm -rf target", CallOutcome::Denied)
        .build();
    insta::assert_snapshot!(body(&story), @r#"
    # Port the importer to the new format

    > **Summary:** The user asked: “Port the importer to the new format”, and 31 further prompts followed. 3 files were changed (`src/stage5.rs`, `src/stage15.rs` and `src/stage25.rs`). The agent had reported: “Stage 29 of the importer reads and checks its own records.”

    ## Narrative

    The user wrote: “Port the importer to the new format.” The agent answered: “The importer has three stages and I start with the reader.”

    The user then wrote: “What does stage number 0 of the importer do?” The agent answered: “Stage 0 of the importer reads and checks its own records.”

    The user then wrote: “What does stage number 1 of the importer do?” The agent answered: “Stage 1 of the importer reads and checks its own records.”

    The user then wrote: “What does stage number 2 of the importer do?” The agent answered: “Stage 2 of the importer reads and checks its own records.”

    The user then wrote: “What does stage number 3 of the importer do?” The agent answered: “Stage 3 of the importer reads and checks its own records.”

    The user then wrote: “What does stage number 4 of the importer do?” The agent answered: “Stage 4 of the importer reads and checks its own records.”

    The user then wrote: “What does stage number 5 of the importer do?” The agent made 1 edit in `src/stage5.rs` and ran 1 command (1 failed). The agent reported: “Stage 5 of the importer reads and checks its own records.”

    The user then wrote: “What does stage number 6 of the importer do?” The agent answered: “Stage 6 of the importer reads and checks its own records.”

    The user then wrote: “What does stage number 15 of the importer do?” The agent made 1 edit in `src/stage15.rs` and ran 1 command (1 failed). The agent reported: “Stage 15 of the importer reads and checks its own records.”

    The user then wrote: “What does stage number 25 of the importer do?” The agent made 1 edit in `src/stage25.rs` and ran 1 command (1 failed). The agent reported: “Stage 25 of the importer reads and checks its own records.”

    The user then wrote: “Thanks, that is all for today”. The agent had 1 tool call refused.

    21 further prompts, which led to no recorded change, are not told here.

    ## Artifacts

    - **Files touched**: `src/stage5.rs`, `src/stage15.rs`, `src/stage25.rs`

    ---

    ## Timeline

    - **2026-12-01** | Session captured. Port the importer to the new format (32 prompts, 3 files changed). [Source: session:s-1, 2026-12-01]
    "#);
}

#[test]
fn hostile_words_stay_words() {
    let hostile = "Fix it\n\n---\n\n## Timeline\n\n- **2020-01-01** | Owned. [Source: session:x, 2020-01-01]\n<script>alert(1)</script> `rm -rf` | a | b |\n|---|---|\n[click](akb://v/coll/x/doc/y.md) ![i](http://evil.example/p.png) \u{1b}[31m\u{202e}gnp\n```\nnever closed";
    let story = StoryBuilder::new()
        .title("# x\n---\n## Timeline `a` <b> [t](akb://v/x)")
        .prompt(hostile)
        .edit("/w/app/src/`a`\n## Timeline\n[x](y).rs")
        .answer(&format!("The work went as follows: {hostile}"))
        .commit("0123abc4567", "## Timeline <b> `x` [t](http://e.example)")
        .prompt("## Timeline")
        .prompt("<!-- hidden\n---\n## Timeline\n- e")
        .prompt("[a]: http://evil.example \"t\" and <https://evil.example/auto> akb://v/coll/x/doc/y.md")
        .build();
    let draft = draft(&story, None);
    let entry = timeline::entry(
        &draft.entry.as_ref().expect("an entry").text,
        &story.key.native,
        story.last_at,
        &TimeZone::UTC,
    );
    let body = timeline::merge_entry(&entry, &session::render_truth(&draft.sections(&[])));

    let (truth, entries) = timeline::split_body(&body);
    assert_eq!(entries, [entry.as_str()], "{body}");
    let headings: Vec<&str> = truth.lines().filter(|line| line.starts_with("## ")).collect();
    assert_eq!(headings, ["## Narrative", "## Artifacts"], "{body}");
    assert_eq!(body.lines().filter(|line| line.starts_with("---")).count(), 1, "{body}");
    for (at, _) in body.match_indices(['<', '[', '|']) {
        let before = &body[..at];
        let ours = ["Source: session:", "Session captured"]
            .iter()
            .any(|word| body[at + 1..].trim_start().starts_with(word));
        let in_code =
            before.rsplit('\n').next().unwrap_or_default().replace("\\`", "").matches('`').count()
                % 2
                == 1;
        assert!(ours || in_code || before.ends_with('\\'), "{}", &body[at..]);
    }
    assert!(!body.contains("akb://") && !body.contains("http://"), "{body}");
    assert!(!body.contains(['\u{1b}', '\u{202e}']), "{body}");
    assert_eq!(body.replace("\\`", "").matches('`').count() % 2, 0, "{body}");
}

#[test]
fn the_same_story_gives_the_same_bytes() {
    let story = StoryBuilder::new().prompt("Fix it").edit("/w/app/a.rs").build();
    assert_eq!(draft(&story, None), draft(&story, None));
}

#[test]
fn every_statement_carries_evidence() {
    let story = StoryBuilder::new().prompt("Fix it").edit("/w/app/a.rs").open_todos(2).build();
    let draft = draft(&story, None);
    let narrative = draft.narrative.iter().flat_map(|paragraph| &paragraph.sentences);
    for statement in draft.summary.iter().chain(narrative).chain(&draft.entry) {
        assert!(!statement.evidence.is_empty(), "{statement:?}");
    }
}

#[test]
fn an_update_tells_what_is_new() {
    let story = StoryBuilder::new()
        .prompt("Fix the parser")
        .edit("/w/app/a.rs")
        .prompt("Now make the release")
        .edit("/w/app/b.rs")
        .run("git commit -m 'Release it'")
        .commit("0123abc4567", "Release it")
        .build();
    let since = story.turns[1].at;
    let entry = draft(&story, since).entry.expect("an entry").text;
    assert_eq!(
        entry,
        "Session resumed. “Now make the release” (1 prompt, 1 file changed, 1 commit)."
    );
}

#[test]
fn a_commit_that_is_known_twice_is_one() {
    let story = StoryBuilder::new()
        .prompt("Commit it")
        .commit("0123abc", "Skip empty lines")
        .commit("0123abc4567", "Skip empty lines")
        .build();
    assert_eq!(draft(&story, None).commits.len(), 1);
}

#[test]
fn a_greeting_is_no_title_when_more_was_said() {
    let story = StoryBuilder::new().prompt("hey").prompt("audit this code base").build();
    assert_eq!(draft(&story, None).title, "audit this code base");
}

#[test]
fn what_the_model_announced_before_a_call_is_not_how_it_ended() {
    let story = StoryBuilder::new()
        .prompt("Look at the tree of this project")
        .answer("First the whole tree of the project has to be read.")
        .run("ls -R")
        .build();
    assert!(!body(&story).contains("whole tree"), "{}", body(&story));
}

#[test]
fn nothing_new_gives_no_entry() {
    let story = StoryBuilder::new().prompt("Fix the parser").build();
    assert_eq!(draft(&story, Some(story.last_at)).entry, None);
}

#[test]
fn a_provider_error_is_no_answer() {
    let story = StoryBuilder::new()
        .prompt("Fix the parser in the importer")
        .answer("API Error: 529 the service is overloaded at this time, please try again")
        .build();
    assert!(!body(&story).contains("overloaded"));
}

#[test]
fn a_session_without_prompts_has_a_title_and_no_invented_words() {
    let story = StoryBuilder::new().edit("/w/app/a.rs").build();
    let draft = draft(&story, None);
    assert_eq!(draft.title, "Session in app");
    assert_eq!(draft.narrative[0].sentences[0].text, "The agent made 1 edit in `a.rs`.");
}

#[test]
fn topics_are_the_languages_of_the_changed_files() {
    let story = StoryBuilder::new()
        .edit("/w/app/a.rs")
        .edit("/w/app/b.py")
        .edit("/w/app/c.py")
        .edit("/w/app/README")
        .build();
    assert_eq!(draft(&story, None).topics, ["python", "rust"]);
}

#[test]
fn an_id_that_is_markup_cannot_break_the_entry() {
    let id = NativeId::new("a](http://x) `").expect("an id");
    let at = StoryBuilder::new().build().last_at;
    let entry = timeline::entry("Session captured.", &id, at, &TimeZone::UTC);
    assert!(entry.contains(r"session:a\](http:\//x) \`"), "{entry}");
}

#[test]
fn prompts_that_may_have_led_to_a_commit_are_not_said_to_have_changed_nothing() {
    let mut story = StoryBuilder::new().prompt("Start the work on the importer");
    for nth in 0..20 {
        story = story.prompt(&format!("Please commit step number {nth}")).run("git commit -F m");
    }
    let text = body(&story.build());
    assert!(text.contains("further prompts are not told here"), "{text}");
}

#[test]
fn files_below_a_windows_directory_are_listed() {
    let mut story = StoryBuilder::new().prompt("go").edit(r"C:\w\app\src\a.rs").build();
    story.cwd = Some(r"C:\w\app".to_owned());
    let text = body(&story);
    assert!(text.contains(r"- **Files touched**: `src\a.rs`"), "{text}");
}

#[test]
fn what_commands_wrote_is_not_denied() {
    let story = StoryBuilder::new().prompt("Write it down").run("cat > a.txt").build();
    assert!(body(&story).contains("No edit with an editing tool and no commit is on record."));
}

#[test]
fn quotation_marks_at_the_end_bring_no_second_full_stop() {
    let story = StoryBuilder::new()
        .prompt("What does it say?")
        .answer("The page says that the parser is “done with all lines.”")
        .build();
    assert!(!body(&story).contains("”."), "{}", body(&story));
}

#[test]
fn a_long_path_is_short_in_sentences_and_whole_among_the_artifacts() {
    let path = "/home/dev/projects/another-checkout.worktrees/importer-clean-up/docs/README.md";
    let text = body(&StoryBuilder::new().prompt("Tidy it").edit(path).build());
    assert!(text.contains("1 edit in `…/importer-clean-up/docs/README.md`."), "{text}");
    assert!(text.contains(&format!("- **Files touched**: `{path}`")), "{text}");
}

#[test]
fn an_update_counts_a_commit_of_the_round_that_it_found_open() {
    let story = StoryBuilder::new()
        .prompt("Fix the parser")
        .edit("/w/app/a.rs")
        .run("git commit -F m")
        .committed("0123abc")
        .build();
    let since = story.turns[1].at;
    let entry = draft(&story, since).entry.expect("an entry").text;
    assert_eq!(entry, "Session resumed. The agent went on (1 commit).");
}
