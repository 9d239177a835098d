//! One call inside its guest: instantiate, call, and name whatever goes wrong.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use tollgate_components::catalog::Body;
use tollgate_components::loading::PooledInstance;
use tollgate_components::packs::Pack;
use tollgate_components::policies::Verdict;
use tollgate_components::tools::host_tool::HostTool;
use tollgate_core::budget::Budget;
use tollgate_core::deadline::{Cancel, Deadline};
use tollgate_core::effect::Effect;
use tollgate_core::identity::Identity;
use tollgate_core::text;
use tollgate_sandbox::Exceeded;
use tollgate_sandbox::annotations::Annotations;
use tollgate_sandbox::bindings::ToolPack;
use tollgate_sandbox::bindings::exports::tollgate::host::pack as wit;
use tollgate_sandbox::bindings::tollgate::host::component as shared;
use tollgate_sandbox::counted_programs::CountPrograms;
use tollgate_sandbox::facts::{Facts, Transactions};
use tollgate_sandbox::guest::{CallStore, GuestResult, StopReason, Stopped};
use tollgate_sandbox::progress::{Line, Progress};
use tollgate_sandbox::state::{CallState, Setup};
use tollgate_sdk::{Blocker, NextCall, Timestamp, ToolError};
use tollgate_store::artifacts::{ArtifactStore, CallArtifacts};
use tollgate_store::liveness::Host;
use tollgate_store::storage::{AskedBy, PolicyRow, Session, StoreResult};

use super::callable::{self, Callable};
use super::elicit;
use super::failure::lost_transaction;
use super::looks::LookedAt;
use super::outstanding::Ticket;
use super::pending_operation::{PendingOperation, Seen};
use super::policy::{Judging, Review};
use super::programs::Programs;
use super::reply::{self, Reply};
use super::settled::Told;
use super::{Equipment, Generation};
use crate::core_tools::{self, CoreCx};

/// Longest text of an error that a component gives, in bytes.
const MAX_TEXT: usize = 4 << 10;
/// Most reasons a component may give for one error.
const MAX_BLOCKERS: usize = 200;

/// A call that was admitted. It may run more than once: if a neighbour in its batch costs the
/// whole transaction, it runs again in the next.
pub(super) struct GuestCall {
    pub(super) generation: Arc<Generation>,
    pub(super) body: Body,
    pub(super) tool: String,
    pub(super) arguments: String,
    pub(super) context: wit::Context,
    pub(super) identity: Option<Identity>,
    pub(super) connection: String,
    /// True if later calls come over the same connection.
    pub(super) is_stateful: bool,
    /// True for a caller over stdio or at the command line.
    pub(super) is_local: bool,
    /// Caller as the ledger names it.
    pub(super) actor: Option<String>,
    /// Client as the ledger names it.
    pub(super) client: Option<String>,
    pub(super) effect: Effect,
    pub(super) time: Duration,
    /// True if the call's time is the rest of its envelope's.
    pub(super) ends_with_envelope: bool,
    pub(super) cancel: Cancel,
    pub(super) progress: Progress,
    pub(super) artifacts: CallArtifacts,
    /// Counts the programs that it starts.
    pub(super) programs: Option<Arc<Programs>>,
    /// The work tree before the call, or why it was not seen, if somebody looked.
    pub(super) seen: Option<Seen>,
    /// Work trees of the envelope that the call closes.
    pub(super) closing: Vec<LookedAt>,
    /// Data for judging the call, if a policy judges it and has not yet.
    pub(super) judging: Option<Box<Judging>>,
    /// Data for judging the result, if a policy does.
    pub(super) review: Option<Box<Review>>,
    /// Its place among the calls of its identity that are not over.
    pub(super) _ticket: Option<Ticket>,
}

/// Runtime of guests.
#[derive(Clone)]
pub(super) struct Runtime {
    pub(super) equipment: Equipment,
    pub(super) host: Arc<Host>,
    pub(super) artifacts: Option<Arc<ArtifactStore>>,
    /// True if reads that succeed leave rows.
    pub(super) records_reads: bool,
}

/// State in which a call left its worker: with the session it borrowed, unless the host itself panicked.
pub(super) type Finished = (Option<Box<Session>>, Ended);

/// Outcome of a guest, with what it added to its operation's record.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    pub(super) result: Result<Reply, ToolError>,
    pub(super) additions: Annotations,
    /// The host cut it short, so that nothing of the guest's own leaves.
    pub(super) cut_short: bool,
    /// Verdicts of policies on the result.
    pub(super) verdicts: Vec<Verdict>,
    /// Pages that rows of policies took.
    pub(super) pages: i64,
    /// All that policies remember of the call, if one judged the result.
    pub(super) remembered: Option<Vec<PolicyRow>>,
    /// Log lines of the component, held back until the result was judged.
    pub(super) lines: Vec<Line>,
    /// Statements of the row about envelopes.
    pub(super) told: Told,
}

