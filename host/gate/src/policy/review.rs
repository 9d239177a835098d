//! Evaluation of policies on a result, before it is committed or sent.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use tollgate_components::policies::{Answer, Decision, Hearing, Policy};
use tollgate_core::effect::Effect;
use tollgate_sandbox::bindings::policy::exports::tollgate::host::judge as wit;
use tollgate_store::artifacts::CallArtifacts;
use tollgate_store::storage::{PAGE_BYTES, Session};

use super::super::ended::Ended;
use super::super::evaluation::Review;
use super::super::failure::Failure;
use super::super::guest_call::GuestCall;
use super::super::runtime::Runtime;
use super::evaluate::{ChainPosition, Evaluator, host_failed};
use super::{leaving, panicked};

impl Runtime {
    /// Asks the policies about a result, in the call's own transaction or snapshot.
    pub(crate) fn review(
        &self,
        call: &GuestCall,
        review: &Review,
        session: Box<Session>,
        ended: &mut Ended,
    ) -> Option<Box<Session>> {
        let outcome = outcome(ended, &call.artifacts, review.started);
        let changes = session.take_changes();
        let reviewed = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let mut evaluator = self.evaluator(call.cancel.clone(), session);
            let hearing = evaluator.review(review, &outcome, call.effect);
            (evaluator, hearing)
        }));
        let Ok((evaluator, hearing)) = reviewed else {
            ended.result = Err(panicked(&call.context.op_id));
            ended.withhold();
            call.artifacts.forget();
            return None;
        };
        if let Decision::Deny(refusal) = hearing.decision() {
            ended.result = Err(Failure::refused(refusal));
            // Messages and content of the call may contain what must not be sent.
            ended.withhold();
            call.artifacts.forget();
        }
        ended.verdicts = hearing.verdicts;
        ended.pages = evaluator.pages;
        ended.remembered = Some(evaluator.memories.rows());
        let session = evaluator.session?;
        // Rows written by policies are not part of the call's changes.
        session.set_changes(changes);
        Some(session)
    }
}

fn outcome(ended: &Ended, artifacts: &CallArtifacts, started: Instant) -> wit::Outcome {
    let refusal = ended.refusal();
    let body = match &ended.result {
        Ok(reply) if refusal.is_none() => reply.json.clone(),
        _ => serde_json::json!({ "error": refusal }).to_string(),
    };
    wit::Outcome {
        success: refusal.is_none(),
        error_code: refusal.map(|err| err.code.clone()),
        body,
        text: leaving::text(ended, artifacts),
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    }
}

impl Evaluator<'_> {
    pub(super) fn review(&mut self, review: &Review, outcome: &wit::Outcome, effect: Effect) -> Hearing {
        let mut hearing = Hearing::with_notes(review.notes.clone());
        // A call that runs again is judged again, and only the memory of that judgement counts.
        self.memories = review.memories.fork();
        let mut requests = review.requests.clone();
        let tools: Vec<&str> = review
            .requests
            .iter()
            .map(|request| request.tool.as_str())
            .collect();
        let chain = review.catalog.policies();
        chain.after(&mut hearing, &tools, |policy, place, notes| {
            let Some(request) = requests.get_mut(place) else {
                return host_failed();
            };
            let tool = review.catalog.find(&request.tool);
            self.position = ChainPosition::of(chain, policy, tool);
            let mut ask = |evaluator: &mut Evaluator<'_>| {
                evaluator.ask_about(policy, request, notes, Some(outcome), |judge, store, request| {
                    Ok(judge.call_after_call(store, request, outcome)?)
                })
            };
            if effect == Effect::Write && policy.has_tables() {
                self.within_quota(policy, ask)
            } else {
                ask(self)
            }
        });
        hearing
    }

    /// Asks a policy that may write, and books the database pages that its rows take.
    fn within_quota<V>(&mut self, policy: &Policy, ask: impl FnOnce(&mut Self) -> Answer<V>) -> Answer<V> {
        let before = self.session.as_deref().map(|session| {
            let quota = i64::try_from(policy.limits.storage / PAGE_BYTES).unwrap_or(i64::MAX);
            let memory = session
                .policy_memory()
                .bytes(policy.namespace.pack())?
                .div_ceil(PAGE_BYTES);
            let memory = i64::try_from(memory).unwrap_or(i64::MAX);
            session.limit_growth(
                quota
                    - session
                        .components()
                        .used_pages(&policy.namespace)?
                        .saturating_add(memory),
            )
        });
        let answer = ask(self);
        let booked = match (before, self.session.as_deref()) {
            (Some(Ok(before)), Some(session)) => session.pages().and_then(|after| {
                self.pages += after - before;
                if after == before {
                    Ok(())
                } else {
                    session.components().book_pages(&policy.namespace, after - before)
                }
            }),
            (Some(Err(err)), _) => Err(err),
            (None, _) | (_, None) => Ok(()),
        };
        match booked {
            Ok(()) => answer,
            Err(err) => {
                tracing::error!(policy = policy.manifest.name, %err, "counting the pages of a policy failed");
                host_failed()
            }
        }
    }
}
