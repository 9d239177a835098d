//! A job's repository: read from its workspace, stored in rows, combined to a map.

mod above;
pub(crate) mod ages;
pub(crate) mod files;
pub(crate) mod kept;
pub(crate) mod knowledge;
mod merge;
pub(crate) mod outline;
mod past;
pub(crate) mod reach;
pub(crate) mod survey;
