//! Serves the socket.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Interest};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::protocol::{
    FAILED, INVALID_PARAMS, INVALID_REQUEST, MAX_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, Request,
    Response,
};
use crate::api::Api;
use crate::failure::{Exit, Failure, exit_of, one_line};

/// Clients at the same time; more are turned away.
const MAX_CLIENTS: usize = 64;

/// A client that is silent for this long is hung up on.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// A client that takes no data for this long is hung up on.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// What a method gives.
pub enum Answer {
    /// A result.
    Result(Value),
    /// A result now, then a line for every event until the client goes.
    Stream(Value, broadcast::Receiver<Value>),
    /// There is no such method.
    NoSuchMethod,
    /// The parameters do not fit, and why.
    BadParams(String),
}

/// The listening socket; its file goes when this is dropped.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
}

impl Server {
    /// Binds the socket at `path`. The caller holds the daemon's lock, but a daemon with another state directory may
    /// have the same socket: only one that nobody answers at is stale.
    pub fn bind(path: &Path) -> Result<Self> {
        match std::fs::symlink_metadata(path) {
            Ok(metadata) if metadata.file_type().is_socket() => {
                if std::os::unix::net::UnixStream::connect(path).is_ok() {
                    return Err(Failure::new(
                        Exit::AlreadyRunning,
                        format!(
                            "another majordomusd answers at the socket {}; stop it, or set MAJORDOMUS_SOCKET to \
                             another path",
                            path.display()
                        ),
                    )
                    .into());
                }
                std::fs::remove_file(path).with_context(|| {
                    format!("cannot remove the stale socket {}", path.display())
                })?;
            }
            Ok(_) => anyhow::bail!("{} is in the way of the socket; remove it", path.display()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot look at {}", path.display()));
            }
        }
        let listener = UnixListener::bind(path)
            .with_context(|| format!("cannot bind the socket {}", path.display()))?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
            .with_context(|| format!("cannot protect the socket {}", path.display()))?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Serves until `stop`.
    pub async fn serve(self, api: Arc<Api>, stop: CancellationToken) {
        let clients = Arc::new(Semaphore::new(MAX_CLIENTS));
        let tasks = TaskTracker::new();
        loop {
            let stream = tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        // Out of descriptors, most likely: a short pause instead of a hot loop.
                        tracing::warn!("the socket cannot accept a client: {error}");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
            };
            if !is_owner(&stream) {
                tracing::warn!("a process of another user was refused at the socket");
                continue;
            }
            let Ok(permit) = Arc::clone(&clients).try_acquire_owned() else {
                tracing::warn!(
                    "more than {MAX_CLIENTS} clients at the socket; one was turned away"
                );
                turn_away(&stream);
                continue;
            };
            let (api, stop) = (Arc::clone(&api), stop.clone());
            tasks.spawn(async move {
                let served = tokio::select! {
                    // An answer that is being written is finished: `stop` itself is one.
                    biased;
                    served = serve_client(stream, &api) => served,
                    () = async { stop.cancelled().await; tokio::time::sleep(WRITE_TIMEOUT / 20).await } => Ok(()),
                };
                if let Err(error) = served {
                    tracing::debug!("a client at the socket: {error}");
                }
                drop(permit);
            });
        }
        tasks.close();
        tasks.wait().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!("the socket {} cannot be removed: {error}", self.path.display());
        }
    }
}

/// Tells a client that there is no room. It gets one try: nobody waits for a client that is not served.
fn turn_away(stream: &UnixStream) {
    let message = format!("{MAX_CLIENTS} clients are at the socket already; try again later");
    let response = Response::error(Value::Null, FAILED, message, Some(Exit::Unresponsive));
    let written = serde_json::to_vec(&response).map_err(io::Error::other).and_then(|mut line| {
        line.push(b'\n');
        stream.try_write(&line)
    });
    if let Err(error) = written {
        tracing::debug!("a client that was turned away could not be told: {error}");
    }
}

