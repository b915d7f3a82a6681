//! `majordomusctl config`

use anyhow::Result;
use clap::Subcommand;
use serde_json::json;

use super::output::{Cell, Output, Tone, complain};
use crate::config::{Env, Flags, Loaded, check, unused};
use crate::failure::{Exit, Failure};
use crate::paths::Paths;

#[derive(Clone, Copy, Debug, Subcommand)]
pub(super) enum Command {
    /// The effective configuration, with where each value comes from
    Show,
    /// Check the configuration; exit 5 if it is invalid
    Check,
}

pub(super) fn run(command: Command, env: &Env, flags: &Flags, output: Output) -> Result<Exit> {
    match command {
        Command::Show => show(env, flags, output),
        Command::Check => check_all(env, flags, output),
    }
}

fn show(env: &Env, flags: &Flags, output: Output) -> Result<Exit> {
    let loaded = Loaded::read(env, flags)
        .map_err(|error| Failure::new(Exit::ConfigInvalid, error.to_string()))?;
    let mut settings = loaded.show();
    if let Ok(paths) = Paths::resolve(env, &loaded) {
        settings.extend(paths.show());
    }
    if output.json {
        let entries: serde_json::Map<String, serde_json::Value> = settings
            .iter()
            .map(|setting| {
                let entry = json!({"value": setting.value, "origin": setting.origin.to_string()});
                (setting.key.clone(), entry)
            })
            .collect();
        output.document(&entries)?;
    } else {
        let rows: Vec<Vec<Cell>> = settings
            .iter()
            .map(|setting| {
                vec![
                    setting.key.clone().into(),
                    setting.value.to_string().into(),
                    Cell::new(Tone::Faint, &setting.origin.to_string()),
                ]
            })
            .collect();
        output.table(&["KEY", "VALUE", "ORIGIN"], rows)?;
    }
    Ok(Exit::Ok)
}

fn check_all(env: &Env, flags: &Flags, output: Output) -> Result<Exit> {
    let mut notices = Vec::new();
    let problems: Vec<String> = match Loaded::read(env, flags) {
        Err(error) => error.lines(),
        Ok(loaded) => {
            notices = unused(&loaded);
            match Paths::resolve(env, &loaded) {
                Err(error) => vec![error.to_string()],
                Ok(paths) => check(&loaded, env, &paths).iter().map(ToString::to_string).collect(),
            }
        }
    };
    if output.json {
        let document = json!({"ok": problems.is_empty(), "problems": problems, "notices": notices});
        output.document(&document)?;
    } else if problems.is_empty() {
        output.line("the configuration is valid")?;
    }
    if !output.json {
        for notice in &notices {
            output.line(notice)?;
        }
    }
    if problems.is_empty() {
        return Ok(Exit::Ok);
    }
    for problem in &problems {
        complain(problem);
    }
    Ok(Exit::ConfigInvalid)
}
