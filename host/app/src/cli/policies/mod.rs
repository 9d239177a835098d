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
    /// Show the policies in the order in which they evaluate calls, the tools of each, and why any did not load
    List,
    /// Show a component and the grants that it asks for, without adding it
    Inspect(Inspect),
    /// Let a policy evaluate calls in a temporary host, and report all problems
    Check(Check),
    /// Add a policy to the configuration, with the grants that you give it
    Add(add::Add),
    /// Update to a newer version from a registry, after showing the changes
    Update(Update),
    /// Accept the current component of a policy
    Accept(accept::Accept),
    /// Remove a policy from the configuration; its tables are kept
    Remove(remove::Remove),
    /// Test a policy on cases from a file
    Test(test::Test),
    /// Show how a policy would have evaluated recorded calls
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
