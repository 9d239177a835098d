//! Comparison of a work tree with the one in which an operation ran its tests.

use super::ledger::View;
use crate::bindings::tollgate::host::ledger::TestedTree;
use crate::bound_types::LedgerError;

/// A comparison that failed, with the reason.
pub(super) fn unknown(why: &str) -> TestedTree {
    TestedTree {
        workspace: None,
        unchanged: None,
        looked: false,
        unseen: Some(why.to_owned()),
    }
}

impl View<'_> {
    /// Compares the work tree of a workspace with that of an operation that the caller may see.
    pub(super) fn compare(&self, op_id: &str, workspace: &str) -> Result<TestedTree, LedgerError> {
        let session = self.session;
        let pack = self.namespace.pack();
        let tested = session.as_host(|| session.evidence().tested_states(op_id, pack))?;
        if tested.states.is_empty() {
            return Ok(unknown(
                "the host did not inspect a work tree: the operation ran outside an envelope, or without Git access",
            ));
        }
        let seen = self
            .facts
            .seen
            .as_ref()
            .filter(|seen| seen.workspace == workspace);
        let newest = match seen {
            Some(seen) => Some(seen.state.clone()),
            None => session.as_host(|| session.work_trees().newest_known_state(workspace))?,
        };
        let why = || match (&self.facts.unseen, &newest) {
            (Some(why), _) => why.clone(),
            (None, Some(_)) => "this call does not inspect the work tree".to_owned(),
            (None, None) => format!(
                "no work tree of workspace {workspace} was inspected; the workspace may not be registered, or may have \
                 no Git access"
            ),
        };
        Ok(TestedTree {
            unseen: seen.is_none().then(why),
            looked: seen.is_some(),
            unchanged: newest.map(|state| tested.states.contains(&state)),
            workspace: tested.workspace,
        })
    }
}
