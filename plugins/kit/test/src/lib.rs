//! The tests that all packs have in common.
//!
//! [`script`] runs scripts and checks every call of them, [`never_panics`] feeds tools with arguments that fit their
//! schemas or nearly do, [`edges_never_fail`] tries the edges of each argument, and [`table`] walks a pack's tools. [`cases`] says how often a
//! random test runs.

mod arguments;
mod edges;
mod well_formed;

use expect_test::ExpectFile;
use serde_json::Value;
use tollgate_sdk::native::{self, Script, Session};
use tollgate_sdk::{Effect, Entry, Pack, Tier};

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

/// Scope that each tool of a pack declares, one line per tool: the arguments of a change on which its rows depend, or
/// `feed` for a read whose pages follow a number that all calls share.
#[must_use]
pub fn scopes(pack: &Pack) -> String {
    let line = |tool: &Entry| {
        let schema = (tool.input_schema)();
        let declared = match tool.effect {
            Effect::Read => schema.get("x-feed").map(|_| "feed".to_owned()),
            Effect::Write | Effect::Run => schema.get("x-scope").map(Value::to_string),
        };
        format!("{} {}\n", tool.name, declared.as_deref().unwrap_or("-"))
    };
    pack.tools.iter().map(line).collect()
}

/// Checks that every client takes a pack's tools, that at most `core` of them are core, and what clients see.
pub fn table(pack: &Pack, core: usize, schemas: &ExpectFile) {
    assert_eq!(native::table::faults(pack), Vec::<String>::new());
    let found = pack.tools.iter().filter(|tool| tool.tier == Tier::Core).count();
    assert!(found <= core, "{found} tools of {} are core", pack.name);
    schemas.assert_eq(&native::table::text(pack));
}
