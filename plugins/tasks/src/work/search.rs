//! Search of a task's tree for the first piece of work, without loading the tree.

use tollgate_sdk::ToolError;

use super::{Outlook, Piece, Wait, dependencies, plan_waits};
use crate::lease;
use crate::model::Status;
use crate::path::Path;
use crate::record::{Lease, Node, Plan, Step, Task, step_status};
use crate::scope::{Located, Scope, Selector};
use crate::store::Kind;
use crate::store::record::{From, children_with, count_by_status, has_child, of_root};

/// Numbers of siblings that are read one after the other. Usually the first child is the one to work on.
const SIBLING_LIMITS: [usize; 3] = [1, 50, usize::MAX];
/// Most blocked siblings that are reported.
const MAX_BLOCKED: usize = 10;
/// Most leases of a task that are searched for those of the caller.
const MAX_LEASES: usize = 200;

/// The work on a task: its first piece, or everything that it waits for. Steps that the caller holds come first;
/// steps that others hold are passed over.
pub(crate) fn of_task(scope: &Scope<'_>, task: &Task, owner: Option<&str>) -> Result<Outlook, ToolError> {
    let waits = standing(scope, task)?;
    if !waits.is_empty() {
        return Ok(Outlook::waiting(waits));
    }
    of_steps(scope, task, owner)
}

/// The work on one step of a task: the first piece at or below the step, if nothing stops it.
pub(super) fn of_step(
    scope: &Scope<'_>,
    task: &Task,
    step: &Located<Step>,
    owner: Option<&str>,
) -> Result<Option<Piece>, ToolError> {
    if step.record.is_done() || step.record.blocked || !standing(scope, task)?.is_empty() {
        return Ok(None);
    }
    let mut search = Search {
        scope,
        owner: lease::owner(scope, owner),
        waits: Vec::new(),
    };
    if search.is_below_blocked(&step.record)? {
        return Ok(None);
    }
    search.at(step.clone())
}

/// Reasons that stop all steps of a task: its status, its plan and its dependencies.
fn standing(scope: &Scope<'_>, task: &Task) -> Result<Vec<Wait>, ToolError> {
    let mut waits = Vec::new();
    if !matches!(task.meta.status, Status::Todo | Status::Active) {
        waits.push(Wait::standing(&task.meta));
    }
    if let Some(plan) = scope.get::<Plan>(&task.plan)? {
        waits.extend(plan_waits(scope, &plan.meta)?);
    }
    waits.extend(dependencies(scope, &task.meta)?);
    Ok(waits)
}

/// The work on the steps of a task that nothing around it stops.
pub(super) fn of_steps(scope: &Scope<'_>, task: &Task, owner: Option<&str>) -> Result<Outlook, ToolError> {
    let mut search = Search {
        scope,
        owner: lease::owner(scope, owner),
        waits: Vec::new(),
    };
    let piece = match search.held(&task.meta.id)? {
        Some(piece) => Some(piece),
        None => search.below(&task.meta.id, &Path::TOP)?,
    };
    let mut waits = search.waits;
    if piece.is_some() || !waits.is_empty() {
        return Ok(Outlook { piece, waits });
    }
    let counts = count_by_status(scope.db(), &scope.workspace, &task.meta.id, Kind::Step)?;
    if counts.is_empty() {
        waits.push(Wait::Empty(task.meta.clone()));
        return Ok(Outlook::waiting(waits));
    }
    let forced = of_root::<Step>(
        scope.db(),
        &scope.workspace,
        &task.meta.id,
        step_status::FORCED,
        From::Oldest,
        1,
    )?;
    let piece = match forced.into_iter().next() {
        Some(step) => Piece::Confirm(Located {
            path: scope.placed_path(&step)?,
            record: step.record,
        }),
        None => Piece::Complete(task.meta.clone()),
    };
    Ok(Outlook {
        piece: Some(piece),
        waits,
    })
}

