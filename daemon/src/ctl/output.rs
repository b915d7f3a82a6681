//! What `majordomusctl` prints: data on standard output, complaints on standard error, colour only at a terminal.

use std::io::{self, IsTerminal as _, Write as _};

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::config::Env;

/// Prints for people or for programs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    /// JSON was asked for.
    pub json: bool,
    has_colour: bool,
}

/// Emphasis, by meaning.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tone {
    Plain,
    Good,
    Bad,
    Faint,
}

impl Output {
    pub(super) fn new(json: bool, env: &Env) -> Self {
        let wants_none = env.var("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { json, has_colour: !json && !wants_none && io::stdout().is_terminal() }
    }

    /// Prints a document as JSON.
    pub(super) fn document<T: Serialize>(self, value: &T) -> Result<()> {
        let mut text = serde_json::to_string_pretty(value).context("cannot write JSON")?;
        text.push('\n');
        self.text(&text)
    }

    /// Prints text as it is.
    #[expect(clippy::unused_self, reason = "one way to print")]
    pub(super) fn text(self, text: &str) -> Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).context("cannot print")
    }

    /// Prints one line.
    pub(super) fn line(self, text: &str) -> Result<()> {
        self.text(&format!("{text}\n"))
    }

    /// Colours a word.
    pub(super) fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Faint => "2",
        };
        if self.has_colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Prints rows in aligned columns; the last column is free. Widths are those of the characters on a terminal.
    pub(super) fn table(self, header: &[&str], rows: &[Vec<String>]) -> Result<()> {
        use unicode_width::UnicodeWidthStr as _;

        let mut widths: Vec<usize> = header.iter().map(|cell| cell.width()).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        let render = |cells: &[&str]| {
            let mut line = String::new();
            for (index, cell) in cells.iter().enumerate() {
                line.push_str(cell);
                if index + 1 < cells.len() {
                    let width = widths.get(index).copied().unwrap_or(0);
                    line.push_str(&" ".repeat(width.saturating_sub(cell.width()) + 2));
                }
            }
            line
        };
        let mut text = format!("{}\n", self.paint(Tone::Faint, &render(header)));
        for row in rows {
            let cells: Vec<&str> = row.iter().map(String::as_str).collect();
            text.push_str(&render(&cells));
            text.push('\n');
        }
        self.text(&text)
    }
}

/// Says on standard error what went wrong, in one line.
pub(super) fn complain(line: &str) {
    // Nothing can be done when standard error is gone; the exit code still tells.
    if writeln!(io::stderr().lock(), "majordomusctl: {line}").is_err() {
        tracing::debug!("standard error is closed");
    }
}

/// Whether an error is that of a closed pipe.
pub(super) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}
