//! The gate: the single path that every call takes, over any transport.
//!
//! `find tool → check arguments → run in its lane → ledger row → commit → reply`. A write and its row are committed
//! together; a read's row follows on the writer's queue.

mod admission;
mod approval;
mod approvers;
mod arguments;
mod automatic;
mod backlog;
mod batch;
mod call;
mod callable;
mod catch_up;
mod consent;
pub mod core_tools;
mod dispatch;
mod edits;
mod elicit;
mod elsewhere;
mod ended;
mod envelope_refusal;
mod envelope_settings;
mod evaluation;
mod executors;
mod failure;
mod fields;
mod generation;
mod guest;
mod guest_call;
mod intake;
mod job;
mod left;
mod looks;
mod maintenance;
mod mutation;
mod others;
mod outstanding;
mod pass;
mod pending_operation;
mod permits;
mod policy;
mod pool;
mod prepare;
mod programs;
mod projector;
mod queue;
mod reader_outcome;
mod reconcile;
mod reply;
mod runners;
mod runtime;
mod seen;
mod settled;
mod slots;
mod task_slot;
mod tasks;
pub mod telemetry;
mod told;
mod turns;
mod watched;
mod window_use;
mod windows;
mod workspace_name;
mod writer;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arc_swap::ArcSwap;
use tokio::sync::{broadcast, watch};
use tokio_util::task::TaskTracker;
use tollgate_components::catalog::Catalog;
use tollgate_core::clock::Clock;
use tollgate_core::deadline::{Cancel, Reason};
use tollgate_core::effect::Effect;
use tollgate_core::meter::{Figures, Vitals};
use tollgate_store::artifacts::ArtifactStore;
use tollgate_store::liveness::Host;
use tollgate_store::storage::Database;

use crate::telemetry::{Method, Spans};

use admission::Connections;
use executors::Executors;
use generation::Reloads;
use others::Others;
use outstanding::Outstanding;
use runtime::Runtime;
use slots::HostSlots;
use tasks::Tasks;

pub use approvers::ApprovalSettings;
pub use call::{Answers, Asked, Call, CallOutcome, Caller, UnknownTool};
pub use consent::{Consent, Pending};
pub use elicit::misfit;
pub use envelope_settings::{By, EnvelopeSettings, Require, Window};
pub use generation::Generation;
pub use left::Left;
pub use maintenance::Maintenance;
pub use mutation::Mutation;
pub use pass::REFUSED_BEFORE_POLICIES;
pub use policy::{ChainVerdicts, Trial};
pub use reply::Reply;
pub use runtime::CallServices;
pub use task_slot::Tasking;
pub use tasks::{Again, Attended, Began, CanAnswer, TASKS_REQUIRED, TaskReply, yes_field};

/// Name of the key that seals questions to clients' users: a file in the data directory, or a secret in the database
/// on a server.
const CONSENT_KEY: &str = "consent.key";
/// Changes that are buffered for a listener before it is told that it missed some.
const BUFFERED_CHANGES: usize = 256;

/// The gate over one data directory.
pub struct Gate {
    current: ArcSwap<Generation>,
    /// Notified each time the generation is replaced.
    replaced: watch::Sender<()>,
    clock: Arc<dyn Clock>,
    connections: Connections,
    /// Held while an envelope is opened automatically.
    opening: tokio::sync::Mutex<()>,
    stopping: Cancel,
    leaving: Cancel,
    /// Calls that have not been answered yet.
    calls: TaskTracker,
    /// Unfinished calls, by identity.
    outstanding: Outstanding,
    executors: Executors,
    /// Slots of `read` calls.
    slots: HostSlots,
    artifacts: Option<Arc<ArtifactStore>>,
    /// Key that seals questions to clients' users.
    consent_key: [u8; 32],
    reloads: Reloads,
    /// Calls that became tasks.
    tasks: Tasks,
    /// Start time of the metrics.
    opened_ms: i64,
    /// Sender of spans, if tracing is on.
    spans: Option<Spans>,
    /// Packs of calls that may have changed something.
    changes: broadcast::Sender<Arc<str>>,
    /// Watch for changes by hosts on other machines.
    _others: Option<Others>,
    /// Session id that packs see for this process.
    session_id: String,
    /// Dropped last: queued rows are written before this process counts as gone.
    host: Arc<Host>,
}

