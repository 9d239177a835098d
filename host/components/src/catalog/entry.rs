//! A tool that exists, with what its calls need.

use std::sync::{Arc, LazyLock};

use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};
use tollgate_core::meter::Meter;

use crate::packs::Pack;
use crate::tools::host_tool::{self, HostTool};
use crate::tools::{DeclaredCharge, Looks, Scope, TaskMode, ToolSpec, View, WorkspaceOf, alternate_schema};

/// The argument that names the envelope a call belongs to.
pub const ENVELOPE_ARGUMENT: &str = "envelope_id";

/// Something that is made when it is first asked for.
type Lazy<T> = LazyLock<T, Box<dyn FnOnce() -> T + Send>>;

/// A tool that exists.
pub struct ToolEntry {
    /// Implementation of the tool.
    pub body: Body,
    /// Definition of the tool, as it is listed.
    pub spec: ToolSpec,
    pub(super) arguments: Lazy<Option<Validator>>,
    /// Counts its calls.
    pub meter: Arc<Meter>,
    /// The gate takes `envelope_id` out of its arguments. Tools that have an argument of that name
    /// themselves keep it.
    pub correlated: bool,
    /// Arguments that its members have from it, if they do not name them themselves.
    pub inherited: Vec<String>,
    /// Declared cost of a call for its envelope, if the operator grants that the declaration is believed.
    pub charge: Option<DeclaredCharge>,
    /// Setting under which the host looks at the work tree before a call.
    pub looks: Option<Looks>,
    /// Arguments that say which part of the pack's tables a call is about.
    pub scope: Option<Scope>,
    /// True if a call goes on after a number that rows of all parts have.
    pub is_feed: bool,
    /// Row that names the workspace of a call which names none.
    pub workspace: Option<WorkspaceOf>,
    /// Clients over HTTP repeat arguments in headers.
    pub has_headers: bool,
    /// Rule by which calls become tasks.
    pub task: TaskMode,
    /// Page of the console that shows its replies.
    pub view: Option<View>,
}

/// Implementation of a tool.
#[derive(Clone)]
pub enum Body {
    /// A component.
    Guest(Arc<Pack>),
    /// The host itself.
    Core(&'static HostTool),
}

impl ToolEntry {
    /// Checks its arguments. Made by the first call, because most tools of most hosts are never called and this takes more
    /// memory than all else that is known of a tool. `None` if the schema is none, with which no pack is loaded.
    pub fn arguments(&self) -> Option<&Validator> {
        self.arguments.as_ref()
    }

    /// Its input schema with every form of arguments that take two, of which lists show one.
    pub fn described_schema(&self) -> Map<String, Value> {
        let listed = &self.spec.input_schema;
        let declared = match &self.body {
            Body::Guest(pack) => pack.manifest.named().find(|spec| spec.name == self.spec.name),
            Body::Core(_) => None,
        };
        declared.map_or_else(
            || listed.clone(),
            |spec| alternate_schema::described(listed, &spec.input_schema),
        )
    }

    /// The name of its pack.
    pub fn pack_name(&self) -> &str {
        match &self.body {
            Body::Guest(pack) => &pack.manifest.name,
            Body::Core(_) => host_tool::PACK,
        }
    }

    /// True for a tool that finds and calls others.
    pub fn is_discovery(&self) -> bool {
        matches!(self.body, Body::Core(tool) if tool.discovers)
    }
}

/// The validator of a tool's or prompt's arguments, once it is needed. The manifest has the schema as the pack wrote it.
pub(super) fn validator(body: Body, spec: &ToolSpec) -> Lazy<Option<Validator>> {
    let name = spec.name.clone();
    match body {
        Body::Guest(pack) => LazyLock::new(Box::new(move || {
            let spec = pack.manifest.named().find(|spec| spec.name == name)?;
            compiled(&spec.input_schema).ok()
        })),
        Body::Core(_) => {
            let schema = spec.input_schema.clone();
            LazyLock::new(Box::new(move || compiled(&schema).ok()))
        }
    }
}

/// A schema that arguments can be checked against.
pub(super) fn compiled(schema: &Map<String, Value>) -> Result<Validator, ValidationError<'static>> {
    jsonschema::validator_for(&alternate_schema::accepted(schema))
}
