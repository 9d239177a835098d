//! Evaluation of policies: on a call before it is admitted, against a snapshot, and on its result before it is
//! committed.

mod evaluate;
mod leaving;
mod review;
mod trial;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use serde_json::{Map, Value};
use tollgate_components::catalog::{Catalog, ToolEntry};
use tollgate_components::policies::{Answer, BoundVerdict, Decision, Hearing, Phase, Policy, Subject};
use tollgate_core::deadline::Cancel;
use tollgate_core::effect::Effect;
use tollgate_sandbox::bindings::policy::exports::tollgate::host::judge as wit;
use tollgate_sandbox::bindings::tollgate::host::component;
use tollgate_sandbox::memory::Memories;
use tollgate_sandbox::sitting::Sitting;
use tollgate_sdk::{Timestamp, ToolError};
use tollgate_store::storage::{PolicyRow, Session};

use super::batch;
use super::ended::{Changed, cancelled};
use super::evaluation::{Evaluation, Review};
use super::failure::Failure;
use super::guest_call::GuestCall;
use super::pending_operation::PendingOperation;
use super::runtime::Runtime;
use super::{admission, arguments};

use evaluate::{ChainPosition, Evaluator};

pub use trial::{ChainVerdicts, Trial};

impl Evaluation {
    /// Arguments for a tool after a policy's amendment, or the reason for which the tool does not accept them.
    /// Problems from before the amendment are ignored, because the enclosing tool validates its members.
    fn accept(&self, tool: &ToolEntry, is_member: bool, given: &str, json: &str) -> Result<String, String> {
        let amended: Map<String, Value> = serde_json::from_str(json).map_err(|err| err.to_string())?;
        let mut amended = if is_member {
            let inherited = batch::inheritance(&self.tool, &self.arguments);
            Value::Object(batch::completed(tool, amended, &inherited))
        } else {
            arguments::normalised(tool, amended)
        };
        let text = arguments::text(&amended);
        if let Err(Failure { error: mut err, .. }) = arguments::check(tool, &amended, &text, &[]) {
            let given = serde_json::from_str(given).unwrap_or_default();
            let earlier = arguments::check(tool, &given, "", &[]).err();
            let earlier = earlier.map(|failure| failure.error.blockers).unwrap_or_default();
            let had_blockers = !err.blockers.is_empty();
            err.blockers.retain(|blocker| !earlier.contains(blocker));
            if !had_blockers || !err.blockers.is_empty() {
                return Err(told(&err));
            }
        }
        let members = batch::find(&self.catalog, tool, &mut amended).map_err(|err| told(&err))?;
        Ok(if members.is_empty() {
            text
        } else {
            arguments::text(&amended)
        })
    }

    /// Replaces the call's arguments by the amended ones. The whole is validated again, because its parts may have
    /// grown.
    fn adopt(&self, guest: &mut GuestCall, pending: &mut PendingOperation) -> Result<(), Failure> {
        guest.arguments = arguments::text(&self.arguments);
        pending.describe(&self.arguments);
        pending.charge = admission::charge(&self.tool, &self.members);
        pending.operation.members = batch::recorded(&self.tool, &self.arguments, &self.members);
        arguments::check(&self.tool, &self.arguments, &guest.arguments, &[])
    }
}

/// Error with all its reasons on one line.
fn told(err: &ToolError) -> String {
    let reasons = err.blockers.iter().map(|blocker| blocker.message.as_str());
    std::iter::once(err.message.as_str())
        .chain(reasons)
        .collect::<Vec<_>>()
        .join("; ")
}

impl Runtime {
    /// Asks every policy about a call and its members. Amendments change `guest` and `pending`, and the verdicts are
    /// recorded in them. Fails if the call cannot be judged, or if an amendment makes its arguments invalid.
    pub(super) fn judge(
        &self,
        evaluation: Evaluation,
        guest: &mut GuestCall,
        pending: &mut PendingOperation,
        session: Box<Session>,
    ) -> (Option<Box<Session>>, Result<Decision, Failure>) {
        if guest.cancel.is_cancelled() {
            return (Some(session), Err(cancelled(guest, Changed::Nothing)));
        }
        let cancel = guest.cancel.clone();
        let judged = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let mut evaluator = self.evaluator(cancel, session);
            let decision = evaluator.evaluate(evaluation, guest, pending);
            (evaluator.session, decision)
        }));
        match judged {
            Ok((session, _)) if guest.cancel.is_cancelled() => {
                (session, Err(cancelled(guest, Changed::Nothing)))
            }
            Ok(judged) => judged,
            Err(_) => (None, Err(panicked(&guest.context.op_id))),
        }
    }
}

