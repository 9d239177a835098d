//! What reads are made of: where things stand, put into few words.

pub(crate) mod current;
pub(crate) mod handoff;
pub(crate) mod lint;
pub(crate) mod radar;
pub(crate) mod tree;
