use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::*;

const NOTE: &str = "# T\n\nText.\n\n---\n\n## Timeline\n\n- **2026-12-01** | One. [Source: session:a, 2026-12-01]\n  more\n- **2026-11-30** | Zero.";

#[test]
fn an_entry_is_a_bullet_with_its_indented_lines() {
    let (above, entries) = split_body(NOTE);
    assert_eq!(above, "# T\n\nText.");
    assert_eq!(
        entries,
        [
            "- **2026-12-01** | One. [Source: session:a, 2026-12-01]\n  more",
            "- **2026-11-30** | Zero."
        ]
    );
}

#[test]
fn a_body_without_timeline_is_all_truth() {
    for content in ["", "# T\n", "# T\n\n---\n\ntext\n", "## Timeline\n\n- x"] {
        assert_eq!(split_body(content), (content, vec![]));
    }
}

#[test]
fn the_rule_right_before_the_timeline_splits_though_an_earlier_one_is_followed_by_it_eventually() {
    // Seed 000 says "first … followed eventually"; read so, the rule in the middle would cut the note in two.
    let content = "a\n\n---\n\nb\n\n---\n\n## Timeline\n\n- x";
    assert_eq!(split_body(content), ("a\n\n---\n\nb", vec!["- x"]));
}

#[test]
fn the_last_of_several_timelines_is_the_one() {
    let content = "a\n---\n## Timeline\n- old\n\n---\n\n## Timeline\n\n- new";
    assert_eq!(split_body(content), ("a\n---\n## Timeline\n- old", vec!["- new"]));
}

#[test]
fn rules_in_code_tables_and_front_matter_do_not_split() {
    let head = "---\ntitle: x\n---\n\n```yaml\n---\n\n## Timeline\n```\n\n| a |\n| --- |\n| b |\n\n~~~\n---\n## Timeline\n~~~";
    let content = format!("{head}\n\n---\n\n## Timeline\n\n- x\n");
    assert_eq!(split_body(&content), (head, vec!["- x"]));
    assert_eq!(split_body(head), (head, vec![]));
}

#[test]
fn a_fence_that_is_never_closed_does_not_hide_the_timeline() {
    let (_, entries) = split_body("```\ncode\n\n---\n\n## Timeline\n\n- x");
    assert_eq!(entries, ["- x"]);
}

#[test]
fn a_bullet_in_code_of_an_entry_is_part_of_it() {
    let entry = "- x\n```\n- y\n```";
    let content = format!("t\n\n---\n\n## Timeline\n\n{entry}\n- z");
    assert_eq!(split_body(&content).1, [entry, "- z"]);
}

#[test]
fn windows_line_ends_are_no_obstacle() {
    let content = "a\r\n\r\n---\r\n\r\n## Timeline\r\n\r\n- x\r\n- y\r\n";
    assert_eq!(split_body(content), ("a", vec!["- x", "- y"]));
    assert_eq!(split_body(&merge_entry("- new", content)).1, ["- new", "- x", "- y"]);
}

#[test]
fn mode_a_takes_the_draft_and_keeps_all_entries() {
    let merged = merge_full("# New\n\n---\n\n## Timeline\n\n- **2026-12-02** | Two.", NOTE);
    assert_eq!(merged.warnings, []);
    let (above, entries) = split_body(&merged.content);
    assert_eq!(above, "# New");
    assert_eq!(entries[0], "- **2026-12-02** | Two.");
    assert_eq!(entries[1..], split_body(NOTE).1);
}

#[test]
fn mode_a_without_an_entry_writes_the_draft_and_warns_and_still_loses_nothing() {
    let merged = merge_full("# New", NOTE);
    assert_eq!(merged.warnings, [MergeWarning::NoEntry]);
    assert_eq!(split_body(&merged.content), ("# New", split_body(NOTE).1));
    assert_eq!(merge_full("# New", "old").content, "# New");
}

#[test]
fn mode_a_takes_the_first_of_several_entries_and_warns() {
    let merged = merge_full("# New\n\n---\n\n## Timeline\n\n- b\n- a", NOTE);
    assert_eq!(merged.warnings, [MergeWarning::ManyEntries(2)]);
    assert_eq!(split_body(&merged.content).1.len(), 3);
}

#[test]
fn a_draft_that_leaves_a_fence_open_cannot_swallow_the_timeline() {
    let existing = "a\n\n---\n\n## Timeline\n\n- x\n  ```\n  y\n  ```";
    let merged = merge_full("# New\n```\ncode\n\n---\n\n## Timeline\n\n- n", existing);
    assert_eq!(merged.warnings, [MergeWarning::OpenFence]);
    assert_eq!(split_body(&merged.content).0, "# New\n```\ncode\n```");
    assert_eq!(split_body(&merged.content).1, ["- n", "- x\n  ```\n  y\n  ```"]);
}

