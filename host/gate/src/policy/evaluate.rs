//! Runs one policy in its own store, under its limits, on a borrowed session.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tollgate_components::catalog::ToolEntry;
use tollgate_components::loading::{PooledInstance, RetiredInstance};
use tollgate_components::policies::{Answer, Cause, Chain, Fault, Mode, Policy};
use tollgate_core::deadline::{Cancel, Deadline};
use tollgate_core::effect::Effect;
use tollgate_sandbox::Exceeded;
use tollgate_sandbox::bindings::policy::Policy as Instance;
use tollgate_sandbox::bindings::policy::exports::tollgate::host::judge as wit;
use tollgate_sandbox::facts::{Facts, Transactions};
use tollgate_sandbox::guest::{CallStore, GuestResult, StopReason, Stopped};
use tollgate_sandbox::judged::{Bound, JudgedCall, SchemaOf};
use tollgate_sandbox::memory::{Memories, Memory};
use tollgate_sandbox::progress::Progress;
use tollgate_sandbox::sitting::Sitting;
use tollgate_sandbox::state::{CallState, Setup};
use tollgate_store::artifacts::CallArtifacts;
use tollgate_store::liveness::Host;
use tollgate_store::storage::{self, AskedBy, MemoryOwner, Session};

use super::super::runtime::CallServices;

/// Bytes that a policy can judge within its basic time limit.
const BASE_BYTES: usize = 64 << 10;
/// Divisor: each further stretch of bytes adds the time limit divided by this.
const STRETCH_DIVISOR: u32 = 5;
/// Ratio of a policy's wall-clock limit to its CPU time limit, for a busy machine.
const WALL_CLOCK_FACTOR: u32 = 20;

/// CPU time limit of a policy for a call or a result of this size in bytes.
fn work(limit: Duration, bytes: usize) -> Duration {
    let more = bytes.saturating_sub(BASE_BYTES).div_ceil(BASE_BYTES);
    let more = u32::try_from(more).unwrap_or(u32::MAX);
    limit.saturating_add((limit / STRETCH_DIVISOR).saturating_mul(more))
}

/// Place in the chain of the policy that is asked, and the judged tool.
#[derive(Clone, Default)]
pub(super) struct ChainPosition {
    /// Operator's name for the policy. Empty outside a chain.
    pub(super) name: String,
    /// True if its verdicts are only recorded.
    pub(super) is_audit: bool,
    /// Input schema of the judged tool.
    pub(super) schema: Option<SchemaOf>,
}

impl ChainPosition {
    /// Place of a policy in a chain.
    pub(super) fn of(chain: &Chain, policy: &Policy, tool: Option<&Arc<ToolEntry>>) -> ChainPosition {
        let (name, mode) = chain.place_of(policy).unwrap_or_default();
        let schema = tool.map(|tool| -> SchemaOf {
            let tool = Arc::clone(tool);
            Arc::new(move || serde_json::to_string(&tool.spec.input_schema).ok())
        });
        ChainPosition {
            name: name.to_owned(),
            is_audit: mode == Mode::Audit,
            schema,
        }
    }
}

