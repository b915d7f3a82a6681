//! Writes rollouts as Codex does.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::ago;

/// A rollout that is being written.
pub struct Codex {
    path: PathBuf,
    session: String,
    n: usize,
    at: Option<String>,
}

impl Codex {
    pub fn new(path: PathBuf, session: &str) -> Self {
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        Self { path, session: session.to_owned(), n: 0, at: None }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next lines carry this time instead of now.
    #[must_use]
    pub fn at(mut self, at: &str) -> Self {
        self.at = Some(at.to_owned());
        self
    }

    /// A wrapped line, without its line end.
    pub fn line(&mut self, kind: &str, payload: &Value) -> String {
        self.n += 1;
        let at = self.at.clone().unwrap_or_else(|| ago(0));
        json!({"timestamp": at, "type": kind, "payload": payload}).to_string()
    }

    fn append(mut self, kind: &str, payload: &Value) -> Self {
        let line = self.line(kind, payload);
        let mut file =
            std::fs::File::options().create(true).append(true).open(&self.path).expect("opened");
        file.write_all(format!("{line}\n").as_bytes()).expect("written");
        self
    }

    /// The header.
    pub fn meta(self, cwd: &Path) -> Self {
        let payload = json!({
            "id": self.session, "timestamp": ago(0), "cwd": cwd, "originator": "codex_cli_rs",
            "cli_version": "0.104.0", "source": "cli", "git": {"branch": "main"},
        });
        self.append("session_meta", &payload)
    }

    pub fn prompt(self, text: &str) -> Self {
        let content = json!([{"type": "input_text", "text": text}]);
        self.append(
            "response_item",
            &json!({"type": "message", "role": "user", "content": content}),
        )
        .append("event_msg", &json!({"type": "user_message", "message": text, "images": []}))
    }

    pub fn answer(self, text: &str) -> Self {
        let content = json!([{"type": "output_text", "text": text}]);
        self.append("event_msg", &json!({"type": "agent_message", "message": text})).append(
            "response_item",
            &json!({"type": "message", "role": "assistant", "content": content}),
        )
    }

    /// Patches a file.
    pub fn patch(self, path: &str) -> Self {
        let id = format!("call_{}", self.n);
        let input =
            format!("*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch\n");
        let output = format!("Success. Updated the following files:\nM {path}\n");
        let output = json!({"output": output, "metadata": {"exit_code": 0}}).to_string();
        self.append(
            "response_item",
            &json!({"type": "custom_tool_call", "status": "completed", "call_id": id, "name": "apply_patch", "input": input}),
        )
        .append(
            "response_item",
            &json!({"type": "custom_tool_call_output", "call_id": id, "output": output}),
        )
    }
}
