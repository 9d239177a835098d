//! Access to `memory` and `judged-call` through the imports of a policy.

use super::super::record;
use super::bindings::tollgate::host::{judged_call, memory as wit};
use crate::policy::{JudgedOperation, MemoryChange, MemoryError, OwnVerdict, PolicyHost, Remembered};
use crate::{LedgerError, OperationFilter};

/// Implements the policy's host with the component's imports.
pub struct PolicyImports;

impl PolicyHost for PolicyImports {
    fn recall(&self, key: &str) -> Result<Option<Remembered>, MemoryError> {
        Ok(wit::get(key).map_err(error)?.map(entry))
    }

    fn recall_all(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Remembered>, MemoryError> {
        let found = wit::list(prefix, after, limit).map_err(error)?;
        Ok(found.into_iter().map(entry).collect())
    }

    fn remember(&self, key: &str, change: &MemoryChange) -> Result<i64, MemoryError> {
        match change {
            MemoryChange::Put { text, until_ms } => wit::put(key, text, *until_ms).map(|()| 0),
            MemoryChange::Add { amount, until_ms } => wit::add(key, *amount, *until_ms),
            MemoryChange::Forget => wit::forget(key).map(|()| 0),
        }
        .map_err(error)
    }

    fn input_schema(&self) -> Option<String> {
        judged_call::input_schema()
    }

    fn query_judged(
        &self,
        filter: &OperationFilter,
        error_code: Option<&str>,
    ) -> Result<Vec<JudgedOperation>, LedgerError> {
        let filter = record::wire_filter(filter);
        let found = judged_call::query(&filter, error_code).map_err(record::ledger_error)?;
        let judged = found.into_iter().map(|found| JudgedOperation {
            operation: record::operation(found.operation),
            verdicts: found.verdicts.into_iter().map(own).collect(),
        });
        Ok(judged.collect())
    }
}

fn own(verdict: judged_call::OwnVerdict) -> OwnVerdict {
    OwnVerdict {
        phase: verdict.phase,
        mode: verdict.mode,
        verdict: verdict.verdict,
        code: verdict.code,
    }
}

fn entry(found: wit::Entry) -> Remembered {
    Remembered {
        key: found.key,
        text: found.text,
        number: found.number,
        until_ms: found.until,
    }
}

fn error(err: wit::Error) -> MemoryError {
    match err {
        wit::Error::Denied => MemoryError::Denied,
        wit::Error::Invalid(why) => MemoryError::Invalid(why),
        wit::Error::Full(bytes) => MemoryError::Full(bytes),
        wit::Error::Internal => MemoryError::Internal,
    }
}
