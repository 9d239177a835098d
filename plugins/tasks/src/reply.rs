//! What writes reply, and the parts that other replies share.

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_sdk::NextCall;

use crate::model::RootKind;
use crate::path::Path;
use crate::store::event::Event;
use crate::write::Receipt;

/// Something that is worth knowing and refuses nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Warning {
    /// Stable UPPER_SNAKE.
    pub code: &'static str,
    /// One sentence.
    pub message: String,
}

impl Warning {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Warning {
        Warning {
            code,
            message: message.into(),
        }
    }

    /// Tells that secrets were taken out, if any were.
    pub(crate) fn redacted(found: usize) -> Option<Warning> {
        (found > 0).then(|| {
            Warning::new(
                "SECRETS_REDACTED",
                format!("{found} of what looks like secrets was replaced and not stored"),
            )
        })
    }
}

/// A step by identifier and present path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct StepRef {
    /// Its identifier, which never changes.
    pub step_id: String,
    /// Where it is now.
    pub path: String,
}

impl StepRef {
    pub(crate) fn new(id: &str, path: &Path) -> StepRef {
        StepRef {
            step_id: id.to_owned(),
            path: path.to_string(),
        }
    }
}

/// A node by identifier and present path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct NodeRef {
    /// Its identifier, which never changes.
    pub task_node_id: String,
    /// Where it is now.
    pub path: String,
}

impl NodeRef {
    pub(crate) fn new(id: &str, path: &Path) -> NodeRef {
        NodeRef {
            task_node_id: id.to_owned(),
            path: path.to_string(),
        }
    }
}

/// What a write did.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Written {
    /// The plan it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The task it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The revision now, for `expected_revision` of the next write.
    pub revision: i64,
    /// The step it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepRef>,
    /// The node it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeRef>,
    /// Steps that were made, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRef>,
    /// Tasks that were made, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// Identifiers of what else was made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// Artifacts that hold what is too large to be kept here, for `artifact_get`, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    /// What happened, in order.
    pub events: Vec<Event>,
    /// Worth knowing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// What to do next, ready to run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next_calls: Vec<NextCall>,
}

impl Written {
    /// The reply of a write about a plan or task.
    pub(crate) fn about(id: &str, receipt: Receipt) -> Written {
        let mut written = Written {
            revision: receipt.revisions.get(id).copied().unwrap_or_default(),
            events: receipt.events,
            warnings: receipt.warnings,
            ..Written::default()
        };
        match RootKind::of(id) {
            Some(RootKind::Plan) => written.plan = Some(id.to_owned()),
            Some(RootKind::Task) => written.task = Some(id.to_owned()),
            None => {}
        }
        written
    }

    pub(crate) fn step(mut self, id: &str, path: &Path) -> Written {
        self.step = Some(StepRef::new(id, path));
        self
    }
}
