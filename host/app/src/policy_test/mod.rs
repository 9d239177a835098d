//! Trying policies on calls that nobody makes: cases that somebody wrote down, and what the ledger recorded.
//!
//! `cases` reads a file of cases, `run` asks a policy about each, `compare` says what is not as expected.
//! `replay` asks it about recorded calls, `recorded` finds what is kept of one, and `tally` counts.

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

/// Time limit of a policy here, where a slow machine says nothing about the policy. The time it took is reported.
const PATIENCE: Duration = Duration::from_secs(2);

/// End of a trial: its deadline and its time limit.
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
            "the policy was not through after {} s; give it less to judge, or more time with --time",
            self.time.as_secs()
        );
        Ok(())
    }
}

/// A policy as it is tried: what it says counts, it has time enough, and what it asks for, which is none of the
/// operator's here.
fn at_leisure(mut source: Source, described: &Described) -> Source {
    source.mode = Mode::Enforce;
    source.fail_open = false;
    source.limits.read = source.limits.read.max(PATIENCE);
    described.grant_all(&mut source.grants);
    source
}

/// Runs work on a thread of its own. WASI blocks the thread that it is on when a component prints, as one that
/// panics does, and none of the runtime's may be blocked.
fn aside<T: Send>(work: impl FnOnce() -> anyhow::Result<T> + Send) -> anyhow::Result<T> {
    std::thread::scope(|scope| scope.spawn(work).join())
        .unwrap_or_else(|_| Err(anyhow::anyhow!("the host failed while it tested a policy")))
}
