//! Access to processes through the component's imports.

use std::time::Duration;

use super::bindings::tollgate::host::process as wit;
use crate::{Command, Ending, Outcome, Output, ProcessError};

pub(super) fn run(workspace: &str, command: &Command) -> Result<Outcome, ProcessError> {
    let command = wit::Command {
        workspace: workspace.to_owned(),
        program: command.program.clone(),
        arguments: command.arguments.clone(),
        stdin: command.stdin.clone(),
        timeout_ms: u32::try_from(command.timeout.as_millis()).unwrap_or(u32::MAX),
        output_limit: command.output_limit,
    };
    wit::run(&command).map(outcome).map_err(error)
}

fn outcome(said: wit::Outcome) -> Outcome {
    Outcome {
        ending: match said.ending {
            wit::Ending::Exited(code) => Ending::Exited(code),
            wit::Ending::Signalled(signal) => Ending::Signalled(signal),
            wit::Ending::TimedOut => Ending::TimedOut,
        },
        duration: Duration::from_millis(said.duration_ms),
        stdout: Output {
            bytes: said.stdout,
            total: said.stdout_total,
        },
        stderr: Output {
            bytes: said.stderr,
            total: said.stderr_total,
        },
        artifact_id: said.artifact_id,
    }
}

fn error(said: wit::Error) -> ProcessError {
    match said {
        wit::Error::Denied(why) => ProcessError::Denied(why),
        wit::Error::UnknownWorkspace(name) => ProcessError::UnknownWorkspace(name),
        wit::Error::Invalid(why) => ProcessError::Invalid(why),
        wit::Error::NotStarted(why) => ProcessError::NotStarted(why),
        wit::Error::TransactionOpen => ProcessError::TransactionOpen,
        wit::Error::Cancelled => ProcessError::Cancelled,
        wit::Error::Internal => ProcessError::Internal,
    }
}
