//! What people and models say, cut to its gist: sentences, titles, and the phrases that say nothing.
//! The tables hold English, Korean, Japanese, Chinese and German, the languages seen most in real sessions.

use crate::note::inline;

/// Openings of answers that carry no content of their own.
const EMPTY_OPENERS: &[&str] = &[
    "done",
    "perfect",
    "great",
    "excellent",
    "sure",
    "certainly",
    "of course",
    "absolutely",
    "got it",
    "all set",
    "okay",
    "ok",
    "good",
    "you're right",
    "you are right",
    "you're absolutely right",
    "thanks",
    "thank you",
    "let me",
    "now let me",
    "let's",
    "i'll",
    "i will",
    "i'm going to",
    "i am going to",
    "now i",
    "first,",
    "next,",
    "good question",
    "understood",
    "here's",
    "here is",
    "here are",
    "sorry",
    "apologies",
    "i apologize",
    "hello",
    "hi",
    "no response requested",
    "no further action",
    "if you",
    "feel free",
    "let me know",
    "happy to",
    "네",
    "알겠습니다",
    "좋습니다",
    "완료",
    "はい",
    "承知",
    "了解",
    "好的",
    "明白",
    "gern",
    "klar",
    "alles klar",
];

/// Beginnings of texts that a tool puts where an answer should be: provider errors and refusals.
const NO_ANSWERS: &[&str] = &[
    "api error",
    "claude ai usage limit",
    "you've hit your",
    "you have hit your",
    "prompt is too long",
    "no response requested",
    "[request interrupted",
    "credit balance is too low",
    "invalid api key",
    "please run /login",
    "stream disconnected",
    "i can't help with",
    "i cannot help with",
    "i'm unable to help",
    "i can’t help with",
    "conversation too long",
    "rate limit",
    "overloaded",
    "unexpected status",
];

/// Words of greeting, in lower case: a sentence of few words that begins with one asks nothing.
const GREETINGS: &[&str] = &[
    "hi",
    "hey",
    "hello",
    "yo",
    "good morning",
    "good evening",
    "안녕",
    "안녕하세요",
    "こんにちは",
    "おはよう",
    "你好",
    "您好",
    "hallo",
    "moin",
    "bonjour",
    "hola",
    "ciao",
    "привет",
];

/// Words, in lower case, with which a sentence goes on from something that was left out before it.
const CONNECTIVES: &[&str] =
    &["or", "and", "then", "but", "so", "which", "where", "with", "because"];

/// Words before a full stop that do not end a sentence.
const ABBREVIATIONS: &[&str] = &[
    "e.g", "i.e", "etc", "vs", "cf", "ca", "approx", "mr", "mrs", "dr", "st", "z.b", "bzw", "usw",
];

/// Whether a tool or provider wrote this in place of an answer.
pub fn is_no_answer(text: &str) -> bool {
    let start = inline::one_line(text).to_lowercase();
    NO_ANSWERS.iter().any(|known| start.starts_with(known))
}

/// A title: what the text's first sentence that says something says, plain, at most 80 characters.
pub fn title(text: &str) -> Option<String> {
    let gist = gist_from(&prompt_sentences(text), 80)?;
    let title = gist.trim_end_matches(['.', '。', ':', '：', ',', ';', ' ']);
    title.chars().any(char::is_alphanumeric).then(|| title.to_owned())
}

/// Whether a title or gist is no more than a greeting or a single word.
pub fn is_weak(text: &str) -> bool {
    weight(text) < 2
}

/// What a prompt asks: its first sentences, plain, up to `max` characters.
pub fn prompt_gist(text: &str, max: usize) -> Option<String> {
    let sentences = prompt_sentences(text);
    // Quoted from its beginning: what was asked first is not to be left out unseen.
    let start = sentences.iter().position(|s| !is_greeting(s)).unwrap_or(0);
    let sentences = sentences.get(start..)?;
    let mut gist = inline::shorten(sentences.first()?, max).into_owned();
    for more in sentences.iter().skip(1) {
        let room = max.saturating_sub(gist.chars().count() + 1);
        if more.chars().count() > room {
            // Little was said so far: better the beginning of the next sentence than nothing of it.
            if weight(&gist) < 4 && room > 40 {
                gist = format!("{gist} {}", inline::shorten(more, room));
            }
            break;
        }
        gist.push(' ');
        gist.push_str(more);
    }
    Some(gist)
}

