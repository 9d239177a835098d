//! From a source to a policy that can judge.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use globset::{Glob, GlobSet, GlobSetBuilder};
use serde_json::{Map, Value};
use thiserror::Error;

use super::chain::Chain;
use super::member::{Member, Mode, Phase};
use crate::packs::{
    self, Granted, Grants, Loader, Origin, Prepared, World, config_problems, is_component_name,
    missing_grants,
};
use crate::sandbox::bindings::policy::PolicyPre;
use crate::sandbox::bindings::policy::exports::tollgate::host::judge as wit;
use crate::sandbox::bindings::tollgate::host::component::Want;
use crate::sandbox::{CallState, Limits};
use crate::storage::{Namespace, Step};
use crate::workspaces::{Access, Workspaces};

/// What judging one call may use unless the operator says otherwise.
pub const LIMITS: Limits = Limits {
    memory: 16 << 20,
    read: Duration::from_millis(50),
    write: Duration::from_millis(50),
    run: Duration::from_millis(50),
    storage: 64 << 20,
};

/// A component that should become a policy, and the operator's settings for it.
#[derive(Debug, Clone)]
pub struct Source {
    /// The operator's name for this place in the chain.
    pub name: String,
    /// Where its bytes are.
    pub origin: Origin,
    /// The hash its bytes must have, if pinned.
    pub sha256: Option<String>,
    /// What its verdicts do.
    pub mode: Mode,
    /// A call that it cannot judge passes.
    pub fail_open: bool,
    /// When it is asked.
    pub phase: Phase,
    /// Globs of the tools it judges; none means all.
    pub tools: Vec<String>,
    /// Its place: lower ones judge first.
    pub order: i64,
    /// What it may touch.
    pub grants: Grants,
    /// What judging may use.
    pub limits: Limits,
    /// Its `config` table.
    pub config: Map<String, Value>,
}

/// A loaded policy.
pub struct Policy {
    /// What it calls itself.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// One line for people.
    pub summary: String,
    /// Where it came from.
    pub origin: String,
    /// SHA-256 of its bytes, in hex.
    pub hash: String,
    /// How many bytes it has.
    pub size: usize,
    /// What judging may use.
    pub limits: Limits,
    /// Its `config` table as JSON text.
    pub settings: String,
    /// Its tables.
    pub namespace: Namespace,
    /// Whether it has any.
    pub has_tables: bool,
    /// When it is asked: what it judges of what the operator wants judged.
    pub phase: Phase,
    /// What it may use of the ledger.
    pub granted: Arc<Granted>,
    /// Workspaces it may read.
    pub access: Arc<Access>,
    pre: PolicyPre<CallState>,
}

impl Policy {
    /// What a judgement instantiates.
    pub(crate) fn pre(&self) -> &PolicyPre<CallState> {
        &self.pre
    }
}

/// Why a component did not become a policy: everything that is wrong with it, and what to do.
#[derive(Debug, Clone, Error)]
#[error("policy `{policy}` ({origin}) was not loaded: {}", .problems.join("; "))]
pub struct Unloaded {
    /// The operator's name for it.
    pub policy: String,
    /// Where its bytes are.
    pub origin: String,
    /// What is wrong.
    pub problems: Vec<String>,
}

impl Chain {
    /// Loads policies. One that does not load keeps its place and judges nothing.
    pub async fn load(loader: &Loader, workspaces: &Workspaces, sources: Vec<Source>) -> Chain {
        let loading = sources
            .into_iter()
            .map(|source| member(loader, workspaces, source));
        Chain::new(join_all(loading).await)
    }
}

async fn member(loader: &Loader, workspaces: &Workspaces, source: Source) -> Member {
    let policy = Policy::load(loader, workspaces, &source)
        .await
        .map_err(|problems| Unloaded {
            policy: source.name.clone(),
            origin: source.origin.to_string(),
            problems,
        });
    Member {
        name: source.name,
        order: source.order,
        mode: source.mode,
        fail_open: source.fail_open,
        phase: policy.as_ref().map_or(source.phase, |policy| policy.phase),
        tools: globs(&source.tools),
        patterns: source.tools,
        policy: policy.map(Arc::new),
    }
}

