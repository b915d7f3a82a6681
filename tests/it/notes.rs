//! Notes: once each, updated in place, and a person's edits stay.

use crate::support::{Home, ago};

const S1: &str = "0b2c9d1e-0001-4000-8000-000000000001";

#[test]
fn a_note_has_its_front_matter_sections_and_one_entry() {
    let home = Home::with_idle_after("20m");
    home.claude(S1)
        .at(&ago(7_200))
        .prompt("Fix the parser for empty lines")
        .edit("/w/app/src/parser.rs")
        .commit("1a2b3c4", "Skip empty lines")
        .answer("The parser now skips empty lines.");
    home.once().ok();
    let (name, note) = home.notes().remove(0);
    assert_eq!(name, format!("sessions/session-{S1}.md"));
    for needle in [
        "session:0b2c9d1e-0001",
        "last-synced:",
        "project:app",
        "claude-code",
        "drafted-by:extractive",
        "# Fix the parser",
        "> **Summary:**",
        "## Narrative",
        "## Artifacts",
        "1a2b3c4",
        "src/parser.rs",
        "\n---\n\n## Timeline\n",
        "Session captured.",
        "[Source: session:0b2c9d1e-0001",
    ] {
        assert!(note.contains(needle), "{needle} is missing:\n{note}");
    }
    let notes = home.ask(&["notes"]);
    assert_eq!(notes[0]["session"], S1);
    assert_eq!(notes[0]["kind"], "session");
    assert!(notes[0]["uri"].as_str().expect("a URI").contains(&format!("session-{S1}")));
    assert_eq!(notes[0]["title"], "Fix the parser for empty lines");
    let listed = home.ctl(&["notes"]).ok().stdout;
    let file = listed.split_whitespace().last().expect("a file");
    assert!(std::path::Path::new(file).is_file(), "{listed}");
}

#[test]
fn draft_shows_the_note_and_stores_nothing() {
    let home = Home::with_idle_after("20m");
    home.claude(S1).prompt("Fix the parser").edit("/w/app/parser.rs").answer("It is fixed.");
    home.once().ok();
    assert!(home.notes().is_empty(), "the session is still open");
    let drafts = home.ask(&["draft", S1]);
    assert_eq!(drafts[0]["kind"], "session");
    assert!(drafts[0]["body"].as_str().expect("text").contains("## Narrative"));
    let out = home.path("drafts");
    home.ctl(&["draft", S1, "--out", out.to_str().expect("text")]).ok();
    assert!(out.join(format!("sessions/session-{S1}.md")).exists());
    assert!(home.notes().is_empty());
    assert_eq!(home.ask(&["notes"]).as_array().map(Vec::len), Some(0));
}

#[test]
fn a_persons_edits_outlive_an_update() {
    let home = Home::with_idle_after("20m");
    let claude = home
        .claude(S1)
        .at(&ago(86_400))
        .prompt("Fix the parser")
        .edit("/w/app/parser.rs")
        .answer("The parser is fixed.");
    home.once().ok();
    let path = home.vault().join(home.notes()[0].0.clone());
    let note = std::fs::read_to_string(&path).expect("read");
    let edited =
        note.replace("## Narrative\n", "## Narrative\n\nMy own remark: this was the third try.\n");
    assert_ne!(note, edited);
    std::fs::write(&path, edited).expect("written");
    claude
        .at(&ago(7_200))
        .prompt("And the lexer")
        .edit("/w/app/lexer.rs")
        .answer("The lexer is fixed.");
    home.once().ok();
    let note = std::fs::read_to_string(&path).expect("read");
    assert!(note.contains("My own remark: this was the third try."), "{note}");
    assert!(note.contains("lexer"), "{note}");
    assert_eq!(note.matches("## Timeline").count(), 1);
    assert_eq!(note.matches("Session captured.").count(), 1);
    assert_eq!(note.matches("Session resumed.").count(), 1);
    assert_eq!(note.matches("last-synced:").count(), 1);
}

#[test]
fn a_note_that_was_deleted_does_not_come_back() {
    let home = Home::with_idle_after("20m");
    let claude =
        home.claude(S1).at(&ago(86_400)).prompt("Fix it").edit("/w/app/a.rs").answer("Fixed.");
    home.once().ok();
    std::fs::remove_file(home.vault().join(home.notes()[0].0.clone())).expect("removed");
    claude.at(&ago(7_200)).prompt("More").edit("/w/app/b.rs").answer("Done.");
    home.once().ok();
    assert!(home.notes().is_empty());
    let dropped = home.ctl(&["status", "--json"]).json()["funnel"]["dropped"].clone();
    assert_eq!(dropped["deleted_in_vault"], 1);
}

