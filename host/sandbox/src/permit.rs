//! Keys, slots and units that a policy wants a call to take, and their bounds. Pure.

/// Longest key of what counts once, in bytes.
pub(crate) const MAX_KEY: usize = 200;
/// Most keys that a policy takes for one call.
pub(crate) const MAX_KEYS: usize = 16;
/// Most rows that policies write for one request.
pub(crate) const MAX_ROWS: usize = 64;
/// Longest key of slots, in bytes.
pub(crate) const MAX_SLOT_KEY: usize = 4_000;
/// Most slots of one key.
pub(crate) const MAX_SLOTS: u32 = 1_000;
/// Longest time that a slot is held, in milliseconds: about a year.
pub(crate) const MAX_HELD_MS: i64 = 366 * 24 * 3_600_000;

/// A key, slot or units that a call takes in its own commit, because a policy wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit {
    /// The name of the component that owns the key.
    pub policy: String,
    /// The key, or the name of the budget.
    pub key: String,
    /// The time and the number of calls that may have it.
    pub terms: Terms,
    /// The operator's name for the policy that refuses the call without it. Without a name the policy only looks on.
    pub needed_by: Option<String>,
    /// The number of the call in the request.
    pub(crate) place: usize,
}

/// The number of calls that may have a key at a time, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Terms {
    /// One call.
    Once {
        /// Until when, in milliseconds since 1970 UTC.
        until_ms: i64,
    },
    /// A number of calls.
    Slot(Slot),
    /// Units of the named budget of the call's envelope.
    Units(i64),
}

/// A slot that a call wants, and its refusal if all are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// At most so many calls have one at a time.
    pub slots: u32,
    /// Milliseconds that the call has it, from its admission on.
    pub held_ms: i64,
    /// A call that fails keeps it.
    pub kept_by_failed: bool,
    /// Calls that read are counted by this host alone.
    pub reads_by_host: bool,
    /// The refusal's code.
    pub code: String,
    /// Its reason.
    pub reason: String,
    /// The caller's remedy, unless that is to wait.
    pub remediation: Option<String>,
}

impl Slot {
    pub(crate) fn check(&self, key: &str) -> Result<(), BadPermit> {
        if key.is_empty() || key.len() > MAX_SLOT_KEY {
            return Err(BadPermit::SlotKey(key.len()));
        }
        if !(1..=MAX_SLOTS).contains(&self.slots) {
            return Err(BadPermit::Slots(self.slots));
        }
        if !(1..=MAX_HELD_MS).contains(&self.held_ms) {
            return Err(BadPermit::Held(self.held_ms));
        }
        Ok(())
    }
}

impl Terms {
    pub(crate) fn is_once(&self) -> bool {
        matches!(self, Terms::Once { .. })
    }

    pub(crate) fn is_slot(&self) -> bool {
        matches!(self, Terms::Slot(_))
    }
}

impl Permit {
    /// The slot, if it is one.
    pub fn slot(&self) -> Option<&Slot> {
        match &self.terms {
            Terms::Slot(slot) => Some(slot),
            Terms::Once { .. } | Terms::Units(_) => None,
        }
    }
}

/// A key that nobody can take.
#[derive(Debug, thiserror::Error)]
pub enum BadPermit {
    /// A key that is empty or too long.
    #[error("a key has 1 to {MAX_KEY} bytes, and this one has {0}")]
    Key(usize),
    /// There are too many rows.
    #[error("policies write at most {MAX_ROWS} rows for one call")]
    TooManyRows,
    /// There are too many.
    #[error("at most {MAX_KEYS} keys are taken for one call")]
    TooMany,
    /// A key of slots that is empty or too long.
    #[error("a key of slots has 1 to {MAX_SLOT_KEY} bytes, and this one has {0}")]
    SlotKey(usize),
    /// None, or too many.
    #[error("a key has 1 to {MAX_SLOTS} slots, and not {0}")]
    Slots(u32),
    /// No time, or too long.
    #[error("a slot is held from 1 to {MAX_HELD_MS} milliseconds, and not {0}")]
    Held(i64),
}