fn is_greeting(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    let greets = GREETINGS.iter().any(|word| {
        let rest = lower.strip_prefix(word);
        rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    });
    greets && weight(sentence) < 4
}

/// The first sentence that says something, with the one that it announces ("Implement this plan: …").
fn gist_from(sentences: &[String], max: usize) -> Option<String> {
    let says = |least| sentences.iter().position(|s| weight(s) >= least && !is_greeting(s));
    let first = says(2).or_else(|| says(1)).unwrap_or(0);
    let mut gist = sentences.get(first)?.clone();
    // A label is told with what it stands over.
    let label = weight(&gist) < 4 && !gist.ends_with(['.', '!', '?', '。', '！', '？', ':', '：']);
    if let Some(next) = sentences.get(first + 1).filter(|_| label || gist.ends_with([':', '：'])) {
        gist.push_str(if label { ": " } else { " " });
        gist.push_str(next);
    }
    Some(inline::shorten(&gist, max).into_owned())
}

/// What an answer says: its first sentence that is neither an opener, an announcement, an offer, a question nor
/// a piece of one; one of its prose rather than one out of a list, and out of a list only a whole sentence.
pub fn answer_gist(text: &str, max: usize) -> Option<String> {
    if is_no_answer(text) {
        return None;
    }
    let blocks = blocks(text);
    let found = [BlockKind::Prose, BlockKind::Item].into_iter().find_map(|kind| {
        let of_kind = blocks.iter().filter(|block| block.kind == kind);
        // One name out of a list of names is not what the list says.
        let whole = |sentence: &String| kind == BlockKind::Prose || ends_as_sentence(sentence);
        of_kind
            .flat_map(|block| split(&block.text))
            .find(|sentence| says_something(sentence) && whole(sentence))
    })?;
    Some(inline::shorten(&found, max).into_owned())
}

fn says_something(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    let opener = EMPTY_OPENERS.iter().any(|opener| {
        let rest = lower.strip_prefix(opener);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    });
    weight(sentence) >= 6
        && !sentence.ends_with([':', '：', '?', '？', '…'])
        && !opener
        && !is_piece(sentence)
}

fn ends_as_sentence(sentence: &str) -> bool {
    sentence
        .trim_end_matches(['"', '”', '\'', '’', ')', '）', '」'])
        .ends_with(['.', '!', '。', '！'])
}

/// Whether a sentence is the rest of one whose beginning was left out, such as a code block.
fn is_piece(sentence: &str) -> bool {
    let first = sentence.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let depth = sentence.chars().try_fold(0_u32, |depth, c| match c {
        '(' | '（' => Some(depth + 1),
        ')' | '）' => depth.checked_sub(1),
        _ => Some(depth),
    });
    CONNECTIVES.contains(&first) || depth.is_none()
}

/// The sentences of an answer as plain lines: code blocks, headings, tables, rules and images left out, list
/// marks, emphasis and link targets taken off.
pub fn sentences(text: &str) -> Vec<String> {
    let blocks = blocks(text);
    let spoken = blocks.iter().filter(|block| block.kind != BlockKind::Heading);
    spoken.flat_map(|block| split(&block.text)).collect()
}

/// The sentences of a prompt: its first heading counts, it names what is asked. A prompt that is nothing but code
/// still has words.
fn prompt_sentences(text: &str) -> Vec<String> {
    let text = filled_in(text).unwrap_or(text);
    let mut blocks = blocks(text);
    let mut named = false;
    blocks.retain(|block| block.kind != BlockKind::Heading || !std::mem::replace(&mut named, true));
    let found: Vec<String> = blocks.iter().flat_map(|block| split(&block.text)).collect();
    if found.is_empty() {
        return split(&plain_inline(&inline::one_line(&text.replace("```", " "))));
    }
    found
}

/// What the user filled into a template that begins with the block for it (`## User Input`, as Spec Kit's prompts
/// do): the rest are the template's words.
fn filled_in(text: &str) -> Option<&str> {
    let rest = text.trim_start().strip_prefix("## User Input")?.trim_start().strip_prefix("```")?;
    let (_, rest) = rest.split_once('\n')?;
    let (input, _) = rest.split_once("```")?;
    let input = input.trim();
    (input.chars().any(char::is_alphanumeric) && !input.starts_with('$')).then_some(input)
}