#[test]
fn a_session_with_only_noise_gets_an_envelope_and_no_note() {
    let home = Home::with_idle_after("20m");
    home.claude(S1).at(&ago(7_200)).command("model").command("exit");
    home.once().ok();
    assert_eq!(home.envelopes().len(), 1);
    assert!(home.notes().is_empty());
    assert_eq!(home.session(S1)["meaningful"], false);
}

#[test]
fn a_scripted_session_gets_a_note_only_if_it_changed_something() {
    let home = Home::with_idle_after("20m");
    let scripted = serde_json::json!({"entrypoint": "sdk-cli", "promptSource": "sdk"});
    home.claude(S1).with(scripted.clone()).at(&ago(7_200)).prompt("Tell me").answer("Told.");
    let other = "0b2c9d1e-0002-4000-8000-000000000002";
    home.claude(other)
        .with(scripted)
        .at(&ago(7_200))
        .prompt("Do it")
        .edit("/w/app/a.rs")
        .answer("Done.");
    home.once().ok();
    let notes = home.notes();
    assert_eq!(notes.len(), 1);
    assert!(notes[0].0.contains(other));
    assert_eq!(home.envelopes().len(), 2);
}

#[test]
fn a_vault_that_cannot_be_written_is_told_and_tried_again() {
    // The superuser writes everywhere: a file in the way stops everybody.
    let home = Home::with_idle_after("20m");
    home.claude(S1).at(&ago(7_200)).prompt("Fix it").edit("/w/app/a.rs").answer("Fixed.");
    std::fs::create_dir_all(home.vault()).expect("made");
    std::fs::write(home.vault().join("sessions"), "in the way").expect("written");
    let said = home.once();
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(said.stderr.contains(S1), "{}", said.stderr);
    std::fs::remove_file(home.vault().join("sessions")).expect("removed");
    home.once().ok();
    assert_eq!(home.notes().len(), 1);
}

/// A session that goes on for three days, with a person at its note before each.
fn three_updates(edits: [&dyn Fn(String) -> String; 3]) -> String {
    let home = Home::with_idle_after("20m");
    let mut claude = home
        .claude(S1)
        .at(&ago(6 * 86_400))
        .prompt("Fix the parser. It stops at empty lines.")
        .edit("/w/app/parser.rs")
        .answer("The parser now skips the empty lines of its input.");
    home.once().ok();
    let path = home.vault().join(home.notes()[0].0.clone());
    for ((edit, what), day) in edits.iter().zip(["lexer", "printer", "linker"]).zip([5, 4, 3]) {
        std::fs::write(&path, edit(std::fs::read_to_string(&path).expect("read")))
            .expect("written");
        claude = claude
            .at(&ago(day * 86_400))
            .prompt(&format!("And the {what} please, as before."))
            .edit(&format!("/w/app/{what}.rs"))
            .answer(&format!("The {what} now skips the empty lines of its input too."));
        home.once().ok();
        let written = std::fs::metadata(&path).expect("there").modified().expect("a time");
        home.once().ok();
        let now = std::fs::metadata(&path).expect("there").modified().expect("a time");
        assert_eq!(now, written, "a note was written without need");
    }
    let note = std::fs::read_to_string(&path).expect("read");
    let at =
        |what: &str| note.find(&format!("Session resumed. “And the {what}")).expect("an entry");
    assert!(at("linker") < at("printer") && at("printer") < at("lexer"), "{note}");
    for (needle, times) in [
        ("Session captured.", 1),
        ("Session resumed.", 3),
        ("last-synced:", 1),
        ("## Timeline", 1),
        ("## Narrative", 1),
        ("- **Files touched**", 1),
        ("\ntitle:", 1),
        ("\ntype:", 1),
        ("\nstatus:", 1),
        ("The agent reported: “The printer now", 1),
    ] {
        assert_eq!(note.matches(needle).count(), times, "{needle}\n{note}");
    }
    assert!(note.contains("`lexer.rs`, `linker.rs`, `parser.rs`, `printer.rs`"), "{note}");
    note
}

fn as_it_is(note: String) -> String {
    note
}

#[test]
fn three_updates_give_three_entries_newest_first() {
    let note = three_updates([&as_it_is, &as_it_is, &as_it_is]);
    assert!(note.contains("4 files were changed"), "{note}");
}

#[test]
fn a_persons_title_and_summary_reach_the_front_matter_and_stay() {
    let edit = |note: String| {
        let summary = note.lines().find(|line| line.starts_with("> **Summary")).expect("a summary");
        note.replace("# Fix the parser", "# My title").replace(summary, "> **Summary:** My words.")
    };
    let note = three_updates([&edit, &as_it_is, &as_it_is]);
    for needle in [
        "\n# My title\n",
        "title: \"My title\"",
        "> **Summary:** My words.\n",
        "summary: \"My words.\"",
    ] {
        assert!(note.contains(needle), "{needle}\n{note}");
    }
}

