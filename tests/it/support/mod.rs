//! A scratch home with both tools' roots, the two programs, and builders for session files.

mod claude;
mod codex;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

pub use claude::Claude;
pub use codex::Codex;

/// Longer than anything here takes on a busy machine of two cores.
const PATIENCE: Duration = Duration::from_secs(30);

/// A home that nothing else uses.
pub struct Home {
    dir: TempDir,
    idle_after: String,
    extra_config: String,
}

/// What a program said and how it ended.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Said {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("no JSON ({error}): {}\n{}", self.stdout, self.stderr))
    }

    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }
}

impl Home {
    /// Sessions are idle after an hour, so that what a test writes stays open.
    pub fn new() -> Self {
        Self::with_idle_after("1h")
    }

    pub fn with_idle_after(idle_after: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        for below in ["home/.claude/projects", "home/.codex/sessions", "run"] {
            std::fs::create_dir_all(dir.path().join(below)).expect("made");
        }
        Self { dir, idle_after: idle_after.to_owned(), extra_config: String::new() }
    }

    #[must_use]
    pub fn config(mut self, text: &str) -> Self {
        self.extra_config.push_str(text);
        self
    }

    /// Takes text out of the configuration again.
    #[must_use]
    pub fn without_config(mut self, text: &str) -> Self {
        self.extra_config = self.extra_config.replace(text, "");
        self
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    pub fn state(&self) -> PathBuf {
        self.path("state")
    }

    pub fn vault(&self) -> PathBuf {
        self.path("home/.local/share/majordomus/vault")
    }

    pub fn socket(&self) -> PathBuf {
        self.path("run/majordomus/majordomusd.sock")
    }

    /// A transcript of Claude Code.
    pub fn claude(&self, session: &str) -> Claude {
        Claude::new(self.path(&format!("home/.claude/projects/-w-app/{session}.jsonl")), session)
    }

    /// A rollout of Codex.
    pub fn codex(&self, session: &str) -> Codex {
        let name = format!("rollout-2026-03-01T10-00-00-{session}.jsonl");
        Codex::new(self.path(&format!("home/.codex/sessions/2026/03/01/{name}")), session)
    }

    fn command(&self, program: &str) -> Command {
        let config = self.path("config.toml");
        let text = format!(
            "[sessions]\nidle_after = \"{}\"\nend_grace = \"1h\"\n{}",
            self.idle_after, self.extra_config
        );
        std::fs::write(&config, text).expect("written");
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("MAJORDOMUS_STATE_DIR", self.state())
            .env("MAJORDOMUS_CONFIG", config)
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        command
    }

    /// `majordomusd` with arguments, not started yet.
    pub fn daemon_command(&self) -> Command {
        self.command(env!("CARGO_BIN_EXE_majordomusd"))
    }

    /// `majordomusctl`, not started yet.
    pub fn ctl_command(&self) -> Command {
        self.command(env!("CARGO_BIN_EXE_majordomusctl"))
    }

    /// Runs `majordomusd --once` to its end.
    pub fn once(&self) -> Said {
        said(self.daemon_command().arg("--once"))
    }

    /// Runs `majordomusctl` with `arguments`.
    pub fn ctl(&self, arguments: &[&str]) -> Said {
        said(self.ctl_command().args(arguments))
    }

    /// Runs `majordomusctl … --json` and reads what it prints.
    #[track_caller]
    pub fn ask(&self, arguments: &[&str]) -> Value {
        let mut all = arguments.to_vec();
        all.push("--json");
        self.ctl(&all).ok().json()
    }

    /// The sessions by their ids.
    #[track_caller]
    pub fn session(&self, id: &str) -> Value {
        let sessions = self.ask(&["sessions"]);
        let list = sessions.as_array().expect("a list");
        list.iter().find(|session| session["id"] == id).cloned().unwrap_or(Value::Null)
    }

    /// Starts the daemon and waits until it has caught up.
    pub fn start(&self) -> Daemon<'_> {
        let daemon = self.start_only();
        self.wait("the daemon runs", || {
            let said = self.ctl(&["status", "--json"]);
            said.code == 0 && said.json()["daemon"] == "running"
        });
        daemon
    }

