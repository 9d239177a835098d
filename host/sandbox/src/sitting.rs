//! Judgements on one request so far: on the calls before the current one, and the permits that those calls take.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tollgate_store::storage::{AskedBy, NewApproval, Operation, OperationFilter, PolicyRow, StoredOperation};

use crate::permit::{BadPermit, MAX_KEY, MAX_KEYS, MAX_ROWS, Permit, Slot, Terms};

/// Judgements on one request so far. Clones refer to the same request.
#[derive(Clone)]
pub struct Sitting {
    /// The future operation for the whole request.
    operation: Arc<StoredOperation>,
    /// Identity of the caller, if the transport authenticated one.
    identity: Option<Arc<str>>,
    so_far: Arc<Mutex<SoFar>>,
}

#[derive(Default)]
struct SoFar {
    /// Calls so far. The last one is being judged.
    calls: Vec<StoredOperation>,
    taken: Vec<Permit>,
    /// Permits that the current policy takes, if it lets the call through.
    wanted: Vec<(String, Terms)>,
    /// Rows of policies, to be written with the row of the call.
    rows: Vec<PolicyRow>,
    /// Rows that the current policy writes, unless it is in audit mode.
    wanted_rows: Vec<PolicyRow>,
}

impl Sitting {
    /// Empty sitting for an operation.
    pub fn of(operation: &Operation) -> Sitting {
        let identity = operation
            .identity
            .as_ref()
            .map(|identity| Arc::from(identity.as_str()));
        let sitting = Sitting::over(StoredOperation {
            op_id: operation.op_id.clone(),
            envelope_id: operation.envelope_id.clone(),
            timestamp: operation.timestamp.clone(),
            actor: operation.actor.clone(),
            connection: operation.connection.clone(),
            ..StoredOperation::default()
        });
        Sitting { identity, ..sitting }
    }

    /// Empty sitting for what would be this operation.
    pub fn over(operation: StoredOperation) -> Sitting {
        Sitting {
            operation: Arc::new(StoredOperation {
                success: Some(true),
                ..operation
            }),
            identity: None,
            so_far: Arc::default(),
        }
    }

    /// Continues with the next call of the request.
    pub fn begin(&self, pack: &str, tool: &str, effect: &str) {
        self.so_far().calls.push(StoredOperation {
            pack: pack.to_owned(),
            tool: tool.to_owned(),
            effect: effect.to_owned(),
            ..(*self.operation).clone()
        });
    }

    /// Sets the final arguments of the call.
    pub fn end(&self, args_hash: &str) {
        if let Some(call) = self.so_far().calls.last_mut() {
            args_hash.clone_into(&mut call.args_hash);
        }
    }

    /// Begins the question to a policy. Permits that it took earlier without letting the call through are discarded.
    pub fn ask(&self) {
        let mut so_far = self.so_far();
        so_far.wanted_rows.clear();
        so_far.wanted.clear();
    }

    /// A policy did not deny the call: the permits that it took become the call's. `needed_by` is its name in enforce
    /// mode.
    pub fn keep(&self, policy: &str, needed_by: Option<&str>) {
        let mut so_far = self.so_far();
        let place = so_far.calls.len();
        for (key, terms) in std::mem::take(&mut so_far.wanted) {
            // A slot belongs to one call, so another call of the request takes another slot of the same key. Units
            // add up.
            let same = so_far.taken.iter_mut().find(|permit| {
                permit.policy == policy
                    && permit.key == key
                    && (permit.terms.is_once() && terms.is_once()
                        || permit.terms.is_slot() && terms.is_slot() && permit.place == place)
            });
            let Some(permit) = same else {
                so_far.taken.push(Permit {
                    policy: policy.to_owned(),
                    key,
                    terms,
                    needed_by: needed_by.map(str::to_owned),
                    place,
                });
                continue;
            };
            if let (Terms::Once { until_ms }, Terms::Once { until_ms: until }) = (&mut permit.terms, &terms) {
                *until_ms = (*until_ms).max(*until);
            }
            if permit.needed_by.is_none() {
                permit.needed_by = needed_by.map(str::to_owned);
            }
        }
    }

