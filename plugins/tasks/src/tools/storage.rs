//! Storage of plans and tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Tier, Tool, ToolError};

use crate::model::Workspace;
use crate::scope::Scope;

/// Show where plans and tasks are stored, and the counters of a workspace.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Storage {
    workspace: Workspace,
}

/// Storage of a workspace.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Places {
    /// Database file in the host's data directory.
    path: &'static str,
    /// Prefix of the pack's table names.
    namespace: &'static str,
    /// Names of the tables.
    tables: Vec<&'static str>,
    /// Name of the workspace.
    workspace: String,
    /// Number of plans ever created.
    plans: i64,
    /// Number of tasks ever created.
    tasks: i64,
    /// Sequence number of the latest event.
    events: i64,
    /// Sequence number of the latest operation.
    operations: i64,
    /// Number of mutations, by which the age of evidence is measured.
    mutations: i64,
}

impl Tool for Storage {
    const NAME: &'static str = "tasks_storage";
    const TITLE: &'static str = "Show the storage";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Full;
    type Output = Places;

    fn run(self, cx: &Cx<'_>) -> Result<Places, ToolError> {
        let scope = Scope::known(cx, &self.workspace)?;
        Ok(Places {
            path: "tollgate.db",
            namespace: "tasks_",
            tables: vec![
                "tasks_workspaces",
                "tasks_roots",
                "tasks_records",
                "tasks_bodies",
                "tasks_operations",
                "tasks_operation_roots",
                "tasks_changes",
                "tasks_events",
            ],
            workspace: scope.workspace.as_str().to_owned(),
            plans: scope.counters.plans,
            tasks: scope.counters.tasks,
            events: scope.counters.events,
            operations: scope.counters.operations,
            mutations: scope.counters.mutations,
        })
    }
}
