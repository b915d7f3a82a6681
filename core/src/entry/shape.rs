//! Shapes of lines: which types and fields each version of a tool writes. Both formats change every week (formats.md,
//! head), so what is not known is kept, counted and shown, and never costs a line.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::{Entry, EntryKind, json};

/// How often lines had one shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeCount {
    /// The tool's version, as the lines tell it; empty where they do not.
    pub version: String,
    /// Type names with `/` between them; behind a `.` the name of a member that is not known.
    pub name: String,
    /// This program reads such lines.
    pub is_known: bool,
    /// Lines.
    pub n: u64,
    /// Names and types of the members of one such line, where it is not known.
    pub sample: Option<String>,
}

/// What the lines of one file have been so far.
#[derive(Debug, Default)]
pub struct Shapes {
    version: String,
    counts: HashMap<String, Count>,
    done: Vec<ShapeCount>,
}

#[derive(Debug)]
struct Count {
    is_known: bool,
    n: u64,
    sample: Option<String>,
}

impl Shapes {
    /// Starts with the version that the lines before told.
    pub fn new(version: Option<&str>) -> Self {
        Self { version: version.unwrap_or_default().to_owned(), ..Self::default() }
    }

    /// Counts a line.
    pub fn take(&mut self, entry: &Entry, line: &[u8]) {
        if let Some(version) = &entry.context.version
            && *version != self.version
        {
            self.close_version();
            self.version.clone_from(version);
        }
        let name = match entry.kind {
            EntryKind::Unreadable => "unreadable",
            _ if entry.shape.is_empty() => "untyped",
            _ => &entry.shape,
        };
        let is_known = !matches!(entry.kind, EntryKind::Unknown | EntryKind::Unreadable);
        let wants_sample = entry.kind == EntryKind::Unknown;
        self.count(name, is_known, || wants_sample.then(|| sample(line)));
        if wants_sample {
            // Its sample shows all that it has.
            return;
        }
        for member in &entry.unknown {
            self.count(&format!("{name}.{member}"), false, || Some(sample(line)));
        }
    }

    fn count(&mut self, name: &str, is_known: bool, sample: impl FnOnce() -> Option<String>) {
        if let Some(count) = self.counts.get_mut(name) {
            count.n += 1;
        } else {
            let count = Count { is_known, n: 1, sample: sample() };
            self.counts.insert(name.to_owned(), count);
        }
    }

    fn close_version(&mut self) {
        let version = &self.version;
        self.done.extend(self.counts.drain().map(|(name, count)| ShapeCount {
            version: version.clone(),
            name,
            is_known: count.is_known,
            n: count.n,
            sample: count.sample,
        }));
    }

    /// Gives what was counted, and starts anew.
    pub fn take_counts(&mut self) -> Vec<ShapeCount> {
        self.close_version();
        std::mem::take(&mut self.done)
    }
}

/// A shape sample is no longer than this many bytes.
const MAX_SAMPLE: usize = 600;

/// Objects deeper than this are shown as `{…}`.
const MAX_DEPTH: usize = 4;

/// The names and types of the members of a line, such as `{"type":string,"n":number}`. It holds no text: values are
/// not shown, and neither are names that look like data (paths, sentences, ids).
pub fn sample(line: &[u8]) -> String {
    let mut shown = String::new();
    match serde_json::from_str::<Value>(&json::readable(line)) {
        Ok(value) => show(&value, 0, &mut shown),
        Err(_) => shown.push_str("not JSON"),
    }
    shown
}

fn show(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(_) => out.push_str("bool"),
        Value::Number(_) => out.push_str("number"),
        Value::String(_) => out.push_str("string"),
        Value::Array(items) => {
            out.push('[');
            if let Some(first) = items.first() {
                show(first, depth + 1, out);
            }
            out.push(']');
        }
        Value::Object(_) if depth >= MAX_DEPTH => out.push_str("{…}"),
        Value::Object(members) => {
            out.push('{');
            for (index, (name, member)) in members.iter().enumerate() {
                if out.len() > MAX_SAMPLE {
                    out.push('…');
                    break;
                }
                if index > 0 {
                    out.push(',');
                }
                let name = if is_name(name) { name } else { "…" };
                // Writing to a string cannot fail.
                if write!(out, "\"{name}\":").is_ok() {
                    show(member, depth + 1, out);
                }
            }
            out.push('}');
        }
    }
}