impl Runtime {
    /// Creates instances of policies for coming calls, while no caller waits.
    pub(super) fn prepare_policies(&self, catalog: &Catalog) {
        let members = catalog.policies().members().iter();
        for policy in members.filter_map(|member| member.policy.as_ref().ok()) {
            let prepare = AssertUnwindSafe(|| evaluate::prepare(&self.services, policy));
            if std::panic::catch_unwind(prepare).is_err() {
                policy.pool().give_up();
            }
        }
    }

    /// Evaluator of policies on a session.
    fn evaluator(&self, cancel: Cancel, session: Box<Session>) -> Evaluator<'_> {
        Evaluator::new(&self.services, Some(Arc::clone(&self.host)), cancel, session)
    }
}

fn panicked(op_id: &str) -> Failure {
    tracing::error!(op_id, "the host panicked while a call was evaluated");
    Failure::host(ToolError::new(
        "HOST_FAILED",
        "the host failed while the call was evaluated; nothing was changed",
    ))
}

impl Evaluator<'_> {
    fn evaluate(
        &mut self,
        mut evaluation: Evaluation,
        guest: &mut GuestCall,
        pending: &mut PendingOperation,
    ) -> Result<Decision, Failure> {
        let catalog = Arc::clone(&evaluation.catalog);
        let chain = catalog.policies();
        let mut hearing = Hearing::default();
        let sitting = Sitting::of(&pending.operation);
        self.sitting = Some(sitting.clone());
        let call = request(guest, pending);
        self.memories = Memories::at(call.at);
        let (requests, is_amended) = self.evaluate_all(&mut evaluation, call, &mut hearing);
        self.sitting = None;
        pending.permits = sitting.permits();
        pending.operation.policy_rows = sitting.rows();
        pending.remembered = self.memories.rows();
        let mut decision = hearing.decision();
        name_request(&mut decision, &pending.operation.policy_rows);
        let adopted = match is_amended {
            true => evaluation.adopt(guest, pending),
            false => Ok(()),
        };
        let is_reviewed = |request: &wit::Request| chain.judges(Phase::Response, &request.tool);
        if requests.iter().any(is_reviewed) {
            let catalog = Arc::clone(&catalog);
            let notes = (hearing.notes, self.memories.clone());
            let review = Review::new(catalog, requests, notes, pending.started);
            guest.review = Some(Box::new(review));
        }
        pending.verdicts = hearing.verdicts;
        match decision {
            Decision::Deny(_) => Ok(decision),
            Decision::Pass | Decision::Ask(_) => adopted.map(|()| decision),
        }
    }

    /// Judges a call and its members. Returns the judged requests, and whether anything was amended.
    fn evaluate_all(
        &mut self,
        evaluation: &mut Evaluation,
        mut request: wit::Request,
        hearing: &mut Hearing,
    ) -> (Vec<wit::Request>, bool) {
        let tool = Arc::clone(&evaluation.tool);
        let mut is_amended = false;
        if let Some(text) = self.before(evaluation, &tool, None, &mut request, hearing) {
            evaluation.arguments = serde_json::from_str(&text).unwrap_or_default();
            let members = batch::find(&evaluation.catalog, &tool, &mut evaluation.arguments);
            evaluation.members = members.unwrap_or_default();
            is_amended = true;
        }
        let mut requests = vec![request];
        for place in 0..evaluation.members.len() {
            let (request, amended) = self.member(evaluation, place, &requests, hearing);
            requests.extend(request);
            is_amended |= amended;
        }
        (requests, is_amended)
    }

    /// Judges a member of the call, and stores its arguments if they were amended.
    fn member(
        &mut self,
        evaluation: &mut Evaluation,
        place: usize,
        requests: &[wit::Request],
        hearing: &mut Hearing,
    ) -> (Option<wit::Request>, bool) {
        let Some((tool, argument, outer)) = evaluation.members.get(place).and_then(|member| {
            let argument = evaluation.tool.spec.members.clone()?;
            Some((Arc::clone(&member.tool), argument, requests.first()?.clone()))
        }) else {
            return (None, false);
        };
        let entry = |arguments: &Value| {
            arguments
                .get(&argument)?
                .get(place)?
                .get(batch::ARGUMENTS)
                .cloned()
        };
        let own = entry(&evaluation.arguments).unwrap_or_else(|| Value::Object(Map::new()));
        let mut request = wit::Request {
            pack: tool.pack_name().to_owned(),
            tool: tool.spec.name.clone(),
            effect: effect(tool.spec.effect),
            arguments: own.to_string(),
            args_hash: hash(&own),
            ..outer
        };
        let at = format!("{argument}[{place}]");
        let amended = self.before(evaluation, &tool, Some(&at), &mut request, hearing);
        let Some(amended) = amended.and_then(|text| serde_json::from_str::<Value>(&text).ok()) else {
            return (Some(request), false);
        };
        let slot = evaluation
            .arguments
            .get_mut(&argument)
            .and_then(|list| list.get_mut(place));
        if let Some(Value::Object(slot)) = slot {
            slot.insert(batch::ARGUMENTS.to_owned(), amended);
        }
        (Some(request), true)
    }

    /// Runs the chain over one request. Afterwards the request has the amended arguments.
    fn before(
        &mut self,
        evaluation: &Evaluation,
        tool: &Arc<ToolEntry>,
        place: Option<&str>,
        request: &mut wit::Request,
        hearing: &mut Hearing,
    ) -> Option<String> {
        let subject = Subject {
            tool: &tool.spec.name,
            place,
        };
        let given = request.arguments.clone();
        let sitting = self.sitting.clone();
        if let Some(sitting) = &sitting {
            sitting.begin(&request.pack, subject.tool, tool.spec.effect.as_str());
        }
        let chain = evaluation.catalog.policies();
        let ask = |policy: &Policy, amended: Option<&str>, notes: &[wit::Note]| {
            amend(request, amended);
            if let Some(sitting) = &sitting {
                sitting.ask();
            }
            self.position = ChainPosition::of(chain, policy, Some(tool));
            let answer = self.ask_about(policy, request, notes, None, |judge, store, request| {
                Ok(judge.call_before_call(store, request)?)
            });
            if let (Some(sitting), Ok((verdict, _))) = (&sitting, &answer.said) {
                let enforced_as = chain.enforced_as(policy);
                if enforced_as.is_some() {
                    sitting.keep_rows(matches!(verdict, wit::Verdict::Deny(_)));
                }
                if !matches!(verdict, wit::Verdict::Deny(_)) {
                    sitting.keep(policy.namespace.pack(), enforced_as);
                }
            }
            self.bound_verdict(answer)
        };
        let accept = |json: &str| evaluation.accept(tool, place.is_some(), &given, json);
        let amended = chain.before(hearing, subject, ask, accept);
        amend(request, amended.as_deref());
        if let Some(sitting) = &self.sitting {
            sitting.end(&request.args_hash);
        }
        amended
    }
}

