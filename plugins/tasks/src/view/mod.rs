//! Building blocks of reads: the current state in few words.

pub(crate) mod current;
pub(crate) mod handoff;
pub(crate) mod lint;
pub(crate) mod radar;
pub(crate) mod tree;
