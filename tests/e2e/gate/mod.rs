//! Admission of calls: approvals, budgets, rate limits, and fairness between identities.

pub(crate) mod approvals;
mod budgets;
mod denied_calls;
mod failure_classes;
mod fairness;
pub(crate) mod person;
mod rate_limits;
mod single_use_approvals;
