//! JSON as it really lies on disk: invalid UTF-8, a byte-order mark, lone surrogates, deep nesting
//! (formats.md F8, F9, F13).

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

/// Gives the bytes of a line that a JSON parser may see: without a byte-order mark and a trailing `\r`, and as
/// UTF-8 (bad sequences become U+FFFD). Borrowed in the normal case.
pub(super) fn clean(line: &[u8]) -> Cow<'_, str> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let line = line.trim_ascii();
    // The lossy conversion walks byte by byte; nearly every line passes the fast check.
    match std::str::from_utf8(line) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(line),
    }
}

/// A line as a JSON parser can read it: [`clean`], and with lone surrogate escapes replaced beforehand, so that
/// everything which is parsed out of it may borrow from one text.
pub(super) fn readable(line: &[u8]) -> Cow<'_, str> {
    let text = clean(line);
    let bytes = text.as_bytes();
    if LOWER_SURROGATE.find(bytes).is_none() && UPPER_SURROGATE.find(bytes).is_none() {
        return text;
    }
    match repair_surrogates(&text) {
        Some(repaired) => Cow::Owned(repaired),
        None => text,
    }
}

/// How a surrogate escape begins.
static LOWER_SURROGATE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r"\ud"));
static UPPER_SURROGATE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r"\uD"));

/// Replaces `\uD8xx`/`\uDCxx` escapes that have no partner by `\uFFFD`. `None` when there is none.
pub(super) fn repair_surrogates(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match surrogate_at(bytes, at) {
            Some(Surrogate::Leading)
                if surrogate_at(bytes, at + 6) == Some(Surrogate::Trailing) =>
            {
                at += 12;
            }
            Some(_) => {
                out.extend_from_slice(&bytes[copied..at]);
                out.extend_from_slice(b"\\uFFFD");
                at += 6;
                copied = at;
            }
            // Any other escape is two bytes at least; skipping both keeps `\\u` from being taken for `\u`.
            None => at += 2,
        }
    }
    if copied == 0 {
        return None;
    }
    out.extend_from_slice(&bytes[copied..]);
    String::from_utf8(out).ok()
}

#[derive(PartialEq, Eq)]
enum Surrogate {
    Leading,
    Trailing,
}

/// The surrogate escape that starts at `at`, if one does.
fn surrogate_at(bytes: &[u8], at: usize) -> Option<Surrogate> {
    let escape = bytes.get(at..at + 6)?;
    if escape[0] != b'\\' || escape[1] != b'u' {
        return None;
    }
    let digits = std::str::from_utf8(&escape[2..]).ok()?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xD800..=0xDBFF => Some(Surrogate::Leading),
        0xDC00..=0xDFFF => Some(Surrogate::Trailing),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_050_a_lone_surrogate_does_not_cost_the_line() {
        let line = r#"{"a":"cut \ud83d","b":"pair \ud83d\ude00","c":"\\ud83d"}"#;
        assert!(serde_json::from_str::<serde_json::Value>(line).is_err());
        let value: serde_json::Value =
            serde_json::from_str(&readable(line.as_bytes())).expect("repaired");
        assert_eq!(value["a"], "cut \u{fffd}");
        assert_eq!(value["b"], "pair 😀");
        assert_eq!(value["c"], "\\ud83d");
    }

    #[test]
    fn a_trailing_surrogate_alone_is_replaced() {
        assert_eq!(repair_surrogates(r#""\ude00x""#).as_deref(), Some(r#""\uFFFDx""#));
        assert_eq!(repair_surrogates(r#""\ud83d\ude00""#), None);
        assert_eq!(
            repair_surrogates(r#""\ud83d\ud83d\ude00""#).as_deref(),
            Some(r#""\uFFFD\ud83d\ude00""#)
        );
    }

    #[test]
    fn a_byte_order_mark_and_bad_utf8_are_cleaned() {
        assert_eq!(clean(b"\xef\xbb\xbf{}\r"), "{}");
        assert_eq!(clean(b"{\"a\":\"\xff\"}"), "{\"a\":\"\u{fffd}\"}");
    }
}
