//! Policy tests on calls that are not made: written cases, and calls recorded in the ledger.
//!
//! `cases` parses a file of cases, `run` evaluates each with a policy, and `compare` finds differences. `replay`
//! evaluates recorded calls, `recorded` finds the stored content of a call, and `tally` counts the verdicts.

mod cases;
mod compare;
mod fields;
mod past;
mod recorded;
mod remembered;
mod replay;
mod run;
mod tally;

use std::time::{Duration, Instant};

use tollgate_components::policies::{Described, Mode, Source};

pub use cases::{BadCases, Case, read};
pub use recorded::Missing;
pub use replay::{Replay, replay};
pub use run::{Ran, run};
pub use tally::{Example, ToolTally};

/// Timeout of a policy in tests, so that a slow machine does not affect the verdict. The actual duration is reported.
const POLICY_TIMEOUT: Duration = Duration::from_secs(2);

/// End of a test: its deadline and its time limit.
#[derive(Debug, Clone, Copy)]
struct End {
    at: Instant,
    time: Duration,
}

impl End {
    fn after(time: Duration) -> End {
        End {
            at: Instant::now() + time,
            time,
        }
    }

    /// Fails once the time is over.
    fn look(self) -> anyhow::Result<()> {
        anyhow::ensure!(
            Instant::now() < self.at,
            "the policy did not finish within {} s; give it fewer calls, or more time with --time",
            self.time.as_secs()
        );
        Ok(())
    }
}

/// Adapts a policy for tests: its verdicts are enforced, its timeout is generous, and it gets everything that it
/// requests, but none of the operator's resources.
fn at_leisure(mut source: Source, described: &Described) -> Source {
    source.mode = Mode::Enforce;
    source.fail_open = false;
    source.limits.time = source.limits.time.max(POLICY_TIMEOUT);
    described.grant_all(&mut source.grants);
    source
}

/// Runs work on its own thread. WASI blocks the thread when a component prints, for example in a panic, and the
/// runtime's threads must not be blocked.
fn aside<T: Send>(work: impl FnOnce() -> anyhow::Result<T> + Send) -> anyhow::Result<T> {
    std::thread::scope(|scope| scope.spawn(work).join())
        .unwrap_or_else(|_| Err(anyhow::anyhow!("the host failed while it tested a policy")))
}
