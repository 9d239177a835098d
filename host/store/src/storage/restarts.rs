//! Work trees of envelopes whose host is gone, compared after the restart with the state that their last calls left.

use tollgate_core::effect::Effect;
use tollgate_core::hash;

use super::engine::sql;
use super::error::StoreResult;
use super::handles::WorkTrees;
use super::ledger::{OpType, Operation};
use super::work_trees::Sighting;

/// Most envelopes that are compared in one restart.
const MAX_COMPARED: i64 = 50;
/// Pack and tool of the rows.
const HOST_PACK: &str = "core";
const RESTART_TOOL: &str = "restart";

/// State in which the last call of an interrupted envelope left a work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftState {
    /// Envelope.
    pub envelope_id: String,
    /// Connection over which it was opened.
    pub connection: String,
    /// State of the work tree.
    pub seen: Sighting,
}

impl LeftState {
    /// Row about a work tree that is in another state now.
    pub fn moved(&self, op_id: &str, host_id: &str, now: &str, found: &Sighting) -> Operation {
        let event = serde_json::json!([{
            "type": "work_tree.moved",
            "envelope_id": self.envelope_id,
            "workspace": self.seen.workspace,
            "note": format!("workspace {} was changed before the restart", self.seen.workspace),
        }]);
        Operation {
            op_id: op_id.to_owned(),
            envelope_id: Some(self.envelope_id.clone()),
            timestamp: now.to_owned(),
            op_type: OpType::Control,
            success: Some(true),
            pack: HOST_PACK.to_owned(),
            tool: RESTART_TOOL.to_owned(),
            effect: Effect::Read,
            connection: self.connection.clone(),
            host_id: host_id.to_owned(),
            args_hash: hash::sha256_hex(b"{}"),
            repo_before_hash: Some(self.seen.state.clone()),
            repo_after_hash: Some(found.state.clone()),
            events: Some(event.to_string()),
            ..Operation::default()
        }
    }
}

impl WorkTrees<'_> {
    /// Work trees of envelopes that ended with their host and have not been compared yet.
    pub fn left_states(self) -> StoreResult<Vec<LeftState>> {
        let sql = "SELECT id, connection FROM core_envelopes
            WHERE closed_by = 'HOST_GONE' AND restart_moved IS NULL
              AND EXISTS (SELECT 1 FROM core_work_tree_states WHERE envelope_id = core_envelopes.id)
            ORDER BY closed_at DESC, id LIMIT ?1";
        let envelopes: Vec<(String, String)> = self
            .0
            .engine
            .all(sql, sql![MAX_COMPARED], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut left = Vec::new();
        for (envelope_id, connection) in envelopes {
            for workspace in self.seen_workspaces(&envelope_id)? {
                if let Some(seen) = self.newest_sighting(&envelope_id, &workspace)? {
                    left.push(LeftState {
                        envelope_id: envelope_id.clone(),
                        connection: connection.clone(),
                        seen,
                    });
                }
            }
        }
        Ok(left)
    }

    /// Stores the outcome of a comparison. Returns false if another host was faster. Requires a write transaction.
    pub fn note_comparison(self, envelope: &str, is_moved: bool) -> StoreResult<bool> {
        let sql = "UPDATE core_envelopes SET restart_moved = ?2 WHERE id = ?1 AND restart_moved IS NULL";
        let noted = self.0.engine.run(sql, sql![envelope, is_moved])?;
        Ok(noted == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, NOW, envelope};
    use super::*;

    #[test]
    fn only_what_a_gone_host_left_is_compared_and_once() {
        let (_place, database) = fixture::database();
        let session = database.write_session().unwrap();
        session.begin_write().unwrap();
        let seen = |state: &str, looked_boot_ms: i64| Sighting {
            workspace: "one".to_owned(),
            state: state.to_owned(),
            looked_boot_ms,
            ..Sighting::default()
        };
        for id in ["env_gone", "env_unseen"] {
            session.envelopes().open(&envelope(id, None)).unwrap();
        }
        for (state, at) in [("A", 1), ("B", 2)] {
            session
                .work_trees()
                .note_baseline("env_gone", &seen(state, at), "op_1", NOW)
                .unwrap();
        }
        assert_eq!(session.work_trees().left_states().unwrap(), []);
        session
            .envelopes()
            .interrupt_all("h", None, (NOW, 0), "HOST_GONE")
            .unwrap();
        let left = session.work_trees().left_states().unwrap();
        assert_eq!(left.len(), 1);
        assert_eq!(
            (left[0].envelope_id.as_str(), left[0].seen.state.as_str()),
            ("env_gone", "B")
        );
        assert!(session.work_trees().note_comparison("env_gone", true).unwrap());
        assert!(!session.work_trees().note_comparison("env_gone", false).unwrap());
        assert_eq!(session.work_trees().left_states().unwrap(), []);
        let shown = session.envelopes().get("env_gone").unwrap().unwrap();
        assert_eq!(shown.restart_moved, Some(true));
        let row = left[0].moved("op_2", "h", NOW, &seen("C", 3));
        session.ledger().record(&row).unwrap();
        session.commit().unwrap();
    }
}
