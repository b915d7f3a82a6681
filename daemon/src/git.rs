//! Reads Git's facts about a working directory, strictly read-only (case 129) and safe against the repository.
//!
//! The directory is text out of a stranger's transcript and the repository in it may be hostile: its
//! configuration and attributes can name programs. The `git` program is therefore called in a way in which it
//! starts none of them and writes nothing (see [`run`]); what cannot be read so is absent, with its reason.

mod history;
mod run;
mod why;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use majordomus_core::envelope::git::output::{self, Config, Layout, Status};
use majordomus_core::envelope::git::{AheadBehind, GitFacts, WorkingTree, is_full_hash};
use tokio::io::AsyncReadExt;
use tokio::sync::OnceCell;

use self::run::{Call, Output};
use self::why::{MAX_FILTERS, Why};

/// The oldest `git` whose environment can be closed off: `GIT_CONFIG_GLOBAL` came with it.
const MIN_VERSION: (u32, u32) = (2, 32);

/// What may be read, and how.
#[derive(Clone, Debug)]
pub struct GitSettings {
    /// Whether `git` is called at all (`[git] enabled`).
    pub enabled: bool,
    /// For one call of `git` (`[git] timeout`). A whole observation makes three or four.
    pub timeout: Duration,
    /// Where `git` is looked for: the daemon's own `PATH`.
    pub path: Option<OsString>,
    /// The user's home, links resolved: a work tree that holds it (dotfiles) is never scanned (case 101).
    pub home: Option<PathBuf>,
    /// The user's own ignore file (`core.excludesFile`, or `git/ignore` in the XDG configuration directory), the one
    /// thing of the user's Git configuration that a count depends on: what it names is not untracked.
    pub excludes: Option<PathBuf>,
    /// Directories below which nothing is touched, such as those that macOS asks the user about (case 101).
    pub protected: Vec<PathBuf>,
}

/// The reader of Git facts.
#[derive(Debug)]
pub struct Git {
    settings: GitSettings,
    program: OnceCell<PathBuf>,
}

impl Git {
    /// A reader. Nothing is looked for before the first question.
    pub fn new(settings: GitSettings) -> Self {
        Self { settings, program: OnceCell::new() }
    }

    /// Git as it is now in `cwd`.
    pub async fn observe(&self, cwd: &Path) -> GitFacts {
        match self.layout(cwd).await {
            Ok(Layout { is_bare: true, .. }) => GitFacts::absent(&Why::Bare.to_string()),
            Ok(layout) => self.facts(cwd, &layout).await,
            Err(why) => GitFacts::absent(&why.to_string()),
        }
    }

    /// The directory that stands for the repository, the same from all its worktrees (case 130): that of the main
    /// worktree, or the repository itself where it has none.
    pub async fn project_of(&self, cwd: &Path) -> Option<PathBuf> {
        let layout = self.layout(cwd).await.ok()?;
        let parent = layout.common_dir.parent()?;
        let holds_it = self.bounded(leads_to(parent, &layout.common_dir));
        if layout.common_dir.ends_with(".git") || matches!(holds_it.await, Ok(true)) {
            return Some(parent.to_owned());
        }
        // A submodule or a repository with its Git directory elsewhere.
        let is_main = layout.git_dir == layout.common_dir;
        Some(layout.root.filter(|_| is_main).unwrap_or(layout.common_dir))
    }

    async fn facts(&self, cwd: &Path, layout: &Layout) -> GitFacts {
        let root = self.checked_root(layout).await;
        let listed = self.ask(cwd, "config", &["--null", "--list"]).await;
        let config = listed.map(|listed| Config::parse(&listed));
        let status = match (&root, &config) {
            (Ok(root), Ok(config)) => self.status(root, config).await,
            (Err(why), _) | (_, Err(why)) => Err(why.clone()),
        };
        let (tracking, working_tree) = match status {
            Ok((status, working_tree)) => (Tracking::of(&status), working_tree),
            Err(why) => (self.tracking(cwd).await, Err(why)),
        };
        let mut branch = tracking.branch;
        if branch == Err(Why::Detached) && self.is_rebasing(layout).await {
            branch = Err(Why::Rebasing);
        }
        let remote =
            config.and_then(|config| config.remote(branch.as_deref().ok()).map_err(Why::NoRemote));
        GitFacts {
            repository_root: root.and_then(utf8).into(),
            common_dir: utf8(layout.common_dir.clone()).into(),
            remote: remote.into(),
            branch: branch.into(),
            head: tracking.head.into(),
            working_tree: working_tree.into(),
            ahead_behind: tracking.ahead_behind.into(),
        }
    }

    /// Where the parts of the repository lie that `cwd` is in.
    async fn layout(&self, cwd: &Path) -> Result<Layout, Why> {
        let call = Call::new(cwd, "rev-parse").arguments(output::LAYOUT_ARGUMENTS);
        let said = self.call(call).await?;
        match output::parse_layout(&said.stdout) {
            Some(layout) => Ok(layout),
            None if said.code == Some(0) => Err(Why::NotUtf8),
            None => Err(refusal("rev-parse", &said)),
        }
    }

