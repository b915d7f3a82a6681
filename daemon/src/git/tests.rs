//! Against the real `git` of the machine, in scratch directories.

mod history;
mod hostile;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process;

use jiff::Timestamp;
use majordomus_core::envelope::git::{CommitsBetween, Heads, Known, Provenance, Uncommitted};
use rustix::process::Pid;
use tempfile::TempDir;

use super::*;

/// A scratch directory with a repository `p`. All commits are dated, so that history by date can be asked.
struct Scratch {
    directory: TempDir,
}

impl Scratch {
    /// `None`, with a word on it, where there is no `git`.
    fn new() -> Option<Self> {
        if std::env::var_os("PATH").as_deref().and_then(run::find).is_none() {
            eprintln!("skipped: no git on the PATH");
            return None;
        }
        let scratch = Self { directory: tempfile::tempdir().expect("scratch directory") };
        fs::create_dir(scratch.path("p")).expect("directory");
        scratch.git("p", &["init", "-q", "-b", "main"]);
        Some(scratch)
    }

    /// With one commit, of one file.
    fn with_commit() -> Option<Self> {
        let scratch = Self::new()?;
        scratch.commit("p", "one", 1_000);
        Some(scratch)
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.directory.path()).expect("scratch directory").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("writes");
    }

    /// A script that leaves a canary when it is run.
    fn trap(&self, name: &str) -> String {
        fs::create_dir_all(self.path("canaries")).expect("directory");
        let path = self.path(name);
        let canary = self.path("canaries").join(name);
        fs::write(&path, format!("#!/bin/sh\necho run >> {}\ncat\n", canary.display()))
            .expect("writes");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
        path.to_str().expect("UTF-8").to_owned()
    }

    fn canaries(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path("canaries"))
            .expect("directory")
            .map(|entry| entry.expect("entry").file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort();
        names
    }

    fn run(&self, at: &str, arguments: &[&str], seconds: i64) -> process::Output {
        process::Command::new("git")
            .args([
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@example.com",
                "-c",
                "protocol.file.allow=always",
            ])
            .args(arguments)
            .current_dir(self.path(at))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_DATE", format!("@{seconds} +0000"))
            .env("GIT_COMMITTER_DATE", format!("@{seconds} +0000"))
            .output()
            .expect("git runs")
    }

    fn git(&self, at: &str, arguments: &[&str]) -> String {
        let output = self.run(at, arguments, 1_000);
        assert!(
            output.status.success(),
            "git {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("UTF-8").trim_end().to_owned()
    }

    /// Commits a new file named like the message; gives the hash.
    fn commit(&self, at: &str, message: &str, seconds: i64) -> String {
        self.write(&format!("{at}/{message}"), message);
        self.git(at, &["add", message]);
        assert!(self.run(at, &["commit", "-q", "-m", message], seconds).status.success());
        self.git(at, &["rev-parse", "HEAD"])
    }

    async fn observe(&self, at: &str) -> GitFacts {
        git().observe(&self.path(at)).await
    }
}

fn settings() -> GitSettings {
    GitSettings {
        enabled: true,
        timeout: Duration::from_secs(20),
        path: std::env::var_os("PATH"),
        home: None,
        excludes: None,
        protected: Vec::new(),
    }
}

fn git() -> Git {
    Git::new(settings())
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("in range")
}

fn observed(value: impl Into<String>) -> Known<String> {
    Known::observed(value.into())
}

fn counts(staged: u64, changed: u64, untracked: u64) -> Known<WorkingTree> {
    Known::observed(WorkingTree::from(Uncommitted { staged, changed, untracked }))
}

#[tokio::test]
async fn a_clean_repository_is_observed_in_all_seven_facts() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    scratch.git("p", &["remote", "add", "origin", "https://user:secret@example.com/a/b.git"]);
    fs::create_dir(scratch.path("p/sub")).expect("directory");
    let facts = scratch.observe("p/sub").await;
    assert_eq!(facts.repository_root, observed(scratch.path("p").to_str().expect("UTF-8")));
    assert_eq!(facts.common_dir, observed(scratch.path("p/.git").to_str().expect("UTF-8")));
    assert_eq!(facts.remote, observed("https://example.com/a/b.git"));
    assert_eq!(facts.branch, observed("main"));
    assert_eq!(facts.head, observed(scratch.git("p", &["rev-parse", "HEAD"])));
    assert_eq!(facts.working_tree, Known::observed(WorkingTree::Clean));
    assert_eq!(facts.ahead_behind, Known::absent("no upstream branch"));
}

