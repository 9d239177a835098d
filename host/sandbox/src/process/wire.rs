//! Messages between host and supervisor over a socket: a task with its input in one direction, the outcome in the
//! other. The host's end of the socket also signals that the host is alive.

use std::io::{Read, Write};

use serde::{Deserialize, Serialize};

/// Task of the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Task {
    /// Path of the program.
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
    /// Complete environment.
    pub(super) environment: Vec<(String, String)>,
    pub(super) umask: u32,
    /// True if the program may not start others.
    pub(super) alone: bool,
    /// Memory limit of each of its processes in bytes, without mapped files.
    pub(super) memory: Option<u64>,
}

/// Message about the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Said {
    /// The program runs.
    Started,
    NotStarted(String),
    Exited(i32),
    Signalled(i32),
}

/// Largest message to the supervisor, in bytes.
const MAX_TASK: usize = 64 << 20;
/// Largest message from the supervisor, in bytes.
const MAX_REPLY: usize = 64 << 10;

pub(super) fn send(mut socket: impl Write, task: &Task, stdin: &[u8]) -> std::io::Result<()> {
    write(&mut socket, &serde_json::to_vec(task)?)?;
    write(&mut socket, stdin)
}

/// Receives a task and its input.
pub(super) fn accept(mut socket: impl Read) -> std::io::Result<(Task, Vec<u8>)> {
    let task = serde_json::from_slice(&read(&mut socket, MAX_TASK)?)?;
    Ok((task, read(&mut socket, MAX_TASK)?))
}

pub(super) fn say(mut socket: impl Write, said: &Said) -> std::io::Result<()> {
    write(&mut socket, &serde_json::to_vec(said)?)
}

/// Receives the next message. `None` if none will come.
pub(super) fn receive(mut socket: impl Read) -> std::io::Result<Option<Said>> {
    match read(&mut socket, MAX_REPLY) {
        Ok(message) => Ok(serde_json::from_slice(&message)?),
        Err(err)
            if matches!(
                err.kind(),
                std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::ConnectionReset
            ) =>
        {
            Ok(None)
        }
        Err(err) => Err(err),
    }
}

fn write(socket: &mut impl Write, message: &[u8]) -> std::io::Result<()> {
    let length = u32::try_from(message.len()).map_err(std::io::Error::other)?;
    // Written at once, because the writer may be stopped at any time.
    let whole = [&length.to_be_bytes(), message].concat();
    socket.write_all(&whole)
}

fn read(socket: &mut impl Read, limit: usize) -> std::io::Result<Vec<u8>> {
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > limit {
        return Err(std::io::Error::other("a message is too large"));
    }
    let mut message = vec![0; length];
    socket.read_exact(&mut message)?;
    Ok(message)
}
