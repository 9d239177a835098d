//! From a source to a policy that can judge.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use globset::{Glob, GlobSet, GlobSetBuilder};
use serde_json::{Map, Value};
use thiserror::Error;
use tollgate_sandbox::bindings::policy::exports::tollgate::host::judge as wit;
use tollgate_sandbox::bindings::policy::{Policy as Instance, PolicyPre};
use tollgate_sandbox::granted::Granted;
use tollgate_sandbox::guest::{CallStore, GuestResult};
use tollgate_sandbox::workspaces::{Access, Workspaces};
use tollgate_sandbox::{CallState, Limits};
use tollgate_store::storage::Namespace;

use super::chain::Chain;
use super::instance_pool::InstancePool;
use super::manifest::Manifest;
use super::member::{Member, Mode, Phase};
use crate::builtin;
use crate::packs::{
    self, Code, Grants, Haste, Loader, Origin, Prepared, Tables, Wish, World, config_problems, granted,
    migration_problems, missing_grants, prefixes_clash,
};

/// Default limits of judging one call.
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
    /// Origin of the bytes.
    pub origin: Origin,
    /// The hash its bytes must have, if pinned.
    pub sha256: Option<String>,
    /// Effect of the verdicts.
    pub mode: Mode,
    /// A call that it cannot judge passes.
    pub fail_open: bool,
    /// Phase in which the policy is asked.
    pub phase: Phase,
    /// Globs of the tools it judges; none means all.
    pub tools: Vec<String>,
    /// Its place: lower ones judge first.
    pub order: i64,
    /// Grants of the policy.
    pub grants: Grants,
    /// Limits of judging.
    pub limits: Limits,
    /// Its `config` table.
    pub config: Map<String, Value>,
}

/// A loaded policy.
pub struct Policy {
    /// Manifest of the policy.
    pub manifest: Manifest,
    /// Origin of the bytes in words.
    pub origin: String,
    /// SHA-256 of its bytes, in hex.
    pub hash: String,
    /// Its size in bytes.
    pub size: usize,
    /// Limits of judging.
    pub limits: Limits,
    /// Its `config` table as JSON text.
    pub settings: String,
    /// Its tables.
    pub namespace: Namespace,
    /// Phase in which the policy is asked: of the phases it judges, those that the operator wants judged.
    pub phase: Phase,
    /// Granted use of the ledger.
    pub granted: Arc<Granted>,
    /// Workspaces it may read.
    pub access: Arc<Access>,
    pre: PolicyPre<CallState>,
    spares: InstancePool<Instance>,
    _code: Code,
}

impl Policy {
    /// Instances that were made before a call needs them.
    pub fn spares(&self) -> &InstancePool<Instance> {
        &self.spares
    }

    /// Makes an instance in the store of a judgement.
    pub fn instantiate(&self, store: &mut CallStore) -> GuestResult<Instance> {
        Ok(self.pre.instantiate(store)?)
    }

    /// True if the policy has tables of its own.
    pub fn has_tables(&self) -> bool {
        !self.manifest.migrations.is_empty()
    }

    /// True if the policy is part of this program.
    pub fn is_builtin(&self) -> bool {
        self.origin == Origin::Builtin(&[]).to_string()
    }
}

/// Reason why a component did not become a policy: everything that is wrong, with remedies.
#[derive(Debug, Clone, Error)]
#[error("policy `{policy}` ({origin}) was not loaded: {}", .problems.join("; "))]
pub struct Unloaded {
    /// The operator's name for it.
    pub policy: String,
    /// Origin of the bytes.
    pub origin: String,
    /// Problems.
    pub problems: Vec<String>,
}

impl Unloaded {
    fn of(name: &str, origin: &str, problems: Vec<String>) -> Unloaded {
        Unloaded {
            policy: name.to_owned(),
            origin: origin.to_owned(),
            problems,
        }
    }
}

impl Chain {
    /// Loads policies. One that does not load keeps its place and judges nothing. Comes with the names of those that
    /// there was no time for, without which no call may pass.
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
            // None judges before all do, and who may have which tables is decided among all.
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