    /// Starts the daemon.
    pub fn start_only(&self) -> Daemon<'_> {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.path("daemon.log"))
            .expect("a log");
        let child =
            self.daemon_command().stdout(Stdio::null()).stderr(log).spawn().expect("started");
        Daemon { home: self, child: Some(child) }
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("daemon.log")).unwrap_or_default()
    }

    /// Waits until `condition` holds.
    #[track_caller]
    pub fn wait(&self, what: &str, condition: impl Fn() -> bool) {
        let began = Instant::now();
        while !condition() {
            assert!(began.elapsed() < PATIENCE, "waited in vain until {what}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The note files in the vault, by their paths below it.
    pub fn notes(&self) -> Vec<(String, String)> {
        files_below(&self.vault())
            .into_iter()
            .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
            .map(|path| {
                let name = path.strip_prefix(self.vault()).expect("below").display().to_string();
                (name, std::fs::read_to_string(&path).expect("read"))
            })
            .collect()
    }

    /// The envelope files, by their paths below the state directory, with their bytes.
    pub fn envelopes(&self) -> Vec<(String, Vec<u8>)> {
        files_below(&self.state().join("sessions"))
            .into_iter()
            .map(|path| {
                let name = path.strip_prefix(self.state()).expect("below").display().to_string();
                (name, std::fs::read(&path).expect("read"))
            })
            .collect()
    }

    /// A Git repository with one commit; gives its directory.
    pub fn repository(&self, below: &str) -> PathBuf {
        let path = self.path(below);
        std::fs::create_dir_all(&path).expect("made");
        git(&path, &["init", "-q", "-b", "main"]);
        git(&path, &["config", "user.name", "dev"]);
        git(&path, &["config", "user.email", "dev@example.com"]);
        std::fs::write(path.join("README.md"), "one\n").expect("written");
        git(&path, &["add", "."]);
        git(&path, &["commit", "-q", "-m", "First"]);
        path
    }
}

/// Runs Git; gives what it prints.
#[track_caller]
pub fn git(directory: &Path, arguments: &[&str]) -> String {
    let output =
        Command::new("git").current_dir(directory).args(arguments).output().expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Runs a command to its end.
pub fn said(command: &mut Command) -> Said {
    let output = command.output().expect("started");
    Said {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// All files below a directory, sorted.
pub fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries {
            let path = entry.expect("an entry").path();
            if path.is_dir() { open.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

/// A running daemon; killed when it goes out of scope.
pub struct Daemon<'a> {
    home: &'a Home,
    child: Option<Child>,
}

impl Daemon<'_> {
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("running").id()
    }

    /// Sends SIGTERM and waits; gives the exit code.
    pub fn terminate(mut self) -> i32 {
        let child = self.child.as_mut().expect("running");
        signal(child.id(), "TERM");
        let code = child.wait().expect("waited").code();
        self.child = None;
        code.expect("a code")
    }

    /// Sends SIGKILL and waits.
    pub fn kill(mut self) {
        let child = self.child.as_mut().expect("running");
        child.kill().expect("killed");
        child.wait().expect("waited");
        self.child = None;
    }

    /// Waits until the daemon ended by itself; gives the exit code.
    pub fn ended(mut self) -> i32 {
        let mut child = self.child.take().expect("running");
        let began = Instant::now();
        loop {
            if let Some(status) = child.try_wait().expect("waited") {
                return status.code().unwrap_or(-1);
            }
            if began.elapsed() > PATIENCE {
                child.kill().expect("killed");
                panic!("the daemon does not end\n{}", self.home.log());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The test is over, one way or the other.
            if child.kill().is_ok() {
                child.wait().expect("waited");
            }
        }
    }
}

/// Sends a signal by its name.
pub fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(status.expect("kill runs").success());
}

/// A time `seconds` before now, as the tools write it.
pub fn ago(seconds: i64) -> String {
    use std::time::{SystemTime, UNIX_EPOCH};
    #[expect(
        clippy::disallowed_methods,
        reason = "the tests stand for the tools, which ask the clock"
    )]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    let at = i64::try_from(now).expect("fits") - seconds * 1000;
    jiff::Timestamp::from_millisecond(at)
        .expect("a time")
        .strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
        .to_string()
}

/// The shared corpus of real session files, where there is one. Says so where there is none.
pub fn corpus(test: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("{test}: skipped: no corpus at {}", path.display());
    None
}

/// Copies a directory.
pub fn copy_tree(from: &Path, to: &Path) {
    for file in files_below(from) {
        let target = to.join(file.strip_prefix(from).expect("below"));
        std::fs::create_dir_all(target.parent().expect("a parent")).expect("made");
        let bytes = std::fs::read(&file).expect("read");
        std::fs::write(&target, bytes).expect("written");
    }
}
