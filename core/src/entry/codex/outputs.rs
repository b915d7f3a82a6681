//! What a tool gave back, out of the many shapes in which Codex has written it (formats.md 2.5).

use std::borrow::Cow;

use super::super::CallOutcome;
use super::fields::{Fields, as_list, as_text};

/// A tool's output, without the frame that Codex puts around it.
#[derive(Debug, PartialEq)]
pub(super) struct Output {
    /// How the call went.
    pub(super) outcome: CallOutcome,
    /// Exit status, where one is written.
    pub(super) exit: Option<i32>,
    /// The text that the tool itself wrote.
    pub(super) text: String,
    /// Where a command goes on that has not ended yet.
    pub(super) session: Option<String>,
}

/// Lines of a frame that come before the tool's own text.
const MAX_FRAME_LINES: usize = 12;

/// How outputs of calls begin that failed without an exit status.
const FAILED: &[&str] = &[
    "apply_patch verification failed",
    "Failed to apply patch",
    "Failed to find expected lines",
    "error: Failed to find",
    "error: invalid hunk",
    "invalid hunk",
    "Invalid patch",
    "failed in sandbox",
    "execution error",
    "unsupported call",
    "unsupported custom tool call",
    "failed to parse",
    "failed to ",
    "aborted by user",
    "exec_command failed",
    "write_stdin failed",
    "tool call error",
    "tool call failed",
    "Script failed",
    "Script error",
];

/// How outputs of calls begin that were not allowed.
const DENIED: &[&str] = &[
    "exec command rejected",
    "patch rejected",
    "approval policy is",
    "This action was rejected",
    "rejected by user",
];

/// Reads the `output` of a call, given as its JSON text.
pub(super) fn output(raw: Option<&str>) -> Output {
    let raw = raw.unwrap_or("\"\"");
    if let Some(text) = as_text(raw) {
        return from_text(text);
    }
    if let Some(object) = Fields::parse(raw) {
        let mut output = from_text(object.text("content").unwrap_or_default());
        if object.raw("success") == Some("false") && output.outcome == CallOutcome::Ok {
            output.outcome = CallOutcome::Failed;
        }
        return output;
    }
    from_blocks(&as_list(raw))
}

/// Code mode: a list of blocks, the first of which is the frame.
fn from_blocks(blocks: &[&str]) -> Output {
    let mut text = String::new();
    let mut exits = Vec::new();
    for block in blocks.iter().filter_map(|block| Fields::parse(block)?.text("text")) {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        match framed_json(&block) {
            Some((inner, exit)) => {
                text.push_str(&inner);
                exits.push(exit);
            }
            None => text.push_str(&block),
        }
    }
    let mut output = from_text(Cow::Owned(text));
    // With several commands in a script no single status is the script's.
    if let [exit] = exits[..]
        && output.outcome == CallOutcome::Ok
    {
        output.exit = exit;
        output.outcome = by_status(exit, CallOutcome::Ok);
    }
    output
}

fn from_text(text: Cow<'_, str>) -> Output {
    if let Some((inner, exit)) = framed_json(&text) {
        let outcome = by_status(exit, by_words(&inner));
        return Output { outcome, exit, text: inner, session: None };
    }
    if ["Exit code:", "Chunk ID:", "Wall time", "Process ", "Script "]
        .iter()
        .any(|x| text.starts_with(x))
    {
        return from_frame(&text);
    }
    Output { outcome: by_words(&text), exit: None, text: text.into_owned(), session: None }
}

/// `{"output":"…","metadata":{"exit_code":0}}`, or code mode's `{"chunk_id":…,"exit_code":0,"output":"…"}`.
fn framed_json(text: &str) -> Option<(String, Option<i32>)> {
    if !text.starts_with('{') {
        return None;
    }
    let object = Fields::parse(text)?;
    let inner = object.text("output")?;
    let status = object
        .integer("exit_code")
        .or_else(|| object.object("metadata")?.integer("exit_code"))
        .and_then(|exit| i32::try_from(exit).ok());
    let framed =
        status.is_some() || object.raw("metadata").is_some() || object.raw("chunk_id").is_some();
    framed.then(|| (inner.into_owned(), status))
}

/// Lines such as `Exit code: 0`, up to `Output:`, then the tool's text.
fn from_frame(text: &str) -> Output {
    let mut exit = None;
    let mut session = None;
    let mut body = text;
    let mut rest = text;
    let mut failed = false;
    for _ in 0..MAX_FRAME_LINES {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let line = line.trim_end();
        rest = after;
        if line == "Output:" {
            body = rest;
            break;
        }
        let number =
            |start: &str| line.strip_prefix(start).and_then(|number| number.trim().parse().ok());
        if let Some(status) = number("Exit code:").or_else(|| number("Process exited with code ")) {
            exit = Some(status);
        } else if let Some(id) = line.strip_prefix("Process running with session ID ") {
            session = Some(id.trim().to_owned());
        } else if let Some(id) = line.strip_prefix("Script running with cell ID ") {
            session = Some(id.trim().to_owned());
        }
        failed |= by_words(line) != CallOutcome::Ok;
        if rest.is_empty() {
            break;
        }
    }
    let outcome = match exit {
        Some(_) => by_status(exit, CallOutcome::Ok),
        None if session.is_some() => CallOutcome::Running,
        None if failed => CallOutcome::Failed,
        None => by_words(body),
    };
    Output { outcome, exit, text: body.to_owned(), session }
}

