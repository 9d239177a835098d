//! Real processes for native tests, with the host's limits on time and output.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use cap_std::fs::Dir;
use rustix::process::{Pid, Signal};

use crate::permit::git_environment;
use crate::process::MAX_OUTPUT;
use crate::{Capture, Command, Ending, Outcome, Output, ProcessError};

/// Runs a command in a directory with the given variables, and waits until it ends.
pub(super) fn run(
    dir: &Dir,
    argv: &[String],
    variables: &[(String, String)],
    command: &Command,
) -> Result<Outcome, ProcessError> {
    let Some((program, arguments)) = argv.split_first() else {
        return Err(ProcessError::Invalid("no program was named".to_owned()));
    };
    if argv.iter().any(|word| word.contains('\0')) {
        return Err(ProcessError::Invalid(
            "an argument contains a NUL character".to_owned(),
        ));
    }
    let started = Instant::now();
    let mut child = std::process::Command::new(program)
        .args(arguments)
        .envs(git_environment())
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .current_dir(format!("/proc/self/fd/{}", dir.as_raw_fd()))
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|err| ProcessError::NotStarted(format!("`{program}`: {err}")))?;
    let limit = command.output_limit.min(MAX_OUTPUT) as usize;
    let stdin = command.stdin.clone();
    if let Some(mut input) = child.stdin.take() {
        // A program that does not read its input has not failed.
        std::thread::spawn(move || drop(input.write_all(&stdin)));
    }
    let stdout = child.stdout.take().map(|stream| captured(stream, limit));
    let stderr = child.stderr.take().map(|stream| captured(stream, limit));
    let ending = ending(&mut child, started + command.timeout)?;
    Ok(Outcome {
        ending,
        duration: started.elapsed(),
        stdout: output(stdout),
        stderr: output(stderr),
        artifact_id: None,
    })
}

fn captured(mut stream: impl Read + Send + 'static, limit: usize) -> mpsc::Receiver<Output> {
    let (done, output) = mpsc::channel();
    std::thread::spawn(move || {
        let mut capture = Capture::new(limit);
        let mut buffer = [0; 8 << 10];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            capture.take(&buffer[..count]);
        }
        drop(done.send(capture.finish()));
    });
    output
}

fn output(stream: Option<mpsc::Receiver<Output>>) -> Output {
    stream.and_then(|stream| stream.recv().ok()).unwrap_or_default()
}

/// Waits for the process to end, or kills it at the deadline. The rest of its process group is killed as well.
fn ending(child: &mut Child, deadline: Instant) -> Result<Ending, ProcessError> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let late = loop {
        match child.try_wait() {
            Ok(Some(_)) => break false,
            Ok(None) if Instant::now() >= deadline => break true,
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
            Err(_) => return Err(ProcessError::Internal),
        }
    };
    if let Some(group) = group {
        // Fails if all processes of the group have already ended.
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    let status = child.wait().map_err(|_| ProcessError::Internal)?;
    Ok(match (late, status.code(), status.signal()) {
        (true, _, _) => Ending::TimedOut,
        (false, Some(code), _) => Ending::Exited(code),
        (false, None, signal) => Ending::Signalled(signal.unwrap_or_default()),
    })
}
