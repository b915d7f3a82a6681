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
