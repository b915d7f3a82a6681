//! What is well formed and cannot work.

use super::*;

#[test]
fn the_defaults_pass_the_check() {
    assert_eq!(checked("", &[]), Vec::<String>::new());
}

#[test]
fn a_duration_of_nothing_is_a_problem() {
    assert_eq!(
        checked("[sessions]\nidle_after = \"0s\"\n", &[]),
        ["c.toml:2: sessions.idle_after is 0s; give it more than nothing"]
    );
}

#[test]
fn akb_needs_address_and_name() {
    let problems = checked("[vault]\nkind = \"akb\"\n", &[]);
    assert_eq!(problems.len(), 2);
    assert!(problems[0].starts_with("vault.url is unset"), "{problems:?}");
    assert!(problems[1].starts_with("vault.name is unset"), "{problems:?}");
    let text = "[vault]\nkind = \"akb\"\nname = \"team\"\n";
    assert_eq!(checked(text, &[("AKB_MCP_URL", "https://kb/mcp/")]), Vec::<String>::new());
}

#[test]
fn an_address_without_scheme_is_a_problem() {
    let problems =
        checked("[vault]\nkind = \"akb\"\nname = \"t\"\nurl = \"kb.example/mcp/\"\n", &[]);
    assert!(problems[0].starts_with("c.toml:4: vault.url is no address"), "{problems:?}");
}

#[test]
fn a_model_api_needs_a_model_and_a_cli_does_not() {
    let problems = checked("[notes]\ndrafter = \"anthropic\"\n", &[]);
    assert!(problems[0].starts_with("notes.model is unset"), "{problems:?}");
    assert_eq!(
        checked("[notes]\ndrafter = \"anthropic\"\nmodel = \"m\"\n", &[]),
        Vec::<String>::new()
    );
    assert_eq!(checked("[notes]\ndrafter = \"claude-cli\"\n", &[]), Vec::<String>::new());
}

#[test]
fn a_broken_pattern_is_named_by_its_place() {
    insta::assert_snapshot!(
        checked("[redact]\nextra = [\"ok.\", \"s3cret(\"]\n", &[]).join("\n"),
        @"c.toml:2: redact.extra entry 2 is no regular expression: unclosed group"
    );
}

#[test]
fn a_pattern_that_matches_everything_is_a_problem() {
    let problems = checked("[redact]\nallow = [\".*\"]\n", &[]);
    assert!(problems[0].contains("entry 1 matches the empty text"), "{problems:?}");
}

#[test]
fn a_relative_path_is_a_problem() {
    let problems = checked(
        "[sources]\ncodex = [\"codex\"]\n[vault]\npath = \"$HOME/v\"\n[projects.map]\nx = \"y\"\n",
        &[],
    );
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(problems.iter().all(|line| line.contains("begin the path with / or ~/")));
}

#[test]
fn a_secret_in_place_of_its_variables_name_is_a_problem_and_not_repeated() {
    let problems = checked("[vault]\ntoken_env = \"akb-s3cret\"\n", &[]);
    assert!(problems[0].contains("vault.token_file"), "{problems:?}");
    assert!(!problems[0].contains("s3cret"), "{problems:?}");
}

#[test]
fn a_vault_inside_a_watched_root_is_refused_with_the_reason() {
    insta::assert_snapshot!(
        checked("[vault]\npath = \"~/.claude/notes\"\n", &[]).join("\n"),
        @"c.toml:2: paths.vault_dir /nowhere/u/.claude/notes is inside the watched root /nowhere/u/.claude: agents would take the writes for their own edits; set `path` in [vault] to a directory outside it"
    );
}

#[test]
fn state_inside_a_watched_root_is_refused_with_the_reason() {
    let problems = checked("", &[("MAJORDOMUS_STATE_DIR", "/nowhere/u/.codex")]);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0]
            .starts_with("env MAJORDOMUS_STATE_DIR: paths.state_dir /nowhere/u/.codex is inside")
    );
    assert!(problems[0].contains("set MAJORDOMUS_STATE_DIR"));
}

#[test]
fn the_key_variable_is_the_providers_unless_named() {
    let variable = |text: &str| from_text(text).notes.key_variable().map(str::to_owned);
    assert_eq!(variable(""), None);
    assert_eq!(variable("notes.drafter = \"openai\"").as_deref(), Some("OPENAI_API_KEY"));
    assert_eq!(variable("notes.api_key_env = \"K\"").as_deref(), Some("K"));
}
