//! Questions to a repository's history: the head at an earlier time, the commits between two heads, hashes out of
//! transcripts. None of them looks at a work tree.

use std::path::Path;

use jiff::Timestamp;
use majordomus_core::envelope::git::output;
use majordomus_core::envelope::git::{
    CommitsBetween, Heads, Known, ResolvedCommit, heads, is_branch_name, is_hash,
};

use super::run::Call;
use super::why::Why;
use super::{Git, one_hash, refusal, success};

impl Git {
    /// The head at an earlier time, inferred from history: the newest commit of the branch (of what is checked
    /// out, without a branch) whose committer date is not later than `at`. Only first parents are asked: what was
    /// merged later was not on the branch at the time.
    pub async fn head_at(&self, cwd: &Path, branch: Option<&str>, at: Timestamp) -> Known<String> {
        match self.commit_at(cwd, branch.filter(|name| !matches!(*name, "" | "HEAD")), at).await {
            Ok(hash) => Known::inferred(hash),
            Err(why) => Known::absent(why.to_string()),
        }
    }

    /// The commits of an episode by its heads: after `start`, up to and with `end`.
    pub async fn commits_between(
        &self,
        cwd: &Path,
        start: &Known<String>,
        end: &Known<String>,
    ) -> CommitsBetween {
        let (heads, provenance) = match heads(start, end) {
            Ok(known) => known,
            Err(reason) => return CommitsBetween::absent(reason),
        };
        if heads.start == heads.end {
            return CommitsBetween::Listed { commits: Vec::new(), provenance };
        }
        match self.lineage(cwd, &heads).await {
            Ok(Some(commits)) => CommitsBetween::Listed { commits, provenance },
            Ok(None) => CommitsBetween::Diverged { diverged: heads },
            Err(why) => CommitsBetween::absent(why.to_string()),
        }
    }

    /// Looks up hashes out of a transcript, in their order. Unresolved is what is no hash, is no commit here, or
    /// is the beginning of several; all of them where the repository cannot be read.
    pub async fn resolve_commits(&self, cwd: &Path, given: &[String]) -> Vec<ResolvedCommit> {
        let asked: Vec<&str> =
            given.iter().map(String::as_str).filter(|hash| is_hash(hash)).collect();
        let answers = match self.objects(cwd, &asked).await {
            Ok(answers) => answers,
            Err(why) => {
                tracing::debug!(cwd = %cwd.display(), %why, "commits of a transcript were not looked up");
                Vec::new()
            }
        };
        let mut found = output::parse_commits(&asked, &answers).into_iter();
        let unresolved =
            |hash: &String| ResolvedCommit { given: hash.clone(), full: None, subject: None };
        given
            .iter()
            .map(|hash| {
                if is_hash(hash) { found.next() } else { None }.unwrap_or_else(|| unresolved(hash))
            })
            .collect()
    }

    async fn commit_at(
        &self,
        cwd: &Path,
        branch: Option<&str>,
        at: Timestamp,
    ) -> Result<String, Why> {
        let (tip, missing) = match branch {
            None => ("HEAD".to_owned(), Why::NoCommits),
            Some(name) if is_branch_name(name) => (format!("refs/heads/{name}"), Why::NoBranch),
            Some(_) => return Err(Why::NoBranch),
        };
        if at.as_second() < 0 {
            return Err(Why::NothingSoOld);
        }
        // Git's `min-age` is the latest date that a commit may have.
        let latest = format!("--min-age={}", at.as_second());
        let walk = ["--first-parent", "--max-count=1", &latest, "--end-of-options", &tip, "--"];
        let said = self.call(Call::new(cwd, "rev-list").arguments(walk)).await?;
        if said.code == Some(128) && said.complains_of("bad revision") {
            return Err(missing);
        }
        let said = success("rev-list", said)?;
        if said.is_empty() {
            return Err(Why::NothingSoOld);
        }
        one_hash("rev-list", &said)
    }

    /// The commits after `start` up to `end`; `None` when `start` is no ancestor of `end`.
    async fn lineage(&self, cwd: &Path, heads: &Heads) -> Result<Option<Vec<String>>, Why> {
        let Heads { start, end } = heads;
        let ancestry = ["--is-ancestor", start, end];
        let said = self.call(Call::new(cwd, "merge-base").arguments(ancestry)).await?;
        match said.code {
            Some(0) => {}
            Some(1) if self.layout(cwd).await?.is_shallow => return Err(Why::Shallow),
            Some(1) => return Ok(None),
            Some(128) if said.complains_of("Not a valid commit name") => {
                return Err(Why::NoSuchCommit);
            }
            _ => return Err(refusal("merge-base", &said)),
        }
        // By date, but parents never after their children, whatever the clocks said.
        let range = ["--date-order", "--reverse", &format!("{start}..{end}"), "--"];
        let said = self.ask(cwd, "rev-list", &range).await?;
        output::parse_hashes(&said).map(Some).ok_or(Why::NotUnderstood("rev-list"))
    }

    async fn objects(&self, cwd: &Path, hashes: &[&str]) -> Result<Vec<u8>, Why> {
        if hashes.is_empty() {
            return Ok(Vec::new());
        }
        let questions: String = hashes.iter().flat_map(|hash| [*hash, "^{commit}\n"]).collect();
        let call = Call::new(cwd, "cat-file").arguments(["--batch"]).input(questions.into_bytes());
        success("cat-file", self.call(call).await?)
    }
}
