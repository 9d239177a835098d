//! Policies: components that judge calls before they are admitted and results before they are committed.
//!
//! All policies form one ordered chain. The module `chain` combines their verdicts without running anything; the gate
//! runs the policies.

mod chain;
mod clashes;
mod described;
mod load;
mod manifest;
mod member;
mod policy;
#[cfg(test)]
mod tests;
mod verdict;

pub use chain::{BoundVerdict, Chain, Decision, Hearing, Question, Subject};
pub use described::Described;
pub use manifest::Manifest;
pub use member::{Member, Mode, Phase};
pub use policy::{JudgingLimits, Policy, Source, Unloaded};
pub use verdict::{Answer, Cause, Fault, Verdict};
