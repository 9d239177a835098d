//! Entry of a tool in the catalog, with everything that its calls need.

use std::sync::{Arc, LazyLock};

use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};
use tollgate_core::meter::Meter;

use crate::packs::Pack;
use crate::tools::host_tool::{self, HostTool};
use crate::tools::{DeclaredCharge, Looks, Scope, TaskMode, ToolSpec, View, WorkspaceOf, alternate_schema};

/// The argument that names the envelope a call belongs to.
pub const ENVELOPE_ARGUMENT: &str = "envelope_id";

/// A lazily computed value.
type Lazy<T> = LazyLock<T, Box<dyn FnOnce() -> T + Send>>;

/// Entry of a tool in the catalog.
pub struct ToolEntry {
    /// Implementation of the tool.
    pub body: Body,
    /// Definition of the tool, as it is listed.
    pub spec: ToolSpec,
    pub(super) arguments: Lazy<Option<Validator>>,
    /// Counts its calls.
    pub meter: Arc<Meter>,
    /// True if the gate takes `envelope_id` out of the arguments. Tools that declare an argument of that name
    /// themselves keep it.
    pub correlated: bool,
    /// Arguments that its members inherit unless they set them.
    pub inherited: Vec<String>,
    /// Declared cost of a call for its envelope, if the operator allows the declaration.
    pub charge: Option<DeclaredCharge>,
    /// Setting under which the host scans the work tree before a call.
    pub looks: Option<Looks>,
    /// Arguments that identify the part of the pack's tables a call is about.
    pub scope: Option<Scope>,
    /// True if a call continues after a number that rows of all parts have.
    pub is_feed: bool,
    /// Row that names the workspace of a call that does not name one.
    pub workspace: Option<WorkspaceOf>,
    /// True if clients over HTTP repeat arguments in headers.
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
    /// Validator of the arguments. Compiled on the first call, because most tools are never called and a validator
    /// takes more memory than everything else about a tool. `None` if the schema is invalid, which loading rules out.
    pub fn arguments(&self) -> Option<&Validator> {
        self.arguments.as_ref()
    }

    /// Input schema with every form of arguments that accept two, of which lists show one.
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

    /// True for a tool that finds or calls other tools.
    pub fn is_discovery(&self) -> bool {
        matches!(self.body, Body::Core(tool) if tool.discovers)
    }
}

/// Validator of a tool's or prompt's arguments, compiled on demand. The manifest has the schema as the pack wrote it.
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

/// Compiles a schema into a validator.
pub(super) fn compiled(schema: &Map<String, Value>) -> Result<Validator, ValidationError<'static>> {
    jsonschema::validator_for(&alternate_schema::accepted(schema))
}
