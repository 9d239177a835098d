//! The user who runs this program.

use nix::unistd::{Uid, User};

/// Name of the user, as a claim: from the environment, or else from the system's user database. `None` if that has no
/// such user, as in some containers.
pub fn name() -> Option<String> {
    let named = |variable: &str| {
        std::env::var(variable)
            .ok()
            .filter(|name| !name.trim().is_empty())
    };
    named("USER")
        .or_else(|| named("LOGNAME"))
        .or_else(|| Some(User::from_uid(Uid::current()).ok()??.name))
}
