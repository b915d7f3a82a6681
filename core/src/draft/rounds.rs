//! A story in rounds: a prompt and what followed until the next one.

use std::collections::HashSet;

use super::{Story, Turn, TurnText};
use crate::entry::CallOutcome;
use crate::ids::LedgerSeq;

/// Tools that change files.
const EDITORS: &[&str] = &[
    "edit",
    "multiedit",
    "write",
    "notebookedit",
    "apply_patch",
    "str_replace_editor",
    "str_replace_based_edit_tool",
    "update_file",
    "create_file",
];
/// Tools that run commands.
const SHELLS: &[&str] = &[
    "bash",
    "shell",
    "local_shell",
    "local_shell_call",
    "exec_command",
    "shell_command",
    "container.exec",
    "powershell",
    "unified_exec",
];
/// Tools that look something up on the web.
const WEB: &[&str] = &["webfetch", "websearch", "web_search", "web_search_call", "web_fetch"];
/// Tools that start another agent.
const AGENTS: &[&str] = &["task", "agent", "spawn_agent"];

/// A prompt and what followed.
#[derive(Debug, Default)]
pub struct Round<'a> {
    /// The prompts: none for what precedes the first, several when the user repeated themselves.
    pub prompts: Vec<(LedgerSeq, &'a str)>,
    /// The model's texts after its last call: what it said when it was done. Texts between calls announce work.
    pub answers: Vec<(LedgerSeq, &'a str)>,
    /// Every call.
    pub calls: Vec<LedgerSeq>,
    /// Edits that were made.
    pub edits: usize,
    /// Edits that failed.
    pub failed_edits: usize,
    /// Commands that were run.
    pub commands: usize,
    /// Commands that failed.
    pub failed_commands: usize,
    /// Look-ups on the web.
    pub lookups: usize,
    /// Agents that were started.
    pub agents: usize,
    /// Calls that were not allowed.
    pub denied: usize,
    /// Indexes of the story's files that the edits name.
    pub files: Vec<usize>,
    /// Indexes of the story's commits that were made here.
    pub commits: Vec<usize>,
    commit_calls: Vec<&'a str>,
}

/// The ends of directories' names, of either system.
const SEPARATORS: [char; 2] = ['/', '\\'];

impl Round<'_> {
    /// Whether something was changed.
    pub fn changed(&self) -> bool {
        self.edits > 0 || !self.commits.is_empty()
    }

    /// Whether something may have been changed, as far as the story tells.
    pub fn may_have_changed(&self) -> bool {
        self.changed() || !self.commit_calls.is_empty() || self.agents > 0
    }

    /// The first event.
    pub fn starts_at(&self) -> Option<LedgerSeq> {
        let prompt = self.prompts.first().map(|(seq, _)| *seq);
        let answer = self.answers.first().map(|(seq, _)| *seq);
        prompt.into_iter().chain(answer).chain(self.calls.first().copied()).min()
    }
}

/// The story's rounds. Prompts in a row that say the same ("continue") are one round.
pub fn rounds(story: &Story) -> Vec<Round<'_>> {
    let mut rounds = rounds_of(story, &story.turns);
    assign_commits(&mut rounds, story);
    rounds
}

/// The rounds of some of the story's turns, without commits.
pub fn rounds_of<'a>(
    story: &'a Story,
    turns: impl IntoIterator<Item = &'a Turn>,
) -> Vec<Round<'a>> {
    let mut rounds: Vec<Round<'a>> = Vec::new();
    for turn in turns {
        match &turn.what {
            TurnText::Prompt(text) => {
                let repeated = |round: &Round<'_>| {
                    round.prompts.last().is_some_and(|(_, last)| is_repeated(last, text))
                };
                match rounds.last_mut() {
                    Some(round) if repeated(round) => round.prompts.push((turn.seq, text)),
                    _ => rounds.push(Round { prompts: vec![(turn.seq, text)], ..Round::default() }),
                }
            }
            TurnText::Answer(text) => current(&mut rounds).answers.push((turn.seq, text)),
            TurnText::Call { name, argument, outcome } => {
                let round = current(&mut rounds);
                round.calls.push(turn.seq);
                round.answers.clear();
                count(round, story, name, argument, *outcome);
            }
        }
    }
    rounds
}

fn current<'a, 'r>(rounds: &'r mut Vec<Round<'a>>) -> &'r mut Round<'a> {
    if rounds.is_empty() {
        rounds.push(Round::default());
    }
    let last = rounds.len() - 1;
    &mut rounds[last]
}