/// Runs policies one after another on a borrowed session.
pub(super) struct Evaluator<'a> {
    services: &'a CallServices,
    /// This process, if it is a host.
    host: Option<Arc<Host>>,
    cancel: Cancel,
    /// Judgements on the request so far, if calls are judged before they run.
    pub(super) sitting: Option<Sitting>,
    /// Memory of the policies for the request.
    pub(super) memories: Memories,
    /// Place in the chain that is asked next.
    pub(super) position: ChainPosition,
    /// Binding of the question from the policy that was asked last.
    pub(super) bound: Bound,
    /// Session, lent to one policy after another.
    pub(super) session: Option<Box<Session>>,
    /// Database pages that the policies' own rows took or gave back.
    pub(super) pages: i64,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(
        services: &'a CallServices,
        host: Option<Arc<Host>>,
        cancel: Cancel,
        session: Box<Session>,
    ) -> Evaluator<'a> {
        Evaluator {
            services,
            host,
            cancel,
            sitting: None,
            memories: Memories::default(),
            position: ChainPosition::default(),
            bound: Bound::default(),
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
        outcome: Option<&wit::Outcome>,
        say: impl FnOnce(
            &wit::Guest,
            &mut CallStore,
            &wit::Request,
        ) -> GuestResult<Result<(V, Vec<wit::Note>), String>>,
    ) -> Answer<V> {
        request.settings.clone_from(&policy.settings);
        request.notes = notes.to_vec();
        let bytes = size(request, outcome);
        let started = Instant::now();
        let judged = JudgedCall::by(&self.position.name, self.position.schema.clone());
        let said = self.ask(policy, request, (bytes, &judged), |instance, store| {
            say(instance.tollgate_host_judge(), store, request)
        });
        // The memory of a policy that did not judge is unchanged.
        self.memories.end(policy.namespace.pack(), said.is_ok());
        self.bound = judged.take_bound();
        Answer {
            said,
            took: started.elapsed(),
        }
    }

    /// Memory of a policy at its place. Audit mode has a separate memory, so that it cannot affect enforced verdicts.
    fn memory_of(&self, policy: &Policy) -> Memory {
        Memory {
            owner: MemoryOwner {
                component: policy.namespace.pack().to_owned(),
                audit: self.position.is_audit,
            },
            quota: policy.limits.storage,
            all: self.memories.clone(),
        }
    }

    /// Runs a policy in a store of its own. The session is in its namespace only during the run.
    fn ask<V>(
        &mut self,
        policy: &Policy,
        request: &wit::Request,
        (bytes, judged): (usize, &JudgedCall),
        say: impl FnOnce(&Instance, &mut CallStore) -> GuestResult<Result<V, String>>,
    ) -> Result<V, Fault> {
        let Some(session) = self.session.take() else {
            return host_failed::<V>().said.map(|(said, _)| said);
        };
        let work = work(policy.limits.time, bytes);
        let deadline =
            Deadline::after_work(work, work.saturating_mul(WALL_CLOCK_FACTOR), self.cancel.clone());
        session.enter(&policy.namespace, &deadline);
        let facts = Facts {
            op_id: request.op_id.clone(),
            envelope_id: request.envelope_id.clone(),
            granted: Arc::clone(&policy.granted),
            host: self.host.clone(),
            connection: None,
            looks_at: None,
            is_policy: true,
            sitting: self.sitting.clone(),
            memory: Some(self.memory_of(policy)),
            judged: Some(judged.clone()),
            programs: None,
            seen: None,
            asked_by: self.asked_by(request),
            unseen: None,
        };
        let (session, said) = match policy.pool().take() {
            Some(pooled) => self.ask_pooled(policy, pooled, facts, &deadline, session, say),
            None => self.ask_new(policy, facts, &deadline, session, say),
        };
        self.session = Some(session);
        said
    }

    /// Judged call, as requests for approval name it.
    fn asked_by(&self, request: &wit::Request) -> AskedBy {
        match &self.sitting {
            Some(sitting) => sitting.asked_by(),
            None => AskedBy {
                op_id: request.op_id.clone(),
                envelope_id: request.envelope_id.clone(),
                tool: request.tool.clone(),
                actor: request.identity.clone(),
                identity: request.identity.clone(),
                connection: request.connection.clone(),
            },
        }
    }

    /// Asks an instance that is created for the question.
    fn ask_new<V>(
        &self,
        policy: &Policy,
        facts: Facts,
        deadline: &Deadline,
        session: Box<Session>,
        say: impl FnOnce(&Instance, &mut CallStore) -> GuestResult<Result<V, String>>,
    ) -> (Box<Session>, Result<V, Fault>) {
        let state = state(self.services, policy, facts, deadline, session);
        let mut store = state.into_store(&self.services.sandbox);
        let running = self.services.sandbox.running();
        let said = policy
            .instantiate(&mut store)
            .and_then(|instance| say(&instance, &mut store));
        drop(running);
        let state = store.into_data();
        let said = heard(said, &state, deadline);
        (state.finish(said.is_ok()), said)
    }

    /// Asks a pooled instance. Its store is cleared later.
    fn ask_pooled<V>(
        &self,
        policy: &Policy,
        pooled: PooledInstance<Instance>,
        facts: Facts,
        deadline: &Deadline,
        session: Box<Session>,
        say: impl FnOnce(&Instance, &mut CallStore) -> GuestResult<Result<V, String>>,
    ) -> (Box<Session>, Result<V, Fault>) {
        let PooledInstance { instance, mut used } = pooled;
        let stand_in = CallState::lend(&mut used.store, facts, deadline.clone(), session);
        let running = self.services.sandbox.running();
        let said = say(&instance, &mut used.store);
        drop(running);
        let state = used.store.data_mut();
        let said = heard(said, state, deadline);
        let session = state.give_back(stand_in);
        used.is_sound = said.is_ok();
        policy.pool().put_away(used);
        (session, said)
    }
}

