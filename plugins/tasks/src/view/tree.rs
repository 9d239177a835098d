//! A task's tree as a flat list, depth first.

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_sdk::{DbError, ToolError};

use crate::model::Checkpoint;
use crate::path::Path;
use crate::record::{Node, Record, Step};
use crate::scope::Scope;
use crate::store::record::{Placed, children};

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
    let mut walk = Walk {
        scope,
        limit: limit.saturating_add(1),
        branches: Vec::new(),
    };
    let mut all = walk.steps(parent, above)?;
    if all && !above.steps.is_empty() {
        walk.nodes(parent, above)?;
        all = walk.room() > 0;
    }
    let mut branches = walk.branches;
    let more = !all || branches.len() > limit;
    branches.truncate(limit);
    Ok((branches, more))
}

/// Steps and nodes found so far, up to a limit.
struct Walk<'a> {
    scope: &'a Scope<'a>,
    limit: usize,
    branches: Vec<Branch>,
}

impl Walk<'_> {
    /// Number of entries below the limit.
    fn room(&self) -> usize {
        self.limit.saturating_sub(self.branches.len())
    }

    /// The first children of a parent, as many as there is room for.
    fn children<T: Record>(&self, parent: &str) -> Result<Vec<Placed<T>>, DbError> {
        children(self.scope.db(), &self.scope.workspace, parent, self.room())
    }

    /// Adds everything below a parent. Returns false if the limit was reached.
    fn steps(&mut self, parent: &str, above: &Path) -> Result<bool, ToolError> {
        for child in self.children::<Step>(parent)? {
            if self.room() == 0 {
                return Ok(false);
            }
            let path = above.child(child.ordinal);
            self.branches.push(branch(&child.record, &path));
            if !self.steps(&child.record.id, &path)? {
                return Ok(false);
            }
            self.nodes(&child.record.id, &path)?;
        }
        Ok(self.room() > 0)
    }

    /// Adds the nodes of a step.
    fn nodes(&mut self, step: &str, at: &Path) -> Result<(), ToolError> {
        for node in self.children::<Node>(step)? {
            let path = Path {
                steps: at.steps.clone(),
                node: u32::try_from(node.ordinal).ok(),
            };
            self.branches.push(Branch {
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
