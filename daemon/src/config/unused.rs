//! Keys that are part of the contract and that this version does not act on. Whoever sets one is told, so that
//! nobody takes silence for protection.

use super::Loaded;
use super::origin::Origin;

/// Keys, or beginnings of keys, with what becomes of them.
const UNUSED: [(&str, &str); 14] = [
    ("notes.drafter", "this version has the drafter that uses no model; it is used"),
    ("notes.model", "no model is called by this version"),
    ("notes.idea_model", "no model is called by this version"),
    ("notes.base_url", "no model is called by this version"),
    ("notes.api_key", "no model is called by this version"),
    ("notes.max_input_tokens", "no model is called by this version"),
    ("notes.daily_token_budget", "no model is called by this version"),
    ("notes.timeout", "no model is called by this version"),
    ("notes.lang", "notes are in English, and quote in the user's own language"),
    ("notes.max_per_session", "this version writes one note per session"),
    ("notes.precision", "this version writes one note per session"),
    ("projects.map", "projects are named by their directories in this version"),
    ("archive.", "this version keeps no archive"),
    ("metrics.", "this version has no metrics"),
];

/// One line for each key of the file that has no effect in this version.
pub fn unused(loaded: &Loaded) -> Vec<String> {
    let defaults = Loaded::defaults();
    let set = loaded.keys().into_iter().filter_map(|key| {
        let origin = loaded.origin(&key);
        let why = UNUSED.iter().find(|(unused, _)| key.starts_with(unused))?.1;
        let is_default = loaded.value(&key) == defaults.value(&key);
        (origin != Origin::Default && !is_default)
            .then(|| format!("{origin}: {key} has no effect: {why}"))
    });
    set.collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_key_without_effect_is_named_unless_it_is_at_its_default() {
        let text = "[sessions]\nidle_after = \"5m\"\n[archive]\nenabled = false\n[redact]\nenabled = false\n\
                    [notes]\ndrafter = \"openai\"\n";
        let loaded = Loaded::from_text(text, Path::new("/c.toml")).expect("valid");
        let lines = unused(&loaded);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("file /c.toml:4: archive.enabled has no effect"), "{lines:?}");
        assert!(lines[1].contains("notes.drafter"), "{lines:?}");
    }
}
