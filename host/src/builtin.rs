//! The components that are part of this binary.

use std::time::Duration;

use crate::sandbox::Limits;

include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// The names of the built-in packs.
pub fn names() -> impl Iterator<Item = &'static str> {
    COMPONENTS.iter().map(|(name, _)| *name)
}

/// The bytes of a built-in pack.
pub fn component(name: &str) -> Option<&'static [u8]> {
    COMPONENTS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, bytes)| *bytes)
}

/// The names of the built-in policies.
pub fn policies() -> impl Iterator<Item = &'static str> {
    POLICIES.iter().map(|(name, _)| *name)
}

/// The bytes of a built-in policy.
pub fn policy(name: &str) -> Option<&'static [u8]> {
    POLICIES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, bytes)| *bytes)
}

/// What a pack's calls may use unless the operator says otherwise: more than usual where a built-in
/// pack's work is long.
pub fn limits(name: &str) -> Limits {
    let run = match name {
        // Somebody's whole test suite.
        "conductor" | "convergence" => Duration::from_secs(600),
        _ => Limits::default().run,
    };
    let write = match name {
        // What is known of a large repository is stored in one transaction.
        "conductor" => Duration::from_secs(10),
        _ => Limits::default().write,
    };
    Limits {
        run,
        write,
        ..Limits::default()
    }
}
