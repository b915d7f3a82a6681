//! What history answers.

use super::*;

#[tokio::test]
async fn the_head_at_a_time_is_inferred_from_the_branchs_own_history() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    let one = scratch.git("p", &["rev-parse", "HEAD"]);
    scratch.git("p", &["checkout", "-q", "-b", "side"]);
    let side = scratch.commit("p", "side work", 2_000);
    scratch.git("p", &["checkout", "-q", "main"]);
    let merge = ["merge", "-q", "--no-ff", "-m", "merge", "side"];
    assert!(scratch.run("p", &merge, 4_000).status.success());
    let merged = scratch.git("p", &["rev-parse", "HEAD"]);
    let (git, place) = (git(), scratch.path("p"));
    let head_at = async |branch, seconds| git.head_at(&place, branch, at(seconds)).await;
    assert_eq!(head_at(None, 3_000).await, Known::inferred(one.clone()));
    assert_eq!(head_at(Some("side"), 3_000).await, Known::inferred(side));
    assert_eq!(head_at(Some("HEAD"), 4_000).await, Known::inferred(merged));
    assert_eq!(head_at(Some("main"), 999).await, Known::absent("no commit is that old"));
    assert_eq!(head_at(Some("gone"), 3_000).await, Known::absent("no such branch"));
    for hostile in ["--all", "main~1", "main..side", "../heads/main"] {
        assert_eq!(
            head_at(Some(hostile), 9_000).await,
            Known::absent("no such branch"),
            "{hostile}"
        );
    }
}

#[tokio::test]
async fn commits_are_listed_between_heads_that_are_connected() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    let one = scratch.git("p", &["rev-parse", "HEAD"]);
    let two = scratch.commit("p", "two", 900);
    let three = scratch.commit("p", "three", 2_000);
    let (git, place) = (git(), scratch.path("p"));
    let between = async |start: &str, end: &str| {
        git.commits_between(&place, &observed(start), &Known::inferred(end.to_owned())).await
    };
    let listed = |commits: &[&String]| CommitsBetween::Listed {
        commits: commits.iter().map(|hash| (*hash).clone()).collect(),
        provenance: Provenance::Inferred,
    };
    assert_eq!(between(&one, &three).await, listed(&[&two, &three]));
    assert_eq!(between(&three, &three).await, listed(&[]));
    assert_eq!(
        between(&three, &one).await,
        CommitsBetween::Diverged { diverged: Heads { start: three.clone(), end: one.clone() } }
    );
    let foreign = "1".repeat(40);
    assert_eq!(
        between(&foreign, &three).await,
        CommitsBetween::absent("a head is not in the repository")
    );
    assert_eq!(
        between("--output=x", &three).await,
        CommitsBetween::absent("the start head is not a full commit hash")
    );
}

#[tokio::test]
async fn a_shallow_history_does_not_claim_divergence() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    let one = scratch.git("p", &["rev-parse", "HEAD"]);
    let two = scratch.commit("p", "two", 2_000);
    scratch.commit("p", "three", 3_000);
    let source = format!("file://{}", scratch.path("p").display());
    scratch.git("", &["clone", "-q", "--depth=1", &source, "s"]);
    scratch.git("s", &["fetch", "-q", "--depth=1", "origin", &one]);
    let head = scratch.git("s", &["rev-parse", "HEAD"]);
    let place = scratch.path("s");
    let between = git().commits_between(&place, &observed(one), &observed(&head)).await;
    assert!(matches!(&between, CommitsBetween::Absent { absent } if absent.contains("shallow")));
    let between = git().commits_between(&place, &observed(two), &observed(head)).await;
    assert_eq!(between, CommitsBetween::absent("a head is not in the repository"));
}

#[tokio::test]
async fn short_hashes_become_full_ones_and_foreign_ones_do_not() {
    let Some(scratch) = Scratch::with_commit() else {
        return;
    };
    let full = scratch.commit("p", "the second one", 2_000);
    let given = [&full[..7], "HEAD", "1234567", "--batch-all-objects", &full].map(str::to_owned);
    let commits = git().resolve_commits(&scratch.path("p"), &given).await;
    let found: Vec<_> = commits.iter().map(|commit| commit.full.as_deref()).collect();
    assert_eq!(found, [Some(full.as_str()), None, None, None, Some(&full)]);
    assert_eq!(commits[0].subject.as_deref(), Some("the second one"));
    assert_eq!(commits.iter().map(|commit| &commit.given).collect::<Vec<_>>(), given.each_ref());
    let nowhere = git().resolve_commits(&scratch.path("gone"), &given).await;
    assert!(nowhere.len() == 5 && nowhere.iter().all(|commit| commit.full.is_none()));
}
