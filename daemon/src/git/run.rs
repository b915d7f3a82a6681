//! One call of `git`, closed off from the user, from the repository's programs and from the network.
//!
//! What a repository's configuration can make Git start, and what stops it here:
//! - `core.fsmonitor`, hooks, pagers, `gpg.program`, `core.sshCommand`, credential helpers and the like: set to
//!   something harmless through the environment, which wins over the repository's files and their includes;
//! - `filter.*` (clean, smudge, process): emptied one by one by [`Call::without_filters`]. They go through the
//!   environment because `-c` splits a name that holds `=` in the wrong place;
//! - aliases: never apply to built-in commands, and only such are called;
//! - fetches of a partial clone, `ext::` transports: no lazy fetch, and no protocol is allowed;
//! - external diffs and `textconv`: no command is called that shows a difference.
//!
//! Git writes nothing either: optional locks (the refresh of the index) are off, and no command is called that
//! needs one.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::why::Why;

/// Bytes of output that are taken from one call.
pub(super) const MAX_OUTPUT: u64 = 4 << 20;

/// Bytes of error messages that are kept of one call.
const MAX_MESSAGES: u64 = 16 << 10;

/// How long a killed process may take to go.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// The whole environment, besides `PATH`.
const ENVIRONMENT: [(&str, &str); 17] = [
    ("HOME", "/nonexistent"),
    ("XDG_CONFIG_HOME", "/nonexistent"),
    ("LC_ALL", "C"),
    ("TERM", "dumb"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_GRAFT_FILE", "/dev/null"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_PROTOCOL_FROM_USER", "0"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_ASKPASS", "false"),
];

/// Configuration that wins over the repository's.
const CONFIGURATION: [(&str, &str); 18] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.sshCommand", "false"),
    ("core.askPass", "false"),
    ("core.editor", "false"),
    ("core.alternateRefsCommand", "false"),
    ("core.gitProxy", "false"),
    ("credential.helper", ""),
    ("gpg.program", "false"),
    ("log.showSignature", "false"),
    ("submodule.recurse", "false"),
    ("status.submoduleSummary", "false"),
    ("protocol.allow", "never"),
    ("maintenance.auto", "false"),
    ("gc.auto", "0"),
    // A repository that hides in a directory of another one's work tree is not taken for one.
    ("safe.bareRepository", "explicit"),
    ("color.ui", "false"),
];

/// One call: where, what, and what it reads.
pub(super) struct Call<'a> {
    directory: &'a Path,
    command: &'static str,
    arguments: Vec<OsString>,
    input: Option<Vec<u8>>,
    configuration: Vec<(OsString, OsString)>,
}

impl<'a> Call<'a> {
    /// A built-in command in a directory.
    pub(super) fn new(directory: &'a Path, command: &'static str) -> Self {
        let configuration = CONFIGURATION.map(|(key, value)| (key.into(), value.into())).to_vec();
        Self { directory, command, arguments: Vec::new(), input: None, configuration }
    }

