//! The supervisor: parent of a program, in a separate process, which leaves no process of the program behind.
//!
//! The supervisor adopts the orphans of the program's descendants, so a descendant that starts its own session still
//! stays below it and is killed with the rest.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use nix::libc;
use rustix::fs::Mode;
use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions,
    kill_process, kill_process_group,
};

use super::wire::{self, Said, Task};
use super::{alone, children};

/// Time of checking for children without a pause: some start a successor and end at once.
const CHASE_LIMIT: Duration = Duration::from_secs(1);
/// Time of trying to kill children that this user may not kill, or that cannot be found.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for a program without child processes to clean up.
const CLEANUP_TIMEOUT: Duration = Duration::from_millis(200);
/// Pause between checks for remaining children.
const CHILD_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Hidden subcommand that runs [`run_child`].
pub const SUBCOMMAND: &str = "supervise-program";

/// Reason for which the program must end.
enum Event {
    Ended(Said),
    /// The host cancelled it, or is gone.
    Unwanted,
}

/// Runs one program that the host names over standard input, which is a socket.
pub fn run_child() -> anyhow::Result<()> {
    let stdin = std::io::stdin().as_fd().try_clone_to_owned()?;
    let mut socket = UnixStream::from(stdin);
    let (task, input) = wire::accept(&mut socket).context("no task was received")?;
    prepare(&task)?;
    let pid = match start(&task, input) {
        Ok(pid) => pid,
        Err(err) => {
            let why = format!("`{}`: {err}", task.program);
            return Ok(wire::say(&socket, &Said::NotStarted(why))?);
        }
    };
    // The host may be gone by now. In that case nothing is reported, and all processes are killed below.
    let _ = wire::say(&socket, &Said::Started);
    let (events, event) = mpsc::channel();
    watch_host(socket.try_clone()?, events.clone());
    wait_for(pid, events);
    let mut ended = event.recv().unwrap_or(Event::Unwanted);
    if task.alone && matches!(ended, Event::Unwanted) {
        ended = dismiss(pid, &event);
    }
    if !kill_everything(pid) {
        // The program took a resource that this process needs. The host detects its death and does the rest.
        kill_process(rustix::process::getpid(), Signal::KILL)?;
    }
    let said = match ended {
        Event::Ended(said) => said,
        Event::Unwanted => Said::Signalled(Signal::KILL.as_raw()),
    };
    let _ = wire::say(&socket, &said);
    Ok(())
}

/// Asks a program to end before it is killed, so that Git removes its lock files, which would block others from the
/// repository. The program has no child process that could misuse the time.
fn dismiss(program: Pid, event: &mpsc::Receiver<Event>) -> Event {
    // The program has not been reaped yet, so its process id is not reused.
    let _ = kill_process(program, Signal::TERM);
    event.recv_timeout(CLEANUP_TIMEOUT).unwrap_or(Event::Unwanted)
}

fn prepare(task: &Task) -> anyhow::Result<()> {
    rustix::process::umask(Mode::from_raw_mode(task.umask));
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    rustix::process::setrlimit(Resource::Core, none)?;
    // A process below another host has a lower limit already, which marks it as well.
    let _ = children::mark();
    // Prevents the program, which runs as the same user, from tracing this process and accessing its files.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    keep_files();
    Ok(())
}

/// Hides the open files of this process and of the host from the program, including files that the host was started
/// with.
fn keep_files() {
    let first_after_standard: libc::c_long = 3;
    let last = libc::c_long::from(i32::MAX);
    let flags = libc::c_long::from(libc::CLOSE_RANGE_CLOEXEC.cast_signed());
    #[allow(
        unsafe_code,
        reason = "the system call has no safe form in the crates that are used"
    )]
    // SAFETY: nothing is closed before `exec`; until then every descriptor stays its owner's. An old kernel, which
    // lacks the call, does nothing.
    unsafe {
        libc::syscall(libc::SYS_close_range, first_after_standard, last, flags)
    };
}