fn count<'a>(
    round: &mut Round<'a>,
    story: &Story,
    name: &str,
    argument: &'a str,
    outcome: CallOutcome,
) {
    let name = name.to_lowercase();
    let is = |table: &[&str]| table.contains(&name.as_str());
    let patch = argument.contains("*** Begin Patch") || argument.starts_with("apply_patch");
    if outcome == CallOutcome::Denied {
        round.denied += 1;
    } else if is(EDITORS) || (is(SHELLS) && patch) {
        match outcome {
            CallOutcome::Failed => round.failed_edits += 1,
            // Without a result, only the file itself can tell that it was changed.
            CallOutcome::Running if !names_a_file(story, argument) => {}
            _ => {
                round.edits += 1;
                note_files(round, story, argument);
            }
        }
    } else if is(SHELLS) {
        round.commands += 1;
        round.failed_commands += usize::from(outcome == CallOutcome::Failed);
        if argument.contains("git") && argument.contains("commit") && outcome == CallOutcome::Ok {
            round.commit_calls.push(argument);
        }
    } else if is(WEB) {
        round.lookups += 1;
    } else if is(AGENTS) {
        round.agents += 1;
    }
}

fn note_files(round: &mut Round<'_>, story: &Story, argument: &str) {
    for at in 0..story.files.len() {
        if names(story, argument, at) && !round.files.contains(&at) {
            round.files.push(at);
        }
    }
}

fn names_a_file(story: &Story, argument: &str) -> bool {
    (0..story.files.len()).any(|at| names(story, argument, at))
}

/// Whether an edit's argument, a path or a patch that names paths, names a file of the story.
fn names(story: &Story, argument: &str, file: usize) -> bool {
    let argument = argument.trim();
    let Some(file) = story.files.get(file).filter(|_| !argument.is_empty()) else { return false };
    ends_with_path(&file.path, argument)
        || ends_with_path(argument, &file.path)
        || (argument.contains('\n') && argument.contains(shown(story, &file.path)))
}

/// Whether a path is `end`, or ends with it from a directory on.
pub fn ends_with_path(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with(SEPARATORS))
}

/// A commit belongs to the round whose call proves it, else to the one whose command holds its subject; when that
/// tells nothing of any and there are as many committing commands as commits, they go in order. Else it is
/// nobody's.
fn assign_commits(rounds: &mut [Round<'_>], story: &Story) {
    for (at, commit) in story.commits.iter().enumerate() {
        let proves =
            |round: &Round<'_>| commit.made_by.is_some_and(|seq| round.calls.contains(&seq));
        let subject = commit.subject.as_deref().filter(|subject| subject.len() > 3);
        let names = |round: &Round<'_>| {
            let holds = |subject| round.commit_calls.iter().any(|call| call.contains(subject));
            subject.is_some_and(holds)
        };
        let maker = rounds.iter().position(proves).or_else(|| rounds.iter().position(names));
        if let Some(maker) = maker {
            rounds[maker].commits.push(at);
        }
    }
    let calls: usize = rounds.iter().map(|round| round.commit_calls.len()).sum();
    if calls == story.commits.len() && rounds.iter().all(|round| round.commits.is_empty()) {
        let mut next = 0;
        for round in rounds {
            let made = round.commit_calls.len();
            round.commits.extend(next..next + made);
            next += made;
        }
    }
}

/// A path as it is shown: relative to the working directory when it lies below it.
pub fn shown<'a>(story: &Story, path: &'a str) -> &'a str {
    let cwd = story.cwd.as_deref().map(|cwd| cwd.trim_end_matches(SEPARATORS)).unwrap_or_default();
    let below = path.strip_prefix(cwd).filter(|_| !cwd.is_empty());
    below.and_then(|rest| rest.strip_prefix(SEPARATORS)).unwrap_or(path)
}

