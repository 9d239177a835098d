//! Declarations in a tool's input schema beside its arguments.
//!
//! At the root, `x-resources` names the addresses at which the tool's reply can be read as a resource, `x-charge`
//! says what a call costs its envelope, `x-looks` requests a scan of the work tree before the call, `x-workspace`
//! says which workspace the call is about, `x-scope` says which part of the pack's tables the call is about, `x-feed`
//! marks a tool that continues reading rows of all parts after a number, and `x-views` makes the reply a page of the
//! console. Beside an argument, `x-values` names the tool that lists its possible values, and `x-inherited` says that
//! the members of a batch inherit the argument. Lists of tools show none of these keys.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use tollgate_core::effect::Effect;

use super::looks::Looks;
use super::resource::{Declaration, Resource};
use super::scope::{Scope, take_feed};
use super::spec::ToolSpec;
use super::values::{self, VALUES, Values};
use super::views::{self, View};
use super::workspace_of::WorkspaceOf;

/// Key of a schema's addresses.
const RESOURCES: &str = "x-resources";
/// Key of a property that the members of a batch inherit.
const INHERITED: &str = "x-inherited";
/// Key of a schema with the cost of a call.
const CHARGE: &str = "x-charge";

/// Declarations in one tool's schema.
#[derive(Debug, Clone, Default)]
pub(crate) struct Declared {
    pub(crate) resources: Vec<Resource>,
    pub(crate) values: BTreeMap<String, Values>,
    /// Arguments that members inherit from the enclosing call.
    pub(crate) inherited: Vec<String>,
    /// Declared cost of a call.
    pub(crate) charge: Option<DeclaredCharge>,
    /// Setting under which the host scans the work tree before a call.
    pub(crate) looks: Option<Looks>,
    /// Arguments that identify the part of the pack's tables a call is about.
    pub(crate) scope: Option<Scope>,
    /// True if a call continues after a number that rows of all parts have.
    pub(crate) is_feed: bool,
    /// Row that names the workspace of a call.
    pub(crate) workspace: Option<WorkspaceOf>,
    /// Console page of the replies.
    pub(crate) view: Option<View>,
}

/// Declared cost of a `write` or `run` call. The default is a mutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeclaredCharge {
    /// Runs programs that only read.
    Nothing,
    /// Runs tests and changes nothing else.
    TestRun,
}

impl DeclaredCharge {
    fn read(charge: Value, effect: Effect) -> Result<DeclaredCharge, String> {
        match serde_json::from_value(charge) {
            Ok(DeclaredCharge::TestRun) if effect != Effect::Read => Ok(DeclaredCharge::TestRun),
            Ok(DeclaredCharge::Nothing) if effect == Effect::Run => Ok(DeclaredCharge::Nothing),
            _ => Err(format!(
                "{CHARGE} must be \"test-run\" (in `write` and `run` tools) or \"nothing\" (in `run` tools)"
            )),
        }
    }
}

/// True if a tool declares addresses of resources, valid or not.
pub(crate) fn has_addresses(spec: &ToolSpec) -> bool {
    spec.input_schema.contains_key(RESOURCES)
}

/// Removes a tool's declarations from its schema and returns them. The error lists all problems.
pub(crate) fn take(pack: &str, spec: &mut ToolSpec) -> Result<Declared, Vec<String>> {
    let mut declared = Declared::default();
    let mut problems = Vec::new();
    let addresses = spec.input_schema.remove(RESOURCES);
    match views::take(pack, spec) {
        Ok(view) => declared.view = view,
        Err(problem) => problems.push(problem),
    }
    match Looks::take(spec) {
        Ok(looks) => declared.looks = looks,
        Err(problem) => problems.push(problem),
    }
    match Scope::take(spec) {
        Ok(scope) => declared.scope = scope,
        Err(problem) => problems.push(problem),
    }
    match take_feed(spec) {
        Ok(is_feed) => declared.is_feed = is_feed,
        Err(problem) => problems.push(problem),
    }
    match WorkspaceOf::take(pack, spec) {
        Ok(workspace) => declared.workspace = workspace,
        Err(problem) => problems.push(problem),
    }
    match spec
        .input_schema
        .remove(CHARGE)
        .map(|charge| DeclaredCharge::read(charge, spec.effect))
        .transpose()
    {
        Ok(charge) => declared.charge = charge,
        Err(problem) => problems.push(problem),
    }
    if let Some(Value::Object(properties)) = spec.input_schema.get_mut("properties") {
        for (name, property) in properties {
            match property.as_object_mut().map(values::take).unwrap_or(Ok(None)) {
                Ok(Some(values)) => drop(declared.values.insert(name.clone(), values)),
                Ok(None) => {}
                Err(err) => problems.push(format!("{VALUES} of {name}: {err}")),
            }
            match property
                .as_object_mut()
                .and_then(|property| property.remove(INHERITED))
            {
                None => {}
                Some(Value::Bool(true)) if spec.members.is_some() => declared.inherited.push(name.clone()),
                Some(_) => problems.push(format!(
                    "{INHERITED} of {name} must be `true`, and the tool must set `members`"
                )),
            }
        }
    }
    match addresses.map(serde_json::from_value::<Vec<Declaration>>) {
        None => {}
        Some(Err(err)) => problems.push(format!("{RESOURCES}: {err}")),
        Some(Ok(_)) if spec.effect != Effect::Read => {
            problems.push(format!("{RESOURCES}: only `read` tools can have addresses"));
        }
        Some(Ok(declarations)) => {
            for declaration in declarations {
                let path = declaration.path.clone();
                match Resource::new(pack, spec, declaration) {
                    Ok(resource) => declared.resources.push(resource),
                    Err(problem) => problems.push(format!("{RESOURCES} {path}: {problem}")),
                }
            }
        }
    }
    if problems.is_empty() {
        return Ok(declared);
    }
    let named = |problem| format!("tool {}: {problem}", spec.name);
    Err(problems.into_iter().map(named).collect())
}