    /// With arguments.
    pub(super) fn arguments(
        mut self,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// With something to read; else its input is empty.
    pub(super) fn input(mut self, input: Vec<u8>) -> Self {
        self.input = Some(input);
        self
    }

    /// With the content filters of these names emptied.
    pub(super) fn without_filters(mut self, names: &BTreeSet<Vec<u8>>) -> Self {
        let drivers = [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")];
        for name in names {
            for (variable, value) in drivers {
                let key = [b"filter.", name.as_slice(), b".", variable.as_bytes()].concat();
                self.configuration.push((OsString::from_vec(key), value.into()));
            }
        }
        self
    }

    /// With one more setting that wins over the repository's.
    pub(super) fn configured(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.configuration.push((key.into(), value.as_ref().to_owned()));
        self
    }

    /// Where it runs.
    pub(super) fn directory(&self) -> &'a Path {
        self.directory
    }
}

/// What a call said.
pub(super) struct Output {
    /// Exit status; `None` after a signal.
    pub(super) code: Option<i32>,
    /// At most [`MAX_OUTPUT`] bytes.
    pub(super) stdout: Vec<u8>,
    /// The beginning of its messages.
    pub(super) stderr: Vec<u8>,
}

impl Output {
    /// Whether the messages contain a text.
    pub(super) fn complains_of(&self, text: &str) -> bool {
        String::from_utf8_lossy(&self.stderr).contains(text)
    }
}

/// The absolute path of `git` on a `PATH`. Relative entries do not count: they would mean another program in every
/// directory.
pub(super) fn find(path: &OsStr) -> Option<PathBuf> {
    let is_program = |candidate: &PathBuf| {
        std::fs::metadata(candidate)
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join("git"))
        .find(is_program)
}

/// Runs `git` to its end, or kills it and all that it started when it takes longer than `limit`.
pub(super) async fn run(
    program: &Path,
    path: Option<&OsStr>,
    limit: Duration,
    call: Call<'_>,
) -> Result<Output, Why> {
    let name = call.command;
    let (mut command, input) = prepare(program, path, call);
    let child = command.spawn().map_err(not_run)?;
    let mut running = Running(child);
    let ended =
        timeout(limit, running.finish(name, input)).await.unwrap_or(Err(Why::TimedOut(limit)));
    if ended.is_err() {
        running.end().await;
    }
    ended
}

fn prepare(program: &Path, path: Option<&OsStr>, call: Call<'_>) -> (Command, Option<Vec<u8>>) {
    let mut command = Command::new(program);
    command.args(["--no-pager", call.command]).args(call.arguments).current_dir(call.directory);
    command.env_clear().envs(ENVIRONMENT);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    command.env("GIT_CONFIG_COUNT", call.configuration.len().to_string());
    for (at, (key, value)) in call.configuration.into_iter().enumerate() {
        command
            .env(format!("GIT_CONFIG_KEY_{at}"), key)
            .env(format!("GIT_CONFIG_VALUE_{at}"), value);
    }
    let stdin = if call.input.is_some() { Stdio::piped() } else { Stdio::null() };
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    (command, call.input)
}

/// A process at the head of its own group. The whole group is killed when nobody waits for it any more.
struct Running(Child);

impl Running {
    async fn finish(&mut self, name: &'static str, input: Option<Vec<u8>>) -> Result<Output, Why> {
        let (stdin, stdout, stderr) =
            (self.0.stdin.take(), self.0.stdout.take(), self.0.stderr.take());
        let feed = async {
            if let (Some(mut stdin), Some(input)) = (stdin, input)
                && let Err(error) = stdin.write_all(&input).await
            {
                // Git ended before it read all: its exit status tells.
                tracing::debug!(%error, "git did not read its input");
            }
            Ok(())
        };
        let answer = async {
            let answer = read(stdout, MAX_OUTPUT + 1).await?;
            if answer.len() as u64 > MAX_OUTPUT { Err(Why::TooMuch(name)) } else { Ok(answer) }
        };
        let messages = async {
            let Some(mut stderr) = stderr else {
                return Ok(Vec::new());
            };
            let messages = read(Some(&mut stderr), MAX_MESSAGES).await?;
            // The rest is read too: a full pipe would stop Git.
            tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await.map_err(not_run)?;
            Ok(messages)
        };
        let ((), stdout, stderr) = tokio::try_join!(feed, answer, messages)?;
        let status = self.0.wait().await.map_err(not_run)?;
        Ok(Output { code: status.code(), stdout, stderr })
    }

    /// Kills the group and reaps the process.
    async fn end(&mut self) {
        self.kill();
        if timeout(LAST_WAIT, self.0.wait()).await.is_err() {
            tracing::warn!(pid = self.0.id(), "git was killed and does not go");
        }
    }

    fn kill(&self) {
        // There is an id only as long as the process is not reaped, so it is never somebody else's.
        let group = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(group) = group
            && let Err(error) = kill_process_group(group, Signal::KILL)
        {
            tracing::debug!(%error, "git's process group could not be killed");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn read(from: Option<impl AsyncRead + Unpin>, limit: u64) -> Result<Vec<u8>, Why> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(limit).read_to_end(&mut bytes).await.map_err(not_run)?;
    }
    Ok(bytes)
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn not_run(error: io::Error) -> Why {
    Why::NotRun(error.kind())
}
