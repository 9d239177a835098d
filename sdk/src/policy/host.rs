//! Interface of a backend for policies.

use super::{JudgedOperation, MemoryChange, MemoryError, Remembered};
use crate::{LedgerError, OperationFilter};

/// Host of a policy as the SDK refers to it. A component has only one, its imports, which are called directly.
#[cfg(target_family = "wasm")]
pub(super) type PolicyHostRef<'a> = &'a crate::guest::policy::PolicyImports;
#[cfg(not(target_family = "wasm"))]
pub(super) type PolicyHostRef<'a> = &'a dyn PolicyHost;

/// Requests of a policy to its host, in addition to those of [`Host`](crate::Host). [`PolicyCx`](super::PolicyCx) is
/// the convenient interface; a policy never uses this trait directly.
///
/// ```
/// use tollgate_sdk::policy::PolicyHost;
///
/// /// A host without a memory.
/// struct Nothing;
///
/// impl PolicyHost for Nothing {}
/// assert!(Nothing.recall("denied/ada").is_err());
/// ```
pub trait PolicyHost {
    /// See [`Memory::get`](super::Memory::get). By default, for this method and those below, there is no memory.
    fn recall(&self, _key: &str) -> Result<Option<Remembered>, MemoryError> {
        Err(MemoryError::Denied)
    }
    /// See [`Memory::list`](super::Memory::list).
    fn recall_all(
        &self,
        _prefix: &str,
        _after: Option<&str>,
        _limit: u32,
    ) -> Result<Vec<Remembered>, MemoryError> {
        Err(MemoryError::Denied)
    }
    /// Changes an entry of the memory and returns its number after the change.
    fn remember(&self, _key: &str, _change: &MemoryChange) -> Result<i64, MemoryError> {
        Err(MemoryError::Denied)
    }
    /// See [`PolicyCx::input_schema`](super::PolicyCx::input_schema). By default no tool is known.
    fn input_schema(&self) -> Option<String> {
        None
    }
    /// See [`PolicyCx::query_judged`](super::PolicyCx::query_judged). By default nothing is granted.
    fn query_judged(
        &self,
        _filter: &OperationFilter,
        _error_code: Option<&str>,
    ) -> Result<Vec<JudgedOperation>, LedgerError> {
        Err(LedgerError::Denied)
    }
}
