//! Facts about the machine, binding of threads to one core, and memory use of a process.

use anyhow::Context as _;
use tollgate_core::clock::{Clock as _, SystemClock};
use tollgate_sdk::Timestamp;

/// Clock ticks in a second, the kernel's unit of CPU time.
const TICKS: f64 = 100.0;

/// Lines about the machine and the build.
pub(crate) fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease").unwrap_or_else(|_| "unknown".to_owned());
    let profile = if cfg!(debug_assertions) {
        "debug (figures mean little)"
    } else {
        "release"
    };
    let load = read("/proc/loadavg").unwrap_or_default();
    let today = Timestamp::from_ms(SystemClock.now_ms()).to_string();
    format!(
        "{}; {}, {cores} cores, {}\n\
         {} {}, kernel {}, {}, profile {profile}\n\
         load before the start: {} (a load near 1 or more makes all times longer)",
        today.split('T').next().unwrap_or_default(),
        field("/proc/cpuinfo", "model name").unwrap_or_else(|| "processor unknown".to_owned()),
        field("/proc/meminfo", "MemTotal").unwrap_or_else(|| "memory unknown".to_owned()),
        std::env::consts::OS,
        std::env::consts::ARCH,
        kernel.trim(),
        option_env!("BENCH_RUSTC").unwrap_or("rustc unknown"),
        load.split(' ').next().unwrap_or_default(),
    )
}

/// Runs `body` on a thread that is bound to one core, with all threads and processes that it starts.
pub(crate) fn on_one_core<T: Send>(body: impl FnOnce() -> anyhow::Result<T> + Send) -> anyhow::Result<T> {
    let bound = || {
        // The last core, because interrupts are mostly handled by the first.
        let core = core_affinity::get_core_ids().and_then(|cores| cores.last().copied());
        let core = core.context("the cores of this machine are not known")?;
        anyhow::ensure!(
            core_affinity::set_for_current(core),
            "a thread could not be bound to a core"
        );
        body()
    };
    std::thread::scope(|scope| {
        scope
            .spawn(bound)
            .join()
            .map_err(|_| anyhow::anyhow!("a measurement panicked"))?
    })
}

/// The resident memory of a process, in MiB.
pub(crate) fn resident_mib(process: u32) -> anyhow::Result<f64> {
    let status = read(&format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kib.context("the process has no VmRSS")? / 1024.0)
}

/// Number of threads of a process.
pub(crate) fn threads(process: u32) -> anyhow::Result<f64> {
    let status = read(&format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("Threads:"));
    let threads = line.and_then(|line| line.trim().parse::<f64>().ok());
    threads.context("the process has no number of threads")
}

/// The CPU time that a process has used, in seconds.
pub(crate) fn processor_seconds(process: u32) -> anyhow::Result<f64> {
    let stat = read(&format!("/proc/{process}/stat"))?;
    // The name comes second and may contain anything, so fields are counted from its end.
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let ticks = |field: usize| fields.get(field).and_then(|text| text.parse::<f64>().ok());
    let (user, system) = ticks(11).zip(ticks(12)).context("the process has no times")?;
    Ok((user + system) / TICKS)
}

/// Value of a field in a file of the kernel, from the first line with that name.
fn field(path: &str, name: &str) -> Option<String> {
    let text = read(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn read(path: &str) -> anyhow::Result<String> {
    #[allow(
        clippy::disallowed_methods,
        reason = "the kernel's own files have fixed paths"
    )]
    std::fs::read_to_string(path).with_context(|| format!("{path} cannot be read"))
}
