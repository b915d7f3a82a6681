//! Tool calls: the name, the one argument that tells most, the files of a patch and whether the command commits
//! (formats.md 2.5).

use std::borrow::Cow;

use super::super::evidence::{clean_url, is_commit_command};
use super::super::{Call, Fact};
use super::fields::{Fields, as_list, as_text};
use super::{MAX_NAME, MAX_TEXT, patch, tidy};

/// A call as a line tells it.
#[derive(Debug)]
pub(super) struct Asked {
    /// The fact for the ledger.
    pub(super) call: Call,
    /// What else the call proves: a todo list, questions, an address.
    pub(super) facts: Vec<Fact>,
    /// Where the command runs, as written.
    pub(super) workdir: Option<String>,
    /// Command line, patched paths, query or address.
    pub(super) argument: String,
    /// The running command that the call talks to.
    pub(super) session: Option<String>,
}

/// Members that hold the argument of a tool which is none of Codex's own, the most telling first.
const TELLING: &[&str] =
    &["path", "file_path", "query", "q", "url", "uri", "pattern", "task_name", "name"];

/// Reads a `response_item` that calls a tool; `None` if `kind` is none of them.
pub(super) fn asked(kind: &str, item: &Fields<'_>) -> Option<Asked> {
    let name = name(kind, item);
    let id =
        item.text("call_id").or_else(|| item.text("id").filter(|_| kind == "local_shell_call"));
    let mut asked = Asked {
        call: Call {
            id: tidy(&id.unwrap_or_default(), MAX_TEXT),
            name,
            files: Vec::new(),
            commits: false,
        },
        facts: Vec::new(),
        workdir: None,
        argument: String::new(),
        session: None,
    };
    match kind {
        "function_call" | "tool_search_call" => {
            // The arguments are JSON in a string; some writers left the string away.
            let raw = item.raw("arguments").unwrap_or_default();
            let text = as_text(raw).unwrap_or(Cow::Borrowed(raw));
            match Fields::parse(&text) {
                Some(arguments) => asked.take_arguments(&arguments),
                None => asked.call.commits = is_commit_command(&text),
            }
        }
        "custom_tool_call" => {
            let input = item.text("input").unwrap_or_default();
            if asked.call.name == "apply_patch" {
                asked.take_patch(&input);
            } else {
                // Code mode: a script that calls the real tools.
                asked.take_command(input.into_owned());
            }
        }
        "local_shell_call" => {
            if let Some(action) = item.object("action") {
                asked.take_arguments(&action);
            }
        }
        "web_search_call" => {
            if let Some(action) = item.object("action") {
                asked.take_web(&action);
            }
        }
        "image_generation_call" => {}
        _ => return None,
    }
    Some(asked)
}

/// `name`, `namespace.name`, or the kind of a call without a name. Models invent names.
fn name(kind: &str, item: &Fields<'_>) -> String {
    let name = tidy(&item.text("name").unwrap_or_default(), MAX_NAME);
    if name.is_empty() {
        return kind.to_owned();
    }
    match item.text("namespace").filter(|space| !space.is_empty()) {
        Some(space) => tidy(&format!("{space}.{name}"), MAX_NAME),
        None => name,
    }
}

impl Asked {
    fn take_arguments(&mut self, arguments: &Fields<'_>) {
        self.workdir = ["workdir", "working_directory"]
            .iter()
            .find_map(|member| arguments.text(member))
            .map(|path| tidy(&path, MAX_TEXT))
            .filter(|path| !path.is_empty());
        self.session = ["session_id", "cell_id"]
            .iter()
            .find_map(|member| arguments.id_number(member))
            .map(|number| number.to_string());
        match self.call.name.as_str() {
            "apply_patch" => {
                let patch = arguments.text("input").or_else(|| arguments.text("patch"));
                self.take_patch(&patch.unwrap_or_default());
            }
            "write_stdin" => {
                self.take_command(arguments.text("chars").unwrap_or_default().into_owned());
            }
            "update_plan" => self.facts.push(todo(&arguments.list("plan"))),
            "request_user_input" | "request_user_input_async" => {
                let count = arguments.list("questions").len().max(1);
                self.facts.push(Fact::Question { count: u32::try_from(count).unwrap_or(u32::MAX) });
            }
            _ => match ["command", "cmd"].iter().find_map(|member| command(arguments.raw(member)?))
            {
                Some(command) => self.take_command(command),
                None => self.take_telling(arguments),
            },
        }
    }

    fn take_command(&mut self, command: String) {
        if command.contains("*** Begin Patch")
            && command.contains("apply")
            && self.call.name != "exec"
        {
            self.take_patch(&command);
        }
        self.call.commits = is_commit_command(&command);
        if self.argument.is_empty() {
            self.argument = command;
        }
    }