fn start(task: &Task, input: Vec<u8>) -> std::io::Result<Pid> {
    let mut program = Command::new(&task.program);
    program
        .args(&task.arguments)
        .env_clear()
        .envs(task.environment.iter().map(|(name, value)| (name, value)))
        .process_group(0)
        .stdin(Stdio::piped());
    die_with_this(&mut program, task.alone);
    if task.alone {
        alone::confine(&mut program)?;
    }
    if let Some(bytes) = task.memory {
        limit_memory(&mut program, bytes);
    }
    let mut child = program.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // It is not an error if a program does not read its input.
        std::thread::spawn(move || drop(stdin.write_all(&input)));
    }
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| std::io::Error::other("a process without a number"))
}

/// Makes the system kill the program when this process is killed. The host then kills the program's children. A
/// program without children may clean up.
fn die_with_this(program: &mut Command, alone: bool) {
    let own = rustix::process::getpid();
    let signal = if alone { Signal::TERM } else { Signal::KILL };
    let ask = move || {
        rustix::process::set_parent_process_death_signal(Some(signal))?;
        match rustix::process::getppid() {
            Some(parent) if parent == own => Ok(()),
            // The parent was killed before the request.
            _ => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    };
    #[allow(
        unsafe_code,
        reason = "only the child itself can ask for it, between fork and exec"
    )]
    // SAFETY: two system calls, neither of which allocates, locks or reads what another thread could have left half
    // changed.
    unsafe {
        program.pre_exec(ask)
    };
}

/// Limits the memory of a program. Mapped files do not count, because Git maps packs of any size.
fn limit_memory(program: &mut Command, bytes: u64) {
    let limit = Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    #[allow(
        unsafe_code,
        reason = "the supervisor itself keeps what it has, so the child limits itself"
    )]
    // SAFETY: one system call, which neither allocates nor locks.
    unsafe {
        program.pre_exec(move || Ok(rustix::process::setrlimit(Resource::Data, limit)?))
    };
}

/// Reports when the host closes its side of the socket.
fn watch_host(mut socket: UnixStream, events: mpsc::Sender<Event>) {
    std::thread::spawn(move || {
        let mut byte = [0];
        while let Ok(1..) = socket.read(&mut byte) {}
        let _ = events.send(Event::Unwanted);
    });
}

/// Reports when the program ends. The program is not reaped yet, so its process id is not reused.
fn wait_for(program: Pid, events: mpsc::Sender<Event>) {
    std::thread::spawn(move || {
        let ended = loop {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            match rustix::process::waitid(WaitId::Pid(program), options) {
                Ok(Some(status)) => break ending(&status),
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        };
        let _ = events.send(Event::Ended(ended));
    });
}

fn ending(status: &WaitIdStatus) -> Said {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Said::Exited(code),
        (None, signal) => Said::Signalled(signal.unwrap_or_default()),
    }
}

/// Kills the program's group, then all processes that left it, until none is left. The orphans of killed processes
/// become children of this process, so it is enough to keep killing children. Children that changed to another user
/// cannot be killed and are given up. False if there are children that this process cannot find.
fn kill_everything(program: Pid) -> bool {
    // An empty group is not an error.
    let _ = kill_process_group(program, Signal::KILL);
    let mut quiet_since = Instant::now();
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            // No process is left.
            Err(rustix::io::Errno::CHILD) => return true,
            Ok(Some(_)) => quiet_since = Instant::now(),
            _ => {
                let children = children::of_this_process();
                let killed = children
                    .iter()
                    .filter(|child| kill_process(**child, Signal::KILL).is_ok())
                    .count();
                let quiet = quiet_since.elapsed();
                if killed == 0 && quiet >= KILL_TIMEOUT {
                    return !children.is_empty();
                }
                if quiet < CHASE_LIMIT {
                    std::thread::yield_now();
                } else {
                    std::thread::sleep(CHILD_CHECK_INTERVAL);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_no_more_memory_than_its_limit() {
        let take = |bytes: u64, limit: Option<u64>| {
            let mut program = Command::new("python3");
            program.args(["-c", &format!("bytearray({bytes})")]);
            if let Some(limit) = limit {
                limit_memory(&mut program, limit);
            }
            program.output().unwrap()
        };
        let limit = 256 << 20;
        assert!(take(2 * limit, None).status.success());
        assert!(take(limit / 4, Some(limit)).status.success());
        let refused = take(2 * limit, Some(limit));
        assert_eq!(refused.status.code(), Some(1));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains("MemoryError"), "{said}");
    }
}
