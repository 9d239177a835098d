//! `tollgate packs inspect`

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use tollgate::config::Config;
use tollgate_components::catalog::{self, Inspection, Said};
use tollgate_components::packs::Manifest;
use tollgate_components::policies::Phase;
use tollgate_components::tools::ToolSpec;
use tollgate_store::storage::MigrationStep;

use crate::cli::{self, Global, component, out, registry};

/// Runs the component in the sandbox to ask what it offers and requests: without storage, files, programs or network,
/// in 64 MiB and 5 seconds. The rest is read from its bytes.
#[derive(Debug, Args)]
pub(in crate::cli) struct Inspect {
    /// The component: a file, the name of a built-in one, https://…, or oci://HOST/NAME:TAG
    component: String,
    /// Do not run the component; show only what its bytes contain
    #[arg(long = "static")]
    is_static: bool,
}

impl Inspect {
    /// Exit code 1 if it cannot be a pack or a policy here.
    pub(in crate::cli) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let (bytes, fetched) = component::look_at(global, &self.component).await?;
        let (inspection, workspaces) = if self.is_static {
            (catalog::anatomy_of(&bytes), Vec::new())
        } else {
            let config = Config::load(global.config.as_deref())?;
            let inspection = Inspection::of(cli::context(global, &config)?.loader(), &bytes).await;
            (inspection, component::workspaces(global, &config)?)
        };
        if global.json {
            let mut whole = as_json(&inspection);
            if let Some(fetched) = &fetched {
                whole["registry"] = registry::as_json(fetched);
            }
            out::print_json(&whole);
        } else {
            if let Some(fetched) = &fetched {
                out::print(&registry::tell(fetched));
            }
            out::print(&tell(&inspection, &workspaces));
            inspection.problems.iter().for_each(|problem| out::warn(problem));
        }
        let is_trusted = fetched.is_none_or(|fetched| fetched.verdict.is_ok());
        Ok(if inspection.problems.is_empty() && is_trusted {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

fn as_json(inspection: &Inspection) -> Value {
    let mut whole = json!({
        "sha256": inspection.sha256,
        "bytes": inspection.bytes,
        "anatomy": inspection.anatomy,
        "problems": inspection.problems,
    });
    whole["kind"] = kind(inspection).into();
    whole["manifest"] = match &inspection.manifest {
        Some(Said::Pack(manifest)) => pack(inspection, manifest),
        Some(Said::Policy(manifest)) => json!({
            "name": manifest.name,
            "version": manifest.version,
            "summary": manifest.summary,
            "phase": manifest.phase,
            "wants": inspection.wanted(),
            "migrations": manifest.migrations.iter().map(|step| &step.name).collect::<Vec<_>>(),
            "config_schema": manifest.config_schema,
        }),
        None => return whole,
    };
    whole
}

fn kind(inspection: &Inspection) -> &'static str {
    match (&inspection.anatomy, inspection.is_policy()) {
        (None, _) => "not a component",
        (Some(_), true) => "policy",
        (Some(_), false) => "pack",
    }
}

fn pack(inspection: &Inspection, manifest: &Manifest) -> Value {
    let tools = |tools: &[ToolSpec]| -> Vec<Value> { tools.iter().map(tool).collect() };
    json!({
            "name": manifest.name,
            "version": manifest.version,
            "summary": manifest.summary,
            "wants": inspection.wanted(),
            "tools": tools(&manifest.tools),
            "prompts": tools(&manifest.prompts),
            "migrations": manifest.migrations.iter().map(|step| &step.name).collect::<Vec<_>>(),
            "config_schema": manifest.config_schema,
    })
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "name": spec.name,
        "title": spec.title,
        "description": spec.description,
        "effect": spec.effect,
        "tier": spec.tier,
        "destructive": spec.destructive,
        "idempotent": spec.idempotent,
        "open_world": spec.open_world,
        "aliases": spec.aliases,
    })
}