    /// The root, if it is the work tree whose own `.git` led here. With `core.worktree` a repository can point at
    /// any directory: that one is not walked (case 101).
    async fn checked_root(&self, layout: &Layout) -> Result<PathBuf, Why> {
        let root = layout.root.clone().ok_or(Why::InsideGitDir)?;
        let is_own = self.bounded(leads_to(&root, &layout.git_dir)).await?;
        if is_own { Ok(root) } else { Err(Why::WorkTreeElsewhere) }
    }

    async fn is_rebasing(&self, layout: &Layout) -> bool {
        for name in ["rebase-merge", "rebase-apply"] {
            let found = self.bounded(tokio::fs::symlink_metadata(layout.git_dir.join(name))).await;
            if matches!(found, Ok(Ok(_))) {
                return true;
            }
        }
        false
    }

    /// Status of the whole work tree; the inner result is the working tree, if its counts can be trusted.
    async fn status(
        &self,
        root: &Path,
        config: &Config,
    ) -> Result<(Status, Result<WorkingTree, Why>), Why> {
        if self.settings.home.as_ref().is_some_and(|home| home.starts_with(root)) {
            return Err(Why::HoldsHome);
        }
        if config.hides_untracked {
            return Err(Why::HidesUntracked);
        }
        if config.filters.len() > MAX_FILTERS {
            return Err(Why::TooManyFilters);
        }
        let call = Call::new(root, "status").arguments([
            "--porcelain=v2",
            "-z",
            "--branch",
            "--ahead-behind",
            "--ignore-submodules=all",
            "--untracked-files=normal",
            // Exact renames only: they are told by hash, without reading any content.
            "--find-renames=100%",
        ]);
        let mut call = call.without_filters(&config.filters);
        if let Some(excludes) = &self.settings.excludes {
            call = call.configured("core.excludesFile", excludes);
        }
        let said = self.call(call).await?;
        let is_partial = said.complains_of("could not open directory");
        let status =
            Status::parse(&success("status", said)?).ok_or(Why::NotUnderstood("status"))?;
        if is_partial {
            return Ok((status, Err(Why::Unreadable)));
        }
        let counts = match self.has_filtered(root, &status.changed_paths).await {
            Ok(false) => Ok(WorkingTree::from(status.uncommitted)),
            Ok(true) => Err(Why::Filtered),
            Err(why) => Err(why),
        };
        Ok((status, counts))
    }

    /// Whether one of the paths has a content filter.
    async fn has_filtered(&self, root: &Path, paths: &[Vec<u8>]) -> Result<bool, Why> {
        if paths.is_empty() {
            return Ok(false);
        }
        let call = Call::new(root, "check-attr").arguments(["-z", "--stdin", "filter"]);
        let said = self.call(call.input(paths.join(&0))).await?;
        Ok(output::names_a_filter(&success("check-attr", said)?))
    }

    /// Head and branch without a look at the work tree, for when that takes too long.
    async fn tracking(&self, cwd: &Path) -> Tracking {
        let branch = match self.call(Call::new(cwd, "symbolic-ref").arguments(["-q", "HEAD"])).await
        {
            Ok(Output { code: Some(1), .. }) => Err(Why::Detached),
            Ok(said) => success("symbolic-ref", said).map(|name| {
                let name = String::from_utf8_lossy(&name);
                let name = name.trim_end();
                name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()
            }),
            Err(why) => Err(why),
        };
        let verify = Call::new(cwd, "rev-parse").arguments(["-q", "--verify", "HEAD^{commit}"]);
        let head = match self.call(verify).await {
            Ok(Output { code: Some(1), .. }) => Err(Why::NoCommits),
            Ok(said) => success("rev-parse", said).and_then(|said| one_hash("rev-parse", &said)),
            Err(why) => Err(why),
        };
        let ahead_behind = match (&branch, &head) {
            (Err(why), _) | (_, Err(why)) => Err(why.clone()),
            _ => self.ahead_behind(cwd).await,
        };
        Tracking { branch, head, ahead_behind }
    }

    async fn ahead_behind(&self, cwd: &Path) -> Result<AheadBehind, Why> {
        let range = ["--left-right", "--count", "HEAD...@{upstream}", "--"];
        let said = self.call(Call::new(cwd, "rev-list").arguments(range)).await?;
        if said.code == Some(128) {
            return Err(Why::NoUpstream);
        }
        let said = success("rev-list", said)?;
        output::parse_ahead_behind(&said).ok_or(Why::NotUnderstood("rev-list"))
    }

    async fn ask(
        &self,
        cwd: &Path,
        command: &'static str,
        arguments: &[&str],
    ) -> Result<Vec<u8>, Why> {
        success(command, self.call(Call::new(cwd, command).arguments(arguments)).await?)
    }

