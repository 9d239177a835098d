//! Building blocks of reads: the current state in few words.

pub(crate) mod handoff;
pub(crate) mod lint;
pub(crate) mod radar;
pub(crate) mod show;
pub(crate) mod tree;
