//! What `majordomusctl` prints: data on standard output, complaints on standard error, colour only at a terminal.

use std::io::{self, IsTerminal as _, Write as _};

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::config::Env;
use crate::printable::printable;

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

    /// Prints one line. Foreign text in it has gone through [`Output::paint`] or [`printable`].
    pub(super) fn line(self, text: &str) -> Result<()> {
        self.text(&format!("{text}\n"))
    }

    /// Colours a word, whoever wrote it.
    pub(super) fn paint(self, tone: Tone, text: &str) -> String {
        let text = printable(text);
        let code = match tone {
            Tone::Plain => return text.into_owned(),
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Faint => "2",
        };
        if self.has_colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into_owned() }
    }

    /// Prints rows in aligned columns; the last column is free. Widths are those of the characters on a terminal.
    pub(super) fn table(self, header: &[&str], rows: Vec<Vec<Cell>>) -> Result<()> {
        let header = header.iter().map(|name| Cell::new(Tone::Faint, name)).collect();
        let rows: Vec<Vec<Cell>> = std::iter::once(header).chain(rows).collect();
        let mut widths: Vec<usize> = Vec::new();
        for row in &rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        let mut text = String::new();
        for row in &rows {
            for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
                text.push_str(&self.paint(cell.tone, &cell.text));
                if index + 1 < row.len() {
                    // Colour codes take no room: the padding counts characters.
                    text.push_str(&" ".repeat(width.saturating_sub(cell.width()) + 2));
                }
            }
            text.push('\n');
        }
        self.text(&text)
    }
}

/// A field of a table.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    tone: Tone,
    text: String,
}

impl Cell {
    pub(super) fn new(tone: Tone, text: &str) -> Self {
        Self { tone, text: printable(text).into_owned() }
    }

    fn width(&self) -> usize {
        unicode_width::UnicodeWidthStr::width(self.text.as_str())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::new(Tone::Plain, &text)
    }
}

/// Says on standard error what went wrong, in one line.
pub(super) fn complain(line: &str) {
    // Nothing can be done when standard error is gone; the exit code still tells.
    if writeln!(io::stderr().lock(), "majordomusctl: {}", printable(line)).is_err() {
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
