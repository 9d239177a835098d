//! Dependencies between plans and between tasks: open ones and cycles.

use std::collections::BTreeSet;

use serde_json::json;
use tollgate_sdk::{NextCall, ToolError};

use crate::error::{NOT_FOUND, Reason, Refusals};
use crate::model::{RootKind, Status};
use crate::record::{Meta, Plan, Root, Task};
use crate::scope::Scope;
use crate::store;
use crate::write::Write;

/// A dependency and its status, `None` if it was deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub id: String,
    pub status: Option<Status>,
}

impl Dependency {
    pub(crate) fn is_open(&self) -> bool {
        !self.status.is_some_and(Status::is_finished)
    }
}

/// The dependencies of a plan or task.
pub(crate) fn of(scope: &Scope<'_>, meta: &Meta) -> Result<Vec<Dependency>, ToolError> {
    meta.depends_on
        .iter()
        .map(|id| {
            let head = store::root::head(scope.db(), &scope.workspace, id)?;
            Ok(Dependency {
                id: id.clone(),
                status: head.and_then(|head| head.status),
            })
        })
        .collect()
}

/// Requires every dependency to be finished.
pub(crate) fn want_finished(
    scope: &Scope<'_>,
    meta: &Meta,
    refusals: &mut Refusals,
) -> Result<(), ToolError> {
    for dependency in of(scope, meta)?.into_iter().filter(Dependency::is_open) {
        refusals.dependency_open(scope, meta, &dependency.id, dependency.status);
    }
    Ok(())
}

impl Refusals {
    /// Adds an open dependency, with the call that shows it, or what depends on it if it is deleted.
    pub(crate) fn dependency_open(
        &mut self,
        scope: &Scope<'_>,
        meta: &Meta,
        dependency: &str,
        status: Option<Status>,
    ) {
        let next_call = match status {
            Some(_) => NextCall::new(
                "tasks_radar",
                json!({"workspace": scope.workspace, "task": dependency}),
            ),
            None => crate::work::show_root(scope, &meta.id),
        };
        let reason = Reason::DependencyOpen {
            id: meta.id.clone(),
            dependency: dependency.to_owned(),
            status,
        };
        self.add_with(reason, next_call);
    }
}

/// The stored plans or tasks that depend on one.
pub(crate) fn dependents(scope: &Scope<'_>, id: &str) -> Result<Vec<Root>, ToolError> {
    let (db, workspace) = (scope.db(), &scope.workspace);
    let mut roots: Vec<Root> = match RootKind::of(id) {
        Some(RootKind::Plan) => store::record::mentioning::<Plan>(db, workspace, id)?
            .into_iter()
            .map(Root::Plan)
            .collect(),
        Some(RootKind::Task) => store::record::mentioning::<Task>(db, workspace, id)?
            .into_iter()
            .map(Root::Task)
            .collect(),
        None => Vec::new(),
    };
    roots.retain(|root| root.meta().depends_on.iter().any(|other| other == id));
    Ok(roots)
}

/// The call that removes one dependency, together with all deleted ones.
pub(crate) fn without(scope: &Scope<'_>, meta: &Meta, dependency: &str) -> NextCall {
    let is_there = |id: &&String| {
        let head = store::root::head(scope.db(), &scope.workspace, id);
        head.is_ok_and(|head| head.is_some_and(|head| head.status.is_some()))
    };
    let rest: Vec<&String> = meta
        .depends_on
        .iter()
        .filter(|id| *id != dependency)
        .filter(is_there)
        .collect();
    NextCall::new(
        "tasks_edit",
        json!({"workspace": scope.workspace, "task": meta.id, "depends_on": rest}),
    )
}

/// Checks the new dependencies of a plan or task: they exist and are of the same kind. Cycles and open
/// dependencies are checked with the whole write.
pub(crate) fn check(
    write: &Write<'_>,
    old: &[String],
    root: &Root,
    refusals: &mut Refusals,
) -> Result<(), ToolError> {
    for (place, id) in root.meta().depends_on.iter().enumerate() {
        if old.contains(id) {
            continue;
        }
        match write.root_after(id)? {
            None => refusals.add(Reason::unknown(format!("dependency depends_on[{place}]"), id)),
            Some(other) if other.kind() != root.kind() => {
                let fault = format!("is {id}, but a {} can depend only on its own kind", root.kind());
                refusals.add(Reason::input(format!("depends_on[{place}]"), fault));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The dependency cycle through a plan or task, if there is one.
pub(crate) fn circle(scope: &Scope<'_>, meta: &Meta) -> Result<Option<Vec<String>>, ToolError> {
    find_circle(&meta.id, &meta.depends_on, &mut |id| match scope.root(id) {
        Ok(root) => Ok(root.meta().depends_on.clone()),
        // A deleted plan or task depends on nothing.
        Err(err) if err.code == NOT_FOUND => Ok(Vec::new()),
        Err(err) => Err(err),
    })
}

/// The first cycle through `start`, depth first.
pub(crate) fn find_circle<E>(
    start: &str,
    first: &[String],
    dependencies: &mut impl FnMut(&str) -> Result<Vec<String>, E>,
) -> Result<Option<Vec<String>>, E> {
    let mut seen = BTreeSet::new();
    // Each entry is the path to an id that is not examined yet.
    let mut open: Vec<Vec<String>> = first
        .iter()
        .rev()
        .map(|id| vec![start.to_owned(), id.clone()])
        .collect();
    while let Some(way) = open.pop() {
        let Some(last) = way.last() else {
            continue;
        };
        if last == start {
            return Ok(Some(way));
        }
        if !seen.insert(last.clone()) {
            continue;
        }
        for next in dependencies(last)?.into_iter().rev() {
            let mut longer = way.clone();
            longer.push(next);
            open.push(longer);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle_in(edges: &[(&str, &str)], start: &str) -> Option<String> {
        let of = |id: &str| -> Vec<String> {
            edges
                .iter()
                .filter(|(from, _)| *from == id)
                .map(|(_, to)| (*to).to_owned())
                .collect()
        };
        let found = find_circle(start, &of(start), &mut |id| Ok::<_, ()>(of(id)));
        found.unwrap().map(|way| way.join(">"))
    }

    #[test]
    fn circles_are_found_with_their_way() {
        assert_eq!(circle_in(&[("a", "a")], "a"), Some("a>a".to_owned()));
        assert_eq!(
            circle_in(&[("a", "b"), ("b", "c"), ("c", "a")], "a"),
            Some("a>b>c>a".to_owned())
        );
        assert_eq!(
            circle_in(&[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")], "a"),
            None
        );
        assert_eq!(
            circle_in(&[("a", "b"), ("b", "c"), ("c", "b")], "a"),
            None,
            "it goes past a"
        );
    }
}
