//! `tollgate policies`

mod accept;
mod add;
mod backtest;
mod list;
mod remove;
mod test;

use std::process::ExitCode;

use clap::Subcommand;
use tollgate::config::edit::Section;

use super::Global;
use super::packs::{Check, Inspect};
use super::update::Update;

pub(super) use add::try_out;

#[derive(Debug, Subcommand)]
pub(super) enum Policies {
    /// Show the policies in the order in which they judge, which tools each judges, and why one did not load
    List,
    /// Show what a component is and wants, before it is added
    Inspect(Inspect),
    /// Let a policy judge calls in a host of its own, and say all that is wrong with it
    Check(Check),
    /// Add a policy to the configuration, with what you grant it
    Add(add::Add),
    /// Take a newer version from a registry, after showing what changes
    Update(Update),
    /// Accept a policy's component as it is now
    Accept(accept::Accept),
    /// Take a policy out of the configuration; its tables stay
    Remove(remove::Remove),
    /// Try a policy on cases that somebody wrote down
    Test(test::Test),
    /// Show what a policy would have said of the calls that were recorded
    Backtest(backtest::Backtest),
}

impl Policies {
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        match self {
            Policies::List => list::run(global).await,
            Policies::Inspect(inspect) => inspect.run(global).await,
            Policies::Check(check) => check.run(global).await,
            Policies::Add(add) => add.run(global).await,
            Policies::Update(update) => update.run(global, Section::Policies).await,
            Policies::Accept(accept) => accept.run(global),
            Policies::Remove(remove) => remove.run(global),
            Policies::Test(test) => test.run(global).await,
            Policies::Backtest(backtest) => backtest.run(global).await,
        }
    }
}
