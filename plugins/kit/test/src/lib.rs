//! The tests that all packs have in common.
//!
//! [`script`] runs scripts and checks every call of them, [`never_panics`] feeds tools with arguments that fit their
//! schemas or nearly do, [`edges_never_fail`] tries the edges of each argument, and [`table`] walks a pack's tools. [`cases`] says how often a
//! random test runs.

mod arguments;
mod edges;
mod well_formed;

use expect_test::ExpectFile;
use tollgate_sdk::native::{self, Script, Session};
use tollgate_sdk::{Pack, Tier};

pub use arguments::{Arguments, never_panics};
pub use edges::edges_never_fail;
pub use well_formed::{well_formed, well_formed_with_nulls};

/// Number of cases of a random test: all of them if `TOLLGATE_LONG` is set, and an eighth otherwise. Each run draws other
/// ones, so the runs of some changes cover together what a long one does.
#[must_use]
pub fn cases(all: u32) -> u32 {
    match std::env::var_os("TOLLGATE_LONG") {
        Some(_) => all,
        None => all.div_ceil(8),
    }
}

/// Scripts in a session. Every call is checked by [`well_formed()`].
#[must_use]
pub fn script(session: &Session) -> Script<'_> {
    Script::new(session).check(well_formed)
}

/// Changes that a session's ledger names, one line per event.
#[must_use]
pub fn changes(session: &Session) -> String {
    let events = session.events();
    let lines = events
        .iter()
        .map(|event| format!("{} {}\n", event.event_type, event.changed.join(" ")));
    lines.collect()
}

/// Checks that every client takes a pack's tools, that at most `core` of them are core, and what clients see.
///
/// The snapshot also has the scope of each `write` tool (`x-scope`), which is a decision: calls in different scopes run
/// side by side on a server, so neither may look at rows that the other one changes. A `write` tool without a scope
/// waits for all other calls. A read whose pages follow a number that all scopes share is a feed (`x-feed`).
pub fn table(pack: &Pack, core: usize, schemas: &ExpectFile) {
    assert_eq!(native::table::faults(pack), Vec::<String>::new());
    let found = pack.tools.iter().filter(|tool| tool.tier == Tier::Core).count();
    assert!(found <= core, "{found} tools of {} are core", pack.name);
    schemas.assert_eq(&native::table::text(pack));
}
