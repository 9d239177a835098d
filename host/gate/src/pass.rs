//! The path of every call: checked, judged, run in its lane, recorded.

use std::sync::Arc;

use serde_json::Value;
use tollgate_components::catalog::{Body, ToolEntry};
use tollgate_core::effect::Effect;
use tollgate_sandbox::Limits;
use tollgate_sandbox::bindings::exports::tollgate::host::pack::Context;
use tollgate_sdk::ToolError;
use tollgate_store::storage::PolicyRow;

use super::admission::Connections;
use super::callable::{self, Callable};
use super::evaluation::Evaluation;
use super::failure::Failure;
use super::guest_call::GuestCall;
use super::pending_operation::{PendingOperation, Recording, content};
use super::reader_outcome::ReaderOutcome;
use super::settled::{Settled, answer, name_envelope};
use super::watched::Watch;
use super::window_use::Use;
use super::{
    Asked, Call, CallOutcome, Consent, Gate, Generation, Left, Reply, admission, approval, arguments, batch,
    elicit, permits, prepare, tasks, workspace_name,
};
use crate::core_tools::{self, EnvelopeChange};
use crate::telemetry::Method;

/// Codes of the refusals that come before all policies: those of `Gate::admit`, and of a call whose pack or workspace is
/// not ready here. A code belongs in this list only if a refusal with this code and without verdicts always comes before
/// the policies. `UNKNOWN_ENVELOPE` does not, because most envelopes are looked up afterwards.
pub const REFUSED_BEFORE_POLICIES: [&str; 14] = [
    "ARGUMENTS_TOO_DEEP",
    "ARGUMENTS_TOO_LARGE",
    "ENVELOPE_CONFLICT",
    "ENVELOPE_REQUIRED",
    "INVALID_ARGUMENTS",
    "MALFORMED_ARGUMENTS",
    "MEMBERS_REFUSED",
    "PACK_FAILED",
    "PREPARING",
    "REQUEST_ID_REPEATED",
    "SCOPE_MISSING",
    tasks::TASKS_REQUIRED,
    "TOO_MANY_CALLS",
    "WRONG_HOST",
];

