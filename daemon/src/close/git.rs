//! Git at both ends of an episode, each fact with where it comes from: recorded in the transcript, observed at the
//! time, or inferred from history by date. Nothing is guessed without saying so.

use std::path::Path;

use anyhow::{Context as _, Result};
use jiff::{SignedDuration, Timestamp};
use majordomus_core::envelope::Git as GitEnds;
use majordomus_core::envelope::git::{CommitsBetween, GitFacts, Known};
use majordomus_core::ids::SessionRow;
use majordomus_core::ledger::{Reader, SessionState};
use majordomus_core::session::Summary;

use super::{Closer, Episode, read_episode};

/// A close later than this after its time cannot say what Git looked like then.
const TIMELY: SignedDuration = SignedDuration::from_mins(10);

impl Closer {
    /// Git at both ends of an episode, each fact with where it comes from.
    pub(super) async fn git_ends(
        &self,
        state: &SessionState,
        episode: &Episode,
        now: Timestamp,
    ) -> GitEnds {
        let summary = &episode.summary;
        let Some(cwd) = summary.cwds.last().map(Path::new) else {
            let why = "the session names no working directory";
            return GitEnds {
                start: GitFacts::absent(why),
                end: GitFacts::absent(why),
                commits_between: CommitsBetween::absent(why),
            };
        };
        let active_at = state.active_at.unwrap_or(now);
        let is_timely = now
            <= active_at
                .saturating_add(self.rules.get().idle_after)
                .unwrap_or(now)
                .saturating_add(TIMELY)
                .unwrap_or(now);
        let observed = self.git.observe(cwd).await;
        let start = match &episode.git_at_start {
            Some(start) => start.clone(),
            None => self.inferred(cwd, &observed, summary, End::Start).await,
        };
        let end = if is_timely {
            observed
        } else {
            self.inferred(cwd, &observed, summary, End::End).await
        };
        let commits_between = self.git.commits_between(cwd, &start.head, &end.head).await;
        GitEnds { start, end, commits_between }
    }

    /// What can be said of one end of an episode that was not watched: what the tool recorded, then history by
    /// date. The working tree of the past is gone.
    async fn inferred(
        &self,
        cwd: &Path,
        observed: &GitFacts,
        summary: &Summary,
        end: End,
    ) -> GitFacts {
        let (branch, head, at) = match end {
            End::Start => (&summary.git.first_branch, &summary.git.head, &summary.started_at),
            End::End => (&summary.git.last_branch, &None, &summary.last_at),
        };
        let branch = branch.as_deref().filter(|branch| *branch != "HEAD");
        let head = match (head, at) {
            (Some(head), _) => Known::recorded(head.clone()),
            // Commits carry seconds: one in the very second of the start is the session's own.
            (None, Some(at)) if matches!(end, End::Start) => {
                let before = at.at.checked_sub(SignedDuration::from_secs(1)).unwrap_or(at.at);
                self.git.head_at(cwd, branch, before).await
            }
            (None, Some(at)) => self.git.head_at(cwd, branch, at.at).await,
            (None, None) => Known::absent("the session has no time to look for in history"),
        };
        let unseen = match end {
            End::Start => "not observed when the episode opened",
            End::End => "not observed when the episode ended",
        };
        let remote = match &summary.git.remote {
            Some(remote) => Known::recorded(remote.clone()),
            None => observed.remote.clone().into_inferred(),
        };
        GitFacts {
            repository_root: observed.repository_root.clone().into_inferred(),
            common_dir: observed.common_dir.clone().into_inferred(),
            remote,
            branch: branch.map_or_else(
                || Known::absent("the transcript names no branch"),
                |branch| Known::recorded(branch.to_owned()),
            ),
            head,
            working_tree: Known::absent(unseen),
            ahead_behind: Known::absent(unseen),
        }
    }

    /// Observes Git for sessions in which an episode has just opened.
    pub async fn observe_openings(&self, opened: &[SessionRow], now: Timestamp) -> Result<()> {
        if opened.is_empty() {
            return Ok(());
        }
        let mut reader = Reader::open(&self.ledger_path).await?;
        for session in opened {
            let Some(state) = reader.session(*session).await? else { continue };
            let Some(first) = state.open_since else { continue };
            let episode = read_episode(&mut reader, &state, first).await?;
            let Some(cwd) = episode.summary.cwds.first() else { continue };
            if episode.git_at_start.is_some() {
                continue;
            }
            let facts = self.git.observe(Path::new(cwd)).await;
            let json = serde_json::to_string(&facts).context("cannot write Git's facts as JSON")?;
            self.ledger.lock().await.note_git(*session, now, &json).await?;
        }
        Ok(())
    }
}

/// Which end of an episode is looked at.
#[derive(Clone, Copy)]
enum End {
    Start,
    End,
}
