//! Sources of the packs and policies of a configuration.

use std::path::Path;

use anyhow::Context as _;
use tollgate_components::builtin;
use tollgate_components::loading::Origin;
use tollgate_components::packs::Source;
use tollgate_components::policies;
use tollgate_gate::core_tools;

use crate::config::{Config, PackConfig, PolicyConfig};

/// Built-in packs, then those of the configuration by name.
pub(crate) fn sources(config: &Config, wanted: &[String]) -> anyhow::Result<Vec<Source>> {
    let default = PackConfig::default();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|want| want == name);
    let mut sources = Vec::new();
    for name in builtin::names() {
        let settings = config.packs.get(name).unwrap_or(&default);
        if is_wanted(name) && settings.enabled.unwrap_or(true) {
            sources.push(source(name, settings)?);
        }
    }
    for (name, settings) in &config.packs {
        if builtin::component(name).is_none() && is_wanted(name) && settings.enabled.unwrap_or(true) {
            sources.push(source(name, settings)?);
        }
    }
    let unknown: Vec<&str> = wanted
        .iter()
        .filter(|want| *want != core_tools::PACK && !sources.iter().any(|source| source.name == **want))
        .map(String::as_str)
        .collect();
    let mut known: Vec<&str> = builtin::names().collect();
    known.extend(config.packs.keys().map(String::as_str));
    let is_enabled = |name: &&str| {
        let settings = config.packs.get(*name);
        settings.is_none_or(|settings| settings.enabled.unwrap_or(true))
    };
    let mut enabled: Vec<&str> = known.iter().copied().filter(is_enabled).collect();
    enabled.sort_unstable();
    enabled.dedup();
    let told = unknown.iter().map(|name| match config.packs.get(*name) {
        Some(settings) if settings.enabled == Some(false) => {
            format!("pack {name} is switched off: [packs.{name}] enabled = false")
        }
        _ => {
            let near = tollgate_core::text::nearest(name, known.iter().copied());
            let near = near.map(|near| format!("; did you mean {near}?"));
            format!("there is no pack {name}{}", near.unwrap_or_default())
        }
    });
    anyhow::ensure!(
        unknown.is_empty(),
        "{} (the packs are {}, {})",
        told.collect::<Vec<_>>().join("; "),
        core_tools::PACK,
        enabled.join(", ")
    );
    Ok(sources)
}

/// Policies of the configuration. If one is missing, nothing starts.
pub(crate) fn policy_sources(config: &Config) -> anyhow::Result<Vec<policies::Source>> {
    let mut sources = Vec::new();
    let mut problems = Vec::new();
    for (name, settings) in &config.policies {
        match policy_origin(name, settings) {
            Ok(origin) => sources.push(settings.source(name, origin)),
            Err(problem) => problems.push(problem),
        }
    }
    anyhow::ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(sources)
}

/// Finds a policy by name: a configured one with its settings, a built-in one, or a file.
pub fn named_policy(config: &Config, name: &str) -> anyhow::Result<policies::Source> {
    if let Some(settings) = config.policies.get(name) {
        let origin = policy_origin(name, settings).map_err(anyhow::Error::msg)?;
        return Ok(settings.source(name, origin));
    }
    let own = name.strip_prefix("builtin:").unwrap_or(name);
    let origin = match builtin::policy(own) {
        Some(bytes) => Origin::Builtin(bytes),
        None if Path::new(name).exists() => Origin::File(name.into()),
        None => anyhow::bail!(
            "{name} is not a file, a configured policy or a built-in policy; the built-in policies are {}",
            builtin::policies().collect::<Vec<_>>().join(", ")
        ),
    };
    let called = match &origin {
        Origin::Builtin(_) => own,
        _ => Path::new(name)
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or(name),
    };
    Ok(PolicyConfig::default().source(called, origin))
}

/// Origin of a policy: `builtin:NAME` or a path. Default the built-in policy of the same name.
fn policy_origin(name: &str, settings: &PolicyConfig) -> Result<Origin, String> {
    let source = settings.source.as_deref();
    if let Some(url) = source.filter(|source| source.starts_with("https://")) {
        let sha256 = settings.sha256.clone();
        let unpinned = format!("[policies.{name}] needs the sha256 of the component at {url}");
        return sha256
            .map(|sha256| Origin::Https {
                url: url.to_owned(),
                sha256,
            })
            .ok_or(unpinned);
    }
    if let Some(reference) = source.filter(|source| source.starts_with(tollgate_registry::SCHEME)) {
        let unpinned = || format!("[policies.{name}] needs the digest and the sha256 of {reference}");
        return crate::config::pinned(reference, settings.sha256.as_deref()).ok_or_else(unpinned);
    }
    let builtin = match source {
        None => name,
        Some(source) => match source.strip_prefix("builtin:") {
            Some(builtin) => builtin,
            None => return Ok(Origin::File(source.into())),
        },
    };
    builtin::policy(builtin).map(Origin::Builtin).ok_or_else(|| {
        let all: Vec<&str> = builtin::policies().collect();
        let all = all.join(", ");
        match source {
            None => format!("[policies.{name}] names no source and is not built in; add `source = \"PATH\"` or \"builtin:NAME\" of {all}"),
            Some(_) => format!("[policies.{name}] source: there is no built-in policy {builtin}; there are {all}"),
        }
    })
}

fn source(name: &str, settings: &PackConfig) -> anyhow::Result<Source> {
    let origin = settings
        .origin(builtin::component(name))
        .with_context(|| format!("[packs.{name}] names no source and is not built in"))?;
    Ok(Source {
        name: name.to_owned(),
        origin,
        sha256: settings.sha256.clone(),
        grants: settings.grants.clone(),
        limits: settings.limits.limits(&builtin::limits(name)),
        config: settings.config.clone(),
        exclude: settings.exclude.clone(),
        full_schemas: settings.full_schemas,
        resume: settings.resume,
    })
}
