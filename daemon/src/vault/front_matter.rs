//! The metadata at the head of a note's file. It is written by us and edited by people, so it is read
//! tolerantly and changed sparingly: on an update only the keys whose value changed are written anew, everything
//! else (unknown keys, comments, order, a person's own quoting) keeps its bytes.
//!
//! Invariant: whatever the head looks like, no text of the body is lost. Lines that cannot be metadata are body.

/// Metadata as it stands in a file, key by key, with its bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrontMatter {
    blocks: Vec<Block>,
}

/// A key with its lines, or lines that belong to no key (comments, blank lines).
#[derive(Clone, Debug, PartialEq)]
struct Block {
    key: Option<String>,
    /// Whole lines, each with its `\n`.
    raw: String,
}

/// What a key may hold here.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// One string.
    Text(&'a str),
    /// A list of strings.
    List(&'a [String]),
}

impl FrontMatter {
    /// Splits a file into its metadata and its body. A file without front matter is all body. A head that is
    /// not closed ends where its lines stop looking like metadata.
    pub fn split(file: &str) -> (Self, &str) {
        let text = file.strip_prefix('\u{feff}').unwrap_or(file);
        let Some(first) = text.split_inclusive('\n').next().filter(|line| line.trim_end() == "---")
        else {
            return (Self::default(), text);
        };
        let inner = &text[first.len()..];
        let (head, body) = closed_head(inner).unwrap_or_else(|| inner.split_at(open_head(inner)));
        (Self { blocks: blocks(head) }, body)
    }

    /// The string of a key; an empty one if the key holds something else.
    pub fn text(&self, key: &str) -> Option<String> {
        let block = self.block(key)?;
        let (first, more) = value_lines(&block.raw);
        Some(match first.chars().next() {
            Some('|' | '>') => more.map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned(),
            Some('"' | '\'') => scalar(first),
            // A plain scalar may go on in indented lines.
            _ => {
                let rest = more.map(str::trim).filter(|line| !line.is_empty());
                let lines: Vec<String> =
                    std::iter::once(scalar(first)).chain(rest.map(str::to_owned)).collect();
                lines.join(" ").trim().to_owned()
            }
        })
    }

    /// The strings of a key: a block list, a list in brackets, or a single string.
    pub fn list(&self, key: &str) -> Option<Vec<String>> {
        let block = self.block(key)?;
        let (first, more) = value_lines(&block.raw);
        if first.starts_with('[') {
            let whole =
                std::iter::once(first).chain(more.map(str::trim)).collect::<Vec<_>>().join(" ");
            return Some(flow_items(&whole));
        }
        let items: Vec<String> = more
            .filter_map(|line| {
                line.trim()
                    .strip_prefix('-')
                    .filter(|item| item.is_empty() || item.starts_with(' '))
            })
            .map(|item| scalar(item.trim()))
            .filter(|item| !item.is_empty())
            .collect();
        let single = scalar(first);
        Some(if items.is_empty() && !single.is_empty() { vec![single] } else { items })
    }

    /// Sets a key, unless it says so already. A new key comes last.
    pub fn set(&mut self, key: &str, value: Value<'_>) {
        let same = match value {
            Value::Text(text) => self.text(key).as_deref() == Some(text),
            Value::List(items) => self.list(key).as_deref() == Some(items),
        };
        if same {
            return;
        }
        let mut raw = String::new();
        match value {
            Value::Text(text) => raw = format!("{key}: {}\n", quote(text)),
            Value::List([]) => raw = format!("{key}: []\n"),
            Value::List(items) => {
                raw.push_str(key);
                raw.push_str(":\n");
                for item in items {
                    raw.push_str("  - ");
                    raw.push_str(&quote(item));
                    raw.push('\n');
                }
            }
        }
        match self.blocks.iter_mut().find(|block| block.key.as_deref() == Some(key)) {
            Some(block) => block.raw = raw,
            None => self.blocks.push(Block { key: Some(key.to_owned()), raw }),
        }
    }

    /// The file: metadata, then the body.
    pub fn file(&self, body: &str) -> String {
        let mut file = "---\n".to_owned();
        for block in &self.blocks {
            file.push_str(&block.raw);
        }
        file.push_str("---\n\n");
        file.push_str(body.trim());
        file.push('\n');
        file
    }

    fn block(&self, key: &str) -> Option<&Block> {
        self.blocks.iter().find(|block| block.key.as_deref() == Some(key))
    }
}

/// The head up to its closing line, and the rest; `None` when it is not closed or holds what is no metadata.
fn closed_head(inner: &str) -> Option<(&str, &str)> {
    let mut end = 0;
    let mut after_blank = false;
    for line in inner.split_inclusive('\n') {
        if matches!(line.trim_end(), "---" | "...") {
            return Some((&inner[..end], &inner[end + line.len()..]));
        }
        // A `# ` after a blank line is a note's title, not a comment.
        if !is_metadata(line) || (after_blank && line.starts_with('#')) {
            return None;
        }
        after_blank = line.trim().is_empty();
        end += line.len();
    }
    None
}

/// Where an unclosed head ends: before the first blank line or line that is no metadata.
fn open_head(inner: &str) -> usize {
    let lines = inner.split_inclusive('\n');
    let head = lines
        .take_while(|line| !line.trim().is_empty() && !line.starts_with('#') && is_metadata(line));
    head.map(str::len).sum()
}

fn is_metadata(line: &str) -> bool {
    let text = line.trim_end();
    text.is_empty()
        || text.starts_with([' ', '\t', '#'])
        || text == "-"
        || text.starts_with("- ")
        || key(text).is_some()
}

/// The key that a line begins.
fn key(line: &str) -> Option<&str> {
    let (key, rest) = line.split_once(':')?;
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let key = key.trim_end();
    let fits = key.starts_with(|c: char| c.is_alphabetic() || c == '_') && key.chars().all(plain);
    (fits && (rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))).then_some(key)
}

