//! The gate: the one path that every call takes, whichever way it came in.
//!
//! `find tool → check arguments → run in its lane → ledger row → commit → reply`. A write and its
//! row commit together; a read's row follows on the writer's queue.

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
pub mod core_tools;
mod dispatch;
mod edits;
mod elicit;
mod executors;
mod failure;
mod fields;
mod generation;
mod guest;
mod intake;
mod left;
mod looks;
mod maintenance;
mod mutation;
mod outstanding;
mod pending_operation;
mod permits;
mod policy;
mod pool;
mod prepare;
mod programs;
mod projector;
mod queue;
mod reconcile;
mod reply;
mod runners;
mod settled;
mod slots;
mod tasks;
pub mod telemetry;
mod turns;
mod windows;
mod writer;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arc_swap::ArcSwap;
use serde_json::Value;
use tokio::sync::{broadcast, watch};
use tokio_util::task::TaskTracker;
use tollgate_components::packs::{Body, Catalog, ToolEntry};
use tollgate_core::clock::Clock;
use tollgate_core::deadline::{Cancel, Reason};
use tollgate_core::effect::Effect;
use tollgate_core::meter::{Figures, Vitals};
use tollgate_sandbox::bindings::exports::tollgate::host::pack::Context;
use tollgate_sandbox::process::Launcher;
use tollgate_sandbox::{Limits, Sandbox};
use tollgate_sdk::ToolError;
use tollgate_store::artifacts::ArtifactStore;
use tollgate_store::liveness::Host;
use tollgate_store::storage::{Database, PolicyRow};

use crate::core_tools::EnvelopeChange;
use crate::telemetry::{Method, Spans};

use admission::Connections;
use callable::Callable;
use executors::{Executors, Judged};
use generation::Reloads;
use guest::{GuestCall, Runtime};
use looks::Watch;
use outstanding::Outstanding;
use pending_operation::{PendingOperation, Recording, content};
use policy::Judging;
use settled::{Settled, answer, name_envelope};
use slots::HostSlots;
use tasks::Tasks;

pub use approval::{Consent, Pending};
pub use approvers::ApprovalSettings;
pub use call::{Answers, Asked, Call, Caller, Outcome, UnknownTool};
pub use elicit::misfit;
pub use generation::Generation;
pub use left::Left;
pub use maintenance::Maintenance;
pub use mutation::Mutation;
pub use policy::{Heard, Trial};
pub use reply::Reply;
pub use tasks::{Again, Attended, Began, CanAnswer, TASKS_REQUIRED, TaskReply, Tasking, yes_field};
pub use windows::{By, Window};

/// File of the key for questions to clients' users, in the data directory.
const CONSENT_KEY: &str = "consent.key";
/// Changes that wait for a listener before it is told that it missed some.
const CHANGES: usize = 256;

/// Equipment of calls.
#[derive(Clone)]
pub struct Equipment {
    /// The engine.
    pub sandbox: Arc<Sandbox>,
    /// Starts programs.
    pub launcher: Arc<Launcher>,
    /// Time and ids.
    pub clock: Arc<dyn Clock>,
}

/// The gate over one data directory.
pub struct Gate {
    current: ArcSwap<Generation>,
    /// Told each time another takes its place.
    replaced: watch::Sender<()>,
    clock: Arc<dyn Clock>,
    connections: Connections,
    /// Held while an envelope is opened that nobody asked for.
    opening: tokio::sync::Mutex<()>,
    stopping: Cancel,
    leaving: Cancel,
    /// Calls that have not been answered yet.
    calls: TaskTracker,
    /// Calls that are not over, by identity.
    outstanding: Outstanding,
    lanes: Executors,
    /// Slots of calls that read.
    slots: HostSlots,
    artifacts: Option<Arc<ArtifactStore>>,
    /// Seals what clients' users are asked.
    consent_key: [u8; 32],
    reloads: Reloads,
    /// Calls that outlive their clients' patience.
    tasks: Tasks,
    /// Time at which counting began.
    opened_ms: i64,
    /// Receiver of spans, if somebody wants them.
    spans: Option<Spans>,
    /// The packs of calls that may have changed something.
    changes: broadcast::Sender<Arc<str>>,
    /// This process, as packs know it.
    session_id: String,
    /// Let go last: what is queued is written before this process counts as gone.
    host: Arc<Host>,
}

