//! State in the store of one call.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::clock::Clock;
use tollgate_core::deadline::Deadline;
use tollgate_core::effect::Effect;
use tollgate_store::artifacts::CallArtifacts;
use tollgate_store::storage::{Namespace, Session};
use wasmtime::component::ResourceTable;
use wasmtime::{Store, UpdateDeadline};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use super::engine::Sandbox;
use super::limits::{self, Exceeded, Limiter, Limits};
use super::output::Output;
use crate::annotations::Annotations;
use crate::facts::{Facts, Transactions};
use crate::process::Launcher;
use crate::progress::Progress;
use crate::side_effects::SideEffects;
use crate::view::prefetch::Prefetcher;
use crate::workspaces::{Access, DeferredWrite};

/// State of one call: its component, its session on the database, and its limits.
pub struct CallState {
    /// Tables that the call may access.
    pub namespace: Namespace,
    /// Facts about the call.
    pub facts: Facts,
    /// Session, borrowed from the worker for the call.
    pub session: Box<Session>,
    /// Deadline of the call.
    pub deadline: Deadline,
    /// Time and ids.
    pub clock: Arc<dyn Clock>,
    /// Transactions around the call's statements.
    pub transactions: Transactions,
    /// Number of transactions that a `run` call has committed. They persist whatever the call's outcome.
    pub commits: u32,
    /// Side effects that the call has begun.
    pub side_effects: SideEffects,
    /// Time limit of such a transaction.
    pub transaction_time: Duration,
    /// Additions to the operation's record.
    pub annotations: Annotations,
    /// Units of named budgets that a `write` call has reserved.
    pub held: BTreeMap<String, i64>,
    /// Effect of the tool.
    pub effect: Effect,
    /// Workspaces and programs that the call may use.
    pub access: Arc<Access>,
    /// Starts programs.
    pub launcher: Arc<Launcher>,
    /// Reports progress to the client.
    pub progress: Progress,
    /// Files to write after the commit.
    pub deferred_writes: Vec<DeferredWrite>,
    /// Prefetched files.
    pub prefetcher: Prefetcher,
    /// Logs and other artifacts of the call.
    pub artifacts: CallArtifacts,
    /// Resources that the guest holds.
    pub table: ResourceTable,
    wasi: WasiCtx,
    limiter: Limiter,
    output: Output,
}

/// Rights and resources of a call.
pub struct Setup {
    /// Tables that the call may access.
    pub namespace: Namespace,
    /// Deadline of the call.
    pub deadline: Deadline,
    /// Time and ids.
    pub clock: Arc<dyn Clock>,
    /// Transactions around the call's statements.
    pub transactions: Transactions,
    /// Facts about the call.
    pub facts: Facts,
    /// Effect of the tool.
    pub effect: Effect,
    /// Workspaces and programs that the call may use.
    pub access: Arc<Access>,
    /// Starts programs.
    pub launcher: Arc<Launcher>,
    /// Reports progress to the client.
    pub progress: Progress,
    /// Logs and other artifacts of the call.
    pub artifacts: CallArtifacts,
}