struct Search<'a> {
    scope: &'a Scope<'a>,
    /// The caller, whose leases do not stop the search.
    owner: Option<&'a str>,
    waits: Vec<Wait>,
}

impl Search<'_> {
    /// The first piece of a step that the caller holds.
    fn held(&mut self, task: &str) -> Result<Option<Piece>, ToolError> {
        let Some(owner) = self.owner else {
            return Ok(None);
        };
        let leases = of_root::<Lease>(
            self.scope.db(),
            &self.scope.workspace,
            task,
            "",
            From::Oldest,
            MAX_LEASES,
        )?;
        for lease in leases {
            let lease = lease.record;
            if lease.owner != owner || lease::left(self.scope, &lease).is_none() {
                continue;
            }
            let selector = Selector {
                id: Some(&lease.step),
                ..Selector::default()
            };
            let step = self.scope.step(task, &selector)?;
            if step.record.is_done() || step.record.blocked || self.is_below_blocked(&step.record)? {
                continue;
            }
            if let Some(piece) = self.at(step)? {
                return Ok(Some(piece));
            }
        }
        self.waits.clear();
        Ok(None)
    }

    fn is_below_blocked(&self, step: &Step) -> Result<bool, ToolError> {
        let mut parent = step.parent.clone();
        while let Some(id) = parent {
            let Some(above) = self.scope.get::<Step>(&id)? else {
                return Ok(false);
            };
            if above.blocked {
                return Ok(true);
            }
            parent = above.parent;
        }
        Ok(false)
    }

    /// The first piece below a task or step. Blocked steps are passed over with everything below them.
    fn below(&mut self, parent: &str, above: &Path) -> Result<Option<Piece>, ToolError> {
        let (db, workspace) = (self.scope.db(), &self.scope.workspace);
        let mut seen = 0;
        for limit in SIBLING_LIMITS {
            let open = children_with::<Step>(db, workspace, parent, step_status::OPEN, limit)?;
            let count = open.len();
            for child in open.into_iter().skip(seen) {
                let path = above.child(child.ordinal);
                let step = Located {
                    record: child.record,
                    path,
                };
                if let Some(piece) = self.at(step)? {
                    return Ok(Some(piece));
                }
            }
            if count < limit {
                break;
            }
            seen = count;
        }
        for child in children_with::<Step>(db, workspace, parent, step_status::BLOCKED, MAX_BLOCKED)? {
            let path = above.child(child.ordinal);
            self.waits.push(Wait::Blocked(Located {
                record: child.record,
                path,
            }));
        }
        Ok(None)
    }

    /// The first piece of an open step: below it, one of its nodes, or the step itself.
    fn at(&mut self, step: Located<Step>) -> Result<Option<Piece>, ToolError> {
        if let Some(piece) = self.below(&step.record.id, &step.path)? {
            return Ok(Some(piece));
        }
        if let Some(lease) = lease::live(self.scope, &step.record.id)?
            && self.owner != Some(lease.owner.as_str())
        {
            let owner = lease.owner;
            self.waits.push(Wait::Held { step, owner });
            return Ok(None);
        }
        let (db, workspace) = (self.scope.db(), &self.scope.workspace);
        let nodes = children_with::<Node>(db, workspace, &step.record.id, step_status::OPEN, usize::MAX)?;
        let mut parked = None;
        for node in nodes {
            let mut path = step.path.clone();
            path.node = u32::try_from(node.ordinal).ok();
            let node = Located {
                record: node.record,
                path,
            };
            if node.record.status != Status::Parked {
                return Ok(Some(Piece::Node(step, node)));
            }
            parked = parked.or(Some(node));
        }
        if let Some(node) = parked {
            self.waits.push(Wait::Parked(step, node));
            return Ok(None);
        }
        for status in [step_status::OPEN, step_status::BLOCKED] {
            if has_child(db, workspace, Kind::Step, &step.record.id, status)? {
                return Ok(None);
            }
        }
        Ok(Some(Piece::Step(step)))
    }
}
