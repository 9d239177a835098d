//! Instances of packs that are made before a call needs them, by threads that have answered one.
//!
//! A reader or the writer whose caller has its reply clears away what the call used, and makes the instance that the next
//! call of the same pack will mostly want. Making one and clearing it away takes as long as what a small tool does in it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use wasmtime::Store;

use super::guest::{Runtime, instantiate};
use crate::artifacts::CallArtifacts;
use crate::deadline::{Cancel, Deadline};
use crate::packs::{Effect, Pack};
use crate::policies::{Spare, Used};
use crate::progress::Progress;
use crate::sandbox::CallState;
use crate::sandbox::bindings::ToolPack;
use crate::sandbox::state::{Facts, Setup, Transactions};
use crate::storage::{self, Session};

impl Runtime {
    /// Clears away what calls used of a pack, and makes what the next will use, now that nobody waits.
    pub(super) fn prepare_pack(&self, pack: &Pack) {
        let prepare = AssertUnwindSafe(|| self.stock(pack));
        if std::panic::catch_unwind(prepare).is_err() {
            pack.spares().give_up();
        }
    }

    fn stock(&self, pack: &Pack) {
        let (used, missing) = pack.spares().work();
        let mut stand_ins: Vec<Box<Session>> = used.into_iter().map(Used::cleared).collect();
        for _ in 0..missing {
            let Some(room) = self.equipment.sandbox.room() else {
                return;
            };
            let stand_in = stand_ins
                .pop()
                .map_or_else(|| storage::nowhere().map(Box::new), Ok);
            let made = stand_in.map_err(wasmtime::Error::from);
            match made.and_then(|stand_in| self.make(pack, stand_in)) {
                Ok((store, instance)) => {
                    let used = Used::new(store, room);
                    pack.spares().add(Spare { instance, used });
                }
                Err(err) => {
                    tracing::debug!(pack = pack.manifest.name, %err, "no instance is made in advance");
                    pack.spares().give_up();
                }
            }
        }
    }

    /// An instance that is no call's yet, under a deadline and with an empty database.
    fn make(&self, pack: &Pack, stand_in: Box<Session>) -> wasmtime::Result<(Store<CallState>, ToolPack)> {
        let sandbox = &self.equipment.sandbox;
        let deadline = Deadline::after(pack.limits.read, Cancel::default());
        stand_in.enter(&pack.namespace, &deadline);
        let setup = Setup {
            namespace: pack.namespace.clone(),
            deadline,
            clock: Arc::clone(&self.equipment.clock),
            facts: Facts::default(),
            transactions: Transactions::WholeCall,
            effect: Effect::Read,
            access: Arc::clone(&pack.access),
            launcher: Arc::clone(&self.equipment.launcher),
            progress: Progress::default(),
            artifacts: CallArtifacts::default(),
        };
        let mut store = CallState::new(setup, stand_in, &pack.limits).into_store(sandbox);
        let _running = sandbox.running();
        let instance = instantiate(pack, &mut store)?;
        Ok((store, instance))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tempfile::TempDir;

    use super::super::{Call, Caller, Gate};
    use super::*;
    use crate::config::Config;
    use crate::host::{self, Authority, Choice};
    use crate::workspaces::Workspaces;

    /// A host with the pack `task-store`.
    async fn open() -> (TempDir, Gate, Arc<Pack>) {
        let place = tempfile::tempdir().unwrap();
        let authority = Authority {
            // No component needs the compiler.
            executable: "/nowhere/tollgate".into(),
            environment: None,
            umask: 0o077,
            cache_dir: None,
        };
        let choice = Choice {
            packs: vec!["task-store".to_owned()],
            ..Choice::default()
        };
        let config = Config::default();
        let opened = host::open(&config, place.path(), authority, Workspaces::default(), &choice);
        let gate = opened.await.unwrap();
        let pack = Arc::clone(&gate.catalog().packs()[0]);
        (place, gate, pack)
    }

    async fn call(gate: &Gate, tool: &str, arguments: Value) -> Result<Value, String> {
        let call = Call {
            tool: tool.to_owned(),
            arguments: arguments.as_object().cloned().unwrap(),
            malformed: Vec::new(),
            envelope: None,
            caller: Caller::default(),
            cancel: Cancel::default(),
            progress: Progress::default(),
            answers: Default::default(),
        };
        let result = gate.call(call).await.unwrap().result;
        result
            .map(|reply| Value::Object(reply.structured()))
            .map_err(|refusal| refusal.code)
    }

    fn task(title: &str) -> Value {
        json!({"title": title, "spec_markdown": "# Goal\nNone.", "workspace": "w", "initial_phase": "spec_draft",
            "actor": "ada", "actor_role": "orchestrator"})
    }

    /// Waits until an instance is ready, which one is after each call that nobody comes after.
    async fn stocked(pack: &Pack) {
        let ready = async {
            while pack.spares().ready() == 0 {
                tokio::task::yield_now().await;
            }
        };
        let patience = std::time::Duration::from_secs(30);
        tokio::time::timeout(patience, ready).await.unwrap();
    }

    #[tokio::test]
    async fn calls_in_instances_made_in_advance_are_as_calls_in_their_own() {
        let (_place, gate, pack) = open().await;
        assert_eq!(pack.spares().ready(), 0);
        let mut ids = Vec::new();
        for title in ["one", "two", "three"] {
            let created = call(&gate, "task_create", task(title)).await.unwrap();
            assert_eq!(created["task"]["title"], title);
            ids.push(created["task"]["id"].as_str().unwrap().to_owned());
            stocked(&pack).await;
            // A refusal leaves nothing to the instance after it.
            let lost = call(&gate, "task_get", json!({"task_id": "task_lost"})).await;
            lost.unwrap_err();
            stocked(&pack).await;
            let listed = call(&gate, "task_list", json!({})).await.unwrap();
            assert_eq!(listed["tasks"].as_array().unwrap().len(), ids.len());
            stocked(&pack).await;
        }
        ids.dedup();
        assert_eq!(ids.len(), 3);
    }

    #[test]
    fn components_of_others_have_no_instances_made_in_advance() {
        let spares = crate::policies::Spares::<()>::none();
        assert!(spares.take().is_none());
        assert_eq!(spares.work().1, 0);
    }
}
