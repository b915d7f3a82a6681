//! `majordomusctl stop`

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use super::Context;
use crate::failure::{Exit, Failure};
use crate::socket::client::{Client, NoDaemon};

/// The daemon ends within five seconds of a request; a little more for a slow disk.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn run(context: &Context) -> Result<Exit> {
    let mut client = context.needs_daemon()?;
    let answer: Value = client.ask("stop", &Value::Null)?;
    let asked = Instant::now();
    loop {
        match Client::connect(&context.settings.paths.socket.path) {
            Err(NoDaemon::NotRunning) => break,
            _ if asked.elapsed() > PATIENCE => {
                return Err(Failure::new(
                    Exit::Unresponsive,
                    format!("majordomusd (pid {}) does not stop; look at its log", answer["pid"]),
                )
                .into());
            }
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    if context.output.json {
        context.output.document(&json!({"stopped": true, "pid": answer["pid"]}))?;
    } else {
        context.output.line("stopped")?;
    }
    Ok(Exit::Ok)
}
