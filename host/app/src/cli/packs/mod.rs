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
    /// Show the packs, and why one did not load
    List,
    /// Show what a component is and wants, before it is added
    Inspect(Inspect),
    /// Call everything that a component offers, and say all that is wrong with it
    Check(Check),
    /// Add a component to the configuration, with what you grant it
    Add(add::Add),
    /// Accept the tools of a pack as they are now
    Accept(accept::Accept),
    /// Show which packs and policies have a newer version in their registry
    Outdated,
    /// Take a newer version from a registry, after showing what changes
    Update(Update),
    /// Publish a pack or a policy in a registry
    Publish(publish::Publish),
    /// Compile everything that the configuration names, so that no start has to
    Prepare,
    /// Take a pack out of the configuration; its tables stay
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