impl Ended {
    pub(super) fn of(result: Result<Reply, ToolError>) -> Ended {
        Ended {
            result,
            additions: Annotations::default(),
            cut_short: false,
            verdicts: Vec::new(),
            pages: 0,
            remembered: None,
            lines: Vec::new(),
            told: Told::default(),
        }
    }

    pub(super) fn failed(failure: ToolError) -> Ended {
        Ended {
            cut_short: true,
            ..Ended::of(Err(failure))
        }
    }

    /// Refusal, if the call was refused.
    pub(super) fn refusal(&self) -> Option<&ToolError> {
        match &self.result {
            Ok(reply) => reply.refusal.as_deref(),
            Err(refusal) => Some(refusal),
        }
    }

    /// Drops what the component said beside its result: nobody let it through.
    pub(super) fn withhold(&mut self) {
        self.lines.clear();
        self.additions = Annotations::default();
    }
}

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
            // What the host says of it holds nothing of the component's, and nothing else leaves.
            ended.withhold();
            call.artifacts.forget_given();
            return (session, ended);
        }
        match session {
            // Judged by who called this, on a snapshot of its own.
            session if transactions != Transactions::WholeCall => (session, ended),
            Some(session) if session.in_transaction() => {
                (self.review(call, review, session, &mut ended), ended)
            }
            // Nobody can judge in a transaction that storage gave up.
            session => {
                ended.result = Err(lost_transaction());
                ended.withhold();
                call.artifacts.forget();
                (session, ended)
            }
        }
    }

    /// Runs a guest on this thread. The session is in the component's namespace only meanwhile.
    pub(super) fn run_unjudged(
        &self,
        call: &GuestCall,
        session: Box<Session>,
        transactions: Transactions,
    ) -> Finished {
        if call.cancel.is_pointless() {
            return (Some(session), Ended::failed(cancelled(call, Changed::Nothing)));
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
                let failure = ToolError::new(
                    "HOST_FAILED",
                    "the host failed during the call; nothing was changed",
                );
                (None, Ended::failed(failure))
            }
        }
    }

    /// Named budgets of a call's envelope, now that the call is over.
    pub(super) fn budgets(
        &self,
        session: &Session,
        generation: &Generation,
        draft: &PendingOperation,
    ) -> StoreResult<BTreeMap<String, Budget>> {
        match &draft.operation.envelope_id {
            Some(envelope) if !generation.envelopes.budgets.is_empty() => {
                session.budgets(envelope, Some(&draft.operation.op_id))
            }
            _ => Ok(BTreeMap::new()),
        }
    }

    /// The time as RFC 3339 text.
    pub(super) fn now(&self) -> String {
        Timestamp::from_ms(self.equipment.clock.now_ms()).to_string()
    }

    /// Runs a tool of the host's own.
    fn run_core(
        &self,
        call: &GuestCall,
        tool: &HostTool,
        session: Box<Session>,
    ) -> (Box<Session>, Result<Reply, ToolError>, Told) {
        let deadline = Deadline::after(call.time, call.cancel.clone());
        session.limit_time(&deadline);
        let cx = CoreCx {
            session: &session,
            now: self.now(),
            now_ms: self.equipment.clock.now_ms(),
            boot_ms: self.equipment.clock.boot_ms(),
            told: RefCell::default(),
            actor: call.actor.as_deref(),
            client: call.client.as_deref(),
            new_id: &|prefix| self.equipment.clock.new_id(prefix),
            settings: &call.generation.envelopes,
            approvals: &call.generation.approvals,
            is_local: call.is_local,
            host_id: self.host.id(),
            connection: &call.connection,
            identity: call.identity.as_ref(),
            artifacts: self.artifacts.as_deref(),
            workspaces: &call.generation.workspaces,
            catalog: &call.generation.catalog,
            op_id: &call.context.op_id,
            seen: call.seen.as_ref().and_then(|seen| seen.as_deref().ok()),
            closing: &call.closing,
        };
        let result = core_tools::run(tool.name, &cx, &call.arguments).and_then(|reply| {
            let said = wit::Reply {
                structured: reply.structured,
                text: reply.text,
                content: Vec::new(),
            };
            reply::read(core_tools::PACK, said)
        });
        let told = cx.told.take();
        session.leave();
        // A statement that was cut short fails as any other would.
        let result = result.map_err(|err| match err.code.as_str() {
            "STORAGE_FAILED" if deadline.is_cancelled() => cancelled(call, Changed::Nothing),
            "STORAGE_FAILED" if deadline.is_over() => late(call, Changed::Nothing),
            _ => err,
        });
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
            clock: Arc::clone(&self.equipment.clock),
            facts: self.facts(call, pack),
            transactions,
            effect: call.effect,
            access: Arc::clone(&pack.access),
            launcher: Arc::clone(&self.equipment.launcher),
            progress,
            artifacts: call.artifacts.clone(),
        };
        // A call with transactions of its own may leave one open, which ends with its store.
        let spare = (transactions == Transactions::WholeCall).then(|| pack.spares().take());
        if let Some(spare) = spare.flatten() {
            return self.run_spare(call, pack, spare, (setup, session));
        }
        let mut store = CallState::new(setup, session, &pack.limits).into_store(&self.equipment.sandbox);
        let running = self.equipment.sandbox.running();
        let called = pack
            .instantiate(&mut store)
            .and_then(|instance| invoke(call, &instance, &mut store));
        drop(running);
        let mut state = store.into_data();
        let ended = conclude(call, pack, called, &mut state, &deadline);
        (state.finish(ended.result.is_ok()), ended)
    }

    /// Runs a call in an instance that was made before. Its store is cleared away when there is time.
    fn run_spare(
        &self,
        call: &GuestCall,
        pack: &Pack,
        spare: PooledInstance<ToolPack>,
        (setup, session): (Setup, Box<Session>),
    ) -> (Box<Session>, Ended) {
        let PooledInstance { instance, mut used } = spare;
        let deadline = setup.deadline.clone();
        let stand_in = CallState::lend_whole(&mut used.store, setup, session);
        let running = self.equipment.sandbox.running();
        let called = invoke(call, &instance, &mut used.store);
        drop(running);
        let state = used.store.data_mut();
        let ended = conclude(call, pack, called, state, &deadline);
        let session = state.give_back(stand_in);
        used.is_sound = ended.result.is_ok();
        pack.spares().put_away(used);
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
            programs: call
                .programs
                .clone()
                .map(|programs| programs as Arc<dyn CountPrograms>),
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

/// The end of a call, from its guest's result and state.
fn conclude(
    call: &GuestCall,
    pack: &Pack,
    called: GuestResult<Result<wit::Reply, wit::ToolError>>,
    state: &mut CallState,
    deadline: &Deadline,
) -> Ended {
    let cut_short = called.is_err();
    let result = match called {
        Ok(Ok(reply)) => reply::read(&pack.manifest.name, reply).map(|mut reply| {
            let calls = callable::calls_of(call.identity.as_ref());
            reply.json = Callable::new(&call.generation.catalog, calls).result(&call.tool, reply.json);
            if !state.deferred_writes.is_empty() {
                reply.deferred_writes = std::mem::take(&mut state.deferred_writes).into();
            }
            reply
        }),
        // What a guest says about being cut short is no news.
        Ok(Err(_)) if call.effect == Effect::Run && deadline.is_cancelled() => {
            Err(cancelled(call, Changed::by(call, state)))
        }
        Ok(Err(err)) if err.keep_rows && call.effect == Effect::Write => Ok(Reply {
            deferred_writes: std::mem::take(&mut state.deferred_writes).into(),
            refusal: Some(Box::new(read_error(err, pack))),
            ..Reply::default()
        }),
        Ok(Err(err)) => Err(read_error(err, pack)),
        Err(trap) => Err(name_trap(call, pack, &trap, state, deadline)),
    };
    Ended {
        additions: std::mem::take(&mut state.additions),
        lines: state.progress.take_lines(),
        cut_short,
        ..Ended::of(result)
    }
}

/// A trap, an interruption or a limit, as the caller sees it. The log has the whole story.
fn name_trap(
    call: &GuestCall,
    pack: &Pack,
    trap: &Stopped,
    state: &CallState,
    deadline: &Deadline,
) -> ToolError {
    let limits = &pack.limits;
    let pack = pack.manifest.name.as_str();
    tracing::warn!(
        op_id = call.context.op_id,
        pack,
        tool = call.tool,
        trap = format!("{trap:#}"),
        "a guest was stopped"
    );
    if deadline.is_cancelled() {
        return cancelled(call, Changed::by(call, state));
    }
    let changed = Changed::by(call, state);
    let err = match (state.exceeded(), trap.reason()) {
        (Some(Exceeded::Memory), _) => ToolError::new(
            "MEMORY_LIMIT",
            format!("pack `{pack}` asked for more memory than it may have"),
        )
        .remediation("Ask for less at once; the operator can raise limits.memory_mib of the pack.")
        .context("limit_bytes", limits.memory),
        (Some(Exceeded::Table), _) => ToolError::new(
            "TABLE_LIMIT",
            format!("pack `{pack}` grew a table past its limit"),
        ),
        (_, StopReason::Handles) => ToolError::new(
            "HANDLE_LIMIT",
            format!("pack `{pack}` took more handles than it may hold"),
        ),
        (None, _) if deadline.is_narrowed() => ToolError::new(
            "TRANSACTION_LIMIT",
            format!("pack `{pack}` kept a transaction open for longer than it may; it was rolled back"),
        )
        .remediation("Do less in one transaction; the operator can raise limits.write_ms of the pack.")
        .context(
            "limit_ms",
            u64::try_from(limits.write.as_millis()).unwrap_or(u64::MAX),
        ),
        (None, StopReason::Interrupt) => late(call, changed),
        (None, StopReason::StackOverflow) => {
            ToolError::new("STACK_OVERFLOW", format!("pack `{pack}` recursed too deeply"))
                .remediation("Send flatter arguments, or report the case to the pack's author.")
        }
        _ if deadline.is_over() => late(call, changed),
        _ => ToolError::new("GUEST_TRAPPED", format!("pack `{pack}` crashed; {changed}"))
            .remediation("Report the operation's id to the pack's author; the host's log has the trace."),
    };
    err.context("pack", pack)
}

/// Effects of a call that stay although it was stopped.
#[derive(Debug, Clone, Copy)]
pub(super) enum Changed {
    /// None: all is rolled back.
    Nothing,
    /// Transactions that a `run` call committed, and whatever its programs did.
    Committed(u32),
}

impl Changed {
    fn by(call: &GuestCall, state: &CallState) -> Changed {
        match call.effect {
            Effect::Run => Changed::Committed(state.commits),
            Effect::Read | Effect::Write => Changed::Nothing,
        }
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Changed::Nothing => f.write_str("nothing was changed"),
            Changed::Committed(0) => {
                f.write_str("it stored nothing, but a program that it ran may have changed files")
            }
            Changed::Committed(commits) => write!(
                f,
                "what it had committed by then ({commits} transactions) and what its programs did stays"
            ),
        }
    }
}

