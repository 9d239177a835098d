//! Programs that `run` tools start: found without a shell, run under a supervisor, monitored by the call.
//!
//! The supervisor is this executable, run as the parent of the program. It kills all processes that came from the
//! program, including those that left its group, when the program ends, when its time is up, when the call is
//! cancelled, and when the host is gone. If a program kills or stops its supervisor, the host does the same.

mod alone;
mod caches;
pub mod children;
mod environment;
mod supervisor;
mod wire;

use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use cap_std::fs::Dir;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use tollgate_core::deadline::Deadline;
use tollgate_sdk::process::MAX_OUTPUT;
use tollgate_sdk::{Capture, Ending, Outcome, ProcessError};

use caches::Caches;
use children::Started;
pub use environment::Environment;
pub use supervisor::{SUBCOMMAND, run_child};
use wire::{Said, Task};

/// Interval of checking a running program's time.
const TIME_CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Number of checks between two checks of the supervisor.
const LOOKS_PER_SUPERVISOR_CHECK: u32 = 5;
/// Time for the supervisor to end all processes, and then for the host.
const SUPERVISOR_TIMEOUT: Duration = Duration::from_secs(5);
/// Most bytes of all arguments.
const MAX_ARGUMENTS: usize = 128 << 10;

/// Starts programs.
#[derive(Debug, Clone)]
pub struct Launcher {
    executable: PathBuf,
    /// Environment of programs. `None` if none may start.
    environment: Option<Environment>,
    umask: u32,
}

/// A command that may run.
#[derive(Debug)]
pub struct Job<'a> {
    /// Working directory.
    pub dir: &'a Dir,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Variables besides those that every program with its name gets.
    pub variables: Vec<(String, String)>,
    /// True if the program may not start others.
    pub alone: bool,
    /// Memory limit of each of its processes in bytes, without mapped files. `None` if there is no limit.
    pub memory: Option<u64>,
    /// Standard input.
    pub stdin: Vec<u8>,
    /// Time limit.
    pub timeout: Duration,
    /// Number of bytes of each stream that are kept.
    pub output_limit: u32,
}

/// One of a program's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// Receives every byte that a program prints, and periodic calls while it runs.
pub trait Sink {
    /// Receives the next bytes of a stream.
    fn bytes(&mut self, stream: Stream, bytes: &[u8]);
    /// Called while the program runs.
    fn tick(&mut self);
}

impl Launcher {
    /// Launcher that starts programs under supervisors, which run `executable`, the path of this program. Files that
    /// programs create get the permissions that `umask` leaves. Without an environment no program ever starts.
    pub fn new(executable: PathBuf, environment: Option<Environment>, umask: u32) -> Launcher {
        Launcher {
            executable,
            environment,
            umask,
        }
    }

    /// Launcher that refuses every program.
    pub fn refusing() -> Launcher {
        Launcher::new(PathBuf::new(), None, 0o077)
    }

    /// Runs a program until it ends, or until the call's deadline. Of the errors, only `Cancelled` and `Internal` leave
    /// open whether the program ran.
    pub fn run(
        &self,
        job: Job<'_>,
        deadline: &Deadline,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, ProcessError> {
        check(&job.argv)?;
        let Some(environment) = &self.environment else {
            return Err(ProcessError::Denied(
                "programs are not run here; `packs check` runs them only with --programs".to_owned(),
            ));
        };
        if deadline.is_cancelled() {
            return Err(ProcessError::Cancelled);
        }
        let program = find(environment, &job.argv)?;
        // Git without child programs has no such caches.
        let caches = if job.alone {
            None
        } else {
            Some(Caches::new().map_err(no_caches)?)
        };
        let mut variables = caches.as_ref().map(Caches::variables).unwrap_or_default();
        variables.extend(job.variables.iter().cloned());
        let started = Instant::now();
        let mut running = self.start(&job).map_err(failed)?;
        let task = Task {
            program,
            arguments: job.argv[1..].to_vec(),
            environment: environment.of(&job.argv[0], &variables),
            alone: job.alone,
            memory: job.memory,
            umask: self.umask,
        };
        let watched = wire::send(&running.socket, &task, &job.stdin)
            .and_then(|()| running.watch(started + job.timeout, deadline, sink));
        running.end(matches!(watched, Ok((Some(_), _))));
        let (said, late) = watched.map_err(failed)?;
        running.drain(sink).map_err(failed)?;
        if deadline.is_cancelled() {
            return Err(ProcessError::Cancelled);
        }
        Ok(Outcome {
            ending: running.ending(said, late)?,
            duration: started.elapsed(),
            stdout: running.stdout.capture.finish(),
            stderr: running.stderr.capture.finish(),
            artifact_id: None,
        })
    }

    /// A variable that programs get.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.as_ref()?.variable(name)
    }

