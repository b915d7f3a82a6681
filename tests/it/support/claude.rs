//! Writes transcripts as Claude Code does.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::ago;

/// A transcript that is being written.
pub struct Claude {
    path: PathBuf,
    session: String,
    cwd: String,
    n: usize,
    parent: Option<String>,
    at: Option<String>,
    extra: Value,
}

impl Claude {
    pub fn new(path: PathBuf, session: &str) -> Self {
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        Self {
            path,
            session: session.to_owned(),
            cwd: "/w/app".to_owned(),
            n: 0,
            parent: None,
            at: None,
            extra: json!({}),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    #[must_use]
    pub fn cwd(mut self, cwd: &Path) -> Self {
        self.cwd = cwd.display().to_string();
        self
    }

    /// The next lines carry this time instead of now.
    #[must_use]
    pub fn at(mut self, at: &str) -> Self {
        self.at = Some(at.to_owned());
        self
    }

    /// The next lines carry these fields too.
    #[must_use]
    pub fn with(mut self, extra: Value) -> Self {
        self.extra = extra;
        self
    }

    /// A line of the message chain, without its line end.
    pub fn line(&mut self, kind: &str, fields: &Value) -> String {
        self.n += 1;
        let uuid = format!("{}-{:04}", self.session, self.n);
        let mut line = json!({
            "parentUuid": self.parent, "isSidechain": false, "userType": "external", "cwd": self.cwd,
            "sessionId": self.session, "version": "2.1.200", "gitBranch": "main", "type": kind,
            "uuid": uuid, "timestamp": self.at.clone().unwrap_or_else(|| ago(0)),
        });
        let object = line.as_object_mut().expect("an object");
        for extra in [&self.extra, fields] {
            object.extend(extra.as_object().expect("an object").clone());
        }
        self.parent = Some(uuid);
        line.to_string()
    }

    /// Appends bytes as they are.
    pub fn raw(self, bytes: &[u8]) -> Self {
        let mut file =
            std::fs::File::options().create(true).append(true).open(&self.path).expect("opened");
        file.write_all(bytes).expect("written");
        self
    }

    fn append(mut self, kind: &str, fields: &Value) -> Self {
        let line = self.line(kind, fields);
        self.raw(format!("{line}\n").as_bytes())
    }

    pub fn prompt(self, text: &str) -> Self {
        self.append("user", &json!({"message": {"role": "user", "content": text}}))
    }

    pub fn answer(self, text: &str) -> Self {
        let id = format!("msg_{}_{}", self.session, self.n);
        let message = json!({
            "id": id, "type": "message", "role": "assistant", "model": "claude-test-1",
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 0},
        });
        self.append("assistant", &json!({"requestId": "req_1", "message": message}))
    }

    /// A tool call with its result.
    pub fn tool(self, name: &str, input: &Value, output: &str, result: &Value) -> Self {
        let (id, message) =
            (format!("toolu_{}_{}", self.session, self.n), format!("msg_t{}", self.n));
        let call = json!({
            "id": message, "type": "message", "role": "assistant", "model": "claude-test-1",
            "content": [{"type": "tool_use", "id": id, "name": name, "input": input}],
            "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1},
        });
        let content = json!([{"type": "tool_result", "tool_use_id": id, "content": output}]);
        self.append("assistant", &json!({"message": call})).append(
            "user",
            &json!({"message": {"role": "user", "content": content}, "toolUseResult": result}),
        )
    }

    /// Edits a file.
    pub fn edit(self, path: &str) -> Self {
        let input = json!({"file_path": path, "old_string": "a", "new_string": "b"});
        self.tool("Edit", &input, "The file has been updated.", &json!({"filePath": path}))
    }

    /// Makes a commit; `hash` is what Git printed.
    pub fn commit(self, hash: &str, subject: &str) -> Self {
        let stdout = format!("[main {hash}] {subject}\n 1 file changed");
        let input =
            json!({"command": format!("git commit -am '{subject}'"), "description": "Commit"});
        self.tool(
            "Bash",
            &input,
            &stdout,
            &json!({"stdout": stdout, "stderr": "", "interrupted": false}),
        )
    }

    /// A title line, as the tool writes them without a time at any moment.
    pub fn title(self, title: &str) -> Self {
        let line = json!({"type": "ai-title", "aiTitle": title, "sessionId": self.session});
        self.raw(format!("{line}\n").as_bytes())
    }

    /// A built-in command.
    pub fn command(self, name: &str) -> Self {
        let text = format!(
            "<command-name>/{name}</command-name><command-message>{name}</command-message><command-args></command-args>"
        );
        self.append("user", &json!({"message": {"role": "user", "content": text}}))
    }
}
