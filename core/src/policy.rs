//! Which sessions take part at all (interface.md, `[projects]`): a session in an excluded directory is not even in
//! the ledger. A pattern is a path glob, or a remote.

use globset::{GlobBuilder, GlobMatcher};

use crate::entry::evidence::clean_remote;

/// The rules of `[projects]`.
#[derive(Clone, Debug, Default)]
pub struct ProjectRules {
    listed_only: bool,
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
}

/// A pattern that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{pattern:?} is no path glob: {source}")]
pub struct BadPattern {
    pattern: String,
    #[source]
    source: globset::Error,
}

/// Whether a session takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Allowed,
    /// It does not, because of this.
    Excluded(Exclusion),
}

/// Why a session does not take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// It matches this pattern of `exclude`.
    Pattern(String),
    /// `mode = "listed"`, and nothing in `include` matches. What is unknown is not listed.
    NotListed,
}

#[derive(Clone, Debug)]
struct Pattern {
    text: String,
    matcher: Matcher,
}

#[derive(Clone, Debug)]
enum Matcher {
    /// The directory itself or one below it.
    Path(Vec<GlobMatcher>),
    /// A remote, without credentials and `.git`.
    Remote(GlobMatcher),
}

impl ProjectRules {
    /// Compiles the rules. Paths begin with `/`: the caller has put the home directory in place of `~`.
    pub fn new(
        listed_only: bool,
        include: &[String],
        exclude: &[String],
    ) -> Result<Self, BadPattern> {
        let compile = |patterns: &[String]| -> Result<Vec<Pattern>, BadPattern> {
            patterns.iter().map(|text| Pattern::new(text)).collect()
        };
        Ok(Self { listed_only, include: compile(include)?, exclude: compile(exclude)? })
    }

    /// Judges a session by what is known of it so far.
    pub fn judge(&self, cwd: Option<&str>, remote: Option<&str>) -> Verdict {
        let matches = |pattern: &&Pattern| pattern.matches(cwd, remote);
        if let Some(pattern) = self.exclude.iter().find(matches) {
            return Verdict::Excluded(Exclusion::Pattern(pattern.text.clone()));
        }
        if self.listed_only && !self.include.iter().any(|pattern| matches(&pattern)) {
            return Verdict::Excluded(Exclusion::NotListed);
        }
        Verdict::Allowed
    }

    /// Whether a pattern is a remote.
    pub fn has_remotes(&self) -> bool {
        let is_remote = |pattern: &Pattern| matches!(pattern.matcher, Matcher::Remote(_));
        self.include.iter().chain(&self.exclude).any(is_remote)
    }

    /// Whether the rules can exclude anything, so that a session must be known before it is recorded.
    pub fn can_exclude(&self) -> bool {
        self.listed_only || !self.exclude.is_empty()
    }
}

impl Pattern {
    fn new(text: &str) -> Result<Self, BadPattern> {
        let glob = |pattern: &str| {
            GlobBuilder::new(pattern)
                .literal_separator(true)
                .build()
                .map(|glob| glob.compile_matcher())
                .map_err(|source| BadPattern { pattern: text.to_owned(), source })
        };
        let matcher = if is_remote(text) {
            Matcher::Remote(glob(&plain_remote(text))?)
        } else {
            // A directory stands for all that is in it, with or without `/**`.
            let directory = text.strip_suffix("/**").unwrap_or(text).trim_end_matches('/');
            Matcher::Path(vec![glob(directory)?, glob(&format!("{directory}/**"))?])
        };
        Ok(Self { text: text.to_owned(), matcher })
    }

    fn matches(&self, cwd: Option<&str>, remote: Option<&str>) -> bool {
        match &self.matcher {
            Matcher::Path(globs) => {
                let cwd = cwd.map(|cwd| cwd.trim_end_matches('/'));
                cwd.is_some_and(|cwd| globs.iter().any(|glob| glob.is_match(cwd)))
            }
            Matcher::Remote(glob) => {
                remote.is_some_and(|remote| glob.is_match(plain_remote(remote)))
            }
        }
    }
}

fn is_remote(pattern: &str) -> bool {
    pattern.contains("://") || pattern.starts_with("git@")
}

/// A remote in one form, whichever way it is written: `host/path`, without credentials and `.git`.
fn plain_remote(remote: &str) -> String {
    let clean = clean_remote(remote.trim());
    let plain = match clean.split_once("://") {
        Some((_, rest)) => rest.to_owned(),
        None => clean.rsplit('@').next().unwrap_or(&clean).replacen(':', "/", 1),
    };
    plain.trim_end_matches('/').trim_end_matches(".git").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(listed_only: bool, include: &[&str], exclude: &[&str]) -> ProjectRules {
        let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        ProjectRules::new(listed_only, &owned(include), &owned(exclude)).expect("good patterns")
    }

    fn is_allowed(rules: &ProjectRules, cwd: &str) -> bool {
        rules.judge(Some(cwd), None) == Verdict::Allowed
    }

    #[test]
    fn case_123_an_excluded_directory_takes_all_that_is_in_it() {
        for pattern in ["/home/u/private/**", "/home/u/private", "/home/u/private/"] {
            let rules = rules(false, &[], &[pattern]);
            for cwd in ["/home/u/private", "/home/u/private/", "/home/u/private/a/b"] {
                assert!(!is_allowed(&rules, cwd), "{pattern} and {cwd}");
            }
            for cwd in ["/home/u/private2", "/home/u", "/x/home/u/private"] {
                assert!(is_allowed(&rules, cwd), "{pattern} and {cwd}");
            }
        }
        assert!(!is_allowed(&rules(false, &[], &["/w/*/secret"]), "/w/a/secret/b"));
        assert!(is_allowed(&rules(false, &[], &["/w/*/secret"]), "/w/a/b/secret"));
    }

    #[test]
    fn what_is_not_listed_or_not_known_is_out_when_only_the_listed_are_in() {
        let rules = rules(true, &["/w/app"], &["/w/app/vendor"]);
        assert!(is_allowed(&rules, "/w/app/src"));
        assert!(!is_allowed(&rules, "/w/app/vendor"), "exclude wins");
        assert!(!is_allowed(&rules, "/w/other"));
        assert_eq!(rules.judge(None, None), Verdict::Excluded(Exclusion::NotListed));
    }

    #[test]
    fn a_remote_matches_however_it_is_written() {
        let rules = rules(false, &[], &["https://github.com/Acme/*"]);
        for remote in ["git@github.com:acme/app.git", "https://tok@github.com/acme/app"] {
            assert_ne!(rules.judge(None, Some(remote)), Verdict::Allowed, "{remote}");
        }
        assert_eq!(rules.judge(None, Some("https://github.com/other/app")), Verdict::Allowed);
        assert!(rules.has_remotes());
    }

    #[test]
    fn without_rules_everything_takes_part() {
        let rules = rules(false, &[], &[]);
        assert!(!rules.can_exclude() && !rules.has_remotes());
        assert_eq!(rules.judge(None, None), Verdict::Allowed);
    }
}
