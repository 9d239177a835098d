//! Envelopes: limits, ends, and edits that count in them.

pub(crate) mod closing;
mod closing_work_tree;
mod hidden_edits;
mod lifecycle;
mod limits;
pub(crate) mod observed_edits;
mod shared_limits;