    fn take_patch(&mut self, patch: &str) {
        self.call.files = patch::files(patch);
        // Paths are relative to the line's working directory, which a relative one cannot be.
        if let Some(below) =
            self.workdir.as_deref().filter(|path| !is_absolute(path) && *path != ".")
        {
            for file in self.call.files.iter_mut().filter(|file| !is_absolute(&file.path)) {
                file.path = format!("{}/{}", below.trim_end_matches('/'), file.path);
            }
        }
        let paths: Vec<&str> = self.call.files.iter().map(|file| file.path.as_str()).collect();
        self.argument = paths.join(", ");
    }

    fn take_web(&mut self, action: &Fields<'_>) {
        let url = action.text("url");
        if action.text("type").is_some_and(|kind| kind == "open_page") {
            self.facts.extend(url.as_deref().and_then(clean_url).map(Fact::Url));
        }
        let first = || action.list("queries").first().and_then(|query| as_text(query));
        self.argument =
            action.text("query").or(url).or_else(first).map(Cow::into_owned).unwrap_or_default();
    }

    fn take_telling(&mut self, arguments: &Fields<'_>) {
        let value = TELLING.iter().find_map(|member| arguments.text(member));
        self.argument = value.map(Cow::into_owned).unwrap_or_default();
    }

    /// The working directory, if it is one on its own.
    pub(super) fn absolute_workdir(&self) -> Option<String> {
        self.workdir.clone().filter(|path| is_absolute(path))
    }
}

/// A command line: text, or a list of words of which a shell's script stands for itself.
pub(super) fn command(raw: &str) -> Option<String> {
    if let Some(text) = as_text(raw) {
        return Some(text.into_owned());
    }
    let words: Vec<Cow<'_, str>> = as_list(raw).into_iter().filter_map(as_text).collect();
    match words.as_slice() {
        [] => None,
        [shell, flags @ .., script] if !flags.is_empty() && is_shell(shell, flags) => {
            Some(script.clone().into_owned())
        }
        words => Some(words.join(" ")),
    }
}