/// Whether two prompts say the same, whatever their case and punctuation; long ones may differ a little.
fn is_repeated(a: &str, b: &str) -> bool {
    let bare = |text: &str| {
        let letters = text.chars().take(2_000).filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect::<Vec<char>>()
    };
    let (a, b) = (bare(a), bare(b));
    if a == b {
        return true;
    }
    // "Run test 1" and "run test 2" are two things.
    let digits =
        |text: &[char]| text.iter().filter(|c| c.is_numeric()).copied().collect::<Vec<_>>();
    if a.len().min(b.len()) < 20 || digits(&a) != digits(&b) {
        return false;
    }
    let pairs =
        |text: &[char]| text.windows(2).map(|pair| (pair[0], pair[1])).collect::<HashSet<_>>();
    let (pairs_a, pairs_b) = (pairs(&a), pairs(&b));
    let shared = pairs_a.intersection(&pairs_b).count();
    // Dice's coefficient over pairs of letters, and about the same length.
    shared * 20 >= (pairs_a.len() + pairs_b.len()) * 9
        && a.len() * 10 >= b.len() * 9
        && b.len() * 10 >= a.len() * 9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::fixture::StoryBuilder;

    #[test]
    fn repeated_prompts_are_one_round() {
        let story = StoryBuilder::new()
            .prompt("Fix it all")
            .prompt("continue")
            .edit("/w/app/a.rs")
            .prompt("Continue.")
            .prompt("continue!")
            .prompt("stop")
            .build();
        let prompts: Vec<usize> = rounds(&story).iter().map(|round| round.prompts.len()).collect();
        assert_eq!(prompts, [1, 3, 1]);
    }

    #[test]
    fn different_short_prompts_are_not_repeated() {
        assert!(!is_repeated("run test 1", "run test 2"));
        assert!(!is_repeated(
            "please explain what stage 1 does",
            "please explain what stage 2 does"
        ));
        assert!(is_repeated(
            "please make the parser skip all empty lines",
            "Please make the parser skip all empty line"
        ));
    }

    #[test]
    fn work_is_counted_by_its_outcome() {
        let story = StoryBuilder::new()
            .prompt("go")
            .edit("/w/app/src/a.rs")
            .call("Edit", "/w/app/src/a.rs", CallOutcome::Failed)
            .call("Bash", "cargo test", CallOutcome::Failed)
            .call("Bash", "cargo test", CallOutcome::Ok)
            .call("Bash", "rm -rf x", CallOutcome::Denied)
            .build();
        let rounds = rounds(&story);
        let round = &rounds[0];
        assert_eq!((round.edits, round.failed_edits), (1, 1));
        assert_eq!((round.commands, round.failed_commands, round.denied), (2, 1, 1));
        assert_eq!(round.files, [0]);
    }

    #[test]
    fn a_commit_belongs_to_the_round_whose_command_made_it() {
        let story = StoryBuilder::new()
            .prompt("first")
            .prompt("commit")
            .call("Bash", "git commit -m 'Fix the parser'", CallOutcome::Ok)
            .prompt("later")
            .commit("0123abc", "Fix the parser")
            .build();
        let commits: Vec<usize> = rounds(&story).iter().map(|round| round.commits.len()).collect();
        assert_eq!(commits, [0, 1, 0]);
    }

    #[test]
    fn a_commit_belongs_to_the_round_whose_call_proves_it() {
        let story = StoryBuilder::new()
            .prompt("first")
            .run("git commit -F m; git commit -F n")
            .committed("0123abc")
            .committed("1123abc")
            .prompt("second")
            .run("git commit -F o")
            .committed("2123abc")
            .prompt("third")
            .run("git commit -F p")
            .build();
        let commits: Vec<Vec<usize>> = rounds(&story).iter().map(|r| r.commits.clone()).collect();
        assert_eq!(commits, [vec![0, 1], vec![2], vec![]]);
    }

    #[test]
    fn an_edit_without_a_result_counts_only_if_its_file_changed() {
        let story = StoryBuilder::new()
            .prompt("go")
            .edit("/w/app/a.rs")
            .call("Edit", "/w/app/a.rs", CallOutcome::Running)
            .call("Edit", "/w/app/b.rs", CallOutcome::Running)
            .build();
        assert_eq!(rounds(&story)[0].edits, 2);
    }

    #[test]
    fn files_of_windows_are_known_by_their_ends() {
        let story = StoryBuilder::new()
            .prompt("go")
            .edit(r"C:\w\app\src\a.rs")
            .call("Edit", r"src\a.rs", CallOutcome::Ok)
            .build();
        assert_eq!(rounds(&story)[0].files, [0]);
    }

    #[test]
    fn a_commit_that_no_command_explains_is_nobodys() {
        let story = StoryBuilder::new()
            .prompt("a")
            .call("Bash", "git commit -F m", CallOutcome::Ok)
            .commit("0123abc", "One")
            .commit("1123abc", "Two")
            .build();
        assert!(rounds(&story).iter().all(|round| round.commits.is_empty()));
    }
}
