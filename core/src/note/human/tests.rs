use proptest::prelude::*;

use super::*;

const OLD: &str = "# Fix the parser

> **Summary:** The parser failed on empty lines.

## Narrative

The user asked for a fix.

Two files were changed.

## Artifacts

- **Commits**: `aaaaaaa`
- **Files touched**: `a.rs`";

const NEW: &str = "# Fix the parser

> **Summary:** The parser failed on empty lines; a release followed.

## Narrative

The user asked for a fix.

Two files were changed.

Then a release was made.

## Artifacts

- **Commits**: `aaaaaaa`, `bbbbbbb`
- **Files touched**: `a.rs`

## Open Questions

- **Q1**: Which version?";

fn after_edit(edit: impl FnOnce(&str) -> String) -> String {
    let current = edit(OLD);
    assert_ne!(current, OLD, "the edit did nothing");
    keep_edits(&line_hashes(OLD), &current, NEW)
}

#[test]
fn without_an_edit_the_new_truth_is_taken_as_it_is() {
    assert_eq!(keep_edits(&line_hashes(OLD), OLD, NEW), NEW);
    let padded = format!("\n{}\n\n", OLD.replace('\n', "  \r\n"));
    assert_eq!(keep_edits(&line_hashes(OLD), &padded, NEW), NEW);
}

#[test]
fn sections_stay_in_the_order_that_a_person_gave_them() {
    let (head, rest) = OLD.split_once("## Narrative").expect("a narrative");
    let (narrative, artifacts) = rest.split_once("## Artifacts").expect("artifacts");
    let current = format!(
        "{head}## Artifacts{artifacts}\n\nA remark.\n\n## Narrative{}",
        narrative.trim_end()
    );
    assert_eq!(
        keep_edits(&line_hashes(OLD), &current, NEW),
        "# Fix the parser

> **Summary:** The parser failed on empty lines; a release followed.

## Artifacts

- **Commits**: `aaaaaaa`, `bbbbbbb`
- **Files touched**: `a.rs`

A remark.

## Narrative

The user asked for a fix.

Two files were changed.

Then a release was made.

## Open Questions

- **Q1**: Which version?"
    );
}

#[test]
fn an_added_paragraph_stays_after_its_neighbour() {
    let text = after_edit(|old| old.replace("a fix.", "a fix.\n\nBy hand: see also b.rs."));
    assert_eq!(text, NEW.replace("a fix.", "a fix.\n\nBy hand: see also b.rs."));
}

#[test]
fn an_added_bullet_stays_in_its_list() {
    let text = after_edit(|old| old.replace("- **Files", "- by hand\n- **Files"));
    assert_eq!(text, NEW.replace("- **Files", "- by hand\n- **Files"));
}

#[test]
fn a_rewritten_summary_wins_over_our_new_one() {
    let text = after_edit(|old| old.replace("The parser failed on empty lines.", "My words."));
    assert_eq!(
        text,
        NEW.replace("The parser failed on empty lines; a release followed.", "My words.")
    );
}

#[test]
fn a_rewritten_title_wins() {
    let text = after_edit(|old| old.replace("# Fix the parser", "# Parser repair"));
    assert_eq!(text, NEW.replace("# Fix the parser", "# Parser repair"));
}

#[test]
fn a_rewritten_paragraph_takes_the_place_of_ours() {
    let text = after_edit(|old| old.replace("Two files were changed.", "Really three files."));
    assert_eq!(text, NEW.replace("Two files were changed.", "Really three files."));
}

#[test]
fn a_summary_rewritten_without_its_label_is_known_by_its_place() {
    let text =
        after_edit(|old| old.replace("> **Summary:** The parser failed on empty lines.", "Short."));
    let ours = "> **Summary:** The parser failed on empty lines; a release followed.";
    assert_eq!(text, NEW.replace(ours, "Short."));
}

#[test]
fn a_deleted_line_does_not_come_back() {
    let text = after_edit(|old| old.replace("Two files were changed.\n\n", ""));
    assert_eq!(text, NEW.replace("Two files were changed.\n\n", ""));
}

#[test]
fn a_deleted_labelled_line_does_not_come_back_in_a_new_version() {
    let text = after_edit(|old| old.replace("- **Commits**: `aaaaaaa`\n", ""));
    assert_eq!(text, NEW.replace("- **Commits**: `aaaaaaa`, `bbbbbbb`\n", ""));
}

#[test]
fn a_deleted_section_does_not_come_back_with_other_lines() {
    let text =
        after_edit(|old| old.split("\n\n## Artifacts").next().unwrap_or_default().to_owned());
    assert!(!text.contains("Artifacts") && !text.contains("bbbbbbb"), "{text}");
    assert!(text.contains("## Open Questions"), "{text}");
}

#[test]
fn a_persons_section_comes_after_the_section_it_followed() {
    let text = after_edit(|old| old.replace("## Artifacts", "## My view\n\nGood.\n\n## Artifacts"));
    assert_eq!(text, NEW.replace("## Artifacts", "## My view\n\nGood.\n\n## Artifacts"));
}

