//! File names of notes. A slug given explicitly is AKB's only create-once key (akb.md, fact 1), so it must pass
//! the server unchanged: what is made here is a fixed point of AKB's own rule.

use crate::ids::NativeId;

/// AKB cuts a slug at 80 characters; file systems allow 255 bytes, of which `.md` and a temporary name take some.
const MAX_CHARS: usize = 80;
const MAX_BYTES: usize = 200;
/// Characters of the key at the end of a sub-note's slug, with its hyphen.
const KEY_CHARS: usize = 9;

/// The slug of a session's note: `session-{native id}`.
pub fn session(native: &NativeId) -> String {
    let name = native.file_name();
    let slug = normal(&format!("session-{name}"), MAX_CHARS, MAX_BYTES);
    if slug.len() == "session-".len() + name.len() {
        return slug.to_lowercase();
    }
    // Cut or changed: two ids must not share a note.
    with_key(&slug, native.as_str())
}

/// The slug of a sub-note: the title, cut, and 8 hex digits of a hash of `key`, the draft's stable key.
pub fn titled(title: &str, key: &str) -> String {
    with_key(title, key)
}

/// Whether AKB would take the slug as it is.
pub fn is_normal(slug: &str) -> bool {
    !slug.is_empty() && normal(slug, MAX_CHARS, MAX_BYTES) == slug
}

fn with_key(text: &str, key: &str) -> String {
    let digest = blake3::hash(key.as_bytes()).to_hex();
    let stem = normal(text, MAX_CHARS - KEY_CHARS, MAX_BYTES - KEY_CHARS);
    let stem = if stem.is_empty() { "untitled" } else { &stem };
    format!("{stem}-{}", &digest.as_str()[..8])
}

/// AKB's rule: lower case; only letters, digits, `_`, spaces and `-` stay; spaces and hyphens become one `-`.
fn normal(text: &str, max_chars: usize, max_bytes: usize) -> String {
    let mut slug = String::new();
    let mut chars = 0;
    for c in super::inline::one_line(text).to_lowercase().chars() {
        let c = match c {
            c if c.is_alphanumeric() || c == '_' => c,
            ' ' | '-' if !slug.is_empty() && !slug.ends_with('-') => '-',
            _ => continue,
        };
        if chars == max_chars || slug.len() + c.len_utf8() > max_bytes {
            break;
        }
        slug.push(c);
        chars += 1;
    }
    slug.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_passes_unchanged() {
        let id = NativeId::new("4b1f0a52-7f5e-4a0e-9d3c-0b6a4d1c2e3f").expect("an id");
        assert_eq!(session(&id), "session-4b1f0a52-7f5e-4a0e-9d3c-0b6a4d1c2e3f");
    }

    #[test]
    fn hostile_ids_keep_slugs_of_their_own() {
        let long = "x".repeat(100);
        let other = format!("{long}y");
        let slugs: Vec<String> = ["../a", "a/..", "a--b", "a-b", "a-", &long, &other]
            .iter()
            .map(|id| session(&NativeId::new(id).expect("an id")))
            .collect();
        for (nth, slug) in slugs.iter().enumerate() {
            assert!(is_normal(slug), "{slug}");
            assert!(!slugs[..nth].contains(slug), "{slug}");
        }
    }

    #[test]
    fn a_title_is_cut_in_characters_and_keeps_its_script() {
        let slug = titled("파서: 빈 줄 처리 `fix`/done.", "k");
        assert!(slug.starts_with("파서-빈-줄-처리-fixdone-"), "{slug}");
        assert!(is_normal(&slug));
        assert!(is_normal(&titled(&"긴".repeat(300), "k")));
        assert_ne!(titled("a", "k1"), titled("a", "k2"));
        assert!(titled("!!!", "k").starts_with("untitled-"));
    }

    #[test]
    fn what_akb_would_change_is_not_normal() {
        for slug in ["", "a b", "A", "a.b", "-a", "a-", "a--b", "a/b", "..", &"x".repeat(81)] {
            assert!(!is_normal(slug), "{slug}");
        }
    }
}
