//! Which of the three grammars a record is written in, and as what (formats.md 2.3).

use std::borrow::Cow;

use super::super::EntryKind;
use super::fields::Fields;
use super::{MAX_SHAPE, tidy};

/// A record's place in the three grammars.
pub(super) enum Place<'a> {
    /// `session_meta`.
    Header(Fields<'a>),
    /// The first line of the bare grammar.
    BareHeader,
    /// `turn_context`.
    Turn(Fields<'a>),
    /// A response item: a payload, or a bare record itself (`None`).
    Item(Option<Fields<'a>>),
    /// `event_msg`, with the kind of its payload.
    Event(Cow<'a, str>, Fields<'a>),
    /// Something that has no content for us.
    Noise(EntryKind),
    /// Output of `codex exec --json` that somebody saved: never content.
    ExecJson(String),
    /// A shape that is not known.
    Unknown(String),
}

impl<'a> Place<'a> {
    /// Tells the place by the record's types.
    pub(super) fn of(fields: &Fields<'a>) -> Self {
        let kind = fields.text("type").unwrap_or_default();
        if fields.raw("payload").is_some() {
            return Self::wrapped(&kind, fields.object("payload"));
        }
        match kind.as_ref() {
            "" if fields.raw("record_type").is_some() => Self::Noise(EntryKind::State),
            "" if fields.raw("id").is_some() && fields.raw("timestamp").is_some() => {
                Self::BareHeader
            }
            "error" => Self::ExecJson(kind.into_owned()),
            _ if ["thread.", "turn.", "item."].iter().any(|start| kind.starts_with(start)) => {
                Self::ExecJson(kind.into_owned())
            }
            _ if is_item(&kind) => Self::Item(None),
            _ => Self::Unknown(kind.into_owned()),
        }
    }

    fn wrapped(kind: &str, payload: Option<Fields<'a>>) -> Self {
        match (kind, payload) {
            // Its body is a summary and a repetition of what stands above.
            ("compacted", _) => Self::Noise(EntryKind::Compaction),
            (
                "world_state"
                | "retained_context"
                | "security_risk_score"
                | "rollout_reference"
                | "inter_agent_communication"
                | "inter_agent_communication_metadata"
                | "realtime_item",
                _,
            ) => Self::Noise(EntryKind::State),
            ("token_usage_record", _) => Self::Noise(EntryKind::Telemetry),
            ("session_meta", Some(payload)) => Self::Header(payload),
            ("turn_context", Some(payload)) => Self::Turn(payload),
            ("response_item", Some(payload)) => Self::Item(Some(payload)),
            ("event_msg", Some(payload)) => {
                Self::Event(payload.text("type").unwrap_or_default(), payload)
            }
            (kind, payload) => Self::Unknown(shape(kind, payload.as_ref())),
        }
    }

    /// The payload of a wrapped line whose members are known.
    pub(super) fn payload(&self) -> Option<&Fields<'a>> {
        match self {
            Self::Header(payload)
            | Self::Turn(payload)
            | Self::Item(Some(payload))
            | Self::Event(_, payload) => Some(payload),
            _ => None,
        }
    }

    /// The types of the line, never its text.
    pub(super) fn shape(&self, fields: &Fields<'a>) -> String {
        let kind = || tidy(&fields.text("type").unwrap_or_default(), MAX_SHAPE);
        match self {
            Self::Header(_) | Self::Turn(_) | Self::Noise(_) => kind(),
            Self::BareHeader => "bare-header".to_owned(),
            Self::ExecJson(kind) => tidy(&format!("exec-json/{kind}"), MAX_SHAPE),
            Self::Item(None) => format!("bare/{}", kind()),
            Self::Item(Some(payload)) => {
                let item = payload.text("type").unwrap_or_default();
                tidy(&format!("response_item/{item}"), MAX_SHAPE)
            }
            Self::Event(event, payload) => {
                let item = match event.as_ref() {
                    "item_completed" => payload.object("item").and_then(|item| item.text("type")),
                    _ => None,
                };
                match item {
                    Some(item) => tidy(&format!("event_msg/{event}/{item}"), MAX_SHAPE),
                    None => tidy(&format!("event_msg/{event}"), MAX_SHAPE),
                }
            }
            Self::Unknown(shape) => tidy(shape, MAX_SHAPE),
        }
    }

    /// The turn that begins here.
    pub(super) fn turn(&self) -> Option<Cow<'a, str>> {
        match self {
            Self::Turn(payload) => payload.text("turn_id"),
            Self::Event(kind, payload)
                if matches!(kind.as_ref(), "task_started" | "turn_started") =>
            {
                payload.text("turn_id")
            }
            _ => None,
        }
    }
}

/// Types of response items as they stand at the top of bare lines.
fn is_item(kind: &str) -> bool {
    matches!(
        kind,
        "message"
            | "reasoning"
            | "function_call"
            | "function_call_output"
            | "custom_tool_call"
            | "custom_tool_call_output"
            | "local_shell_call"
            | "local_shell_call_output"
            | "web_search_call"
            | "image_generation_call"
    )
}

/// The type of a line and of its payload, never its text.
pub(super) fn shape(kind: &str, payload: Option<&Fields<'_>>) -> String {
    let mut shape = kind.to_owned();
    let item = payload.and_then(|payload| payload.object("item")?.text("type"));
    for part in [payload.and_then(|payload| payload.text("type")), item].into_iter().flatten() {
        shape.push('/');
        shape.push_str(&part);
    }
    shape
}
