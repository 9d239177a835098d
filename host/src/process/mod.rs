//! Programs that `run` tools start: found without a shell, run under a supervisor, watched by the call.
//!
//! The supervisor is this program itself, as the parent of what is run. It kills all that came from a
//! program, down to processes that left its group, when the program ends, when its time is up, when
//! the call is cancelled, and when the host is gone.

mod alone;
mod environment;
mod supervisor;
mod wire;

use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use cap_std::fs::Dir;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal};
use tollgate_sdk::process::MAX_OUTPUT;
use tollgate_sdk::{Capture, Ending, Outcome, ProcessError};

use crate::deadline::Deadline;

pub use environment::Environment;
pub use supervisor::{SUBCOMMAND, run_child};
use wire::{Said, Task};

/// How often a running program's time is looked at.
const TICK: Duration = Duration::from_millis(20);
/// How long the supervisor may take to end everything.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most bytes of all arguments.
const MAX_ARGUMENTS: usize = 128 << 10;

/// Starts programs.
#[derive(Debug, Clone)]
pub struct Launcher {
    executable: PathBuf,
    environment: Environment,
    umask: u32,
}

/// A command that may run.
#[derive(Debug)]
pub struct Job<'a> {
    /// Where.
    pub dir: &'a Dir,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Variables beside those that every program of its name gets.
    pub variables: Vec<(String, String)>,
    /// It may start no programs itself.
    pub alone: bool,
    /// What it reads.
    pub stdin: Vec<u8>,
    /// How long it may take.
    pub timeout: Duration,
    /// How much of each stream is kept.
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

/// Sees every byte that a program prints, and hears from time to time that it still runs.
pub trait Sink {
    /// The next bytes of a stream.
    fn bytes(&mut self, stream: Stream, bytes: &[u8]);
    /// It still runs.
    fn tick(&mut self);
}

impl Launcher {
    /// Starts programs under supervisors that run `executable`, which is this program. What programs
    /// create gets the rights that `umask` leaves.
    pub fn new(executable: PathBuf, environment: Environment, umask: u32) -> Launcher {
        Launcher {
            executable,
            environment,
            umask,
        }
    }

    /// Runs a program to its end, or to the call's.
    pub fn run(
        &self,
        job: Job<'_>,
        deadline: &Deadline,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, ProcessError> {
        check(&job.argv)?;
        if deadline.is_cancelled() {
            return Err(ProcessError::Cancelled);
        }
        let program = self.find(&job.argv)?;
        let started = Instant::now();
        let mut running = self.start(&job).map_err(failed)?;
        let task = Task {
            program,
            arguments: job.argv[1..].to_vec(),
            environment: self.environment.of(&job.argv[0], &job.variables),
            alone: job.alone,
            umask: self.umask,
        };
        let watched = wire::send(&running.socket, &task, &job.stdin)
            .and_then(|()| running.watch(started + job.timeout, deadline, sink));
        running.end();
        let (said, late) = watched.map_err(failed)?;
        if deadline.is_cancelled() {
            return Err(ProcessError::Cancelled);
        }
        Ok(Outcome {
            ending: ending(said, late)?,
            duration: started.elapsed(),
            stdout: running.stdout.capture.finish(),
            stderr: running.stderr.capture.finish(),
            artifact_id: None,
        })
    }

    /// A variable that programs get.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.variable(name)
    }

    /// A program's path. A name is looked up in the host's own PATH, never in the workspace.
    fn find(&self, argv: &[String]) -> Result<String, ProcessError> {
        let Some(program) = argv.first() else {
            return Err(ProcessError::Invalid("no program is named".to_owned()));
        };
        if program.contains('/') {
            return Ok(program.clone());
        }
        self.environment
            .find(program)
            .ok_or_else(|| ProcessError::NotStarted(format!("there is no `{program}` on the host's PATH")))
    }

