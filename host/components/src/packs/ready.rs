//! Code of a pack, loaded on first use.
//!
//! A pack whose manifest is known has tools before it has code. A call waits only for the code of its own pack.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use tokio::sync::OnceCell;
use tollgate_sandbox::CallState;
use tollgate_sandbox::bindings::ToolPackPre;

use crate::loading::Code;

/// Pre-instantiated component of a pack, and its code.
pub(super) struct Linked {
    pub(super) pre: ToolPackPre<CallState>,
    pub(super) _code: Code,
}

/// Linked code, or all problems.
type Result = std::result::Result<Linked, Vec<String>>;

/// Code of a pack that is loaded once.
#[derive(Clone)]
pub(super) struct Ready(Arc<Inner>);

struct Inner {
    cell: OnceCell<Result>,
    /// Loader future, taken when loading begins.
    make: Mutex<Option<BoxFuture<'static, Result>>>,
}

impl Ready {
    /// Code that is already loaded.
    pub(super) fn now(linked: Linked) -> Ready {
        Ready(Arc::new(Inner {
            cell: OnceCell::new_with(Some(Ok(linked))),
            make: Mutex::default(),
        }))
    }

    /// Code that is loaded on demand.
    pub(super) fn later(make: impl Future<Output = Result> + Send + 'static) -> Ready {
        Ready(Arc::new(Inner {
            cell: OnceCell::new(),
            make: Mutex::new(Some(Box::pin(make))),
        }))
    }

    /// Linked code, if it is loaded.
    pub(super) fn linked(&self) -> Option<&Linked> {
        self.0.cell.get()?.as_ref().ok()
    }

    /// Waits for the code. A caller that stops waiting does not stop the loading.
    pub(super) async fn wait(&self) -> std::result::Result<(), Vec<String>> {
        if self.0.cell.get().is_none() {
            let inner = Arc::clone(&self.0);
            let making = tokio::spawn(async move {
                inner.cell.get_or_init(|| inner.make()).await;
            });
            // The task ends early only if the whole process ends or the host panicked in it.
            let _ = making.await;
        }
        match self.0.cell.get() {
            Some(Ok(_)) => Ok(()),
            Some(Err(problems)) => Err(problems.clone()),
            None => Err(vec!["the host failed while it was being loaded".to_owned()]),
        }
    }
}

impl Inner {
    async fn make(&self) -> Result {
        let make = self.make.lock().unwrap_or_else(PoisonError::into_inner).take();
        match make {
            Some(make) => make.await,
            None => Err(vec!["the host failed while it was being loaded".to_owned()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn code_that_nobody_waits_for_any_more_is_made_once_all_the_same() {
        let made = Arc::new(AtomicU32::new(0));
        let (begin, begun) = tokio::sync::oneshot::channel::<()>();
        let count = Arc::clone(&made);
        let ready = Ready::later(async move {
            count.fetch_add(1, Ordering::Relaxed);
            let _ = begun.await;
            Err(vec!["made".to_owned()])
        });
        {
            let mut given_up = Box::pin(ready.wait());
            assert!(futures::poll!(&mut given_up).is_pending());
            tokio::task::yield_now().await;
        }
        let (one, other) = tokio::join!(ready.wait(), async {
            begin.send(()).unwrap();
            ready.wait().await
        });
        assert_eq!(one, Err(vec!["made".to_owned()]));
        assert_eq!(one, other);
        assert_eq!(made.load(Ordering::Relaxed), 1);
        assert!(ready.linked().is_none());
    }
}