#[test]
fn mode_b_keeps_every_byte_of_the_note() {
    let merged = merge_entry("- **2026-12-02** | Two.", NOTE);
    assert_eq!(merged.replacen("- **2026-12-02** | Two.\n", "", 1), NOTE);
}

#[test]
fn mode_b_adds_the_section_where_there_is_none() {
    assert_eq!(merge_entry("- x", "# T\n\nText."), "# T\n\nText.\n\n---\n\n## Timeline\n\n- x");
}

#[test]
fn an_entry_cannot_bring_a_second_entry_or_a_split() {
    let merged = merge_entry("what\n- second\n---\n\n## Timeline\n```", "t");
    let (above, entries) = split_body(&merged);
    assert_eq!(above, "t");
    assert_eq!(entries, ["- what\n  - second\n  ---\n\n  ## Timeline\n    ```"]);
}

#[test]
fn a_persons_line_above_the_entries_stays_above_them() {
    let content = "t\n\n---\n\n## Timeline\n\nKept by hand.\n\n- x";
    let merged = merge_entry("- n", content);
    assert_eq!(split_body(&merged).1, ["Kept by hand.", "- n", "- x"]);
}

#[test]
fn the_date_of_an_entry_is_the_users() {
    let at: Timestamp = "2026-11-30T20:30:00Z".parse().expect("a timestamp");
    let tz = TimeZone::fixed(jiff::tz::offset(9));
    let session = NativeId::new("s-1").expect("an id");
    assert_eq!(
        entry("Session captured. Fixed\nit.", &session, at, &tz),
        "- **2026-12-01** | Session captured. Fixed it. [Source: session:s-1, 2026-12-01]"
    );
}

/// Lines of the sort that could confuse a splitter.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("---".to_owned()),
        Just("## Timeline".to_owned()),
        Just("```".to_owned()),
        Just("~~~~ rust".to_owned()),
        Just("````".to_owned()),
        Just(String::new()),
        Just("- bullet".to_owned()),
        Just("* star".to_owned()),
        Just("  - nested".to_owned()),
        Just("  ```".to_owned()),
        Just("    code".to_owned()),
        Just("text\r".to_owned()),
        Just("| --- |".to_owned()),
        "[a-z -]{0,6}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(line(), 0..14).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn mode_b_loses_changes_and_moves_nothing(entry in text(), existing in text()) {
        let before: Vec<String> = split_body(&existing).1.into_iter().map(str::to_owned).collect();
        let merged = merge_entry(&entry, &existing);
        let (above, mut after) = split_body(&merged);
        let new = as_entry(&entry);
        if !new.is_empty() {
            let first = after.iter().position(|e| *e == new);
            prop_assert!(first.is_some(), "the entry is not there: {after:?}");
            if !before.contains(&new) {
                after.remove(first.unwrap_or_default());
            }
        }
        prop_assert_eq!(&after, &before);
        if !new.is_empty() {
            prop_assert!(above.trim_end().starts_with(split_body(&existing).0.trim_end()));
        }
    }

    #[test]
    fn mode_a_loses_changes_and_moves_no_entry(draft in text(), existing in text()) {
        let before: Vec<String> = split_body(&existing).1.into_iter().map(str::to_owned).collect();
        let merged = merge_full(&draft, &existing);
        let after = split_body(&merged.content).1;
        let kept: Vec<&str> = after.iter().copied().filter(|e| before.iter().any(|b| b == e)).collect();
        prop_assert_eq!(kept, before.iter().map(String::as_str).collect::<Vec<_>>());
        prop_assert!(after.len() <= before.len() + 1);
        if !merged.warnings.contains(&MergeWarning::OpenFence) && (!after.is_empty()) {
            prop_assert_eq!(split_body(&merged.content).0, split_body(&draft).0.trim_end());
        }
    }

    #[test]
    fn a_retry_changes_nothing(draft in text(), entry in text(), existing in text()) {
        let once = merge_entry(&entry, &existing);
        prop_assert_eq!(&merge_entry(&entry, &once), &once);
        let full = merge_full(&draft, &existing).content;
        prop_assert_eq!(&merge_full(&draft, &full).content, &full);
    }

    #[test]
    fn a_fence_hunt_in_hostile_text_ends(marks in prop::collection::vec("[`~]{3,9}[a-z]", 0..200)) {
        prop_assert!(split_body(&marks.join("\n")).1.is_empty());
    }
}
