//! Policies: components that judge calls before they are admitted and results before they are committed.
//!
//! They form one ordered chain. What the chain makes of their verdicts is decided in `chain` without running
//! anything; the gate runs them.

mod chain;
mod load;
mod member;
#[cfg(test)]
mod tests;
mod verdict;

pub(crate) use chain::Subject;
pub use chain::{Chain, Decision, Hearing, Question};
pub use load::{LIMITS, Policy, Source, Unloaded};
pub use member::{Member, Mode, Phase};
pub use verdict::{Answer, Cause, Fault, Verdict};
