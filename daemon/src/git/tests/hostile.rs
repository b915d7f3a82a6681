//! Repositories that want to run something or never end, and directories that are not to be touched.

use super::*;

/// Everything below a directory: path, mode, time of change and content.
fn fingerprint(directory: &Path) -> Vec<(PathBuf, u32, i64, i64, blake3::Hash)> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(next) = waiting.pop() {
        let metadata = fs::symlink_metadata(&next).expect("metadata");
        let mut content = Vec::new();
        if metadata.is_dir() {
            waiting.extend(
                fs::read_dir(&next).expect("directory").map(|entry| entry.expect("entry").path()),
            );
        } else {
            content = fs::read(&next).expect("reads");
        }
        found.push((
            next,
            metadata.mode(),
            metadata.mtime(),
            metadata.mtime_nsec(),
            blake3::hash(&content),
        ));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// A `git` on a `PATH` of its own that answers slowly to one command and hands the others on to the real one. It
/// writes the ids of its two processes.
fn slow_git(scratch: &Scratch, slow: &str) -> GitSettings {
    let path = std::env::var_os("PATH").expect("a PATH");
    let real = run::find(&path).expect("git");
    fs::create_dir(scratch.path("bin")).expect("directory");
    let script = format!(
        "#!/bin/sh\nif [ \"$2\" = {slow} ]; then\n  sleep 600 &\n  echo $$ $! > {}\n  wait\nfi\nexec {} \"$@\"\n",
        scratch.path("pids").display(),
        real.display()
    );
    scratch.write("bin/git", &script);
    fs::set_permissions(scratch.path("bin/git"), fs::Permissions::from_mode(0o755))
        .expect("executable");
    let mut both = scratch.path("bin").into_os_string();
    both.push(":");
    both.push(path);
    GitSettings { path: Some(both), timeout: Duration::from_secs(1), ..settings() }
}

/// The group's head is reaped at once; its child falls to the init process, which reaps it in its own time.
async fn assert_gone(scratch: &Scratch) {
    let pids = fs::read_to_string(scratch.path("pids")).expect("the slow git ran");
    let pids: Vec<i32> = pids.split_whitespace().map(|pid| pid.parse().expect("a pid")).collect();
    let is_there = |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        rustix::process::test_kill_process(Pid::from_raw(pid).expect("a pid")).is_ok()
            && !stat.contains(") Z ")
    };
    let pid = Pid::from_raw(pids[0]).expect("a pid");
    assert!(rustix::process::test_kill_process(pid).is_err(), "the process is reaped");
    tokio::time::timeout(Duration::from_secs(10), async {
        while is_there(pids[1]) {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("its child is killed");
}

#[tokio::test]
async fn a_repository_of_somebody_else_is_not_read() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    let chown = |path: &str| std::os::unix::fs::chown(scratch.path(path), Some(12_345), None);
    if chown("p").and_then(|()| chown("p/.git")).is_err() {
        eprintln!("skipped: only root can give a directory away");
        return;
    }
    assert_eq!(scratch.observe("p").await, GitFacts::absent("repository belongs to another user"));
}

#[tokio::test]
async fn a_hostile_repository_starts_none_of_its_programs() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    let head = scratch.git("p", &["rev-parse", "HEAD"]);
    for (key, name) in [
        ("core.fsmonitor", "fsmonitor"),
        ("core.pager", "pager"),
        ("pager.status", "pager-status"),
        ("core.sshCommand", "ssh"),
        ("core.askPass", "askpass"),
        ("core.editor", "editor"),
        ("core.alternateRefsCommand", "alternates"),
        ("credential.helper", "credential"),
        ("gpg.program", "gpg"),
        ("diff.external", "external-diff"),
        ("diff.d.textconv", "textconv"),
        ("filter.plain.clean", "clean"),
        ("filter.a=b.c d.clean", "clean-odd"),
        ("filter.long.process", "process"),
        ("remote.origin.uploadpack", "uploadpack"),
    ] {
        let trap = scratch.trap(name);
        scratch.git("p", &["config", key, &trap]);
    }
    for (key, value) in [
        ("filter.plain.required", "true"),
        ("filter.long.required", "true"),
        ("alias.status", "!false"),
        ("log.showSignature", "true"),
        ("status.submoduleSummary", "true"),
        ("core.untrackedCache", "true"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.partialclonefilter", "blob:none"),
        ("protocol.ext.allow", "always"),
        ("extensions.worktreeConfig", "true"),
    ] {
        scratch.git("p", &["config", key, value]);
    }
    let transport = format!("ext::{}", scratch.trap("transport"));
    scratch.git("p", &["config", "remote.origin.url", &transport]);
    // Filters that stand only in an included file and in the worktree's own configuration.
    scratch.write(
        "p/.git/more",
        &format!("[filter \"inc\"]\nclean = {}\n", scratch.trap("clean-included")),
    );
    scratch.git("p", &["config", "includeIf.onbranch:ma*.path", "more"]);
    scratch.git("p", &["config", "--worktree", "filter.wt.clean", &scratch.trap("clean-worktree")]);
    scratch.write(
        "p/.git/info/attributes",
        "[attr]odd filter=a=b.c\nf1 filter=plain diff=d\nf2 filter=long\nf3 filter=inc\nf4 filter=wt\nf5 odd\n",
    );
    for hook in ["post-index-change", "reference-transaction", "pre-auto-gc"] {
        fs::copy(scratch.trap(hook), scratch.path("p/.git/hooks").join(hook)).expect("copies");
    }
    for file in ["f1", "f2", "f3", "f4", "f5"] {
        scratch.write(&format!("p/{file}"), "text");
        let blob = scratch.git("p", &["hash-object", "-w", "--no-filters", file]);
        let entry = format!("100644,{blob},{file}");
        scratch.run(
            "p",
            &["-c", "core.fsmonitor=false", "update-index", "--add", "--cacheinfo", &entry],
            1,
        );
    }
    for canary in scratch.canaries() {
        fs::remove_file(scratch.path("canaries").join(canary)).expect("removes");
    }

    let before = fingerprint(&scratch.path("p/.git"));
    let (git, place) = (git(), scratch.path("p"));
    let facts = git.observe(&place).await;
    git.tracking(&place).await;
    git.head_at(&place, Some("main"), at(5_000)).await;
    git.head_at(&place, None, at(5_000)).await;
    let missing = "1".repeat(40);
    git.commits_between(&place, &observed(&missing), &observed(&head)).await;
    git.resolve_commits(&place, &[missing, head.clone(), "abcdef0".to_owned()]).await;
    git.project_of(&place).await;
    assert_eq!(scratch.canaries(), Vec::<String>::new());
    assert_eq!(fingerprint(&scratch.path("p/.git")), before);
    assert_eq!(facts.head, observed(head));
    assert_eq!(facts.working_tree, counts(5, 0, 0));

    for file in ["f1", "f3", "f4"] {
        scratch.write(&format!("p/{file}"), "TEXT");
    }
    let facts = git.observe(&place).await;
    assert!(
        matches!(&facts.working_tree, Known::Absent { absent } if absent.contains("content filter"))
    );
    assert_eq!(scratch.canaries(), Vec::<String>::new());

    // The traps are set: an ordinary status springs several of them.
    let without_process =
        ["-c", "filter.long.process=", "-c", "filter.long.required=false", "status"];
    scratch.run("p", &without_process, 1);
    let sprung = scratch.canaries();
    for name in ["fsmonitor", "clean", "clean-included", "clean-worktree"] {
        assert!(sprung.iter().any(|canary| canary == name), "{name} is no trap: {sprung:?}");
    }
}

#[tokio::test]
async fn a_file_with_a_filter_that_looks_changed_leaves_the_tree_unknown() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    scratch.write("p/.gitattributes", "one filter=lfs\n");
    scratch.write("p/one", "changed, or what the filter would take for the same");
    let facts = scratch.observe("p").await;
    assert!(
        matches!(&facts.working_tree, Known::Absent { absent } if absent.contains("content filter"))
    );
    assert_eq!(facts.branch, observed("main"));
}

#[tokio::test]
async fn case_129_git_dir_stays_identical_with_a_stale_index() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    let old = fs::File::open(scratch.path("p/one")).expect("opens");
    old.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1_000_000)).expect("touches");
    let before = fingerprint(&scratch.path("p/.git"));
    let facts = scratch.observe("p").await;
    assert_eq!(facts.working_tree, Known::observed(WorkingTree::Clean));
    assert_eq!(fingerprint(&scratch.path("p/.git")), before);
    scratch.git("p", &["status"]);
    assert_ne!(fingerprint(&scratch.path("p/.git")), before, "the index was stale");
}

