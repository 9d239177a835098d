//! Common parts of the commands that use registries: pulling, verifying signatures, and describing components.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::{Value, json};
use tollgate::config::Config;
use tollgate_components::catalog::{Inspection, Said};
use tollgate_components::loading::{Fetched, Registries};
use tollgate_components::tools::ToolSpec;
use tollgate_registry::change::Description;
use tollgate_registry::{Reference, SCHEME};

use super::out;

/// Returns whether a source is in a registry.
pub(super) fn is_reference(source: &str) -> bool {
    source.starts_with(SCHEME)
}

/// Opens the configured registries.
pub(super) fn open(config: &Config) -> anyhow::Result<Arc<Registries>> {
    Ok(Arc::new(config.open_registries(|name| std::env::var(name).ok())?))
}

/// Pulls a component without storing it.
pub(super) async fn fetch(config: &Config, source: &str) -> anyhow::Result<Fetched> {
    let reference: Reference = source.parse()?;
    Ok(open(config)?.fetch(&reference).await?)
}

/// Refuses a component without a trusted signature. Otherwise reports the signer.
pub(super) fn judge(fetched: &mut Fetched) -> anyhow::Result<()> {
    let reference = &fetched.pulled.reference;
    match &fetched.verdict {
        Ok(verdict) => {
            out::warn(&format!("{reference} is {verdict}"));
            Ok(())
        }
        Err(err) => Err(anyhow::anyhow!("{err}; nothing was changed")),
    }
}

/// Lines about a component in a registry, provided by its publisher.
pub(super) fn tell(fetched: &Fetched) -> String {
    let mut lines = vec![format!("{:<9} {}", "registry", fetched.pulled.reference)];
    let verdict = match &fetched.verdict {
        Ok(verdict) => verdict.to_string(),
        Err(err) => format!("refused: {err}"),
    };
    lines.push(format!("{:<9} {verdict}", "signature"));
    let said = fetched.pulled.said();
    if !said.lines().is_empty() {
        lines.push("its publisher states".to_owned());
        lines.extend(
            said.lines()
                .iter()
                .map(|(name, value)| format!("  {name:<12} {value}")),
        );
    }
    lines.join("\n")
}

/// The same information as JSON.
pub(super) fn as_json(fetched: &Fetched) -> Value {
    json!({
        "reference": fetched.pulled.reference.to_string(),
        "signature": match &fetched.verdict {
            Ok(verdict) => json!({ "accepted": true, "verdict": verdict.to_string() }),
            Err(err) => json!({ "accepted": false, "verdict": err.to_string() }),
        },
        "publisher_says": fetched.pulled.said(),
    })
}

/// Description of a component, for comparing it with another version.
pub(super) fn describe(source: &str, inspection: &Inspection) -> anyhow::Result<Description> {
    let manifest = inspection.manifest.as_ref();
    let manifest =
        manifest.with_context(|| format!("{source} cannot be used: {}", inspection.problems.join("; ")))?;
    let wants = inspection
        .wanted()
        .into_iter()
        .map(|wanted| wanted.line)
        .collect();
    Ok(match manifest {
        Said::Pack(pack) => Description {
            kind: "pack".to_owned(),
            name: pack.name.clone(),
            version: pack.version.clone(),
            tools: pack
                .tools
                .iter()
                .chain(&pack.prompts)
                .map(|spec| (spec.name.clone(), properties(spec)))
                .collect(),
            wants,
            settings: pack.config_schema.clone(),
            migrations: pack.migrations.iter().map(|step| step.name.clone()).collect(),
        },
        Said::Policy(policy) => Description {
            kind: "policy".to_owned(),
            name: policy.name.clone(),
            version: policy.version.clone(),
            tools: BTreeMap::new(),
            wants,
            settings: policy.config_schema.clone(),
            migrations: policy.migrations.iter().map(|step| step.name.clone()).collect(),
        },
    })
}

fn properties(spec: &ToolSpec) -> BTreeMap<&'static str, Value> {
    BTreeMap::from([
        ("title", json!(spec.title)),
        ("description", json!(spec.description)),
        ("effect", json!(spec.effect)),
        ("tier", json!(spec.tier)),
        ("destructive", json!(spec.destructive)),
        ("idempotent", json!(spec.idempotent)),
        ("open world", json!(spec.open_world)),
        ("aliases", json!(spec.aliases)),
        ("arguments", Value::Object(spec.input_schema.clone())),
        ("result", Value::Object(spec.output_schema.as_ref().clone())),
    ])
}

/// One line about a component, in its own words.
pub(super) fn summary(inspection: &Inspection) -> String {
    match &inspection.manifest {
        Some(Said::Pack(pack)) => pack.summary.clone(),
        Some(Said::Policy(policy)) => policy.summary.clone(),
        None => String::new(),
    }
}