fn is_owner(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}

async fn serve_client(stream: UnixStream, api: &Api) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    loop {
        let mut line = Vec::new();
        let mut bounded = (&mut read).take(MAX_REQUEST + 1);
        let reading = bounded.read_until(b'\n', &mut line);
        let Ok(n) = tokio::time::timeout(IDLE_TIMEOUT, reading).await else { return Ok(()) };
        if n? == 0 {
            return Ok(());
        }
        if line.len() as u64 > MAX_REQUEST {
            let response =
                Response::error(Value::Null, INVALID_REQUEST, "the request is over 1 MiB", None);
            return send(&mut write, &response).await;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let (response, events) = respond(&line, api).await;
        if let Some(response) = response {
            send(&mut write, &response).await?;
        }
        if let Some(mut events) = events {
            return stream_events(&mut read, &mut write, &mut events).await;
        }
    }
}

/// Answers one line. A notification (no id) gets no response.
async fn respond(line: &[u8], api: &Api) -> (Option<Response>, Option<broadcast::Receiver<Value>>) {
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(error) => {
            let message = format!("the line is no JSON: {error}");
            return (Some(Response::error(Value::Null, PARSE_ERROR, message, None)), None);
        }
    };
    let id = value.get("id").cloned();
    let request: Request = match serde_json::from_value(value) {
        Ok(request) => request,
        Err(error) => {
            let message = format!("the line is no JSON-RPC request: {error}");
            let id = id.unwrap_or(Value::Null);
            return (Some(Response::error(id, INVALID_REQUEST, message, None)), None);
        }
    };
    let answer_id = request.id.clone().unwrap_or(Value::Null);
    let mut stream = None;
    let response = match api.answer(&request.method, request.params).await {
        Ok(Answer::Result(result)) => Response::ok(answer_id, result),
        Ok(Answer::Stream(result, events)) => {
            stream = Some(events);
            Response::ok(answer_id, result)
        }
        Ok(Answer::NoSuchMethod) => {
            let message = format!("there is no method {}", request.method);
            Response::error(answer_id, METHOD_NOT_FOUND, message, None)
        }
        Ok(Answer::BadParams(message)) => {
            Response::error(answer_id, INVALID_PARAMS, message, Some(Exit::Usage))
        }
        Err(error) => Response::error(answer_id, FAILED, one_line(&error), Some(exit_of(&error))),
    };
    (request.id.is_some().then_some(response), stream)
}

async fn send<T: serde::Serialize>(write: &mut OwnedWriteHalf, message: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(message).map_err(io::Error::other)?;
    line.push(b'\n');
    tokio::time::timeout(WRITE_TIMEOUT, write.write_all(&line))
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// Writes a line for every event until the client goes. What it sends meanwhile is not read as requests.
async fn stream_events(
    read: &mut BufReader<OwnedReadHalf>,
    write: &mut OwnedWriteHalf,
    events: &mut broadcast::Receiver<Value>,
) -> io::Result<()> {
    let mut is_listening = true;
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            // A listener that left frees its place at once, not at the next event.
            sent = read.fill_buf(), if is_listening => match sent?.len() {
                0 if has_left(write).await? => return Ok(()),
                // It will only listen from now on.
                0 => {
                    is_listening = false;
                    continue;
                }
                n => {
                    read.consume(n);
                    continue;
                }
            },
        };
        let params = match event {
            Ok(event) => event,
            Err(broadcast::error::RecvError::Lagged(n)) => {
                serde_json::json!({"kind": "lost", "n": n})
            }
            Err(broadcast::error::RecvError::Closed) => return Ok(()),
        };
        let message = serde_json::json!({"jsonrpc": "2.0", "method": "event", "params": params});
        send(write, &message).await?;
    }
}

/// Whether a client whose requests have ended is gone altogether.
async fn has_left(write: &OwnedWriteHalf) -> io::Result<bool> {
    Ok(write.ready(Interest::WRITABLE).await?.is_write_closed())
}
