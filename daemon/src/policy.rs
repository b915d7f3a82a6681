//! What the user and the repositories say of taking part: `[projects]`, a file `.majordomus-ignore` in a directory,
//! and `.majordomus.toml` in a repository, which may only restrict (interface.md, "Config").

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use majordomus_core::policy::{Exclusion, ProjectRules, Verdict};
use serde::Deserialize;

use crate::config::{Env, ProjectMode, Projects};

/// A file with this name keeps the sessions of its directory, and of those below, out of the ledger.
const IGNORE_FILE: &str = ".majordomus-ignore";

/// What a repository says.
const REPOSITORY_FILE: &str = ".majordomus.toml";

/// A longer repository file is not read.
const MAX_REPOSITORY_FILE: u64 = 64 * 1024;

/// The policy in force.
#[derive(Debug, Default)]
pub struct Policy {
    rules: ProjectRules,
    /// Somebody restricted who takes part, beyond what every installation does.
    is_restricted: bool,
}

/// How far a session's notes may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DraftRule {
    /// No notes.
    Off,
    /// Only into a local vault.
    Local,
    /// Anywhere.
    #[default]
    Push,
}

/// The file `.majordomus.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RepositoryFile {
    #[serde(default)]
    draft: DraftRule,
}

impl Policy {
    /// Compiles the policy of the configuration.
    pub fn new(projects: &Projects, env: &Env) -> Result<Self> {
        let expand = |patterns: &[String]| -> Vec<String> {
            patterns.iter().map(|pattern| expand(pattern, env)).collect()
        };
        let listed_only = projects.mode == ProjectMode::Listed;
        let (include, exclude) = (expand(&projects.include), expand(&projects.exclude));
        let rules = ProjectRules::new(listed_only, &include, &exclude)
            .context("[projects] has a pattern that cannot be used")?;
        let is_restricted = listed_only || projects.exclude != Projects::default().exclude;
        Ok(Self { rules, is_restricted })
    }

    /// Why a session that works in `cwd` is kept out of the ledger, if it is.
    pub fn exclusion(&self, cwd: Option<&str>, remote: Option<&str>) -> Option<String> {
        if let Verdict::Excluded(why) = self.rules.judge(cwd, remote) {
            return Some(match why {
                Exclusion::Pattern(pattern) => format!("[projects] exclude has {pattern}"),
                Exclusion::NotListed => "[projects] include does not list it".to_owned(),
            });
        }
        let cwd = Path::new(cwd?);
        ignore_file_above(cwd).map(|file| format!("there is {}", file.display()))
    }

    /// Whether a session must be known by its directory before its first line may be recorded. The pattern that
    /// every installation has is no reason to hold back the lines of a file that names none.
    pub fn needs_directory(&self) -> bool {
        self.is_restricted && self.rules.can_exclude()
    }

    /// Whether the remote of a session's repository matters.
    pub fn needs_remote(&self) -> bool {
        self.rules.has_remotes()
    }

    /// How far notes about a session that works in `cwd` may go. What cannot be read forbids.
    pub fn draft_rule(&self, cwd: &Path) -> (DraftRule, Option<String>) {
        let Some(file) = above(cwd, REPOSITORY_FILE) else { return (DraftRule::Push, None) };
        match read_repository_file(&file) {
            Ok(rule) => (rule, None),
            Err(error) => {
                let line =
                    format!("{} cannot be used, so there are no notes: {error:#}", file.display());
                (DraftRule::Off, Some(line))
            }
        }
    }
}

fn read_repository_file(file: &Path) -> Result<DraftRule> {
    let length = std::fs::metadata(file)?.len();
    anyhow::ensure!(length <= MAX_REPOSITORY_FILE, "it is over 64 KiB");
    let text = std::fs::read_to_string(file)?;
    let parsed: RepositoryFile =
        toml::from_str(&text).context("it must hold draft = \"off\", \"local\" or \"push\"")?;
    Ok(parsed.draft)
}

fn ignore_file_above(cwd: &Path) -> Option<PathBuf> {
    above(cwd, IGNORE_FILE)
}

/// The file `name` in a directory or the nearest one above it. Only absolute directories are looked at: they come
/// from transcripts.
fn above(directory: &Path, name: &str) -> Option<PathBuf> {
    if !directory.is_absolute() {
        return None;
    }
    directory.ancestors().map(|above| above.join(name)).find(|file| file.is_file())
}

fn expand(pattern: &str, env: &Env) -> String {
    match (pattern.strip_prefix("~/"), &env.home) {
        (Some(below), Some(home)) => format!("{}/{below}", home.display()),
        _ => pattern.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_123_a_marker_file_keeps_its_directory_out() {
        let home = tempfile::tempdir().expect("a directory");
        let below = home.path().join("a/b");
        std::fs::create_dir_all(&below).expect("made");
        let policy = Policy::default();
        let cwd = below.to_str().expect("text");
        assert_eq!(policy.exclusion(Some(cwd), None), None);
        std::fs::write(home.path().join("a").join(IGNORE_FILE), "").expect("written");
        assert!(policy.exclusion(Some(cwd), None).expect("kept out").contains(IGNORE_FILE));
        assert_eq!(policy.exclusion(home.path().to_str(), None), None);
    }

    #[test]
    fn a_repository_may_restrict_and_what_cannot_be_read_forbids() {
        let home = tempfile::tempdir().expect("a directory");
        let policy = Policy::default();
        let rule = |text: &str| {
            std::fs::write(home.path().join(REPOSITORY_FILE), text).expect("written");
            policy.draft_rule(home.path())
        };
        assert_eq!(rule("draft = \"local\"\n"), (DraftRule::Local, None));
        assert_eq!(rule("draft = \"off\"\n"), (DraftRule::Off, None));
        assert_eq!(rule(""), (DraftRule::Push, None));
        for broken in ["draft = \"sometimes\"\n", "drafts = \"off\"\n", "=\n"] {
            let (rule, problem) = rule(broken);
            assert_eq!(rule, DraftRule::Off, "{broken}");
            assert!(problem.expect("told").contains(REPOSITORY_FILE));
        }
    }

    #[test]
    fn a_tilde_is_the_users_home() {
        let home = Path::new("/home/u");
        let env = Env { home: Some(home.to_owned()), ..Env::default() };
        let projects = Projects { exclude: vec!["~/private/**".to_owned()], ..Projects::default() };
        let policy = Policy::new(&projects, &env).expect("compiled");
        assert!(policy.exclusion(Some("/home/u/private/x"), None).is_some());
        assert!(policy.exclusion(Some("/home/v/private/x"), None).is_none());
        assert!(!policy.needs_directory(), "it is the default");
        let projects = Projects { exclude: vec!["/w/x".to_owned()], ..Projects::default() };
        assert!(Policy::new(&projects, &env).expect("compiled").needs_directory());
    }
}
