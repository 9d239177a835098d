//! In-memory ledger and budgets for native tests. Tests can set and inspect them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::artifacts::Allowance;
use crate::budget::Reserved;
use crate::{
    ArtifactError, ArtifactKind, BudgetError, Counter, Effect, Envelope, Event, FoundOperation, LedgerError,
    Operation, OperationFilter, Pack, SeenWorkTree, Slot, TestOutcome, TestedTree, Want, WorkTreeChange,
};

/// Envelope, budgets and past operations of a session.
pub(super) struct Record {
    wants: &'static [Want],
    pub(super) envelope: RefCell<Option<Envelope>>,
    /// Limit, used and reserved units by name.
    budgets: RefCell<BTreeMap<String, [u64; 3]>>,
    before: RefCell<BTreeMap<String, [u64; 3]>>,
    pub(super) events: RefCell<Vec<Event>>,
    pub(super) test_outcome: RefCell<Option<TestOutcome>>,
    pub(super) work_trees: RefCell<BTreeMap<String, SeenWorkTree>>,
    /// Edits over all envelopes, by workspace.
    pub(super) edits_over_envelopes: RefCell<BTreeMap<String, u64>>,
    /// Changes, by workspace and number of edits.
    pub(super) work_tree_changes: RefCell<BTreeMap<(String, u64), WorkTreeChange>>,
    pub(super) operations: RefCell<Vec<Operation>>,
    /// Operations that can be found by id.
    pub(super) found: RefCell<Vec<FoundOperation>>,
    /// Work trees of [`Ledger::compare_work_tree`](crate::Ledger::compare_work_tree), by operation.
    pub(super) trees: RefCell<BTreeMap<String, TestedTree>>,
    /// Connection of the calls, if it lasts.
    pub(super) connection: RefCell<Option<String>>,
    /// Connections that have ended.
    pub(super) ended: RefCell<Vec<String>>,
    /// Keys of [`Ledger::take_once`](crate::Ledger::take_once) that other calls hold.
    pub(super) taken: RefCell<Vec<String>>,
    /// Slots that calls took, in order.
    pub(super) slots: RefCell<Vec<Slot>>,
    effect: Cell<Effect>,
    /// True if the operator keeps artifacts.
    pub(super) keeps_artifacts: Cell<bool>,
    pub(super) artifacts: RefCell<Vec<Artifact>>,
    /// Number of artifacts before the call.
    artifacts_before: Cell<usize>,
    allowance: Cell<Allowance>,
}

/// An artifact kept by a call.
///
/// ```
/// # use tollgate_sdk::ArtifactKind;
/// # use tollgate_sdk::native::Artifact;
/// fn logs(artifacts: &[Artifact]) -> impl Iterator<Item = &[u8]> {
///     let logs = artifacts.iter().filter(|artifact| artifact.kind == ArtifactKind::Log);
///     logs.map(|log| log.content.as_slice())
/// }
/// # assert_eq!(logs(&[]).count(), 0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Artifact id, `art_…`.
    pub id: String,
    /// Kind of the content.
    pub kind: ArtifactKind,
    /// Whole content.
    pub content: Vec<u8>,
}

impl Record {
    pub(super) fn new(pack: &Pack) -> Record {
        Record {
            wants: pack.wants,
            envelope: RefCell::default(),
            budgets: RefCell::default(),
            before: RefCell::default(),
            events: RefCell::default(),
            test_outcome: RefCell::default(),
            work_trees: RefCell::default(),
            edits_over_envelopes: RefCell::default(),
            work_tree_changes: RefCell::default(),
            operations: RefCell::default(),
            found: RefCell::default(),
            trees: RefCell::default(),
            connection: RefCell::default(),
            ended: RefCell::default(),
            taken: RefCell::default(),
            slots: RefCell::default(),
            effect: Cell::new(Effect::Read),
            keeps_artifacts: Cell::default(),
            artifacts: RefCell::default(),
            artifacts_before: Cell::default(),
            allowance: Cell::default(),
        }
    }

    pub(super) fn set_budget(&self, name: &str, limit: u64) {
        self.budgets.borrow_mut().insert(name.to_owned(), [limit, 0, 0]);
    }

