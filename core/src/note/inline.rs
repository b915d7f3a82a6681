//! Foreign text inside a line of Markdown: made one line, without anything that could steer a terminal or a
//! reader's eye, and inert, so that no prompt can open a heading, a link, HTML or a second timeline.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// The text as one line: escape sequences of terminals, control, bidi and zero-width characters removed, white
/// space folded, and in Unicode's normal form C (AKB stores it so; a note must read back as it was written).
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in without_escapes(text).nfc() {
        if c.is_whitespace() {
            if !line.is_empty() && !line.ends_with(' ') {
                line.push(' ');
            }
        } else if !is_hidden(c) {
            line.push(c);
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// The text as one line of Markdown that shows the text and does nothing else. Not for the start of a line.
pub fn inert(text: &str) -> String {
    let line = one_line(text);
    let mut out = String::with_capacity(line.len() + 8);
    let mut before = ' ';
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        let after = rest.peek().copied().unwrap_or(' ');
        let escaped = match c {
            '\\' | '`' | '*' | '[' | ']' | '<' | '|' | '$' => true,
            // Inside a word an underscore is a letter like others.
            '_' => !(before.is_alphanumeric() && after.is_alphanumeric()),
            '~' => before == '~' || after == '~',
            '&' => after == '#' || after.is_ascii_alphabetic(),
            '!' => after == '[',
            // Breaks bare addresses: some readers make links of them, AKB an edge in its graph.
            '/' => before == ':' && after == '/',
            _ => false,
        };
        if escaped {
            out.push('\\');
        }
        out.push(c);
        before = c;
    }
    out
}

/// The text as a code span; backticks become apostrophes.
pub fn code(text: &str) -> String {
    format!("`{}`", one_line(text).replace('`', "'"))
}

/// A commit's hash as a code span; of a full one its beginning.
pub fn short_hash(hash: &str) -> String {
    code(hash.get(..12).unwrap_or(hash))
}

/// What a line of our own Markdown says, for places that hold plain text (a note's `summary`): code spans and
/// escapes undone.
pub fn plain(markdown: &str) -> String {
    let mut out = String::with_capacity(markdown.len());
    let mut in_code = false;
    let mut chars = markdown.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '`' => in_code = !in_code,
            '\\' if !in_code && chars.peek().is_some_and(char::is_ascii_punctuation) => {
                out.extend(chars.next());
            }
            _ => out.push(c),
        }
    }
    out
}

/// Cuts a line to at most `max` characters, at a word where one ends near enough, and marks the cut with `…`.
pub fn shorten(line: &str, max: usize) -> Cow<'_, str> {
    if line.chars().count() <= max {
        return Cow::Borrowed(line);
    }
    let keep: String = line.chars().take(max.saturating_sub(1)).collect();
    // The cut falls on a word's end when the next character is no letter of that word.
    let next = line.chars().nth(max.saturating_sub(1)).unwrap_or(' ');
    let word = match keep.rfind(' ') {
        Some(space) if !next.is_whitespace() && space * 2 > keep.len() => &keep[..space],
        _ => keep.as_str(),
    };
    let word = word.trim_end_matches(|c: char| c.is_whitespace() || ",;:.-–—(".contains(c));
    Cow::Owned(format!("{word}…"))
}

/// The text without ANSI escape sequences (CSI, OSC and the two-character ones).
fn without_escapes(text: &str) -> impl Iterator<Item = char> + '_ {
    let mut chars = text.chars().peekable();
    std::iter::from_fn(move || {
        loop {
            let c = chars.next()?;
            match c {
                '\u{1b}' => match chars.next() {
                    Some('[') => while chars.next_if(|c| !('@'..='~').contains(c)).is_some() {},
                    Some(']') => {
                        while chars.next_if(|c| !matches!(c, '\u{7}' | '\u{1b}' | '\n')).is_some() {
                        }
                    }
                    Some(_) => continue,
                    None => return None,
                },
                '\u{9b}' => while chars.next_if(|c| !('@'..='~').contains(c)).is_some() {},
                _ => return Some(c),
            }
            // The final byte of the sequence; an escape that follows an OSC is its terminator's first half.
            if chars.next_if_eq(&'\u{1b}').is_some() {
                chars.next_if_eq(&'\\');
            } else {
                chars.next_if(|c| *c != '\n');
            }
        }
    })
}

/// Characters that show nothing and can mislead: controls, bidi marks, zero-width ones, tags, the replacement
/// for bytes that were none.
fn is_hidden(c: char) -> bool {
    // A zero-width joiner holds emoji together and shapes letters of some scripts; it stays.
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffd}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_no_control_escape_or_bidi_character() {
        let hostile =
            "a\u{1b}[31mred\u{1b}[0m\r\n\tb\u{202e}c\u{200b}\0 \u{1b}]0;title\u{7}d\u{9b}1me";
        assert_eq!(one_line(hostile), "ared bc de");
        assert_eq!(one_line("x\u{1b}]8;;http://h\u{1b}\\link"), "xlink");
        assert_eq!(one_line("end\u{1b}"), "end");
    }

    #[test]
    fn decomposed_letters_are_written_composed() {
        assert_eq!(one_line("e\u{301} \u{1112}\u{1161}\u{11ab}"), "é 한");
    }

    #[test]
    fn foreign_markup_is_shown_and_not_obeyed() {
        let text = "`x` *b* _e_ snake_case [t](https://a.b) <img> | ~~s~~ &amp; a & b akb://v/x";
        assert_eq!(
            inert(text),
            r"\`x\` \*b\* \_e\_ snake_case \[t\](https:\//a.b) \<img> \| \~\~s\~\~ \&amp; a & b akb:\//v/x"
        );
    }

    #[test]
    fn plain_undoes_inert() {
        for text in ["`x` *b* [t](https://a.b) <img>", "a_b & c:\\d", "$1 ~~x~~"] {
            assert_eq!(plain(&inert(text)), text);
        }
        assert_eq!(plain("changed `src/a_b.rs`"), "changed src/a_b.rs");
    }

    #[test]
    fn a_cut_falls_between_words_and_counts_characters() {
        assert_eq!(shorten("fix the parser now", 15), "fix the parser…");
        assert_eq!(shorten("fix the parser", 14), "fix the parser");
        assert_eq!(shorten("파서가 빈 줄에서 멈춥니다", 8), "파서가 빈…");
        assert_eq!(shorten("aaaaaaaaaaaaaaaa", 5), "aaaa…");
    }

    #[test]
    fn a_code_span_cannot_be_left() {
        assert_eq!(code("a`b\nc"), "`a'b c`");
    }
}
