//! Loading of all policies of a chain.

use std::sync::Arc;

use futures::future::join_all;
use globset::{Glob, GlobSet, GlobSetBuilder};
use tollgate_sandbox::workspaces::Workspaces;

use super::chain::Chain;
use super::clashes::{refuse_clashes, refuse_namesakes};
use super::described::Described;
use super::member::Member;
use super::policy::{Policy, Source, Unloaded};
use crate::loading::{Haste, Loader, Tables, one};
use crate::world::World;

impl Chain {
    /// Loads policies. A policy that does not load keeps its place and judges nothing. Also returns the names of the
    /// policies that did not load in time. No call may pass without them.
    pub async fn load(
        loader: &Loader,
        workspaces: &Workspaces,
        sources: Vec<Source>,
        tables: Tables,
        haste: Haste,
    ) -> (Chain, Vec<String>) {
        let names: Vec<String> = sources.iter().map(|source| source.name.clone()).collect();
        let loading = sources
            .into_iter()
            .map(|source| member(loader, workspaces, source, haste));
        let loaded = join_all(loading).await;
        let absent = names.into_iter().zip(&loaded);
        let absent = absent.filter_map(|(name, member)| member.is_none().then_some(name));
        let preparing: Vec<String> = absent.collect();
        if !preparing.is_empty() {
            // No policy judges before all can, and clashes between tables are decided among all.
            return (Chain::default(), preparing);
        }
        let mut members: Vec<Member> = loaded.into_iter().flatten().collect();
        refuse_namesakes(&mut members);
        refuse_clashes(&mut members, &loader.packs_with_tables());
        members
            .iter_mut()
            .for_each(|member| bring(tables, loader, member));
        (Chain::new(members), preparing)
    }

    /// Policies that were loaded.
    pub fn policies(&self) -> impl Iterator<Item = &Policy> {
        let members = self.members().iter();
        members.filter_map(|member| member.policy.as_deref().ok())
    }
}

async fn member(loader: &Loader, workspaces: &Workspaces, source: Source, haste: Haste) -> Option<Member> {
    let prepared = loader
        .prepare(&source.origin, source.sha256.as_deref(), World::Policy, haste)
        .await
        .transpose()?;
    let policy = prepared
        .and_then(|prepared| Described::prepared(loader, prepared))
        .and_then(|described| described.with(loader, workspaces, &source))
        .map_err(|problems| Unloaded::of(&source.name, &source.origin.to_string(), problems));
    Some(Member {
        name: source.name,
        order: source.order,
        mode: source.mode,
        fail_open: source.fail_open,
        phase: policy.as_ref().map_or(source.phase, |policy| policy.phase),
        tools: globs(&source.tools),
        patterns: source.tools,
        policy: policy.map(Arc::new),
        denials: Arc::default(),
    })
}

/// Applies `tables` to a policy. A policy whose tables cannot be migrated is not loaded.
fn bring(tables: Tables, loader: &Loader, member: &mut Member) {
    if let Ok(policy) = &member.policy
        && let Err(err) = tables.bring(loader, &policy.namespace, &policy.manifest.migrations)
    {
        member.policy = Err(Unloaded::of(&member.name, &policy.origin, one(err)));
    }
}

/// Compiles globs that were checked when the configuration was read. Without any, the policy judges every tool.
fn globs(patterns: &[String]) -> Option<GlobSet> {
    if patterns.is_empty() {
        return None;
    }
    let mut set = GlobSetBuilder::new();
    for glob in patterns.iter().filter_map(|pattern| Glob::new(pattern).ok()) {
        set.add(glob);
    }
    set.build().ok()
}
