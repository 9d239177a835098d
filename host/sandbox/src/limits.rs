//! Limits of one call.

use std::time::Duration;

use tollgate_store::storage::Bounds;
use wasmtime::ResourceLimiter;

/// Limits of one component's calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Linear memory in bytes. Growing past it traps.
    pub memory: usize,
    /// Time limit of a `read` call.
    pub read: Duration,
    /// Time limit of a `write` call, which holds the write lock.
    pub write: Duration,
    /// Time limit of a `run` call.
    pub run: Duration,
    /// Bytes of the database that the component's rows may take.
    pub storage: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            memory: 64 << 20,
            read: Duration::from_secs(5),
            write: Duration::from_secs(2),
            run: Duration::from_secs(30),
            storage: 1 << 30,
        }
    }
}

impl Limits {
    /// Bounds of the component's tables and migrations.
    pub fn of_tables(&self) -> Bounds {
        Bounds {
            storage: self.storage,
            memory: self.memory as u64,
        }
    }
}

pub(super) const INSTANCES: usize = 32;
pub(super) const MEMORIES: usize = 8;
pub(super) const TABLES: usize = 32;
pub(super) const TABLE_ELEMENTS: usize = 20_000;
/// Bytes that the host copies out of a guest during one call.
pub(super) const HOSTCALL_FUEL: usize = 4 << 20;
/// Most resources that a guest may hold at once.
pub(super) const HANDLES: usize = 1_000;
/// Most random bytes in one request.
pub(super) const RANDOM_BYTES: u64 = 64 << 10;

/// Limit that a guest exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exceeded {
    /// Linear memory.
    Memory,
    /// Table elements.
    Table,
}

/// Limits a store's memories and tables, and remembers the limit that was exceeded: wasmtime reports it only as text.
#[derive(Debug)]
pub(super) struct Limiter {
    memory: usize,
    pub(super) exceeded: Option<Exceeded>,
}

impl Limiter {
    pub(super) fn new(limits: &Limits) -> Limiter {
        Limiter {
            memory: limits.memory,
            exceeded: None,
        }
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, _now: usize, wanted: usize, _max: Option<usize>) -> wasmtime::Result<bool> {
        if wanted <= self.memory {
            return Ok(true);
        }
        self.exceeded = Some(Exceeded::Memory);
        Err(wasmtime::format_err!("memory limit of {} bytes", self.memory))
    }

    fn table_growing(&mut self, _now: usize, wanted: usize, _max: Option<usize>) -> wasmtime::Result<bool> {
        if wanted <= TABLE_ELEMENTS {
            return Ok(true);
        }
        self.exceeded = Some(Exceeded::Table);
        Err(wasmtime::format_err!("table limit of {TABLE_ELEMENTS} elements"))
    }

    fn instances(&self) -> usize {
        INSTANCES
    }

    fn tables(&self) -> usize {
        TABLES
    }

    fn memories(&self) -> usize {
        MEMORIES
    }
}