fn blocks(head: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for line in head.split_inclusive('\n') {
        let belongs = line.starts_with([' ', '\t', '-']) || line.trim().is_empty();
        let newline = if line.ends_with('\n') { "" } else { "\n" };
        match blocks.last_mut() {
            Some(last) if belongs => {
                last.raw.push_str(line);
                last.raw.push_str(newline);
            }
            _ => blocks
                .push(Block { key: key(line).map(str::to_owned), raw: format!("{line}{newline}") }),
        }
    }
    blocks
}

/// What stands after the key on its line, and the lines after it.
fn value_lines(raw: &str) -> (&str, impl Iterator<Item = &str>) {
    let mut lines = raw.lines();
    let first =
        lines.next().and_then(|line| line.split_once(':')).map_or("", |(_, rest)| rest.trim());
    (first, lines)
}

/// Reads a scalar: double-quoted, single-quoted, or plain without its comment.
fn scalar(text: &str) -> String {
    match text.chars().next() {
        Some('"') => unescape(&text[1..]),
        Some('\'') => {
            let mut out = String::new();
            let mut chars = text[1..].chars().peekable();
            while let Some(c) = chars.next() {
                if c == '\'' && chars.next_if_eq(&'\'').is_none() {
                    break;
                }
                out.push(c);
            }
            out
        }
        Some('#') => String::new(),
        _ => text.split(" #").next().unwrap_or_default().trim_end().to_owned(),
    }
}

/// The inside of a double-quoted scalar, up to its closing quote.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('0') => out.push('\0'),
                Some(width @ ('x' | 'u' | 'U')) => {
                    let digits = match width {
                        'x' => 2,
                        'u' => 4,
                        _ => 8,
                    };
                    let hex: String = chars.by_ref().take(digits).collect();
                    let code = u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32);
                    out.push(code.unwrap_or(char::REPLACEMENT_CHARACTER));
                }
                Some(other) => out.push(other),
                None => {}
            },
            _ => out.push(c),
        }
    }
    out
}

/// The strings of `[a, "b, c", 'd']`.
fn flow_items(text: &str) -> Vec<String> {
    let inner = text.trim_start_matches('[');
    let mut items = Vec::new();
    let mut item = String::new();
    let mut quote: Option<char> = None;
    let mut escaped = false;
    for c in inner.chars() {
        match quote {
            Some(mark) => {
                if c == mark && !escaped {
                    quote = None;
                }
                escaped = mark == '"' && c == '\\' && !escaped;
                item.push(c);
            }
            None if c == ']' => break,
            None if c == ',' => items.push(std::mem::take(&mut item)),
            None => {
                if matches!(c, '"' | '\'') && item.trim().is_empty() {
                    quote = Some(c);
                }
                item.push(c);
            }
        }
    }
    items.push(item);
    items.iter().map(|item| scalar(item.trim())).filter(|item| !item.is_empty()).collect()
}