impl CallState {
    /// State of a call that is about to start.
    pub fn new(setup: Setup, session: Box<Session>, limits: &Limits) -> CallState {
        let (wasi, output) = SPARE_CONTEXTS.with_borrow_mut(Vec::pop).unwrap_or_else(|| {
            let output = Output::default();
            (wasi(&output), output)
        });
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits::HANDLES);
        CallState {
            facts: setup.facts,
            annotations: Annotations::default(),
            held: BTreeMap::new(),
            namespace: setup.namespace,
            session,
            deadline: setup.deadline,
            clock: setup.clock,
            transactions: setup.transactions,
            commits: 0,
            side_effects: SideEffects::default(),
            transaction_time: limits.write,
            effect: setup.effect,
            access: setup.access,
            launcher: setup.launcher,
            progress: setup.progress,
            deferred_writes: Vec::new(),
            prefetcher: Prefetcher::default(),
            artifacts: setup.artifacts,
            table,
            wasi,
            limiter: Limiter::new(limits),
            output,
        }
    }

    /// Store with this state, its limits and its deadline.
    pub fn into_store(self, sandbox: &Sandbox) -> Store<CallState> {
        let mut store = Store::new(sandbox.engine(), self);
        store.limiter(|state| &mut state.limiter);
        arm(&mut store);
        store
    }

    /// Assigns a store with a pooled instance to a call. Returns the session that stood in until now.
    pub fn lend(
        store: &mut Store<CallState>,
        facts: Facts,
        deadline: Deadline,
        session: Box<Session>,
    ) -> Box<Session> {
        let state = store.data_mut();
        state.facts = facts;
        state.deadline = deadline;
        let stand_in = std::mem::replace(&mut state.session, session);
        arm(store);
        stand_in
    }

    /// Assigns a store to a call that has more state than a judgement. State of the component stays the same.
    pub fn lend_whole(store: &mut Store<CallState>, setup: Setup, session: Box<Session>) -> Box<Session> {
        let state = store.data_mut();
        state.transactions = setup.transactions;
        state.side_effects = SideEffects::default();
        state.effect = setup.effect;
        state.progress = setup.progress;
        state.artifacts = setup.artifacts;
        CallState::lend(store, setup.facts, setup.deadline, session)
    }

    /// Ends the call of such a store, like [`finish`](CallState::finish), and leaves the stand-in session in it. The
    /// call's other state is dropped now, not together with the store.
    pub fn give_back(&mut self, stand_in: Box<Session>) -> Box<Session> {
        self.tell_output();
        self.facts = Facts::default();
        self.annotations = Annotations::default();
        self.progress = Progress::default();
        self.artifacts = CallArtifacts::default();
        self.deferred_writes = Vec::new();
        self.prefetcher = Prefetcher::default();
        self.table = ResourceTable::new();
        let session = std::mem::replace(&mut self.session, stand_in);
        session.leave();
        session
    }

    /// Limit that the guest exceeded, if that is why it trapped.
    pub fn exceeded(&self) -> Option<Exceeded> {
        self.limiter.exceeded
    }

    /// Ends the call: logs the guest's output, and returns the session to the worker, outside the component's
    /// namespace.
    pub fn finish(self, succeeded: bool) -> Box<Session> {
        self.tell_output();
        if succeeded {
            SPARE_CONTEXTS.with_borrow_mut(|spare| {
                if spare.len() < MAX_SPARE {
                    spare.push((self.wasi, self.output));
                }
            });
        }
        self.session.leave();
        // The guest did not end it. The write lock is released before anything else.
        if self.transactions == Transactions::Open && self.session.in_transaction() {
            let _ = self.session.rollback();
        }
        self.session
    }

    /// Logs the guest's output.
    fn tell_output(&self) {
        let output = self.output.take();
        if !output.is_empty() {
            let text = tollgate_core::text::clean(&String::from_utf8_lossy(&output));
            tracing::debug!(pack = self.namespace.pack(), output = text, "a component printed");
        }
        let left_out = self.progress.left_out();
        if left_out > 0 {
            tracing::warn!(
                pack = self.namespace.pack(),
                "the call logged too much; dropped lines: {left_out}"
            );
        }
    }
}

/// Sets a store's limits and its deadline.
fn arm(store: &mut Store<CallState>) {
    let deadline = store.data().deadline.clone();
    store.set_hostcall_fuel(limits::HOSTCALL_FUEL);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(move |_| {
        Ok(if deadline.is_over() {
            UpdateDeadline::Interrupt
        } else {
            UpdateDeadline::Continue(1)
        })
    });
}

/// Most WASI contexts that a thread keeps for reuse.
const MAX_SPARE: usize = 16;

thread_local! {
    /// WASI contexts of earlier calls on this thread. They contain nothing of the guest: no files, no network, an
    /// emptied output, and the host's own source of randomness, which is slow to create.
    static SPARE_CONTEXTS: RefCell<Vec<(WasiCtx, Output)>> = const { RefCell::new(Vec::new()) };
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

/// WASI context for a component: no arguments, environment, directories or network. The allocator of the built-in
/// components relies on the empty environment.
fn wasi(output: &Output) -> WasiCtx {
    WasiCtxBuilder::new()
        .stdout(output.clone())
        .stderr(output.clone())
        .max_random_size(limits::RANDOM_BYTES)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .build()
}