/// Everything except problems, as text for people.
pub(in crate::cli) fn tell(inspection: &Inspection, workspaces: &[String]) -> String {
    let mut lines = vec![
        field("kind", kind(inspection)),
        field("sha256", &inspection.sha256),
        field("bytes", &inspection.bytes.to_string()),
    ];
    if let Some(anatomy) = &inspection.anatomy {
        let api = anatomy.host_api.as_deref().unwrap_or("none");
        lines.push(field("host API", api));
        lines.push(field("exports", &anatomy.exports.join(", ")));
        lines.push(field("imports", &anatomy.capabilities.join(", ")));
        lines.push(field("also", &packages(&anatomy.other_imports)));
    }
    match &inspection.manifest {
        Some(Said::Pack(manifest)) => {
            lines.extend(of_itself(&manifest.name, &manifest.version, &manifest.summary));
            lines.push(tables(&manifest.migrations));
            let settings = manifest.config_schema.as_ref();
            lines.push(field(
                "settings",
                settings.map_or("none", |_| "defined by a schema"),
            ));
            lines.push(wants(inspection, workspaces));
            lines.push(String::new());
            lines.push(tools(manifest.tools.iter().chain(&manifest.prompts)));
        }
        Some(Said::Policy(manifest)) => {
            lines.extend(of_itself(&manifest.name, &manifest.version, &manifest.summary));
            let judges = match manifest.phase {
                Phase::Request => "calls before they run",
                Phase::Response => "results",
                Phase::Both => "calls before they run, and results",
            };
            lines.push(field("evaluates", judges));
            lines.push(tables(&manifest.migrations));
            lines.push(wants(inspection, workspaces));
            let schema = manifest.config_schema.as_ref();
            lines.push(schema.map_or_else(|| field("settings", ""), settings));
        }
        None => {}
    }
    lines.join("\n")
}

fn of_itself(name: &str, version: &str, summary: &str) -> [String; 2] {
    [
        field("name", &format!("{name} {version}")),
        field("summary", summary),
    ]
}

fn tables(steps: &[MigrationStep]) -> String {
    let steps: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
    field("tables", &steps.join(", "))
}

/// Settings that a schema describes, one per line.
fn settings(schema: &Value) -> String {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let rows: Vec<Vec<String>> = properties
        .into_iter()
        .flatten()
        .map(|(name, property)| {
            let is_required = required.is_some_and(|names| names.iter().any(|required| required == name));
            let text = |key: &str| property.get(key).and_then(Value::as_str).unwrap_or_default();
            let default = property
                .get("default")
                .map(|default| format!("default {default}"));
            let need = if is_required {
                "required".to_owned()
            } else {
                default.unwrap_or_default()
            };
            vec![
                name.clone(),
                text("type").to_owned(),
                need,
                text("description").replace('\n', " "),
            ]
        })
        .collect();
    format!(
        "\n{}",
        out::table(&["SETTING", "TYPE", "NEEDED", "DESCRIPTION"], &rows)
    )
}

/// Imported packages, for example `wasi:io` once for all of its interfaces.
fn packages(imports: &[String]) -> String {
    let mut packages: Vec<&str> = imports
        .iter()
        .filter_map(|import| import.split('/').next())
        .collect();
    packages.dedup();
    packages.join(", ")
}

fn field(name: &str, value: &str) -> String {
    format!("{name:<9} {}", if value.is_empty() { "none" } else { value })
}

fn wants(inspection: &Inspection, workspaces: &[String]) -> String {
    let wanted = inspection.wanted();
    if wanted.is_empty() {
        return field("requests", "");
    }
    let width = wanted.iter().map(|wanted| wanted.what.chars().count()).max();
    let width = width.unwrap_or_default();
    let lines = wanted.iter().map(|wanted| {
        format!(
            "  {:<width$}  {}",
            wanted.what,
            component::suggested(&wanted.line, workspaces)
        )
    });
    format!(
        "requests, each with the line that grants it\n{}",
        lines.collect::<Vec<_>>().join("\n")
    )
}

fn tools<'a>(specs: impl Iterator<Item = &'a ToolSpec>) -> String {
    let rows: Vec<Vec<String>> = specs
        .map(|spec| {
            let marks = [
                (spec.destructive, "destructive"),
                (spec.open_world, "open world"),
                (spec.members.is_some(), "runs other tools"),
            ];
            let marks: Vec<&str> = marks
                .iter()
                .filter(|(is, _)| *is)
                .map(|(_, mark)| *mark)
                .collect();
            vec![
                spec.name.clone(),
                spec.effect.as_str().to_owned(),
                format!("{:?}", spec.tier).to_lowercase(),
                marks.join(", "),
                spec.title.clone(),
            ]
        })
        .collect();
    out::table(&["TOOL", "EFFECT", "TIER", "MARKS", "TITLE"], &rows)
}
