//! The operator's command line, configuration, console, metrics and telemetry.

mod cli;
mod cli_errors;
mod clients;
mod collector;
mod configuration_protections;
pub(crate) mod console;
mod ledger;
pub(crate) mod metrics;
mod pack_commands;
mod policy_commands;
mod reload;
mod telemetry;
mod workspace_grants;
