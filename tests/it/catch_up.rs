//! `majordomusd --once`: what lies on disk is read once, closed, and noted.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::support::{Home, ago, copy_tree, files_below};

const S1: &str = "0b2c9d1e-0001-4000-8000-000000000001";
const S2: &str = "0b2c9d1e-0002-4000-8000-000000000002";

/// Two sessions that ended two hours ago.
fn home_with_history() -> Home {
    let home = Home::with_idle_after("20m");
    home.claude(S1)
        .at(&ago(7_200))
        .prompt("Fix the parser for empty lines")
        .edit("/w/app/src/parser.rs")
        .answer("The parser now skips empty lines.");
    home.codex(S2)
        .at(&ago(7_100))
        .meta(Path::new("/w/svc"))
        .prompt("Rename the worker")
        .patch("src/worker.rs")
        .answer("Renamed.");
    home
}

#[test]
fn both_tools_sessions_are_read_closed_and_noted() {
    let home = home_with_history();
    home.once().ok();
    let claude = home.session(S1);
    assert_eq!(claude["prompts"], 1);
    assert_eq!(claude["answers"], 1);
    assert_eq!(claude["tool_calls"]["Edit"], 1);
    assert_eq!(claude["files_written"][0], "/w/app/src/parser.rs");
    assert_eq!(claude["project"], "app");
    assert_eq!(claude["state"], "closed");
    assert_eq!(claude["meaningful"], true);
    assert_eq!(claude["title"], "Fix the parser for empty lines");
    let codex = home.session(S2);
    assert_eq!((codex["prompts"].as_u64(), codex["answers"].as_u64()), (Some(1), Some(1)));
    assert_eq!(codex["cwd"], "/w/svc");
    assert_eq!(home.envelopes().len(), 2);
    assert_eq!(home.notes().len(), 2);
}

#[test]
fn a_second_run_adds_nothing_and_rewrites_nothing() {
    let home = home_with_history();
    home.once().ok();
    let stamps = |home: &Home| -> Vec<_> {
        files_below(&home.state().join("sessions"))
            .into_iter()
            .chain(files_below(&home.vault()))
            .map(|path| {
                let metadata = std::fs::metadata(&path).expect("there");
                (
                    path.clone(),
                    metadata.modified().expect("a time"),
                    std::fs::read(&path).expect("read"),
                )
            })
            .collect()
    };
    let events = |home: &Home| {
        let said = home.ctl(&["status", "--json"]);
        said.json()["ledger"]["events"].clone()
    };
    let (before, n) = (stamps(&home), events(&home));
    home.once().ok();
    assert_eq!(stamps(&home), before);
    assert_eq!(events(&home), n);
}

#[test]
fn an_envelope_is_named_by_its_hash_and_says_when_the_session_ended() {
    let home = home_with_history();
    home.once().ok();
    let shown = home.ask(&["show", S1]);
    let episode = &shown["episode_list"][0];
    assert_eq!((episode["n"].as_u64(), episode["reason"].as_str()), (Some(1), Some("idle")));
    assert_eq!(episode["outcome"], "completed");
    let envelope = home.ask(&["envelope", S1]);
    let last = home.session(S1)["last_at"]
        .as_str()
        .expect("a time")
        .parse::<jiff::Timestamp>()
        .expect("a time");
    let closed =
        envelope["closed_at"].as_str().expect("a time").parse::<jiff::Timestamp>().expect("a time");
    assert_eq!(
        closed.duration_since(last).as_mins(),
        20,
        "never now: the last activity and the idle time"
    );
    let printed = home.ctl(&["envelope", &S1[..13]]).ok().stdout;
    let (_, bytes) = &home.envelopes()[0];
    assert_eq!(printed.as_bytes(), bytes.as_slice(), "the very bytes of the file");
}

#[test]
fn a_damaged_envelope_is_found_and_named() {
    let home = home_with_history();
    home.once().ok();
    let path = home.state().join(home.session_envelope(S1));
    let mut bytes = std::fs::read(&path).expect("read");
    bytes.push(b' ');
    std::fs::write(&path, bytes).expect("written");
    let said = home.ctl(&["envelope", S1]);
    assert_eq!(said.code, 7, "{}", said.stderr);
    assert!(said.stderr.contains("1.json"));
}

impl Home {
    fn session_envelope(&self, session: &str) -> String {
        let shown = self.ask(&["show", session]);
        shown["episode_list"][0]["envelope"].as_str().expect("a path").to_owned()
    }
}

