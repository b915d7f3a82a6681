//! Open questions: what the model's last answer puts to the user, that got no reply and concerns what the user
//! wanted. Precision before recall: agents' offers are almost never questions (notes.md "What careful reading
//! taught").

use std::collections::HashSet;

use super::speech;
use super::{Evidence, Statement, Story, TurnText};
use crate::note::inline;

/// Questions kept at most.
const MAX: usize = 3;

/// Phrases of offers and courtesies, in lower case.
const OFFERS: &[&str] = &[
    "shall i",
    "should i",
    "want me to",
    "like me to",
    "can i ",
    "may i ",
    "could i ",
    "would you like",
    "do you want to",
    "let me know",
    "anything else",
    "what else",
    "any other",
    "any questions",
    "need anything",
    "need me to",
    "does that help",
    "does this help",
    "does that make sense",
    "make sense?",
    "sound good",
    "sounds good",
    "look good",
    "looks good",
    "is that ok",
    "is this ok",
    "ok?",
    "okay?",
    "proceed",
    "go ahead",
    "ready to",
    "what's next",
    "what would you like",
    "how can i help",
    "how would you like to proceed",
    "shall we",
    "should we also",
    "happy to",
    "할까요",
    "드릴까요",
    "해드릴",
    "원하시나요",
    "원하십니까",
    "괜찮을까요",
    "괜찮으신가요",
    "필요하신가요",
    "진행할",
    "ましょうか",
    "よろしいでしょうか",
    "しますか",
    "いかがですか",
    "いかがでしょうか",
    "よろしいですか",
    "需要我",
    "要我",
    "是否需要",
    "可以吗",
    "要不要",
    "继续吗",
    "soll ich",
    "möchtest du",
    "möchten sie",
    "passt das",
    "veux-tu",
    "voulez-vous",
    "souhaitez-vous",
    "quieres que",
    "desea que",
    "te gustaría",
];

/// Words that stand in any question and connect nothing.
const COMMON: &[&str] = &[
    "that", "this", "with", "what", "which", "when", "where", "should", "would", "could", "have",
    "from", "your", "they", "them", "there", "here", "then", "than", "into", "about", "just",
    "like", "want", "need", "make", "please", "does", "will", "also", "some", "code", "file",
    "files", "work", "using", "used", "prefer",
];

/// The questions of the story's last answer.
pub fn open_questions(story: &Story) -> Vec<Statement> {
    let Some(last) = story.turns.iter().rposition(|turn| matches!(turn.what, TurnText::Answer(_)))
    else {
        return Vec::new();
    };
    let (before, after) = story.turns.split_at(last);
    let Some((turn, after)) = after.split_first() else {
        return Vec::new();
    };
    let replied = after.iter().any(|turn| matches!(turn.what, TurnText::Prompt(_)));
    let TurnText::Answer(answer) = &turn.what else {
        return Vec::new();
    };
    if replied || speech::is_no_answer(answer) {
        return Vec::new();
    }
    let asked: HashSet<String> = before
        .iter()
        .filter_map(|turn| match &turn.what {
            TurnText::Prompt(text) => Some(words(text)),
            _ => None,
        })
        .flatten()
        .collect();
    final_questions(answer)
        .into_iter()
        .filter(|question| words(question).iter().any(|word| asked.contains(word)))
        .take(MAX)
        .map(|question| Statement {
            text: inline::inert(&inline::shorten(&question, 240)),
            evidence: vec![Evidence::Event(turn.seq)],
        })
        .collect()
}

/// The questions at the end of an answer: nothing but further questions, offers and the options of a list may
/// follow them, else the answer itself has gone on.
fn final_questions(answer: &str) -> Vec<String> {
    let mut found = Vec::new();
    let paragraphs: Vec<&str> = answer.split("\n\n").filter(|p| !p.trim().is_empty()).collect();
    for paragraph in paragraphs.iter().rev() {
        let sentences = speech::sentences(paragraph);
        let asks = sentences.iter().any(|sentence| is_question(sentence));
        if !asks && paragraph.lines().all(is_list_item) {
            continue;
        }
        let mut goes_on = false;
        for sentence in sentences.into_iter().rev() {
            if is_offer(&sentence) {
                continue;
            }
            if !is_question(&sentence) {
                goes_on = true;
                break;
            }
            found.push(sentence);
        }
        if goes_on || !found.is_empty() {
            break;
        }
    }
    found.reverse();
    found
}

fn is_list_item(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(['-', '*', '+', '•']) || line.starts_with(|c: char| c.is_ascii_digit())
}

fn is_question(sentence: &str) -> bool {
    sentence.ends_with(['?', '？'])
}

fn is_offer(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    OFFERS.iter().any(|offer| lower.contains(offer))
}

/// The words that tell what a text is about: of four letters and more, or pairs of letters of a dense script.
fn words(text: &str) -> HashSet<String> {
    let mut words = HashSet::new();
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric() && c != '_') {
        let letters: Vec<char> = word.chars().collect();
        if word.is_ascii() {
            if letters.len() >= 4 && !COMMON.contains(&word) {
                // Plural and singular are one word.
                words.insert(word.trim_end_matches('s').to_owned());
            }
        } else {
            words.extend(letters.windows(2).map(|pair| pair.iter().collect::<String>()));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::fixture::StoryBuilder;

    fn asked(prompt: &str, answer: &str) -> Vec<String> {
        let story = StoryBuilder::new().prompt(prompt).answer(answer).build();
        open_questions(&story).into_iter().map(|question| question.text).collect()
    }

    #[test]
    fn a_question_about_the_request_is_open() {
        assert_eq!(
            asked(
                "Move the sessions to another database",
                "I read the schema.\n\nWhich database do you use in production?"
            ),
            ["Which database do you use in production?"]
        );
        assert_eq!(
            asked(
                "Move to another database",
                "Which database is the target?\n\n- Postgres\n- MySQL"
            ),
            ["Which database is the target?"]
        );
        assert_eq!(
            asked("데이터베이스를 옮겨 주세요", "어떤 데이터베이스로 옮기나요?"),
            ["어떤 데이터베이스로 옮기나요?"]
        );
    }

    #[test]
    fn offers_are_no_questions() {
        for offer in [
            "Moved the database. Shall I also move the sessions database?",
            "Should I update the database tests as well?",
            "Want me to drop the old database?",
            "Does the database look good to you? Let me know.",
            "데이터베이스도 옮겨 드릴까요?",
        ] {
            assert_eq!(
                asked("Move the database 데이터베이스", offer),
                Vec::<String>::new(),
                "{offer}"
            );
        }
    }

    #[test]
    fn a_question_that_the_answer_itself_goes_on_from_is_rhetoric() {
        let answer = "Why does the database lock?\n\nThe writer holds it.\n\nIt now waits.";
        assert_eq!(asked("Why does the database lock", answer), Vec::<String>::new());
    }

    #[test]
    fn a_question_about_something_else_is_left_out() {
        assert_eq!(
            asked("Move the database", "Moved. Which colour is nicest?"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_question_that_got_a_reply_is_not_open() {
        let story = StoryBuilder::new()
            .prompt("Move the database")
            .answer("Which database is the target?")
            .prompt("postgres")
            .build();
        assert_eq!(open_questions(&story), []);
    }
}
