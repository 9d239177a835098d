//! The host's own tools, in the pack `core`: envelopes and the ledger. Their calls take the same path as all others
//! and cost nothing.

mod approvals;
mod artifacts;
mod discovery;
mod envelope_view;
mod envelopes;
mod operations;
mod stats;
mod workspaces;

use std::cell::RefCell;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tollgate_components::catalog::Catalog;
use tollgate_components::tools::host_tool::{HostTool, HostTools};
use tollgate_components::tools::{Tier, ToolSpec};
use tollgate_core::effect::Effect;
use tollgate_core::identity::Identity;
use tollgate_sandbox::workspaces::Workspaces;
use tollgate_sdk::{Reply, ToolError};
use tollgate_store::artifacts::ArtifactStore;
use tollgate_store::liveness::Host;
use tollgate_store::storage::{Session, Sighting, StoreError, StoreFailure};

use crate::approvers::{Answerer, ApprovalSettings};
use crate::envelope_settings::EnvelopeSettings;
use crate::failure::{storage_failed, unreachable};
use crate::seen::LookedAt;
use crate::told::Told;

pub use approvals::RESOLVE;
pub(crate) use approvals::Resolve;
pub(crate) use discovery::DESCRIBE;
pub use discovery::TOOL_CALL;
pub use operations::{ReportView, report};

pub use tollgate_components::tools::host_tool::PACK;

/// Context of a core tool's call.
pub struct CoreCx<'a> {
    /// Session with the host's rights, inside the call's transaction or snapshot.
    pub session: &'a Session,
    /// Current time, RFC 3339.
    pub now: String,
    /// Current time in milliseconds since 1970 UTC.
    pub now_ms: i64,
    /// See [`Clock::boot_ms`](tollgate_core::clock::Clock::boot_ms).
    pub boot_ms: i64,
    /// Creates identifiers.
    pub new_id: &'a dyn Fn(&str) -> String,
    /// Operator's settings of approvals.
    pub approvals: &'a ApprovalSettings,
    /// True for a caller over stdio or at the command line.
    pub is_local: bool,
    /// Operator's settings of envelopes.
    pub settings: &'a EnvelopeSettings,
    /// Id of this host process.
    pub host_id: &'a str,
    /// This host process.
    pub(crate) host: &'a Host,
    /// Statements about envelopes for the call's row.
    pub(crate) told: RefCell<Told>,
    /// Caller as the ledger names it.
    pub actor: Option<&'a str>,
    /// Client as the ledger names it.
    pub client: Option<&'a str>,
    /// Identity of the caller. An identity sees only its own rows; a caller without one sees all.
    pub identity: Option<&'a Identity>,
    /// Connection of the caller.
    pub connection: &'a str,
    /// Artifact store, if content is stored.
    pub artifacts: Option<&'a ArtifactStore>,
    /// Registered directories.
    pub workspaces: &'a Workspaces,
    /// Catalog of tools.
    pub catalog: &'a Catalog,
    /// Id of the operation.
    pub op_id: &'a str,
    /// Work tree that the call names, if it was scanned.
    pub seen: Option<&'a Sighting>,
    /// Work trees of the envelope that the call closes.
    pub(crate) closing: &'a [LookedAt],
}

impl CoreCx<'_> {
    /// Records in the call's row that it is about an envelope, and what happened to the envelope.
    fn tell(&self, envelope: &str, event: Value) {
        let mut told = self.told.borrow_mut();
        told.envelope = Some(envelope.to_owned());
        told.events.push(event);
    }

    /// Identity whose operations and envelopes the caller may read. `None` means all.
    fn looks_at(&self) -> Option<&Identity> {
        self.identity.filter(|identity| !identity.rights().sees_all)
    }

    /// The caller in its role as approver.
    fn answerer(&self) -> Answerer<'_> {
        Answerer {
            identity: self.identity,
            actor: self.actor,
            connection: self.connection,
            is_local: self.is_local,
        }
    }

    /// Commit that a workspace is at, if it is a registered Git work tree.
    fn git_head(&self, workspace: Option<&str>) -> Option<String> {
        self.workspaces.get(workspace?)?.git_head()
    }
}

