//! In-memory cache of loaded code, shared by all components with the same bytes.
//!
//! A component that is registered under several names, or that a new configuration keeps, is in memory only once. Its
//! code also stays in the processor's caches from one use to the next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OnceCell;
use wasmtime::component::Component;

type Cell = OnceCell<Component>;

/// Code of a component, shared for as long as any holder keeps it.
#[derive(Clone)]
pub struct Code {
    component: Component,
    _held: Arc<Cell>,
}

impl Code {
    /// Compiled component to link.
    pub fn component(&self) -> &Component {
        &self.component
    }
}

/// Code that is in use, by the SHA-256 of the component's bytes.
#[derive(Default)]
pub(super) struct Codes {
    held: Mutex<HashMap<String, Weak<Cell>>>,
}

impl Codes {
    /// Code of a component, loaded unless it is in use. Concurrent requests for the same code wait for the first. A
    /// failed load is tried again on the next request.
    pub(super) async fn get<E>(
        &self,
        hash: &str,
        make: impl Future<Output = Result<Component, E>>,
    ) -> Result<Code, E> {
        let cell = self.cell(hash);
        let component = cell.get_or_try_init(|| make).await?.clone();
        Ok(Code {
            component,
            _held: cell,
        })
    }

    fn cell(&self, hash: &str) -> Arc<Cell> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = held.get(hash).and_then(Weak::upgrade) {
            return cell;
        }
        held.retain(|_, cell| cell.strong_count() > 0);
        let cell = Arc::default();
        held.insert(hash.to_owned(), Arc::downgrade(&cell));
        cell
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell as Counter;

    use wasmtime::Engine;

    use super::*;

    #[tokio::test]
    async fn code_is_made_once_for_as_long_as_it_is_held() {
        let engine = Engine::new(&tollgate_sandbox::engine_config()).unwrap();
        let codes = Codes::default();
        let made = Counter::new(0);
        let make = async || {
            made.set(made.get() + 1);
            tokio::task::yield_now().await;
            Component::new(&engine, b"\0asm\x0d\0\x01\0").map_err(drop)
        };
        let (one, other) = tokio::join!(codes.get("a", make()), codes.get("a", make()));
        assert_eq!(made.get(), 1);
        drop(one.unwrap());
        let other = other.unwrap();
        drop(codes.get("a", make()).await.unwrap());
        assert_eq!(made.get(), 1);
        drop(codes.get("b", make()).await.unwrap());
        assert_eq!(made.get(), 2);
        drop(other);
        assert!(codes.get("c", async { Err(()) }).await.is_err());
        drop(codes.get("c", make()).await.unwrap());
        assert!(codes.get("a", make()).await.is_ok());
        assert_eq!(made.get(), 4);
        // Code that is not in use is dropped: only the last requested entry remains.
        assert_eq!(codes.held.lock().unwrap().len(), 1);
    }
}