    /// Keeps the rows of an enforced policy that gave a verdict, whatever the call's outcome.
    ///
    /// A request for approval may hold content of the call. If a policy denied the call without asking, no approval
    /// would let it through, and no part of the request is kept.
    pub fn keep_rows(&self, is_denied: bool) {
        let is_asking = |row: &PolicyRow| matches!(row, PolicyRow::Ask(_));
        let mut so_far = self.so_far();
        let mut wanted = std::mem::take(&mut so_far.wanted_rows);
        if is_denied && !wanted.iter().any(is_asking) {
            so_far.rows.retain(|row| !is_asking(row));
        }
        so_far.rows.append(&mut wanted);
    }

    /// Adds a row to be written with the row of the call.
    pub fn write(&self, row: PolicyRow) -> Result<(), BadPermit> {
        let mut so_far = self.so_far();
        if so_far.rows.len() + so_far.wanted_rows.len() >= MAX_ROWS {
            return Err(BadPermit::TooManyRows);
        }
        so_far.wanted_rows.push(row);
        Ok(())
    }

    /// Request for approval with a key that a policy made in this sitting.
    pub fn asked(&self, policy: &str, key: &str) -> Option<NewApproval> {
        let so_far = self.so_far();
        let asked = so_far.rows.iter().chain(&so_far.wanted_rows).rev();
        let mut asked = asked.filter_map(|row| match row {
            PolicyRow::Ask(new) => Some(new),
            PolicyRow::Settle { .. } | PolicyRow::Remember(_) => None,
        });
        let found = asked.find(|new| new.component == policy && new.request.key == key)?;
        Some((**found).clone())
    }

    /// Rows that policies want written.
    pub fn rows(&self) -> Vec<PolicyRow> {
        self.so_far().rows.clone()
    }

    /// Current call, as requests for approval name it.
    pub fn asked_by(&self) -> AskedBy {
        let tool = self.so_far().calls.last().map(|call| call.tool.clone());
        AskedBy {
            op_id: self.operation.op_id.clone(),
            envelope_id: self.operation.envelope_id.clone(),
            tool: tool.unwrap_or_default(),
            actor: self.operation.actor.clone(),
            identity: self.identity.as_deref().map(str::to_owned),
            connection: self.operation.connection.clone(),
        }
    }

    /// All permits that the request takes.
    pub fn permits(&self) -> Vec<Permit> {
        self.so_far().taken.clone()
    }

