//! A line's bytes become an object, or the reason why not.

use serde::de::IgnoredAny;

use super::super::json;
use super::fields::Fields;

/// The object on a line.
pub(super) struct Record<'a> {
    /// Its JSON text.
    pub(super) text: &'a str,
    /// Its members.
    pub(super) fields: Fields<'a>,
    /// Bytes of a torn record that stood before it on the same line.
    pub(super) torn: usize,
}

/// How a record starts. A writer that resumes a torn file glues its first record to the torn one.
const HEADS: &[&str] =
    &["{\"timestamp\"", "{\"type\"", "{\"ordinal\"", "{\"payload\"", "{\"id\"", "{\"record_type\""];

/// More starts than this are tried on no line: each try may read the rest of it.
const MAX_TRIES: usize = 64;

/// Opens a line and hands the object to `use_it`. A line that does not parse is tried once more for a whole
/// record at its end (formats.md F2); `bare` says that records need no `payload`.
pub(super) fn open<R>(
    line: &[u8],
    bare: bool,
    use_it: impl FnOnce(Record<'_>) -> R,
) -> Result<R, &'static str> {
    let text = json::clean(line);
    if let Some(fields) = Fields::parse(&text) {
        return Ok(use_it(Record { text: &text, fields, torn: 0 }));
    }
    // Lone surrogates in a member's name: elsewhere they do not hinder opening.
    if let Some(repaired) = json::repair_surrogates(&text)
        && let Some(fields) = Fields::parse(&repaired)
    {
        return Ok(use_it(Record { text: &repaired, fields, torn: 0 }));
    }
    if serde_json::from_str::<IgnoredAny>(&text).is_ok() {
        return Err("not a JSON object");
    }
    for (start, _) in
        text.rmatch_indices("{\"").filter(|(at, _)| is_head(&text, *at)).take(MAX_TRIES)
    {
        let Some(rest) = text.get(start..) else {
            continue;
        };
        // Without the outer braces a torn record's own inner object would pass for a record.
        if let Some(fields) = Fields::parse(rest)
            && (bare || fields.raw("payload").is_some() || fields.raw("record_type").is_some())
        {
            return Ok(use_it(Record { text: rest, fields, torn: start }));
        }
    }
    Err(if memchr::memchr(0, text.as_bytes()).is_some() { "NUL bytes" } else { "not JSON" })
}

fn is_head(text: &str, at: usize) -> bool {
    text.get(at..).is_some_and(|rest| HEADS.iter().any(|head| rest.starts_with(head)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(line: &[u8], bare: bool) -> Result<(String, usize), &'static str> {
        open(line, bare, |record| (record.text.to_owned(), record.torn))
    }

    #[test]
    fn the_whole_record_after_a_torn_one_is_kept() {
        let line = br#"{"timestamp":"2026-01-01T00:00:0{"timestamp":"x","type":"event_msg","payload":{"type":"y"}}"#;
        let (text, torn) = opened(line, false).expect("salvaged");
        assert_eq!((text.get(..12), torn), (Some("{\"timestamp\""), 32));
    }

    #[test]
    fn the_inside_of_a_torn_record_is_no_record() {
        let line = br#"{"timestamp":"x","type":"response_item","payload":{"type":"message","role":"user"}"#;
        assert_eq!(opened(line, false), Err("not JSON"));
    }

    #[test]
    fn a_record_after_a_block_of_nul_is_kept() {
        let mut line = vec![0; 100];
        line.extend(br#"{"type":"event_msg","payload":{}}"#);
        assert_eq!(opened(&line, false).map(|(_, torn)| torn), Ok(100));
        assert_eq!(opened(&[0; 100], false), Err("NUL bytes"));
    }

    #[test]
    fn bare_records_are_found_at_the_end_of_a_line_too() {
        let line = br#"{"type":"mess{"type":"message","role":"user"}"#;
        assert!(opened(line, true).is_ok());
        assert_eq!(opened(line, false), Err("not JSON"));
    }

    #[test]
    fn what_is_no_object_is_told_apart_from_what_is_no_json() {
        assert_eq!(opened(b"[1]", false), Err("not a JSON object"));
        assert_eq!(opened(b"version https://git-lfs.github.com/spec/v1", false), Err("not JSON"));
        assert_eq!(opened(b"", false), Err("not JSON"));
    }

    #[test]
    fn a_lone_surrogate_in_a_name_does_not_cost_the_line() {
        assert!(opened(br#"{"type":"x","a\ud83d":1}"#, false).is_ok());
    }
}