    fn start(&self, job: &Job<'_>) -> std::io::Result<Running> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_read_timeout(Some(SUPERVISOR_TIMEOUT))?;
        socket.set_write_timeout(Some(SUPERVISOR_TIMEOUT))?;
        let mut command = std::process::Command::new(&self.executable);
        command
            .arg(SUBCOMMAND)
            .env_clear()
            // Opened once and never looked up again, so that no other directory can take its place.
            .current_dir(format!("/proc/self/fd/{}", job.dir.as_raw_fd()))
            .process_group(0)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let (mut supervisor, started) = children::start_supervisor(&mut command)?;
        // Only the supervisor holds the other end: its death closes the socket.
        drop(command);
        let limit = job.output_limit.min(MAX_OUTPUT) as usize;
        let stdout = supervisor.stdout.take().map(OwnedFd::from);
        let stderr = supervisor.stderr.take().map(OwnedFd::from);
        Ok(Running {
            supervisor,
            started: Some(started),
            socket,
            stdout: Piped::new(Stream::Out, stdout, limit),
            stderr: Piped::new(Stream::Err, stderr, limit),
        })
    }
}

fn failed(err: std::io::Error) -> ProcessError {
    tracing::error!(%err, "cannot supervise a program");
    ProcessError::Internal
}

/// Error because the cache folder could not be created. Without it a program would trust the caches of the workspace,
/// so it does not start.
fn no_caches(err: std::io::Error) -> ProcessError {
    ProcessError::NotStarted(format!(
        "cannot create a temporary folder for the program's caches: {err}"
    ))
}

/// Path of a program. A name is looked up in the host's own PATH, never in the workspace. Only a test that the
/// operator registered has a path.
fn find(environment: &Environment, argv: &[String]) -> Result<String, ProcessError> {
    let Some(program) = argv.first() else {
        return Err(ProcessError::Invalid("no program was named".to_owned()));
    };
    if program.contains('/') {
        return Ok(program.clone());
    }
    environment
        .find(program)
        .ok_or_else(|| ProcessError::NotStarted(format!("there is no `{program}` on the host's PATH")))
}

fn check(argv: &[String]) -> Result<(), ProcessError> {
    if argv.iter().any(|word| word.contains('\0')) {
        return Err(ProcessError::Invalid(
            "an argument contains a NUL character".to_owned(),
        ));
    }
    if argv.iter().map(|word| word.len() + 1).sum::<usize>() > MAX_ARGUMENTS {
        return Err(ProcessError::Invalid(format!(
            "the arguments have more than {MAX_ARGUMENTS} bytes"
        )));
    }
    Ok(())
}

/// A program under its supervisor.
struct Running {
    supervisor: Child,
    started: Option<Started>,
    socket: UnixStream,
    stdout: Piped,
    stderr: Piped,
}

impl Running {
    /// Reads the program's output until its supervisor reports the end. Returns whether its time was up.
    fn watch(
        &mut self,
        until: Instant,
        deadline: &Deadline,
        sink: &mut dyn Sink,
    ) -> std::io::Result<(Option<Said>, bool)> {
        let mut asked_to_end: Option<Instant> = None;
        let mut late = false;
        for look in 1_u32.. {
            let now = Instant::now();
            if asked_to_end.is_none() && (now >= until || deadline.is_over()) {
                late = true;
                asked_to_end = Some(now);
                // The supervisor takes the end of its input as the end of the program's time.
                self.socket.shutdown(Shutdown::Write)?;
            }
            let is_held =
                || look.is_multiple_of(LOOKS_PER_SUPERVISOR_CHECK) && children::is_held(self.supervisor.id());
            if asked_to_end.is_some_and(|asked| now >= asked + SUPERVISOR_TIMEOUT) || is_held() {
                return Ok((None, late));
            }
            let ready = self.wait(TIME_CHECK_INTERVAL)?;
            self.stdout.take(ready.0, sink)?;
            self.stderr.take(ready.1, sink)?;
            if ready.2 {
                match wire::receive(&mut self.socket) {
                    Ok(Some(Said::Started)) => {}
                    Ok(said) => return Ok((said, late)),
                    // The supervisor was stopped in the middle of a message.
                    Err(err) if err.kind() == std::io::ErrorKind::WouldBlock => return Ok((None, late)),
                    Err(err) => return Err(err),
                }
            }
            sink.tick();
        }
        Ok((None, late))
    }

