//! The daemon as sessions run.

use std::time::Instant;

use crate::support::{Home, ago, git, signal};

const S1: &str = "0b2c9d1e-0001-4000-8000-000000000001";
const S2: &str = "0b2c9d1e-0002-4000-8000-000000000002";

#[test]
fn an_appended_line_is_in_the_ledger_in_under_a_second() {
    let home = Home::new();
    let claude = home.claude(S1).prompt("One");
    let _daemon = home.start();
    assert_eq!(home.session(S1)["prompts"], 1);
    let began = Instant::now();
    claude.prompt("Two");
    home.wait("the second prompt", || home.session(S1)["prompts"] == 2);
    // The poll itself starts a process; a second is the promise.
    assert!(began.elapsed().as_millis() < 1_000, "{:?}", began.elapsed());
    assert_eq!(home.session(S1)["state"], "open");
}

#[test]
fn a_session_that_goes_on_gets_a_second_envelope_and_one_note_with_two_entries() {
    let home = Home::with_idle_after("2s");
    let _daemon = home.start();
    let claude = home
        .claude(S1)
        .prompt("Fix the parser")
        .edit("/w/app/parser.rs")
        .answer("It is fixed now.");
    home.wait("the first note", || home.notes().len() == 1);
    let first = home.envelopes();
    assert_eq!(first.len(), 1);
    let note = home.notes().remove(0).1;
    assert_eq!(note.matches("Session captured.").count(), 1, "{note}");

    claude.prompt("Now fix the lexer").edit("/w/app/lexer.rs").answer("The lexer is fixed too.");
    home.wait("the second envelope", || home.envelopes().len() == 2);
    home.wait("the update", || home.notes()[0].1.contains("Session resumed."));
    assert_eq!(home.envelopes()[0], first[0], "the first envelope is byte-identical");
    let notes = home.notes();
    assert_eq!(notes.len(), 1);
    let note = &notes[0].1;
    let resumed = note.find("Session resumed.").expect("an entry");
    assert!(resumed < note.find("Session captured.").expect("an entry"), "newest first:\n{note}");
    assert!(note.contains("lexer"), "{note}");
    assert_eq!(home.ask(&["notes", S1]).as_array().map(Vec::len), Some(1));
}

#[test]
fn two_sessions_written_line_by_line_in_turn_never_mix() {
    let home = Home::with_idle_after("2s");
    let _daemon = home.start();
    let (mut a, mut b) = (home.claude(S1), home.claude(S2));
    for n in 0..20 {
        a = a.prompt(&format!("A {n}")).edit("/w/app/a.rs");
        b = b.prompt(&format!("B {n}")).answer("Done.");
    }
    home.wait("both envelopes", || home.envelopes().len() == 2);
    let (a, b) = (home.session(S1), home.session(S2));
    assert_eq!((a["prompts"].as_u64(), a["answers"].as_u64()), (Some(20), Some(0)));
    assert_eq!((b["prompts"].as_u64(), b["answers"].as_u64()), (Some(20), Some(20)));
    assert_eq!(b["files_written"].as_array().map(Vec::len), Some(0));
    for (id, files) in [(S1, 1), (S2, 0)] {
        let envelope = home.ask(&["envelope", id]);
        assert_eq!(envelope["references"]["files"].as_array().map(Vec::len), Some(files));
        assert_eq!(envelope["counts"]["prompts"], 20);
    }
}

#[test]
fn case_140_two_sessions_that_abut_in_one_second_never_mix() {
    let home = Home::with_idle_after("20m");
    let at = ago(7_200);
    let a = home.claude(S1).at(&at).prompt("A").edit("/w/app/a.rs").answer("Done.");
    let b = home.claude(S2).at(&at).prompt("B").edit("/w/app/b.rs").answer("Done.");
    drop((a, b));
    home.once().ok();
    for (id, file) in [(S1, "/w/app/a.rs"), (S2, "/w/app/b.rs")] {
        let files = home.ask(&["envelope", id])["references"]["files"].clone();
        assert_eq!(files.as_array().map(Vec::len), Some(1));
        assert_eq!(files[0]["path"], file);
    }
}

