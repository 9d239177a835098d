//! Policy tests: evaluation of policies on simulated calls, from a case file or from the ledger.
//!
//! Policies get the same input, limits and kind of storage as for a real call: a snapshot before the call, and a
//! transaction after a call that writes. Ledger and tables are in memory and are discarded with the test.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tollgate_components::catalog::Catalog;
use tollgate_components::policies::{Answer, Decision, Hearing, Phase, Policy, Subject};
use tollgate_core::deadline::Cancel;
use tollgate_core::effect::Effect;
use tollgate_sandbox::bindings::policy::exports::tollgate::host::judge as wit;
use tollgate_sandbox::bindings::tollgate::host::component;
use tollgate_sandbox::judged::SchemaOf;
use tollgate_sandbox::memory::Memories;
use tollgate_sandbox::sitting::Sitting;
use tollgate_sdk::Timestamp;
use tollgate_sdk::policy::MemoryChange;
use tollgate_store::storage::{
    MemoryOwner, MigrationError, Operation, PolicyRow, Recollection, Session, StoreError, StoreResult,
    StoredOperation, scratch,
};

use super::super::batch;
use super::super::evaluation::{Evaluation, Review};
use super::super::runtime::CallServices;
use super::evaluate::{ChainPosition, Evaluator};

/// Empty sitting of a simulated call.
fn sitting(request: &wit::Request) -> Sitting {
    Sitting::over(StoredOperation {
        op_id: request.op_id.clone(),
        envelope_id: request.envelope_id.clone(),
        timestamp: Timestamp::from_ms(request.at).to_string(),
        actor: request.identity.clone(),
        connection: request.connection.clone(),
        ..StoredOperation::default()
    })
}

/// A separate ledger and tables, and policies that are asked over them.
pub struct Trial {
    services: CallServices,
    session: Option<Box<Session>>,
    /// Input schema of the tools that one policy is asked about.
    schema: Option<SchemaOf>,
}

/// Verdicts of a chain of policies on a call.
pub struct ChainVerdicts {
    /// Decision on the call.
    pub decision: Decision,
    /// Arguments with which the call would have run, if they were amended.
    pub amended: Option<Value>,
    /// Time that the policies took.
    pub took: Duration,
    /// True if any policy was asked.
    pub was_judged: bool,
    requests: Vec<wit::Request>,
    notes: Vec<wit::Note>,
    memories: Memories,
}

