//! Which of flag, variable, file and default holds, and what is shown of it.

use std::path::Path;

use super::*;

#[test]
fn a_missing_default_file_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let env = Env { home: Some(dir.path().into()), ..env(&[]) };
    let loaded = Loaded::read(&env, &Flags::default()).unwrap();
    assert_eq!(loaded.config, Config::default());
    assert_eq!(loaded.file, Some(dir.path().join(".config/majordomus/config.toml")));
}

#[test]
fn the_default_file_is_read_when_it_is_there() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join(".config/majordomus")).unwrap();
    std::fs::write(dir.path().join(".config/majordomus/config.toml"), "log.level = \"debug\"")
        .unwrap();
    let env = Env { home: Some(dir.path().into()), ..env(&[]) };
    let loaded = Loaded::read(&env, &Flags::default()).unwrap();
    assert_eq!(loaded.config.log.level, LogLevel::Debug);
}

#[test]
fn a_missing_file_that_somebody_named_is_an_error() {
    let flags = Flags { config: Some("/nowhere/c.toml".into()), ..Flags::default() };
    insta::assert_snapshot!(
        Loaded::read(&env(&[]), &flags).unwrap_err(),
        @"config file /nowhere/c.toml (flag --config) does not exist; correct the name, or copy config.example.toml there"
    );
    let error = Loaded::read(&env(&[("MAJORDOMUS_CONFIG", "/nowhere/d.toml")]), &Flags::default());
    assert!(error.unwrap_err().to_string().contains("/nowhere/d.toml (env MAJORDOMUS_CONFIG)"));
}

#[test]
fn a_directory_in_place_of_the_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let flags = Flags { config: Some(dir.path().into()), ..Flags::default() };
    let error = Loaded::read(&env(&[]), &flags).unwrap_err().to_string();
    assert!(error.contains(&dir.path().display().to_string()), "{error}");
}

#[test]
fn the_flag_wins_over_the_variable_for_the_file() {
    let loaded = read("", &[("MAJORDOMUS_CONFIG", "/nowhere/d.toml")]);
    assert_eq!(loaded.file_origin, Origin::Flag("--config"));
}

#[test]
fn claudes_variable_is_a_list_by_comma_or_colon() {
    let loaded = read("", &[("CLAUDE_CONFIG_DIR", "/a, ~/b:c,,")]);
    assert_eq!(
        loaded.config.sources.claude,
        ["/a", "/nowhere/u/b", "/nowhere/u/work/c"].map(PathBuf::from)
    );
    assert_eq!(loaded.origin("sources.claude"), Origin::Env("CLAUDE_CONFIG_DIR"));
}

#[test]
fn codexs_variable_replaces_the_default() {
    let loaded = read("", &[("CODEX_HOME", "/x")]);
    assert_eq!(loaded.config.sources.codex, [PathBuf::from("/x")]);
    assert_eq!(loaded.origin("sources.codex"), Origin::Env("CODEX_HOME"));
}

#[test]
fn the_file_wins_over_the_tools_variables() {
    let text = "[sources]\nclaude = []\ncodex = [\"/f\"]\n[vault]\nurl = \"https://f/mcp/\"\n";
    let vars =
        [("CLAUDE_CONFIG_DIR", "/e"), ("CODEX_HOME", "/e"), ("AKB_MCP_URL", "https://e/mcp/")];
    let loaded = read(text, &vars);
    assert_eq!(loaded.config.sources.claude, Vec::<PathBuf>::new());
    assert_eq!(loaded.config.sources.codex, [PathBuf::from("/f")]);
    assert_eq!(loaded.config.vault.url.as_deref(), Some("https://f/mcp/"));
}

#[test]
fn akbs_variable_holds_where_the_file_is_silent() {
    let loaded = read("", &[("AKB_MCP_URL", "https://e/mcp/")]);
    assert_eq!(loaded.config.vault.url.as_deref(), Some("https://e/mcp/"));
    assert_eq!(loaded.origin("vault.url"), Origin::Env("AKB_MCP_URL"));
}

#[test]
fn an_empty_variable_is_an_unset_one() {
    let loaded =
        read("", &[("CODEX_HOME", ""), ("CLAUDE_CONFIG_DIR", ""), ("XDG_CONFIG_HOME", "")]);
    assert_eq!(loaded.config, Config::default());
}

#[test]
fn a_flag_wins_over_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    std::fs::write(&file, "[log]\nformat = \"text\"\nlevel = \"warn\"\n").unwrap();
    let flags = Flags {
        config: Some(file),
        log_format: Some(LogFormat::Json),
        log_level: Some(LogLevel::Trace),
    };
    let loaded = Loaded::read(&env(&[]), &flags).unwrap();
    assert_eq!(loaded.config.log, Log { level: LogLevel::Trace, format: LogFormat::Json });
    assert_eq!(loaded.origin("log.format").to_string(), "flag --log-format");
}

#[test]
fn every_value_is_shown_with_its_origin() {
    let loaded =
        Loaded::from_text("\n[sessions]\nidle_after = \"90m\"\n", Path::new("/e/c.toml")).unwrap();
    let shown = loaded.show();
    let line = |key: &str| {
        let setting = shown.iter().find(|setting| setting.key == key).unwrap();
        format!("{} = {} ({})", setting.key, setting.value, setting.origin)
    };
    assert_eq!(line("sessions.idle_after"), "sessions.idle_after = \"1h 30m\" (file /e/c.toml:3)");
    assert_eq!(line("backfill.notes_since"), "backfill.notes_since = \"7d\" (default)");
    assert_eq!(line("notes.model"), "notes.model = null (default)");
}

#[test]
fn secrets_are_hidden_in_what_is_shown() {
    let loaded = from_text_loaded(
        "[vault]\nurl = \"https://me:s3cret@kb.example/mcp/?key=s3cret\"\ntoken_env = \"akb-s3cret\"\n\
         [notes]\nbase_url = \"https://s3cret@api.example\"\napi_key_env = \"sk-s3cret\"\n\
         [redact]\nextra = [\"s3cret\", 'cust-\\d+']\n",
    );
    let shown = serde_json::to_string(&loaded.show()).unwrap();
    assert!(!shown.contains("s3cret"), "{shown}");
    assert!(shown.contains("https://(hidden)@kb.example/mcp/?(hidden)"), "{shown}");
    assert!(shown.contains("cust-"), "{shown}");
}

#[test]
fn names_of_variables_are_shown() {
    let shown = serde_json::to_string(&from_text_loaded("").show()).unwrap();
    assert!(shown.contains("AKB_PAT"));
}
