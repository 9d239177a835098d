//! Where things are kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Tier, Tool, ToolError};

use crate::model::Workspace;
use crate::scope::Scope;

/// Show where plans and tasks are kept, and how much a workspace holds.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Storage {
    workspace: Workspace,
}

/// Where a workspace's rows are.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Places {
    /// The file, below the host's data directory.
    path: &'static str,
    /// What the names of the pack's tables start with.
    namespace: &'static str,
    /// The tables.
    tables: Vec<&'static str>,
    /// The workspace whose rows are meant.
    workspace: String,
    /// Plans that were ever made.
    plans: i64,
    /// Tasks that were ever made.
    tasks: i64,
    /// The latest event's sequence number.
    events: i64,
    /// The latest operation's sequence number.
    operations: i64,
    /// Changes of the work itself, which evidence is measured against.
    mutations: i64,
}

impl Tool for Storage {
    const NAME: &'static str = "tasks_storage";
    const TITLE: &'static str = "Show where tasks are kept";
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
