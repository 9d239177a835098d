//! Children of this process: those it started, and orphans that it inherited because their supervisor died.
//!
//! A program can kill its supervisor, which runs as the same user. This process is a child subreaper too, so it
//! inherits all remaining processes of the program, even those that left its group or session. A child that this
//! process did not start is such an orphan.

use std::collections::BTreeSet;
use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions};

/// Number of consecutive checks that must find no orphan. A list of children can miss one while others end.
const QUIET_CHECKS: u32 = 3;
/// Pause between checks for orphans once none is found.
const ORPHAN_CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// Children that are not orphans.
static KNOWN_CHILDREN: Mutex<Known> = Mutex::new(Known {
    own: BTreeSet::new(),
    strangers: None,
});

struct Known {
    /// Children that this process started and has not waited for.
    own: BTreeSet<u32>,
    /// Children that existed before the first program, for example after `exec` in a shell that had started some.
    /// Their orphans are inherited too.
    strangers: Option<BTreeSet<u32>>,
}

/// Child that this process started, registered so that it is not taken for an orphan.
#[derive(Debug)]
pub struct Started(u32);

impl Drop for Started {
    fn drop(&mut self) {
        known().own.remove(&self.0);
    }
}

/// Starts a child. The lock prevents it from being taken for an orphan before its process id is known.
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

/// Makes this process inherit the orphans of supervisors, and starts a supervisor.
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

/// Reaps a child of this process if it has ended. Until then its process id is not reused.
pub(super) fn has_ended(child: &mut Child, started: &mut Option<Started>) -> bool {
    let mut known = known();
    let ended = !matches!(child.try_wait(), Ok(None));
    if ended && let Some(started) = started.take() {
        known.own.remove(&started.0);
        // The lock is already held.
        std::mem::forget(started);
    }
    ended
}

/// Kills all orphans, and the orphans that those leave, until there are none. Returns whether that was done in time.
pub(super) fn end_orphans(until: Instant) -> bool {
    let mut quiet = 0;
    while quiet < QUIET_CHECKS {
        if Instant::now() >= until {
            return false;
        }
        if end_those_there() {
            quiet = 0;
            std::thread::yield_now();
        } else {
            quiet += 1;
            std::thread::sleep(ORPHAN_CHECK_INTERVAL);
        }
    }
    true
}

/// Kills the current orphans. Returns whether there were any. Only this function reaps them, so their process ids are
/// not reused meanwhile.
fn end_those_there() -> bool {
    let known = known();
    let mut any = false;
    for child in of_this_process() {
        if !known.is_orphan(child) {
            continue;
        }
        any = true;
        // A process that cannot be killed now belongs to another user.
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
        // In a container, the first process inherits the orphans of all other processes.
        let is_first = rustix::process::getpid() == Pid::INIT;
        let is_alone = !is_first && self.strangers.as_ref().is_some_and(BTreeSet::is_empty);
        is_alone || is_marked(number)
    }
}

fn known() -> MutexGuard<'static, Known> {
    KNOWN_CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

/// Unused resource limit that marks processes that come from a supervisor. Children inherit it, `exec` keeps it, and
/// only root could raise it again.
const SUPERVISOR_MARK: u64 = 0x7011_6a7e;

/// Marks this process and all its descendants.
pub(super) fn mark() -> rustix::io::Result<()> {
    let mark = Rlimit {
        current: Some(SUPERVISOR_MARK),
        maximum: Some(SUPERVISOR_MARK),
    };
    rustix::process::setrlimit(Resource::Locks, mark)
}

fn is_marked(pid: u32) -> bool {
    let limits = text(&format!("/proc/{pid}/limits")).unwrap_or_default();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max file locks"));
    let highest = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    highest.is_some_and(|highest: u64| highest <= SUPERVISOR_MARK)
}

/// True if a process is stopped or traced.
pub(super) fn is_held(pid: u32) -> bool {
    let stat = text(&format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.trim_start().chars().next());
    matches!(state, Some('T' | 't'))
}

/// Children of this process, from the lists that the system keeps for its threads, or from the parents of all
/// processes if it keeps none.
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

/// Entries of a directory that are numbers.
fn numbers(directory: &str) -> Vec<i32> {
    std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// Parent of a process, from the system's status line. The process name, in parentheses, may contain anything.
fn parent(pid: i32) -> Option<i32> {
    let stat = text(&format!("/proc/{pid}/stat"))?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn text(path: &str) -> Option<String> {
    #[allow(clippy::disallowed_methods, reason = "the system's own lists of processes")]
    std::fs::read_to_string(path).ok()
}
