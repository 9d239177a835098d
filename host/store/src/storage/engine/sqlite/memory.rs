//! Limit on the memory that SQLite uses for a component's statements.
//!
//! SQLite sorts, groups and materialises in memory, and has no limit for a single connection. Its allocator is
//! replaced by one that counts the bytes allocated by each thread, and that fails past a budget while a component's
//! statement runs. SQLite then undoes the statement.

#![allow(unsafe_code, reason = "SQLite takes an allocator as C functions only")]

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::time::Instant;

use rusqlite::ffi;

/// Smallest allocation that checks the deadline: building long values is what takes time between two checks of the
/// progress handler.
const DEADLINE_CHECK_BYTES: i64 = 32 << 10;
/// Overhead that is counted for each allocation. Sorting compares as often in one instruction as there are rows, so
/// many small allocations must not be cheap.
const ALLOCATION_OVERHEAD_BYTES: i64 = 64;
/// Room past an exhausted budget, for the small allocations of undoing the statement.
const SLACK_BYTES: i64 = 1 << 20;
/// Bytes of original pages that a transaction keeps in memory before they go to a file. Below 128 KiB, because SQLite
/// writes them in one piece and keeps 17 bits of the length: 128 KiB would fail as a full disk.
const JOURNAL_SPILL: c_int = 124 << 10;

/// Memory budget of a component's statements on this thread.
#[derive(Debug, Clone, Copy)]
pub(in crate::storage) struct Budget {
    /// This thread's count when the component's call began.
    start: i64,
    /// Most bytes above `start`.
    limit: i64,
    /// Time from which large allocations are refused.
    end: Option<Instant>,
}

/// Reason for which an allocation was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::storage) enum Denial {
    /// The budget is exhausted.
    Memory,
    /// The call's time is up.
    Time,
}

thread_local! {
    /// Bytes that SQLite allocated on this thread minus those it freed on it.
    static HELD_BYTES: Cell<i64> = const { Cell::new(0) };
    /// The budget in force, while a component's statement runs.
    static ARMED_BUDGET: Cell<Option<Budget>> = const { Cell::new(None) };
    #[cfg(test)]
    static PEAK_BYTES: Cell<i64> = const { Cell::new(0) };
    /// The first refusal since [`Budget::arm`].
    static FIRST_DENIAL: Cell<Option<Denial>> = const { Cell::new(None) };
}

impl Budget {
    /// Budget of `limit` bytes more than this thread holds now.
    pub(in crate::storage) fn from_now(limit: u64) -> Budget {
        Budget {
            start: HELD_BYTES.get(),
            limit: i64::try_from(limit).unwrap_or(i64::MAX),
            end: None,
        }
    }

    /// Activates the budget on this thread until the result is dropped.
    #[must_use]
    pub(in crate::storage) fn arm(self) -> Armed {
        FIRST_DENIAL.set(None);
        Armed {
            before: ARMED_BUDGET.replace(Some(self)),
        }
    }

    /// Budget that also refuses large allocations from `end` on.
    pub(in crate::storage) fn until(self, end: Option<Instant>) -> Budget {
        Budget { end, ..self }
    }

    fn denies(&self, more: i64) -> Option<Denial> {
        let slack = match FIRST_DENIAL.get() {
            Some(Denial::Memory) if more < DEADLINE_CHECK_BYTES => SLACK_BYTES,
            _ => 0,
        };
        let held = HELD_BYTES.get().saturating_add(more).saturating_sub(self.start);
        if held > self.limit.saturating_add(slack) {
            return Some(Denial::Memory);
        }
        let late = more >= DEADLINE_CHECK_BYTES && self.end.is_some_and(|end| Instant::now() >= end);
        late.then_some(Denial::Time)
    }
}

/// Guard of an active budget.
pub(in crate::storage) struct Armed {
    before: Option<Budget>,
}

impl Drop for Armed {
    fn drop(&mut self) {
        ARMED_BUDGET.set(self.before);
    }
}

/// True if the active budget is within `reserve` bytes of its end. The statement is then interrupted. For a statement
/// that only reads, this costs nothing else, while a refused allocation would cost its transaction.
pub(in crate::storage) fn nearly_used_up(reserve: i64) -> bool {
    let near = ARMED_BUDGET
        .get()
        .is_some_and(|budget| budget.denies(reserve) == Some(Denial::Memory));
    if near {
        deny(Denial::Memory);
    }
    near
}

/// Memory of the host that counts towards the active budget until it is dropped.
#[derive(Default)]
pub(in crate::storage) struct Charged(i64);

impl Charged {
    /// Counts more bytes. Returns `false` if the budget has no room for them.
    pub(in crate::storage) fn add(&mut self, bytes: usize) -> bool {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let admitted = admit(bytes);
        if admitted {
            count(bytes);
            self.0 += bytes;
        }
        admitted
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        count(-self.0);
    }
}

/// Reason for the first refused allocation since a budget was activated.
pub(in crate::storage) fn denied() -> Option<Denial> {
    FIRST_DENIAL.get()
}

