//! Tool calls and their results (formats.md 1.7).

use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde_json::value::RawValue;

use super::prompt::plain;
use super::view::{
    Block, Message, Raw, Shape, TodoItem, ToolInput, ToolUseResult, content, count, escaped,
    is_true, list, text,
};
use crate::entry::{Call, CallOutcome, CallResult, Fact, FileChange, FileTouch, Usage, evidence};

/// Tool names are cut here: models invent them.
const MAX_NAME_CHARS: usize = 100;

/// Ids longer than this are no ids.
const MAX_ID_CHARS: usize = 200;

/// Text that becomes a fact: without control characters, and cut.
pub(super) fn tidy(text: &str, max_chars: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(max_chars).collect()
}

/// The id of a call.
pub(super) fn id(raw: Raw<'_>) -> String {
    text(raw).map(|id| tidy(&id, MAX_ID_CHARS)).unwrap_or_default()
}

/// The tool's name.
pub(super) fn name(block: &Block<'_>) -> String {
    text(block.name).map(|name| tidy(&name, MAX_NAME_CHARS)).unwrap_or_default()
}

/// What a call proves before its result is known.
pub(super) fn call_facts(block: &Block<'_>, facts: &mut Vec<Fact>) {
    let name = name(block);
    let input = &block.input;
    let extra = match name.as_str() {
        "WebFetch" => text(input.url).and_then(|url| evidence::clean_url(&url)).map(Fact::Url),
        "ExitPlanMode" => Some(Fact::Plan),
        "AskUserQuestion" => {
            let questions = list::<&RawValue>(input.questions).len();
            Some(Fact::Question { count: u32::try_from(questions).unwrap_or(u32::MAX) })
        }
        "TodoWrite" => (input.todos.is_some()).then(|| todo(input)),
        _ => None,
    };
    facts.push(Fact::Call(Call {
        id: id(block.id),
        files: files(&name, input),
        commits: matches!(name.as_str(), "Bash" | "PowerShell")
            && text(input.command).is_some_and(|command| evidence::is_commit_command(&command)),
        name,
    }));
    facts.extend(extra);
}

/// Files that the call will change if it succeeds.
fn files(name: &str, input: &ToolInput<'_>) -> Vec<FileTouch> {
    let (path, how) = match name {
        "Write" => (input.file_path, FileChange::Written),
        "Edit" | "MultiEdit" => (input.file_path, FileChange::Edited),
        "NotebookEdit" => (input.notebook_path.or(input.file_path), FileChange::Edited),
        _ => return Vec::new(),
    };
    text(path)
        .map(|path| path.replace('\0', ""))
        .filter(|path| !path.is_empty())
        .map(|path| FileTouch { path, how })
        .into_iter()
        .collect()
}

fn todo(input: &ToolInput<'_>) -> Fact {
    let (mut open, mut done) = (0, 0);
    for item in list::<TodoItem<'_>>(input.todos) {
        if text(item.status).as_deref() == Some("completed") {
            done += 1;
        } else {
            open += 1;
        }
    }
    Fact::Todo { open, done }
}

/// The argument that tells most about a call.
pub(super) fn argument(input: &ToolInput<'_>) -> String {
    [
        input.command,
        input.file_path,
        input.notebook_path,
        input.url,
        input.query,
        input.pattern,
        input.skill,
        input.description,
        input.path,
    ]
    .into_iter()
    .find_map(text)
    .unwrap_or_default()
    .into_owned()
}

/// A result's text, as far as it is text.
pub(super) fn output(block: &Block<'_>) -> String {
    plain(content(block.content)).into_owned()
}

/// What a result proves. `result` is the tool's own form of it; on a line with several results it is not known
/// to which it belongs, so that only its denial counts.
pub(super) fn result_facts(
    block: &Block<'_>,
    result: &ToolUseResult<'_>,
    denied: bool,
    facts: &mut Vec<Fact>,
) {
    let start = output_start(block.content);
    let outcome = outcome(block, result, denied, start);
    let exit = exit_status(result, start);
    facts.push(Fact::Result(CallResult {
        call: id(block.call),
        outcome,
        exit,
        commits: commits(outcome, result, block),
    }));
    if outcome == CallOutcome::Denied {
        return;
    }
    if let Some(sha) = text(result.git.commit.sha).filter(|sha| is_hash(sha)) {
        facts.push(Fact::Commit(sha.into_owned()));
    }
    if let Some(url) = text(result.git.pull_request.url).and_then(|url| evidence::clean_url(&url)) {
        facts.push(Fact::PullRequest { url });
    }
    if let Some(agent) = text(result.agent).map(|agent| tidy(&agent, MAX_ID_CHARS))
        && !agent.is_empty()
    {
        facts.push(Fact::Subagent { agent });
    }
}

