//! Catalog of the loaded tools, and the subset that is listed to clients.

mod add;
mod conflicts;
mod definitions;
mod entry;
mod inspect;
mod policy_change;
mod schemas;
mod selection;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use tollgate_sandbox::workspaces::Workspaces;
use tollgate_store::storage::{Database, MigrationStep, Namespace};

use self::definitions::Comparison;
use self::schemas::check_schemas;
use crate::loading::{Haste, Loader, Tables};
use crate::packs::{LoadError, Pack, Source};
use crate::policies::{self, Chain};
use crate::tools::search::Index;
use crate::tools::{HostTools, Resource, Tier, ValueSource, Values};
pub use definitions::{Change, policy_owner};
pub use entry::{Body, ENVELOPE_ARGUMENT, ToolEntry};
pub use inspect::{Inspection, Said, Wanted, anatomy_of};
pub use policy_change::PolicyChange;
pub use selection::Selection;

/// Components that a catalog does not have yet, by the operator's names: they are being compiled or fetched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preparing {
    /// Packs, whose tools do not exist yet.
    pub packs: Vec<String>,
    /// Policies. Until they are ready no call may pass.
    pub policies: Vec<String>,
}

impl Preparing {
    /// True if nothing is missing.
    pub fn is_over(&self) -> bool {
        self.packs.is_empty() && self.policies.is_empty()
    }
}

/// All packs of a host and their tools.
pub struct Catalog {
    host_tools: HostTools,
    packs: Vec<Arc<Pack>>,
    failures: Vec<LoadError>,
    preparing: Preparing,
    changes: Vec<Change>,
    policy_changes: Vec<PolicyChange>,
    tools: BTreeMap<String, Arc<ToolEntry>>,
    aliases: BTreeMap<String, String>,
    prompts: BTreeMap<String, Arc<ToolEntry>>,
    resources: Vec<Resource>,
    /// Values by pack and argument.
    values: BTreeMap<(String, String), Values>,
    tier: Tier,
    policies: Chain,
    compact: bool,
    /// Built on the first search.
    index: OnceLock<Index>,
}

impl Catalog {
    /// Loads as many components as possible. The others are in [`failures`](Catalog::failures), and those that did
    /// not load in time in [`preparing`](Catalog::preparing).
    pub async fn load(
        loader: &Loader,
        host_tools: HostTools,
        workspaces: &Workspaces,
        sources: Vec<Source>,
        policies: Vec<policies::Source>,
        selection: &Selection,
        (tables, haste): (Tables, Haste),
    ) -> Catalog {
        let mut catalog = Catalog {
            host_tools,
            packs: Vec::new(),
            failures: Vec::new(),
            preparing: Preparing::default(),
            changes: Vec::new(),
            policy_changes: Vec::new(),
            tools: BTreeMap::new(),
            aliases: BTreeMap::new(),
            prompts: BTreeMap::new(),
            resources: Vec::new(),
            values: BTreeMap::new(),
            tier: selection.listed_tier(),
            policies: Chain::default(),
            compact: selection.compact,
            index: OnceLock::new(),
        };
        let hides_some = selection.compact || catalog.tier < Tier::Full;
        // The discovery tools lead to the selected tools, so only a selection that names tools can do without them.
        let named = Selection {
            exclude: selection.exclude.clone(),
            ..Selection::default()
        };
        for tool in catalog.host_tools.discovery().filter(|_| hides_some) {
            catalog.add_tool(Body::Core(tool), (tool.spec)(), &named);
        }
        let core = catalog.host_tools.ordinary().filter(|_| selection.core);
        for tool in core {
            catalog.add_tool(Body::Core(tool), (tool.spec)(), selection);
        }
        let known = loader.packs_with_tables();
        let names: Vec<String> = sources.iter().map(|source| source.name.clone()).collect();
        let loading = sources
            .into_iter()
            .map(|source| Pack::load(loader, source, workspaces, haste));
        let ((policies, preparing), loaded) = futures::join!(
            Chain::load(loader, workspaces, policies, tables, haste),
            futures::future::join_all(loading)
        );
        catalog.policies = policies;
        catalog.preparing.policies = preparing;
        if tables == Tables::Migrate {
            let packs = loaded.iter().flatten().filter_map(|pack| pack.as_ref().ok());
            make_own_tables(loader, packs, &known);
        }
        for (name, loaded) in names.into_iter().zip(loaded) {
            let Some(result) = loaded else {
                catalog.preparing.packs.push(name);
                continue;
            };
            let admitted = result.and_then(|pack| {
                catalog.check_free(&pack, &known)?;
                check_schemas(&pack, host_tools)?;
                tables
                    .bring(loader, &pack.namespace, &pack.manifest.migrations)
                    .map_err(|err| {
                        LoadError::new(&pack.manifest.name, &pack.origin, vec![err.to_string()])
                    })?;
                Ok(pack)
            });
            match admitted {
                Ok(pack) => catalog.add(pack, selection),
                Err(failure) => catalog.failures.push(failure),
            }
        }
        catalog
    }

    /// Migrates the tables of all packs and policies, all or none.
    pub fn migrate(&self, loader: &Loader) -> anyhow::Result<()> {
        loader.migrate_together(self.components().collect())
    }

