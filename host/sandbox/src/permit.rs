//! Keys, slots and units that a policy makes a call take, and their bounds. Pure.

/// Longest key of a permit that counts once, in bytes.
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

/// A key, slot or units that a call takes in its own commit, because a policy requires it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit {
    /// Name of the component that owns the key.
    pub policy: String,
    /// Key, or name of the budget.
    pub key: String,
    /// Number of calls that may hold it, and for how long.
    pub terms: Terms,
    /// Operator's name for the policy that refuses the call without the permit. `None` in audit mode.
    pub needed_by: Option<String>,
    /// Number of the call in the request.
    pub(crate) place: usize,
}

/// Number of calls that may hold a key at a time, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Terms {
    /// One call.
    Once {
        /// Time until which it is held, in milliseconds since 1970 UTC.
        until_ms: i64,
    },
    /// A number of calls.
    Slot(Slot),
    /// Units of the named budget of the call's envelope.
    Units(i64),
}

/// Slot that a call requires, and the refusal if all are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Most calls that hold a slot at a time.
    pub slots: u32,
    /// Milliseconds for which the call holds it, from its admission.
    pub held_ms: i64,
    /// True if a call that fails keeps it.
    pub kept_by_failed: bool,
    /// True if calls that read are counted on this host alone.
    pub reads_by_host: bool,
    /// Error code of the refusal.
    pub code: String,
    /// Reason for the refusal.
    pub reason: String,
    /// Remedy for the caller, unless it is to wait.
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
    /// Slot, if it is one.
    pub fn slot(&self) -> Option<&Slot> {
        match &self.terms {
            Terms::Slot(slot) => Some(slot),
            Terms::Once { .. } | Terms::Units(_) => None,
        }
    }
}

/// Reason for which a permit is invalid.
#[derive(Debug, thiserror::Error)]
pub enum BadPermit {
    /// The key is empty or too long.
    #[error("the key has {0} bytes, but must have 1 to {MAX_KEY}")]
    Key(usize),
    /// There are too many rows.
    #[error("policies can write at most {MAX_ROWS} rows for one call")]
    TooManyRows,
    /// There are too many keys.
    #[error("at most {MAX_KEYS} keys can be taken for one call")]
    TooMany,
    /// The key of slots is empty or too long.
    #[error("the key of the slots has {0} bytes, but must have 1 to {MAX_SLOT_KEY}")]
    SlotKey(usize),
    /// The number of slots is zero or too high.
    #[error("the key has {0} slots, but must have 1 to {MAX_SLOTS}")]
    Slots(u32),
    /// The time is zero or too long.
    #[error("the duration of a slot is {0} ms, but must be from 1 to {MAX_HELD_MS} ms")]
    Held(i64),
}