    /// The policies that were loaded.
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

/// Two components of one name would share their tables, and what one of them remembers would be the other's
/// word. One component under several names of the operator's is no namesake of itself.
fn refuse_namesakes(members: &mut [Member]) {
    for place in 0..members.len() {
        let (before, rest) = members.split_at_mut(place);
        let Some(Member {
            name,
            policy: Ok(policy),
            ..
        }) = rest.first()
        else {
            continue;
        };
        let own = &policy.manifest.name;
        let is_other = |hash: &str| hash != policy.hash;
        let of_program =
            builtin::policy(own).filter(|bytes| is_other(&tollgate_core::hash::sha256_hex(bytes)));
        let others = before
            .iter()
            .filter_map(|other| other.policy.as_ref().ok().zip(Some(&other.name)));
        let earlier = others
            .filter(|(other, _)| other.manifest.name == *own && is_other(&other.hash))
            .map(|(_, name)| name)
            .next();
        let problem = match (of_program, earlier) {
            (Some(_), _) => {
                format!("it calls itself `{own}`, which is another policy that is built in; rename it")
            }
            (None, Some(earlier)) => format!(
                "it calls itself `{own}`, as the other component of [policies.{earlier}] does; rename one"
            ),
            (None, None) => continue,
        };
        let unloaded = Unloaded::of(name, &policy.origin, vec![problem]);
        members[place].policy = Err(unloaded);
    }
}

/// A policy whose tables could be another's is refused, naming both: with them it could write what the other one
/// remembers, such as the answers of people.
fn refuse_clashes(members: &mut [Member], known: &[String]) {
    for place in 0..members.len() {
        let (before, rest) = members.split_at_mut(place);
        let Some(Member {
            name,
            policy: Ok(policy),
            ..
        }) = rest.first()
        else {
            continue;
        };
        let loaded = before.iter().filter_map(|other| {
            let policy = other.policy.as_ref().ok()?;
            Some((
                policy.manifest.name.as_str(),
                other.name.as_str(),
                policy.is_builtin(),
            ))
        });
        let own = policy.manifest.name.as_str();
        if let Some(problem) = clash(own, policy.is_builtin(), loaded, known) {
            let unloaded = Unloaded::of(name, &policy.origin, vec![problem]);
            members[place].policy = Err(unloaded);
        }
    }
}

/// Other owner of a policy's tables, with a remedy. `loaded` are names of policies, of their places in the chain
/// and if they are built in, `known` the components that have tables in the database.
fn clash<'a>(
    own: &str,
    is_builtin: bool,
    mut loaded: impl Iterator<Item = (&'a str, &'a str, bool)>,
    known: &[String],
) -> Option<String> {
    let clashes = |other: &str| other != own && prefixes_clash(other, own);
    if is_builtin {
        // Those of the program have names that fit each other, and keep them whoever took a like one before.
        return None;
    }
    // A longer name reaches nothing of a built-in policy, which is trusted with what it reaches itself.
    let is_trusted = |other: &str| other.len() < own.len();
    if let Some(other) = builtin::policies().find(|other| clashes(other) && !is_trusted(other)) {
        return Some(format!(
            "it calls itself `{own}`, and its tables could be those of the built-in policy `{other}`; rename it"
        ));
    }
    let theirs =
        |&(other, _, is_builtin): &(&str, &str, bool)| clashes(other) && !(is_builtin && is_trusted(other));
    if let Some((other, place, _)) = loaded.find(theirs) {
        return Some(format!(
            "it calls itself `{own}`, and its tables could be those of `{other}` in [policies.{place}]; rename one"
        ));
    }
    let known = known
        .iter()
        .filter_map(|known| known.strip_prefix(Namespace::POLICIES));
    // Of a built-in policy's name: whoever else takes it is compared with the tables that are there then.
    let is_builtin = |other: &str| builtin::policies().any(|name| name == other);
    let mut known = known.filter(|other| clashes(other) && !(is_builtin(other) && is_trusted(other)));
    let other = known.next()?;
    Some(format!(
        "it calls itself `{own}`, and its tables could be those that policy `{other}` has in the database; rename it"
    ))
}

