//! Check of a pack: its tool definitions, and calls of every tool and prompt.

use std::collections::BTreeSet;
use std::sync::Arc;

use jsonschema::Validator;
use serde_json::{Map, Value};
use tollgate_components::builtin;
use tollgate_components::catalog::ToolEntry;
use tollgate_components::grants::Grants;
use tollgate_components::packs::{Manifest, Source};
use tollgate_components::tools::{ToolSpec, lint};
use tollgate_core::deadline::Cancel;
use tollgate_gate::Gate;
use tollgate_sandbox::Limits;
use tollgate_sandbox::bindings::tollgate::host::component::Want;

use super::Subject;
use super::arbitrary::{Fill, Known, Maker};
use super::report::{Called, Finding, Report};
use super::scratch::{self, Ended, ScratchHost};
use super::workspaces::Prepared;
use super::{engines, resources, validate};

/// Outcome of a successful call.
const OK: &str = "ok";
/// Code of the SDK for a workspace that is not registered and granted.
const UNKNOWN_WORKSPACE: &str = "WORKSPACE_UNKNOWN";
/// Advice for a parameter that is not explained.
const PARAMETER_ADVICE: &str = "say what the value is, where it comes from, its default and an example";

/// Checks everything about a pack.
pub(super) async fn check(
    host: &ScratchHost,
    manifest: &Manifest,
    grants: Grants,
    subject: &Subject,
    prepared: Prepared,
    cancel: &Cancel,
    report: &mut Report,
) -> anyhow::Result<()> {
    report.name = Some(manifest.name.clone());
    report.version = Some(manifest.version.clone());
    report.config_schema.clone_from(&manifest.config_schema);
    let mut known = Known::new(&prepared.first);
    report.config = subject
        .config
        .clone()
        .unwrap_or_else(|| settings(manifest.config_schema.as_ref(), &known));
    for tool in manifest.tools.iter().chain(&manifest.prompts) {
        report.problems_of(&tool.name, lint::unclear(tool));
        for vague in lint::vague(tool) {
            report.problem(Finding::new(&tool.name, vague).remedy(PARAMETER_ADVICE));
        }
    }
    let source = Source {
        name: manifest.name.clone(),
        origin: host.origin(),
        sha256: None,
        grants,
        limits: limits(&manifest.name, &subject.bytes),
        config: report.config.clone(),
        exclude: Vec::new(),
        // The report mentions it.
        full_schemas: true,
        resume: false,
    };
    let gate = host.gate(Some(source), None, prepared.workspaces).await?;
    for failure in gate.catalog().failures() {
        report.problems_of(&failure.pack, failure.problems.clone());
    }
    // Destructive tools run last, so that there is data to read before.
    let (removing, others): (Vec<&ToolSpec>, Vec<&ToolSpec>) = manifest
        .tools
        .iter()
        .chain(&manifest.prompts)
        .partition(|tool| tool.destructive);
    call_all(&gate, &others, &mut known, cancel, report).await;
    resources::check(&gate, &manifest.name, &known, cancel, report).await;
    call_all(&gate, &removing, &mut known, cancel, report).await;
    unseen(manifest, subject, report);
    for pack in gate.catalog().packs() {
        engines::compare(&pack.namespace, &pack.manifest.migrations, report);
    }
    gate.flush().await;
    Ok(())
}

async fn call_all(gate: &Gate, tools: &[&ToolSpec], known: &mut Known, cancel: &Cancel, report: &mut Report) {
    for tool in tools {
        if cancel.is_cancelled() {
            break;
        }
        call(gate, &tool.name, known, cancel, report).await;
    }
}

/// Records tools of which every call was refused, and programs that were not started.
fn unseen(manifest: &Manifest, subject: &Subject, report: &mut Report) {
    for named in manifest.tools.iter().chain(&manifest.prompts) {
        let calls = report.calls.iter().filter(|called| called.tool == named.name);
        let outcomes: BTreeSet<&str> = calls.map(|called| called.outcome.as_str()).collect();
        if outcomes.contains(OK) {
            continue;
        }
        let codes: Vec<&str> = outcomes.into_iter().collect();
        let why = match codes.is_empty() {
            true => "not called".to_owned(),
            false => format!("all calls were refused with {}", codes.join(", ")),
        };
        let finding = Finding::new(&named.name, why);
        report.untried(match codes.contains(&UNKNOWN_WORKSPACE) {
            true => finding.remedy("pass --workspace NAME=DIR for the workspace that the tool expects"),
            false => finding,
        });
    }
    let is_program = |want: &Want| matches!(want, Want::Process(_) | Want::Git(_) | Want::Tests);
    if !subject.programs && manifest.wants.iter().any(is_program) {
        let why = Finding::new("programs", "no program was started");
        report.untried(why.remedy("pass --programs to let the component run the programs that it requests"));
    }
}