impl Gate {
    /// Path of a call through the gate.
    pub(super) async fn pass(
        &self,
        generation: &Arc<Generation>,
        tool: &Arc<ToolEntry>,
        mut call: Call,
        method: Method,
    ) -> CallOutcome {
        let _unanswered = self.calls.token();
        // A connection that does not last has no state to remember or forget.
        let connection = call.caller.stateful.then(|| call.caller.connection.clone());
        let consent = call.answers.consent.take();
        let calls = callable::calls_of(call.caller.identity.as_ref());
        let parent = call.caller.span;
        let names_envelope = admission::names_envelope(&call);
        let unready = prepare::code(generation, tool, &mut call).await.err();
        let unready = unready.or_else(|| self.check_workspace(generation, tool, &call).err());
        let unready = unready.map(Failure::refused);
        let unready = match unready {
            None => self.open_automatically(generation, tool, &call).await.err(),
            unready => unready,
        };
        let (pending, admitted) = self.admit(generation, tool, call);
        // Problems of the call itself are reported first.
        let admitted = admitted.and_then(|guest| unready.map_or(Ok(guest), Err));
        let spans = self.spans.as_ref();
        let span = spans.map(|spans| spans.begin(parent, method, &pending.operation));
        let op_id = pending.operation.op_id.clone();
        let envelope_id = pending.operation.envelope_id.clone();
        let started = pending.started;
        let (settled, recording) = match admitted {
            Err(failure) => {
                let mut pending = pending;
                // No policy has judged its words.
                if generation.catalog.policies().judges_words_of(&tool.spec) {
                    pending.forget_words();
                }
                self.refuse(pending, failure).await
            }
            Ok(guest) => self.let_through_seen(guest, pending, consent).await,
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
        let cause = settled.cause();
        let has_effects = settled.has_effects(tool.spec.effect);
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
        CallOutcome {
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
            has_effects,
            lines: settled.lines,
            cause,
            result,
        }
    }

    /// Runs a call that may write files, with a scan of the work tree before and after. A `write` call goes from its
    /// judges straight to the writer, which waits for nothing.
    async fn let_through_seen(
        &self,
        mut guest: Box<GuestCall>,
        mut pending: Box<PendingOperation>,
        consent: Option<Consent>,
    ) -> (Box<Settled>, Recording) {
        if guest.effect != Effect::Write || pending.watch.is_none() {
            return self.let_through(guest, pending, consent).await;
        }
        pending = self.executors.look_before(pending).await;
        guest.seen = pending.seen.clone();
        guest.closing.clone_from(&pending.closing);
        let looked = pending.clone();
        let (settled, recording) = self.let_through(guest, pending, consent).await;
        let wrote = settled
            .result
            .as_ref()
            .is_ok_and(|reply| !reply.deferred_writes.is_empty());
        if wrote {
            self.executors.look_after_files(looked).await;
        }
        (settled, recording)
    }

    /// Has a call judged and runs it in its lane. Also returns what is stored of it, which a policy may have changed.
    async fn let_through(
        &self,
        mut guest: Box<GuestCall>,
        mut pending: Box<PendingOperation>,
        consent: Option<Consent>,
    ) -> (Box<Settled>, Recording) {
        while guest.effect == Effect::Read || guest.evaluation.is_some() {
            match self.executors.read(guest, pending).await {
                ReaderOutcome::Settled(settled, recording) => return (settled, recording),
                ReaderOutcome::Unrecorded(pending, settled, recording) => {
                    return (self.executors.settle(pending, settled).await, recording);
                }
                ReaderOutcome::Denied(mut pending, failure) => {
                    pending.forget_words();
                    return self.refuse(pending, failure).await;
                }
                ReaderOutcome::Passed(judged, returned) => (guest, pending) = (judged, returned),
                ReaderOutcome::Asked(judged, returned, question) => {
                    (guest, pending) = (judged, returned);
                    if let Err(unanswered) = approval::check(consent.as_ref(), &question, &mut pending) {
                        pending.forget_words();
                        let refusal = Failure::refused(question.otherwise);
                        let (mut refused, recording) = self.refuse(pending, refusal).await;
                        refused.question = unanswered;
                        return (refused, recording);
                    }
                }
            }
            if guest.effect == Effect::Read && !pending.permits.is_empty() {
                return self.read_once(guest, pending).await;
            }
        }
        let recording = pending.recording.clone();
        let settled = match guest.effect {
            Effect::Run => self.executors.run(guest, pending).await,
            Effect::Read | Effect::Write => self.executors.write(guest, pending).await,
        };
        (settled, recording)
    }

    /// Runs a call that reads and takes permits. The call has no commit of its own, so the permits are taken before
    /// it.
    async fn read_once(
        &self,
        guest: Box<GuestCall>,
        mut pending: Box<PendingOperation>,
    ) -> (Box<Settled>, Recording) {
        let permits = std::mem::take(&mut pending.permits);
        let op_id = pending.operation.op_id.clone();
        if let Err(failure) = self.take_permits(&permits, &mut pending).await {
            let is_overtaken = failure.error.code == permits::PERMIT_USED;
            let (mut refused, recording) = self.refuse(pending, failure).await;
            refused.is_overtaken = is_overtaken;
            return (refused, recording);
        }
        let (settled, recording) = match self.executors.read(guest, pending).await {
            ReaderOutcome::Settled(settled, recording) => (settled, recording),
            ReaderOutcome::Unrecorded(pending, settled, recording) => {
                (self.executors.settle(pending, settled).await, recording)
            }
            ReaderOutcome::Denied(pending, failure) => self.refuse(pending, failure).await,
            // It was judged already and is not judged again.
            ReaderOutcome::Passed(_, pending) | ReaderOutcome::Asked(_, pending, _) => {
                let lost = ToolError::new("HOST_FAILED", "the host failed; nothing was run");
                self.refuse(pending, Failure::host(lost)).await
            }
        };
        if permits::gives_back(Effect::Read, &settled) {
            self.give_permits_back(&permits, op_id).await;
        } else if permits::has_units(&permits) {
            self.book_units(op_id).await;
        }
        (settled, recording)
    }

    /// Records that a connection works in an envelope that another one may have opened, although its call only read.
    async fn join_by_reading(&self, connection: &str, envelope: Option<&str>, settled: &Settled) {
        let Some(envelope) = envelope.filter(|_| settled.refusal().is_none()) else {
            return;
        };
        if self.connections.joins(connection, envelope) {
            let user = (self.host.id(), connection);
            self.executors
                .join_envelope(envelope, user, self.clock.now_ms())
                .await;
        }
    }

    async fn refuse(&self, pending: Box<PendingOperation>, failure: Failure) -> (Box<Settled>, Recording) {
        let recording = pending.recording.clone();
        let approvals = open_approvals(&pending);
        let mut refused = self.executors.refuse(pending, failure).await;
        refused.approvals = approvals;
        (refused, recording)
    }

    /// Stores the content that the call's row names, after the writer is done.
    async fn store_content(&self, recording: Recording, result: &Result<Reply, Failure>) {
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

    /// Error because there is no room for more artifacts.
    fn no_room(&self) -> ToolError {
        let limit = self
            .artifacts
            .as_ref()
            .map_or(0, |store| store.settings().max_mib);
        ToolError::new(
            "ARTIFACTS_FULL",
            format!("some artifacts of the call were not stored, because stored content has reached twice the limit artifacts.max_mib = {limit}"),
        )
        .remediation("The call itself is done; do not repeat it. Space is freed within seconds.")
        .context("limit_mib", limit)
    }

    /// Notifies listeners that a call may have changed something.
    fn announce(&self, tool: &ToolEntry) {
        if self.changes.receiver_count() > 0 {
            // The last listener may just have left.
            let _ = self.changes.send(Arc::from(tool.pack_name()));
        }
    }

    /// Remembers the envelope that a connection opened or closed.
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

    /// Runs all checks that are possible before any guest runs. The codes of its refusals are in
    /// [`REFUSED_BEFORE_POLICIES`].
    fn admit(
        &self,
        generation: &Arc<Generation>,
        tool: &Arc<ToolEntry>,
        mut call: Call,
    ) -> (Box<PendingOperation>, Result<Box<GuestCall>, Failure>) {
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
        // On the heap, because both are passed on several times.
        let mut pending = Box::new(self.pending_operation(tool, &arguments, &call.caller, envelope));
        let takes_tasks = tasks::check(tool, &call.task);
        pending.task = call.task.into_slot();
        if let Some(task) = &pending.task {
            task.set_call(&pending.operation);
        }
        let checked = admission::first(&call.caller)
            .and_then(|()| admission::may_call(tool, &call.caller))
            .and(correlated)
            .and(takes_tasks)
            .map_err(Failure::refused)
            .and_then(|()| {
                let describing =
                    |error| admission::describing(error, tool, &generation.catalog, &call.caller);
                arguments::check(tool, &arguments, &text, &call.malformed)
                    .and_then(|()| {
                        batch::find(&generation.catalog, tool, &mut arguments).map_err(Failure::refused)
                    })
                    .map_err(|failure| failure.map(describing))
            })
            .and_then(|members| {
                let ticket = self.outstanding.enter(&pending.share, text.len());
                Ok((members, ticket.map_err(Failure::refused)?))
            });
        let (members, ticket) = match checked {
            Ok(checked) => checked,
            Err(failure) => return (pending, Err(failure)),
        };
        if !members.is_empty() {
            pending.describe(&arguments);
            pending.operation.members = batch::recorded(tool, &arguments, &members);
            text = arguments::text(&arguments);
        }
        pending.charge = admission::charge(tool, &members);
        pending.joins = call.caller.stateful;
        pending.test = arguments::given(tool, &arguments, "test").map(str::to_owned);
        pending.watch = Watch::of(generation, tool, (&pending.operation, pending.charge), &arguments);
        pending.windows = Arc::clone(&generation.envelopes.windows);
        pending.window_use = Use::of(tool, &arguments, &members, &generation.workspaces);
        pending.operation.workspace = workspace_name::registered(&generation.workspaces, tool, &arguments);
        let (limits, config) = match &tool.body {
            Body::Guest(pack) => (pack.limits.clone(), pack.config.clone()),
            Body::Core(_) => (Limits::default(), String::new()),
        };
        let identity = call.caller.identity.as_ref();
        let guest = Box::new(GuestCall {
            generation: Arc::clone(generation),
            body: tool.body.clone(),
            tool: tool.spec.name.clone(),
            arguments: text,
            context: Context {
                op_id: pending.operation.op_id.clone(),
                envelope_id: pending.operation.envelope_id.clone(),
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
            is_local: pending.share.is_alone(),
            actor: pending.operation.actor.clone(),
            client: pending.operation.client.clone(),
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
            scope: tool.scope.as_ref().map(|scope| scope.of(&arguments)),
            is_feed: tool.is_feed,
            programs: None,
            seen: None,
            closing: Vec::new(),
            artifacts: pending.recording.artifacts.clone(),
            evaluation: Evaluation::of(&generation.catalog, tool, arguments, members),
            review: None,
            _ticket: ticket,
        });
        (pending, Ok(guest))
    }
}

/// Requests for approval that policies named in the row of a refused call.
fn open_approvals(pending: &PendingOperation) -> Vec<String> {
    let rows = pending.operation.policy_rows.iter();
    let asked = rows.filter_map(|row| match row {
        PolicyRow::Ask(new) => Some(new.id.clone()),
        PolicyRow::Settle { .. } | PolicyRow::Remember(_) => None,
    });
    asked.collect()
}
