//! What a Claude line looks like to us: flat views that borrow from the line, take every field as it comes and
//! never fail because one has another type than usual, stands twice or is unknown (formats.md F13).

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A value that is looked at when somebody asks; `None` for an absent field and for `null`.
pub(super) type Raw<'a> = Option<&'a RawValue>;

/// What stands where an object is expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Shape {
    /// Nothing, or `null`.
    #[default]
    Absent,
    /// An object: the fields are filled.
    Object,
    /// A string, list, number or truth value: the fields are empty.
    Other,
}

/// An object's key, borrowed unless it holds escapes.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// Makes a view of an object: the named fields, and the [`Shape`] of what really stood there. The last of two
/// equal keys wins, as in JavaScript.
macro_rules! view {
    ($(#[$doc:meta])* $name:ident $(, others by $is_known:path)? { $($(#[$field_doc:meta])* $field:ident: $type:ty = $key:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(super) struct $name<'a> {
            /// What really stands there.
            #[allow(dead_code, reason = "not every view is asked for its shape")]
            pub(super) shape: Shape,
            /// Members that are not known, where somebody asks for them.
            #[allow(dead_code, reason = "not every view is asked for them")]
            pub(super) others: Vec<String>,
            $($(#[$field_doc])* pub(super) $field: $type,)*
        }

        impl<'de: 'a, 'a> Deserialize<'de> for $name<'a> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields<'a>(PhantomData<&'a ()>);

                impl<'de: 'a, 'a> Visitor<'de> for Fields<'a> {
                    type Value = $name<'a>;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("any JSON value")
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                        let mut view = $name { shape: Shape::Object, ..$name::default() };
                        while let Some(Key(key)) = map.next_key()? {
                            match &*key {
                                $($key => view.$field = map.next_value()?,)*
                                _ => {
                                    $(if !$is_known(&key) {
                                        view.others.push((*key).to_owned());
                                    })?
                                    map.next_value::<IgnoredAny>()?;
                                }
                            }
                        }
                        Ok(view)
                    }

                    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                        while seq.next_element::<IgnoredAny>()?.is_some() {}
                        Ok(other())
                    }

                    fn visit_unit<E>(self) -> Result<Self::Value, E> {
                        Ok($name::default())
                    }

                    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                        Ok(other())
                    }

                    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                        Ok(other())
                    }

                    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                        Ok(other())
                    }

                    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                        Ok(other())
                    }

                    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                        Ok(other())
                    }
                }

                fn other<'a>() -> $name<'a> {
                    $name { shape: Shape::Other, ..$name::default() }
                }

                deserializer.deserialize_any(Fields(PhantomData))
            }
        }
    };
}

view! {
    /// One line.
    Head, others by super::known::is_known {
        kind: Raw<'a> = "type",
        subtype: Raw<'a> = "subtype",
        uuid: Raw<'a> = "uuid",
        session: Raw<'a> = "sessionId",
        timestamp: Raw<'a> = "timestamp",
        cwd: Raw<'a> = "cwd",
        branch: Raw<'a> = "gitBranch",
        version: Raw<'a> = "version",
        entrypoint: Raw<'a> = "entrypoint",
        agent: Raw<'a> = "agentId",
        sidechain: Raw<'a> = "isSidechain",
        meta: Raw<'a> = "isMeta",
        compact_summary: Raw<'a> = "isCompactSummary",
        transcript_only: Raw<'a> = "isVisibleInTranscriptOnly",
        api_error: Raw<'a> = "isApiErrorMessage",
        denial: Raw<'a> = "toolDenialKind",
        origin: Origin<'a> = "origin",
        forked_from: ForkedFrom<'a> = "forkedFrom",
        request_session: Raw<'a> = "requestSessionId",
        leaf: Raw<'a> = "leafUuid",
        snapshot_of: Raw<'a> = "messageId",
        message: Message<'a> = "message",
        tool_use_result: ToolUseResult<'a> = "toolUseResult",
        attachment: Attachment<'a> = "attachment",
        worktree: WorktreeSession<'a> = "worktreeSession",
        /// `system` lines: the text.
        content: Raw<'a> = "content",
        ai_title: Raw<'a> = "aiTitle",
        custom_title: Raw<'a> = "customTitle",
        pr_url: Raw<'a> = "prUrl",
    }
}

view! {
    /// Who is behind a user line, where newer versions say so.
    Origin {
        kind: Raw<'a> = "kind",
    }
}

view! {
    /// Where a forked line was copied from.
    ForkedFrom {
        session: Raw<'a> = "sessionId",
    }
}

view! {
    /// The API message on a `user` or `assistant` line.
    Message {
        id: Raw<'a> = "id",
        model: Raw<'a> = "model",
        content: Content<'a> = "content",
        usage: TokenUsage<'a> = "usage",
    }
}

