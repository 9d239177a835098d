//! Memory of a policy in native tests.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use super::Backend;
use crate::policy::memory::{MAX_CHANGES, MAX_LISTED, check_key};
use crate::policy::{JudgedOperation, MemoryChange, MemoryError, PolicyHost, Remembered};
use crate::{Host as _, LedgerError, OperationFilter};

/// Storage quota of a policy if the operator sets no limit.
const DEFAULT_QUOTA_BYTES: u64 = 64 << 20;

/// Memory over all evaluations, and the memory of the current evaluation.
pub(super) struct Recollection {
    kept: RefCell<BTreeMap<String, Remembered>>,
    /// The same memory with the changes of the current evaluation.
    wanted: RefCell<BTreeMap<String, Remembered>>,
    changes: Cell<usize>,
    now_ms: Cell<i64>,
    pub(super) input_schema: Option<String>,
    pub(super) quota: u64,
}

impl Default for Recollection {
    fn default() -> Recollection {
        Recollection {
            kept: RefCell::default(),
            wanted: RefCell::default(),
            changes: Cell::new(0),
            now_ms: Cell::new(0),
            input_schema: None,
            quota: DEFAULT_QUOTA_BYTES,
        }
    }
}

impl Recollection {
    /// Starts an evaluation at the time of its call.
    pub(super) fn begin(&self, now_ms: i64) {
        self.now_ms.set(now_ms);
        self.changes.set(0);
        let mut kept = self.kept.borrow_mut();
        kept.retain(|_, entry| !entry.is_over(now_ms));
        self.wanted.replace(kept.clone());
    }

    /// Ends the evaluation. A failed evaluation changes nothing.
    pub(super) fn end(&self, is_kept: bool) {
        if is_kept {
            self.kept.replace(self.wanted.take());
        }
    }

    pub(super) fn all(&self) -> Vec<Remembered> {
        self.kept.borrow().values().cloned().collect()
    }

    /// Creates the host of a policy over the ledger of a session.
    pub(super) fn of<'a>(&'a self, backend: &'a Backend) -> EvaluationHost<'a> {
        EvaluationHost {
            memory: self,
            backend,
        }
    }
}

/// Host of a policy during one evaluation.
pub(super) struct EvaluationHost<'a> {
    memory: &'a Recollection,
    backend: &'a Backend,
}

impl PolicyHost for EvaluationHost<'_> {
    fn recall(&self, key: &str) -> Result<Option<Remembered>, MemoryError> {
        check_key(key)?;
        Ok(self.memory.wanted.borrow().get(key).cloned())
    }

    fn recall_all(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Remembered>, MemoryError> {
        let limit = usize::try_from(limit.clamp(1, MAX_LISTED)).unwrap_or(usize::MAX);
        let wanted = self.memory.wanted.borrow();
        let fits = |entry: &&Remembered| {
            entry.key.starts_with(prefix) && after.is_none_or(|after| entry.key.as_str() > after)
        };
        Ok(wanted.values().filter(fits).take(limit).cloned().collect())
    }

    fn remember(&self, key: &str, change: &MemoryChange) -> Result<i64, MemoryError> {
        change.check(key)?;
        let memory = self.memory;
        if memory.changes.get() >= MAX_CHANGES {
            return Err(MemoryError::too_many());
        }
        let mut wanted = memory.wanted.borrow_mut();
        let before = wanted.get(key).cloned();
        let old = before.as_ref().map_or(0, Remembered::bytes);
        let after = change.apply(key, before, memory.now_ms.get());
        let new = after.as_ref().map_or(0, Remembered::bytes);
        let used: u64 = wanted.values().map(Remembered::bytes).sum();
        if new > old && used - old + new > memory.quota {
            return Err(MemoryError::Full(memory.quota));
        }
        memory.changes.set(memory.changes.get() + 1);
        let number = after.as_ref().map_or(0, |entry| entry.number);
        match after {
            Some(entry) => wanted.insert(key.to_owned(), entry),
            None => wanted.remove(key),
        };
        Ok(number)
    }

    fn input_schema(&self) -> Option<String> {
        self.memory.input_schema.clone()
    }

    fn query_judged(
        &self,
        filter: &OperationFilter,
        error_code: Option<&str>,
    ) -> Result<Vec<JudgedOperation>, LedgerError> {
        // The filter by code comes before the limit, as in the host.
        let all = OperationFilter {
            limit: 200,
            ..filter.clone()
        };
        let found = self.backend.query_ledger(&all)?;
        let fits = |code: Option<&str>| error_code.is_none() || code == error_code;
        let found = found
            .into_iter()
            .filter(|found| fits(found.error_code.as_deref()));
        let limit = usize::try_from(filter.limit.clamp(1, 200)).unwrap_or(usize::MAX);
        let judged = found.take(limit).map(|operation| JudgedOperation {
            operation,
            verdicts: Vec::new(),
        });
        Ok(judged.collect())
    }
}