    fn start(&self, job: &Job<'_>) -> std::io::Result<Running> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let mut supervisor = std::process::Command::new(&self.executable)
            .arg(SUBCOMMAND)
            .env_clear()
            // Opened once and never looked up again, so nobody can put another directory in its place.
            .current_dir(format!("/proc/self/fd/{}", job.dir.as_raw_fd()))
            .process_group(0)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let limit = job.output_limit.min(MAX_OUTPUT) as usize;
        let stdout = supervisor.stdout.take().map(OwnedFd::from);
        let stderr = supervisor.stderr.take().map(OwnedFd::from);
        Ok(Running {
            supervisor,
            socket,
            stdout: Piped::new(Stream::Out, stdout, limit),
            stderr: Piped::new(Stream::Err, stderr, limit),
            group: None,
        })
    }
}

fn failed(err: std::io::Error) -> ProcessError {
    tracing::error!(%err, "a program could not be supervised");
    ProcessError::Internal
}

fn ending(said: Option<Said>, late: bool) -> Result<Ending, ProcessError> {
    match said {
        Some(Said::NotStarted(why)) => Err(ProcessError::NotStarted(why)),
        _ if late => Ok(Ending::TimedOut),
        Some(Said::Exited(code)) => Ok(Ending::Exited(code)),
        Some(Said::Signalled(signal)) => Ok(Ending::Signalled(signal)),
        Some(Said::Started(_)) | None => Err(failed(std::io::Error::other("it ended without a word"))),
    }
}

fn check(argv: &[String]) -> Result<(), ProcessError> {
    if argv.iter().any(|word| word.contains('\0')) {
        return Err(ProcessError::Invalid("an argument has a NUL in it".to_owned()));
    }
    if argv.iter().map(|word| word.len() + 1).sum::<usize>() > MAX_ARGUMENTS {
        return Err(ProcessError::Invalid(format!(
            "its arguments have more than {MAX_ARGUMENTS} bytes"
        )));
    }
    Ok(())
}

/// A program under its supervisor.
struct Running {
    supervisor: Child,
    socket: UnixStream,
    stdout: Piped,
    stderr: Piped,
    group: Option<Pid>,
}

impl Running {
    /// Reads what the program prints until its supervisor says how it ended. Whether its time was up.
    fn watch(
        &mut self,
        until: Instant,
        deadline: &Deadline,
        sink: &mut dyn Sink,
    ) -> std::io::Result<(Option<Said>, bool)> {
        let mut asked_to_end: Option<Instant> = None;
        let mut late = false;
        loop {
            let now = Instant::now();
            if asked_to_end.is_none() && (now >= until || deadline.is_over()) {
                late = true;
                asked_to_end = Some(now);
                // The supervisor takes the end of its input for the end of the program's time.
                self.socket.shutdown(Shutdown::Write)?;
            }
            if asked_to_end.is_some_and(|asked| now >= asked + PATIENCE) {
                return Ok((None, late));
            }
            let ready = self.wait(TICK)?;
            self.stdout.take(ready.0, sink)?;
            self.stderr.take(ready.1, sink)?;
            if ready.2 {
                match wire::receive(&mut self.socket)? {
                    Some(Said::Started(group)) => self.group = Pid::from_raw(group),
                    said => {
                        self.drain(sink)?;
                        return Ok((said, late));
                    }
                }
            }
            sink.tick();
        }
    }

    /// Which of standard output, standard error and the supervisor have something to say.
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

    /// Reads what is left in the pipes. Everybody who could write to them is dead by now.
    fn drain(&mut self, sink: &mut dyn Sink) -> std::io::Result<()> {
        let until = Instant::now() + PATIENCE;
        while (self.stdout.fd.is_some() || self.stderr.fd.is_some()) && Instant::now() < until {
            let ready = self.wait(TICK)?;
            self.stdout.take(ready.0, sink)?;
            self.stderr.take(ready.1, sink)?;
        }
        Ok(())
    }

    /// Leaves no process behind. Usually the supervisor is gone already.
    fn end(&mut self) {
        // Nothing more can be done about a process that cannot be killed.
        let _ = self.socket.shutdown(Shutdown::Both);
        let until = Instant::now() + PATIENCE;
        while matches!(self.supervisor.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Ok(None) = self.supervisor.try_wait() {
            let _ = self.supervisor.kill();
            if let Some(group) = self.group {
                let _ = rustix::process::kill_process_group(group, Signal::KILL);
            }
            let _ = self.supervisor.wait();
        }
    }
}

/// One stream on its way to the sink and into a bounded memory.
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

    /// Takes one helping in, if there is one.
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
