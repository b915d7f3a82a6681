//! The command line: exit codes, one-line errors, help.

use std::path::Path;

use crate::support::{Home, ago};

const S1: &str = "0b2c9d1e-0001-4000-8000-000000000001";
const S2: &str = "0b2c9d1e-0002-4000-8000-000000000002";

#[test]
fn a_bad_config_is_exit_5_with_one_line_that_names_the_nearest_key() {
    let home = Home::new().config("[notes]\ndraftr = \"extractive\"\n");
    for said in [home.once(), home.ctl(&["sessions"]), home.ctl(&["config", "check"])] {
        assert_eq!(said.code, 5, "{}", said.stderr);
        assert_eq!(said.stderr.lines().count(), 1, "{}", said.stderr);
        assert!(said.stderr.contains("drafter"), "{}", said.stderr);
    }
}

#[test]
fn config_show_gives_every_value_with_its_origin() {
    let home = Home::new();
    let shown = home.ask(&["config", "show"]);
    assert_eq!(shown["sessions.idle_after"]["value"], "1h");
    let origin = shown["sessions.idle_after"]["origin"].as_str().expect("text");
    assert!(origin.contains("config.toml"), "{origin}");
    assert_eq!(shown["notes.drafter"]["origin"], "default");
    assert!(home.ctl(&["config", "check"]).ok().stdout.contains("valid"));
    let check = crate::support::said(home.daemon_command().arg("--check"));
    assert_eq!(check.code, 0, "{}", check.stderr);
    assert!(!home.state().exists(), "a check makes nothing");
}

#[test]
fn commands_that_need_the_daemon_exit_3_without_it() {
    let home = Home::new();
    for command in [&["close", "--all"][..], &["stop"], &["status"]] {
        let said = home.ctl(command);
        assert_eq!(said.code, 3, "{command:?}: {}", said.stderr);
    }
    assert_eq!(home.ctl(&["sessions"]).code, 4, "there is no ledger yet");
    assert_eq!(home.ctl(&["sessions", "--since", "whenever"]).code, 2);
    assert_eq!(home.ctl(&["frobnicate"]).code, 2);
}

#[test]
fn sessions_are_filtered_and_named_by_prefix_and_last() {
    let home = Home::with_idle_after("20m");
    home.claude(S1).at(&ago(90_000)).prompt("Older").answer("Done.");
    home.codex(S2).at(&ago(7_200)).meta(Path::new("/w/svc")).prompt("Newer").answer("Done.");
    home.once().ok();
    let ids = |arguments: &[&str]| -> Vec<String> {
        let list = home.ask(arguments);
        list.as_array()
            .expect("a list")
            .iter()
            .map(|s| s["id"].as_str().expect("text").to_owned())
            .collect()
    };
    assert_eq!(ids(&["sessions"]), [S2, S1], "the newest first");
    assert_eq!(ids(&["sessions", "--tool", "claude"]), [S1]);
    assert_eq!(ids(&["sessions", "--project", "svc"]), [S2]);
    assert_eq!(ids(&["sessions", "--since", "3h"]), [S2]);
    assert_eq!(ids(&["sessions", "--open"]), Vec::<String>::new());
    assert_eq!(home.ask(&["show", "last"])["id"], S2);
    assert_eq!(home.ask(&["show", "0b2c9d1e-0001"])["id"], S1);
    let many = home.ctl(&["show", "0b2c"]);
    assert_eq!(many.code, 2, "{}", many.stderr);
    assert!(many.stderr.contains(S1) && many.stderr.contains(S2));
    assert_eq!(home.ctl(&["show", "zz"]).code, 4);
    assert_eq!(home.ctl(&["envelope", &format!("{S1}/7")]).code, 4);
    let table = home.ctl(&["sessions"]).ok().stdout;
    assert!(table.starts_with("SESSION"), "{table}");
    assert!(!table.contains('\u{1b}'), "no colour in a pipe");
}

#[test]
fn the_daemon_and_the_store_give_the_same_answers() {
    let home = Home::with_idle_after("20m");
    home.claude(S1).at(&ago(7_200)).prompt("One").edit("/w/app/a.rs").answer("Done.");
    home.once().ok();
    let commands: [&[&str]; 4] =
        [&["sessions", "--json"], &["show", S1, "--json"], &["notes", "--json"], &["envelope", S1]];
    let store: Vec<String> = commands.iter().map(|command| home.ctl(command).ok().stdout).collect();
    let _daemon = home.start();
    let daemon: Vec<String> =
        commands.iter().map(|command| home.ctl(command).ok().stdout).collect();
    assert_eq!(store, daemon);
}

#[test]
fn help_names_every_command_and_exit_code() {
    let home = Home::new();
    let help = home.ctl(&["--help"]).ok().stdout;
    for command in
        ["status", "sessions", "show", "close", "envelope", "notes", "draft", "stop", "config"]
    {
        assert!(help.contains(command), "{command}");
    }
    assert!(help.contains("75 already running"), "{help}");
    let daemon = crate::support::said(home.daemon_command().arg("--help")).ok().stdout;
    for flag in ["--config", "--once", "--check", "--log-format", "-v"] {
        assert!(daemon.contains(flag), "{flag}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let home = Home::with_idle_after("20m");
    home.claude(S1).at(&ago(7_200)).prompt("One").answer("Done.");
    home.once().ok();
    let mut command = home.ctl_command();
    command.args(["sessions", "--json"]).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("started");
    drop(child.stdout.take());
    let code = child.wait().expect("ended").code();
    assert_eq!(code, Some(0));
}
