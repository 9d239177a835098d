//! What was judged of one request so far: the calls before the one that is judged, and what those calls take that
//! counts once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::storage::{Operation, OperationFilter, StoredOperation};

/// Longest key of what counts once, in bytes.
const MAX_KEY: usize = 200;
/// Most keys that a policy takes for one call.
const MAX_KEYS: usize = 16;

/// What a call takes in its own commit, because a policy lets it count once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit {
    /// Whose key it is, by the name of its component.
    pub policy: String,
    /// The key.
    pub key: String,
    /// Until when, in milliseconds since 1970 UTC.
    pub until_ms: i64,
    /// The call is refused if another has it. Otherwise the policy only looks on.
    pub is_needed: bool,
    /// Which call of the request it is for.
    place: usize,
}

/// A key that nobody can take.
#[derive(Debug, thiserror::Error)]
pub enum BadPermit {
    /// A key that is empty or too long.
    #[error("a key has 1 to {MAX_KEY} bytes, and this one has {0}")]
    Key(usize),
    /// There are too many.
    #[error("at most {MAX_KEYS} keys are taken for one call")]
    TooMany,
}

/// What was judged of one request so far. Clones are about the same request.
#[derive(Clone)]
pub struct Sitting {
    /// The operation to be, as the whole.
    operation: Arc<StoredOperation>,
    so_far: Arc<Mutex<SoFar>>,
}

#[derive(Default)]
struct SoFar {
    /// The calls that were judged, the last of which is being judged.
    calls: Vec<StoredOperation>,
    taken: Vec<Permit>,
    /// What the policy that is asked takes, if it lets the call through.
    wanted: Vec<(String, i64)>,
}

impl Sitting {
    /// Nothing was judged yet of an operation.
    pub fn of(operation: &Operation) -> Sitting {
        Sitting::over(StoredOperation {
            op_id: operation.op_id.clone(),
            envelope_id: operation.envelope_id.clone(),
            timestamp: operation.timestamp.clone(),
            actor: operation.actor.clone(),
            connection: operation.connection.clone(),
            ..StoredOperation::default()
        })
    }

    /// Nothing was judged yet of what would be this operation.
    pub fn over(operation: StoredOperation) -> Sitting {
        Sitting {
            operation: Arc::new(StoredOperation {
                success: Some(true),
                ..operation
            }),
            so_far: Arc::default(),
        }
    }

    /// Goes on to the next call of the request.
    pub(crate) fn begin(&self, pack: &str, tool: &str, effect: &str) {
        self.so_far().calls.push(StoredOperation {
            pack: pack.to_owned(),
            tool: tool.to_owned(),
            effect: effect.to_owned(),
            ..(*self.operation).clone()
        });
    }

    /// Says which arguments the call has in the end.
    pub(crate) fn end(&self, args_hash: &str) {
        if let Some(call) = self.so_far().calls.last_mut() {
            args_hash.clone_into(&mut call.args_hash);
        }
    }

    /// A policy is asked. What it took before without letting the call through is forgotten.
    pub(crate) fn ask(&self) {
        self.so_far().wanted.clear();
    }

    /// A policy did not deny the call: what it took for it is the call's.
    pub(crate) fn keep(&self, policy: &str, is_needed: bool) {
        let mut so_far = self.so_far();
        let place = so_far.calls.len();
        for (key, until_ms) in std::mem::take(&mut so_far.wanted) {
            let same = so_far
                .taken
                .iter_mut()
                .find(|permit| permit.policy == policy && permit.key == key);
            match same {
                Some(permit) => {
                    permit.until_ms = permit.until_ms.max(until_ms);
                    permit.is_needed |= is_needed;
                }
                None => so_far.taken.push(Permit {
                    policy: policy.to_owned(),
                    key,
                    until_ms,
                    is_needed,
                    place,
                }),
            }
        }
    }

    /// All that the request takes.
    pub(crate) fn permits(&self) -> Vec<Permit> {
        self.so_far().taken.clone()
    }

    /// Takes a key for the call that is judged. Whether no other call of the same request has it. Two places in the
    /// chain may take the same for the same call.
    pub fn take(&self, policy: &str, key: &str, until_ms: i64) -> Result<bool, BadPermit> {
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(BadPermit::Key(key.len()));
        }
        let mut so_far = self.so_far();
        let place = so_far.calls.len();
        let is_free = so_far
            .taken
            .iter()
            .all(|permit| permit.policy != policy || permit.key != key || permit.place == place);
        if is_free {
            if so_far.wanted.len() >= MAX_KEYS {
                return Err(BadPermit::TooMany);
            }
            so_far.wanted.push((key.to_owned(), until_ms));
        }
        Ok(is_free)
    }

    /// The calls that were judged before the one that is judged, which fit a filter. The oldest first.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sitting() -> Sitting {
        let sitting = Sitting {
            operation: Arc::default(),
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
            sitting.keep(policy, true);
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
        sitting.keep("approval", true);
        assert_eq!(sitting.permits(), []);
        sitting.begin("tasks", "tasks_note", "write");
        assert!(takes(&sitting, "approval", "k"));
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