/// Runs `body` without a budget, because its few allocations cannot fail.
pub(in crate::storage) fn exempt<T>(body: impl FnOnce() -> T) -> T {
    let _armed = Armed {
        before: ARMED_BUDGET.take(),
    };
    body()
}

fn deny(why: Denial) {
    if FIRST_DENIAL.get().is_none() {
        FIRST_DENIAL.set(Some(why));
    }
}

/// True if `more` bytes may be allocated.
fn admit(more: i64) -> bool {
    match ARMED_BUDGET.get().and_then(|budget| budget.denies(more)) {
        None => true,
        Some(why) => {
            deny(why);
            false
        }
    }
}

/// SQLite's own allocator, to which the counting one delegates.
struct Inner {
    malloc: unsafe extern "C" fn(c_int) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    realloc: unsafe extern "C" fn(*mut c_void, c_int) -> *mut c_void,
    size: unsafe extern "C" fn(*mut c_void) -> c_int,
}

static INNER: OnceLock<Inner> = OnceLock::new();
static INSTALLED: OnceLock<Result<(), c_int>> = OnceLock::new();

/// Installs the counting allocator. Must run before the process's first connection.
pub(in crate::storage) fn install() -> rusqlite::Result<()> {
    let installed = INSTALLED.get_or_init(replace_allocator);
    installed.map_err(|code| {
        rusqlite::Error::SqliteFailure(
            ffi::Error::new(code),
            Some("SQLite was used before its allocator could be replaced".to_owned()),
        )
    })
}

fn replace_allocator() -> Result<(), c_int> {
    let mut methods = ffi::sqlite3_mem_methods {
        xMalloc: None,
        xFree: None,
        xRealloc: None,
        xSize: None,
        xRoundup: None,
        xInit: None,
        xShutdown: None,
        pAppData: std::ptr::null_mut(),
    };
    // SAFETY: the option takes one pointer to such a struct, and fills it.
    check(unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_GETMALLOC, &raw mut methods) })?;
    let inner = match (methods.xMalloc, methods.xFree, methods.xRealloc, methods.xSize) {
        (Some(malloc), Some(free), Some(realloc), Some(size)) => Inner {
            malloc,
            free,
            realloc,
            size,
        },
        _ => return Err(ffi::SQLITE_INTERNAL),
    };
    INNER.get_or_init(|| inner);
    methods.xMalloc = Some(malloc);
    methods.xFree = Some(free);
    methods.xRealloc = Some(realloc);
    // SAFETY: the option takes one pointer to such a struct, and copies it. The functions keep the contract of
    // those that they stand for, and are there as long as the process.
    check(unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_MALLOC, &raw const methods) })?;
    // SAFETY: the option takes an int.
    check(unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_STMTJRNL_SPILL, JOURNAL_SPILL) })
}

fn check(code: c_int) -> Result<(), c_int> {
    if code == ffi::SQLITE_OK { Ok(()) } else { Err(code) }
}

fn count(more: i64) {
    let held = HELD_BYTES.get().saturating_add(more);
    HELD_BYTES.set(held);
    #[cfg(test)]
    PEAK_BYTES.set(PEAK_BYTES.get().max(held));
}

/// Bytes that SQLite holds from this thread's allocations.
#[cfg(test)]
pub(in crate::storage) fn held() -> i64 {
    PEAK_BYTES.set(HELD_BYTES.get());
    HELD_BYTES.get()
}

/// Highest number of bytes since [`held`].
#[cfg(test)]
pub(in crate::storage) fn take_peak() -> i64 {
    PEAK_BYTES.get()
}

unsafe extern "C" fn malloc(bytes: c_int) -> *mut c_void {
    let Some(inner) = INNER.get() else {
        return std::ptr::null_mut();
    };
    if !admit(bytes.into()) {
        return std::ptr::null_mut();
    }
    // SAFETY: SQLite asks for a positive number of bytes, as the allocator wants it.
    let block = unsafe { (inner.malloc)(bytes) };
    if !block.is_null() {
        // SAFETY: the allocator made the block just now.
        count(i64::from(unsafe { (inner.size)(block) }) + ALLOCATION_OVERHEAD_BYTES);
    }
    block
}

unsafe extern "C" fn free(block: *mut c_void) {
    if let Some(inner) = INNER.get() {
        // SAFETY: SQLite frees blocks of this allocator only, never null, each once.
        unsafe {
            count(-i64::from((inner.size)(block)) - ALLOCATION_OVERHEAD_BYTES);
            (inner.free)(block);
        }
    }
}

unsafe extern "C" fn realloc(block: *mut c_void, bytes: c_int) -> *mut c_void {
    let Some(inner) = INNER.get() else {
        return std::ptr::null_mut();
    };
    // SAFETY: SQLite reallocates blocks of this allocator only, never null.
    let before = i64::from(unsafe { (inner.size)(block) });
    let more = i64::from(bytes) - before;
    if more > 0 && !admit(more) {
        return std::ptr::null_mut();
    }
    // SAFETY: as above, and the size is positive.
    let moved = unsafe { (inner.realloc)(block, bytes) };
    if !moved.is_null() {
        // SAFETY: the allocator made the block just now.
        count(i64::from(unsafe { (inner.size)(moved) }) - before);
    }
    moved
}