#[test]
fn a_persons_sections_ticks_and_order_stay() {
    let add = |note: String| note.replace("## Artifacts", "## Mine\n\n- [ ] one\n\n## Artifacts");
    let tick = |note: String| note.replace("- [ ] one", "- [x] one");
    let reorder = |note: String| {
        let from = note.find("## Narrative").expect("a narrative");
        let to = note.find("## Mine").expect("a section");
        let end = note.find("\n---\n\n## Timeline").expect("a timeline");
        let (narrative, rest) = (note[from..to].trim_end(), note[to..end].trim_end());
        format!("{}{rest}\n\n{narrative}\n{}", &note[..from], &note[end..])
    };
    let note = three_updates([&add, &tick, &reorder]);
    let at = |what: &str| note.find(what).expect(what);
    assert!(at("- [x] one") < at("- **Files touched**"), "{note}");
    assert!(at("- **Files touched**") < at("## Narrative"), "{note}");
    assert!(at("## Narrative") < at("The user wrote"), "{note}");
}

#[test]
fn the_line_ends_of_a_persons_editor_are_kept() {
    let windows = |note: String| note.replace('\n', "\r\n");
    let remark =
        |note: String| note.replace("## Narrative\r\n", "## Narrative\r\n\r\nMy remark.\r\n");
    let note = three_updates([&windows, &remark, &as_it_is]);
    assert!(note.contains("My remark."), "{note}");
    assert_eq!(note.matches('\n').count(), note.matches("\r\n").count(), "{note:?}");
}

#[test]
fn front_matter_that_was_removed_comes_back_whole() {
    let remove = |note: String| note[note.find("# Fix").expect("a title")..].trim_end().to_owned();
    let note = three_updates([&remove, &as_it_is, &as_it_is]);
    assert!(note.starts_with("---\ntitle: \"Fix the parser\"\ntype: \"session\"\n"), "{note}");
}

/// The ledger's files as they are now.
fn ledger_files(home: &Home) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(home.state()).expect("listed");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let ours = paths.filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ledger.db"))
    });
    ours.map(|path| (path.clone(), std::fs::read(&path).expect("read"))).collect()
}

#[test]
fn a_write_that_the_ledger_did_not_learn_of_is_not_done_twice() {
    let home = Home::with_idle_after("20m");
    let claude = home
        .claude(S1)
        .at(&ago(3 * 86_400))
        .prompt("Fix the parser")
        .edit("/w/app/parser.rs")
        .answer("The parser now skips the empty lines of its input.");
    home.once().ok();
    let old = ledger_files(&home);
    let forget = || {
        for (path, _) in ledger_files(&home) {
            std::fs::remove_file(path).expect("removed");
        }
        for (path, bytes) in &old {
            std::fs::write(path, bytes).expect("written");
        }
    };
    let claude = claude
        .at(&ago(2 * 86_400))
        .prompt("And the lexer")
        .edit("/w/app/lexer.rs")
        .answer("The lexer now skips the empty lines of its input too.");
    home.once().ok();
    let written = home.notes();
    forget();
    home.once().ok();
    assert_eq!(home.notes(), written);

    // It went on before the second try: what stands in the note is not told again.
    forget();
    claude.at(&ago(86_400)).prompt("Now the linker").edit("/w/app/linker.rs").answer("Done.");
    home.once().ok();
    let (_, note) = home.notes().remove(0);
    assert_eq!(note.matches("Session resumed. “And the lexer").count(), 1, "{note}");
    assert!(
        note.contains("Session resumed. “Now the linker” (1 prompt, 1 file changed)"),
        "{note}"
    );
    assert_eq!(note.matches("last-synced:").count(), 1, "{note}");
}

#[test]
fn a_secret_in_a_prompt_does_not_reach_the_note() {
    let home = Home::with_idle_after("20m").config("[redact]\nextra = [\"Acme\"]\n");
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    home.claude(S1)
        .at(&ago(7_200))
        .prompt(&format!("Push the parser to Acme with {secret}, please."))
        .edit("/w/app/a.rs")
        .answer(&format!("The parser was pushed to the server with the key {secret}."));
    home.once().ok();
    let (_, note) = home.notes().remove(0);
    let drafted = home.ctl(&["draft", S1]).ok().stdout;
    for text in [note, drafted] {
        assert!(!text.contains(&secret) && !text.contains("Acme"), "{text}");
        assert!(text.contains("redacted"), "{text}");
    }
}