#[test]
fn what_is_still_going_on_stays_open() {
    let home = Home::with_idle_after("20m");
    home.claude(S1).prompt("Begin").answer("Begun.");
    home.once().ok();
    assert_eq!(home.session(S1)["state"], "open");
    assert!(home.envelopes().is_empty());
    assert!(home.notes().is_empty());
}

#[test]
fn one_bad_thing_costs_one_line_and_the_rest_goes_on() {
    let home = home_with_history();
    let projects = home.path("home/.claude/projects/-w-app");
    std::fs::create_dir_all(projects.join("x.jsonl")).expect("made");
    std::fs::write(projects.join("0b2c9d1e-0009-4000-8000-000000000009.jsonl"), "")
        .expect("written");
    std::fs::write(
        projects.join("0b2c9d1e-0008-4000-8000-000000000008.jsonl"),
        "version https://lfs\noid\n",
    )
    .expect("written");
    let secret = projects.join("0b2c9d1e-0007-4000-8000-000000000007.jsonl");
    std::fs::write(&secret, "{}\n").expect("written");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o000)).expect("set");
    let said = home.once().ok();
    let lines = |needle: &str| said.stderr.lines().filter(|line| line.contains(needle)).count();
    assert_eq!(lines("x.jsonl is a directory"), 1, "{}", said.stderr);
    // The superuser reads everything.
    if !rustix::process::geteuid().is_root() {
        assert_eq!(lines("0b2c9d1e-0007"), 1, "{}", said.stderr);
    }
    assert_eq!(home.session(S1)["prompts"], 1);
    assert_eq!(home.session(S2)["prompts"], 1);
    let status = home.ctl(&["status", "--json"]).json();
    assert_eq!(status["funnel"]["dropped"]["file_unrecognised"], 1, "the pointer is no session");
}

#[test]
fn without_any_sessions_the_program_says_where_it_looks() {
    let home = Home::new();
    std::fs::remove_dir_all(home.path("home/.claude")).expect("removed");
    std::fs::remove_dir_all(home.path("home/.codex")).expect("removed");
    let said = home.once().ok();
    assert!(said.stderr.contains("home/.claude"), "{}", said.stderr);
    assert!(said.stderr.contains("home/.codex"), "{}", said.stderr);
}

#[test]
fn a_tool_without_a_directory_is_named_and_the_other_goes_on() {
    let home = Home::with_idle_after("20m");
    std::fs::remove_dir_all(home.path("home/.claude")).expect("removed");
    home.codex(S2).at(&ago(7_200)).meta(Path::new("/w/svc")).prompt("One").answer("Done.");
    let said = home.once().ok();
    let named = said.stderr.lines().filter(|line| line.contains("no sessions of claude")).count();
    assert_eq!(named, 1, "{}", said.stderr);
    assert_eq!(home.session(S2)["prompts"], 1);
}

#[test]
fn a_last_line_without_its_line_end_counts_when_the_session_is_over() {
    let home = Home::with_idle_after("20m");
    let mut claude = home.claude(S1).at(&ago(7_200)).prompt("One");
    let message = serde_json::json!({"message": {"role": "user", "content": "Two"}});
    let line = claude.line("user", &message);
    claude.raw(line.as_bytes());
    home.once().ok();
    assert_eq!(home.session(S1)["prompts"], 2);
}

#[test]
fn case_034_a_file_under_two_names_is_read_once() {
    let home = Home::with_idle_after("20m")
        .config("[sources]\nclaude = [\"~/.claude\", \"~/.claude2\"]\n");
    home.claude(S1).at(&ago(7_200)).prompt("One").answer("Done.");
    std::os::unix::fs::symlink(home.path("home/.claude"), home.path("home/.claude2"))
        .expect("linked");
    let link = home.path("home/.claude/projects/-w-link");
    std::fs::create_dir_all(&link).expect("made");
    std::fs::hard_link(
        home.path(&format!("home/.claude/projects/-w-app/{S1}.jsonl")),
        link.join(format!("{S1}.jsonl")),
    )
    .expect("linked");
    home.once().ok();
    let status = home.ctl(&["status", "--json"]).json();
    // Two lines, the opening and the close.
    assert_eq!(status["ledger"]["events"], 4);
}

