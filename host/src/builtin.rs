//! The components that are part of this binary.

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
