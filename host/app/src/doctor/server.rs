//! Findings about a PostgreSQL server: everything that a host needs from it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tollgate_core::clock::Clock;
use tollgate_store::storage::{Examined, Server, Weight};

use super::Finding;

/// Checks everything that a host needs from a server.
pub fn check(server: &Server, clock: &dyn Clock) -> Vec<Finding> {
    server.examine(clock).into_iter().map(finding).collect()
}

/// Warns about a file with the database's password that others can read.
pub fn password(file: &Path) -> Option<Finding> {
    let mode = std::fs::metadata(file).ok()?.permissions().mode();
    let shown = file.display();
    (mode & 0o044 != 0).then(|| {
        Finding::warning(
            "password",
            format!(
                "other users of this machine can read {shown}, which contains the password of the database"
            ),
        )
        .remedy(format!(
            "run chmod go-r {shown}, or use an environment variable: storage.url = \"env:DATABASE_URL\""
        ))
    })
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