/// How much a sentence says: words, where a letter of a script without spaces counts as half a word. A path or
/// an address is a word.
fn weight(sentence: &str) -> usize {
    let dense = sentence.chars().filter(|c| is_dense(*c)).count();
    let words = sentence
        .split_whitespace()
        .filter(|word| word.chars().any(char::is_alphanumeric) && !word.chars().any(is_dense));
    // Four words of English, or four of two letters each in a denser script.
    words.count() + dense / 2
}

fn is_dense(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{11ff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}

/// A paragraph, list item or heading as one plain line.
struct Block {
    text: String,
    kind: BlockKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Prose,
    Item,
    Heading,
}

/// The text's paragraphs, list items and headings.
fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut open = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(mark) = fence {
            if trimmed.starts_with(mark) {
                fence = None;
            }
            continue;
        }
        fence = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        let rule = trimmed.chars().all(|c| matches!(c, '-' | '=' | '*' | '_' | '─' | ' '));
        if fence.is_some() || rule || trimmed.starts_with('|') || trimmed.starts_with("![") {
            open = false;
            continue;
        }
        let unmarked = trimmed.trim_start_matches('#');
        let heading = unmarked.len() < trimmed.len() && unmarked.starts_with(' ');
        let content = if heading { unmarked.trim_start() } else { without_list_mark(trimmed) };
        let kind = match content.len() == trimmed.len() {
            _ if heading => BlockKind::Heading,
            true => BlockKind::Prose,
            false => BlockKind::Item,
        };
        let line = plain_inline(&inline::one_line(content));
        if line.is_empty() {
            open = false;
            continue;
        }
        // A hard-wrapped line goes on in small letters, or with a name after a word that needs one.
        let goes_on = open
            && kind == BlockKind::Prose
            && (line.trim_start_matches(['@', '"', '(']).starts_with(char::is_lowercase)
                || blocks.last().is_some_and(|last| wants_more(&last.text)))
            && blocks.last().is_some_and(|last| !last.text.ends_with(['.', '!', '?', ':']));
        match blocks.last_mut() {
            Some(last) if goes_on => {
                last.text.push(' ');
                last.text.push_str(&line);
            }
            _ => blocks.push(Block { text: line, kind }),
        }
        open = !heading;
    }
    blocks
}

/// Whether a line cannot end with its last word.
fn wants_more(line: &str) -> bool {
    const OPEN: &[&str] = &[
        "a", "an", "the", "of", "to", "from", "with", "for", "and", "or", "into", "than", "my",
        "our", "your", "its",
    ];
    line.rsplit(' ').next().is_some_and(|word| OPEN.contains(&word)) && line.contains(' ')
}

/// A line without the mark of a list item or quotation.
fn without_list_mark(line: &str) -> &str {
    let mut line = line;
    for mark in ["> ", "- [ ] ", "- [x] ", "- ", "* ", "+ ", "• "] {
        line = line.strip_prefix(mark).unwrap_or(line).trim_start();
    }
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = line.get(digits..).unwrap_or_default();
    match rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") ")) {
        Some(item) if (1..=2).contains(&digits) => item.trim_start(),
        _ => line,
    }
}

/// Takes off emphasis, code marks and link targets.
fn plain_inline(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(open) = rest.find('[') {
        let (before, link) = rest.split_at(open);
        out.push_str(before);
        let parts = link.find("](").and_then(|middle| {
            let end = link.get(middle..)?.find(')')? + middle;
            Some((link.get(1..middle)?, link.get(end + 1..)?))
        });
        match parts {
            Some((label, after)) if !label.contains('[') => {
                out.push_str(label);
                rest = after;
            }
            _ => {
                out.push('[');
                rest = link.get(1..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    out.replace("**", "").replace('`', "").trim().to_owned()
}

/// Splits a line at the ends of its sentences.
fn split(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        let ends = match c {
            '。' | '！' | '？' => true,
            '!' | '?' => next.is_none_or(char::is_whitespace),
            '.' => next.is_none_or(char::is_whitespace) && !is_abbreviation(&line[start..at]),
            _ => false,
        };
        if ends {
            let end = at + c.len_utf8();
            found.push(line[start..end].trim().to_owned());
            start = end;
        }
    }
    found.push(line[start..].trim().to_owned());
    found.retain(|sentence| sentence.chars().any(char::is_alphanumeric));
    found
}

fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit([' ', '(']).next().unwrap_or_default().to_lowercase();
    ABBREVIATIONS.contains(&word.as_str())
}

#[cfg(test)]
mod tests;
