//! `majordomusctl sessions`

use anyhow::{Context as _, Result};
use jiff::{SignedDuration, Timestamp};
use majordomus_core::ids::Tool;
use serde_json::json;

use super::Context;
use super::output::{Cell, Tone};
use crate::clock;
use crate::config::parse_duration;
use crate::failure::{Exit, Failure};
use crate::view::{self, SessionFilter, SessionView};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Only sessions with an open episode
    #[arg(long)]
    open: bool,
    /// Only sessions of this project
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
    /// Only sessions active since then: 2h, 7d, 2026-11-30
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only sessions of this tool
    #[arg(long, value_name = "TOOL", value_parser = ["claude", "codex"])]
    tool: Option<String>,
}

pub(super) async fn run(context: &Context, arguments: Arguments) -> Result<Exit> {
    let filter = SessionFilter {
        open: arguments.open,
        project: arguments.project,
        since: arguments.since.as_deref().map(|text| since(text, clock::now())).transpose()?,
        tool: arguments.tool.as_deref().and_then(Tool::parse),
    };
    let params = json!(filter);
    let sessions: Vec<SessionView> = context
        .read("sessions.list", params, async |reader| view::sessions(reader, &filter).await)
        .await?;
    if context.output.json {
        context.output.document(&sessions)?;
        return Ok(Exit::Ok);
    }
    let rows: Vec<Vec<Cell>> = sessions.iter().map(row).collect();
    if rows.is_empty() {
        context.output.line("no sessions")?;
    } else {
        context.output.table(
            &[
                "SESSION", "TOOL", "STATE", "LAST", "PROMPTS", "FILES", "COMMITS", "PROJECT",
                "TITLE",
            ],
            rows,
        )?;
    }
    Ok(Exit::Ok)
}

fn row(session: &SessionView) -> Vec<Cell> {
    let tone = if session.state == "open" { Tone::Good } else { Tone::Plain };
    let last = session.last_at.as_deref().unwrap_or("-");
    vec![
        session.id.clone().into(),
        session.tool.to_string().into(),
        Cell::new(tone, &session.state),
        last.chars().take(16).collect::<String>().replace('T', " ").into(),
        session.prompts.to_string().into(),
        session.files_written.len().to_string().into(),
        session.commits.len().to_string().into(),
        session.project.clone().unwrap_or_else(|| "-".to_owned()).into(),
        session.title.clone().unwrap_or_default().into(),
    ]
}

/// An instant from `2h`, `7d` (before now), a date, or a time.
fn since(text: &str, now: Timestamp) -> Result<Timestamp> {
    if let Some(duration) = parse_duration(text) {
        let duration = SignedDuration::try_from(duration).context("the duration is too long")?;
        return now.checked_sub(duration).context("the duration is too long");
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    text.parse::<jiff::civil::Date>()
        .ok()
        .and_then(|date| jiff::tz::TimeZone::system().to_timestamp(date.at(0, 0, 0, 0)).ok())
        .ok_or_else(|| Failure::usage(format!("{text} is no time: 2h, 7d, 2026-11-30 are")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_dates_and_times_are_understood() {
        let now: Timestamp = "2026-12-01T12:00:00Z".parse().expect("a time");
        assert_eq!(since("2h", now).expect("a time").to_string(), "2026-12-01T10:00:00Z");
        assert_eq!(since("7d", now).expect("a time").to_string(), "2026-11-24T12:00:00Z");
        assert!(since("2026-11-30", now).is_ok());
        assert!(since("2026-11-30T01:00:00+09:00", now).is_ok());
        let error = since("yesterdayish", now).expect_err("no time");
        assert_eq!(crate::failure::exit_of(&error), Exit::Usage);
    }
}