    /// Packs and policies: their tables, their migrations, and their names for messages.
    pub fn components(&self) -> impl Iterator<Item = (&Namespace, &[MigrationStep], String)> {
        let packs = self.packs.iter().map(|pack| {
            let steps = pack.manifest.migrations.as_slice();
            (&pack.namespace, steps, format!("pack `{}`", pack.manifest.name))
        });
        let policies = self.policies.policies().map(|policy| {
            let steps = policy.manifest.migrations.as_slice();
            (
                &policy.namespace,
                steps,
                format!("policy `{}`", policy.manifest.name),
            )
        });
        packs.chain(policies)
    }

    /// The packs that were loaded, in the order of their sources.
    pub fn packs(&self) -> &[Arc<Pack>] {
        &self.packs
    }

    /// Components that were not loaded, with reasons.
    pub fn failures(&self) -> &[LoadError] {
        &self.failures
    }

    /// Components that are still being prepared.
    pub fn preparing(&self) -> &Preparing {
        &self.preparing
    }

    /// Policies that judge calls of these tools.
    pub fn policies(&self) -> &Chain {
        &self.policies
    }

    /// Takes over the counters of the catalog that this one replaces.
    pub fn inherit(&mut self, before: &Catalog) {
        self.policies.inherit(&before.policies);
        let mine = self
            .tools
            .iter_mut()
            .map(|(name, entry)| (before.tools.get(name), entry));
        let prompts = self.prompts.iter_mut();
        let prompts = prompts.map(|(name, entry)| (before.prompts.get(name), entry));
        for (before, entry) in mine.chain(prompts) {
            if let (Some(before), Some(entry)) = (before, Arc::get_mut(entry))
                && before.pack_name() == entry.pack_name()
            {
                entry.meter = Arc::clone(&before.meter);
            }
        }
    }

    /// Tools that differ from what the operator accepted. Empty until [`remember`](Catalog::remember) ran.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Policies that differ from what the operator accepted. Empty until [`remember`](Catalog::remember) ran.
    pub fn policy_changes(&self) -> &[PolicyChange] {
        &self.policy_changes
    }

    /// Remembers the definitions of tools and policies, and finds those that the operator has not accepted.
    pub fn remember(&mut self, database: &Database, now: &str) -> anyhow::Result<()> {
        let remembered = database.read_session()?.components().definitions()?;
        let packs = self.packs.iter().map(AsRef::as_ref);
        let Comparison { mut store, changes } = definitions::compare(packs, &remembered, now);
        self.changes = changes;
        let policies = definitions::compare_policies(self.policies.members(), &remembered, now);
        store.extend(policies.store);
        self.policy_changes = policies.changes.into_iter().map(PolicyChange::of).collect();
        if store.is_empty() {
            return Ok(());
        }
        let session = database.write_session()?;
        session.begin_write()?;
        for definition in &store {
            session.components().remember_definition(definition)?;
        }
        Ok(session.commit()?)
    }

    /// A tool by its name or an alias.
    pub fn find(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.tools
            .get(name)
            .or_else(|| self.tools.get(self.aliases.get(name)?))
    }

    /// A prompt by its name.
    pub fn find_prompt(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.prompts.get(name)
    }

    /// Every prompt that exists, by name.
    pub fn prompts(&self) -> impl Iterator<Item = &Arc<ToolEntry>> {
        self.prompts.values()
    }

    /// Resources that can be read under an address.
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// Values for an argument of a pack's tools and prompts, as far as the pack declares them.
    pub fn values(&self, pack: &str, argument: &str) -> Option<&Values> {
        self.values.get(&(pack.to_owned(), argument.to_owned()))
    }

    /// Arguments of a pack whose values a tool lists, by name.
    pub fn value_sources(&self, pack: &str) -> impl Iterator<Item = (&str, &ValueSource)> {
        let of_pack = self.values.iter().filter(move |((owner, _), _)| owner == pack);
        of_pack.filter_map(|((_, argument), values)| match values {
            Values::Listed(source) => Some((argument.as_str(), source)),
            Values::Words(_) => None,
        })
    }

    /// Every tool that exists, by name.
    pub fn all(&self) -> impl Iterator<Item = &Arc<ToolEntry>> {
        self.tools.values()
    }

    /// The tools that are listed, by name.
    pub fn listed(&self) -> impl Iterator<Item = &Arc<ToolEntry>> {
        self.all().filter(|tool| match self.compact {
            true => tool.is_discovery(),
            false => tool.spec.tier <= self.tier,
        })
    }

    /// True if only the discovery tools are listed.
    pub fn is_compact(&self) -> bool {
        self.compact
    }

    /// Search index of the tools. Discovery tools are not part of it.
    pub fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let others = self.all().filter(|tool| !tool.is_discovery());
            Index::of(others.map(|tool| &tool.spec))
        })
    }

    /// Name most similar to an unknown one, if any is.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        tollgate_core::text::nearest(name, self.tools.keys().map(String::as_str))
    }
}

/// Creates the missing tables of built-in packs in one commit, because each commit waits for the disk. Names of
/// built-in packs do not clash. Errors are left to the migration of each pack, which reports them.
fn make_own_tables<'a>(loader: &Loader, packs: impl Iterator<Item = &'a Pack>, known: &[String]) {
    let is_new = |pack: &&Pack| pack.is_builtin() && !known.contains(&pack.manifest.name);
    let own: Vec<_> = packs
        .filter(is_new)
        .map(|pack| {
            let name = pack.manifest.name.clone();
            (&pack.namespace, pack.manifest.migrations.as_slice(), name)
        })
        .collect();
    if own.len() > 1
        && let Err(err) = loader.migrate_together(own)
    {
        tracing::debug!(%err, "cannot create the tables of all packs in one transaction");
    }
}