    /// Takes a key for the current call. Returns whether no other call of the same request has it. Two places in the
    /// chain may take the same key for the same call.
    pub fn take(&self, policy: &str, key: &str, until_ms: i64) -> Result<bool, BadPermit> {
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(BadPermit::Key(key.len()));
        }
        let mut so_far = self.so_far();
        let place = so_far.calls.len();
        let is_free = so_far.taken.iter().all(|permit| {
            permit.policy != policy || permit.key != key || permit.place == place || !permit.terms.is_once()
        });
        if is_free {
            so_far.want(key, Terms::Once { until_ms })?;
        }
        Ok(is_free)
    }

    /// Takes a slot for the current call. Returns how many other calls of the same request have a slot of the key.
    pub fn take_slot(&self, policy: &str, key: &str, slot: Slot) -> Result<usize, BadPermit> {
        slot.check(key)?;
        let mut so_far = self.so_far();
        let place = so_far.calls.len();
        let others = so_far.taken.iter().filter(|permit| {
            permit.policy == policy && permit.key == key && permit.place != place && permit.terms.is_slot()
        });
        let others = others.count();
        so_far.want(key, Terms::Slot(slot))?;
        Ok(others)
    }

    /// Takes units of a budget for the current call.
    pub fn reserve(&self, budget: &str, units: i64) -> Result<(), BadPermit> {
        self.so_far().want(budget, Terms::Units(units))
    }

    /// Units of a budget that the request takes so far, for all policies.
    pub fn reserved(&self, budget: &str) -> i64 {
        let so_far = self.so_far();
        let taken = so_far.taken.iter().map(|permit| (&permit.key, &permit.terms));
        let wanted = so_far.wanted.iter().map(|(key, terms)| (key, terms));
        let units = taken.chain(wanted).filter_map(|(key, terms)| match terms {
            Terms::Units(units) if key == budget => Some(*units),
            _ => None,
        });
        units.fold(0, i64::saturating_add)
    }

    /// Earlier calls of the request that match a filter, oldest first.
    pub fn earlier(&self, filter: &OperationFilter) -> Vec<StoredOperation> {
        let so_far = self.so_far();
        let before = so_far.calls.len().saturating_sub(1);
        let calls = so_far.calls.iter().take(before);
        calls.filter(|call| filter.fits(call)).cloned().collect()
    }

    fn so_far(&self) -> MutexGuard<'_, SoFar> {
        self.so_far.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SoFar {
    fn want(&mut self, key: &str, terms: Terms) -> Result<(), BadPermit> {
        if self.wanted.len() >= MAX_KEYS {
            return Err(BadPermit::TooMany);
        }
        self.wanted.push((key.to_owned(), terms));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permit::{MAX_SLOT_KEY, MAX_SLOTS};

    fn sitting() -> Sitting {
        let sitting = Sitting {
            operation: Arc::default(),
            identity: None,
            so_far: Arc::default(),
        };
        sitting.begin("tasks", "tasks_batch", "write");
        sitting
    }

    /// Asks a policy that takes a key and lets the call through.
    fn takes(sitting: &Sitting, policy: &str, key: &str) -> bool {
        sitting.ask();
        let is_free = sitting.take(policy, key, 1).unwrap();
        if is_free {
            sitting.keep(policy, Some(policy));
        }
        is_free
    }

    #[test]
    fn a_key_is_for_one_call_of_a_request() {
        let sitting = sitting();
        assert!(takes(&sitting, "approval", "k"));
        // The same component at another place in the chain, about the same call.
        assert!(takes(&sitting, "approval", "k"));
        assert!(takes(&sitting, "other", "k"));
        sitting.begin("tasks", "tasks_note", "write");
        assert!(!takes(&sitting, "approval", "k"));
        assert!(takes(&sitting, "approval", "another"));
        let permits = sitting.permits();
        let keys: Vec<&str> = permits.iter().map(|permit| permit.key.as_str()).collect();
        assert_eq!(keys, ["k", "k", "another"]);
    }

    #[test]
    fn what_a_policy_took_that_did_not_let_the_call_through_is_nobodys() {
        let sitting = sitting();
        assert!(sitting.take("approval", "k", 1).unwrap());
        sitting.ask();
        sitting.keep("approval", Some("approval"));
        assert_eq!(sitting.permits(), []);
        sitting.begin("tasks", "tasks_note", "write");
        assert!(takes(&sitting, "approval", "k"));
    }

    fn slot(slots: u32) -> Slot {
        Slot {
            slots,
            held_ms: 1_000,
            kept_by_failed: false,
            reads_by_host: false,
            code: "FULL".to_owned(),
            reason: "it is full".to_owned(),
            remediation: None,
        }
    }

    #[test]
    fn calls_of_a_request_take_a_slot_each() {
        let sitting = sitting();
        let mut others = Vec::new();
        for policy in ["rate", "rate", "other"] {
            sitting.ask();
            others.push(sitting.take_slot(policy, "k", slot(9)).unwrap());
            sitting.keep(policy, Some(policy));
        }
        // The same component at another place in the chain shares the slot of the same call.
        assert_eq!(others, [0, 0, 0]);
        sitting.begin("tasks", "tasks_note", "write");
        sitting.ask();
        assert_eq!(sitting.take_slot("rate", "k", slot(9)).unwrap(), 1);
        sitting.keep("rate", None);
        let of = |policy: &str| {
            let permits = sitting.permits();
            let named = permits.iter().filter(|permit| permit.policy == policy);
            named.map(|permit| permit.needed_by.clone()).collect::<Vec<_>>()
        };
        assert_eq!(of("rate"), [Some("rate".to_owned()), None]);
        assert_eq!(of("other").len(), 1);
        // Keys of slots are others than those that are taken once.
        sitting.ask();
        assert!(sitting.take("rate", "k", 1).unwrap());
    }

    #[test]
    fn slots_are_bounded() {
        let sitting = sitting();
        let long = "k".repeat(MAX_SLOT_KEY + 1);
        let bad = |key: &str, slot: Slot| sitting.take_slot("p", key, slot).unwrap_err();
        assert!(matches!(bad("", slot(1)), BadPermit::SlotKey(0)));
        assert!(matches!(bad(&long, slot(1)), BadPermit::SlotKey(_)));
        assert!(matches!(bad("k", slot(0)), BadPermit::Slots(0)));
        assert!(matches!(bad("k", slot(MAX_SLOTS + 1)), BadPermit::Slots(_)));
        for held_ms in [i64::MIN, 0, i64::MAX] {
            let slot = Slot { held_ms, ..slot(1) };
            assert!(matches!(bad("k", slot), BadPermit::Held(_)));
        }
    }

    #[test]
    fn rows_of_a_policy_that_only_looks_on_are_nobodys() {
        let sitting = sitting();
        let ask = |key: &str| {
            let request = tollgate_sdk::ApprovalRequest::new(key, "Deploy", serde_json::json!({}));
            let new = NewApproval::new("policy-p", request, sitting.asked_by(), (1, 1));
            sitting.ask();
            sitting.write(PolicyRow::Ask(Box::new(new))).unwrap();
        };
        ask("looks on");
        assert!(sitting.asked("policy-p", "looks on").is_some());
        ask("enforced");
        sitting.keep_rows(true);
        // Denied or not, and whatever policies are asked after it.
        sitting.ask();
        assert!(sitting.asked("policy-p", "looks on").is_none());
        assert!(sitting.asked("policy-p", "enforced").is_some());
        assert!(sitting.asked("policy-other", "enforced").is_none());
        assert_eq!(sitting.rows().len(), 1);
        assert_eq!(sitting.asked_by().tool, "tasks_batch");
        for _ in 1..MAX_ROWS {
            ask("more");
            sitting.keep_rows(false);
        }
        let new = sitting.asked("policy-p", "more").unwrap();
        let refused = sitting.write(PolicyRow::Ask(Box::new(new)));
        assert!(matches!(refused, Err(BadPermit::TooManyRows)));
        // Another policy denies the call whatever a person says.
        sitting.ask();
        sitting.keep_rows(true);
        assert!(sitting.rows().is_empty());
    }

    #[test]
    fn keys_are_bounded() {
        let sitting = sitting();
        for bad in [String::new(), "k".repeat(MAX_KEY + 1)] {
            assert!(matches!(sitting.take("p", &bad, 1), Err(BadPermit::Key(_))));
        }
        for number in 0..MAX_KEYS {
            assert!(sitting.take("p", &number.to_string(), 1).unwrap());
        }
        assert!(matches!(sitting.take("p", "more", 1), Err(BadPermit::TooMany)));
    }

    #[test]
    fn the_calls_before_are_seen_and_the_one_that_is_judged_is_not() {
        let sitting = sitting();
        sitting.end("1");
        sitting.begin("tasks", "tasks_note", "write");
        let tools = |filter: &OperationFilter| -> Vec<String> {
            let found = sitting.earlier(filter);
            found.into_iter().map(|call| call.tool).collect()
        };
        assert_eq!(tools(&OperationFilter::default()), ["tasks_batch"]);
        sitting.end("2");
        sitting.begin("tasks", "tasks_note", "write");
        let by_hash = OperationFilter {
            args_hash: Some("2".to_owned()),
            ..OperationFilter::default()
        };
        assert_eq!(tools(&by_hash), ["tasks_note"]);
        let failed = OperationFilter {
            success: Some(false),
            ..OperationFilter::default()
        };
        assert_eq!(tools(&failed), [] as [String; 0]);
    }
}