/// A member's name that may be shown: a short word as programs write them. Maps from paths or texts have others.
pub(super) fn is_name(name: &str) -> bool {
    const MAX_NAME: usize = 40;
    let is_word =
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let n_digits = name.bytes().filter(u8::is_ascii_digit).count();
    is_word && !name.is_empty() && name.len() <= MAX_NAME && n_digits <= 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Reader;
    use crate::ids::Tool;

    fn counted(tool: Tool, lines: &[&str]) -> Vec<ShapeCount> {
        let mut reader = Reader::new(tool, "projects/-w/x.jsonl");
        let mut shapes = Shapes::new(None);
        for line in lines {
            shapes.take(&reader.read(line.as_bytes()), line.as_bytes());
        }
        let mut counts = shapes.take_counts();
        counts.sort_by(|a, b| (&a.version, &a.name).cmp(&(&b.version, &b.name)));
        counts
    }

    fn names(counts: &[ShapeCount]) -> Vec<(&str, &str, bool, u64)> {
        counts
            .iter()
            .map(|count| (&*count.version, &*count.name, count.is_known, count.n))
            .collect()
    }

    #[test]
    fn case_144_an_unknown_type_and_an_unknown_member_are_counted_by_version() {
        let counts = counted(
            Tool::Claude,
            &[
                r#"{"type":"user","version":"2.1.9","message":{"role":"user","content":"secret words"}}"#,
                r#"{"type":"user","version":"9.0.0","brandNew":{"a b":"secret"},"message":{"content":"x"}}"#,
                r#"{"type":"hologram","version":"9.0.0","text":"secret","when":1}"#,
                r#"{"type":"hologram","version":"9.0.0","text":"more"}"#,
                "not json",
            ],
        );
        assert_eq!(
            names(&counts),
            [
                ("2.1.9", "user", true, 1),
                ("9.0.0", "hologram", false, 2),
                ("9.0.0", "unreadable", false, 1),
                ("9.0.0", "user", true, 1),
                ("9.0.0", "user.brandNew", false, 1),
            ]
        );
        assert_eq!(
            counts[1].sample.as_deref(),
            Some(r#"{"text":string,"type":string,"version":string,"when":number}"#)
        );
        assert!(counts.iter().all(|count| !format!("{count:?}").contains("secret")));
    }

    #[test]
    fn codex_shapes_have_the_types_of_payload_and_item() {
        let counts = counted(
            Tool::Codex,
            &[
                r#"{"timestamp":"2026-09-12T18:00:00.000Z","type":"session_meta","payload":{"id":"01a0aaaa-0000-7000-8000-000000000003","cli_version":"0.154.0"}}"#,
                r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"UserMessage","id":"u"}}}"#,
                r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"Teleport"}}}"#,
                r#"{"type":"response_item","payload":{"type":"message","role":"user","aura":1}}"#,
                r#"{"type":"thread.started","thread_id":"x"}"#,
            ],
        );
        assert_eq!(
            names(&counts),
            [
                ("0.154.0", "event_msg/item_completed/Teleport", false, 1),
                ("0.154.0", "event_msg/item_completed/UserMessage", true, 1),
                ("0.154.0", "exec-json/thread.started", false, 1),
                ("0.154.0", "response_item/message", true, 1),
                ("0.154.0", "response_item/message.aura", false, 1),
                ("0.154.0", "session_meta", true, 1),
            ]
        );
    }

    #[test]
    fn a_sample_shows_no_name_that_is_data() {
        let line = r#"{"type":"x","map":{"/home/u/a.rs":1,"0b2c9d1e-0001-4000":2},"deep":{"a":{"b":{"c":{"d":1}}}},"l":["t",1]}"#;
        assert_eq!(
            sample(line.as_bytes()),
            r#"{"deep":{"a":{"b":{"c":{…}}}},"l":[string],"map":{"…":number,"…":number},"type":string}"#
        );
    }
}