/// A core tool: like a pack's tool, but with the host's own session.
trait Tool: DeserializeOwned + JsonSchema {
    const NAME: &'static str;
    const TITLE: &'static str;
    const EFFECT: Effect;
    const TIER: Tier;
    /// True if it finds or calls other tools.
    const DISCOVERS: bool = false;
    /// True if it lists values for arguments of packs.
    const LISTS_VALUES: bool = false;
    /// Change to the envelope of its connection.
    const ENVELOPE: Option<EnvelopeChange> = None;
    type Output: Serialize + JsonSchema;
    fn run(self, cx: &CoreCx<'_>) -> Result<Self::Output, CoreError>;
    fn text(_output: &Self::Output) -> Option<String> {
        None
    }
}

/// Error of a core tool.
#[derive(Debug)]
pub(crate) enum CoreError {
    /// Error of the tool itself.
    Tool(ToolError),
    /// A statement failed. The end of the call's time may have cut it short.
    Statement(ToolError),
    /// The host or its storage failed.
    Host(ToolError),
}

impl From<ToolError> for CoreError {
    fn from(error: ToolError) -> CoreError {
        CoreError::Tool(error)
    }
}

/// Change of the envelope to which a connection's calls belong, with the pointer to its id in the reply.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EnvelopeChange {
    /// The connection's calls belong to it from now on.
    Opened(&'static str),
    /// The connection's calls no longer belong to it.
    Closed(&'static str),
}

/// Parses the arguments, runs the tool, and returns the reply.
type Call = fn(&CoreCx<'_>, &str) -> Result<Reply, CoreError>;

macro_rules! tools {
    ($($tool:ty),+ $(,)?) => {
        /// All core tools.
        pub const TOOLS: HostTools = HostTools(&[$(HostTool {
            name: <$tool>::NAME,
            spec: spec::<$tool>,
            discovers: <$tool>::DISCOVERS,
            lists_values: <$tool>::LISTS_VALUES,
        }),+]);

        const CALLS: &[(&str, Call)] = &[$((<$tool>::NAME, call::<$tool>)),+];

        const ENVELOPES: &[(&str, Option<EnvelopeChange>)] = &[$((<$tool>::NAME, <$tool>::ENVELOPE)),+];
    };
}

tools!(
    envelopes::Open,
    envelopes::Close,
    envelopes::Get,
    envelopes::List,
    operations::Query,
    operations::Report,
    approvals::List,
    Resolve,
    stats::Stats,
    artifacts::Get,
    workspaces::List,
    discovery::Search,
    discovery::Describe,
    discovery::ToolCall,
);

/// Change that a call of a tool makes to its connection's envelope.
pub(crate) fn envelope_change(name: &str) -> Option<EnvelopeChange> {
    let (_, change) = ENVELOPES.iter().find(|(known, _)| *known == name)?;
    *change
}

/// Runs the tool with a name from [`TOOLS`].
pub(crate) fn run(name: &str, cx: &CoreCx<'_>, arguments: &str) -> Result<Reply, CoreError> {
    let Some((_, call)) = CALLS.iter().find(|(known, _)| *known == name) else {
        let error = ToolError::new("HOST_FAILED", format!("the host has no tool {name}"));
        return Err(CoreError::Host(error));
    };
    call(cx, arguments)
}

fn spec<T: Tool>() -> ToolSpec {
    let mut input = object(tollgate_sdk::input_schema::<T>());
    let description = match input.remove("description") {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    ToolSpec {
        name: T::NAME.to_owned(),
        title: T::TITLE.to_owned(),
        description,
        effect: T::EFFECT,
        tier: T::TIER,
        destructive: false,
        idempotent: T::EFFECT == Effect::Read,
        open_world: false,
        members: None,
        input_schema: input,
        output_schema: Arc::new(object(tollgate_sdk::output_schema::<T::Output>())),
        aliases: Vec::new(),
    }
}

fn object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

fn call<T: Tool>(cx: &CoreCx<'_>, arguments: &str) -> Result<Reply, CoreError> {
    let tool: T = serde_json::from_str(arguments).map_err(|err| {
        ToolError::new(
            "INVALID_ARGUMENTS",
            format!(
                "the arguments of {} do not match the tool's input schema: {err}",
                T::NAME
            ),
        )
    })?;
    let output = tool.run(cx)?;
    let text = T::text(&output);
    let structured = serde_json::to_string(&output).map_err(|err| {
        let message = format!("the reply could not be written: {err}");
        CoreError::Host(ToolError::new("HOST_FAILED", message))
    })?;
    Ok(Reply {
        structured,
        text,
        content: Vec::new(),
    })
}

/// Failure of the host's own storage, as the caller sees it.
fn storage(err: StoreError) -> CoreError {
    match err.failure() {
        StoreFailure::Lost => return CoreError::Host(unreachable().error),
        // Other transactions are in the way, and the call will usually run again.
        StoreFailure::Busy | StoreFailure::Conflict => {
            tracing::debug!(%err, "a core tool's statement timed out while waiting");
            return CoreError::Host(storage_failed(&err).error);
        }
        _ => tracing::error!(%err, "a core tool's statement failed"),
    }
    let error = ToolError::new("STORAGE_FAILED", "storage failed");
    CoreError::Statement(error.remediation("Search the host's log for the operation's id."))
}

#[cfg(test)]
mod tests {
    use tollgate_components::tools::lint;

    use super::*;

    #[test]
    fn every_core_tool_explains_itself() {
        let faults: Vec<String> = TOOLS
            .0
            .iter()
            .map(|tool| (tool.spec)())
            .flat_map(|spec| {
                let name = spec.name.clone();
                // Results may be larger than those of packs.
                let is_vague = |fault: &String| fault.contains("descri");
                lint::all(&spec)
                    .into_iter()
                    .filter(is_vague)
                    .map(move |fault| format!("{name}: {fault}"))
            })
            .collect();
        assert_eq!(faults, [""; 0], "{}", faults.join("\n"));
    }
}
