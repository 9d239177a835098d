//! Runs one call in its guest: instantiation and call.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use tollgate_components::catalog::Body;
use tollgate_components::loading::PooledInstance;
use tollgate_components::packs::Pack;
use tollgate_components::tools::HostTool;
use tollgate_core::budget::Budget;
use tollgate_core::deadline::Deadline;
use tollgate_sandbox::bindings::ToolPack;
use tollgate_sandbox::bindings::exports::tollgate::host::pack as wit;
use tollgate_sandbox::facts::{Facts, Transactions};
use tollgate_sandbox::guest::{CallStore, GuestResult};
use tollgate_sandbox::state::{CallState, Setup};
use tollgate_sdk::ToolError;
use tollgate_store::storage::{AskedBy, Session, StoreResult};

use super::Generation;
use super::ended::{Begun, Changed, Ended, cancelled, conclude, late};
use super::failure::{Failure, lost_transaction};
use super::guest_call::GuestCall;
use super::pending_operation::PendingOperation;
use super::reply::{self, Reply};
use super::runtime::Runtime;
use super::told::Told;
use crate::core_tools::{self, CoreCx, CoreError};

/// State in which a call left its worker, with the session that it borrowed unless the host panicked.
pub(super) type Finished = (Option<Box<Session>>, Ended);

impl Runtime {
    /// Runs a guest on this thread, and has its result judged in the same transaction or snapshot.
    pub(super) fn run(
        &self,
        call: &GuestCall,
        session: Box<Session>,
        transactions: Transactions,
    ) -> Finished {
        let (session, mut ended) = self.run_unjudged(call, session, transactions);
        let Some(review) = &call.review else {
            return (session, ended);
        };
        if ended.cut_short {
            // The host's error contains nothing from the component, and nothing else is sent.
            ended.withhold();
            call.artifacts.forget_given();
            return (session, ended);
        }
        match session {
            // Judged by the caller of this function, on a separate snapshot.
            session if transactions != Transactions::WholeCall => (session, ended),
            Some(session) if session.in_transaction() => {
                (self.review(call, review, session, &mut ended), ended)
            }
            // In a transaction that storage gave up, nothing can be judged.
            session => {
                ended.result = Err(lost_transaction());
                ended.withhold();
                call.artifacts.forget();
                (session, ended)
            }
        }
    }

    /// Runs a guest on this thread. The session is in the component's namespace only during the run.
    pub(super) fn run_unjudged(
        &self,
        call: &GuestCall,
        session: Box<Session>,
        transactions: Transactions,
    ) -> Finished {
        if call.cancel.is_pointless() {
            let ended = Ended {
                begun: Begun::Nothing,
                ..Ended::failed(cancelled(call, Changed::Nothing))
            };
            return (Some(session), ended);
        }
        let run = AssertUnwindSafe(|| match &call.body {
            Body::Guest(pack) => self.run_in_store(call, pack, session, transactions),
            Body::Core(tool) => {
                let (session, result, told) = self.run_core(call, tool, session);
                let ended = Ended {
                    told,
                    ..Ended::of(result)
                };
                (session, ended)
            }
        });
        match std::panic::catch_unwind(run) {
            Ok((session, ended)) => (Some(session), ended),
            Err(_) => {
                tracing::error!(
                    op_id = call.context.op_id,
                    tool = call.tool,
                    "the host panicked during a call"
                );
                let error = ToolError::new(
                    "HOST_FAILED",
                    "the host failed during the call; nothing was changed",
                );
                (None, Ended::failed(Failure::host(error)))
            }
        }
    }

    /// Named budgets of a call's envelope after the call.
    pub(super) fn budgets(
        &self,
        session: &Session,
        generation: &Generation,
        pending: &PendingOperation,
    ) -> StoreResult<BTreeMap<String, Budget>> {
        match &pending.operation.envelope_id {
            Some(envelope) if !generation.envelopes.budgets.is_empty() => {
                session.budgets().list(envelope, Some(&pending.operation.op_id))
            }
            _ => Ok(BTreeMap::new()),
        }
    }

