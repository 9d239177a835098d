//! Database, artifacts and ledger under crashes, on several hosts, and on a PostgreSQL server.

mod artifacts;
mod command;
mod component_artifacts;
mod component_ledger;
mod crash;
mod lanes;
mod maintenance;
mod many_hosts;
mod moved_database;
mod unknown_commits;