fn late(call: &GuestCall, changed: Changed) -> ToolError {
    ToolError::new(
        "DEADLINE_EXCEEDED",
        format!("the call ran out of time; {changed}"),
    )
    .remediation(match &call.body {
        Body::Guest(_) if call.ends_with_envelope => {
            "The time of the call's envelope is over. Report to your owner what was reached, and ask for an envelope with more time."
        }
        Body::Guest(_) => "Ask for less at once; the operator can raise the pack's time limits.",
        Body::Core(_) => "Ask for less at once.",
    })
    .context(
        "limit_ms",
        u64::try_from(call.time.as_millis()).unwrap_or(u64::MAX),
    )
}

pub(super) fn cancelled(call: &GuestCall, changed: Changed) -> ToolError {
    let reason = call.cancel.reason();
    let why = reason.map_or("the caller gave the call up", |reason| reason.message.as_str());
    let mut err =
        ToolError::new("CANCELLED", format!("{why}; {changed}")).context("tool", call.tool.as_str());
    if let Changed::Committed(_) = changed {
        err = err.remediation("Look at what the call was to change before you call it again.");
    }
    match reason {
        Some(reason) => err.context("cause", reason.code),
        None => err,
    }
}

fn read_error(said: wit::ToolError, pack: &Pack) -> ToolError {
    let context = text::clean_values(serde_json::from_str(&said.context).unwrap_or_default());
    ToolError {
        code: text::code(&said.code),
        message: line(&said.message),
        remediation: line(&said.remediation),
        blockers: said
            .blockers
            .into_iter()
            .take(MAX_BLOCKERS)
            .map(|blocker| Blocker {
                code: text::code(&blocker.code),
                message: line(&blocker.message),
                field: blocker.field.map(|field| line(&field)),
                next_call: blocker.next_call.and_then(next_call),
            })
            .collect(),
        context,
        next_call: said.next_call.and_then(next_call),
        asking: said
            .asking
            .and_then(|asking| elicit::read(asking, &pack.granted))
            .map(Box::new),
    }
}

fn next_call(said: shared::NextCall) -> Option<NextCall> {
    let arguments: serde_json::Map<_, _> = serde_json::from_str(&said.arguments).ok()?;
    // Whoever runs it should see all of it.
    (!text::hides_in(&arguments)).then(|| NextCall {
        arguments,
        tool: line(&said.tool),
    })
}

fn line(said: &str) -> String {
    text::clean(text::cut(said, MAX_TEXT))
}
