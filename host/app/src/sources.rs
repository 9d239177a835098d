//! Sources of the packs and policies of a configuration.

use std::path::Path;

use anyhow::Context as _;
use tollgate_components::builtin;
use tollgate_components::loading::Origin;
use tollgate_components::packs::Source;
use tollgate_components::policies;
use tollgate_gate::core_tools;

use crate::config::{Config, PackConfig, PolicyConfig, PolicySource, builtin_policy};

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
        match settings.origin(name) {
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
        let origin = settings.origin(name).map_err(anyhow::Error::msg)?;
        return Ok(settings.source(name, origin));
    }
    let own = match PolicySource::parse(name) {
        PolicySource::Builtin(own) => own,
        _ => name,
    };
    match builtin_policy(own) {
        Ok(bytes) => Ok(PolicyConfig::default().source(own, Origin::Builtin(bytes))),
        Err(_) if Path::new(name).exists() => {
            let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str());
            Ok(PolicyConfig::default().source(stem.unwrap_or(name), Origin::File(name.into())))
        }
        Err(problem) => anyhow::bail!("{name} is neither a file nor a configured policy, and {problem}"),
    }
}

fn source(name: &str, settings: &PackConfig) -> anyhow::Result<Source> {
    let origin = settings
        .origin(builtin::component(name))
        .with_context(|| format!("[packs.{name}] has no source and is not built in"))?;
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