/// Bytes that a policy is shown.
fn size(request: &wit::Request, outcome: Option<&wit::Outcome>) -> usize {
    let result = outcome.map_or(0, |outcome| {
        outcome.body.len() + outcome.text.as_ref().map_or(0, String::len)
    });
    request.arguments.len() + result
}

/// Clears used instances of a policy, and creates instances for coming calls.
pub(super) fn prepare(services: &CallServices, policy: &Policy) {
    let (used, missing) = policy.pool().work();
    let mut stand_ins: Vec<Box<Session>> = used.into_iter().map(RetiredInstance::cleared).collect();
    for _ in 0..missing {
        let Some(slot) = services.sandbox.pool_slot() else {
            return;
        };
        let stand_in = stand_ins
            .pop()
            .map_or_else(|| storage::empty_session().map(Box::new), Ok);
        let made = stand_in.map_err(Stopped::from).and_then(|stand_in| {
            let deadline = Deadline::after(policy.limits.time, Cancel::default());
            stand_in.enter(&policy.namespace, &deadline);
            let state = state(services, policy, Facts::default(), &deadline, stand_in);
            let mut store = state.into_store(&services.sandbox);
            let _running = services.sandbox.running();
            let instance = policy.instantiate(&mut store)?;
            Ok((store, instance))
        });
        match made {
            Ok((store, instance)) => {
                let used = RetiredInstance::new(store, slot);
                policy.pool().add(PooledInstance { instance, used });
            }
            Err(err) => {
                tracing::debug!(policy = policy.manifest.name, %err, "no instance was created in advance");
                policy.pool().give_up();
            }
        }
    }
}

/// Store state of a policy.
fn state(
    services: &CallServices,
    policy: &Policy,
    facts: Facts,
    deadline: &Deadline,
    session: Box<Session>,
) -> CallState {
    let setup = Setup {
        namespace: policy.namespace.clone(),
        deadline: deadline.clone(),
        clock: Arc::clone(&services.clock),
        transactions: Transactions::WholeCall,
        facts,
        effect: Effect::Read,
        access: Arc::clone(&policy.access),
        launcher: Arc::clone(&services.launcher),
        progress: Progress::default(),
        artifacts: CallArtifacts::default(),
    };
    CallState::new(setup, session, &policy.limits.of_calls())
}

/// Verdict of a policy, or the reason for which there is none.
fn heard<V>(
    said: GuestResult<Result<V, String>>,
    state: &CallState,
    deadline: &Deadline,
) -> Result<V, Fault> {
    match said {
        Ok(Ok(said)) => Ok(said),
        Ok(Err(why)) => Err(Fault {
            cause: Cause::CannotJudge,
            detail: tollgate_core::text::clean(tollgate_core::text::cut(&why, 1 << 10)),
        }),
        Err(trap) => Err(fault(&trap, state, deadline)),
    }
}

fn fault(trap: &Stopped, state: &CallState, deadline: &Deadline) -> Fault {
    let cause = match (state.exceeded(), trap.reason()) {
        (Some(Exceeded::Memory | Exceeded::Table), _) => Cause::Memory,
        (None, StopReason::Interrupt) => Cause::Deadline,
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
            detail: "the session has ended".to_owned(),
        }),
        took: Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_to_judge_has_more_time() {
        let limit = Duration::from_millis(50);
        for (bytes, ms) in [(0, 50), (64 << 10, 50), ((64 << 10) + 1, 60), (1 << 20, 200)] {
            assert_eq!(work(limit, bytes), Duration::from_millis(ms), "{bytes}");
        }
        assert!(work(Duration::MAX, usize::MAX) == Duration::MAX);
    }
}
