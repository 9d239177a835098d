//! Loading of a pack from its source until it can be called.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tollgate_sandbox::CallState;
use tollgate_sandbox::bindings::ToolPackPre;
use tollgate_sandbox::bindings::exports::tollgate::host::pack as wit;
use tollgate_sandbox::workspaces::{Access, Workspaces};
use tollgate_sdk::surface;
use tollgate_store::storage::Namespace;

use super::manifest::Manifest;
use super::pack::{LoadError, Pack, Source};
use super::ready::{Linked, Ready};
use crate::grants::{granted, missing_grants};
use crate::loading::{Haste, InstancePool, Loader, Origin, config_problems, migration_problems, pinned};
use crate::world::World;

/// Time limit of loading while clients wait.
const LOAD_TIMEOUT: Duration = Duration::from_millis(500);

impl Pack {
    /// Loads a pack except for its migrations, which wait until its name and tools are known to be free. `None` if
    /// that takes longer than the given time.
    pub(crate) async fn load(
        loader: &Loader,
        source: Source,
        workspaces: &Workspaces,
        haste: Haste,
    ) -> Option<Result<Pack, LoadError>> {
        let origin = source.origin.to_string();
        let loaded = try_load(loader, &source, workspaces, haste).await;
        loaded
            .map_err(|problems| LoadError::new(&source.name, &origin, problems))
            .transpose()
    }
}

async fn try_load(
    loader: &Loader,
    source: &Source,
    workspaces: &Workspaces,
    haste: Haste,
) -> Result<Option<Pack>, Vec<String>> {
    let Some(bytes) = loader.bytes(&source.origin, haste).await? else {
        return Ok(None);
    };
    let (hash, size) = (pinned(&bytes, source.sha256.as_deref())?, bytes.len());
    let known = known_manifest(loader, &hash);
    let (manifest, ready) = match known {
        Some(manifest) => (manifest, later(loader, &source.name, bytes, hash.clone())),
        None if haste == Haste::AtHand => match described_soon(loader, &source.name, bytes, &hash).await? {
            Some(described) => described,
            None => return Ok(None),
        },
        None => described(loader, &source.name, bytes, &hash).await?,
    };
    let pack = pack(source, workspaces, manifest, ready, (hash, size))?;
    if haste == Haste::Whole {
        pack.ready().await?;
    }
    Ok(Some(pack))
}

/// Manifest of a pack, recorded by the build of this program or by an earlier load.
fn known_manifest(loader: &Loader, hash: &str) -> Option<Manifest> {
    let said: wit::Manifest = serde_json::from_str(&loader.known_manifest(hash)?).ok()?;
    Manifest::check(said).ok()
}

/// Code of a pack whose manifest is known, loaded on demand.
fn later(loader: &Loader, name: &str, bytes: Cow<'static, [u8]>, hash: String) -> Ready {
    let (loader, name) = (loader.clone(), name.to_owned());
    Ready::later(async move {
        let code = loader.checked(&name, &bytes, &hash, World::ToolPack).await?;
        let pre = loader.link(&code, ToolPackPre::new)?;
        Ok(Linked { pre, _code: code })
    })
}

/// Asks a pack for its manifest, if its code is at hand and the answer does not take long.
async fn described_soon(
    loader: &Loader,
    name: &str,
    bytes: Cow<'static, [u8]>,
    hash: &str,
) -> Result<Option<(Manifest, Ready)>, Vec<String>> {
    let Some(_held) = loader.code_at_hand(hash).await else {
        return Ok(None);
    };
    let described = tokio::time::timeout(LOAD_TIMEOUT, described(loader, name, bytes, hash)).await;
    described.ok().transpose()
}

/// Asks a pack for its manifest and stores it.
async fn described(
    loader: &Loader,
    name: &str,
    bytes: Cow<'static, [u8]>,
    hash: &str,
) -> Result<(Manifest, Ready), Vec<String>> {
    let code = loader.checked(name, &bytes, hash, World::ToolPack).await?;
    let pre = loader.link(&code, ToolPackPre::new)?;
    let (asking, asked) = (loader.clone(), pre.clone());
    // Running the guest blocks.
    let said = tokio::task::spawn_blocking(move || describe(&asking, &asked)).await;
    let said = said.unwrap_or_else(|_| {
        Err(vec![
            "the host failed while the component described itself".to_owned(),
        ])
    })?;
    let remembered = serde_json::to_string(&said);
    let manifest = Manifest::check(said)?;
    if let Ok(said) = remembered {
        loader.keep_manifest(hash, &said);
    }
    Ok((manifest, Ready::now(Linked { pre, _code: code })))
}

/// Pack from a manifest and the operator's settings.
fn pack(
    source: &Source,
    workspaces: &Workspaces,
    manifest: Manifest,
    ready: Ready,
    (hash, size): (String, usize),
) -> Result<Pack, Vec<String>> {
    if manifest.name != source.name {
        return Err(vec![format!(
            "the name in its manifest is `{0}`; configure the pack as [packs.{0}]",
            manifest.name
        )]);
    }
    let trust = source.origin.trust();
    let table = format!("packs.{}", manifest.name);
    let mut problems = missing_grants(&table, &manifest.wants, &source.grants, trust);
    problems.extend(config_problems(
        &table,
        manifest.config_schema.as_ref(),
        &source.config,
    ));
    if !source.full_schemas {
        problems.extend(full(&table, &manifest));
    }
    let namespace = Namespace::of_pack(&manifest.name).with_tables(&manifest.migrations);
    problems.extend(migration_problems(&namespace));
    let (Ok(namespace), true) = (namespace, problems.is_empty()) else {
        return Err(problems);
    };
    Ok(Pack {
        namespace: namespace.bounded(source.limits.of_tables()),
        granted: Arc::new(granted(&manifest.wants, &source.grants, trust)),
        access: Arc::new(Access::new(
            workspaces,
            &source.grants.asked(&manifest.wants, trust),
            |name| source.grants.workspace(name, trust),
        )),
        manifest,
        origin: source.origin.to_string(),
        hash,
        size,
        limits: source.limits.clone(),
        config: Value::Object(source.config.clone()).to_string(),
        exclude: source.exclude.clone(),
        resume: source.resume,
        ready,
        pool: match source.origin {
            Origin::Builtin(_) => InstancePool::default(),
            // Instances of other packs may do something at creation that belongs to the call.
            _ => InstancePool::none(),
        },
    })
}

/// Manifest that a pack returns.
pub(crate) fn describe(loader: &Loader, pre: &ToolPackPre<CallState>) -> Result<wit::Manifest, Vec<String>> {
    loader.ask("describe itself", |store| {
        pre.instantiate(&mut *store)?
            .tollgate_host_pack()
            .call_describe(store)
    })
}

/// Tools whose schemas use all of JSON Schema without the operator's permission.
fn full(table: &str, manifest: &Manifest) -> Vec<String> {
    let full = manifest
        .tools
        .iter()
        .filter(|tool| surface::is_full(&tool.input_schema));
    full.map(|tool| {
        format!(
            "tool {}: its input schema uses JSON Schema features that make some clients refuse the whole tool list; \
             if yours do not, set `full_schemas = true` in [{table}]",
            tool.name
        )
    })
    .collect()
}
