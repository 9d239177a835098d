//! Trying policies on calls that nobody makes: cases that somebody wrote down, and what the ledger recorded.
//!
//! [`cases`] reads a file of cases, [`run`] asks a policy about each, [`compare`] says what is not as expected.
//! [`replay`] asks it about recorded calls, [`recorded`] finds what is kept of one, and [`tally`] counts.

mod cases;
mod compare;
mod fields;
mod past;
mod recorded;
mod replay;
mod run;
mod tally;

use std::time::Duration;

use crate::packs::Grants;
use crate::policies::{Described, Source};

pub use cases::{BadCases, Case, read};
pub use recorded::Missing;
pub use replay::{Replay, replay};
pub use run::{Ran, run};
pub use tally::{Example, ToolTally};

/// How long a policy may take here, where a slow machine says nothing about it. What it took is told.
const PATIENCE: Duration = Duration::from_secs(2);

/// A policy as it is tried: with time enough, and granted what it asks for, which is none of the operator's here.
fn at_leisure(mut source: Source, described: &Described) -> Source {
    source.limits.read = source.limits.read.max(PATIENCE);
    source.grants = all_granted(&source.grants, described);
    source
}

fn all_granted(grants: &Grants, described: &Described) -> Grants {
    let mut grants = grants.clone();
    described.grant_all(&mut grants);
    grants
}