impl Gate {
    /// Opens the gate of a host that holds its lock.
    pub fn open(
        generation: Generation,
        services: CallServices,
        database: &Database,
        host: Host,
        maintenance: Maintenance,
    ) -> anyhow::Result<Gate> {
        let host = Arc::new(host);
        let artifacts = maintenance.artifacts.clone();
        let clock = Arc::clone(&services.clock);
        let runtime = Runtime {
            services,
            host: Arc::clone(&host),
            artifacts: maintenance.artifacts.clone(),
            records_reads: maintenance.settings.reads,
        };
        let changes = broadcast::Sender::new(BUFFERED_CHANGES);
        host.note_workspaces(generation.workspaces.names());
        let consent_key = match database.shared_secret(CONSENT_KEY)? {
            Some(shared) => shared,
            None => maintenance.data.secret(CONSENT_KEY)?,
        };
        Ok(Gate {
            consent_key,
            current: ArcSwap::from_pointee(generation),
            replaced: watch::Sender::new(()),
            connections: Connections::default(),
            opening: tokio::sync::Mutex::default(),
            stopping: Cancel::default(),
            leaving: Cancel::default(),
            calls: TaskTracker::new(),
            outstanding: Outstanding::default(),
            slots: HostSlots::default(),
            executors: Executors::open(database, runtime, Arc::new(maintenance))?,
            session_id: uuid::Uuid::new_v4().to_string(),
            opened_ms: clock.now_ms(),
            spans: None,
            clock,
            artifacts,
            reloads: Reloads::default(),
            tasks: Tasks::default(),
            _others: Others::listen(database, host.id(), changes.clone()),
            changes,
            host,
        })
    }

    /// Generation for calls that arrive now.
    pub fn generation(&self) -> Arc<Generation> {
        self.current.load_full()
    }

    /// Replaces the generation for later calls. Calls in progress keep the one they began with.
    pub fn replace(&self, generation: Generation) {
        self.complete(generation);
        self.reloads.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// Replaces the generation by the same one with the components that were still loading.
    pub fn complete(&self, generation: Generation) {
        self.executors.know_heads(generation.head_of());
        self.host.note_workspaces(generation.workspaces.names());
        self.current.store(Arc::new(generation));
        self.replaced.send_replace(());
    }

    /// Counts a reload that failed.
    pub fn keep(&self) {
        self.reloads.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Catalog of the current generation.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.current.load().catalog)
    }

    /// All counters.
    pub fn figures(&self) -> Figures {
        let times = (self.opened_ms, self.clock.now_ms());
        generation::figures(&self.current.load(), &self.reloads, self.spans.as_ref(), times)
    }

    /// Current gauges.
    pub async fn vitals(&self) -> Vitals {
        let catalog = self.catalog();
        let policies = catalog.policies();
        let ready = policies.members().iter().filter_map(|member| {
            let policy = member.policy.as_ref().ok()?;
            let ready = u64::try_from(policy.pool().ready()).unwrap_or(u64::MAX);
            Some((member.name.clone(), ready))
        });
        Vitals {
            denials: policies.denials(),
            instances: ready.collect(),
            writer_queue: u64::try_from(self.executors.queued()).unwrap_or(u64::MAX),
            open_tasks: u64::try_from(self.open_tasks()).unwrap_or(u64::MAX),
            totals: self.executors.totals().await,
        }
    }

    /// Makes every later call leave a span in a queue.
    pub fn trace(&mut self) -> telemetry::Queue {
        let (spans, queue) = telemetry::queue();
        self.spans = Some(spans);
        queue
    }

    /// Id of this process in the ledger.
    pub fn host_id(&self) -> &str {
        self.host.id()
    }

    /// Key that seals questions to clients' users. All hosts on the data directory share it.
    pub fn consent_key(&self) -> &[u8; 32] {
        &self.consent_key
    }