    /// Starts a call. Like the host, counts the call in its envelope whatever the outcome.
    pub(super) fn enter(&self, tool: &str, effect: Effect, mutations: u64) {
        self.effect.set(effect);
        self.before.replace(self.budgets.borrow().clone());
        self.artifacts_before.set(self.artifacts.borrow().len());
        self.allowance.take();
        match (effect, tool) {
            (Effect::Read, _) => {}
            (_, "test_run" | "test_report") => self.count("test_runs", 1),
            _ => self.count("mutations", mutations),
        }
    }

    /// Counts in the envelope, if there is one.
    pub(super) fn count(&self, counted: &str, units: u64) {
        if let Some(envelope) = &mut *self.envelope.borrow_mut()
            && let Some(counter) = envelope
                .counters
                .iter_mut()
                .find(|counter| counter.name == counted)
        {
            counter.used += units;
        }
    }

    /// Ends a call. Used units and artifacts of a failed `Write` call are rolled back.
    pub(super) fn leave(&self, succeeded: bool) {
        if !succeeded && self.effect.get() == Effect::Write {
            self.budgets.replace(self.before.take());
            self.artifacts.borrow_mut().truncate(self.artifacts_before.get());
        }
    }

    pub(super) fn append(&self, event: &Event) -> Result<(), LedgerError> {
        self.events.borrow_mut().push(event.clone());
        Ok(())
    }

    pub(super) fn keep(
        &self,
        kind: ArtifactKind,
        content: &[u8],
        id: impl FnOnce() -> String,
    ) -> Result<Option<String>, ArtifactError> {
        if !self.wants.contains(&Want::Artifacts) {
            return Err(ArtifactError::Denied);
        }
        if self.effect.get() == Effect::Read {
            return Err(ArtifactError::ReadOnly);
        }
        let mut allowance = self.allowance.get();
        allowance.take(content.len(), usize::MAX)?;
        self.allowance.set(allowance);
        if !self.keeps_artifacts.get() {
            return Ok(None);
        }
        let id = id();
        self.artifacts.borrow_mut().push(Artifact {
            id: id.clone(),
            kind,
            content: content.to_owned(),
        });
        Ok(Some(id))
    }

