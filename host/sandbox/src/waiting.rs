//! `wasi:io/poll` under the call's deadline.
//!
//! A waiting guest waits in the host, where no epoch interrupts it. So a wait ends with the call's time, and the
//! guest is then interrupted like one that computes for too long. No other function of WASI can block: standard input
//! is closed, output is accepted at once, and there are no files or sockets.

use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use tollgate_core::deadline::Deadline;
use wasmtime::Trap;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi::p2::bindings::sync::io::poll;
use wasmtime_wasi::runtime::in_tokio;
use wasmtime_wasi_io::bindings::wasi::io::poll as unbounded;

use super::limits;

/// Interval at which a waiting guest checks its deadline, which may be cancelled or moved.
const DEADLINE_CHECK_INTERVAL: Duration = Duration::from_millis(5);

pub(super) struct View<'a> {
    pub(super) table: &'a mut ResourceTable,
    pub(super) deadline: &'a Deadline,
}

impl poll::Host for View<'_> {
    fn poll(&mut self, pollables: Vec<Resource<DynPollable>>) -> wasmtime::Result<Vec<u32>> {
        // A guest holds no more resources, so a longer list would only contain duplicates.
        wasmtime::ensure!(
            pollables.len() <= limits::HANDLES,
            "a poll accepts at most {} pollables",
            limits::HANDLES
        );
        until(self.deadline, unbounded::Host::poll(self.table, pollables))
    }
}

impl poll::HostPollable for View<'_> {
    fn ready(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<bool> {
        poll::HostPollable::ready(self.table, pollable)
    }

    fn block(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        until(
            self.deadline,
            unbounded::HostPollable::block(self.table, pollable),
        )
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        poll::HostPollable::drop(self.table, pollable)
    }
}

/// Waits for a future, at most until the deadline.
fn until<T>(deadline: &Deadline, wait: impl Future<Output = wasmtime::Result<T>>) -> wasmtime::Result<T> {
    in_tokio(async {
        let mut wait = pin!(wait);
        loop {
            let step = deadline.remaining().min(DEADLINE_CHECK_INTERVAL);
            let since = Instant::now();
            let waited = tokio::time::timeout(step, &mut wait).await;
            deadline.waited(since.elapsed());
            match waited {
                Ok(done) => return done,
                Err(_) if deadline.is_over() => return Err(Trap::Interrupt.into()),
                Err(_) => {}
            }
        }
    })
}

struct HasView;

impl HasData for HasView {
    type Data<'a> = View<'a>;
}

/// Replaces the functions that wait as long as a guest likes by bounded ones.
pub(super) fn add_to_linker<T: 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> View<'_>,
) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let added = poll::add_to_linker::<_, HasView>(linker, view);
    linker.allow_shadowing(false);
    added
}
