//! The tools that exist, and those of them that are listed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, OnceLock};

use globset::{Glob, GlobSet, GlobSetBuilder};
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value, json};
use tollgate_core::effect::Effect;
use tollgate_core::meter::Meter;
use tollgate_sandbox::workspaces::Workspaces;
use tollgate_store::storage::Database;

use super::alternate_schema;
use super::definitions::{self, Change, Comparison};
use super::headers;
use super::load::{Haste, LoadError, Loader, Pack, Source, Tables};
use super::looks::Looks;
use super::manifest::{Tier, ToolSpec, prefixes_clash};
use super::resources::{self, DeclaredCharge, Resource, Values};
use super::search::Index;
use super::task_mode::{self, TaskMode};
use super::views::{self, View};
use super::workspace_of::WorkspaceOf;
use crate::builtin;
use crate::host_tool::{self, HostTool, HostTools};
use crate::policies::{self, Chain, PolicyChange};

/// The argument that names the envelope a call belongs to.
pub const ENVELOPE_ARGUMENT: &str = "envelope_id";

/// Which of the loaded tools exist and are listed.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The host's own tools exist.
    pub core: bool,
    /// Globs; when there are any, only tools that match one exist.
    pub tools: Vec<String>,
    /// Globs; tools that match one do not exist.
    pub exclude: Vec<String>,
    /// Only tools that read exist.
    pub read_only: bool,
    /// Up to which tier tools are listed. Without it: core, or all that `tools` names.
    pub tier: Option<Tier>,
    /// Only the tools that find and call others are listed. They exist wherever not all tools are listed, whatever
    /// else is selected.
    pub compact: bool,
}

/// Something that is made when it is first asked for.
type Lazy<T> = LazyLock<T, Box<dyn FnOnce() -> T + Send>>;

/// A tool that exists.
pub struct ToolEntry {
    /// Implementation of the tool.
    pub body: Body,
    /// Definition of the tool, as it is listed.
    pub spec: ToolSpec,
    arguments: Lazy<Option<Validator>>,
    /// Counts its calls.
    pub meter: Arc<Meter>,
    /// The gate takes `envelope_id` out of its arguments. Tools that have an argument of that name
    /// themselves keep it.
    pub correlated: bool,
    /// Arguments that its members have from it, if they do not name them themselves.
    pub inherited: Vec<String>,
    /// Declared cost of a call for its envelope, if the operator grants that the declaration is believed.
    pub charge: Option<DeclaredCharge>,
    /// Setting under which the host looks at the work tree before a call.
    pub looks: Option<Looks>,
    /// Row that names the workspace of a call which names none.
    pub workspace: Option<WorkspaceOf>,
    /// Clients over HTTP repeat arguments in headers.
    pub has_headers: bool,
    /// Rule by which calls become tasks.
    pub task: TaskMode,
    /// Page of the console that shows its replies.
    pub view: Option<View>,
}

impl Default for Selection {
    fn default() -> Selection {
        Selection {
            core: true,
            tools: Vec::new(),
            exclude: Vec::new(),
            read_only: false,
            tier: None,
            compact: false,
        }
    }
}

impl Selection {
    /// True if a tool or prompt exists.
    fn has(&self, spec: &ToolSpec) -> bool {
        (self.tools.is_empty() || globs(&self.tools).is_match(&spec.name))
            && !globs(&self.exclude).is_match(&spec.name)
            && (!self.read_only || spec.effect == Effect::Read)
    }
}

/// Implementation of a tool.
#[derive(Clone)]
pub enum Body {
    /// A component.
    Guest(Arc<Pack>),
    /// The host itself.
    Core(&'static HostTool),
}

impl ToolEntry {
    /// Checks its arguments. Made by the first call, because most tools of most hosts are never called and this takes more
    /// memory than all else that is known of a tool. `None` if the schema is none, with which no pack is loaded.
    pub fn arguments(&self) -> Option<&Validator> {
        self.arguments.as_ref()
    }

    /// Its input schema with every form of arguments that take two, of which lists show one.
    pub fn described_schema(&self) -> Map<String, Value> {
        let listed = &self.spec.input_schema;
        let declared = match &self.body {
            Body::Guest(pack) => pack.manifest.named().find(|spec| spec.name == self.spec.name),
            Body::Core(_) => None,
        };
        declared.map_or_else(
            || listed.clone(),
            |spec| alternate_schema::described(listed, &spec.input_schema),
        )
    }