#[test]
fn what_is_written_while_the_daemon_runs_gets_its_note_whatever_times_it_carries() {
    let home = Home::with_idle_after("2s");
    let _daemon = home.start();
    let claude = home.claude(S1).at("2025-01-05T10:00:00.000Z");
    let claude = claude.prompt("Fix the parser").edit("/w/app/parser.rs");
    home.wait("the first lines", || home.session(S1)["prompts"] == 1);
    assert_eq!(home.session(S1)["state"], "open", "it was seen to grow just now");
    drop(claude.answer("It is fixed now."));
    home.wait("the note", || home.notes().len() == 1);
    assert_eq!(home.envelopes().len(), 1);
    assert_eq!(home.ask(&["envelope", S1])["closed_at"], "2025-01-05T10:00:02Z");
}

#[test]
fn a_root_that_appears_later_is_watched() {
    let home = Home::new();
    std::fs::remove_dir_all(home.path("home/.claude")).expect("removed");
    let _daemon = home.start();
    home.claude(S1).prompt("One");
    home.wait("the prompt", || home.session(S1)["prompts"] == 1);
}

#[test]
fn a_torn_line_waits_for_its_rest() {
    let home = Home::new();
    let _daemon = home.start();
    let mut claude = home.claude(S1).prompt("One");
    let line =
        claude.line("user", &serde_json::json!({"message": {"role": "user", "content": "Two"}}));
    let (head, tail) = line.split_at(line.len() / 2);
    let claude = claude.raw(head.as_bytes());
    home.wait("the torn line is seen", || {
        home.ctl(&["status", "--json"]).json()["lag"]["bytes"].as_u64() == Some(head.len() as u64)
    });
    assert_eq!(home.session(S1)["prompts"], 1);
    claude.raw(tail.as_bytes()).raw(b"\n");
    home.wait("the second prompt", || home.session(S1)["prompts"] == 2);
    assert_eq!(home.ctl(&["status", "--json"]).json()["ledger"]["unreadable"], 0);
}

#[test]
fn git_is_observed_when_an_episode_opens_and_when_it_ends() {
    let home = Home::with_idle_after("3s");
    let repository = home.repository("repo");
    let start = git(&repository, &["rev-parse", "HEAD"]);
    let _daemon = home.start();
    let claude = home.claude(S1).cwd(&repository).prompt("Add a line and commit it");
    home.wait("the opening is observed", || {
        home.ctl(&["status", "--json"]).json()["ledger"]["events"].as_u64() >= Some(3)
    });
    std::fs::write(repository.join("README.md"), "two\n").expect("written");
    git(&repository, &["commit", "-qam", "Second"]);
    let end = git(&repository, &["rev-parse", "HEAD"]);
    claude.commit(&end[..7], "Second").answer("Committed.");
    home.wait("the note", || home.notes().len() == 1);
    let envelope = home.ask(&["envelope", S1]);
    let fact = |end: &str, name: &str| envelope["git"][end][name].clone();
    assert_eq!(fact("start", "head")["value"], start.as_str());
    assert_eq!(fact("start", "head")["provenance"], "observed");
    assert_eq!(fact("end", "head")["value"], end.as_str());
    assert_eq!(fact("end", "working_tree")["value"], "clean");
    assert_eq!(envelope["git"]["commits_between"]["commits"][0], end.as_str());
    assert_eq!(envelope["references"]["commits"][0], &end[..7]);
    assert!(home.notes()[0].1.contains(&end[..7]), "{}", home.notes()[0].1);
}