#[tokio::test]
async fn uncommitted_files_are_counted_by_what_they_are() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    for name in ["two", "three", "moved"] {
        scratch.commit("p", name, 1_000);
    }
    scratch.git("p", &["mv", "moved", "new name"]);
    scratch.write("p/two", "staged");
    scratch.git("p", &["add", "two"]);
    scratch.write("p/two", "and changed");
    scratch.write("p/three", "changed");
    scratch.write("p/a\nb ? odd", "untracked");
    fs::create_dir(scratch.path("p/dir")).expect("directory");
    scratch.write("p/dir/x", "");
    scratch.write("p/dir/y", "");
    assert_eq!(scratch.observe("p").await.working_tree, counts(2, 2, 2));
}

#[tokio::test]
async fn a_fresh_repository_has_a_branch_and_no_head() {
    let Some(scratch) = Scratch::new() else {
        return;
    };
    scratch.write("p/x", "");
    let facts = scratch.observe("p").await;
    assert_eq!(facts.branch, observed("main"));
    assert_eq!(facts.head, Known::absent("no commits yet"));
    assert_eq!(facts.working_tree, counts(0, 0, 1));
    assert_eq!(
        git().head_at(&scratch.path("p"), None, at(5_000)).await,
        Known::absent("no commits yet")
    );
}

#[tokio::test]
async fn a_detached_head_has_no_branch() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    scratch.git("p", &["checkout", "-q", "--detach"]);
    let facts = scratch.observe("p").await;
    assert_eq!(facts.branch, Known::absent("detached head"));
    assert_eq!(facts.ahead_behind, Known::absent("detached head"));
    assert!(facts.head.value().is_some());
}

#[tokio::test]
async fn a_rebase_under_way_is_told() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    scratch.git("p", &["checkout", "-q", "-b", "side"]);
    scratch.commit("p", "x", 2_000);
    scratch.git("p", &["checkout", "-q", "main"]);
    scratch.write("p/x", "other");
    scratch.git("p", &["add", "x"]);
    scratch.git("p", &["commit", "-q", "-m", "x"]);
    assert!(
        !scratch.run("p", &["rebase", "side"], 3_000).status.success(),
        "it must stop in a conflict"
    );
    let facts = scratch.observe("p").await;
    assert_eq!(facts.branch, Known::absent("detached head: a rebase is in progress"));
    assert_eq!(facts.working_tree, counts(0, 1, 0));
}

#[tokio::test]
async fn a_worktree_is_its_own_root_and_folds_into_its_repository() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    scratch.git("p", &["worktree", "add", "-q", "-b", "side", "../w"]);
    let facts = scratch.observe("w").await;
    assert_eq!(facts.repository_root, observed(scratch.path("w").to_str().expect("UTF-8")));
    assert_eq!(facts.common_dir, observed(scratch.path("p/.git").to_str().expect("UTF-8")));
    assert_eq!(facts.branch, observed("side"));
    assert_eq!(git().project_of(&scratch.path("w")).await, Some(scratch.path("p")));
    scratch.git("p", &["worktree", "remove", "../w"]);
    assert_eq!(scratch.observe("w").await, GitFacts::absent("no such directory"));
    assert_eq!(git().project_of(&scratch.path("w")).await, None);
}

#[tokio::test]
async fn a_submodule_is_a_project_of_its_own() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    fs::create_dir(scratch.path("q")).expect("directory");
    scratch.git("q", &["init", "-q"]);
    scratch.git("q", &["submodule", "--quiet", "add", "../p", "sub"]);
    let facts = scratch.observe("q/sub").await;
    assert_eq!(facts.repository_root, observed(scratch.path("q/sub").to_str().expect("UTF-8")));
    assert_eq!(facts.working_tree, Known::observed(WorkingTree::Clean));
    assert_eq!(git().project_of(&scratch.path("q/sub")).await, Some(scratch.path("q/sub")));
}

