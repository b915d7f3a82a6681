//! What a well-formed configuration may still get wrong: `config check` and `majordomusd --check`.
//!
//! Looks at names and at where directories are, never into a vault, a token or the network; those
//! are the doctor's.

use std::path::Path;

use super::file::{Fault, Problem};
use super::origin::is_variable_name;
use super::value::{Drafter, VaultKind};
use super::{Env, Loaded};
use crate::paths::{Paths, Place, roots};

/// Everything that would keep the daemon from doing what the configuration says; empty if nothing.
pub fn check(loaded: &Loaded, env: &Env, paths: &Paths) -> Vec<Problem> {
    let mut found = Findings { loaded, env, problems: Vec::new() };
    found.sources();
    found.lengths_of_time();
    found.projects();
    found.notes();
    found.vault();
    found.patterns("redact.extra", &loaded.config.redact.extra);
    found.patterns("redact.allow", &loaded.config.redact.allow);
    found.places(paths);
    found.problems
}

struct Findings<'c> {
    loaded: &'c Loaded,
    env: &'c Env,
    problems: Vec<Problem>,
}

impl Findings<'_> {
    fn report(&mut self, key: &str, why: impl Into<String>) {
        self.problems.push(Problem {
            origin: self.loaded.origin(key),
            fault: Fault::Unusable { key: key.to_owned(), why: why.into() },
        });
    }

    fn sources(&mut self) {
        let sources = &self.loaded.config.sources;
        for (key, list) in [("sources.claude", &sources.claude), ("sources.codex", &sources.codex)]
        {
            for path in list {
                self.absolute(key, path);
            }
        }
    }

    fn lengths_of_time(&mut self) {
        let config = &self.loaded.config;
        for (key, duration) in [
            ("sources.poll_interval", config.sources.poll_interval),
            ("sessions.idle_after", config.sessions.idle_after),
            ("notes.timeout", config.notes.timeout),
            ("git.timeout", config.git.timeout),
        ] {
            if duration.is_zero() {
                self.report(key, "is 0s; give it more than nothing");
            }
        }
    }

    fn projects(&mut self) {
        let projects = &self.loaded.config.projects;
        for (key, list) in
            [("projects.include", &projects.include), ("projects.exclude", &projects.exclude)]
        {
            if list.iter().any(|pattern| pattern.trim().is_empty()) {
                self.report(key, "has an empty entry; remove it, or name a path or a remote");
            }
        }
        for (path, target) in &projects.map {
            if !self.env.expand(Path::new(path)).is_absolute() {
                self.report("projects.map", format!("has {path:?}; begin the path with / or ~/"));
            }
            if target.project.as_deref() == Some("") || *target == super::MapTarget::default() {
                let why = format!("says nothing for {path:?}; name a project or a vault");
                self.report("projects.map", why);
            }
        }
    }

    fn notes(&mut self) {
        let notes = &self.loaded.config.notes;
        if notes.drafter.is_api() && notes.model.is_none() {
            let why =
                format!("is unset; the drafter {:?} must be told a model", notes.drafter.as_str());
            self.report("notes.model", why);
        }
        if notes.drafter != Drafter::Extractive && notes.max_input_tokens == 0 {
            self.report("notes.max_input_tokens", "is 0; a model needs something to read");
        }
        if let Some(url) = &notes.base_url {
            self.url("notes.base_url", url);
        }
        if let Some(name) = &notes.api_key_env {
            self.variable("notes.api_key_env", name, "notes.api_key_file");
        }
        if let Some(path) = &notes.api_key_file {
            self.absolute("notes.api_key_file", path);
        }
    }

    fn vault(&mut self) {
        let vault = &self.loaded.config.vault;
        self.variable("vault.token_env", &vault.token_env, "vault.token_file");
        if let Some(path) = &vault.path {
            self.absolute("vault.path", path);
        }
        if let Some(path) = &vault.token_file {
            self.absolute("vault.token_file", path);
        }
        if vault.kind == VaultKind::Local {
            return;
        }
        match &vault.url {
            None => self.report(
                "vault.url",
                "is unset; kind = \"akb\" needs the address of the server's MCP endpoint, \
                 here or in AKB_MCP_URL",
            ),
            Some(url) => self.url("vault.url", url),
        }
        match &vault.name {
            None => self.report("vault.name", "is unset; kind = \"akb\" needs the vault's name"),
            Some(name) if name.contains(['/', ' ', '\t', '\n']) => {
                self.report("vault.name", format!("is {name:?}; a name has neither / nor blanks"));
            }
            Some(_) => {}
        }
    }

    fn patterns(&mut self, key: &str, patterns: &[String]) {
        for (position, pattern) in (1..).zip(patterns) {
            // The pattern itself is not repeated: it may be the secret it is to hide.
            match regex::Regex::new(pattern) {
                Err(error) => {
                    let message = error.to_string();
                    let why = verdict(&message);
                    self.report(key, format!("entry {position} is no regular expression: {why}"));
                }
                Ok(regex) if regex.is_match("") => {
                    let why = "matches the empty text, and so everything; make it need a character";
                    self.report(key, format!("entry {position} {why}"));
                }
                Ok(_) => {}
            }
        }
    }

    /// No writes where an agent would take them for its own (`interface.md`, Paths).
    fn places(&mut self, paths: &Paths) {
        let roots = roots(&self.loaded.config, self.env);
        for refusal in paths.inside_roots(&roots) {
            let origin = match refusal.place {
                Place::State => paths.state_origin.clone(),
                Place::Vault => paths.vault_origin.clone(),
            };
            let key = refusal.place.key().to_owned();
            let why = refusal.to_string();
            self.problems.push(Problem { origin, fault: Fault::Unusable { key, why } });
        }
    }

    fn absolute(&mut self, key: &str, path: &Path) {
        if !self.env.expand(path).is_absolute() {
            let why = format!("has {:?}; begin the path with / or ~/", path.display().to_string());
            self.report(key, why);
        }
    }

    fn url(&mut self, key: &str, url: &str) {
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
        if host.is_none_or(str::is_empty) || url.contains(char::is_whitespace) {
            self.report(key, "is no address; it begins with https:// or http:// and names a host");
        }
    }

    fn variable(&mut self, key: &str, name: &str, file_key: &str) {
        if !is_variable_name(name) {
            // Most likely the secret itself stands there, so it is not repeated.
            let why = format!(
                "is not the name of an environment variable; \
                 put the secret itself into a file and name that in {file_key}"
            );
            self.report(key, why);
        }
    }
}

/// The verdict of a regex error, which draws the pattern on the lines before.
fn verdict(message: &str) -> &str {
    let last = message.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last)
}
