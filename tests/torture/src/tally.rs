//! Counters of a run.

use std::fmt;
use std::ops::AddAssign;

/// Counters of harm and of checked answers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    /// Hosts that were killed.
    pub(crate) killed: u64,
    /// Hosts that were restarted one after another.
    pub(crate) restarted: u64,
    /// Hosts that were stopped with SIGSTOP and continued.
    pub(crate) stopped: u64,
    /// Stopped hosts whose lease expired.
    pub(crate) zombies: u64,
    /// Times that the database's server was harmed.
    pub(crate) harms: u64,
    /// Failures of the network to the server.
    pub(crate) faults: u64,
    /// Replies whose rows were checked.
    pub(crate) checked: usize,
    /// Rows of ledgers.
    pub(crate) rows: i64,
    /// Calls with an unknown outcome.
    pub(crate) unknown: u64,
    /// Calls that were refused because the server was unreachable.
    pub(crate) unreached: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.killed += other.killed;
        self.restarted += other.restarted;
        self.stopped += other.stopped;
        self.zombies += other.zombies;
        self.harms += other.harms;
        self.faults += other.faults;
        self.checked += other.checked;
        self.rows += other.rows;
        self.unknown += other.unknown;
        self.unreached += other.unreached;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} hosts killed", self.killed)?;
        if self.harms + self.faults + self.restarted + self.stopped > 0 {
            write!(
                f,
                ", {} restarted and {} stopped for a while ({} beyond their lease), the server harmed {} times and the way to it {} times, {} outcomes unknown and {} calls refused meanwhile",
                self.restarted,
                self.stopped,
                self.zombies,
                self.harms,
                self.faults,
                self.unknown,
                self.unreached
            )?;
        }
        write!(f, ", {} replies checked, {} rows", self.checked, self.rows)
    }
}