    /// End of the program. A program whose supervisor is gone was killed with it.
    fn ending(&mut self, said: Option<Said>, late: bool) -> Result<Ending, ProcessError> {
        match said {
            Some(Said::NotStarted(why)) => Err(ProcessError::NotStarted(why)),
            _ if late => Ok(Ending::TimedOut),
            Some(Said::Exited(code)) => Ok(Ending::Exited(code)),
            Some(Said::Signalled(signal)) => Ok(Ending::Signalled(signal)),
            None if self.was_killed() => {
                tracing::warn!("a program's supervisor was killed or stopped, and the program with it");
                Ok(Ending::Signalled(Signal::KILL.as_raw()))
            }
            Some(Said::Started) | None => Err(failed(std::io::Error::other(
                "the supervisor process ended without reporting the program's result",
            ))),
        }
    }

    /// Tells which of standard output, standard error and the supervisor have data.
    fn wait(&self, time: Duration) -> std::io::Result<(bool, bool, bool)> {
        let mut fds = vec![PollFd::new(&self.socket, PollFlags::IN)];
        let pipes = [&self.stdout, &self.stderr];
        fds.extend(
            pipes
                .iter()
                .filter_map(|pipe| pipe.fd.as_ref())
                .map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)),
        );
        let time = Timespec {
            tv_sec: 0,
            tv_nsec: time.subsec_nanos().into(),
        };
        match poll(&mut fds, Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(err) => return Err(err.into()),
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let said = ready.next().unwrap_or_default();
        let mut of = |pipe: &Piped| pipe.fd.is_some() && ready.next().unwrap_or_default();
        let (out, err) = (of(&self.stdout), of(&self.stderr));
        Ok((out, err, said))
    }

    /// Reads the rest of the pipes. All possible writers are dead by now.
    fn drain(&mut self, sink: &mut dyn Sink) -> std::io::Result<()> {
        let until = Instant::now() + SUPERVISOR_TIMEOUT;
        while (self.stdout.fd.is_some() || self.stderr.fd.is_some()) && Instant::now() < until {
            let ready = self.wait(TIME_CHECK_INTERVAL)?;
            self.stdout.take(ready.0, sink)?;
            self.stderr.take(ready.1, sink)?;
            if !ready.0 && !ready.1 {
                // The socket has ended, so the wait returned at once: a process that is not a descendant was given a
                // pipe.
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }

    /// True if the supervisor, which is gone, was killed by a signal. Its own exits are never by a signal.
    fn was_killed(&mut self) -> bool {
        matches!(self.supervisor.try_wait(), Ok(Some(status)) if status.signal().is_some())
    }

    /// Leaves no process behind. A supervisor that reported the end has killed all processes and only needs to exit.
    /// Any other supervisor is killed if it still exists, and this process kills the processes that it leaves.
    fn end(&mut self, has_reported: bool) {
        // Nothing more can be done about a process that cannot be killed.
        let _ = self.socket.shutdown(Shutdown::Both);
        if has_reported && self.is_gone_by(Instant::now() + SUPERVISOR_TIMEOUT) {
            return;
        }
        let _ = self.supervisor.kill();
        let until = Instant::now() + SUPERVISOR_TIMEOUT;
        // This process inherits its children before it can be reaped, but not always before its socket closes.
        if !self.is_gone_by(until) || !children::end_orphans(until) {
            tracing::error!("cannot end every process of a program");
        }
    }

    fn is_gone_by(&mut self, until: Instant) -> bool {
        loop {
            if children::has_ended(&mut self.supervisor, &mut self.started) {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// One stream on its way to the sink and to a bounded buffer.
struct Piped {
    stream: Stream,
    fd: Option<OwnedFd>,
    capture: Capture,
}

impl Piped {
    fn new(stream: Stream, fd: Option<OwnedFd>, limit: usize) -> Piped {
        Piped {
            stream,
            fd,
            capture: Capture::new(limit),
        }
    }

    /// Reads one chunk, if there is data.
    fn take(&mut self, ready: bool, sink: &mut dyn Sink) -> std::io::Result<()> {
        let Some(fd) = self.fd.as_ref().filter(|_| ready) else {
            return Ok(());
        };
        let mut buffer = [0; 32 << 10];
        match rustix::io::read(fd, &mut buffer[..]) {
            Ok(0) => self.fd = None,
            Ok(count) => {
                self.capture.take(&buffer[..count]);
                sink.bytes(self.stream, &buffer[..count]);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(err) => return Err(err.into()),
        }
        Ok(())
    }
}
