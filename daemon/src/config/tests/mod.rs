//! Claims about the configuration as a whole; the parts stand beside.

mod check;
mod file;
mod load;

use std::ffi::OsString;
use std::path::Path;

use super::*;
use crate::paths::Paths;

/// The example shipped at the top of the repository.
const EXAMPLE: &str = include_str!("../../../../config.example.toml");

fn env(vars: &[(&str, &str)]) -> Env {
    Env {
        vars: vars
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .collect(),
        home: Some("/nowhere/u".into()),
        cwd: "/nowhere/u/work".into(),
        uid: 1000,
    }
}

fn from_text(text: &str) -> Config {
    Loaded::from_text(text, Path::new("c.toml")).unwrap().config
}

/// The lines of complaint about a file.
fn complaints(text: &str) -> Vec<String> {
    Loaded::from_text(text, Path::new("c.toml")).unwrap_err().lines()
}

fn one_complaint(text: &str) -> String {
    let lines = complaints(text);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(!lines[0].contains('\n'), "more than a line: {}", lines[0]);
    lines[0].clone()
}

/// What a file written to a real place and read with this environment gives.
fn read(text: &str, vars: &[(&str, &str)]) -> Loaded {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    std::fs::write(&file, text).unwrap();
    let flags = Flags { config: Some(file), ..Flags::default() };
    Loaded::read(&env(vars), &flags).unwrap()
}

fn checked(text: &str, vars: &[(&str, &str)]) -> Vec<String> {
    let env = env(vars);
    let mut loaded = Loaded::from_text(text, Path::new("c.toml")).unwrap();
    if !vars.is_empty() {
        loaded = read(text, vars);
    }
    let paths = Paths::resolve(&env, &loaded).unwrap();
    check(&loaded, &env, &paths).iter().map(ToString::to_string).collect()
}

/// The example with the comment sign taken off every setting.
fn uncommented_example() -> String {
    EXAMPLE
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(setting) if !setting.starts_with(' ') => setting,
            _ => line,
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_example_as_shipped_changes_nothing() {
    let loaded = Loaded::from_text(EXAMPLE, Path::new("c.toml")).unwrap();
    assert_eq!(loaded.config, Config::default());
    assert!(loaded.show().iter().all(|setting| setting.origin == Origin::Default));
}

#[test]
fn the_example_names_every_key_at_its_default() {
    let loaded = Loaded::from_text(&uncommented_example(), Path::new("c.toml")).unwrap();
    assert_eq!(loaded.config, Config::default());
    let missing: Vec<_> = loaded
        .show()
        .into_iter()
        .filter(|setting| setting.origin == Origin::Default)
        .map(|setting| setting.key)
        .collect();
    assert_eq!(missing, Vec::<String>::new(), "keys that the example does not name");
}

#[test]
fn every_key_of_the_example_has_a_line_of_why() {
    let lines: Vec<_> = EXAMPLE.lines().collect();
    for pair in lines.windows(2) {
        if pair[1].starts_with('#') && !pair[1].starts_with("# ") {
            assert!(pair[0].starts_with("# "), "no reason above {}", pair[1]);
        }
    }
}

fn from_text_loaded(text: &str) -> Loaded {
    Loaded::from_text(text, Path::new("c.toml")).unwrap()
}