/// Does with a policy's tables what is to be done. One whose tables cannot be up to date is not loaded.
fn bring(tables: Tables, loader: &Loader, member: &mut Member) {
    if let Ok(policy) = &member.policy
        && let Err(err) = tables.bring(loader, &policy.namespace, &policy.manifest.migrations)
    {
        member.policy = Err(Unloaded::of(&member.name, &policy.origin, packs::one(err)));
    }
}

/// A component that said what it is, before it has settings.
pub struct Described {
    pub manifest: Manifest,
    /// SHA-256 of its bytes, in hex.
    hash: String,
    size: usize,
    pre: PolicyPre<CallState>,
    code: Code,
}

impl Described {
    /// Brings a component in and asks what it is.
    pub async fn of(loader: &Loader, origin: &Origin, pin: Option<&str>) -> Result<Described, Vec<String>> {
        let prepared = loader.prepare(origin, pin, World::Policy, Haste::Whole).await?;
        let prepared = prepared.ok_or_else(|| vec!["it is not at hand".to_owned()])?;
        Described::prepared(loader, prepared)
    }

    /// Asks what a component is.
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

    /// Requests beside the policy's own tables.
    fn wishes(&self) -> Vec<Wish> {
        self.manifest.wants.iter().map(Wish::of).collect()
    }

    /// Grants all that it asks for.
    pub fn grant_all(&self, grants: &mut Grants) {
        grants.add_all(&self.wishes());
    }

    /// The policy that it is with settings, which must be right, and grants, which must be enough.
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
                "with `phase` of [{table}] it would never be asked; leave `phase` out"
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
            namespace: namespace.bounded(source.limits.of_tables()),
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
            spares: InstancePool::default(),
            _code: self.code.clone(),
        })
    }
}

/// Manifest of a policy, which is asked twice: one that says something else each time would be
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

#[cfg(test)]
mod tests {
    use super::*;

    fn clash_of(own: &str, loaded: &[(&str, &str)], known: &[&str]) -> Option<String> {
        let known: Vec<String> = known.iter().map(|&name| name.to_owned()).collect();
        clash(
            own,
            false,
            loaded.iter().map(|&(name, place)| (name, place, false)),
            &known,
        )
    }

    #[test]
    fn no_policy_gets_anothers_tables_by_its_name() {
        for (own, loaded, known, other) in [
            (
                "side-effect",
                vec![],
                vec![],
                "built-in policy `side-effect-approval`",
            ),
            ("side", vec![], vec![], "built-in policy `side-effect-approval`"),
            (
                "mine-too",
                vec![("mine", "one")],
                vec![],
                "`mine` in [policies.one]",
            ),
            (
                "mine",
                vec![("mine-too", "one")],
                vec![],
                "`mine-too` in [policies.one]",
            ),
            ("mine", vec![], vec!["policy-mine-too"], "policy `mine-too`"),
            ("mine-too", vec![], vec!["policy-mine"], "policy `mine`"),
        ] {
            let said = clash_of(own, &loaded, &known).expect(own);
            assert!(
                said.contains(&format!("`{own}`")) && said.contains(other),
                "{said}"
            );
        }
        // A pack's tables do not start with `policy_`, and a component is no namesake of itself here.
        assert_eq!(
            clash_of(
                "mine",
                &[("mine", "one"), ("mining", "two")],
                &["mine-too", "policy-mine"]
            ),
            None
        );
        // A built-in policy is trusted with the longer names that it reaches, and nobody else with those of its name.
        let loaded = [("cel", "one", true)];
        assert_eq!(
            clash("cel-x", false, loaded.into_iter(), &["policy-cel".to_owned()]),
            None
        );
        let said = clash_of("cel-x", &[("cel", "one")], &[]).unwrap();
        assert!(said.contains("`cel` in [policies.one]"), "{said}");
        assert_eq!(
            clash("cel", true, std::iter::empty(), &["policy-cel-x".to_owned()]),
            None
        );
    }
}