    /// Runs `git` once in a directory that was looked at first.
    async fn call(&self, call: Call<'_>) -> Result<Output, Why> {
        if !self.settings.enabled {
            return Err(Why::Disabled);
        }
        self.check_directory(call.directory()).await?;
        let program = self.program.get_or_try_init(|| self.find_program()).await?;
        run::run(program, self.settings.path.as_deref(), self.settings.timeout, call).await
    }

    async fn check_directory(&self, cwd: &Path) -> Result<(), Why> {
        if !cwd.is_absolute() {
            return Err(Why::NotAbsolute);
        }
        if self.settings.protected.iter().any(|directory| cwd.starts_with(directory)) {
            return Err(Why::Protected);
        }
        match self.bounded(tokio::fs::metadata(cwd)).await? {
            Ok(found) if found.is_dir() => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(Why::NoPermission),
            _ => Err(Why::NoDirectory),
        }
    }

    async fn find_program(&self) -> Result<PathBuf, Why> {
        let program = self.settings.path.as_deref().and_then(run::find).ok_or(Why::NotInstalled)?;
        let call = Call::new(Path::new("/"), "version");
        let path = self.settings.path.as_deref();
        let said = run::run(&program, path, self.settings.timeout, call).await?;
        match output::parse_version(&success("version", said)?) {
            Some(version) if version >= MIN_VERSION => Ok(program),
            Some((major, minor)) => Err(Why::TooOld(major, minor)),
            None => Err(Why::NotUnderstood("version")),
        }
    }

    /// A question to the file system, which may hang as well (a network mount that is gone).
    async fn bounded<T>(&self, question: impl Future<Output = T>) -> Result<T, Why> {
        let limit = self.settings.timeout;
        tokio::time::timeout(limit, question).await.map_err(|_| Why::TimedOut(limit))
    }
}

/// What is checked out, and how it stands to its upstream.
struct Tracking {
    branch: Result<String, Why>,
    head: Result<String, Why>,
    ahead_behind: Result<AheadBehind, Why>,
}

impl Tracking {
    fn of(status: &Status) -> Self {
        let ahead_behind = match (&status.branch, &status.head, status.ahead_behind) {
            (_, _, Some(counts)) => Ok(counts),
            (None, ..) => Err(Why::Detached),
            _ if !status.has_upstream => Err(Why::NoUpstream),
            (_, None, _) => Err(Why::NoCommits),
            _ => Err(Why::UpstreamGone),
        };
        Self {
            branch: status.branch.clone().ok_or(Why::Detached),
            head: status.head.clone().ok_or(Why::NoCommits),
            ahead_behind,
        }
    }
}

/// Whether `directory`'s own `.git`, a directory, link or file, leads to `git_dir`.
async fn leads_to(directory: &Path, git_dir: &Path) -> bool {
    const MAX_POINTER: u64 = 8 << 10;
    let target = async {
        let own = tokio::fs::canonicalize(directory.join(".git")).await?;
        let found = tokio::fs::metadata(&own).await?;
        if !found.is_file() {
            return Ok(own);
        }
        let mut pointer = Vec::new();
        tokio::fs::File::open(&own).await?.take(MAX_POINTER).read_to_end(&mut pointer).await?;
        let pointer = pointer.strip_prefix(b"gitdir: ").unwrap_or_default();
        let pointer = pointer.trim_ascii_end();
        let pointer = <OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(pointer);
        tokio::fs::canonicalize(directory.join(pointer)).await
    };
    let target: io::Result<PathBuf> = target.await;
    matches!((target, tokio::fs::canonicalize(git_dir).await), (Ok(own), Ok(other)) if own == other)
}

/// The output of a call that went well.
fn success(command: &'static str, said: Output) -> Result<Vec<u8>, Why> {
    if said.code == Some(0) { Ok(said.stdout) } else { Err(refusal(command, &said)) }
}

/// Why a call failed, as far as Git's message (in English: `LC_ALL=C`) tells it.
fn refusal(command: &'static str, said: &Output) -> Why {
    const MESSAGES: [(&str, Why); 5] = [
        ("detected dubious ownership", Why::OtherOwner),
        ("cannot use bare repository", Why::Bare),
        ("not a git repository", Why::NoRepository),
        ("Permission denied", Why::NoPermission),
        ("must be run in a work tree", Why::InsideGitDir),
    ];
    if let Some((_, why)) = MESSAGES.into_iter().find(|(text, _)| said.complains_of(text)) {
        return why;
    }
    tracing::debug!(command, code = ?said.code, stderr = %said.stderr.escape_ascii(), "git failed");
    said.code.map_or(Why::Killed(command), |code| Why::Failed(command, code))
}

fn one_hash(command: &'static str, said: &[u8]) -> Result<String, Why> {
    let hash = String::from_utf8_lossy(said).trim_end().to_owned();
    if is_full_hash(&hash) { Ok(hash) } else { Err(Why::NotUnderstood(command)) }
}

fn utf8(path: PathBuf) -> Result<String, Why> {
    path.into_os_string().into_string().map_err(|_| Why::NotUtf8)
}

#[cfg(test)]
mod tests;