fn by_status(exit: Option<i32>, otherwise: CallOutcome) -> CallOutcome {
    match exit {
        Some(0) => CallOutcome::Ok,
        Some(_) => CallOutcome::Failed,
        None => otherwise,
    }
}

/// What Codex's own sentences say, where no status is written.
fn by_words(text: &str) -> CallOutcome {
    let text = text.trim_start();
    let head = text.get(..text.floor_char_boundary(300)).unwrap_or(text);
    if DENIED.iter().any(|start| head.starts_with(start)) || head.ends_with("rejected by user") {
        CallOutcome::Denied
    } else if head == "aborted"
        || FAILED.iter().any(|start| head.starts_with(start))
        || is_tool_error(text)
    {
        CallOutcome::Failed
    } else {
        CallOutcome::Ok
    }
}

/// The result of an MCP server that says of itself that it failed.
fn is_tool_error(text: &str) -> bool {
    text.starts_with('{')
        && Fields::parse(text)
            .is_some_and(|result| result.is_true("isError") || result.is_true("is_error"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(output_text: &str) -> (CallOutcome, Option<i32>, String) {
        let raw = serde_json::Value::from(output_text).to_string();
        let output = output(Some(&raw));
        (output.outcome, output.exit, output.text)
    }

    #[test]
    fn the_status_is_found_in_every_frame() {
        let ok = (CallOutcome::Ok, Some(0), "done\n".to_owned());
        assert_eq!(
            read(r#"{"output":"done\n","metadata":{"exit_code":0,"duration_seconds":0.3}}"#),
            ok
        );
        assert_eq!(read("Exit code: 0\nWall time: 0 seconds\nOutput:\ndone\n"), ok);
        assert_eq!(
            read(
                "Chunk ID: 2238c8\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\ndone\n"
            ),
            ok
        );
        let failed = (CallOutcome::Failed, Some(3), "boom".to_owned());
        assert_eq!(
            read("Exit code: 3\nWall time: 0 seconds\nTotal output lines: 1\nOutput:\nboom"),
            failed
        );
        assert_eq!(read(r#"{"output":"boom","metadata":{"exit_code":3}}"#), failed);
    }

    #[test]
    fn a_status_in_the_tools_own_text_is_not_the_calls() {
        assert_eq!(
            read("Wall time: 0.7 seconds\nOutput:\nExit code: 4"),
            (CallOutcome::Ok, None, "Exit code: 4".to_owned())
        );
    }

    #[test]
    fn a_command_that_goes_on_is_running() {
        let raw = serde_json::Value::from(
            "Chunk ID: 1\nWall time: 30.0 seconds\nProcess running with session ID 35410\nOutput:\n",
        );
        let output = output(Some(&raw.to_string()));
        assert_eq!(
            (output.outcome, output.session.as_deref()),
            (CallOutcome::Running, Some("35410"))
        );
    }

    #[test]
    fn failures_without_a_status_are_known_by_their_words() {
        for text in [
            "apply_patch verification failed: no such line",
            "error: invalid hunk at line 2",
            "failed in sandbox MacosSeatbelt with execution error: x",
            "unsupported call: assistant",
            "aborted by user after 29.7s",
            "Wall time: 2.8 seconds\naborted by user",
            r#"{"content":[],"isError":true}"#,
        ] {
            assert_eq!(read(text).0, CallOutcome::Failed, "{text}");
        }
        assert_eq!(read("exec command rejected by user").0, CallOutcome::Denied);
        assert_eq!(read("patch rejected: writing outside of the project").0, CallOutcome::Denied);
        assert_eq!(read("Success. Updated the following files:\nM a.rs").0, CallOutcome::Ok);
        assert_eq!(read("").0, CallOutcome::Ok);
    }

    #[test]
    fn objects_and_lists_of_blocks_are_read() {
        let old = output(Some(r#"{"content":"no such file","success":false}"#));
        assert_eq!((old.outcome, old.text.as_str()), (CallOutcome::Failed, "no such file"));
        let blocks = r#"[{"type":"input_text","text":"Script completed\nWall time 1.1 seconds\nOutput:\n"},
            {"type":"input_text","text":"{\"chunk_id\":\"x\",\"exit_code\":1,\"output\":\"one\\ntwo\"}"},
            {"type":"input_image","image_url":"data:"}]"#;
        let script = output(Some(blocks));
        assert_eq!(
            (script.outcome, script.exit, script.text.as_str()),
            (CallOutcome::Failed, Some(1), "one\ntwo")
        );
        assert_eq!(output(Some("7")).text, "");
        assert_eq!(output(None).outcome, CallOutcome::Ok);
    }
}
