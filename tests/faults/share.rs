//! Selection of a share of the positions at which a file is damaged.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// All places if `TOLLGATE_LONG` is set, and otherwise one of so many, from a random one on: each run takes other ones, so
/// the runs of some changes cover together what a long one does.
pub(crate) fn share(places: impl Iterator<Item = usize>, one_of: usize) -> impl Iterator<Item = usize> {
    let (first, step) = match std::env::var_os("TOLLGATE_LONG") {
        Some(_) => (0, 1),
        None => (random() % one_of, one_of),
    };
    places.skip(first).step_by(step)
}

fn random() -> usize {
    let random = RandomState::new().build_hasher().finish();
    usize::try_from(random >> 32).unwrap_or_default()
}