    pub(super) fn query(&self, filter: &OperationFilter) -> Result<Vec<Operation>, LedgerError> {
        if !self.wants.contains(&Want::LedgerQuery) {
            return Err(LedgerError::Denied);
        }
        let fits = |wanted: &Option<String>, is: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| is == Some(wanted))
        };
        let operations = self.operations.borrow();
        let found = operations.iter().filter(|operation| {
            fits(&filter.envelope_id, operation.envelope_id.as_deref())
                && fits(&filter.pack, Some(&operation.pack))
                && fits(&filter.tool, Some(&operation.tool))
                && fits(
                    &filter.failure_fingerprint,
                    operation.failure_fingerprint.as_deref(),
                )
                && filter
                    .success
                    .is_none_or(|wanted| operation.success == Some(wanted))
                && filter
                    .effect
                    .is_none_or(|wanted| operation.effect == Some(wanted))
                && fits(&filter.connection, Some(&operation.connection))
                && is_by(filter.actor.as_deref(), operation.actor.as_deref())
                && fits(&filter.args_hash, Some(&operation.args_hash))
                && filter.after.is_none_or(|after| operation.seq > after)
                && filter.since_ms.is_none_or(|since| operation.at_ms >= since)
        });
        let limit = filter.limit.clamp(1, 200) as usize;
        Ok(if filter.newest_first {
            found.rev().take(limit).cloned().collect()
        } else {
            found.take(limit).cloned().collect()
        })
    }

    pub(super) fn find(&self, op_id: &str) -> Result<Option<FoundOperation>, LedgerError> {
        if !self.wants.contains(&Want::LedgerQuery) {
            return Err(LedgerError::Denied);
        }
        let found = self.found.borrow();
        let mut fitting = found.iter().filter(|found| found.operation.op_id == op_id);
        Ok(fitting.next().cloned())
    }

    pub(super) fn compare(&self, op_id: &str) -> Result<TestedTree, LedgerError> {
        if !self.wants.contains(&Want::LedgerQuery) {
            return Err(LedgerError::Denied);
        }
        Ok(self.trees.borrow().get(op_id).cloned().unwrap_or_default())
    }

    /// Connection of the call, in a tool that writes.
    pub(super) fn connection(&self) -> Option<String> {
        match self.effect.get() {
            Effect::Write => self.connection.borrow().clone(),
            Effect::Read | Effect::Run => None,
        }
    }

    /// Returns the first of the operations with the same `seq` and `op_id`. The others are calls inside it.
    pub(super) fn query_whole(&self, filter: &OperationFilter) -> Result<Vec<Operation>, LedgerError> {
        let operations = self.operations.take();
        let mut whole = operations.clone();
        whole.dedup_by(|next, first| next.is_of_same_row(first));
        self.operations.replace(whole);
        let found = self.query(filter);
        self.operations.replace(operations);
        found
    }

    /// Checks that no other call holds a key.
    pub(super) fn is_free(&self, key: &str) -> bool {
        !self.taken.borrow().iter().any(|taken| taken == key)
    }

    /// Takes a slot, if the number of calls that hold a slot of this key is below the limit. Calls hold their slots
    /// until a test releases them.
    pub(super) fn take_slot(&self, slot: &Slot) -> Option<u64> {
        let mut slots = self.slots.borrow_mut();
        let taken = slots.iter().filter(|taken| taken.key == slot.key).count();
        if u32::try_from(taken).is_ok_and(|taken| taken < slot.slots) {
            slots.push(slot.clone());
            return None;
        }
        Some(slot.milliseconds)
    }

    pub(super) fn current(&self) -> Option<Envelope> {
        let mut envelope = self.envelope.borrow().clone()?;
        let budgets = self.budgets.borrow();
        envelope
            .counters
            .extend(budgets.iter().map(|(name, &[limit, used, reserved])| Counter {
                name: name.clone(),
                used: used + reserved,
                limit: Some(limit),
            }));
        Some(envelope)
    }

    pub(super) fn reserve(
        &self,
        name: &str,
        amount: u64,
        in_transaction: bool,
    ) -> Result<Box<dyn Reserved + '_>, BudgetError> {
        let granted = self
            .wants
            .iter()
            .any(|want| matches!(want, Want::Budget(wanted) if *wanted == name || *wanted == "*"));
        if !granted {
            return Err(BudgetError::Unknown(name.to_owned()));
        }
        if self.envelope.borrow().is_none() {
            return Err(BudgetError::NoEnvelope);
        }
        match self.effect.get() {
            Effect::Read => return Err(BudgetError::ReadOnly),
            Effect::Run if in_transaction => return Err(BudgetError::TransactionOpen),
            Effect::Run | Effect::Write => {}
        }
        let mut budgets = self.budgets.borrow_mut();
        let Some([limit, used, reserved]) = budgets.get_mut(name) else {
            return Err(BudgetError::Unknown(name.to_owned()));
        };
        if limit.saturating_sub(*used).saturating_sub(*reserved) < amount {
            return Err(BudgetError::Exhausted(Counter {
                name: name.to_owned(),
                used: *used + *reserved,
                limit: Some(*limit),
            }));
        }
        *reserved += amount;
        Ok(Box::new(Held {
            record: self,
            name: name.to_owned(),
            units: amount,
        }))
    }
}

/// Reserved units.
struct Held<'a> {
    record: &'a Record,
    name: String,
    units: u64,
}

impl Reserved for Held<'_> {
    fn commit(self: Box<Self>, used: u64) -> Result<(), BudgetError> {
        let mut budgets = self.record.budgets.borrow_mut();
        let Some([limit, booked, reserved]) = budgets.get_mut(&self.name) else {
            return Err(BudgetError::Unknown(self.name.clone()));
        };
        *booked += used.min(self.units);
        if used > self.units {
            return Err(BudgetError::Exhausted(Counter {
                name: self.name.clone(),
                used: *booked + *reserved - self.units,
                limit: Some(*limit),
            }));
        }
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some([_, _, reserved]) = self.record.budgets.borrow_mut().get_mut(&self.name) {
            *reserved = reserved.saturating_sub(self.units);
        }
    }
}

/// Checks whether an operation is by the actor of a filter. As in the host, a claimed name matches with and without the
/// prefix that marks claims.
fn is_by(wanted: Option<&str>, actor: Option<&str>) -> bool {
    let bare = |name: &str| name.strip_prefix("claimed:").unwrap_or(name).to_owned();
    match (wanted, actor) {
        (None, _) => true,
        (Some(wanted), Some(actor)) => {
            let is_identity = wanted.contains('#') || bare(wanted).starts_with("token:");
            wanted == actor || (!is_identity && bare(wanted) == bare(actor))
        }
        (Some(_), None) => false,
    }
}
