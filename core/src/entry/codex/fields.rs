//! One JSON object, opened one level deep. The values stay the text that they are until somebody asks for one
//! in a certain shape; a value of another shape is then simply not there, and costs nothing else of the line.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::super::json;

/// The members of an object in file order.
#[derive(Debug)]
pub(super) struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) =
                    map.next_entry::<Name<'de>, &'de RawValue>()?
                {
                    members.push((name, value));
                }
                Ok(Fields(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

impl<'a> Fields<'a> {
    /// Opens `text` if it is one object and nothing more.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The JSON text of a member; `null` counts as absent, and the last of several wins (formats.md F13).
    pub(super) fn raw(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.0.iter().rev().find(|(member, _)| member == name)?;
        Some(value.get()).filter(|text| *text != "null")
    }

    /// A member that is a string.
    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.raw(name).and_then(as_text)
    }

    /// A member that is a whole number.
    pub(super) fn integer(&self, name: &str) -> Option<i64> {
        self.raw(name).and_then(as_integer)
    }

    /// A member that is a whole number, or one in a string.
    pub(super) fn id_number(&self, name: &str) -> Option<i64> {
        self.integer(name).or_else(|| self.text(name)?.trim().parse().ok())
    }

    /// A member that is `true`.
    pub(super) fn is_true(&self, name: &str) -> bool {
        self.raw(name) == Some("true")
    }

    /// A member that is an object.
    pub(super) fn object(&self, name: &str) -> Option<Fields<'a>> {
        self.raw(name).and_then(Fields::parse)
    }

    /// The JSON texts of the elements of a member that is an array; empty for anything else.
    pub(super) fn list(&self, name: &str) -> Vec<&'a str> {
        self.raw(name).map(as_list).unwrap_or_default()
    }

    /// Names and JSON texts of all members.
    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value.get()))
    }
}

/// The string that a JSON text is, lone surrogates replaced (formats.md F9).
pub(super) fn as_text(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    let read = |text: &str| serde_json::from_str::<String>(text).ok();
    read(raw).or_else(|| read(&json::repair_surrogates(raw)?)).map(Cow::Owned)
}

/// The JSON texts of an array's elements; empty for anything else.
pub(super) fn as_list(raw: &str) -> Vec<&str> {
    if !raw.starts_with('[') {
        return Vec::new();
    }
    let elements: Vec<&RawValue> = serde_json::from_str(raw).unwrap_or_default();
    elements.into_iter().map(RawValue::get).collect()
}

/// A whole number, also one written with a fraction of zero (formats.md F12).
fn as_integer(raw: &str) -> Option<i64> {
    raw.parse().ok().or_else(|| raw.strip_suffix(".0")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_of_the_wrong_type_is_only_absent() {
        let fields =
            Fields::parse(r#"{"a":5,"b":"x","c":null,"d":{"e":1},"f":[1,"y"]}"#).expect("object");
        assert_eq!(fields.text("a"), None);
        assert_eq!(fields.text("b").as_deref(), Some("x"));
        assert_eq!(fields.raw("c"), None);
        assert_eq!(fields.object("d").and_then(|inner| inner.integer("e")), Some(1));
        assert!(fields.object("b").is_none());
        assert_eq!(fields.list("f"), ["1", "\"y\""]);
        assert!(fields.list("d").is_empty());
    }

    #[test]
    fn the_last_of_several_members_of_one_name_wins() {
        let fields = Fields::parse(r#"{"a":1,"a":2}"#).expect("object");
        assert_eq!(fields.integer("a"), Some(2));
    }

    #[test]
    fn a_lone_surrogate_costs_one_character() {
        let fields = Fields::parse(r#"{"a":"cut \ud83d","b":"x\ty"}"#).expect("object");
        assert_eq!(fields.text("a").as_deref(), Some("cut \u{fffd}"));
        assert_eq!(fields.text("b").as_deref(), Some("x\ty"));
    }

    #[test]
    fn numbers_are_read_in_all_their_spellings() {
        let fields =
            Fields::parse(r#"{"a":7.0,"b":"8","c":1.5,"d":99999999999999999999}"#).expect("object");
        assert_eq!(fields.integer("a"), Some(7));
        assert_eq!(fields.id_number("b"), Some(8));
        assert_eq!((fields.integer("c"), fields.integer("d")), (None, None));
    }

    #[test]
    fn an_array_nested_deeper_than_the_stack_is_passed_over() {
        let deep = format!("{{\"a\":{}1{},\"b\":2}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(Fields::parse(&deep).and_then(|fields| fields.integer("b")), Some(2));
    }
}