#[tokio::test]
async fn a_work_tree_elsewhere_is_not_walked() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    for elsewhere in [scratch.path(""), PathBuf::from("/etc")] {
        scratch.git("p", &["config", "core.worktree", elsewhere.to_str().expect("UTF-8")]);
        let facts = scratch.observe("p").await;
        let reason = Known::absent("core.worktree points away from the repository");
        assert_eq!(facts.repository_root, reason);
        assert_eq!(
            facts.working_tree,
            Known::absent("core.worktree points away from the repository")
        );
        assert_eq!(facts.branch, observed("main"));
    }
}

#[tokio::test]
async fn a_slow_status_leaves_only_the_working_tree_absent() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    let git = Git::new(slow_git(&scratch, "status"));
    let facts = git.observe(&scratch.path("p")).await;
    assert_eq!(facts.working_tree, Known::absent("timed out after 1s"));
    assert_eq!(facts.branch, observed("main"));
    assert_eq!(facts.head, observed(scratch.git("p", &["rev-parse", "HEAD"])));
    assert_eq!(facts.ahead_behind, Known::absent("no upstream branch"));
    assert_gone(&scratch).await;
}

#[tokio::test]
async fn case_083_a_hanging_git_is_killed_with_its_children() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    let git = Git::new(slow_git(&scratch, "rev-parse"));
    assert_eq!(git.observe(&scratch.path("p")).await, GitFacts::absent("timed out after 1s"));
    assert_gone(&scratch).await;
}