    /// Runs a tool of the host's own.
    fn run_core(
        &self,
        call: &GuestCall,
        tool: &HostTool,
        session: Box<Session>,
    ) -> (Box<Session>, Result<Reply, Failure>, Told) {
        let deadline = Deadline::after(call.time, call.cancel.clone());
        session.limit_time(&deadline);
        let cx = CoreCx {
            session: &session,
            now: self.now(),
            now_ms: self.services.clock.now_ms(),
            boot_ms: self.services.clock.boot_ms(),
            told: RefCell::default(),
            actor: call.actor.as_deref(),
            client: call.client.as_deref(),
            new_id: &|prefix| self.services.clock.new_id(prefix),
            settings: &call.generation.envelopes,
            approvals: &call.generation.approvals,
            is_local: call.is_local,
            host_id: self.host.id(),
            host: &self.host,
            connection: &call.connection,
            identity: call.identity.as_ref(),
            artifacts: self.artifacts.as_deref(),
            workspaces: &call.generation.workspaces,
            catalog: &call.generation.catalog,
            op_id: &call.context.op_id,
            seen: call.seen.as_ref().and_then(|seen| seen.as_deref().ok()),
            closing: &call.closing,
        };
        let said = core_tools::run(tool.name, &cx, &call.arguments);
        let told = cx.told.take();
        session.leave();
        let result = match said {
            Ok(reply) => {
                let said = wit::Reply {
                    structured: reply.structured,
                    text: reply.text,
                    content: Vec::new(),
                };
                reply::read(core_tools::PACK, said)
            }
            Err(CoreError::Tool(error)) => Err(Failure::of_tool(error)),
            // A statement that was cut short fails like any other.
            Err(CoreError::Statement(_)) if deadline.is_cancelled() => Err(cancelled(call, Changed::Nothing)),
            Err(CoreError::Statement(_)) if deadline.is_over() => Err(late(call, Changed::Nothing)),
            Err(CoreError::Statement(error) | CoreError::Host(error)) => Err(Failure::host(error)),
        };
        (session, result, told)
    }

    fn run_in_store(
        &self,
        call: &GuestCall,
        pack: &Pack,
        session: Box<Session>,
        transactions: Transactions,
    ) -> (Box<Session>, Ended) {
        let deadline = Deadline::after(call.time, call.cancel.clone());
        let mut progress = call.progress.clone();
        if call.review.is_some() {
            progress.hold_back();
        }
        session.enter(&pack.namespace, &deadline);
        let setup = Setup {
            namespace: pack.namespace.clone(),
            deadline: deadline.clone(),
            clock: Arc::clone(&self.services.clock),
            facts: self.facts(call, pack),
            transactions,
            effect: call.effect,
            access: Arc::clone(&pack.access),
            launcher: Arc::clone(&self.services.launcher),
            progress,
            artifacts: call.artifacts.clone(),
        };
        // A call with transactions of its own may leave one open, which ends with its store.
        let pooled = (transactions == Transactions::WholeCall).then(|| pack.pool().take());
        if let Some(pooled) = pooled.flatten() {
            return self.run_pooled(call, pack, pooled, (setup, session));
        }
        let mut store = CallState::new(setup, session, &pack.limits).into_store(&self.services.sandbox);
        let running = self.services.sandbox.running();
        let called = pack
            .instantiate(&mut store)
            .and_then(|instance| invoke(call, &instance, &mut store));
        drop(running);
        let mut state = store.into_data();
        let ended = conclude(call, pack, called, &mut state, &deadline);
        (state.finish(ended.result.is_ok()), ended)
    }

    /// Runs a call in a pooled instance. Its store is cleared later.
    fn run_pooled(
        &self,
        call: &GuestCall,
        pack: &Pack,
        pooled: PooledInstance<ToolPack>,
        (setup, session): (Setup, Box<Session>),
    ) -> (Box<Session>, Ended) {
        let PooledInstance { instance, mut used } = pooled;
        let deadline = setup.deadline.clone();
        let stand_in = CallState::lend_whole(&mut used.store, setup, session);
        let running = self.services.sandbox.running();
        let called = invoke(call, &instance, &mut used.store);
        drop(running);
        let state = used.store.data_mut();
        let ended = conclude(call, pack, called, state, &deadline);
        let session = state.give_back(stand_in);
        used.is_sound = ended.result.is_ok();
        pack.pool().put_away(used);
        (session, ended)
    }

    fn facts(&self, call: &GuestCall, pack: &Pack) -> Facts {
        let identity = call
            .identity
            .as_ref()
            .filter(|identity| !identity.rights().sees_all);
        Facts {
            op_id: call.context.op_id.clone(),
            envelope_id: call.context.envelope_id.clone(),
            granted: Arc::clone(&pack.granted),
            host: Some(Arc::clone(&self.host)),
            connection: call.is_stateful.then(|| call.connection.clone()),
            looks_at: identity.map(|identity| identity.as_str().to_owned()),
            is_policy: false,
            sitting: None,
            memory: None,
            judged: None,
            programs: call.programs.clone(),
            seen: call.seen.as_ref().and_then(|seen| seen.as_ref().ok().cloned()),
            asked_by: AskedBy {
                op_id: call.context.op_id.clone(),
                envelope_id: call.context.envelope_id.clone(),
                tool: call.tool.clone(),
                actor: call.actor.clone(),
                identity: call.context.identity.clone(),
                connection: call.connection.clone(),
            },
            unseen: call
                .seen
                .as_ref()
                .and_then(|seen| seen.as_ref().err())
                .map(|unseen| unseen.why.clone()),
        }
    }
}

fn invoke(
    call: &GuestCall,
    instance: &ToolPack,
    store: &mut CallStore,
) -> GuestResult<Result<wit::Reply, wit::ToolError>> {
    let pack = instance.tollgate_host_pack();
    Ok(pack.call_call(store, &call.context, &call.tool, &call.arguments)?)
}
