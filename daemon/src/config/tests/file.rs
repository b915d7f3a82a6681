//! What stands in a file, and how it is said what is wrong with it.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;

#[test]
fn an_empty_file_gives_the_defaults() {
    assert_eq!(from_text(""), Config::default());
}

/// A key that is shown but never read would pass every other test.
#[test]
fn every_key_is_read_from_the_file() {
    for key in Loaded::from_text("", Path::new("c.toml")).unwrap().keys() {
        let (section, name) = key.rsplit_once('.').unwrap();
        let complaint = one_complaint(&format!("[{section}]\n{name} = 1979-05-27\n"));
        assert!(
            complaint.starts_with(&format!("c.toml:2: {key} is a date; expected ")),
            "{complaint}"
        );
    }
}

#[test]
fn the_keys_are_those_of_the_interface() {
    let keys: BTreeSet<String> =
        Loaded::from_text("", Path::new("c.toml")).unwrap().keys().into_iter().collect();
    let expected = "archive.enabled archive.keep archive.max_bytes backfill.notes_since \
        git.enabled git.timeout log.format log.level metrics.prometheus_listen notes.api_key_env \
        notes.api_key_file notes.base_url notes.daily_token_budget notes.drafter notes.idea_model \
        notes.lang notes.max_input_tokens notes.max_per_session.decision \
        notes.max_per_session.idea notes.max_per_session.task notes.max_per_session.til \
        notes.model notes.precision notes.scripted notes.timeout projects.exclude \
        projects.include projects.map projects.mode redact.allow redact.enabled redact.extra \
        sessions.end_grace sessions.idle_after sessions.max_open_call sources.claude \
        sources.codex sources.poll_interval vault.kind vault.name vault.path vault.token_env \
        vault.token_file vault.url";
    assert_eq!(keys, expected.split_whitespace().map(str::to_owned).collect());
}

#[test]
fn a_misspelt_key_names_the_nearest_with_file_and_line() {
    insta::assert_snapshot!(
        one_complaint("[sessions]\n\nidle_afer = \"5m\"\n"),
        @"c.toml:3: unknown key sessions.idle_afer; did you mean sessions.idle_after?"
    );
}

#[test]
fn a_misspelt_section_names_the_nearest() {
    insta::assert_snapshot!(
        one_complaint("[session]\nidle_after = \"5m\"\n"),
        @"c.toml:1: unknown section [session]; did you mean [sessions]?"
    );
}

#[test]
fn a_key_of_another_section_is_sent_there() {
    insta::assert_snapshot!(
        one_complaint("[vault]\ndrafter = \"extractive\"\n"),
        @"c.toml:2: unknown key vault.drafter; did you mean notes.drafter?"
    );
    insta::assert_snapshot!(
        one_complaint("idle_after = \"5m\"\n"),
        @"c.toml:1: unknown key idle_after; did you mean sessions.idle_after?"
    );
}

#[test]
fn a_key_of_a_nested_section_is_corrected_within_it() {
    insta::assert_snapshot!(
        one_complaint("[notes]\nmax_per_session = { tasks = 1 }\n"),
        @"c.toml:2: unknown key notes.max_per_session.tasks; did you mean notes.max_per_session.task?"
    );
    insta::assert_snapshot!(
        one_complaint("[notes]\nmax_per_sesion = { task = 1 }\n"),
        @"c.toml:2: unknown key notes.max_per_sesion; did you mean notes.max_per_session?"
    );
}

#[test]
fn a_secret_under_a_wrong_name_is_not_repeated() {
    let complaint = one_complaint("[notes]\napi_key = \"sk-live-123\"\n");
    assert_eq!(complaint, "c.toml:2: unknown key notes.api_key; did you mean notes.api_key_env?");
}

#[test]
fn a_wrong_type_says_what_was_found_and_what_is_expected() {
    insta::assert_snapshot!(
        one_complaint("[sessions]\nidle_after = 20\n"),
        @r#"c.toml:2: sessions.idle_after is the number 20; expected a duration such as "90s", "20m", "2h" or "7d""#
    );
    insta::assert_snapshot!(
        one_complaint("[redact]\nextra = \"pass\"\n"),
        @r#"c.toml:2: redact.extra is a text; expected a list such as ["…", "…"]"#
    );
    insta::assert_snapshot!(
        one_complaint("notes = 3\n"),
        @"c.toml:1: notes is the number 3; expected a section such as [notes]"
    );
}

#[test]
fn a_wrong_word_names_the_right_ones() {
    insta::assert_snapshot!(
        one_complaint("[notes]\ndrafter = \"claude\"\n"),
        @r#"c.toml:2: notes.drafter is "claude"; expected one of "extractive", "anthropic", "openai", "claude-cli", "codex-cli""#
    );
}