/// A double-quoted scalar on one line, valid in YAML and JSON alike.
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                out.push_str("\\u");
                for shift in [12, 8, 4, 0] {
                    let digit = (u32::from(c) >> shift) & 15;
                    out.push(char::from_digit(digit, 16).unwrap_or('0'));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hand_written_metadata_is_understood() {
        let file = "---\r\ntitle: Mine: a 'note' # why\ntags: [a, \"b, c\", 'd''e']\nsummary: >\n  two\n  lines\nstatus: 'active'\ndepends_on:\n- x\n-  \"y\"\n---\nBody\n";
        let (head, body) = FrontMatter::split(file);
        assert_eq!(head.text("title").as_deref(), Some("Mine: a 'note'"));
        assert_eq!(head.list("tags"), Some(vec!["a".into(), "b, c".into(), "d'e".into()]));
        assert_eq!(head.text("summary").as_deref(), Some("two lines"));
        assert_eq!(head.text("status").as_deref(), Some("active"));
        assert_eq!(head.list("depends_on"), Some(vec!["x".into(), "y".into()]));
        assert_eq!(head.text("nothing"), None);
        assert_eq!(body, "Body\n");
    }

    #[test]
    fn what_did_not_change_keeps_its_bytes() {
        let file = "---\n# mine\naliases:\n  - {a: 1}\ntitle: 'T'\nrating: 5\n---\n\nBody\n";
        let (mut head, body) = FrontMatter::split(file);
        head.set("title", Value::Text("T"));
        assert_eq!(head.file(body), file);
        head.set("title", Value::Text("New \"T\""));
        assert_eq!(head.file(body), file.replace("'T'", "\"New \\\"T\\\"\""));
    }

    #[test]
    fn a_broken_head_does_not_eat_the_body() {
        for (file, body) in [
            ("---\ntitle: x\n# Title\n\n> **Summary:** s\n\n---\n\n## Timeline\n", "# Title"),
            ("---\ntitle: x\n\n# Title\n\ntext\n\n---\n\n## Timeline\n", "# Title"),
            ("---\ntitle: x\nA sentence.\n---\n", "A sentence."),
            ("---\n\n## Timeline\n\n- x", "## Timeline"),
            ("# Title\n\n---\n", "# Title"),
        ] {
            let (head, rest) = FrontMatter::split(file);
            assert!(rest.trim_start().starts_with(body), "{file:?} gave {rest:?}");
            assert!(head.text("title").is_none_or(|title| title == "x"));
            assert!(file.ends_with(rest));
        }
    }

    #[test]
    fn a_head_that_ends_with_the_file_is_no_body() {
        assert_eq!(FrontMatter::split("---\ntitle: x\n---").1, "");
        assert_eq!(FrontMatter::split("---").1, "");
        assert_eq!(FrontMatter::split("").1, "");
    }

    proptest! {
        #[test]
        fn what_is_set_is_read_back(title in any::<String>(), tags in prop::collection::vec("\\PC{1,8}", 0..4), body in any::<String>()) {
            let mut head = FrontMatter::default();
            head.set("title", Value::Text(&title));
            head.set("tags", Value::List(&tags));
            let file = head.file(&body);
            let (read, rest) = FrontMatter::split(&file);
            prop_assert_eq!(read.text("title"), Some(title));
            prop_assert_eq!(read.list("tags"), Some(tags));
            prop_assert_eq!(rest.trim(), body.trim());
            prop_assert_eq!(read.file(rest), file);
        }

        #[test]
        fn every_line_is_metadata_or_body(lines in prop::collection::vec(prop_oneof![
            Just("---".to_owned()), Just(String::new()), Just("# T".to_owned()), Just("k: v".to_owned()),
            Just("- x".to_owned()), Just("  y".to_owned()), Just("text".to_owned()), Just("## Timeline".to_owned()),
        ], 0..12)) {
            let file = lines.join("\n");
            let (head, body) = FrontMatter::split(&file);
            prop_assert!(file.ends_with(body));
            for line in lines.iter().filter(|line| !line.is_empty() && *line != "---") {
                let kept = head.blocks.iter().any(|block| block.raw.contains(line.as_str())) || body.contains(line.as_str());
                prop_assert!(kept, "{line:?}");
            }
        }
    }
}