impl Evaluator<'_> {
    /// Verdict with the binding of the policy's question.
    fn bound_verdict(&mut self, answer: Answer<wit::Verdict>) -> Answer<BoundVerdict> {
        let bound = std::mem::take(&mut self.bound);
        let said = answer.said;
        Answer {
            said: said.map(|(verdict, notes)| (BoundVerdict { verdict, bound }, notes)),
            took: answer.took,
        }
    }
}

/// Names the open request for approval in the refusal of a call that waits for it.
fn name_request(decision: &mut Decision, rows: &[PolicyRow]) {
    let refusal = match decision {
        Decision::Deny(refusal) => refusal,
        Decision::Ask(question) => &mut question.otherwise,
        Decision::Pass => return,
    };
    let asked = rows.iter().rev().find_map(|row| match row {
        PolicyRow::Ask(new) => Some(new.id.as_str()),
        PolicyRow::Settle { .. } | PolicyRow::Remember(_) => None,
    });
    if let Some(id) = asked {
        refusal.context.insert("approval_id".to_owned(), Value::from(id));
    }
}

/// Puts amended arguments into a request, if there are any.
fn amend(request: &mut wit::Request, amended: Option<&str>) {
    if let Some(amended) = amended.filter(|amended| *amended != request.arguments) {
        request.args_hash =
            serde_json::from_str(amended).map_or_else(|_| String::new(), |value| hash(&value));
        amended.clone_into(&mut request.arguments);
    }
}

/// Call as policies see it, before a policy is named.
fn request(guest: &GuestCall, pending: &PendingOperation) -> wit::Request {
    let operation = &pending.operation;
    wit::Request {
        op_id: operation.op_id.clone(),
        pack: operation.pack.clone(),
        tool: operation.tool.clone(),
        effect: effect(operation.effect),
        arguments: guest.arguments.clone(),
        args_hash: operation.args_hash.clone(),
        envelope_id: operation.envelope_id.clone(),
        identity: guest.context.identity.clone(),
        client: guest.context.client.clone(),
        connection: guest.connection.clone(),
        at: Timestamp::parse(&operation.timestamp).map_or(0, Timestamp::as_ms),
        notes: Vec::new(),
        settings: String::new(),
    }
}

fn effect(effect: Effect) -> component::Effect {
    match effect {
        Effect::Read => component::Effect::Read,
        Effect::Write => component::Effect::Write,
        Effect::Run => component::Effect::Run,
    }
}

fn hash(arguments: &Value) -> String {
    tollgate_core::hash::sha256_hex(tollgate_sdk::canonical_json(arguments).as_bytes())
}
