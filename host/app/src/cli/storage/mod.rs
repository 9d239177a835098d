//! `tollgate storage`: the database, wherever it is.

mod check;
mod copy;
mod init;
mod status;

use std::process::ExitCode;

use clap::Subcommand;

use super::{Global, doctor, out};

#[derive(Debug, Subcommand)]
pub(super) enum Storage {
    /// Show where the database is, its size, its migrations, the end of the ledger, and the hosts at work
    Status(status::Status),
    /// Check everything that a host needs from the database; the exit code is 1 if something fails
    Check(check::Check),
    /// Create a role, a database and a schema on a PostgreSQL server, or the host's tables there
    Init(init::Init),
    /// Copy the whole database to a PostgreSQL server, or back into a file
    Copy(copy::Copy),
}

impl Storage {
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        match self {
            Storage::Status(status) => status.run(global),
            Storage::Check(check) => check.run(global),
            Storage::Init(init) => init.run(global),
            Storage::Copy(copy) => copy.run(global).await,
        }
    }
}