impl Policy {
    /// Loads a policy: its bytes, its manifest, its settings, its tables.
    async fn load(loader: &Loader, workspaces: &Workspaces, source: &Source) -> Result<Policy, Vec<String>> {
        let pin = source.sha256.as_deref();
        let Prepared {
            component,
            hash,
            size,
        } = loader.prepare(&source.origin, pin, World::Policy).await?;
        let pre = loader.link(&component, PolicyPre::new)?;
        let manifest = describe(loader, &pre)?;
        let config_schema = check(&manifest)?;
        let table = format!("policies.{}", source.name);
        let trust = source.origin.trust();
        let mut problems = missing_grants(&table, &manifest.wants, &source.grants, trust);
        let phase = source.phase.and(judged(manifest.phase));
        if phase.is_none() {
            problems.push(format!(
                "with `phase` of [{table}] it would never be asked; leave `phase` out"
            ));
        }
        problems.extend(config_problems(&table, config_schema.as_ref(), &source.config));
        let settings = Value::Object(source.config.clone()).to_string();
        if problems.is_empty() {
            problems.extend(configure(loader, &pre, &table, &settings)?);
        }
        let (Some(phase), true) = (phase, problems.is_empty()) else {
            return Err(problems);
        };
        let namespace = Namespace::of_policy(&manifest.name);
        let steps = manifest.migrations.into_iter().map(|step| Step {
            name: packs::line(&step.name),
            sql: step.sql,
        });
        let steps: Vec<Step> = steps.collect();
        loader.apply(&namespace, &steps).map_err(packs::one)?;
        Ok(Policy {
            version: packs::line(&manifest.version),
            summary: packs::line(&manifest.summary),
            origin: source.origin.to_string(),
            hash,
            size,
            limits: source.limits.clone(),
            settings,
            namespace,
            has_tables: !steps.is_empty(),
            phase,
            granted: Arc::new(Granted::of(&manifest.wants, &source.grants, trust)),
            access: Arc::new(Access::new(
                workspaces,
                &source.grants.asked(&manifest.wants, trust),
                |name| source.grants.workspace(name, trust),
            )),
            name: manifest.name,
            pre,
        })
    }
}

/// What a policy says of itself. It is asked twice: one that says something else each time would be
/// granted what it asks for now and shown as what it says then.
fn describe(loader: &Loader, pre: &PolicyPre<CallState>) -> Result<wit::Manifest, Vec<String>> {
    let ask = || {
        loader.ask("describe itself", |store| {
            pre.instantiate(&mut *store)?
                .tollgate_host_judge()
                .call_describe(store)
        })
    };
    let manifest = ask()?;
    if ask()? == manifest {
        Ok(manifest)
    } else {
        Err(vec![
            "it describes itself differently each time it is asked".to_owned(),
        ])
    }
}

fn judged(phase: wit::Phase) -> Phase {
    match phase {
        wit::Phase::Request => Phase::Request,
        wit::Phase::Response => Phase::Response,
        wit::Phase::Both => Phase::Both,
    }
}

fn configure(
    loader: &Loader,
    pre: &PolicyPre<CallState>,
    table: &str,
    settings: &str,
) -> Result<Vec<String>, Vec<String>> {
    let checked = loader.ask("check its settings", |store| {
        pre.instantiate(&mut *store)?
            .tollgate_host_judge()
            .call_configure(store, settings)
    })?;
    let problems = checked.err().unwrap_or_default();
    Ok(problems
        .into_iter()
        .map(|problem| {
            let key = if problem.key.is_empty() {
                String::new()
            } else {
                format!(".{}", problem.key)
            };
            packs::line(&format!("[{table}.config]{key}: {}", problem.message))
        })
        .collect())
}

/// Checks what a policy said of itself, and reads the schema of its settings.
fn check(manifest: &wit::Manifest) -> Result<Option<Value>, Vec<String>> {
    let mut problems = Vec::new();
    if !is_component_name(&manifest.name) {
        problems.push(format!(
            "the policy's name {:?} does not match ^[a-z][a-z0-9-]{{0,31}}$",
            crate::text::cut(&manifest.name, 64)
        ));
    }
    problems.extend(manifest.wants.iter().filter_map(refused).map(str::to_owned));
    let schema = match manifest.config_schema.as_deref().map(serde_json::from_str) {
        Some(Err(err)) => {
            problems.push(format!("its config schema is not JSON: {err}"));
            None
        }
        Some(Ok(schema)) => Some(schema),
        None => None,
    };
    if problems.is_empty() {
        Ok(schema)
    } else {
        Err(problems)
    }
}

/// Why no policy may want something, if none may.
fn refused(want: &Want) -> Option<&'static str> {
    match want {
        Want::WorkspaceRead(_) | Want::LedgerQuery => None,
        Want::WorkspaceWrite(_) => Some("it wants to write files, which no policy may"),
        Want::Process(_) | Want::Tests | Want::Git(_) => {
            Some("it wants to run programs, which no policy may")
        }
        Want::Budget(_) => Some("it wants to reserve from a budget, which no policy may"),
        Want::Artifacts => Some("it wants to keep artifacts, which no policy may"),
        Want::Client(_) => Some("it wants to ask clients by itself, which no policy may"),
    }
}

/// Globs that were checked when the configuration was read. None at all judge every tool.
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
