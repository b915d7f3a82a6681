//! The body of a session note (notes.md "Sections"). Sections without content are left out; the Narrative is
//! always there. Headings and keys are English and fixed: other tools find the sections by them.

use super::{NoteKind, inline, sources};

/// Files listed before the rest is only counted.
const MAX_FILES: usize = 60;
/// Commits and sources listed before the rest is only counted.
const MAX_LISTED: usize = 40;

/// What a session note says. Texts are inline Markdown of one line each, unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionSections {
    /// Plain text.
    pub title: String,
    /// Two or three sentences.
    pub summary: String,
    /// Paragraphs, in the order of events.
    pub narrative: Vec<String>,
    /// Commits, first to last.
    pub commits: Vec<Commit>,
    /// Paths, plain.
    pub files: Vec<String>,
    /// Web addresses, plain; those that do not last are left out.
    pub sources: Vec<String>,
    /// What came out of the session.
    pub produced: Vec<Produced>,
    /// Open questions with their numbers.
    pub questions: Vec<Question>,
}

/// A commit, as proven by a tool's result or by Git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Hash, short or full.
    pub hash: String,
    /// First line of its message, plain, if known.
    pub subject: Option<String>,
}

/// A line of Knowledge Produced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Produced {
    /// What was written.
    pub kind: NoteKind,
    /// The session finished this task, which stood in the vault before.
    pub resolved: bool,
    /// Plain text.
    pub title: String,
    /// Path in the vault as the vault gave it, `sessions/learnings/x.md`: percent-encoded ones make no edge.
    pub path: String,
    /// One line of inline Markdown.
    pub hook: String,
}

/// An open question. Unanswered ones keep their numbers when a session goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The `n` of `Qn`, from 1.
    pub number: u32,
    /// One line of inline Markdown.
    pub text: String,
}

/// Numbers the questions of an update: one that stood in the note keeps its number, new ones go on counting
/// after the highest number that the note ever had.
pub fn number_questions(existing: &[Question], texts: &[String]) -> Vec<Question> {
    let mut next = existing.iter().map(|question| question.number).max().unwrap_or(0);
    let mut questions: Vec<Question> = Vec::new();
    for text in texts {
        let known = existing.iter().find(|question| question.text == *text);
        let number = known.map_or_else(
            || {
                next += 1;
                next
            },
            |question| question.number,
        );
        questions.push(Question { number, text: text.clone() });
    }
    questions.sort_by_key(|question| question.number);
    questions
}

/// The open questions that a note's compiled truth lists.
pub fn read_questions(truth: &str) -> Vec<Question> {
    let section = truth.lines().skip_while(|line| line.trim_end() != "## Open Questions").skip(1);
    section
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| {
            let (number, text) = line.strip_prefix("- **Q")?.split_once("**: ")?;
            Some(Question { number: number.parse().ok()?, text: text.trim_end().to_owned() })
        })
        .collect()
}

/// The compiled truth, without a line break at its end.
pub fn render_truth(sections: &SessionSections) -> String {
    let mut blocks = vec![
        format!("# {}", heading(&sections.title)),
        format!("> **Summary:** {}", inline::one_line(&sections.summary)),
        "## Narrative".to_owned(),
    ];
    blocks.extend(sections.narrative.iter().map(|paragraph| paragraph_text(paragraph)));
    section(&mut blocks, "## Artifacts", &artifacts(sections));
    section(&mut blocks, "## Knowledge Produced", &produced(&sections.produced));
    let questions: Vec<String> = sections
        .questions
        .iter()
        .map(|question| format!("- **Q{}**: {}", question.number, inline::one_line(&question.text)))
        .collect();
    section(&mut blocks, "## Open Questions", &questions);
    blocks.retain(|block| !block.is_empty());
    blocks.join("\n\n")
}

fn section(blocks: &mut Vec<String>, heading: &str, lines: &[String]) {
    if !lines.is_empty() {
        blocks.push(heading.to_owned());
        blocks.push(lines.join("\n"));
    }
}

fn heading(title: &str) -> String {
    let title = inline::inert(title);
    // Trailing marks would be read as the heading's end.
    let title = title.trim_end_matches('#').trim_end();
    if title.is_empty() { "Session".to_owned() } else { title.to_owned() }
}

/// A paragraph must not become a heading, list, quotation or rule by its first character.
fn paragraph_text(paragraph: &str) -> String {
    let line = inline::one_line(paragraph);
    let ordered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_list = ordered.len() < line.len() && ordered.starts_with(['.', ')']);
    if is_list {
        let digits = line.len() - ordered.len();
        return format!("{}\\{ordered}", &line[..digits]);
    }
    if line.starts_with(['#', '>', '-', '+', '=', '*', '~']) && !line.starts_with("**") {
        return format!("\\{line}");
    }
    line
}