#[test]
fn a_negative_cap_is_refused() {
    insta::assert_snapshot!(
        one_complaint("[notes.max_per_session]\ntil = -1\n"),
        @"c.toml:2: notes.max_per_session.til is the number -1; expected a whole number from 0 to 4294967295"
    );
}

#[test]
fn broken_toml_names_the_line() {
    let complaint = one_complaint("[log]\nlevel = \"info\"\nformat = \n");
    assert!(complaint.starts_with("c.toml:3: not valid TOML: "), "{complaint}");
}

#[test]
fn a_key_given_twice_is_refused() {
    let complaint = one_complaint("[log]\nlevel = \"info\"\nlevel = \"warn\"\n");
    assert!(complaint.starts_with("c.toml:3: not valid TOML: "), "{complaint}");
}

#[test]
fn a_file_in_another_encoding_names_the_line() {
    let faults =
        crate::config::file::parse(b"[log]\n# \xfcber\n", Path::new("c.toml")).unwrap_err();
    assert_eq!(faults[0].to_string(), "c.toml:2: not UTF-8: save the file as UTF-8 text");
}

#[test]
fn a_byte_order_mark_is_no_fault() {
    assert_eq!(from_text("\u{feff}[log]\nlevel = \"warn\"\n").log.level, LogLevel::Warn);
}

#[test]
fn all_faults_are_reported_in_the_order_of_lines() {
    let lines =
        complaints("[vault]\nkind = 1\n[log]\nlevle = \"info\"\n[git]\nenabled = \"yes\"\n");
    let places: Vec<_> = lines.iter().filter_map(|line| line.get(..8)).collect();
    assert_eq!(places, ["c.toml:2", "c.toml:4", "c.toml:6"]);
}

#[test]
fn the_error_as_a_whole_is_one_line() {
    let error = Loaded::from_text("a = 1\nb = 2\n", Path::new("c.toml")).unwrap_err().to_string();
    assert!(error.starts_with("c.toml:1: ") && error.contains("and 1 more"), "{error}");
    assert!(!error.contains('\n'));
}

#[test]
fn a_setting_is_read_in_each_of_tomls_notations() {
    let expected = Duration::from_mins(5);
    for text in [
        "[sessions]\nidle_after = \"5m\"",
        "sessions.idle_after = \"5m\"",
        "sessions = { idle_after = \"5m\" }",
        "[\"sessions\"]\n'idle_after' = '5m'",
    ] {
        assert_eq!(from_text(text).sessions.idle_after, expected, "{text}");
    }
}

#[test]
fn a_path_maps_to_a_project_or_to_project_and_vault() {
    let map = from_text(
        "[projects.map]\n\"~/w/x\" = \"site\"\n\"/srv/y\" = { project = \"api\", vault = \"team\" }\n",
    )
    .projects
    .map;
    assert_eq!(map["~/w/x"], MapTarget { project: Some("site".into()), vault: None });
    assert_eq!(
        map["/srv/y"],
        MapTarget { project: Some("api".into()), vault: Some("team".into()) }
    );
}

#[test]
fn a_wrong_word_in_the_map_names_its_path() {
    insta::assert_snapshot!(
        one_complaint("[projects.map]\n\"~/w/x.y\" = { projct = \"api\" }\n"),
        @r#"c.toml:2: unknown key projects.map."~/w/x.y".projct; did you mean project?"#
    );
}

#[test]
fn sizes_are_bytes_or_carry_a_unit() {
    for (text, bytes) in [("1024", 1024), ("\"20GiB\"", 20 << 30), ("\"500 MB\"", 500_000_000)] {
        let limit = from_text(&format!("[archive]\nmax_bytes = {text}\n")).archive.max_bytes;
        assert_eq!(limit, ByteLimit::Bytes(bytes), "{text}");
    }
    assert!(one_complaint("[archive]\nmax_bytes = \"99999999999TiB\"\n").contains("expected"));
}

#[test]
fn metrics_listen_where_they_are_told() {
    let at = |text: &str| from_text(&format!("[metrics]\nprometheus_listen = {text:?}\n")).metrics;
    assert_eq!(at("off").address(), None);
    assert_eq!(at("localhost:9464").address(), Some("127.0.0.1:9464".parse().unwrap()));
    assert_eq!(at("[::1]:9464").address(), Some("[::1]:9464".parse().unwrap()));
}

#[test]
fn a_quoted_name_with_a_dot_is_no_key_of_a_section() {
    insta::assert_snapshot!(
        one_complaint("\"sessions.idle_after\" = \"5m\"\n"),
        @r#"c.toml:1: unknown key "sessions.idle_after"; did you mean sessions.idle_after?"#
    );
}

#[test]
fn a_name_that_several_other_sections_have_is_corrected_in_its_own() {
    insta::assert_snapshot!(
        one_complaint("[log]\nenabled = true\n"),
        @"c.toml:2: unknown key log.enabled; did you mean log.level?"
    );
}
