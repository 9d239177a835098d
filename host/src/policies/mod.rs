//! Policies: components that judge calls before they are admitted and results before they are
//! committed.
//!
//! They form one ordered chain. What the chain does with their verdicts is decided in `chain`
//! without running anything; `judge` runs them.

mod chain;
mod judge;
mod load;

pub use chain::{Chain, Decision, Judged, Member, Mode, Phase, Verdict};
pub use judge::Bench;
pub use load::{Policy, Source};