    /// The name of its pack.
    pub fn pack_name(&self) -> &str {
        match &self.body {
            Body::Guest(pack) => &pack.manifest.name,
            Body::Core(_) => host_tool::PACK,
        }
    }

    /// True for a tool that finds and calls others.
    pub fn is_discovery(&self) -> bool {
        matches!(self.body, Body::Core(tool) if tool.discovers)
    }
}

/// Components that a catalog is without for now, by the operator's names: they are being compiled or fetched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preparing {
    /// Packs, whose tools do not exist yet.
    pub packs: Vec<String>,
    /// Policies, without which no call may pass.
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
    /// By pack and argument.
    values: BTreeMap<(String, String), Values>,
    tier: Tier,
    policies: Chain,
    compact: bool,
    /// Made when somebody searches.
    index: OnceLock<Index>,
}

impl Catalog {
    /// Loads what can be loaded; the rest is in [`failures`](Catalog::failures), and what there was no time for
    /// in [`preparing`](Catalog::preparing).
    pub async fn load(
        loader: &Loader,
        workspaces: &Workspaces,
        sources: Vec<Source>,
        policies: Vec<policies::Source>,
        selection: &Selection,
        (tables, haste): (Tables, Haste),
    ) -> Catalog {
        let mut catalog = Catalog {
            host_tools: loader.host_tools,
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
            tier: listed_tier(selection),
            policies: Chain::default(),
            compact: selection.compact,
            index: OnceLock::new(),
        };
        let hides_some = selection.compact || catalog.tier < Tier::Full;
        // They lead to what is selected, so only whoever names them can do without.
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
            .map(|source| loader.load(source, workspaces, haste));
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
                check_schemas(&pack, loader.host_tools)?;
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

    /// Brings the tables of all packs and policies up to date, or those of none.
    pub fn migrate(&self, loader: &Loader) -> anyhow::Result<()> {
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
        loader.migrate_together(packs.chain(policies).collect())
    }

    /// The packs that were loaded, in the order of their sources.
    pub fn packs(&self) -> &[Arc<Pack>] {
        &self.packs
    }

    /// Components that were not loaded, with reasons.
    pub fn failures(&self) -> &[LoadError] {
        &self.failures
    }

    /// The parts that are missing for now.
    pub fn preparing(&self) -> &Preparing {
        &self.preparing
    }

    /// The policies that judge calls of these tools.
    pub fn policies(&self) -> &Chain {
        &self.policies
    }

    /// Goes on with the counts of a catalog that this one replaces.
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

    /// Tools that are not what the operator accepted. Known once they were remembered.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Policies that are not what the operator accepted. Known once they were remembered.
    pub fn policy_changes(&self) -> &[PolicyChange] {
        &self.policy_changes
    }

    /// Remembers what tools and policies are, and finds those that the operator has not accepted.
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
    pub fn value_sources(&self, pack: &str) -> impl Iterator<Item = (&str, &resources::Source)> {
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

    /// True if only the tools that find and call others are listed.
    pub fn is_compact(&self) -> bool {
        self.compact
    }

    /// Index that finds tools by words. The tools that find tools are not part of it.
    pub fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let others = self.all().filter(|tool| !tool.is_discovery());
            Index::of(others.map(|tool| &tool.spec))
        })
    }

    /// The name most like one that does not exist, if any is.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        tollgate_core::text::nearest(name, self.tools.keys().map(String::as_str))
    }

    /// A pack whose tables or tools another one has is refused, naming both.
    fn check_free(&self, pack: &Pack, known: &[String]) -> Result<(), LoadError> {
        let name = &pack.manifest.name;
        let mut problems = Vec::new();
        let loaded = self.packs.iter().map(|other| &other.manifest.name);
        if loaded.clone().any(|other| other == name) {
            problems.push(format!("a pack called `{name}` is loaded already"));
        }
        // Those of the program keep their names, also while they are switched off or before they had tables.
        let mut others: Vec<&str> = loaded.map(String::as_str).collect();
        if !pack.is_builtin() {
            others.extend(known.iter().map(String::as_str));
            for name in builtin::names() {
                others.push(name);
            }
        }
        if let Some(other) = others
            .into_iter()
            .find(|other| other != name && prefixes_clash(other, name))
        {
            problems.push(format!("its tables could be those of pack `{other}`; rename it"));
        }
        problems.extend(self.taken_addresses(pack));
        let excluded = globs(&pack.exclude);
        for tool in pack
            .manifest
            .named()
            .filter(|tool| !excluded.is_match(&tool.name))
        {
            for name in std::iter::once(&tool.name).chain(&tool.aliases) {
                if let Some(holder) = self.claimant(name) {
                    problems.push(format!(
                        "it claims tool `{name}`, which pack `{holder}` has; disable one, or exclude the tool from one"
                    ));
                }
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(LoadError::new(name, &pack.origin, problems))
        }
    }

    /// The schemes of a pack's addresses that another pack answers for: a reader of one's address would get the
    /// other's content.
    fn taken_addresses(&self, pack: &Pack) -> Vec<String> {
        let declared = pack.manifest.tools.iter().cloned();
        let declared = declared.filter_map(|mut spec| resources::take(&pack.manifest.name, &mut spec).ok());
        let bases: BTreeSet<String> = declared
            .flat_map(|declared| declared.resources)
            .map(|resource| resource.base)
            .collect();
        let taken = bases.into_iter().filter_map(|base| {
            let holder = self.resources.iter().find(|resource| resource.base == base)?;
            Some(format!(
                "it has addresses that begin with {base}, which are those of pack `{}`; use another scheme",
                holder.pack
            ))
        });
        taken.collect()
    }

    /// The pack that declares a name and does not exclude it.
    fn claimant(&self, name: &str) -> Option<&str> {
        if self.host_tools.get(name).is_some() {
            return Some(host_tool::PACK);
        }
        self.packs.iter().find_map(|pack| {
            let excluded = globs(&pack.exclude);
            let declares = pack.manifest.named().any(|tool| {
                !excluded.is_match(&tool.name)
                    && (tool.name == name || tool.aliases.iter().any(|alias| alias == name))
            });
            declares.then_some(pack.manifest.name.as_str())
        })
    }

    fn add(&mut self, pack: Pack, selection: &Selection) {
        let pack = Arc::new(pack);
        let excluded = globs(&pack.exclude);
        for spec in &pack.manifest.tools {
            if !excluded.is_match(&spec.name) {
                self.add_tool(Body::Guest(Arc::clone(&pack)), spec.clone(), selection);
            }
        }
        for spec in &pack.manifest.prompts {
            if !excluded.is_match(&spec.name) {
                self.add_prompt(&pack, spec, selection);
            }
        }
        self.packs.push(pack);
    }

    fn add_prompt(&mut self, pack: &Arc<Pack>, spec: &ToolSpec, selection: &Selection) {
        if !selection.has(spec) {
            return;
        }
        let entry = ToolEntry {
            body: Body::Guest(Arc::clone(pack)),
            spec: spec.clone(),
            arguments: validator(Body::Guest(Arc::clone(pack)), spec),
            meter: Arc::default(),
            correlated: false,
            inherited: Vec::new(),
            charge: None,
            looks: None,
            workspace: None,
            has_headers: false,
            task: TaskMode::Never,
            view: None,
        };
        self.prompts.insert(spec.name.clone(), Arc::new(entry));
    }

    fn add_tool(&mut self, body: Body, mut spec: ToolSpec, selection: &Selection) {
        if !selection.has(&spec) {
            return;
        }
        let arguments = validator(body.clone(), &spec);
        alternate_schema::hide(&mut spec.input_schema);
        let pack = match &body {
            Body::Guest(pack) => pack.manifest.name.as_str(),
            Body::Core(_) => host_tool::PACK,
        };
        // Checked before, when the pack was.
        let declared = resources::take(pack, &mut spec).unwrap_or_default();
        let task = task_mode::take(&mut spec.input_schema, spec.effect).unwrap_or_default();
        self.resources.extend(declared.resources);
        let values = declared.values.into_iter();
        self.values
            .extend(values.map(|(argument, values)| ((pack.to_owned(), argument), values)));
        let correlated = matches!(body, Body::Guest(_)) && offer_envelope(&mut spec);
        for alias in &spec.aliases {
            self.aliases.insert(alias.clone(), spec.name.clone());
        }
        let has_headers = headers::is_annotated(&spec.input_schema);
        let is_believed = matches!(&body, Body::Guest(pack) if pack.granted.charges);
        let entry = ToolEntry {
            body,
            spec,
            arguments,
            meter: Arc::default(),
            correlated,
            inherited: declared.inherited,
            charge: declared.charge.filter(|_| is_believed),
            looks: declared.looks,
            workspace: declared.workspace,
            has_headers,
            task,
            view: declared.view,
        };
        self.tools.insert(entry.spec.name.clone(), Arc::new(entry));
    }
}

