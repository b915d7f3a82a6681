//! Lines that are not one JSON object: torn, glued, overwritten with NULs (formats.md F2, F8).

use memchr::memmem;
use serde::de::IgnoredAny;

use super::view::{Head, Shape};

/// A line's head, and what had to be passed over to find it.
pub(super) struct Found<'a> {
    pub(super) head: Head<'a>,
    pub(super) damage: Option<String>,
}

/// Reads the line's object. When the line is not one object, the last one that stands in it counts: the writer
/// glues its next record to a torn one.
pub(super) fn head(text: &str) -> Result<Found<'_>, &'static str> {
    match serde_json::from_str::<Head<'_>>(text) {
        Ok(head) if head.shape == Shape::Object => Ok(Found { head, damage: None }),
        Ok(_) => Err("JSON that is not an object"),
        Err(_) if text.bytes().all(|byte| byte == 0) => Err("NUL bytes"),
        Err(_) => last_of_several(text).or_else(|| salvage(text)).ok_or("not JSON"),
    }
}

/// The last of several whole objects on one line.
fn last_of_several(text: &str) -> Option<Found<'_>> {
    let mut start = 0;
    let mut count = 0;
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut end = 0;
    while let Some(value) = stream.next() {
        value.ok()?;
        start = end;
        end = stream.byte_offset();
        count += 1;
    }
    let head: Head<'_> = serde_json::from_str(text.get(start..)?).ok()?;
    (count > 1 && head.shape == Shape::Object).then(|| Found {
        head,
        damage: Some(format!("{count} objects on one line: the last one read")),
    })
}

/// The last record that starts somewhere in a damaged line and goes on to its end.
///
/// Objects inside a torn record end there too, so only one that looks like a record is taken. The work is
/// bounded: a line of many megabytes may hold a million starts, nested in one another.
fn salvage(text: &str) -> Option<Found<'_>> {
    let mut budget = text.len().saturating_mul(16).saturating_add(1 << 20);
    for start in memmem::rfind_iter(text.as_bytes(), b"{\"").take_while(|start| *start > 0) {
        let rest = text.get(start..)?;
        let read = match serde_json::from_str::<Head<'_>>(rest) {
            Ok(head) if is_record(&head) => {
                let damage = format!("damaged: {start} bytes before the record passed over");
                return Some(Found { head, damage: Some(damage) });
            }
            Ok(_) => rest.len(),
            Err(error) => error.column(),
        };
        budget = budget.checked_sub(read)?;
    }
    None
}

fn is_record(head: &Head<'_>) -> bool {
    head.kind.is_some()
        && (head.session.is_some() || head.leaf.is_some() || head.snapshot_of.is_some())
}
