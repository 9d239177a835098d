//! Replies of tools that read, under addresses: what a tool's schema declares beside its arguments.
//!
//! `x-resources` at the root of an input schema names the addresses at which the tool's reply can be read,
//! `x-values` beside an argument names the tool that lists what can stand there, and `x-inherited` beside an argument
//! of a tool that runs members says that members have it, too. `x-charge` at the root says what a call
//! costs its envelope, `x-looks` when the host looks at the work tree before it, `x-workspace` which workspace it is about,
//! `x-scope` which part of the pack's tables it is about, `x-feed` that it reads rows of all parts after a number, and `x-views` that
//! the reply makes a page of the console. Lists show none of them.

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
/// Key of a property that members of a batch inherit.
const INHERITED: &str = "x-inherited";
/// Key of a schema that says what a call costs its envelope.
const CHARGE: &str = "x-charge";

/// Declarations in one tool's schema.
#[derive(Debug, Clone, Default)]
pub(crate) struct Declared {
    pub(crate) resources: Vec<Resource>,
    pub(crate) values: BTreeMap<String, Values>,
    /// Arguments that members have from the call around them.
    pub(crate) inherited: Vec<String>,
    /// Declared cost of a call.
    pub(crate) charge: Option<DeclaredCharge>,
    /// Setting under which the host looks at the work tree before a call.
    pub(crate) looks: Option<Looks>,
    /// Arguments that say which part of the pack's tables a call is about.
    pub(crate) scope: Option<Scope>,
    /// True if a call goes on after a number that rows of all parts have.
    pub(crate) is_feed: bool,
    /// Row that names the workspace of a call.
    pub(crate) workspace: Option<WorkspaceOf>,
    /// Page of the console.
    pub(crate) view: Option<View>,
}

/// Declared cost of a call that does not only read. Without a declaration: a mutation.
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
                "{CHARGE}: it is \"test-run\" in a tool that does not only read, or \"nothing\" in a `run` tool"
            )),
        }
    }
}

/// Takes what a tool declares out of its schema. The error names everything that is wrong with it.
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
                    "{INHERITED} of {name}: it is `true`, in a tool that names its members"
                )),
            }
        }
    }
    match addresses.map(serde_json::from_value::<Vec<Declaration>>) {
        None => {}
        Some(Err(err)) => problems.push(format!("{RESOURCES}: {err}")),
        Some(Ok(_)) if spec.effect != Effect::Read => {
            problems.push(format!("{RESOURCES}: only tools that read have addresses"));
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