/// Makes the tables of built-in packs in one commit where there are none yet: each commit waits for the disk. Their names
/// fit each other. What goes wrong is told by whoever brings the tables of each up to date.
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
        tracing::debug!(%err, "tables were not made together");
    }
}

/// Adds `envelope_id` to the listed arguments of a tool that may change something. Tools that only
/// read take it too, unlisted, to keep their definitions short. Whether the argument is the gate's.
fn offer_envelope(spec: &mut ToolSpec) -> bool {
    let effect = spec.effect;
    let Some(properties) = spec
        .input_schema
        .get_mut("properties")
        .and_then(|value| value.as_object_mut())
    else {
        return true;
    };
    if properties.contains_key(ENVELOPE_ARGUMENT) {
        return false;
    }
    if effect != Effect::Read {
        properties.insert(
            ENVELOPE_ARGUMENT.to_owned(),
            json!({"type": "string", "description": "The envelope this call belongs to."}),
        );
    }
    true
}

/// Naming tools says enough about which to list.
fn listed_tier(selection: &Selection) -> Tier {
    match selection.tier {
        Some(tier) => tier,
        None if selection.tools.is_empty() => Tier::Core,
        None => Tier::Full,
    }
}

/// The validator of a tool's or prompt's arguments, once it is needed. The manifest has the schema as the pack wrote it.
fn validator(body: Body, spec: &ToolSpec) -> Lazy<Option<Validator>> {
    let name = spec.name.clone();
    match body {
        Body::Guest(pack) => LazyLock::new(Box::new(move || {
            let spec = pack.manifest.named().find(|spec| spec.name == name)?;
            compiled(&spec.input_schema).ok()
        })),
        Body::Core(_) => {
            let schema = spec.input_schema.clone();
            LazyLock::new(Box::new(move || compiled(&schema).ok()))
        }
    }
}