#[test]
fn a_renamed_heading_stays_renamed() {
    let text = after_edit(|old| old.replace("## Narrative", "## What happened"));
    assert_eq!(text, NEW.replace("## Narrative", "## What happened"));
}

#[test]
fn a_line_that_the_person_moved_stands_once_where_they_put_it() {
    let text = after_edit(|old| {
        let without = old.replace("Two files were changed.\n\n", "");
        without.replace("## Narrative\n\n", "## Narrative\n\nTwo files were changed.\n\n")
    });
    assert_eq!(text.matches("Two files were changed.").count(), 1);
    assert!(text.contains("## Narrative\n\nTwo files were changed.\n\nThe user asked"), "{text}");
}

#[test]
fn a_heading_that_we_gave_up_stays_over_a_persons_line() {
    let current =
        NEW.replace("- **Q1**: Which version?", "- **Q1**: Which version?\n- mine: when?");
    let text = keep_edits(&line_hashes(NEW), &current, OLD);
    assert_eq!(text, format!("{OLD}\n\n## Open Questions\n\n- mine: when?"));
}

#[test]
fn a_note_that_we_never_wrote_is_left_as_it_is() {
    assert_eq!(keep_edits(&[], "# Theirs\n\ntext\n", NEW), "# Theirs\n\ntext\n");
    assert_eq!(keep_edits(&[], "", NEW), NEW);
}

#[test]
fn edits_outlive_many_versions() {
    let edited = OLD
        .replace("Two files were changed.", "Really three files.")
        .replace("The user asked for a fix.\n\n", "")
        .replace("`a.rs`", "`a.rs`, checked by hand");
    let second = keep_edits(&line_hashes(OLD), &edited, NEW);
    let third = keep_edits(&line_hashes(NEW), &second, NEW);
    assert_eq!(second, third);
    assert!(third.contains("Really three files.") && third.contains("checked by hand"), "{third}");
    assert!(!third.contains("Two files were") && !third.contains("The user asked"), "{third}");
}

/// A line of ours: plain, labelled, a heading, a fence.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-f]",
        1 => "- \\*\\*[KL]\\*\\*: [a-c]",
        1 => "#{1,3} [A-C]",
        1 => Just("> **Summary:** s".to_owned()),
        1 => Just("```".to_owned()),
        2 => Just(String::new()),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(line(), 1..16).prop_map(|lines| lines.join("\n"))
}

/// Puts a person's lines (each unlike any of ours) into a text and takes some of ours away.
fn edited() -> impl Strategy<Value = (String, String, Vec<String>)> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..6u8), 0..6);
    (text(), edits).prop_map(|(old, edits)| {
        let mut lines: Vec<String> = old.lines().map(str::to_owned).collect();
        let mut added = Vec::new();
        for (nth, (at, what)) in edits.into_iter().enumerate() {
            let at = at.index(lines.len() + 1);
            let mine = match what {
                0 if at < lines.len() => {
                    let gone = lines.remove(at);
                    added.retain(|line| *line != gone);
                    continue;
                }
                1 => format!("## mine {nth}"),
                2 => format!("# mine {nth}"),
                3 => format!("- **K**: mine {nth}"),
                4 => format!("> **Summary:** mine {nth}"),
                _ => format!("mine {nth}"),
            };
            lines.insert(at, mine.clone());
            added.push(mine);
        }
        (old, lines.join("\n"), added)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_line_of_a_person_survives((old, current, added) in edited(), new in text()) {
        let merged = keep_edits(&line_hashes(&old), &current, &new);
        if old.trim().is_empty() {
            return Ok(());
        }
        for line in added {
            let count = merged.lines().filter(|text| *text == line).count();
            prop_assert_eq!(count, 1, "{:?} in {:?}", line, merged);
        }
    }

    #[test]
    fn no_edit_gives_the_new_truth(old in text(), new in text()) {
        prop_assert_eq!(keep_edits(&line_hashes(&old), &old, &new), new);
    }

    #[test]
    fn nothing_comes_from_nowhere((old, current, _) in edited(), new in text()) {
        let merged = keep_edits(&line_hashes(&old), &current, &new);
        for line in merged.lines().filter(|line| !line.is_empty()) {
            let known = current.lines().chain(new.lines()).any(|text| text == line);
            prop_assert!(known, "{line:?}");
        }
    }

    #[test]
    fn an_unchanged_draft_changes_nothing_more((old, current, _) in edited(), new in text()) {
        let once = keep_edits(&line_hashes(&old), &current, &new);
        let twice = keep_edits(&line_hashes(&new), &once, &new);
        let says = |text: &str| {
            let mut lines: Vec<String> =
                text.lines().filter(|line| line.starts_with("mine")).map(str::to_owned).collect();
            lines.sort();
            lines
        };
        prop_assert_eq!(says(&once), says(&twice));
    }
}
