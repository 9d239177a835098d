//! Search for the current step without loading the tree.

use tollgate_sdk::ToolError;

use crate::path::Path;
use crate::record::{Node, Step, step_status};
use crate::scope::{Located, Scope};
use crate::store::Kind;
use crate::store::record::{children_with, has_child};

/// Most siblings that are examined on one level.
const SIBLINGS: usize = 50;

/// The first open step in tree order with nothing open below it, otherwise the first blocked step.
pub(crate) fn step(scope: &Scope<'_>, task: &str) -> Result<Option<Located<Step>>, ToolError> {
    let top = Path {
        steps: Vec::new(),
        node: None,
    };
    match ready(scope, task, &top)? {
        Some(step) => Ok(Some(step)),
        None => first(scope, task, &top, step_status::BLOCKED),
    }
}

fn ready(scope: &Scope<'_>, parent: &str, above: &Path) -> Result<Option<Located<Step>>, ToolError> {
    let mut seen = 0;
    // Usually the first child is the current one; the others are read only if not.
    for limit in [1, SIBLINGS] {
        let open = children_with::<Step>(scope.db(), &scope.workspace, parent, step_status::OPEN, limit)?;
        for child in open.into_iter().skip(seen) {
            seen += 1;
            let mut path = above.clone();
            path.steps.push(u32::try_from(child.ordinal).unwrap_or(u32::MAX));
            if let Some(step) = ready(scope, &child.record.id, &path)? {
                return Ok(Some(step));
            }
            let mut waits = false;
            for status in [step_status::OPEN, step_status::BLOCKED] {
                waits |= has_child(scope.db(), &scope.workspace, Kind::Step, &child.record.id, status)?;
            }
            if !waits {
                return Ok(Some(Located {
                    record: child.record,
                    path,
                }));
            }
        }
        if seen < limit {
            break;
        }
    }
    Ok(None)
}

/// The first step with a status, or the open step below it.
fn first(
    scope: &Scope<'_>,
    parent: &str,
    above: &Path,
    status: &str,
) -> Result<Option<Located<Step>>, ToolError> {
    for status in [status, step_status::OPEN] {
        let unfinished = children_with::<Step>(scope.db(), &scope.workspace, parent, status, 1)?;
        if let Some(child) = unfinished.into_iter().next() {
            let mut path = above.clone();
            path.steps.push(u32::try_from(child.ordinal).unwrap_or(u32::MAX));
            return Ok(Some(match first(scope, &child.record.id, &path, status)? {
                Some(below) => below,
                None => Located {
                    record: child.record,
                    path,
                },
            }));
        }
    }
    Ok(None)
}

/// The first node of a step that is not finished.
pub(crate) fn node(scope: &Scope<'_>, step: &Located<Step>) -> Result<Option<Located<Node>>, ToolError> {
    let open = children_with::<Node>(
        scope.db(),
        &scope.workspace,
        &step.record.id,
        step_status::OPEN,
        1,
    )?;
    Ok(open.into_iter().next().map(|node| {
        let mut path = step.path.clone();
        path.node = u32::try_from(node.ordinal).ok();
        Located {
            record: node.record,
            path,
        }
    }))
}