pub(super) fn compiled(schema: &Map<String, Value>) -> Result<Validator, ValidationError<'static>> {
    jsonschema::validator_for(&alternate_schema::accepted(schema))
}

/// Every input schema must be one that arguments can be checked against. Those of this program are, as a test says.
fn check_schemas(pack: &Pack, host_tools: HostTools) -> Result<(), LoadError> {
    let is_builtin = pack.is_builtin();
    let mut problems = Vec::new();
    for spec in &pack.manifest.tools {
        if !is_builtin && let Err(err) = compiled(&spec.input_schema) {
            problems.push(format!(
                "tool {}: its input schema is no JSON Schema: {err}",
                spec.name
            ));
        }
        let faults = headers::faults(&spec.input_schema).into_iter();
        problems.extend(faults.map(|fault| format!("tool {}: {fault}", spec.name)));
        let task = task_mode::take(&mut spec.input_schema.clone(), spec.effect).err();
        problems.extend(task.map(|fault| format!("tool {}: {fault}", spec.name)));
        match resources::take(&pack.manifest.name, &mut spec.clone()) {
            Ok(declared) => {
                let view = declared.view.as_ref();
                let opened =
                    view.map(|view| views::check_opens(&pack.manifest.name, &pack.manifest.tools, view));
                problems.extend(
                    opened
                        .and_then(Result::err)
                        .map(|why| format!("tool {}: {why}", spec.name)),
                );
                let bad = |values: &Values| match values {
                    Values::Listed(source) => {
                        resources::check_source(&pack.manifest.tools, host_tools, source).err()
                    }
                    Values::Words(_) => None,
                };
                let bad = declared
                    .values
                    .iter()
                    .filter_map(|(name, values)| Some((name, bad(values)?)));
                problems.extend(bad.map(|(name, why)| format!("tool {}: argument {name}: {why}", spec.name)));
            }
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(LoadError::new(&pack.manifest.name, &pack.origin, problems))
    }
}

/// Globs that were checked when the configuration was read; one that is none matches nothing.
fn globs(patterns: &[String]) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        match Glob::new(pattern) {
            Ok(glob) => {
                set.add(glob);
            }
            Err(err) => tracing::warn!(%err, "a tool pattern is ignored"),
        }
    }
    set.build().unwrap_or_default()
}
