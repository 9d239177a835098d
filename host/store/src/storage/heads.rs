//! Commits of workspaces at the end of their envelopes, recorded whoever ends them.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use super::engine::sql;
use super::error::StoreResult;
use super::handles::Envelopes;

/// Looks up a workspace's commit from a few small files.
pub type HeadOf = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Lookup of commits, shared by all sessions of a database. Without one no commit is known.
#[derive(Clone, Default)]
pub(super) struct Heads(Arc<RwLock<Option<HeadOf>>>);

impl Heads {
    pub(super) fn know(&self, head_of: HeadOf) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(head_of);
    }

    fn of(&self, workspace: &str) -> Option<String> {
        let head_of = self.0.read().unwrap_or_else(PoisonError::into_inner).clone()?;
        head_of(workspace)
    }
}

impl fmt::Debug for Heads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Heads")
    }
}

impl Envelopes<'_> {
    /// Stores the commit of an envelope's workspace at the envelope's end.
    pub(super) fn note_closing_head(self, id: &str) -> StoreResult<Option<String>> {
        let workspace = self.get(id)?.and_then(|envelope| envelope.workspace);
        let Some(head) = workspace.and_then(|workspace| self.0.heads.of(&workspace)) else {
            return Ok(None);
        };
        self.0.engine.run(
            "UPDATE core_envelopes SET closed_git_head = ?2 WHERE id = ?1",
            sql![id, head],
        )?;
        Ok(Some(head))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, NOW, envelope};
    use super::*;

    #[test]
    fn an_envelope_that_the_host_ends_has_the_commit_of_its_end() {
        let (_place, database) = fixture::database();
        database.know_heads(Arc::new(|workspace| {
            (workspace == "one").then(|| "c0ffee".to_owned())
        }));
        let session = database.write_session().unwrap();
        session.begin_write().unwrap();
        for (id, workspace) in [("env_1", Some("one")), ("env_2", Some("gone")), ("env_3", None)] {
            let mut opened = envelope(id, None);
            opened.workspace = workspace.map(str::to_owned);
            session.envelopes().open(&opened).unwrap();
        }
        let ended = session
            .envelopes()
            .interrupt_all("h", None, (NOW, 0), "HOST_GONE")
            .unwrap();
        assert_eq!(ended, 3);
        let heads = ["env_1", "env_2", "env_3"]
            .map(|id| session.envelopes().get(id).unwrap().unwrap().closed_git_head);
        assert_eq!(heads, [Some("c0ffee".to_owned()), None, None]);
    }
}
