//! Policies: components that judge calls before they are admitted and results before they are committed.
//!
//! They form one ordered chain. What the chain makes of their verdicts is decided in `chain` without running
//! anything; the gate runs them.

mod chain;
mod change;
mod instance_pool;
mod load;
mod manifest;
mod member;
#[cfg(test)]
mod tests;
mod verdict;

pub use chain::{Chain, Decision, Hearing, Question, Spoken, Subject};
pub use change::PolicyChange;
pub use instance_pool::{InstancePool, PooledInstance, RetiredInstance};
pub use load::Described;
pub use load::{LIMITS, Policy, Source, Unloaded};
pub use manifest::Manifest;
pub use member::{Member, Mode, Phase};
pub use verdict::{Answer, Cause, Fault, Verdict};
