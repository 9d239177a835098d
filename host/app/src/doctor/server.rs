//! A PostgreSQL server: all that a host needs of it.

use tollgate_core::clock::Clock;
use tollgate_store::storage::{Examined, Server, Weight};

use super::Finding;

/// Asks a server for all that a host needs.
pub fn check(server: &Server, clock: &dyn Clock) -> Vec<Finding> {
    server.examine(clock).into_iter().map(finding).collect()
}

fn finding(examined: Examined) -> Finding {
    let finding = match examined.weight {
        Weight::Ok => Finding::ok(examined.about, examined.what),
        Weight::Warn => Finding::warning(examined.about, examined.what),
        Weight::Fail => Finding::problem(examined.about, examined.what),
    };
    match examined.remedy {
        Some(remedy) => finding.remedy(remedy),
        None => finding,
    }
}
