//! A task's tree as a flat list, depth first.

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_sdk::ToolError;

use crate::model::Checkpoint;
use crate::path::Path;
use crate::record::{Node, Step};
use crate::scope::Scope;
use crate::store::record::children;

/// A step or node in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Branch {
    /// Path of the step or node.
    pub path: String,
    /// The step's or node's identifier.
    pub id: String,
    /// Title of the step or node.
    pub title: String,
    /// open, blocked, done or forced; for a node, its status.
    pub status: String,
    /// Criteria that must hold before the step counts as done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub success_criteria: Vec<String>,
    /// Commands or checks that prove the step is done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
    /// Checkpoints that are confirmed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confirmed: Vec<Checkpoint>,
}

/// At most `limit` steps and nodes below a task or step, its own nodes last. The flag tells whether there are more.
pub(crate) fn below(
    scope: &Scope<'_>,
    parent: &str,
    above: &Path,
    limit: usize,
) -> Result<(Vec<Branch>, bool), ToolError> {
    let mut branches = Vec::new();
    let most = limit.saturating_add(1);
    let mut all = walk(scope, parent, above, most, &mut branches)?;
    if all && !above.steps.is_empty() {
        nodes(scope, parent, above, most, &mut branches)?;
        all = branches.len() < most;
    }
    let more = !all || branches.len() > limit;
    branches.truncate(limit);
    Ok((branches, more))
}

/// Adds everything below a parent. Returns false if the limit was reached.
fn walk(
    scope: &Scope<'_>,
    parent: &str,
    above: &Path,
    limit: usize,
    branches: &mut Vec<Branch>,
) -> Result<bool, ToolError> {
    let room = limit.saturating_sub(branches.len());
    for child in children::<Step>(scope.db(), &scope.workspace, parent, room)? {
        if branches.len() >= limit {
            return Ok(false);
        }
        let path = above.child(child.ordinal);
        branches.push(branch(&child.record, &path));
        if !walk(scope, &child.record.id, &path, limit, branches)? {
            return Ok(false);
        }
        nodes(scope, &child.record.id, &path, limit, branches)?;
    }
    Ok(branches.len() < limit)
}

/// Adds the nodes of a step.
fn nodes(
    scope: &Scope<'_>,
    step: &str,
    at: &Path,
    limit: usize,
    branches: &mut Vec<Branch>,
) -> Result<(), ToolError> {
    let room = limit.saturating_sub(branches.len());
    for node in children::<Node>(scope.db(), &scope.workspace, step, room)? {
        let path = Path {
            steps: at.steps.clone(),
            node: u32::try_from(node.ordinal).ok(),
        };
        branches.push(Branch {
            path: path.to_string(),
            id: node.record.id,
            title: node.record.title,
            status: node.record.status.to_string(),
            success_criteria: Vec::new(),
            tests: Vec::new(),
            confirmed: Vec::new(),
        });
    }
    Ok(())
}

/// A step as an entry of the list.
pub(crate) fn branch(step: &Step, path: &Path) -> Branch {
    Branch {
        path: path.to_string(),
        id: step.id.clone(),
        title: step.title.clone(),
        status: step.status().to_owned(),
        success_criteria: step.success_criteria.clone(),
        tests: step.tests.clone(),
        confirmed: step.confirmed.keys().copied().collect(),
    }
}
