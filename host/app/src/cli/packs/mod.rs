//! `tollgate packs`

mod accept;
mod add;
mod check;
mod inspect;
mod list;
mod outdated;
pub(super) mod prepare;
mod publish;
mod remove;

use std::process::ExitCode;

use clap::Subcommand;
use tollgate::config::edit::Section;

use super::Global;
use super::update::Update;

pub(super) use accept::accept;
pub(super) use add::try_out;
pub(super) use check::Check;
pub(super) use inspect::{Inspect, tell};

#[derive(Debug, Subcommand)]
pub(super) enum Packs {
    /// Show the packs, and why any of them did not load
    List,
    /// Show a component and the grants that it asks for, without adding it
    Inspect(Inspect),
    /// Call everything that a component offers, and report all problems
    Check(Check),
    /// Add a component to the configuration, with the grants that you give it
    Add(add::Add),
    /// Accept the current tools of a pack
    Accept(accept::Accept),
    /// Show which packs and policies have a newer version in their registry
    Outdated,
    /// Update to a newer version from a registry, after showing the changes
    Update(Update),
    /// Publish a pack or a policy to a registry
    Publish(publish::Publish),
    /// Compile all configured components in advance, so that no start has to
    Prepare,
    /// Remove a pack from the configuration; its tables are kept
    Remove(remove::Remove),
}

impl Packs {
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        match self {
            Packs::List => list::run(global).await,
            Packs::Inspect(inspect) => inspect.run(global).await,
            Packs::Check(check) => check.run(global).await,
            Packs::Add(add) => add.run(global).await,
            Packs::Accept(accept) => accept.run(global),
            Packs::Outdated => outdated::run(global).await,
            Packs::Update(update) => update.run(global, Section::Packs).await,
            Packs::Publish(publish) => publish.run(global).await,
            Packs::Prepare => prepare::run(global).await,
            Packs::Remove(remove) => remove.run(global),
        }
    }
}
