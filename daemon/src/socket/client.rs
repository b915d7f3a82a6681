//! The other end of the socket, for `majordomusctl`.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::protocol::Response;
use crate::failure::{Exit, Failure};

/// A daemon that does not even say that it is there within this time is unresponsive (cases.md 87).
const PING_TIMEOUT: Duration = Duration::from_millis(800);

/// A question may have to walk the whole ledger.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Closing many sessions is work, not a question.
const WORK_TIMEOUT: Duration = Duration::from_mins(2);

/// A connection to the daemon.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
}

/// Why there is no connection.
#[derive(Debug)]
pub enum NoDaemon {
    /// Nobody listens.
    NotRunning,
    /// The socket is there and cannot be used.
    Failed(io::Error),
}

impl Client {
    /// Connects to the socket at `path`.
    pub fn connect(path: &Path) -> Result<Self, NoDaemon> {
        match UnixStream::connect(path) {
            Ok(stream) => Ok(Self { stream: BufReader::new(stream) }),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound
                        | io::ErrorKind::NotADirectory
                        | io::ErrorKind::ConnectionRefused
                ) =>
            {
                Err(NoDaemon::NotRunning)
            }
            Err(error) => Err(NoDaemon::Failed(error)),
        }
    }

    /// Asks whether the daemon answers at all; any answer will do.
    pub fn ping(&mut self) -> Result<(), Failure> {
        match self.call::<Value>("ping", &Value::Null, PING_TIMEOUT) {
            Err(failure) if failure.exit == Exit::Unresponsive => Err(failure),
            _ => Ok(()),
        }
    }

    /// Asks a question.
    pub fn ask<T: DeserializeOwned>(&mut self, method: &str, params: &Value) -> Result<T, Failure> {
        self.call(method, params, ANSWER_TIMEOUT)
    }

    /// Asks for something to be done.
    pub fn order<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &Value,
    ) -> Result<T, Failure> {
        self.call(method, params, WORK_TIMEOUT)
    }

    fn call<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &Value,
        timeout: Duration,
    ) -> Result<T, Failure> {
        let response = self
            .exchange(method, params, timeout)
            .map_err(|error| broken(method, timeout, &error))?;
        if let Some(error) = response.error {
            return Err(error.into());
        }
        serde_json::from_value(response.result.unwrap_or(Value::Null)).map_err(|error| {
            Failure::new(
                Exit::VersionSkew,
                format!("the daemon answers {method} in another form ({error}); restart it"),
            )
        })
    }

    fn exchange(
        &mut self,
        method: &str,
        params: &Value,
        timeout: Duration,
    ) -> io::Result<Response> {
        let stream = self.stream.get_mut();
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let written = stream.write_all(format!("{request}\n").as_bytes());
        let mut line = String::new();
        // A daemon that has no room hangs up before it is asked, and has said why.
        if self.stream.read_line(&mut line)? == 0 {
            written?;
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        serde_json::from_str(&line).map_err(io::Error::other)
    }
}

fn broken(method: &str, timeout: Duration, error: &io::Error) -> Failure {
    let is_timeout = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
    let message = if is_timeout {
        format!(
            "the daemon does not answer {method} within {} ms; look at its log, or restart it",
            timeout.as_millis()
        )
    } else {
        format!("the daemon broke off while answering {method} ({error}); look at its log")
    };
    Failure::new(Exit::Unresponsive, message)
}