impl Gate {
    /// Opens the gate of a host that holds its lock.
    pub fn open(
        generation: Generation,
        equipment: Equipment,
        database: &Database,
        host: Host,
        keeping: Maintenance,
    ) -> anyhow::Result<Gate> {
        let host = Arc::new(host);
        let artifacts = keeping.artifacts.clone();
        let clock = Arc::clone(&equipment.clock);
        let runtime = Runtime {
            equipment,
            host: Arc::clone(&host),
            artifacts: keeping.artifacts.clone(),
            records_reads: keeping.settings.reads,
        };
        let consent_key = keeping.data.secret(CONSENT_KEY)?;
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
            lanes: Executors::open(database, runtime, Arc::new(keeping))?,
            session_id: uuid::Uuid::new_v4().to_string(),
            opened_ms: clock.now_ms(),
            spans: None,
            clock,
            artifacts,
            reloads: Reloads::default(),
            tasks: Tasks::default(),
            changes: broadcast::Sender::new(CHANGES),
            host,
        })
    }

    /// Generation by which calls that come now are judged and run.
    pub fn generation(&self) -> Arc<Generation> {
        self.current.load_full()
    }

    /// Puts another in its place, for calls that come from now on. Those that are under way end with
    /// what they began with.
    pub fn replace(&self, generation: Generation) {
        self.complete(generation);
        self.reloads.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// Puts the same in its place with what was missing.
    pub fn complete(&self, generation: Generation) {
        self.lanes.know_heads(generation.head_of());
        self.current.store(Arc::new(generation));
        self.replaced.send_replace(());
    }

    /// Notes that another was wanted and could not be had.
    pub fn keep(&self) {
        self.reloads.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// The packs behind the gate.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.current.load().catalog)
    }

    /// Everything that is counted.
    pub fn figures(&self) -> Figures {
        let times = (self.opened_ms, self.clock.now_ms());
        generation::figures(&self.current.load(), &self.reloads, self.spans.as_ref(), times)
    }

    /// Figures of the moment.
    pub async fn vitals(&self) -> Vitals {
        let catalog = self.catalog();
        let policies = catalog.policies();
        let ready = policies.members().iter().filter_map(|member| {
            let policy = member.policy.as_ref().ok()?;
            let ready = u64::try_from(policy.spares().ready()).unwrap_or(u64::MAX);
            Some((member.name.clone(), ready))
        });
        Vitals {
            denials: policies.denials(),
            instances: ready.collect(),
            writer_queue: u64::try_from(self.lanes.queued()).unwrap_or(u64::MAX),
            open_tasks: u64::try_from(self.open_tasks()).unwrap_or(u64::MAX),
            totals: self.lanes.totals().await,
        }
    }

    /// Has every call from now on leave a span in a queue.
    pub fn trace(&mut self) -> telemetry::Queue {
        let (spans, queue) = telemetry::queue();
        self.spans = Some(spans);
        queue
    }

    /// This process, as the ledger names it.
    pub fn host_id(&self) -> &str {
        self.host.id()
    }

    /// Seals what clients' users are asked. Every host on the data directory has the same.
    pub fn consent_key(&self) -> &[u8; 32] {
        &self.consent_key
    }

    /// The names of packs, each time a call of theirs that writes or runs went well.
    pub fn changes(&self) -> broadcast::Receiver<Arc<str>> {
        self.changes.subscribe()
    }

    /// A new connection's id.
    pub fn new_connection(&self) -> String {
        self.clock.new_id("con")
    }

    /// Lets one call through, or refuses it. Either way the ledger gets its row.
    pub async fn call(&self, mut call: Call) -> Result<Outcome, UnknownTool> {
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

    /// Calls a tool that reads and is one of these owners', for a component that named it: whoever asks did not
    /// choose it. `None` if there is none now, whatever there was when the component was loaded.
    pub async fn look_up(&self, mut call: Call, owners: [&str; 2]) -> Option<Outcome> {
        let generation = self.prepared(&mut call).await;
        let tool = generation.catalog.find(&call.tool)?;
        let is_it = tool.spec.effect == Effect::Read && owners.contains(&tool.pack_name());
        if !is_it || tool.is_discovery() {
            return None;
        }
        Some(self.pass(&generation, tool, call, Method::Tool).await)
    }

    /// Asks for a prompt, which is judged and recorded like a call that reads. `None` if there is none
    /// of that name.
    pub async fn prompt(&self, mut call: Call) -> Option<Outcome> {
        let generation = self.prepared(&mut call).await;
        let prompt = generation.catalog.find_prompt(&call.tool)?;
        Some(self.pass(&generation, prompt, call, Method::Prompt).await)
    }

    /// The one path.
    async fn pass(
        &self,
        generation: &Arc<Generation>,
        tool: &Arc<ToolEntry>,
        mut call: Call,
        method: Method,
    ) -> Outcome {
        let _unanswered = self.calls.token();
        // Without a connection that lasts there is nothing to remember, and nobody to forget it.
        let connection = call.caller.stateful.then(|| call.caller.connection.clone());
        let consent = call.answers.consent.take();
        let calls = callable::calls_of(call.caller.identity.as_ref());
        let parent = call.caller.span;
        let names_envelope = admission::names_envelope(&call);
        let unready = prepare::code(generation, tool, &mut call).await.err();
        let unready = match unready {
            None => self.open_automatically(generation, tool, &call).await.err(),
            unready => unready,
        };
        let (draft, admitted) = self.admit(generation, tool, call);
        // What is wrong with the call itself is said first.
        let admitted = admitted.and_then(|guest| unready.map_or(Ok(guest), Err));
        let spans = self.spans.as_ref();
        let span = spans.map(|spans| spans.begin(parent, method, &draft.operation));
        let op_id = draft.operation.op_id.clone();
        let envelope_id = draft.operation.envelope_id.clone();
        let started = draft.started;
        let (settled, recording) = match admitted {
            Err(refusal) => {
                let mut draft = draft;
                // Nobody has judged what it says.
                if generation.catalog.policies().judges_words_of(tool) {
                    draft.forget_words();
                }
                self.refuse(draft, refusal).await
            }
            Ok(guest) => self.let_through_seen(guest, draft, consent).await,
        };
        let artifacts = recording.artifacts.clone();
        self.store_content(recording, &settled.result).await;
        if let Some(connection) = connection {
            if settled.standing.is_some() {
                self.connections.touched(&connection);
                if tool.spec.effect == Effect::Read {
                    self.join_by_reading(&connection, envelope_id.as_deref(), &settled)
                        .await;
                }
            }
            self.follow_envelopes(tool, &connection, &settled);
        }
        let duration = started.elapsed();
        tool.meter.count(settled.refusal().is_none(), duration);
        if let (Some(spans), Some(span)) = (spans, span) {
            spans.leave(span.ended(duration, settled.refusal(), self.clock.now_ms()));
        }
        if tool.spec.effect != Effect::Read && settled.refusal().is_none() {
            self.announce(tool);
        }
        let callable = Callable::new(&generation.catalog, calls);
        let mut result = answer(settled.result).map_err(|refusal| {
            let refusal = match names_envelope {
                true => refusal,
                false => admission::of_connection(refusal, envelope_id.as_deref()),
            };
            callable.refusal(name_envelope(refusal, envelope_id.as_deref()))
        });
        let asked = settled.question.map(Asked::Policy).or_else(|| {
            let asking = result.as_mut().err()?.asking.take()?;
            Some(Asked::Tool(*asking))
        });
        Outcome {
            op_id,
            duration,
            envelope_id,
            left: settled.standing.and_then(|standing| {
                let (left, is_low) = Left::of(&standing, &settled.budgets, self.clock.boot_ms());
                is_low.then_some(left)
            }),
            standing: settled.standing,
            budgets: settled.budgets,
            mutation: settled.mutation,
            stale: settled.stale,
            not_kept: artifacts.is_short().then(|| self.no_room()),
            asked,
            approvals: settled.approvals,
            is_overtaken: settled.is_overtaken,
            lines: settled.lines,
            result,
        }
    }

    /// Lets a call through that may write files, with a look at the work tree before and after. A call that writes goes
    /// from its judges to the writer at once, which waits for nothing.
    async fn let_through_seen(
        &self,
        mut guest: GuestCall,
        mut draft: PendingOperation,
        consent: Option<Consent>,
    ) -> (Settled, Recording) {
        if guest.effect != Effect::Write || draft.watch.is_none() {
            return self.let_through(guest, draft, consent).await;
        }
        draft = self.lanes.look_before(draft).await;
        guest.seen = draft.seen.clone();
        guest.closing.clone_from(&draft.closing);
        let looked = draft.clone();
        let (settled, recording) = self.let_through(guest, draft, consent).await;
        let wrote = settled
            .result
            .as_ref()
            .is_ok_and(|reply| !reply.deferred_writes.is_empty());
        if wrote {
            self.lanes.look_after_files(looked).await;
        }
        (settled, recording)
    }

    /// Judges a call if somebody judges it, and runs it in its lane. Returns what is kept of it as well,
    /// which a policy may have changed.
    async fn let_through(
        &self,
        mut guest: GuestCall,
        mut draft: PendingOperation,
        consent: Option<Consent>,
    ) -> (Settled, Recording) {
        while guest.effect == Effect::Read || guest.judging.is_some() {
            match self.lanes.read(guest, draft).await {
                Judged::Settled(settled, recording) => return (settled, recording),
                Judged::Unrecorded(draft, settled, recording) => {
                    return (self.lanes.settle(*draft, *settled).await, recording);
                }
                Judged::Denied(mut draft, refusal) => {
                    draft.forget_words();
                    return self.refuse(*draft, refusal).await;
                }
                Judged::Passed(judged, drafted) => (guest, draft) = (*judged, *drafted),
                Judged::Asked(judged, drafted, question) => {
                    (guest, draft) = (*judged, *drafted);
                    if let Err(pending) = approval::check(consent.as_ref(), &question, &mut draft) {
                        draft.forget_words();
                        let (mut refused, recording) = self.refuse(draft, question.otherwise).await;
                        refused.question = pending;
                        return (refused, recording);
                    }
                }
            }
            if guest.effect == Effect::Read && !draft.permits.is_empty() {
                return self.read_once(guest, draft).await;
            }
        }
        let recording = draft.recording.clone();
        let settled = match guest.effect {
            Effect::Run => self.lanes.run(guest, draft).await,
            Effect::Read | Effect::Write => self.lanes.write(guest, draft).await,
        };
        (settled, recording)
    }

    /// Runs a call that reads and takes something that counts. It has no commit of its own, so that is taken before it.
    async fn read_once(&self, guest: GuestCall, mut draft: PendingOperation) -> (Settled, Recording) {
        let permits = std::mem::take(&mut draft.permits);
        let op_id = draft.operation.op_id.clone();
        if let Err(refusal) = self.take_permits(&permits, &mut draft).await {
            let is_overtaken = refusal.code == permits::PERMIT_USED;
            let (mut refused, recording) = self.refuse(draft, refusal).await;
            refused.is_overtaken = is_overtaken;
            return (refused, recording);
        }
        let (settled, recording) = match self.lanes.read(guest, draft).await {
            Judged::Settled(settled, recording) => (settled, recording),
            Judged::Unrecorded(draft, settled, recording) => {
                (self.lanes.settle(*draft, *settled).await, recording)
            }
            Judged::Denied(draft, refusal) => self.refuse(*draft, refusal).await,
            // It was judged, and nobody judges it again.
            Judged::Passed(_, draft) | Judged::Asked(_, draft, _) => {
                let lost = ToolError::new("HOST_FAILED", "the host failed; nothing was run");
                self.refuse(*draft, lost).await
            }
        };
        if settled.refusal().is_some() {
            self.give_permits_back(&permits, op_id).await;
        } else if permits::has_units(&permits) {
            self.book_units(op_id).await;
        }
        (settled, recording)
    }

    /// Notes that a connection works in an envelope that another one may have opened, though its call only read.
    async fn join_by_reading(&self, connection: &str, envelope: Option<&str>, settled: &Settled) {
        let Some(envelope) = envelope.filter(|_| settled.refusal().is_none()) else {
            return;
        };
        if self.connections.joins(connection, envelope) {
            let user = (self.host.id(), connection);
            self.lanes
                .join_envelope(envelope, user, self.clock.now_ms())
                .await;
        }
    }

    async fn refuse(&self, draft: PendingOperation, refusal: ToolError) -> (Settled, Recording) {
        let recording = draft.recording.clone();
        let approvals = open_approvals(&draft);
        let mut refused = self.lanes.refuse(draft, refusal).await;
        refused.approvals = approvals;
        (refused, recording)
    }

    /// Marks what a connection left open as interrupted, now that it is over.
    pub async fn end_connection(&self, connection: &str) {
        self.connections.ended(connection);
        self.lanes.unwatch(connection);
        self.lanes.interrupt(Some(connection)).await;
    }

    /// The same for one that nobody waits for. A connection that never had to do with an envelope, and that no component
    /// asked about, leaves nothing. What connections leave that end with the host is for
    /// [`end_connections`](Gate::end_connections).
    pub fn leave_connection(&self, connection: &str) {
        let is_watched = self.lanes.unwatch(connection);
        if (self.connections.ended(connection) || is_watched) && !self.calls.is_closed() {
            self.lanes.interrupt_soon(connection);
        }
    }

    /// Marks what is still open of any connection as interrupted, now that no call comes any more.
    pub async fn end_connections(&self) {
        self.lanes.interrupt(None).await;
        self.tasks.end_waits();
        self.lanes.sign_head();
    }

    /// Waits until no call is unanswered.
    pub async fn answered(&self) {
        self.calls.close();
        self.calls.wait().await;
    }

    /// Checks that the writer works. Waits until everything that is queued now is on disk.
    pub async fn is_working(&self) -> bool {
        self.lanes.is_writing().await
    }

    /// Ends the calls that run things. Whatever came from their programs is killed, and they are recorded
    /// as cancelled.
    pub fn stop(&self) {
        self.stopping.cancel_because(Reason {
            code: "HOST_STOPPED",
            message: "the host was stopped".to_owned(),
        });
    }

    /// Lets no call begin any more, because the one client is gone. Those that wait are recorded as cancelled.
    pub fn leave(&self) {
        self.leaving.cancel_because(Reason {
            code: "DISCONNECTED",
            message: "the client went away".to_owned(),
        });
    }

    /// Waits until calls that run things are over, every row that was queued is on disk, and files that
    /// wait for a commit are written. For the end of the process.
    pub async fn flush(&self) {
        self.lanes.flush().await;
    }

    /// Stores the content that the call's row names, now that nobody waits for the writer.
    async fn store_content(&self, recording: Recording, result: &Result<Reply, ToolError>) {
        let result = recording.keeps_result().then(|| content(result).into_owned());
        let Recording {
            artifacts, arguments, ..
        } = recording;
        if arguments.is_none() && result.is_none() && !artifacts.has_given() {
            return;
        }
        let stored = tokio::task::spawn_blocking(move || {
            artifacts.store_given();
            if let Some((_, arguments)) = arguments {
                artifacts.store(arguments.as_bytes());
            }
            if let Some(result) = result {
                artifacts.store(result.as_bytes());
            }
        });
        let _ = stored.await;
    }

    /// Says that there is no room for more artifacts.
    fn no_room(&self) -> ToolError {
        let limit = self
            .artifacts
            .as_ref()
            .map_or(0, |store| store.settings().max_mib);
        ToolError::new(
            "ARTIFACTS_FULL",
            format!("artifacts of the call are not kept or not whole: there is twice as much as artifacts.max_mib = {limit} allows"),
        )
        .remediation("The call itself is done; do not repeat it. Room is made within seconds.")
        .context("limit_mib", limit)
    }

    /// Tells who listens that a call may have changed something.
    fn announce(&self, tool: &ToolEntry) {
        if self.changes.receiver_count() > 0 {
            // The last listener may just have gone.
            let _ = self.changes.send(Arc::from(tool.pack_name()));
        }
    }

    /// Remembers which envelope a connection opened or closed.
    fn follow_envelopes(&self, tool: &ToolEntry, connection: &str, settled: &Settled) {
        let (Body::Core(_), Ok(reply)) = (&tool.body, &settled.result) else {
            return;
        };
        let (follow, path): (fn(&Connections, &str, &str), _) =
            match core_tools::envelope_change(&tool.spec.name) {
                Some(EnvelopeChange::Opened(path)) => (Connections::opened, path),
                Some(EnvelopeChange::Closed(path)) => (Connections::closed, path),
                None => return,
            };
        let structured = Value::Object(reply.structured());
        if let Some(id) = structured.pointer(path).and_then(Value::as_str) {
            follow(&self.connections, connection, id);
        }
    }

    /// Checks what can be checked before any guest runs.
    fn admit(
        &self,
        generation: &Arc<Generation>,
        tool: &Arc<ToolEntry>,
        mut call: Call,
    ) -> (PendingOperation, Result<GuestCall, ToolError>) {
        let correlated = admission::correlate(
            tool,
            &mut call.arguments,
            call.envelope.take(),
            &call.caller,
            &self.connections,
            &generation.envelopes,
        );
        let mut arguments = arguments::normalised(tool, call.arguments);
        let mut text = arguments::text(&arguments);
        let envelope = correlated.as_ref().ok().cloned().flatten();
        let mut draft = self.draft(tool, &arguments, &call.caller, envelope);
        let takes_tasks = tasks::check(tool, &call.task);
        draft.task = call.task.into_slot();
        if let Some(task) = &draft.task {
            task.drafted(&draft.operation);
        }
        let checked = admission::first(&call.caller)
            .and_then(|()| admission::may_call(tool, &call.caller))
            .and(correlated)
            .and_then(|_| {
                takes_tasks?;
                arguments::check(tool, &arguments, &text, &call.malformed)
                    .and_then(|()| batch::find(&generation.catalog, tool, &mut arguments))
                    .map_err(|refusal| {
                        admission::describing(refusal, tool, &generation.catalog, &call.caller)
                    })
            })
            .and_then(|members| Ok((members, self.outstanding.enter(&draft.share, text.len())?)));
        let (members, ticket) = match checked {
            Ok(checked) => checked,
            Err(refusal) => return (draft, Err(refusal)),
        };
        if !members.is_empty() {
            draft.describe(&arguments);
            draft.operation.members = batch::recorded(tool, &arguments, &members);
            text = arguments::text(&arguments);
        }
        draft.charge = admission::charge(tool, &members);
        draft.joins = call.caller.stateful;
        draft.test = looks::given(tool, &arguments, "test").map(str::to_owned);
        draft.watch = Watch::of(generation, tool, &draft, &arguments);
        draft.windows = Arc::clone(&generation.envelopes.windows);
        draft.window_use = windows::Use::of(tool, &arguments, &members, &generation.workspaces);
        draft.operation.workspace = looks::registered(&generation.workspaces, tool, &arguments);
        let (limits, config) = match &tool.body {
            Body::Guest(pack) => (pack.limits.clone(), pack.config.clone()),
            Body::Core(_) => (Limits::default(), String::new()),
        };
        let identity = call.caller.identity.as_ref();
        let guest = GuestCall {
            generation: Arc::clone(generation),
            body: tool.body.clone(),
            tool: tool.spec.name.clone(),
            arguments: text,
            context: Context {
                op_id: draft.operation.op_id.clone(),
                envelope_id: draft.operation.envelope_id.clone(),
                identity: identity.map(|identity| identity.as_str().to_owned()),
                client: call.caller.client,
                config,
                session_id: self.session_id.clone(),
                answers: call.answers.answers.into_iter().map(elicit::wire).collect(),
                remembered: call.answers.remembered,
            },
            identity: call.caller.identity,
            is_stateful: call.caller.stateful,
            connection: call.caller.connection,
            is_local: draft.share.is_alone(),
            actor: draft.operation.actor.clone(),
            client: draft.operation.client.clone(),
            time: match tool.spec.effect {
                Effect::Read => limits.read,
                Effect::Write => limits.write,
                Effect::Run => limits.run,
            },
            ends_with_envelope: false,
            effect: tool.spec.effect,
            cancel: match tool.spec.effect {
                Effect::Run => call.cancel.or(&self.stopping),
                // These are short, and worth finishing.
                Effect::Read | Effect::Write => call.cancel,
            }
            .unless(&self.leaving),
            progress: call.progress,
            programs: None,
            seen: None,
            closing: Vec::new(),
            artifacts: draft.recording.artifacts.clone(),
            judging: Judging::of(&generation.catalog, tool, arguments, members),
            review: None,
            _ticket: ticket,
        };
        (draft, Ok(guest))
    }
}

/// Requests for approval that policies name in the row of a call that they refuse.
fn open_approvals(draft: &PendingOperation) -> Vec<String> {
    let rows = draft.operation.policy_rows.iter();
    let asked = rows.filter_map(|row| match row {
        PolicyRow::Ask(new) => Some(new.id.clone()),
        PolicyRow::Settle { .. } | PolicyRow::Remember(_) => None,
    });
    asked.collect()
}
