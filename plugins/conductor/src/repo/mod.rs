//! What is known of a job's repository: read from its workspace, kept in rows, put together to a map.

pub(crate) mod ages;
pub(crate) mod files;
pub(crate) mod kept;
pub(crate) mod knowledge;
pub(crate) mod outline;
pub(crate) mod survey;