/// Limits of the calls. Only a genuine built-in component has higher limits, not one that uses its name.
fn limits(name: &str, bytes: &[u8]) -> Limits {
    match builtin::component(name) {
        Some(own) if own == bytes => builtin::limits(name),
        _ => Limits::default(),
    }
}

/// Settings for a component that requires some.
pub(super) fn settings(schema: Option<&Value>, known: &Known) -> Map<String, Value> {
    let maker = Maker {
        fill: Fill::Required,
        known,
    };
    match schema.map(|schema| maker.make(schema)) {
        Some(Value::Object(settings)) => settings,
        _ => Map::new(),
    }
}

/// Calls a tool with as few arguments as possible, and with all arguments.
async fn call(gate: &Gate, name: &str, known: &mut Known, cancel: &Cancel, report: &mut Report) {
    let catalog = gate.catalog();
    let Some(tool) = catalog
        .find(name)
        .or_else(|| catalog.find_prompt(name))
        .map(Arc::clone)
    else {
        // The pack was not loaded, which is reported elsewhere.
        return;
    };
    let output = match jsonschema::validator_for(&Value::Object(tool.spec.output_schema.as_ref().clone())) {
        Ok(output) => output,
        Err(err) => {
            report.problem(Finding::new(
                name,
                format!("the output schema is not valid JSON Schema: {err}"),
            ));
            return;
        }
    };
    let mut before = None;
    for fill in Fill::ALL {
        match arguments(&tool, fill, known) {
            Ok(arguments) if before.as_ref() == Some(&arguments) => {}
            Ok(arguments) => {
                before = Some(arguments.clone());
                let ended = scratch::call(gate, name, arguments.clone(), cancel).await;
                // A cancelled call says nothing about the tool.
                if let Some(ended) = ended.filter(|_| !cancel.is_cancelled()) {
                    note(name, arguments, ended, &output, known, report);
                }
            }
            Err(finding) => report.problem(finding),
        }
    }
}

/// Records the outcome of a call.
fn note(
    name: &str,
    arguments: Map<String, Value>,
    (result, duration_ms): Ended,
    output: &Validator,
    known: &mut Known,
    report: &mut Report,
) {
    let outcome = match &result {
        Ok(reply) => {
            known.learn(&Value::Object(reply.structured()));
            OK.to_owned()
        }
        Err(err) => err.code.clone(),
    };
    report.calls.push(Called {
        tool: name.to_owned(),
        arguments: Value::Object(arguments),
        address: None,
        outcome,
        duration_ms,
    });
    validate::faults(name, &result, output)
        .into_iter()
        .for_each(|fault| report.problem(fault));
    validate::note(name, &result)
        .into_iter()
        .for_each(|note| report.note(note));
}

/// Arguments for a tool.
fn arguments(tool: &ToolEntry, fill: Fill, known: &Known) -> Result<Map<String, Value>, Finding> {
    let schema = Value::Object(tool.spec.input_schema.clone());
    let made = Maker { fill, known }.make(&schema);
    if let Some(err) = tool
        .arguments()
        .and_then(|arguments| arguments.iter_errors(&made).next())
    {
        let why = format!("not called, because no arguments could be generated: {err}");
        return Err(Finding::new(&tool.spec.name, why).remedy("add valid values to the schema as `examples`"));
    }
    match made {
        Value::Object(arguments) => Ok(arguments),
        _ => Ok(Map::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_a_built_in_name_has_no_more_time_than_others() {
        let own = builtin::component("conductor").unwrap();
        assert_eq!(limits("conductor", own), builtin::limits("conductor"));
        assert_ne!(limits("conductor", own), Limits::default());
        assert_eq!(limits("conductor", b"something else"), Limits::default());
        assert_eq!(limits("unknown", own), Limits::default());
    }
}
