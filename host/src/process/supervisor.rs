//! The parent of a program, in a process of its own: it leaves nothing of the program behind.
//!
//! It adopts whatever the program's descendants leave orphaned, so even one that starts a session of
//! its own stays below it and is killed with the rest.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;

use anyhow::Context as _;
use rustix::fs::Mode;
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions};

use super::alone;
use super::wire::{self, Said, Task};

/// The hidden subcommand that runs [`run_child`].
pub const SUBCOMMAND: &str = "supervise-program";

/// Why the program's time is over.
enum Event {
    Ended(Said),
    /// The host wants no more of it, or is gone.
    Unwanted,
}

/// Runs one program that the host names over standard input, which is a socket.
pub fn run_child() -> anyhow::Result<()> {
    let stdin = std::io::stdin().as_fd().try_clone_to_owned()?;
    let mut socket = UnixStream::from(stdin);
    let (task, input) = wire::accept(&mut socket).context("no task came")?;
    prepare(&task)?;
    let pid = match start(&task, input) {
        Ok(pid) => pid,
        Err(err) => {
            let why = format!("`{}`: {err}", task.program);
            return Ok(wire::say(&socket, &Said::NotStarted(why))?);
        }
    };
    // The host may be gone by now; then there is nobody to tell, and everything ends below.
    let _ = wire::say(&socket, &Said::Started(pid.as_raw_nonzero().get()));
    let (events, event) = mpsc::channel();
    watch_host(socket.try_clone()?, events.clone());
    wait_for(pid, events);
    let ended = event.recv().unwrap_or(Event::Unwanted);
    kill_everything(pid);
    let said = match ended {
        Event::Ended(said) => said,
        Event::Unwanted => Said::Signalled(Signal::KILL.as_raw()),
    };
    let _ = wire::say(&socket, &said);
    Ok(())
}

fn prepare(task: &Task) -> anyhow::Result<()> {
    rustix::process::umask(Mode::from_raw_mode(task.umask));
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    rustix::process::setrlimit(Resource::Core, none)?;
    Ok(())
}

fn start(task: &Task, input: Vec<u8>) -> std::io::Result<Pid> {
    let mut command = Command::new(&task.program);
    command
        .args(&task.arguments)
        .env_clear()
        .envs(task.environment.iter().map(|(name, value)| (name, value)))
        .process_group(0)
        .stdin(Stdio::piped());
    if task.alone {
        alone::confine(&mut command)?;
    }
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input is no failure.
        std::thread::spawn(move || drop(stdin.write_all(&input)));
    }
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| std::io::Error::other("a process without a number"))
}

/// Tells when the host closes its side of the socket.
fn watch_host(mut socket: UnixStream, events: mpsc::Sender<Event>) {
    std::thread::spawn(move || {
        let mut byte = [0];
        while let Ok(1..) = socket.read(&mut byte) {}
        let _ = events.send(Event::Unwanted);
    });
}

/// Tells when the program ends. It is not let go yet, so that its number stays its own.
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

/// Kills the program's group, then whoever left it, until nobody is left. The orphans of those who are
/// killed become children of this process, so it is enough to go on killing children; and to go on
/// without a pause, since some start a successor and end.
fn kill_everything(program: Pid) {
    // An empty group is no failure.
    let _ = rustix::process::kill_process_group(program, Signal::KILL);
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            // Nobody is left.
            Err(rustix::io::Errno::CHILD) => return,
            Ok(Some(_)) => {}
            _ => {
                for child in children() {
                    let _ = rustix::process::kill_process(child, Signal::KILL);
                }
                std::thread::yield_now();
            }
        }
    }
}

/// The children of this process, from the lists that the system keeps for its threads, or from the
/// parents of all processes where it keeps none.
fn children() -> Vec<Pid> {
    let threads = numbers("/proc/self/task");
    let listed: Option<Vec<String>> = threads
        .into_iter()
        .map(|thread| text(&format!("/proc/self/task/{thread}/children")))
        .collect();
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let children: Vec<i32> = match listed {
        Some(lists) => lists
            .iter()
            .flat_map(|list| list.split_whitespace())
            .filter_map(|pid| pid.parse().ok())
            .collect(),
        None => numbers("/proc")
            .into_iter()
            .filter(|pid| parent(*pid) == Some(own))
            .collect(),
    };
    children.into_iter().filter_map(Pid::from_raw).collect()
}

/// The entries of a directory that are numbers.
fn numbers(directory: &str) -> Vec<i32> {
    std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// The parent of a process, from the line the system keeps on it. Its name, in parentheses, may hold
/// anything.
fn parent(pid: i32) -> Option<i32> {
    let stat = text(&format!("/proc/{pid}/stat"))?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn text(path: &str) -> Option<String> {
    #[allow(clippy::disallowed_methods, reason = "the system's own lists of processes")]
    std::fs::read_to_string(path).ok()
}