#[test]
fn a_close_on_request_takes_an_authored_summary() {
    let home = Home::new();
    let _daemon = home.start();
    home.claude(S1).prompt("One").edit("/w/app/a.rs").answer("Done.");
    home.wait("the session", || home.session(S1)["answers"] == 1);

    let close = |summary: &str| {
        use std::io::Write as _;
        let mut child = home
            .ctl_command()
            .args(["close", S1, "--summary", "-"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("started");
        child.stdin.take().expect("piped").write_all(summary.as_bytes()).expect("written");
        let output = child.wait_with_output().expect("ended");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, complaint) = close("All done.\nsession_id: forged\n");
    assert_eq!(code, Some(10), "{complaint}");
    assert!(complaint.contains("session_id"));
    assert_eq!(home.session(S1)["state"], "open", "the episode stays open");

    assert_eq!(close("All done.\n").0, Some(0));
    assert_eq!(home.ask(&["envelope", S1])["body"], "All done.\n");
    assert_eq!(home.ask(&["envelope", S1])["close_reason"], "manual");
    let again = home.ctl(&["close", S1]);
    assert_eq!(again.code, 12, "{}", again.stderr);
    assert_eq!(home.ctl(&["close", "--all"]).code, 12);
    assert_eq!(home.ctl(&["close", "nobody"]).code, 4);
}

#[test]
fn a_trailing_title_does_not_open_an_episode() {
    let home = Home::with_idle_after("1s");
    let _daemon = home.start();
    let claude = home.claude(S1).prompt("One").answer("Done.");
    // The envelope's file is there before the close is.
    home.wait("the close", || home.session(S1)["state"] == "closed");
    let claude = claude.title("A title").command("exit");
    let events = home.ctl(&["status", "--json"]).json()["ledger"]["events"].as_u64();
    home.wait("the title is read", || home.session(S1)["title"] == "A title");
    assert!(events.is_some());
    assert_eq!(home.session(S1)["state"], "closed");
    drop(claude);
}

#[test]
fn sigterm_ends_the_daemon_with_zero_and_takes_the_socket_away() {
    let home = Home::new();
    let daemon = home.start();
    assert!(home.socket().exists());
    let began = Instant::now();
    assert_eq!(daemon.terminate(), 0);
    assert!(began.elapsed().as_secs() < 5);
    assert!(!home.socket().exists());
    assert_eq!(home.ctl(&["status"]).code, 3);
}

#[test]
fn ctl_stop_ends_the_daemon() {
    let home = Home::new();
    let daemon = home.start();
    home.ctl(&["stop"]).ok();
    assert_eq!(daemon.ended(), 0);
    assert_eq!(home.ctl(&["stop"]).code, 3);
}

#[test]
fn a_second_daemon_is_refused_and_told_the_pid() {
    let home = Home::new();
    let daemon = home.start();
    let second = home.once();
    assert_eq!(second.code, 75, "{}", second.stderr);
    assert!(second.stderr.contains(&daemon.pid().to_string()), "{}", second.stderr);
    assert_eq!(second.stderr.lines().count(), 1, "{}", second.stderr);
}

#[test]
fn case_087_a_stopped_daemon_is_told_as_unresponsive() {
    let home = Home::new();
    let daemon = home.start();
    signal(daemon.pid(), "STOP");
    let began = Instant::now();
    let said = home.ctl(&["status"]);
    let waited = began.elapsed();
    signal(daemon.pid(), "CONT");
    assert!(waited.as_millis() < 1_000, "{waited:?}");
    assert_eq!(said.code, 6, "{}", said.stderr);
    assert_eq!(said.stderr.lines().count(), 1);
}

#[test]
fn a_project_that_is_renamed_there_and_back_loses_nothing() {
    let home = Home::new();
    let claude = home.claude(S1).prompt("One");
    let _daemon = home.start();
    let (here, there) =
        (home.path("home/.claude/projects/-w-app"), home.path("home/.claude/projects/-w-new"));
    std::fs::rename(&here, &there).expect("moved");
    home.wait("the new place is known", || {
        home.ask(&["show", S1])["sources"][0]["path"]
            .as_str()
            .is_some_and(|it| it.contains("-w-new"))
    });
    std::fs::rename(&there, &here).expect("moved");
    home.wait("the old place is known", || {
        home.ask(&["show", S1])["sources"][0]["path"]
            .as_str()
            .is_some_and(|it| it.contains("-w-app"))
    });
    claude.prompt("Two");
    home.wait("the second prompt", || home.session(S1)["prompts"] == 2);
    assert_eq!(home.ask(&["show", S1])["sources"][0]["state"], "live");
}
