//! What a person at a terminal sees of the daemon: the progress of the first catch-up, then a line per closed
//! session and per note. Under a supervisor the same lines go to the log.

use std::io::{IsTerminal as _, Write as _};

use indicatif::{ProgressBar, ProgressStyle};

/// Where the lines go.
#[derive(Debug)]
pub struct Console {
    is_terminal: bool,
    bar: Option<ProgressBar>,
}

/// Files, rate and the time that is left; bytes are what the bar counts.
const TEMPLATE: &str =
    "reading {msg}  {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left  {wide_bar}";

impl Console {
    /// Looks whether standard error is a terminal.
    pub fn new() -> Self {
        Self { is_terminal: std::io::stderr().is_terminal(), bar: None }
    }

    /// Says something.
    pub fn say(&self, line: &str) {
        let line = crate::printable::printable(line);
        match &self.bar {
            Some(bar) if self.is_terminal => bar.println(&*line),
            None if self.is_terminal => {
                if let Err(error) = writeln!(std::io::stderr().lock(), "{line}") {
                    tracing::debug!("the terminal is gone: {error}");
                }
            }
            _ => tracing::info!("{line}"),
        }
    }

    /// A catch-up over `bytes` begins.
    pub fn begin(&mut self, bytes: u64) {
        if self.is_terminal {
            let bar = ProgressBar::new(bytes);
            if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
                bar.set_style(style);
            }
            self.bar = Some(bar);
        }
    }

    /// It has come this far.
    pub fn advance(&self, files: u64, of_files: usize, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{files}/{of_files} files"));
            bar.set_position(bytes);
        }
    }

    /// It is over.
    pub fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Default for Console {
    fn default() -> Self {
        Self::new()
    }
}
