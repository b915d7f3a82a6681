//! Secrets do not reach a note: what looks like one is masked in a story before anything is drafted from it.
//! Precise before complete: a pattern is a form that keys are given by those who issue them, or a value that is
//! assigned to a name such as `password` and looks made up by a machine.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::{Story, TurnText};

/// What stands in a secret's place.
const MASK: &str = "[redacted]";

/// The built-in forms. Where only a part of what matches is the secret, that part is named `s`.
const FORMS: &[&str] = &[
    r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
    r"\bsk-[A-Za-z0-9_-]{20,}",
    r"\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}",
    r"\bgh[pousr]_[A-Za-z0-9]{30,}",
    r"\bgithub_pat_[A-Za-z0-9_]{40,}",
    r"\bglpat-[A-Za-z0-9_-]{20,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"\bAIza[A-Za-z0-9_-]{35}",
    r"\b(?:npm_|hf_)[A-Za-z0-9]{30,}",
    r"\bpypi-[A-Za-z0-9_-]{50,}",
    r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*",
    r"(?i)\bbearer\s+(?P<s>[A-Za-z0-9._~+/-]{20,}=*)",
    r"://[^\s/:@]*:(?P<s>[^\s/@]+)@",
];

/// A value that is assigned to the name of a secret; whether it looks like one is judged apart.
const ASSIGNED: &str = r#"(?i)\b[A-Z0-9_-]*(?:password|passwd|passphrase|secret|token|api_?key|access_?key|private_?key)[A-Z0-9_]*["']?\s*[:=]\s*["']?(?P<s>[^\s"',;)}\]]{8,})"#;

static BUILT_IN: LazyLock<Vec<Regex>> =
    LazyLock::new(|| FORMS.iter().map(|form| pattern(form)).collect());
static ASSIGNMENT: LazyLock<Regex> = LazyLock::new(|| pattern(ASSIGNED));

#[expect(clippy::expect_used, reason = "constant patterns; a test compiles them")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

/// Masks what looks like a secret.
#[derive(Clone, Debug)]
pub struct Redactor {
    enabled: bool,
    extra: Vec<Regex>,
    allow: Vec<Regex>,
}

impl Redactor {
    /// `extra` are expressions to mask besides the built-in ones, `allow` those never to mask. Not `enabled`, it
    /// masks nothing.
    pub fn new(enabled: bool, extra: &[String], allow: &[String]) -> Result<Self, regex::Error> {
        let compiled = |list: &[String]| {
            list.iter().map(|text| Regex::new(text)).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self { enabled, extra: compiled(extra)?, allow: compiled(allow)? })
    }

    /// Masks all texts of a story from which something may be quoted. An address with a secret is left out.
    pub fn mask_story(&self, story: &mut Story) {
        let mask = |text: &mut String| {
            if let Cow::Owned(masked) = self.mask(text) {
                *text = masked;
            }
        };
        for turn in &mut story.turns {
            match &mut turn.what {
                TurnText::Prompt(text) | TurnText::Answer(text) => mask(text),
                // Counted and compared, never quoted.
                TurnText::Call { .. } => {}
            }
        }
        story.title.iter_mut().for_each(&mask);
        story.commits.iter_mut().filter_map(|commit| commit.subject.as_mut()).for_each(&mask);
        story.urls.retain(|url| matches!(self.mask(url), Cow::Borrowed(_)));
        story.pull_requests.retain(|url| matches!(self.mask(url), Cow::Borrowed(_)));
    }

    /// The text with its secrets masked; borrowed if it has none.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !self.enabled {
            return Cow::Borrowed(text);
        }
        let mut masked = Cow::Borrowed(text);
        for form in BUILT_IN.iter().chain(&self.extra) {
            self.replace(&mut masked, form, |_| true);
        }
        self.replace(&mut masked, &ASSIGNMENT, looks_made_up);
        masked
    }

    fn replace(&self, text: &mut Cow<'_, str>, form: &Regex, is_secret: impl Fn(&str) -> bool) {
        let replaced = form.replace_all(text, |found: &Captures<'_>| {
            let whole = found.get(0).map_or("", |part| part.as_str());
            let secret = found.name("s").map_or(whole, |part| part.as_str());
            let allowed = self.allow.iter().any(|known| known.is_match(whole));
            if allowed || !is_secret(secret) {
                whole.to_owned()
            } else {
                whole.replace(secret, MASK)
            }
        });
        if replaced != *text {
            *text = Cow::Owned(replaced.into_owned());
        }
    }
}

