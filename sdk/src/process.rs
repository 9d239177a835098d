//! Programs that a `Run` tool starts.

use std::borrow::Cow;
use std::time::Duration;

use thiserror::Error;

use crate::{TestCommand, ToolError};

/// Most bytes of one stream that come back, as the host clamps it.
pub const MAX_OUTPUT: u32 = 1 << 20;

/// What to run: a program and its arguments, never a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// A program the pack was granted, by name.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Bytes for its standard input.
    pub stdin: Vec<u8>,
    /// How long it may take. Longer than the call's own deadline means until then.
    pub timeout: Duration,
    /// How many bytes of each stream come back: the first and the last half of it.
    pub output_limit: u32,
}

impl Command {
    /// A program without arguments, with a minute's time and 64 KiB of each stream.
    pub fn new(program: impl Into<String>) -> Command {
        Command {
            program: program.into(),
            arguments: Vec::new(),
            stdin: Vec::new(),
            timeout: Duration::from_secs(60),
            output_limit: 64 << 10,
        }
    }

    /// A registered test command, exactly as registered.
    #[must_use]
    pub fn test(test: &TestCommand) -> Command {
        let mut argv = test.argv.iter().cloned();
        Command::new(argv.next().unwrap_or_default()).args(argv)
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<String>>(mut self, arguments: impl IntoIterator<Item = A>) -> Command {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets what it reads.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Command {
        self.stdin = bytes.into();
        self
    }

    /// Sets how long it may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Command {
        self.timeout = timeout;
        self
    }

    /// Sets how much of each stream comes back.
    #[must_use]
    pub fn output_limit(mut self, bytes: u32) -> Command {
        self.output_limit = bytes;
        self
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
    /// Its time was up and it was killed.
    TimedOut,
}

/// What a stream held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// All of it, or the first and the last half of the limit with nothing in between.
    pub bytes: Vec<u8>,
    /// How many bytes there were.
    pub total: u64,
}

impl Output {
    /// Whether the middle is missing.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.total > self.bytes.len() as u64
    }

    /// As text, with a line that tells what was cut, where it was.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        if !self.is_cut() {
            return String::from_utf8_lossy(&self.bytes);
        }
        let (head, tail) = self.bytes.split_at(self.bytes.len() / 2);
        let missing = self.total - self.bytes.len() as u64;
        Cow::Owned(format!(
            "{}\n[{missing} bytes cut]\n{}",
            String::from_utf8_lossy(head),
            String::from_utf8_lossy(tail)
        ))
    }
}

/// What a process did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// How long it took.
    pub duration: Duration,
    /// What it printed.
    pub stdout: Output,
    /// What it complained about.
    pub stderr: Output,
    /// Where the full output is kept, if the operator keeps artifacts.
    pub artifact_id: Option<String>,
}

impl Outcome {
    /// Whether it exited with 0.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.ending == Ending::Exited(0)
    }
}

/// Why nothing was run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProcessError {
    /// The pack may not run this, or not in a tool of this effect.
    #[error("not allowed: {0}")]
    Denied(String),
    /// No workspace of this name, or it was not granted.
    #[error("there is no workspace `{0}` for this pack")]
    UnknownWorkspace(String),
    /// A NUL, or more arguments than a command can have.
    #[error("no command can look like this: {0}")]
    Invalid(String),
    /// The program could not be started.
    #[error("not started: {0}")]
    NotStarted(String),
    /// A storage transaction is open.
    #[error("a transaction is open, and nothing slow may hold it")]
    TransactionOpen,
    /// The call was cancelled.
    #[error("the call was cancelled")]
    Cancelled,
    /// The host failed.
    #[error("the process could not be run; the host's log has the reason")]
    Internal,
}

impl From<ProcessError> for ToolError {
    fn from(err: ProcessError) -> ToolError {
        let (code, remediation) = match &err {
            ProcessError::Denied(_) => (
                "PROCESS_DENIED",
                "The operator decides what a pack may run: its grants, and the workspace's tests and git.",
            ),
            ProcessError::UnknownWorkspace(_) => (
                "WORKSPACE_UNKNOWN",
                "Name a workspace that is registered under [workspaces.NAME] and granted to the pack.",
            ),
            ProcessError::Invalid(_) => ("PROCESS_INVALID", "Send shorter arguments without NUL."),
            ProcessError::NotStarted(_) => (
                "PROCESS_NOT_STARTED",
                "Install the program where the host's PATH finds it.",
            ),
            ProcessError::TransactionOpen | ProcessError::Internal => (
                "PROCESS_FAILED",
                "Look at the host's log under the operation's id.",
            ),
            ProcessError::Cancelled => ("CANCELLED", "Call again if it is still wanted."),
        };
        ToolError::new(code, err.to_string()).remediation(remediation)
    }
}