fn artifacts(sections: &SessionSections) -> Vec<String> {
    let commits = sections.commits.iter().map(|commit| {
        let hash = inline::short_hash(&commit.hash);
        let subject = commit.subject.as_deref().map(inline::inert).filter(|text| !text.is_empty());
        subject.map_or_else(|| hash.clone(), |subject| format!("{hash} {subject}"))
    });
    let files = sections.files.iter().map(|path| inline::code(path));
    let mut seen = Vec::new();
    let lasting = sections.sources.iter().filter(|url| sources::is_lasting(url)).filter(|url| {
        let fresh = !seen.contains(url);
        seen.push(*url);
        fresh
    });
    let sources: Vec<String> = lasting.map(|url| format!("<{url}>")).collect();
    [
        artifact("Commits", "; ", commits.collect(), MAX_LISTED),
        artifact("Files touched", ", ", files.collect(), MAX_FILES),
        artifact("External sources", ", ", sources, MAX_LISTED),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn artifact(key: &str, between: &str, mut items: Vec<String>, max: usize) -> Option<String> {
    let more = items.len().saturating_sub(max);
    items.truncate(max);
    let rest = if more > 0 { format!("{between}and {more} more") } else { String::new() };
    (!items.is_empty()).then(|| format!("- **{key}**: {}{rest}", items.join(between)))
}

fn produced(items: &[Produced]) -> Vec<String> {
    let mut sorted: Vec<&Produced> = items.iter().collect();
    sorted.sort_by_key(|item| (item.resolved, item.kind));
    sorted
        .into_iter()
        .filter_map(|item| {
            let (icon, word) =
                if item.resolved { ("♻️", "Resolved") } else { item.kind.produced_as()? };
            let title = inline::inert(&item.title);
            let hook = inline::one_line(&item.hook);
            let hook = if hook.is_empty() { hook } else { format!(" — {hook}") };
            Some(format!("- {icon} {word}: [{title}]({}){hook}", item.path))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::timeline;

    fn sections() -> SessionSections {
        SessionSections {
            title: "Fix the parser".to_owned(),
            summary: "It failed on empty lines. It no longer does.".to_owned(),
            narrative: vec!["First this.".to_owned(), "Then that.".to_owned()],
            ..SessionSections::default()
        }
    }

    #[test]
    fn a_full_body_has_its_sections_in_order() {
        let full = SessionSections {
            commits: vec![Commit {
                hash: "0123456789abcdef".into(),
                subject: Some("Fix *it*".into()),
            }],
            files: vec!["src/a_b.rs".into()],
            sources: vec![
                "https://docs.rs/jiff".into(),
                "http://localhost:3000".into(),
                "https://docs.rs/jiff".into(),
            ],
            produced: vec![
                Produced {
                    kind: NoteKind::Task,
                    resolved: true,
                    title: "Old task".into(),
                    path: "sessions/tasks/old.md".into(),
                    hook: "done".into(),
                },
                Produced {
                    kind: NoteKind::Til,
                    resolved: false,
                    title: "Empty [lines]".into(),
                    path: "sessions/learnings/x.md".into(),
                    hook: "they count".into(),
                },
            ],
            questions: vec![Question { number: 2, text: "Which version?".into() }],
            ..sections()
        };
        insta::assert_snapshot!(timeline::merge_entry("- **2026-12-01** | Session captured.", &render_truth(&full)), @r"
        # Fix the parser

        > **Summary:** It failed on empty lines. It no longer does.

        ## Narrative

        First this.

        Then that.

        ## Artifacts

        - **Commits**: `0123456789ab` Fix \*it\*
        - **Files touched**: `src/a_b.rs`
        - **External sources**: <https://docs.rs/jiff>

        ## Knowledge Produced

        - 🧠 TIL: [Empty \[lines\]](sessions/learnings/x.md) — they count
        - ♻️ Resolved: [Old task](sessions/tasks/old.md) — done

        ## Open Questions

        - **Q2**: Which version?

        ---

        ## Timeline

        - **2026-12-01** | Session captured.
        ");
    }

    #[test]
    fn empty_sections_are_left_out_and_the_narrative_is_not() {
        let text = render_truth(&sections());
        assert!(text.contains("## Narrative") && !text.contains("## Artifacts"), "{text}");
        assert!(!text.contains("## Open Questions") && !text.contains("## Knowledge"), "{text}");
    }

    #[test]
    fn a_paragraph_cannot_become_structure() {
        let hostile =
            ["# x", "- x", "---", "1. x", "> x", "## Timeline", "a\n---\n## Timeline\n- x"];
        let narrative = hostile.map(str::to_owned).to_vec();
        let body = timeline::merge_entry(
            "- e",
            &render_truth(&SessionSections { narrative, ..sections() }),
        );
        let (_, entries) = timeline::split_body(&body);
        assert_eq!(entries, ["- e"]);
        let headings: Vec<&str> = body.lines().filter(|line| line.starts_with('#')).collect();
        assert_eq!(headings, ["# Fix the parser", "## Narrative", "## Timeline"]);
        assert_eq!(
            body.lines().filter(|line| line.starts_with('-')).collect::<Vec<_>>(),
            ["---", "- e"]
        );
    }

    #[test]
    fn questions_keep_their_numbers_and_new_ones_go_on_counting() {
        let truth =
            "# x\n\n## Open Questions\n\n- **Q1**: One?\n- **Q3**: Three?\n\n## Mine\n- **Q9**: no";
        let existing = read_questions(truth);
        let texts = ["New?".to_owned(), "Three?".to_owned()];
        let numbered = number_questions(&existing, &texts);
        let shown: Vec<(u32, &str)> =
            numbered.iter().map(|q| (q.number, q.text.as_str())).collect();
        assert_eq!(shown, [(3, "Three?"), (4, "New?")]);
    }
}