#[tokio::test]
async fn a_bare_repository_and_its_worktrees_are_told_apart() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    scratch.git("", &["clone", "-q", "--bare", "p", "b.git"]);
    assert_eq!(scratch.observe("b.git").await, GitFacts::absent("bare repository"));
    scratch.git("b.git", &["worktree", "add", "-q", "../w", "main"]);
    assert_eq!(scratch.observe("w").await.working_tree, Known::observed(WorkingTree::Clean));
    assert_eq!(git().project_of(&scratch.path("w")).await, Some(scratch.path("b.git")));
    // The layout where a directory holds the bare repository and a file that points to it.
    fs::create_dir(scratch.path("d")).expect("directory");
    scratch.git("", &["clone", "-q", "--bare", "p", "d/.bare"]);
    scratch.write("d/.git", "gitdir: ./.bare\n");
    scratch.git("d", &["worktree", "add", "-q", "main", "main"]);
    assert_eq!(scratch.observe("d").await, GitFacts::absent("bare repository"));
    assert_eq!(git().project_of(&scratch.path("d/main")).await, Some(scratch.path("d")));
}

#[tokio::test]
async fn ahead_and_behind_count_against_the_upstream() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    scratch.git("", &["clone", "-q", "p", "c"]);
    scratch.commit("p", "theirs", 2_000);
    scratch.commit("c", "ours", 2_000);
    scratch.commit("c", "ours too", 2_000);
    scratch.git("c", &["fetch", "-q"]);
    let counts = Known::observed(AheadBehind { ahead: 2, behind: 1 });
    assert_eq!(scratch.observe("c").await.ahead_behind, counts);
    let tracking = git().tracking(&scratch.path("c")).await;
    assert_eq!(Known::from(tracking.ahead_behind), counts);
    scratch.git("c", &["update-ref", "-d", "refs/remotes/origin/main"]);
    let gone = Known::absent("the upstream branch does not exist");
    assert_eq!(scratch.observe("c").await.ahead_behind, gone);
}

#[tokio::test]
async fn what_is_no_repository_says_why() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    let plain = scratch.path("plain");
    fs::create_dir(&plain).expect("directory");
    assert_eq!(scratch.observe("plain").await, GitFacts::absent("not a git repository"));
    assert_eq!(scratch.observe("p/one").await, GitFacts::absent("no such directory"));
    let relative = git().observe(Path::new("--help")).await;
    assert_eq!(relative, GitFacts::absent("the working directory is not an absolute path"));
    let inside = scratch.observe("p/.git").await;
    assert_eq!(inside.working_tree, Known::absent("inside a Git directory, not in a work tree"));
    assert_eq!(inside.branch, observed("main"));
}

#[tokio::test]
async fn where_git_may_not_be_asked_it_says_so() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    let place = scratch.path("p");
    let reason = |settings: GitSettings| async {
        match Git::new(settings).observe(&place).await.head {
            Known::Absent { absent } => absent,
            Known::Fact { .. } => String::new(),
        }
    };
    let off = GitSettings { enabled: false, ..settings() };
    assert_eq!(reason(off).await, "Git facts are turned off in the configuration");
    let missing = GitSettings { path: Some(place.clone().into()), ..settings() };
    assert_eq!(reason(missing).await, "git is not installed");
    let relative = GitSettings { path: Some("bin:.".into()), ..settings() };
    assert_eq!(reason(relative).await, "git is not installed");
    let protected = GitSettings { protected: vec![scratch.path("")], ..settings() };
    assert!(reason(protected).await.starts_with("the directory is protected"));
}

#[tokio::test]
async fn a_work_tree_that_holds_the_home_directory_is_not_walked() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    let home = GitSettings { home: Some(scratch.path("p/home/me")), ..settings() };
    let facts = Git::new(home).observe(&scratch.path("p")).await;
    assert_eq!(
        facts.working_tree,
        Known::absent("the work tree is the home directory or holds it")
    );
    assert_eq!(facts.branch, observed("main"));
}

#[tokio::test]
async fn what_the_user_ignores_everywhere_is_not_untracked() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    scratch.write("p/.DS_Store", "");
    scratch.write("ignore", ".DS_Store\n");
    let settings = GitSettings { excludes: Some(scratch.path("ignore")), ..settings() };
    let facts = Git::new(settings).observe(&scratch.path("p")).await;
    assert_eq!(facts.working_tree, Known::observed(WorkingTree::Clean));
    assert_eq!(scratch.observe("p").await.working_tree, counts(0, 0, 1));
}
