//! Guests that run in a store: the store's type, and the reasons for which a guest is stopped.

use std::fmt;

use tollgate_store::storage::OpenError;
use wasmtime::component::ResourceTableError;
use wasmtime::{Store, Trap};

use crate::CallState;

/// Store of one call.
pub type CallStore = Store<CallState>;

/// Result of running a guest.
pub type GuestResult<T> = Result<T, Stopped>;

/// A guest that was stopped before it returned. The alternate form of `Display` has the whole chain of causes.
#[derive(Debug)]
pub struct Stopped(wasmtime::Error);

/// Reason for which a guest was stopped, as far as its trap shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The deadline interrupted it.
    Interrupt,
    /// The guest recursed too deeply.
    StackOverflow,
    /// The guest held too many handles.
    Handles,
    /// The guest crashed, or the host failed.
    Other,
}

impl Stopped {
    /// Error for a guest whose code is not loaded.
    pub fn without_code() -> Stopped {
        Stopped(wasmtime::Error::msg("the component's code is not loaded"))
    }

    /// Reason of the stop.
    pub fn reason(&self) -> StopReason {
        if matches!(self.0.downcast_ref(), Some(ResourceTableError::Full)) {
            return StopReason::Handles;
        }
        match self.0.downcast_ref::<Trap>() {
            Some(Trap::Interrupt) => StopReason::Interrupt,
            Some(Trap::StackOverflow) => StopReason::StackOverflow,
            _ => StopReason::Other,
        }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<wasmtime::Error> for Stopped {
    fn from(err: wasmtime::Error) -> Stopped {
        Stopped(err)
    }
}

impl From<OpenError> for Stopped {
    fn from(err: OpenError) -> Stopped {
        Stopped(err.into())
    }
}