/// `bash -lc`, `pwsh -NoProfile -Command`, `cmd.exe /c` and their kin.
fn is_shell(program: &str, flags: &[Cow<'_, str>]) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program).to_ascii_lowercase();
    let last = flags.last().map(|flag| flag.to_ascii_lowercase()).unwrap_or_default();
    match name.trim_end_matches(".exe") {
        "bash" | "sh" | "zsh" | "dash" | "fish" | "ksh" => {
            last.starts_with('-') && last.ends_with('c')
        }
        "powershell" | "pwsh" => matches!(last.as_str(), "-command" | "-c"),
        "cmd" => matches!(last.as_str(), "/c" | "/k"),
        _ => false,
    }
}

/// An absolute path of any system: the file may come from another one.
fn is_absolute(path: &str) -> bool {
    let drive = matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    path.starts_with(['/', '\\', '~']) || drive
}

/// The steps of a plan that are finished and not.
fn todo(plan: &[&str]) -> Fact {
    let done = plan
        .iter()
        .filter_map(|step| Fields::parse(step)?.text("status"))
        .filter(|status| status == "completed")
        .count();
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Fact::Todo { open: count(plan.len() - done), done: count(done) }
}

#[cfg(test)]
mod tests {
    use super::super::super::{FileChange, FileTouch};
    use super::*;

    fn call(kind: &str, item: &serde_json::Value) -> Asked {
        let text = item.to_string();
        asked(kind, &Fields::parse(&text).expect("object")).expect("a call")
    }

    fn function(name: &str, arguments: &serde_json::Value) -> Asked {
        let item = serde_json::json!({ "name": name, "arguments": arguments.to_string(), "call_id": "c1" });
        call("function_call", &item)
    }

    #[test]
    fn the_script_of_a_shell_is_the_command() {
        let shown = |words: serde_json::Value| command(&words.to_string());
        assert_eq!(shown(serde_json::json!(["bash", "-lc", "ls -l"])).as_deref(), Some("ls -l"));
        assert_eq!(shown(serde_json::json!(["/bin/zsh", "-c", "ls"])).as_deref(), Some("ls"));
        assert_eq!(
            shown(serde_json::json!(["powershell.exe", "-NoProfile", "-Command", "dir"]))
                .as_deref(),
            Some("dir")
        );
        assert_eq!(shown(serde_json::json!(["git", "log", "-c"])).as_deref(), Some("git log -c"));
        assert_eq!(shown(serde_json::json!(["bash", "x.sh"])).as_deref(), Some("bash x.sh"));
        assert_eq!(shown(serde_json::json!("ls")).as_deref(), Some("ls"));
        assert_eq!(shown(serde_json::json!([])), None);
    }

    #[test]
    fn every_tool_that_runs_commands_can_commit() {
        let command = "git add . && git commit -m x";
        for (name, arguments) in [
            ("shell", serde_json::json!({ "command": ["bash", "-lc", command] })),
            ("container.exec", serde_json::json!({ "command": ["git", "commit", "-m", "x"] })),
            ("shell_command", serde_json::json!({ "command": command })),
            ("exec_command", serde_json::json!({ "cmd": command })),
            ("write_stdin", serde_json::json!({ "session_id": 1, "chars": command })),
        ] {
            assert!(function(name, &arguments).call.commits, "{name}");
        }
        let script = format!("await tools.exec_command({{cmd: \"{command}\"}})");
        let item = serde_json::json!({ "name": "exec", "input": script, "call_id": "c1" });
        assert!(call("custom_tool_call", &item).call.commits);
        let action = serde_json::json!({ "type": "exec", "command": ["git", "commit"] });
        let item = serde_json::json!({ "action": action, "call_id": "c1" });
        let local = call("local_shell_call", &item);
        assert_eq!((local.call.name.as_str(), local.call.commits), ("local_shell_call", true));
        assert!(!function("shell", &serde_json::json!({ "command": ["git", "log"] })).call.commits);
    }

    #[test]
    fn a_patch_names_its_files_in_all_three_shapes() {
        let patch = "*** Begin Patch\n*** Update File: a.rs\n@@\n-a\n+b\n*** End Patch";
        let files = vec![FileTouch { path: "a.rs".to_owned(), how: FileChange::Edited }];
        let item = serde_json::json!({ "name": "apply_patch", "input": patch, "call_id": "c1" });
        assert_eq!(call("custom_tool_call", &item).call.files, files);
        assert_eq!(
            function("apply_patch", &serde_json::json!({ "patch": patch })).call.files,
            files
        );
        assert_eq!(
            function("apply_patch", &serde_json::json!({ "input": patch })).call.files,
            files
        );
        let heredoc = format!("apply_patch <<'EOF'\n{patch}\nEOF");
        let shell = function("shell", &serde_json::json!({ "command": ["bash", "-lc", heredoc] }));
        assert_eq!((shell.call.files, shell.argument.as_str()), (files.clone(), "a.rs"));
        let words = function("shell", &serde_json::json!({ "command": ["apply_patch", patch] }));
        assert_eq!(words.call.files, files);
    }

    #[test]
    fn paths_below_a_relative_directory_keep_it() {
        let patch = "*** Begin Patch\n*** Add File: a.rs\n*** Add File: /b.rs\n*** End Patch";
        let arguments = serde_json::json!({ "command": ["apply_patch", patch], "workdir": "sub/" });
        let asked = function("shell", &arguments);
        assert_eq!((asked.argument.as_str(), asked.absolute_workdir()), ("sub/a.rs, /b.rs", None));
        let arguments =
            serde_json::json!({ "command": ["apply_patch", patch], "workdir": "C:\\w" });
        let asked = function("shell", &arguments);
        assert_eq!(asked.argument, "a.rs, /b.rs");
        assert_eq!(asked.absolute_workdir().as_deref(), Some("C:\\w"));
    }

    #[test]
    fn a_name_has_its_namespace_and_no_control_characters() {
        let item = serde_json::json!({ "name": "get", "namespace": "mcp__x", "arguments": "{}" });
        assert_eq!(call("function_call", &item).call.name, "mcp__x.get");
        let item =
            serde_json::json!({ "name": format!("a\n{}", "b".repeat(200)), "arguments": "{}" });
        assert_eq!(call("function_call", &item).call.name.chars().count(), 100);
        assert!(!call("function_call", &item).call.name.contains('\n'));
        let item = serde_json::json!({ "name": null, "arguments": "{}" });
        assert_eq!(call("function_call", &item).call.name, "function_call");
    }

    #[test]
    fn arguments_that_are_no_json_do_not_cost_the_call() {
        let item =
            serde_json::json!({ "name": "shell", "arguments": "git commit -m", "call_id": "c1" });
        let asked = call("function_call", &item);
        assert!(asked.call.commits);
        assert_eq!(asked.argument, "");
        let object = serde_json::json!({ "name": "shell", "arguments": { "command": "ls" } });
        assert_eq!(call("function_call", &object).argument, "ls");
    }

    #[test]
    fn plans_questions_and_opened_pages_are_facts() {
        let plan =
            serde_json::json!({ "plan": [{ "status": "completed" }, { "status": "pending" }, 7] });
        assert_eq!(function("update_plan", &plan).facts, [Fact::Todo { open: 2, done: 1 }]);
        let questions = serde_json::json!({ "questions": [{}, {}] });
        assert_eq!(function("request_user_input", &questions).facts, [Fact::Question { count: 2 }]);
        let action = serde_json::json!({ "type": "open_page", "url": "https://u:p@example.com/a" });
        let web = call("web_search_call", &serde_json::json!({ "action": action }));
        assert_eq!(web.facts, [Fact::Url("https://example.com/a".to_owned())]);
        let action =
            serde_json::json!({ "type": "search", "query": "rust", "url": "https://example.com" });
        let web = call("web_search_call", &serde_json::json!({ "action": action }));
        assert_eq!((web.facts.len(), web.argument.as_str()), (0, "rust"));
    }
}