fn is_hash(text: &str) -> bool {
    (7..=40).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn outcome(
    block: &Block<'_>,
    result: &ToolUseResult<'_>,
    denied: bool,
    start: &str,
) -> CallOutcome {
    let failed = is_true(block.is_error) || start.starts_with("<tool_use_error>");
    // A tool that ran gives an object; what its output says about denials is then only a text.
    let may_be_denied = failed || result.shape != Shape::Object;
    if denied || (may_be_denied && is_denial(start)) {
        CallOutcome::Denied
    } else if failed {
        CallOutcome::Failed
    } else if is_background(result, start) {
        CallOutcome::Running
    } else {
        CallOutcome::Ok
    }
}

fn is_denial(text: &str) -> bool {
    text.starts_with("The user doesn't want to proceed with this tool use")
        || text.starts_with("The user doesn't want to take this action right now")
        || text.starts_with("[Request interrupted by user for tool use]")
        || text.starts_with("User rejected tool use")
        || (text.starts_with("Permission to use ") && text.contains(" has been denied"))
}

fn is_background(result: &ToolUseResult<'_>, output: &str) -> bool {
    match result.shape {
        Shape::Object => {
            result.background.is_some()
                || is_true(result.is_async)
                || text(result.status).as_deref() == Some("async_launched")
        }
        Shape::Absent | Shape::Other => {
            output.starts_with("Command running in background with ID:")
        }
    }
}

/// `Exit code N` at the start of the output, or the field of a background task's result.
fn exit_status(result: &ToolUseResult<'_>, output: &str) -> Option<i32> {
    if let Some(rest) = output.strip_prefix("Exit code ") {
        let digits = rest.split(|c: char| !c.is_ascii_digit() && c != '-').next();
        return digits.and_then(|digits| digits.parse().ok());
    }
    result.exit.and_then(|exit| exit.get().parse().ok())
}

/// How the output begins, in JSON's escaped form: what is looked for in it holds nothing that is escaped, and
/// outputs are too long to be unescaped for a look at their first words.
fn output_start(raw: Raw<'_>) -> &str {
    let start = match raw.map(RawValue::get) {
        Some(json) if json.starts_with('[') => {
            list::<Block<'_>>(raw).iter().find_map(|block| escaped(block.text))
        }
        _ => escaped(raw),
    };
    start.unwrap_or_default().trim_start_matches(' ').trim_start_matches("\\n")
}

/// Hashes in commit lines of the output. Only a command's output is looked at: the results of reads and
/// searches quote such lines, and so do failures.
fn commits(outcome: CallOutcome, result: &ToolUseResult<'_>, block: &Block<'_>) -> Vec<String> {
    let from_command = result.shape != Shape::Object || result.stdout.is_some();
    if outcome != CallOutcome::Ok || !from_command {
        return Vec::new();
    }
    let mut hashes = Vec::new();
    for raw in [result.stdout, block.content] {
        let Some(json) = raw.map(RawValue::get) else {
            continue;
        };
        if COMMIT_LINE_END.find(json.as_bytes()).is_none() {
            continue;
        }
        for hash in evidence::commit_lines(&plain(content(raw))) {
            if !hashes.contains(&hash) {
                hashes.push(hash);
            }
        }
    }
    hashes
}

/// Every commit line has this; an output without it need not be unescaped.
static COMMIT_LINE_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("] "));

/// Tokens of one API message.
pub(super) fn usage(message: &Message<'_>) -> Option<Usage> {
    let tokens = &message.usage;
    (tokens.shape == Shape::Object).then(|| Usage {
        message: text(message.id).map(|id| tidy(&id, MAX_ID_CHARS)),
        model: text(message.model).map(|model| tidy(&model, MAX_NAME_CHARS)),
        input: count(tokens.input),
        output: count(tokens.output),
        cache_read: count(tokens.cache_read),
        cache_write: count(tokens.cache_write),
        running_total: false,
    })
}
