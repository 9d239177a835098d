//! Processes that a `Run` tool starts.

use std::borrow::Cow;
use std::time::Duration;

use thiserror::Error;

use crate::{TestCommand, ToolError};

/// Maximum bytes of one stream that are returned; the host clamps larger values.
///
/// ```
/// # use tollgate_sdk::{Command, process::MAX_OUTPUT};
/// let command = Command::new("cargo").args(["test"]).output_limit(MAX_OUTPUT);
/// # assert_eq!(command.output_limit, 1 << 20);
/// ```
pub const MAX_OUTPUT: u32 = 1 << 20;

/// Command to run: a program and its arguments, never a shell.
///
/// ```
/// # use std::time::Duration;
/// # use tollgate_sdk::Command;
/// let command = Command::new("git")
///     .args(["commit", "--file", "-"])
///     .stdin("Say hello\n")
///     .timeout(Duration::from_secs(5));
/// # assert_eq!(command.arguments.len(), 3);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Name of a program that is granted to the pack.
    pub program: String,
    /// Arguments of the program.
    pub arguments: Vec<String>,
    /// Standard input of the program.
    pub stdin: Vec<u8>,
    /// Timeout. Limited by the call's own deadline.
    pub timeout: Duration,
    /// Maximum returned bytes of each stream: the first and the last half.
    pub output_limit: u32,
}

impl Command {
    /// Creates a command without arguments, with a timeout of one minute and at most 64 KiB of each stream.
    pub fn new(program: impl Into<String>) -> Command {
        Command {
            program: program.into(),
            arguments: Vec::new(),
            stdin: Vec::new(),
            timeout: Duration::from_secs(60),
            output_limit: 64 << 10,
        }
    }

    /// Creates a registered test command, exactly as registered.
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

    /// Sets the standard input.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Command {
        self.stdin = bytes.into();
        self
    }

    /// Sets the timeout.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Command {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum returned bytes of each stream.
    #[must_use]
    pub fn output_limit(mut self, bytes: u32) -> Command {
        self.output_limit = bytes;
        self
    }
}

/// Result of a process.
///
/// ```
/// # use tollgate_sdk::Ending;
/// fn told(ending: Ending) -> String {
///     match ending {
///         Ending::Exited(code) => format!("exit code {code}"),
///         Ending::Signalled(signal) => format!("signal {signal}"),
///         Ending::TimedOut => "no time left".to_owned(),
///     }
/// }
/// assert_eq!(told(Ending::Exited(1)), "exit code 1");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Exit with this code.
    Exited(i32),
    /// Termination by a signal.
    Signalled(i32),
    /// Timeout; the process was killed.
    TimedOut,
}

/// Captured output of a stream.
///
/// ```
/// # use tollgate_sdk::Output;
/// let output = Output { bytes: b"headtail".to_vec(), total: 1_000 };
/// assert_eq!(output.text(), "head\n[992 bytes cut]\ntail");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// Whole output, or only the first and last bytes up to the limit, half each.
    pub bytes: Vec<u8>,
    /// Total number of bytes.
    pub total: u64,
}

impl Output {
    /// Checks whether the middle is missing.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.total > self.bytes.len() as u64
    }

    /// Text of the output, with a line in place of the cut part.
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

/// Outcome of a process.
///
/// ```
/// # use tollgate_sdk::{Command, Cx, Effect, Pack, Tool, ToolError, Want, native::{Session, Workspace}, tools};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Hello {}
/// # #[derive(serde::Serialize, schemars::JsonSchema)]
/// # struct Said { text: String }
/// impl Tool for Hello {
/// #     const NAME: &'static str = "hello_say";
/// #     const TITLE: &'static str = "Say hello";
/// #     const EFFECT: Effect = Effect::Run;
/// #     type Output = Said;
///     // …
///     fn run(self, cx: &Cx<'_>) -> Result<Said, ToolError> {
///         let outcome = cx.workspace("main")?.run(&Command::new("echo").args(["hello"]))?;
///         if !outcome.succeeded() {
///             return Err(ToolError::new("NOT_SAID", outcome.stderr.text()));
///         }
///         Ok(Said { text: outcome.stdout.text().trim().to_owned() })
///     }
/// }
/// # const PACK: Pack = Pack {
/// #     name: "hello", wants: &[Want::WorkspaceRead("*"), Want::Process("echo")], tools: tools![Hello], ..Pack::EMPTY
/// # };
/// # let session = Session::new(&PACK).workspace(Workspace::new("main", &std::env::temp_dir())).allow_program("echo");
/// assert_eq!(session.call("hello_say", "{}").unwrap().structured, r#"{"text":"hello"}"#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Result of the process.
    pub ending: Ending,
    /// Duration of the process.
    pub duration: Duration,
    /// Standard output.
    pub stdout: Output,
    /// Standard error.
    pub stderr: Output,
    /// Artifact id of the full output, if the operator keeps artifacts.
    pub artifact_id: Option<String>,
}

impl Outcome {
    /// Checks whether the process exited with code 0.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.ending == Ending::Exited(0)
    }
}

/// Reason why no process was run.
///
/// ```
/// # use tollgate_sdk::{ProcessError, ToolError};
/// let refusal = ToolError::from(ProcessError::NotStarted("there is no program `protoc`".to_owned()));
/// assert_eq!(refusal.code, "PROCESS_NOT_STARTED");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProcessError {
    /// The pack may not run this command, or not in a tool with this effect.
    #[error("not allowed: {0}")]
    Denied(String),
    /// The workspace does not exist or is not granted.
    #[error("workspace `{0}` does not exist or is not granted to this pack")]
    UnknownWorkspace(String),
    /// The command contains a NUL, or too many arguments.
    #[error("invalid command: {0}")]
    Invalid(String),
    /// The program could not be started.
    #[error("not started: {0}")]
    NotStarted(String),
    /// A storage transaction is open.
    #[error("a transaction is open; run programs outside of transactions")]
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
                "If the message does not name a key, ask the operator to allow the program. For git, set git = \
                 \"read\" or git = \"write\" in [workspaces.NAME]. For a test, set tests.default = [\"cargo\", \
                 \"test\"] there. For another program, set grants.process = [\"make\"] in [packs.PACK].",
            ),
            ProcessError::UnknownWorkspace(_) => ("WORKSPACE_UNKNOWN", crate::workspace::UNKNOWN_REMEDIATION),
            ProcessError::Invalid(_) => ("PROCESS_INVALID", "Send shorter arguments without NUL."),
            ProcessError::NotStarted(_) => (
                "PROCESS_NOT_STARTED",
                "Install the program where the host's PATH finds it.",
            ),
            ProcessError::TransactionOpen | ProcessError::Internal => (
                "PROCESS_FAILED",
                "Read the host's log; search for the operation id.",
            ),
            ProcessError::Cancelled => ("CANCELLED", "Call again if the result is still needed."),
        };
        ToolError::new(code, err.to_string()).remediation(remediation)
    }
}
