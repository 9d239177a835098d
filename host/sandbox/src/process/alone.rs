//! Programs that may not start others: a system call filter refuses them new processes.
//!
//! Git has more ways to start programs than any list could cover. With this filter none of them works, whichever file
//! configures it.
#![allow(unsafe_code, reason = "a filter is put in place between fork and exec")]

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// Allows a program that is about to start to have threads, but no child processes.
pub(super) fn confine(command: &mut Command) -> std::io::Result<()> {
    let filters = filters().map_err(std::io::Error::other)?;
    let install = move || {
        for filter in &filters {
            match seccompiler::apply_filter(filter) {
                Err(seccompiler::Error::Prctl(err) | seccompiler::Error::Seccomp(err))
                    if !is_absent(&err) =>
                {
                    return Err(err);
                }
                // On a system without filters only the allow-lists apply.
                _ => {}
            }
        }
        Ok(())
    };
    // SAFETY: the closure makes two system calls for each filter, on memory that was filled before the fork: it
    // allocates nothing and takes no lock.
    unsafe { command.pre_exec(install) };
    Ok(())
}

/// System calls that create a process without flags, where they exist.
#[cfg(target_arch = "x86_64")]
const FORK_CALLS: &[libc::c_long] = &[libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const FORK_CALLS: &[libc::c_long] = &[];

fn is_absent(err: &std::io::Error) -> bool {
    matches!(err.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS))
}

/// Filters that refuse the system calls that create processes: those with flags unless they create a thread, and
/// `clone3`, whose flags no filter can read, as if the system did not have it.
fn filters() -> Result<[BpfProgram; 2], seccompiler::BackendError> {
    let thread = u64::from(libc::CLONE_THREAD.unsigned_abs());
    let no_thread = SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(thread), 0)?;
    let mut processes = BTreeMap::from([(libc::SYS_clone, vec![SeccompRule::new(vec![no_thread])?])]);
    processes.extend(FORK_CALLS.iter().map(|&call| (call, Vec::new())));
    let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    Ok([
        filter(processes, libc::EPERM.unsigned_abs())?,
        filter(clone3, libc::ENOSYS.unsigned_abs())?,
    ])
}

fn filter(
    calls: BTreeMap<libc::c_long, Vec<SeccompRule>>,
    errno: u32,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let filter = SeccompFilter::new(
        calls,
        SeccompAction::Allow,
        SeccompAction::Errno(errno),
        std::env::consts::ARCH.try_into()?,
    )?;
    filter.try_into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_alone_starts_no_other() {
        let mut free = Command::new("sh");
        free.args(["-c", "true; /bin/true && echo started"]);
        assert_eq!(free.output().unwrap().stdout, b"started\n");
        let mut alone = Command::new("sh");
        alone.args(["-c", "echo here; /bin/true && echo started"]);
        confine(&mut alone).unwrap();
        assert_eq!(alone.output().unwrap().stdout, b"here\n");
    }
}
