//! Foreign text on its way to a terminal or a log: names of files, projects and sessions are chosen by others and
//! may hold escape sequences or line ends.

use std::borrow::Cow;

/// Control characters, line separators, and those that turn the direction of writing.
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// The text as one line that cannot paint on a terminal: what is unprintable is written as `\n` or `\u{1b}`.
pub fn printable(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// The same for a text of several lines.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

fn escape(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_bad = |c: char| is_unprintable(c) && !is_kept(c);
    if !text.contains(is_bad) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_bad(c) {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_paint_on_a_terminal_is_written_out() {
        for (text, expected) in [
            ("plain ünïcode", "plain ünïcode"),
            ("a\u{1b}[31mb", "a\\u{1b}[31mb"),
            ("a\nb\r", "a\\nb\\r"),
            ("a\u{9b}31m\u{202e}b", "a\\u{9b}31m\\u{202e}b"),
        ] {
            assert_eq!(printable(text), expected);
        }
        assert_eq!(printable_lines("a\n\tb\u{7}"), "a\n\tb\\u{7}");
    }
}