view! {
    /// Tokens as the API counts them.
    TokenUsage {
        input: Raw<'a> = "input_tokens",
        output: Raw<'a> = "output_tokens",
        cache_read: Raw<'a> = "cache_read_input_tokens",
        cache_write: Raw<'a> = "cache_creation_input_tokens",
    }
}

view! {
    /// One content block.
    Block {
        kind: Raw<'a> = "type",
        text: Raw<'a> = "text",
        id: Raw<'a> = "id",
        name: Raw<'a> = "name",
        input: ToolInput<'a> = "input",
        call: Raw<'a> = "tool_use_id",
        /// Not a [`Content`]: blocks would nest in blocks as deep as a stranger likes.
        content: Raw<'a> = "content",
        is_error: Raw<'a> = "is_error",
    }
}

view! {
    /// The arguments of a tool call that tell what it does.
    ToolInput {
        command: Raw<'a> = "command",
        file_path: Raw<'a> = "file_path",
        notebook_path: Raw<'a> = "notebook_path",
        path: Raw<'a> = "path",
        url: Raw<'a> = "url",
        query: Raw<'a> = "query",
        pattern: Raw<'a> = "pattern",
        description: Raw<'a> = "description",
        skill: Raw<'a> = "skill",
        questions: Raw<'a> = "questions",
        todos: Raw<'a> = "todos",
    }
}

view! {
    /// One item of a todo list.
    TodoItem {
        status: Raw<'a> = "status",
    }
}

view! {
    /// What a tool gave back, in the tool's own form; an object, a string (an error's text) or a list.
    ToolUseResult {
        stdout: Raw<'a> = "stdout",
        status: Raw<'a> = "status",
        agent: Raw<'a> = "agentId",
        is_async: Raw<'a> = "isAsync",
        background: Raw<'a> = "backgroundTaskId",
        exit: Raw<'a> = "exitCode",
        git: GitOperation<'a> = "gitOperation",
    }
}

view! {
    /// What Claude Code itself saw of Git in a command.
    GitOperation {
        commit: GitCommit<'a> = "commit",
        pull_request: GitPullRequest<'a> = "pr",
    }
}

view! {
    /// A commit that a command made.
    GitCommit {
        sha: Raw<'a> = "sha",
    }
}

view! {
    /// A pull request that a command opened.
    GitPullRequest {
        url: Raw<'a> = "url",
    }
}

view! {
    /// The body of an `attachment` line.
    Attachment {
        kind: Raw<'a> = "type",
        prompt: Content<'a> = "prompt",
        mode: Raw<'a> = "commandMode",
        origin: Origin<'a> = "origin",
        meta: Raw<'a> = "isMeta",
    }
}

view! {
    /// The worktree that a session works in.
    WorktreeSession {
        original: Raw<'a> = "originalCwd",
    }
}

/// Content of a message or tool result: a string, a list of blocks, or nothing that is known.
#[derive(Debug, Default)]
pub(super) enum Content<'a> {
    #[default]
    Absent,
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<'a>(PhantomData<&'a ()>);

        impl<'de: 'a, 'a> Visitor<'de> for Any<'a> {
            type Value = Content<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any JSON value")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(Content::Blocks(blocks))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Content::Absent)
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Content::Absent)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Content::Absent)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Content::Absent)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Content::Absent)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Content::Absent)
            }
        }

        deserializer.deserialize_any(Any(PhantomData))
    }
}

/// The content in `raw`.
pub(super) fn content(raw: Raw<'_>) -> Content<'_> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// The inside of the string in `raw`, with its escapes.
pub(super) fn escaped(raw: Raw<'_>) -> Option<&str> {
    raw?.get().strip_prefix('"')?.strip_suffix('"')
}

/// The string in `raw`, if it is one.
pub(super) fn text(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    let json = raw?.get();
    let inner = escaped(raw)?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(json).ok().map(Cow::Owned)
}

/// `raw` is a string with something in it besides white space; cheaper than [`text`] for a long one.
pub(super) fn has_text(raw: Raw<'_>) -> bool {
    match escaped(raw).unwrap_or_default().trim_start().as_bytes().first() {
        None => false,
        Some(b'\\') => text(raw).is_some_and(|text| !text.trim().is_empty()),
        Some(_) => true,
    }
}

/// `raw` is `true`.
pub(super) fn is_true(raw: Raw<'_>) -> bool {
    raw.is_some_and(|raw| raw.get() == "true")
}

/// The count in `raw`; fractions are cut off, anything else is 0 (formats.md F12).
pub(super) fn count(raw: Raw<'_>) -> u64 {
    let Some(json) = raw.map(RawValue::get) else {
        return 0;
    };
    json.parse().unwrap_or_else(|_| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the cast saturates, which is what a count out of range shall do"
        )]
        json.parse::<f64>().map_or(0, |number| number as u64)
    })
}

/// The list in `raw`; empty if it is none.
pub(super) fn list<'a, T: Deserialize<'a>>(raw: Raw<'a>) -> Vec<T> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}
