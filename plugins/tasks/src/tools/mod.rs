//! The tools, grouped by subject.

pub(crate) mod batch;
pub(crate) mod close;
pub(crate) mod context;
pub(crate) mod create;
pub(crate) mod edit;
pub(crate) mod evidence;
pub(crate) mod focus;
pub(crate) mod history;
pub(crate) mod lease;
pub(crate) mod lifecycle;
pub(crate) mod lint;
pub(crate) mod next;
pub(crate) mod node;
pub(crate) mod place;
pub(crate) mod plan;
pub(crate) mod progress;
mod ready;
pub(crate) mod resume;
pub(crate) mod search;
pub(crate) mod show;
pub(crate) mod steps;
pub(crate) mod storage;
pub(crate) mod take;
pub(crate) mod template;
pub(crate) mod views;
pub(crate) mod workspaces;
