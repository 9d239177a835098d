//! Asks a component to describe itself before it gets any capability.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tollgate_core::deadline::{Cancel, Deadline};
use tollgate_core::effect::Effect;
use tollgate_sandbox::facts::{Facts, Transactions};
use tollgate_sandbox::process::Launcher;
use tollgate_sandbox::progress::Progress;
use tollgate_sandbox::state::Setup;
use tollgate_sandbox::{CallState, Limits};
use tollgate_store::artifacts::CallArtifacts;
use tollgate_store::storage::{self, Namespace};
use wasmtime::component::InstancePre;
use wasmtime::{Store, Trap};

use super::code_cache::Code;
use super::loader::Loader;
use super::problems::one;

/// Time limit for a component to describe itself.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(5);

impl Loader {
    /// Links a component to what this host offers.
    pub fn link<P>(
        &self,
        code: &Code,
        pre: impl FnOnce(InstancePre<CallState>) -> wasmtime::Result<P>,
    ) -> Result<P, Vec<String>> {
        self.sandbox
            .linker()
            .instantiate_pre(code.component())
            .and_then(pre)
            .map_err(|err| vec![format!("it cannot be linked with this host: {err:#}")])
    }

    /// Sets a deadline for components that are asked to describe themselves.
    pub fn end_by(&self, end: Instant) {
        let _ = self.end.set(end);
    }

    /// Asks a component something while it is being loaded. Meanwhile it has no storage: its session is on an empty
    /// in-memory database, where nothing is written either. It starts no programs.
    pub fn ask<T>(
        &self,
        what: &str,
        ask: impl FnOnce(&mut Store<CallState>) -> wasmtime::Result<T> + Send,
    ) -> Result<T, Vec<String>>
    where
        T: Send,
    {
        let session = storage::empty_session().map_err(one)?;
        session.freeze().map_err(one)?;
        let left = self
            .end
            .get()
            .map(|end| end.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Err(vec![format!("the time limit was reached before it could {what}")]);
        }
        let time = left.map_or(DESCRIBE_TIMEOUT, |left| left.min(DESCRIBE_TIMEOUT));
        let deadline = Deadline::after(time, Cancel::default());
        let namespace = Namespace::of_pack("-");
        session.enter(&namespace, &deadline);
        let setup = Setup {
            namespace,
            facts: Facts::default(),
            deadline: deadline.clone(),
            clock: Arc::clone(&self.clock),
            transactions: Transactions::None,
            effect: Effect::Read,
            access: Arc::default(),
            launcher: Arc::new(Launcher::refusing()),
            progress: Progress::default(),
            artifacts: CallArtifacts::default(),
        };
        let state = CallState::new(setup, Box::new(session), &Limits::default());
        // On a separate thread: WASI blocks the runtime's thread when the component prints or panics.
        let asked = std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let mut store = state.into_store(&self.sandbox);
                let _running = self.sandbox.running();
                ask(&mut store)
            });
            asking.join()
        });
        match asked {
            Ok(Err(_)) if deadline.is_over() => Err(vec![format!(
                "it does not {what} within {:.1} s",
                time.as_secs_f32()
            )]),
            Ok(said) => said.map_err(|err| match err.downcast_ref::<Trap>() {
                // The details of the crash mean little to the person who adds the component.
                Some(trap) => vec![format!("it does not {what}: it crashed ({trap})")],
                None => vec![format!("it does not {what}: {err:#}")],
            }),
            Err(_) => Err(vec![format!("the host failed while waiting for it to {what}")]),
        }
    }
}
