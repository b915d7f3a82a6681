//! What both tools' outputs prove in the same way: commits, and addresses without their credentials.

use std::sync::LazyLock;

use regex::Regex;

#[expect(clippy::expect_used, reason = "a constant pattern, run by every test of this module")]
static COMMIT_LINE: LazyLock<Regex> = LazyLock::new(|| {
    // `[main 1a2b3c4] subject`, `[main (root-commit) 1a2b3c4] …`, `[detached HEAD 1a2b3c4] …`.
    Regex::new(r"(?m)^\[[^\]\r\n]+? (?:\(root-commit\) )?([0-9a-f]{7,40})\] ")
        .expect("valid pattern")
});

#[expect(clippy::expect_used, reason = "a constant pattern, run by every test of this module")]
static COMMIT_COMMAND: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b(?:commit|cherry-pick|merge|revert|rebase|gt|jj)\b").expect("valid pattern")
});

/// More hashes than this in one output are a listing, not commits that were just made.
const MAX_COMMITS: usize = 20;

/// Hashes in the lines that `git commit` prints. They prove a commit only if the command was one that commits
/// ([`is_commit_command`]) and did not fail: the same lines occur in logs, files and documentation.
pub(super) fn commit_lines(output: &str) -> Vec<String> {
    if !output.contains('[') {
        return Vec::new();
    }
    let mut hashes = Vec::new();
    for found in COMMIT_LINE.captures_iter(output).take(MAX_COMMITS) {
        let hash = found[1].to_owned();
        if !hashes.contains(&hash) {
            hashes.push(hash);
        }
    }
    hashes
}

/// A command line that makes commits if it succeeds.
pub(super) fn is_commit_command(command: &str) -> bool {
    COMMIT_COMMAND.is_match(command) && !command.contains("--dry-run")
}

/// Query parameters whose values are credentials.
const SECRET_PARAMETERS: &[&str] = &[
    "token",
    "key",
    "secret",
    "password",
    "passwd",
    "sig",
    "signature",
    "auth",
    "code",
    "session",
];

/// A web address as it may be kept: `http` or `https`, without user and password, fragment, and the values of
/// query parameters that look like credentials. `None` for anything else, and for addresses over 2,000 bytes.
pub(super) fn clean_url(text: &str) -> Option<String> {
    const MAX_URL: usize = 2_000;
    let text = text.trim();
    let (scheme, rest) = text.split_once("://")?;
    if !matches!(scheme, "http" | "https") || text.len() > MAX_URL {
        return None;
    }
    if rest.is_empty() || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return None;
    }
    let rest = rest.split('#').next().unwrap_or(rest);
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let Some((path, query)) = path.split_once('?') else {
        return Some(format!("{scheme}://{host}{path}"));
    };
    let query: Vec<String> = query
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some((name, _)) if is_secret_parameter(name) => format!("{name}=REDACTED"),
            _ => pair.to_owned(),
        })
        .collect();
    Some(format!("{scheme}://{host}{path}?{}", query.join("&")))
}

fn is_secret_parameter(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_PARAMETERS.iter().any(|secret| name.contains(secret))
}

/// A Git remote as it may be kept: credentials stripped from URLs; `git@host:path` stays.
pub fn clean_remote(remote: &str) -> String {
    match remote.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let is_port = |port: &str| port.chars().all(|c| c.is_ascii_digit());
            let has_port = authority.split_once(':').is_none_or(|(_, port)| is_port(port));
            if let (false, false, Some((_, after))) =
                (has_port, authority.contains('@'), path.rsplit_once('@'))
            {
                // What looks like a host is a user, and the slash stands in the password.
                return format!("{scheme}://{after}");
            }
            let host = authority.rsplit('@').next().unwrap_or(authority);
            format!("{scheme}://{host}{path}")
        }
        None => remote.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_that_git_commit_prints_are_found() {
        let output = "hook ran\n[main (root-commit) 1a2b3c4] First [x]\n 1 file changed\n\
                      [detached HEAD 0badcafe0badcafe] second\n[feature/a b 7654321] third";
        assert_eq!(commit_lines(output), ["1a2b3c4", "0badcafe0badcafe", "7654321"]);
        assert!(commit_lines("see [the docs abc] and [1234567]").is_empty());
        assert!(commit_lines("nothing to commit, working tree clean").is_empty());
    }

    #[test]
    fn a_command_that_only_lists_is_no_commit() {
        assert!(is_commit_command("git add . && git commit -m 'x'"));
        assert!(is_commit_command("git -C x cherry-pick abc"));
        assert!(!is_commit_command("git log --oneline"));
        assert!(!is_commit_command("git commit --dry-run"));
    }

    #[test]
    fn credentials_never_stay_in_an_address() {
        assert_eq!(
            clean_url("https://user:pw@example.com/a?x=1&access_token=abc#frag").as_deref(),
            Some("https://example.com/a?x=1&access_token=REDACTED")
        );
        assert_eq!(clean_url("file:///etc/passwd"), None);
        assert_eq!(clean_url("https://exa mple.com"), None);
        assert_eq!(clean_remote("https://tok@github.com/a/b.git"), "https://github.com/a/b.git");
        assert_eq!(clean_remote("https://u:pa/ss@host/x"), "https://host/x");
        assert_eq!(clean_remote("https://host:8080/@scope/x"), "https://host:8080/@scope/x");
        assert_eq!(clean_remote("git@github.com:a/b.git"), "git@github.com:a/b.git");
    }
}