impl Trial {
    /// Creates a test database with the tables of these policies.
    pub fn of<'a>(
        services: CallServices,
        policies: impl Iterator<Item = &'a Policy>,
    ) -> Result<Trial, MigrationError> {
        let tables = policies.map(|policy| (&policy.namespace, policy.manifest.migrations.as_slice()));
        Ok(Trial {
            services,
            session: Some(Box::new(scratch(tables)?)),
            schema: None,
        })
    }

    /// Sets the input schema, as JSON, of the tools that one policy is asked about.
    pub fn set_input_schema(&mut self, schema: Option<&str>) {
        self.schema = schema.map(|schema| -> SchemaOf {
            let schema = schema.to_owned();
            Arc::new(move || Some(schema.clone()))
        });
    }

    /// Fills a policy's memory with these changes, by key.
    pub fn remember_of(
        &mut self,
        policy: &Policy,
        at_ms: i64,
        changes: &[(String, MemoryChange)],
    ) -> StoreResult<()> {
        let owner = MemoryOwner {
            component: policy.namespace.pack().to_owned(),
            audit: false,
        };
        let rows = changes.iter().map(|(key, change)| {
            PolicyRow::Remember(Box::new(Recollection {
                owner: owner.clone(),
                key: key.clone(),
                change: change.clone(),
                at_ms,
            }))
        });
        self.write(&rows.collect::<Vec<_>>())
    }

    /// Adds rows to the ledger that policies see.
    pub fn record(&self, operations: &[Operation]) -> StoreResult<()> {
        let session = self.session.as_ref().ok_or(StoreError::no_session())?;
        session.begin_write()?;
        for operation in operations {
            session.ledger().record(operation)?;
        }
        session.commit()
    }

    /// Asks one policy about a call.
    pub fn before(&mut self, policy: &Policy, request: &wit::Request) -> StoreResult<Answer<wit::Verdict>> {
        let memories = Memories::at(request.at);
        let schema = self.schema.clone();
        let answer = self.reading(|evaluator| {
            evaluator.sitting = Some(sitting(request));
            evaluator.memories = memories.clone();
            evaluator.position.schema = schema;
            let notes = request.notes.clone();
            evaluator.ask_about(
                policy,
                &mut request.clone(),
                &notes,
                None,
                |judge, store, request| Ok(judge.call_before_call(store, request)?),
            )
        })?;
        self.remember(&memories)?;
        Ok(answer)
    }

    /// Commits the memory of the policies, as the row of a call does.
    fn remember(&mut self, memories: &Memories) -> StoreResult<()> {
        self.write(&memories.rows())
    }

    fn write(&mut self, rows: &[PolicyRow]) -> StoreResult<()> {
        let session = self.session.as_ref().ok_or(StoreError::no_session())?;
        if rows.is_empty() {
            return Ok(());
        }
        session.begin_write()?;
        session.approvals().write_policy_rows(rows)?;
        session.commit()
    }

    /// Asks one policy about a result. If the policy lets the result pass and the call wrote, its memory is kept.
    pub fn after(
        &mut self,
        policy: &Policy,
        request: &wit::Request,
        outcome: &wit::Outcome,
    ) -> StoreResult<Answer<wit::Review>> {
        let memories = Memories::at(request.at);
        let schema = self.schema.clone();
        let ask = |evaluator: &mut Evaluator<'_>| {
            evaluator.memories = memories.clone();
            evaluator.position.schema = schema;
            let notes = request.notes.clone();
            evaluator.ask_about(
                policy,
                &mut request.clone(),
                &notes,
                Some(outcome),
                |judge, store, request| Ok(judge.call_after_call(store, request, outcome)?),
            )
        };
        let answer = if request.effect == component::Effect::Write {
            self.writing(ask, |answer| matches!(answer.said, Ok((wit::Review::Pass, _))))
        } else {
            self.reading(ask)
        }?;
        self.remember(&memories)?;
        Ok(answer)
    }

    /// Asks the policies of a catalog about a call and its members.
    pub fn evaluate(&mut self, catalog: &Arc<Catalog>, request: wit::Request) -> StoreResult<ChainVerdicts> {
        let mut arguments = serde_json::from_str(&request.arguments).unwrap_or(Value::Null);
        let tool = catalog
            .find(&request.tool)
            .or_else(|| catalog.find_prompt(&request.tool));
        let mut hearing = Hearing::default();
        let memories = Memories::at(request.at);
        let (requests, amended) = match tool {
            Some(tool) => {
                let mut evaluation = Evaluation {
                    catalog: Arc::clone(catalog),
                    tool: Arc::clone(tool),
                    members: batch::find(catalog, tool, &mut arguments).unwrap_or_default(),
                    arguments,
                };
                let (requests, is_amended) = self.reading(|evaluator| {
                    evaluator.sitting = Some(sitting(&request));
                    evaluator.memories = memories.clone();
                    evaluator.evaluate_all(&mut evaluation, request, &mut hearing)
                })?;
                (requests, is_amended.then_some(evaluation.arguments))
            }
            None => self.evaluate_unknown(catalog, request, &memories, &mut hearing)?,
        };
        // After the call it is written together with the memory from the review.
        let is_over = requests
            .iter()
            .all(|request| !catalog.policies().judges(Phase::Response, &request.tool))
            || hearing.decision() != Decision::Pass;
        if is_over {
            self.remember(&memories)?;
        }
        Ok(ChainVerdicts {
            decision: hearing.decision(),
            amended,
            took: hearing.took(),
            was_judged: !hearing.verdicts.is_empty(),
            requests,
            notes: hearing.notes,
            memories,
        })
    }

    /// Asks about a call of a tool that no longer exists, whose arguments cannot be validated.
    fn evaluate_unknown(
        &mut self,
        catalog: &Arc<Catalog>,
        mut request: wit::Request,
        memories: &Memories,
        hearing: &mut Hearing,
    ) -> StoreResult<(Vec<wit::Request>, Option<Value>)> {
        let name = request.tool.clone();
        let subject = Subject {
            tool: &name,
            place: None,
        };
        let is_object = |json: &str| {
            let object: Result<Map<String, Value>, _> = serde_json::from_str(json);
            object.map(|_| json.to_owned()).map_err(|err| err.to_string())
        };
        let amended = self.reading(|evaluator| {
            evaluator.sitting = Some(sitting(&request));
            evaluator.memories = memories.clone();
            let ask = |policy: &Policy, amended: Option<&str>, notes: &[wit::Note]| {
                super::amend(&mut request, amended);
                evaluator.position = ChainPosition::of(catalog.policies(), policy, None);
                let answer =
                    evaluator.ask_about(policy, &mut request, notes, None, |judge, store, request| {
                        Ok(judge.call_before_call(store, request)?)
                    });
                evaluator.bound_verdict(answer)
            };
            catalog.policies().before(hearing, subject, ask, is_object)
        })?;
        super::amend(&mut request, amended.as_deref());
        let amended = amended.and_then(|json| serde_json::from_str(&json).ok());
        Ok((vec![request], amended))
    }

    /// Asks the same policies about the result of a call that they judged.
    pub fn review(
        &mut self,
        catalog: &Arc<Catalog>,
        verdicts: &ChainVerdicts,
        outcome: &wit::Outcome,
        effect: Effect,
    ) -> StoreResult<(Decision, Duration)> {
        let (requests, notes) = (verdicts.requests.clone(), verdicts.notes.clone());
        let notes = (notes, verdicts.memories.fork());
        let review = Review::new(Arc::clone(catalog), requests, notes, Instant::now());
        let mut remembered = Memories::default();
        let ask = |evaluator: &mut Evaluator<'_>| {
            let hearing = evaluator.review(&review, outcome, effect);
            remembered = evaluator.memories.clone();
            hearing
        };
        let hearing = match effect {
            Effect::Write => self.writing(ask, |hearing| hearing.decision() == Decision::Pass)?,
            Effect::Read | Effect::Run => self.reading(ask)?,
        };
        self.remember(&remembered)?;
        Ok((hearing.decision(), hearing.took()))
    }

    /// True if a policy judges the result of a call or of one of its members.
    pub fn is_reviewed(catalog: &Catalog, verdicts: &ChainVerdicts) -> bool {
        let judges = |request: &wit::Request| catalog.policies().judges(Phase::Response, &request.tool);
        verdicts.requests.iter().any(judges)
    }

    fn reading<T>(&mut self, ask: impl FnOnce(&mut Evaluator<'_>) -> T) -> StoreResult<T> {
        let session = self.session.take().ok_or(StoreError::no_session())?;
        session.begin_read()?;
        session.freeze()?;
        let (said, session) = self.lend(session, ask)?;
        session.thaw()?;
        if session.in_transaction() {
            session.commit()?;
        }
        self.session = Some(session);
        Ok(said)
    }

    fn writing<T>(
        &mut self,
        ask: impl FnOnce(&mut Evaluator<'_>) -> T,
        is_kept: impl FnOnce(&T) -> bool,
    ) -> StoreResult<T> {
        let session = self.session.take().ok_or(StoreError::no_session())?;
        session.begin_write()?;
        let (said, session) = self.lend(session, ask)?;
        // SQLite rolls back a transaction by itself if a policy's statement is interrupted.
        match (session.in_transaction(), is_kept(&said)) {
            (true, true) => session.commit()?,
            (true, false) => session.rollback()?,
            (false, _) => {}
        }
        session.lift_limit()?;
        self.session = Some(session);
        Ok(said)
    }

    fn lend<T>(
        &self,
        session: Box<Session>,
        ask: impl FnOnce(&mut Evaluator<'_>) -> T,
    ) -> StoreResult<(T, Box<Session>)> {
        let mut evaluator = Evaluator::new(&self.services, None, Cancel::default(), session);
        let said = ask(&mut evaluator);
        let session = evaluator.session.take().ok_or(StoreError::no_session())?;
        Ok((said, session))
    }
}
