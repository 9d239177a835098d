//! The engine that all components share, and the epoch ticker that lets deadlines interrupt guests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tollgate_engine::config;
use wasmtime::component::Linker;
use wasmtime::{Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use super::limits;
use super::state::CallState;
use crate::capabilities;

/// Interval at which a running guest checks its deadline.
const DEADLINE_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Most calls inside guests at once: readers, the writer, runners.
const CONCURRENT_CALLS: u32 = 40;
/// Most instances that wait for a call, or for being cleared after one.
const POOLED_INSTANCES: u32 = 48;
/// Bytes of a memory that are cleared in place for the next instance instead of being returned to the system: the
/// amount that a call of an ordinary pack touches.
const KEPT_MEMORY: usize = 512 << 10;

/// Reason for which the sandbox could not be set up.
#[derive(Debug, Error)]
#[error("cannot set up the WebAssembly engine: {0}")]
pub struct SandboxError(wasmtime::Error);

/// The engine, the linker for components, and the ticker.
pub struct Sandbox {
    engine: Engine,
    linker: Linker<CallState>,
    ticker: Ticker,
    /// Counts pooled instances: one reference for each, and one of its own.
    pooled: Arc<()>,
}

/// Pool slot of an instance, released when it is dropped.
pub struct PoolSlot(#[expect(dead_code, reason = "it is counted")] Arc<()>);

impl Sandbox {
    /// Sets up the engine and links every capability that this host offers.
    pub fn new() -> Result<Sandbox, SandboxError> {
        let engine = pooling_engine().map_err(SandboxError)?;
        let mut linker = Linker::new(&engine);
        link(&mut linker).map_err(SandboxError)?;
        let ticker = Ticker::start(engine.clone());
        Ok(Sandbox {
            engine,
            linker,
            ticker,
            pooled: Arc::new(()),
        })
    }

    /// Pool slot for a waiting instance, if one is free. Two concurrent requests may both get the last slot, for
    /// which there is a margin.
    pub fn pool_slot(&self) -> Option<PoolSlot> {
        let taken = Arc::strong_count(&self.pooled) - 1;
        (taken < POOLED_INSTANCES as usize / 2).then(|| PoolSlot(Arc::clone(&self.pooled)))
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Linker of everything that components can import.
    pub fn linker(&self) -> &Linker<CallState> {
        &self.linker
    }

    /// Keeps the ticker running while a guest runs.
    pub fn running(&self) -> Running<'_> {
        self.ticker.enter()
    }
}

fn pooling_engine() -> wasmtime::Result<Engine> {
    let mut pool = PoolingAllocationConfig::new();
    let instances = CONCURRENT_CALLS + POOLED_INSTANCES;
    let memories = instances * 2;
    pool.total_component_instances(instances)
        .total_core_instances(instances * 8)
        .total_memories(memories)
        .total_tables(instances * 8)
        .table_elements(limits::TABLE_ELEMENTS)
        .max_core_instances_per_component(u32::try_from(limits::INSTANCES)?)
        .max_memories_per_component(u32::try_from(limits::MEMORIES)?)
        .max_tables_per_component(u32::try_from(limits::TABLES)?)
        .max_unused_warm_slots(memories)
        .linear_memory_keep_resident(KEPT_MEMORY)
        .pagemap_scan(Enabled::Auto)
        .table_keep_resident(64 << 10);
    let mut pooling = config();
    pooling.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&pooling).or_else(|err| {
        tracing::warn!(%err, "not enough address space for pooled instances; calls will be slower");
        Engine::new(&config())
    })
}

fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_sync(linker)?;
    capabilities::link(linker)
}

/// Advances the engine's epoch while guests run, and sleeps while none does.
struct Ticker {
    shared: Arc<Shared>,
}

struct Shared {
    guests: Mutex<Guests>,
    started: Condvar,
    stop: AtomicBool,
}

#[derive(Default)]
struct Guests {
    running: usize,
    /// True while the ticker sleeps until a guest starts. Waking it costs a system call, which calls in quick
    /// succession avoid.
    ticker_sleeps: bool,
}

impl Ticker {
    fn start(engine: Engine) -> Ticker {
        let shared = Arc::new(Shared {
            guests: Mutex::default(),
            started: Condvar::new(),
            stop: AtomicBool::new(false),
        });
        let seen = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("ticker".to_owned())
            .spawn(move || tick(&seen, &engine))
            .expect("a thread can be started");
        Ticker { shared }
    }

    fn enter(&self) -> Running<'_> {
        let mut guests = lock(&self.shared.guests);
        guests.running += 1;
        if guests.ticker_sleeps {
            self.shared.started.notify_one();
        }
        Running { shared: &self.shared }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.started.notify_one();
    }
}

/// Guard of a running guest. Drop it when the guest is done.
pub struct Running<'a> {
    shared: &'a Shared,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        lock(&self.shared.guests).running -= 1;
    }
}

fn tick(shared: &Shared, engine: &Engine) {
    while !shared.stop.load(Ordering::Relaxed) {
        let mut guests = lock(&shared.guests);
        while guests.running == 0 && !shared.stop.load(Ordering::Relaxed) {
            guests.ticker_sleeps = true;
            guests = shared
                .started
                .wait(guests)
                .unwrap_or_else(PoisonError::into_inner);
            guests.ticker_sleeps = false;
        }
        drop(guests);
        // A late wake-up counts as one tick, because each guest checks the clock itself.
        std::thread::sleep(DEADLINE_CHECK_INTERVAL);
        engine.increment_epoch();
    }
}

fn lock(mutex: &Mutex<Guests>) -> std::sync::MutexGuard<'_, Guests> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
