//! Confinement of a process to what it needs to compile input that it has already read.
//!
//! Resource limits apply on every system. The system call filter applies where the kernel supports it, on the
//! processors that the filter is written for. Elsewhere only the limits apply, of which the limit on open files also
//! rules out files and sockets.

use std::collections::BTreeMap;

use anyhow::Context as _;
use nix::libc;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter_all_threads,
};

/// Address space, in bytes.
const ADDRESS_SPACE_BYTES: u64 = 4 << 30;
/// CPU time, in seconds.
const CPU_SECONDS: u64 = 120;
/// System calls that are allowed with any arguments: memory, threads, signals within the process, time.
const UNRESTRICTED_CALLS: &[libc::c_long] = &[
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    // Another filter reports this call as not implemented.
    libc::SYS_clone3,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getcpu,
    libc::SYS_membarrier,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_getrandom,
];

/// Limits the resources of this process. Must come first: input is read under it.
pub(super) fn limit() -> anyhow::Result<()> {
    // Hides this process, and with it the component that it compiles, from other processes of the same user.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .context("cannot protect the process from other processes")?;
    set(Resource::As, ADDRESS_SPACE_BYTES).context("cannot limit memory")?;
    set(Resource::Cpu, CPU_SECONDS).context("cannot limit CPU time")?;
    set(Resource::Core, 0).context("cannot disable core dumps")?;
    set(Resource::Fsize, 0).context("cannot limit file writes")
}

/// Takes all further rights from this process. From now on it can open no file or connection, start no program or
/// process, and signal no other process.
pub(super) fn confine() -> anyhow::Result<()> {
    set(Resource::Nofile, 0).context("cannot limit open files")?;
    // Compilation proceeds on kernels without filters, and on processors that the filter does not support.
    if let Err(err) = filter() {
        tracing::warn!("the compiler runs without a system-call filter: {err}");
    }
    Ok(())
}

fn set(resource: Resource, value: u64) -> rustix::io::Result<()> {
    let limit = Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    setrlimit(resource, limit)
}

fn filter() -> Result<(), seccompiler::Error> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let says = |number: i32| SeccompAction::Errno(number.unsigned_abs());
    // Code that starts threads then falls back to the older call, whose arguments a filter can inspect.
    let newer = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let newer = SeccompFilter::new(newer, SeccompAction::Allow, says(libc::ENOSYS), arch)?;
    let all = SeccompFilter::new(allowed()?, says(libc::EPERM), SeccompAction::Allow, arch)?;
    let filters: [BpfProgram; 2] = [newer.try_into()?, all.try_into()?];
    filters
        .iter()
        .try_for_each(|filter| apply_filter_all_threads(filter))
}

fn allowed() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = UNRESTRICTED_CALLS
        .iter()
        .map(|&number| (number, Vec::new()))
        .collect();
    // No executable memory, and no file mappings.
    let is_not_run = || without(2, libc::PROT_EXEC);
    let is_no_file = is(4, u64::from(u32::MAX))?;
    rules.insert(
        libc::SYS_mmap,
        vec![SeccompRule::new(vec![is_not_run()?, is_no_file])?],
    );
    rules.insert(libc::SYS_mprotect, vec![SeccompRule::new(vec![is_not_run()?])?]);
    // Threads, but not processes.
    let thread = unsigned(libc::CLONE_THREAD);
    let is_thread =
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(thread), thread)?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![is_thread])?]);
    // Only standard output and error.
    let is_output = || [1, 2].map(|fd| SeccompRule::new(vec![is(0, fd)?]));
    for call in [libc::SYS_write, libc::SYS_writev] {
        rules.insert(call, is_output().into_iter().collect::<Result<_, _>>()?);
    }
    // Only its own process, for `abort`.
    let own = u64::from(std::process::id());
    rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![is(0, own)?])?]);
    // Only thread names.
    let name = unsigned(libc::PR_SET_NAME);
    rules.insert(libc::SYS_prctl, vec![SeccompRule::new(vec![is(0, name)?])?]);
    Ok(rules)
}

/// Condition that an argument has a value.
fn is(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

/// Condition that an argument lacks a flag.
fn without(argument: u8, flag: i32) -> Result<SeccompCondition, BackendError> {
    let lacks = SeccompCmpOp::MaskedEq(unsigned(flag));
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, lacks, 0)
}

fn unsigned(number: i32) -> u64 {
    u64::from(number.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::process::Command;

    use super::*;

    /// Says to the test that it is the process to be confined.
    const CONFINED: &str = "TOLLGATE_TEST_CONFINED";

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test shows what cannot be opened")]
    fn a_confined_process_keeps_memory_and_threads_and_nothing_else() {
        if std::env::var_os(CONFINED).is_none() {
            let name =
                "loading::confine::tests::a_confined_process_keeps_memory_and_threads_and_nothing_else";
            let child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", name, "--nocapture"])
                .env(CONFINED, "1")
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&child.stdout).into_owned();
            let err = String::from_utf8_lossy(&child.stderr);
            assert!(child.status.success() && said.contains("1 passed"), "{said}{err}");
            return;
        }
        let open = std::fs::File::open("/proc/self/status").unwrap();
        let parent = rustix::process::getppid().unwrap();
        confine().unwrap();
        let worked = std::thread::spawn(|| vec![1_u8; 64 << 20].len());
        assert_eq!(worked.join().unwrap(), 64 << 20);
        assert!(std::fs::File::open("/proc/self/status").is_err(), "a file");
        assert!(TcpStream::connect("127.0.0.1:9").is_err(), "a connection");
        assert!(Command::new("/bin/true").spawn().is_err(), "a program");
        let mut byte = [0];
        let read = rustix::io::read(&open, &mut byte);
        assert_eq!(read, Err(rustix::io::Errno::PERM), "what is open already");
        let kill = rustix::process::test_kill_process(parent);
        assert_eq!(kill, Err(rustix::io::Errno::PERM), "another process");
        assert!(
            setrlimit(
                Resource::Nofile,
                Rlimit {
                    current: Some(9),
                    maximum: Some(9)
                }
            )
            .is_err()
        );
    }
}
