//! Running one policy: a store of its own, under its limits, on a session that it is lent.

use std::sync::Arc;
use std::time::Instant;

use wasmtime::{Store, Trap};

use super::super::Equipment;
use crate::artifacts::CallArtifacts;
use crate::deadline::{Cancel, Deadline};
use crate::liveness::Host;
use crate::packs::Effect;
use crate::policies::{Answer, Cause, Fault, Policy};
use crate::progress::Progress;
use crate::sandbox::Exceeded;
use crate::sandbox::bindings::policy::Policy as Instance;
use crate::sandbox::bindings::policy::exports::tollgate::host::judge as wit;
use crate::sandbox::state::{CallState, Facts, Setup, Transactions};
use crate::storage::Session;

/// Runs policies one after another on a session that it was lent.
pub(super) struct Court<'a> {
    equipment: &'a Equipment,
    /// This process among the others, if it is a host.
    host: Option<Arc<Host>>,
    cancel: Cancel,
    /// Lent to one policy after another.
    pub(super) session: Option<Box<Session>>,
    /// Pages that their own rows took or gave back.
    pub(super) pages: i64,
}

impl<'a> Court<'a> {
    pub(super) fn new(
        equipment: &'a Equipment,
        host: Option<Arc<Host>>,
        cancel: Cancel,
        session: Box<Session>,
    ) -> Court<'a> {
        Court {
            equipment,
            host,
            cancel,
            session: Some(session),
            pages: 0,
        }
    }

    /// Asks a policy about a request, with its own settings.
    pub(super) fn ask_about<V>(
        &mut self,
        policy: &Policy,
        request: &mut wit::Request,
        notes: &[wit::Note],
        say: impl FnOnce(
            &wit::Guest,
            &mut Store<CallState>,
            &wit::Request,
        ) -> wasmtime::Result<Result<(V, Vec<wit::Note>), String>>,
    ) -> Answer<V> {
        request.settings.clone_from(&policy.settings);
        request.notes = notes.to_vec();
        let started = Instant::now();
        let said = self.ask(policy, request, |instance, store| {
            say(instance.tollgate_host_judge(), store, request)
        });
        Answer {
            said,
            took: started.elapsed(),
        }
    }

    /// Runs a policy in a store of its own. The session is in its namespace only meanwhile.
    fn ask<V>(
        &mut self,
        policy: &Policy,
        request: &wit::Request,
        say: impl FnOnce(&Instance, &mut Store<CallState>) -> wasmtime::Result<Result<V, String>>,
    ) -> Result<V, Fault> {
        let Some(session) = self.session.take() else {
            return host_failed::<V>().said.map(|(said, _)| said);
        };
        let equipment = self.equipment;
        let deadline = Deadline::after(policy.limits.read, self.cancel.clone());
        session.enter(&policy.namespace, &deadline);
        let setup = Setup {
            namespace: policy.namespace.clone(),
            deadline: deadline.clone(),
            clock: Arc::clone(&equipment.clock),
            transactions: Transactions::WholeCall,
            facts: Facts {
                op_id: request.op_id.clone(),
                envelope_id: request.envelope_id.clone(),
                granted: Arc::clone(&policy.granted),
                host: self.host.clone(),
                is_policy: true,
            },
            effect: Effect::Read,
            access: Arc::clone(&policy.access),
            launcher: Arc::clone(&equipment.launcher),
            progress: Progress::default(),
            artifacts: CallArtifacts::default(),
        };
        let mut store = CallState::new(setup, session, &policy.limits).into_store(&equipment.sandbox);
        let running = equipment.sandbox.running();
        let said = policy
            .pre()
            .instantiate(&mut store)
            .and_then(|instance| say(&instance, &mut store));
        drop(running);
        let state = store.into_data();
        let said = match said {
            Ok(Ok(said)) => Ok(said),
            Ok(Err(why)) => Err(Fault {
                cause: Cause::CannotJudge,
                detail: crate::text::clean(crate::text::cut(&why, 1 << 10)),
            }),
            Err(trap) => Err(fault(&trap, &state, &deadline)),
        };
        self.session = Some(state.finish(said.is_ok()));
        said
    }
}

fn fault(trap: &wasmtime::Error, state: &CallState, deadline: &Deadline) -> Fault {
    let cause = match (state.exceeded(), trap.downcast_ref::<Trap>()) {
        (Some(Exceeded::Memory | Exceeded::Table), _) => Cause::Memory,
        (None, Some(Trap::Interrupt)) => Cause::Deadline,
        _ if deadline.is_over() => Cause::Deadline,
        _ => Cause::Crash,
    };
    Fault {
        cause,
        detail: format!("{trap:#}"),
    }
}

pub(super) fn host_failed<V>() -> Answer<V> {
    Answer {
        said: Err(Fault {
            cause: Cause::Host,
            detail: "the session is gone".to_owned(),
        }),
        took: std::time::Duration::ZERO,
    }
}