#[tokio::test]
async fn an_output_without_end_is_cut_off() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    let settings = slow_git(&scratch, "none");
    scratch.write(
        "bin/git",
        "#!/bin/sh\n[ \"$2\" = version ] && echo git version 2.47.0 && exit\nexec cat /dev/zero\n",
    );
    let facts = Git::new(GitSettings { timeout: Duration::from_secs(20), ..settings });
    let facts = facts.observe(&scratch.path("p")).await;
    assert_eq!(facts, GitFacts::absent("git rev-parse wrote more than 4 MiB"));
}

#[tokio::test]
async fn a_git_that_cannot_be_closed_off_is_not_used() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    let settings = slow_git(&scratch, "none");
    scratch.write("bin/git", "#!/bin/sh\necho git version 2.25.1\n");
    let facts = Git::new(settings).observe(&scratch.path("p")).await;
    assert_eq!(facts, GitFacts::absent("git 2.25 is too old: 2.32 or newer is needed"));
}

#[tokio::test]
async fn a_directory_that_may_not_be_read_leaves_no_counts() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    let real = run::find(&std::env::var_os("PATH").expect("a PATH")).expect("git");
    let settings = slow_git(&scratch, "none");
    let warning = "warning: could not open directory 'x/': Permission denied";
    let script = format!(
        "#!/bin/sh\n[ \"$2\" = status ] && echo \"{warning}\" >&2\nexec {} \"$@\"\n",
        real.display()
    );
    scratch.write("bin/git", &script);
    let facts = Git::new(settings).observe(&scratch.path("p")).await;
    assert_eq!(facts.working_tree, Known::absent("no permission to read parts of the work tree"));
    assert_eq!(facts.branch, observed("main"));
}

#[tokio::test]
async fn a_repository_hidden_in_another_ones_work_tree_is_not_used() {
    let Some(scratch) = Scratch::with_commit() else { return };
    scratch.git("", &["clone", "-q", "--bare", "p", "p/data"]);
    scratch.git("p/data", &["config", "core.bare", "false"]);
    scratch.git("p/data", &["config", "core.worktree", scratch.path("p").to_str().expect("UTF-8")]);
    assert_eq!(scratch.observe("p/data").await, GitFacts::absent("bare repository"));
}
