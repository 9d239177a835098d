//! The children of this process: those it started, and orphans that came to it because their supervisor died.
//!
//! A program can kill its supervisor, which has the same user. This process is a child subreaper too, so that whatever
//! the program left is its child then, however it left its group or its session. Who is a child and was not
//! started by this process is such an orphan.

use std::collections::BTreeSet;
use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions};

/// Number of looks in a row that must find no orphan. A list of children can miss one while others end.
const QUIET: u32 = 3;
/// Time between two looks at orphans once there is none.
const PAUSE: Duration = Duration::from_millis(1);

/// Which children are not orphans.
static KNOWN: Mutex<Known> = Mutex::new(Known {
    own: BTreeSet::new(),
    strangers: None,
});

struct Known {
    /// Children that this process started and still waits for.
    own: BTreeSet<u32>,
    /// Children that existed before the first program, as after `exec` in a shell that had started some. Their
    /// orphans come here too.
    strangers: Option<BTreeSet<u32>>,
}

/// A child that this process started, so that it is not taken for an orphan.
#[derive(Debug)]
pub struct Started(u32);

impl Drop for Started {
    fn drop(&mut self) {
        known().own.remove(&self.0);
    }
}

/// Starts a child. The lock keeps everybody from taking it for an orphan before its number is known.
pub fn start<C>(
    spawn: impl FnOnce() -> io::Result<C>,
    number: impl FnOnce(&C) -> Option<u32>,
) -> io::Result<(C, Started)> {
    let mut known = known();
    let child = spawn()?;
    let number = number(&child).ok_or_else(|| io::Error::other("a process without a number"))?;
    known.own.insert(number);
    Ok((child, Started(number)))
}

/// Makes orphans of supervisors children of this process, and starts a supervisor.
pub(super) fn start_supervisor(command: &mut Command) -> io::Result<(Child, Started)> {
    adopt()?;
    start(|| command.spawn(), |child| Some(child.id()))
}

fn adopt() -> io::Result<()> {
    let mut known = known();
    if known.strangers.is_none() {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let there = of_this_process().into_iter().map(number);
        known.strangers = Some(there.filter(|child| !known.own.contains(child)).collect());
    }
    Ok(())
}

/// Takes leave of a child of this process if it has ended. Until then its number stays its own.
pub(super) fn has_ended(child: &mut Child, started: &mut Option<Started>) -> bool {
    let mut known = known();
    let ended = !matches!(child.try_wait(), Ok(None));
    if ended && let Some(started) = started.take() {
        known.own.remove(&started.0);
        // The lock is held already.
        std::mem::forget(started);
    }
    ended
}

/// Kills all orphans, and whoever they leave, until there is none. Whether that was done in time.
pub(super) fn end_orphans(until: Instant) -> bool {
    let mut quiet = 0;
    while quiet < QUIET {
        if Instant::now() >= until {
            return false;
        }
        if end_those_there() {
            quiet = 0;
            std::thread::yield_now();
        } else {
            quiet += 1;
            std::thread::sleep(PAUSE);
        }
    }
    true
}

/// Kills the orphans that are there now. Whether there was any. Nobody else waits for them, so that their numbers
/// stay theirs meanwhile.
fn end_those_there() -> bool {
    let known = known();
    let mut any = false;
    for child in of_this_process() {
        if !known.is_orphan(child) {
            continue;
        }
        any = true;
        // One that cannot be killed is another user's by now.
        let _ = rustix::process::kill_process(child, Signal::KILL);
        let _ = rustix::process::waitpid(Some(child), WaitOptions::NOHANG);
    }
    any
}

impl Known {
    fn is_orphan(&self, child: Pid) -> bool {
        let number = number(child);
        let is_known = |children: &BTreeSet<u32>| children.contains(&number);
        if is_known(&self.own) || self.strangers.as_ref().is_none_or(is_known) {
            return false;
        }
        // The orphans of a container's other processes come to its first one.
        let is_first = rustix::process::getpid() == Pid::INIT;
        let is_alone = !is_first && self.strangers.as_ref().is_some_and(BTreeSet::is_empty);
        is_alone || is_marked(number)
    }
}

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

/// A limit that the system keeps for each process and has no use for: what carries it comes from a supervisor.
/// Children inherit it, `exec` keeps it, and only root could raise it again.
const MARK: u64 = 0x7011_6a7e;

/// Marks this process and all that come from it.
pub(super) fn mark() -> rustix::io::Result<()> {
    let mark = Rlimit {
        current: Some(MARK),
        maximum: Some(MARK),
    };
    rustix::process::setrlimit(Resource::Locks, mark)
}

fn is_marked(pid: u32) -> bool {
    let limits = text(&format!("/proc/{pid}/limits")).unwrap_or_default();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max file locks"));
    let highest = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    highest.is_some_and(|highest: u64| highest <= MARK)
}

/// True if a process is stopped or traced.
pub(super) fn is_held(pid: u32) -> bool {
    let stat = text(&format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.trim_start().chars().next());
    matches!(state, Some('T' | 't'))
}

/// The children of this process, from the lists that the system keeps for its threads, or from the
/// parents of all processes where it keeps none.
pub(super) fn of_this_process() -> Vec<Pid> {
    let threads = numbers("/proc/self/task");
    let lists = threads
        .into_iter()
        .map(|thread| format!("/proc/self/task/{thread}/children"));
    let listed = lists.filter_map(|list| text(&list)).collect::<Vec<_>>();
    let children: Vec<i32> = if listed.is_empty() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let all = numbers("/proc").into_iter();
        all.filter(|pid| parent(*pid) == Some(own)).collect()
    } else {
        let words = listed.iter().flat_map(|list| list.split_whitespace());
        words.filter_map(|pid| pid.parse().ok()).collect()
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
