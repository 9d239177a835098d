//! Policies that have described themselves.

use std::sync::Arc;

use serde_json::Value;
use tollgate_sandbox::CallState;
use tollgate_sandbox::bindings::policy::PolicyPre;
use tollgate_sandbox::bindings::policy::exports::tollgate::host::judge as wit;
use tollgate_sandbox::workspaces::{Access, Workspaces};
use tollgate_store::storage::Namespace;

use super::manifest::Manifest;
use super::policy::{Policy, Source};
use crate::grants::{Grants, Wish, granted, missing_grants};
use crate::loading::{
    Code, Haste, InstancePool, Loader, Origin, Prepared, config_problems, migration_problems,
};
use crate::tools::wording::line;
use crate::world::World;

/// A component that has described itself and has no settings yet.
pub struct Described {
    /// Manifest of the policy.
    pub manifest: Manifest,
    /// SHA-256 of the component, in hex.
    hash: String,
    size: usize,
    pre: PolicyPre<CallState>,
    code: Code,
}

impl Described {
    /// Loads a component and asks it for its manifest.
    pub async fn of(loader: &Loader, origin: &Origin, pin: Option<&str>) -> Result<Described, Vec<String>> {
        let prepared = loader.prepare(origin, pin, World::Policy, Haste::Whole).await?;
        let prepared = prepared.ok_or_else(|| vec!["its component is not available".to_owned()])?;
        Described::prepared(loader, prepared)
    }

    /// Asks a component for its manifest.
    pub fn prepared(loader: &Loader, prepared: Prepared) -> Result<Described, Vec<String>> {
        let pre = loader.link(&prepared.code, PolicyPre::new)?;
        Ok(Described {
            manifest: Manifest::check(describe(loader, &pre)?)?,
            hash: prepared.hash,
            size: prepared.size,
            pre,
            code: prepared.code,
        })
    }

    /// Requests beyond the policy's own tables.
    fn wishes(&self) -> Vec<Wish> {
        self.manifest.wants.iter().map(Wish::of).collect()
    }

    /// Grants everything that it requests.
    pub fn grant_all(&self, grants: &mut Grants) {
        grants.add_all(&self.wishes());
    }

    /// Policy with settings, which are validated, and grants, which must suffice.
    pub fn with(
        &self,
        loader: &Loader,
        workspaces: &Workspaces,
        source: &Source,
    ) -> Result<Policy, Vec<String>> {
        let manifest = &self.manifest;
        let table = format!("policies.{}", source.name);
        let trust = source.origin.trust();
        let mut problems = missing_grants(&table, &manifest.wants, &source.grants, trust);
        let phase = source.phase.and(manifest.phase);
        if phase.is_none() {
            problems.push(format!(
                "with the `phase` in [{table}], it would never be called; remove `phase`"
            ));
        }
        problems.extend(config_problems(
            &table,
            manifest.config_schema.as_ref(),
            &source.config,
        ));
        let settings = Value::Object(source.config.clone()).to_string();
        if problems.is_empty() {
            problems.extend(configure(loader, &self.pre, &table, &settings)?);
        }
        let namespace = Namespace::of_policy(&manifest.name).with_tables(&manifest.migrations);
        problems.extend(migration_problems(&namespace));
        let (Some(phase), Ok(namespace), true) = (phase, namespace, problems.is_empty()) else {
            return Err(problems);
        };
        Ok(Policy {
            namespace: namespace.bounded(source.limits.of_calls().of_tables()),
            origin: source.origin.to_string(),
            hash: self.hash.clone(),
            size: self.size,
            limits: source.limits.clone(),
            settings,
            phase,
            granted: Arc::new(granted(&manifest.wants, &source.grants, trust)),
            access: Arc::new(Access::new(
                workspaces,
                &source.grants.asked(&manifest.wants, trust),
                |name| source.grants.workspace(name, trust),
            )),
            manifest: manifest.clone(),
            pre: self.pre.clone(),
            pool: InstancePool::default(),
            _code: self.code.clone(),
        })
    }
}

/// Manifest of a policy, which is asked twice. A policy with two different answers could be granted the requests of
/// the first and be shown with those of the second.
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
        Err(vec!["it describes itself differently on each call".to_owned()])
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
    let Err(problems) = checked else {
        return Ok(Vec::new());
    };
    // A refusal without a reason is still a refusal.
    if problems.is_empty() {
        return Ok(vec![format!(
            "[{table}.config]: the policy rejects its settings and gives no reason"
        )]);
    }
    Ok(problems
        .into_iter()
        .map(|problem| {
            let key = if problem.key.is_empty() {
                String::new()
            } else {
                format!(".{}", problem.key)
            };
            line(&format!("[{table}.config]{key}: {}", problem.message))
        })
        .collect())
}