/// Whether a value looks made up by a machine or for a lock: letters and digits, and no path, member or call.
fn looks_made_up(value: &str) -> bool {
    value.bytes().any(|b| b.is_ascii_digit())
        && value.bytes().any(|b| b.is_ascii_alphabetic())
        && !value.contains(['/', '.', '(', '{', '<', '$', '['])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::extractive;
    use crate::draft::fixture::StoryBuilder;

    fn masked(text: &str) -> String {
        Redactor::new(true, &[], &[]).expect("valid").mask(text).into_owned()
    }

    /// Put together here, so that this file holds nothing that looks like a key.
    fn key(head: &str, length: usize) -> String {
        format!("{head}{}", "a1B2".repeat(length).chars().take(length).collect::<String>())
    }

    #[test]
    fn keys_are_known_by_their_form() {
        for secret in [
            key("sk-ant-", 40),
            key("ghp_", 36),
            key("github_pat_", 60),
            key("glpat-", 20),
            key("xoxb-", 20),
            key("AIza", 35),
            format!("AKIA{}", "A1B2".repeat(4)),
            format!("{}.{}.sig", key("eyJ", 12), key("eyJ", 12)),
            format!(
                "-----BEGIN RSA {} KEY-----\nabc\n-----END RSA {} KEY-----",
                "PRIVATE", "PRIVATE"
            ),
        ] {
            assert_eq!(masked(&format!("use {secret} now")), "use [redacted] now", "{secret}");
        }
    }

    #[test]
    fn of_assignments_and_addresses_only_the_secret_goes() {
        assert_eq!(masked("DB_PASSWORD=\"hunter2hunter2\" ok"), "DB_PASSWORD=\"[redacted]\" ok");
        assert_eq!(masked("api_key: abcd1234efgh, x"), "api_key: [redacted], x");
        assert_eq!(masked("postgres://app:s3cret@db/x"), "postgres://app:[redacted]@db/x");
        assert_eq!(
            masked(&format!("Authorization: Bearer {}", key("", 24))),
            "Authorization: Bearer [redacted]"
        );
    }

    #[test]
    fn talk_of_secrets_is_no_secret() {
        for text in [
            "the token: it expires too early",
            "password = read_password()",
            "secret=settings.API_SECRET_2",
            "set token_path: /etc/app1/token",
            "commit 0123abc4567def and v1.2.3",
            "a task-manager-for-2026-and-later",
        ] {
            assert_eq!(masked(text), text);
        }
    }

    #[test]
    fn the_config_adds_allows_and_switches_off() {
        let lists = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let text = "Acme wants password=abcd1234efgh";
        let redactor = |enabled, extra: &[&str], allow: &[&str]| {
            Redactor::new(enabled, &lists(extra), &lists(allow))
                .expect("valid")
                .mask(text)
                .into_owned()
        };
        assert_eq!(redactor(true, &["Acme"], &[]), "[redacted] wants password=[redacted]");
        assert_eq!(redactor(true, &[], &["abcd1234"]), text);
        assert_eq!(redactor(false, &["Acme"], &[]), text);
    }

    #[test]
    fn nothing_that_is_quoted_holds_a_secret() {
        let secret = key("ghp_", 36);
        let mut story = StoryBuilder::new()
            .title(&format!("Use {secret}"))
            .prompt(&format!("Push it with {secret}, please, to the server."))
            .answer(&format!("The server now knows the key {secret} as its own."))
            .commit("0123abc4567", &format!("Add {secret}"))
            .url(&format!("https://example.com/?t={secret}"))
            .build();
        Redactor::new(true, &[], &[]).expect("valid").mask_story(&mut story);
        let draft = extractive::draft(&story, None);
        assert!(!format!("{draft:?}").contains(&secret), "{draft:?}");
    }
}
