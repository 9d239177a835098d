//! Limit on unfinished calls by identity. A call counts until it is over, even if its caller has left.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tollgate_core::share::Share;
use tollgate_sdk::ToolError;

/// Most unfinished calls of one identity.
const MAX_CALLS: usize = 1_024;
/// Most bytes of their arguments in total.
const MAX_BYTES: usize = 64 << 20;

/// Unfinished calls by share.
#[derive(Clone, Default)]
pub(super) struct Outstanding(Arc<Mutex<HashMap<Share, Load>>>);

#[derive(Clone, Copy, Default)]
struct Load {
    calls: usize,
    bytes: usize,
}

/// One unfinished call. Dropping it makes room.
pub(super) struct Ticket {
    share: Share,
    bytes: usize,
    all: Outstanding,
}

impl Outstanding {
    /// Admits one more call, unless its identity has reached the limit. A caller that has the process to itself
    /// cannot affect others and is not counted.
    pub(super) fn enter(&self, share: &Share, arguments: usize) -> Result<Option<Ticket>, ToolError> {
        if share.is_alone() {
            return Ok(None);
        }
        let mut loads = self.loads();
        let load = loads.get(share).copied().unwrap_or_default();
        let bytes = load.bytes.saturating_add(arguments);
        if load.calls >= MAX_CALLS || (load.calls > 0 && bytes > MAX_BYTES) {
            return Err(too_many(load));
        }
        let calls = load.calls + 1;
        loads.insert(share.clone(), Load { calls, bytes });
        Ok(Some(Ticket {
            share: share.clone(),
            bytes: arguments,
            all: self.clone(),
        }))
    }

    fn loads(&self) -> MutexGuard<'_, HashMap<Share, Load>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut loads = self.all.loads();
        if let Some(load) = loads.get_mut(&self.share) {
            load.calls -= 1;
            load.bytes -= self.bytes;
            if load.calls == 0 {
                loads.remove(&self.share);
            }
        }
    }
}

fn too_many(load: Load) -> ToolError {
    let message = format!(
        "too many unfinished calls of this identity: {} with {} bytes of arguments; at most {MAX_CALLS} calls and \
         {MAX_BYTES} bytes may wait at once",
        tollgate_core::text::counted(load.calls, "call"),
        load.bytes
    );
    ToolError::new("TOO_MANY_CALLS", message)
        .remediation("Wait until earlier calls have ended, then call again.")
        .context("calls", load.calls)
        .context("limit_calls", MAX_CALLS)
        .context("limit_bytes", MAX_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_that_leaves_too_much_behind_is_refused_and_another_is_not() {
        let all = Outstanding::default();
        let (ada, bob) = (Share::named("ada"), Share::named("bob"));
        let mut calls: Vec<_> = (0..MAX_CALLS).map(|_| all.enter(&ada, 10).unwrap()).collect();
        let refusal = all.enter(&ada, 10).map(drop).unwrap_err();
        assert_eq!(refusal.code, "TOO_MANY_CALLS");
        assert!(all.enter(&bob, 10).is_ok());
        calls.pop();
        assert!(all.enter(&ada, 10).is_ok());
        drop(calls);
        let whole = all.enter(&ada, MAX_BYTES + 1);
        assert!(whole.is_ok(), "one call may always come");
        assert!(all.enter(&ada, 1).is_err());
        drop(whole);
        assert!(all.loads().is_empty());
        assert!(matches!(all.enter(&Share::default(), MAX_BYTES), Ok(None)));
    }
}
