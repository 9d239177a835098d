//! Pool of pack instances, filled by threads that have just answered a call.
//!
//! After its caller has the reply, a reader or the writer clears away the resources of the call and creates an
//! instance for the next call of the same pack. Creating and clearing an instance takes as long as the work of a
//! small tool.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use tollgate_components::loading::{PooledInstance, RetiredInstance};
use tollgate_components::packs::Pack;
use tollgate_core::deadline::{Cancel, Deadline};
use tollgate_core::effect::Effect;
use tollgate_sandbox::CallState;
use tollgate_sandbox::bindings::ToolPack;
use tollgate_sandbox::facts::{Facts, Transactions};
use tollgate_sandbox::guest::{CallStore, GuestResult, Stopped};
use tollgate_sandbox::progress::Progress;
use tollgate_sandbox::state::Setup;
use tollgate_store::artifacts::CallArtifacts;
use tollgate_store::storage::{self, Session};

use super::runtime::Runtime;

impl Runtime {
    /// Clears used instances of a pack, and creates instances for coming calls, while no caller waits.
    pub(super) fn prepare_pack(&self, pack: &Pack) {
        let prepare = AssertUnwindSafe(|| self.stock(pack));
        if std::panic::catch_unwind(prepare).is_err() {
            pack.pool().give_up();
        }
    }

    fn stock(&self, pack: &Pack) {
        let (used, missing) = pack.pool().work();
        let mut stand_ins: Vec<Box<Session>> = used.into_iter().map(RetiredInstance::cleared).collect();
        for _ in 0..missing {
            let Some(slot) = self.services.sandbox.pool_slot() else {
                return;
            };
            let stand_in = stand_ins
                .pop()
                .map_or_else(|| storage::empty_session().map(Box::new), Ok);
            let made = stand_in.map_err(Stopped::from);
            match made.and_then(|stand_in| self.make(pack, stand_in)) {
                Ok((store, instance)) => {
                    let used = RetiredInstance::new(store, slot);
                    pack.pool().add(PooledInstance { instance, used });
                }
                Err(err) => {
                    tracing::debug!(pack = pack.manifest.name, %err, "no instance was created in advance");
                    pack.pool().give_up();
                }
            }
        }
    }

    /// Instance for any later call, under a deadline and with an empty database.
    fn make(&self, pack: &Pack, stand_in: Box<Session>) -> GuestResult<(CallStore, ToolPack)> {
        let sandbox = &self.services.sandbox;
        let deadline = Deadline::after(pack.limits.read, Cancel::default());
        stand_in.enter(&pack.namespace, &deadline);
        let setup = Setup {
            namespace: pack.namespace.clone(),
            deadline,
            clock: Arc::clone(&self.services.clock),
            facts: Facts::default(),
            transactions: Transactions::WholeCall,
            effect: Effect::Read,
            access: Arc::clone(&pack.access),
            launcher: Arc::clone(&self.services.launcher),
            progress: Progress::default(),
            artifacts: CallArtifacts::default(),
        };
        let mut store = CallState::new(setup, stand_in, &pack.limits).into_store(sandbox);
        let _running = sandbox.running();
        let instance = pack.instantiate(&mut store)?;
        Ok((store, instance))
    }
}