    /// Names of packs, sent after each successful call of theirs that writes or runs.
    pub fn changes(&self) -> broadcast::Receiver<Arc<str>> {
        self.changes.subscribe()
    }

    /// Creates a connection id.
    pub fn new_connection(&self) -> String {
        self.clock.new_id("con")
    }

    /// Runs or refuses one call. Either way the ledger gets a row.
    pub async fn call(&self, mut call: Call) -> Result<CallOutcome, UnknownTool> {
        let generation = self.prepared(&mut call).await;
        match generation.catalog.find(&call.tool) {
            Some(tool) => {
                let tool = dispatch::follow(&generation.catalog, tool, &mut call);
                let tool = self.follow_approval(&generation, tool, &mut call).await;
                Ok(self.pass(&generation, tool, call, Method::Tool).await)
            }
            None => Err(UnknownTool {
                nearest: generation.catalog.nearest(&call.tool).map(str::to_owned),
                name: call.tool,
                preparing: generation.catalog.preparing().packs.clone(),
            }),
        }
    }

    /// Calls a tool that reads and belongs to one of these owners, for a component that named it, because the caller
    /// did not choose the tool. `None` if there is no such tool now, even if there was one when the component was
    /// loaded.
    pub async fn look_up(&self, mut call: Call, owners: [&str; 2]) -> Option<CallOutcome> {
        let generation = self.prepared(&mut call).await;
        let tool = generation.catalog.find(&call.tool)?;
        let is_it = tool.spec.effect == Effect::Read && owners.contains(&tool.pack_name());
        if !is_it || tool.is_discovery() {
            return None;
        }
        Some(self.pass(&generation, tool, call, Method::Tool).await)
    }

    /// Gets a prompt, which is judged and recorded like a call that reads. `None` if there is no prompt with that
    /// name.
    pub async fn prompt(&self, mut call: Call) -> Option<CallOutcome> {
        let generation = self.prepared(&mut call).await;
        let prompt = generation.catalog.find_prompt(&call.tool)?;
        Some(self.pass(&generation, prompt, call, Method::Prompt).await)
    }

    /// Marks open work of a connection that ended as interrupted.
    pub async fn end_connection(&self, connection: &str) {
        self.connections.ended(connection);
        self.executors.unwatch(connection);
        self.executors.interrupt(Some(connection)).await;
    }

    /// Marks open work of a connection as interrupted, without waiting. A connection that never used an envelope, and
    /// that no component watches, leaves nothing. Connections that end with the host are left to
    /// [`end_connections`](Gate::end_connections).
    pub fn leave_connection(&self, connection: &str) {
        let is_watched = self.executors.unwatch(connection);
        if (self.connections.ended(connection) || is_watched) && !self.calls.is_closed() {
            self.executors.interrupt_soon(connection);
        }
    }

    /// Marks open work of all connections as interrupted, after the last call.
    pub async fn end_connections(&self) {
        self.executors.interrupt(None).await;
        self.tasks.end_waits();
        self.executors.sign_head();
    }

    /// Signs the current head of the ledger, as an orderly stop does.
    pub fn sign_head(&self) {
        self.executors.sign_head();
    }

    /// Waits until every call is answered.
    pub async fn answered(&self) {
        self.calls.close();
        self.calls.wait().await;
    }

    /// Checks that the writer works. Waits until all queued jobs are on disk.
    pub async fn is_working(&self) -> bool {
        !self.host.is_cut_off() && self.executors.is_writing().await
    }

    /// Ends all `run` calls. Their programs' processes are killed, and the calls are recorded as cancelled.
    pub fn stop(&self) {
        self.stopping.cancel_because(Reason {
            code: "HOST_STOPPED",
            message: "the host was stopped".to_owned(),
        });
    }

    /// Prevents further calls from beginning, because the only client is gone. Waiting calls are recorded as
    /// cancelled.
    pub fn leave(&self) {
        self.leaving.cancel_because(Reason {
            code: "DISCONNECTED",
            message: "the client disconnected".to_owned(),
        });
    }

    /// Waits until `run` calls are over, every queued row is on disk, and files of committed calls are written. For
    /// the end of the process.
    pub async fn flush(&self) {
        self.executors.flush().await;
    }
}