#[test]
fn case_041_a_file_that_moved_is_not_read_again() {
    let home = Home::with_idle_after("20m");
    home.codex(S2).at(&ago(7_200)).meta(Path::new("/w/svc")).prompt("One").answer("Done.");
    home.once().ok();
    let events = || home.ctl(&["status", "--json"]).json()["ledger"]["events"].clone();
    let before = events();
    let from = files_below(&home.path("home/.codex/sessions")).remove(0);
    let archived = home.path("home/.codex/archived_sessions");
    std::fs::create_dir_all(&archived).expect("made");
    let to = archived.join(from.file_name().expect("a name"));
    std::fs::rename(&from, &to).expect("moved");
    home.once().ok();
    assert_eq!(events(), before);
    let shown = home.ask(&["show", S2]);
    assert_eq!(shown["sources"][0]["path"].as_str(), to.to_str());
    assert_eq!(shown["title"], "One", "its text is read at the new place");
}

#[test]
fn a_replaced_file_with_the_same_beginning_goes_on_where_it_was() {
    let home = Home::with_idle_after("20m");
    let claude = home.claude(S1).at(&ago(7_200)).prompt("One").answer("Done.");
    home.once().ok();
    let path = claude.path().to_owned();
    let bytes = std::fs::read(&path).expect("read");
    let copy = path.with_extension("tmp");
    std::fs::write(&copy, &bytes).expect("written");
    std::fs::rename(&copy, &path).expect("replaced");
    claude.prompt("Two");
    home.once().ok();
    let session = home.session(S1);
    assert_eq!(session["prompts"], 2);
    let kept = home.ask(&["show", S1]);
    assert_eq!(kept["sources"].as_array().map(Vec::len), Some(1));
}

#[test]
fn case_047_a_rewritten_file_costs_nothing_and_doubles_nothing() {
    let home = Home::with_idle_after("20m");
    let claude = home
        .claude(S1)
        .at(&ago(7_200))
        .prompt("One")
        .answer("First.")
        .prompt("Two")
        .answer("Second.");
    home.once().ok();
    // The tool drops the first half and adds a line.
    let path = claude.path().to_owned();
    let text = std::fs::read_to_string(&path).expect("read");
    let half: String = text.lines().skip(2).flat_map(|line| [line, "\n"]).collect();
    std::fs::write(&path, half).expect("written");
    claude.prompt("Three");
    home.once().ok();
    let session = home.session(S1);
    assert_eq!((session["prompts"].as_u64(), session["answers"].as_u64()), (Some(3), Some(2)));
}

#[test]
fn case_039_a_deleted_file_is_missing_and_its_session_stays() {
    let home = home_with_history();
    home.once().ok();
    std::fs::remove_file(home.path(&format!("home/.claude/projects/-w-app/{S1}.jsonl")))
        .expect("removed");
    home.once().ok();
    assert_eq!(home.session(S1)["prompts"], 1);
    assert_eq!(home.ask(&["show", S1])["sources"][0]["state"], "missing");
}

#[test]
fn case_040_a_compressed_rollout_is_read_and_is_no_second_session() {
    let home = Home::with_idle_after("20m");
    let codex =
        home.codex(S2).at(&ago(7_200)).meta(Path::new("/w/svc")).prompt("One").answer("Done.");
    home.once().ok();
    let before = home.session(S2);
    let plain = std::fs::read(codex.path()).expect("read");
    let packed = codex.path().with_extension("jsonl.zst");
    std::fs::write(&packed, zstd::encode_all(plain.as_slice(), 3).expect("packed"))
        .expect("written");
    std::fs::remove_file(codex.path()).expect("removed");
    home.once().ok();
    let after = home.session(S2);
    assert_eq!((&after["prompts"], &after["answers"]), (&before["prompts"], &before["answers"]));
    assert_eq!(after["title"], "One", "its text is read from the compressed file");
    // A rollout that was never met in plain form is read from the compressed one.
    let other = Home::with_idle_after("20m");
    copy_tree(&home.path("home/.codex"), &other.path("home/.codex"));
    other.once().ok();
    assert_eq!(other.session(S2)["prompts"], 1);
}

#[test]
fn old_history_gets_envelopes_and_no_notes_and_the_program_says_so() {
    let home = home_with_history();
    let old = "0b2c9d1e-0003-4000-8000-000000000003";
    home.claude(old)
        .at("2025-01-05T10:00:00.000Z")
        .prompt("Old")
        .edit("/w/app/a.rs")
        .answer("Done.");
    let said = home.once().ok();
    assert_eq!(home.envelopes().len(), 3);
    assert_eq!(home.notes().len(), 2);
    assert!(said.stderr.contains("1 older sessions"), "{}", said.stderr);
    let dropped = home.ctl(&["status", "--json"]).json()["funnel"]["dropped"].clone();
    assert_eq!(dropped["older_than_notes_since"], 1);
}
