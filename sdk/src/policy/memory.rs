//! Memory of a policy, over all calls that it evaluates.

use thiserror::Error;

#[cfg(target_family = "wasm")]
use super::PolicyHost;
use super::host::PolicyHostRef;

/// Longest key in bytes.
///
/// ```
/// # use tollgate_sdk::policy::memory::MAX_KEY;
/// let key = format!("denied/{}", "token:ada");
/// assert!(key.len() <= MAX_KEY);
/// ```
pub const MAX_KEY: usize = 400;
/// Longest text in bytes.
///
/// ```
/// # use tollgate_sdk::policy::memory::MAX_TEXT;
/// let text = serde_json::json!({"tool": "task_create", "code": "FROZEN"}).to_string();
/// assert!(text.len() <= MAX_TEXT);
/// ```
pub const MAX_TEXT: usize = 4 << 10;
/// Maximum number of changes in one evaluation.
///
/// ```
/// # use tollgate_sdk::policy::memory::MAX_CHANGES;
/// let keys = ["denied/ada", "denied"];
/// assert!(keys.len() <= MAX_CHANGES);
/// ```
pub const MAX_CHANGES: usize = 64;
/// Largest absolute value of an entry's number and of an addition. Larger sums stay at this limit.
///
/// ```
/// # use tollgate_sdk::policy::memory::MAX_NUMBER;
/// assert_eq!(MAX_NUMBER, 9_007_199_254_740_992);
/// ```
pub const MAX_NUMBER: i64 = 1 << 53;
/// Maximum number of entries in one list.
///
/// ```
/// # use tollgate_sdk::policy::memory::MAX_LISTED;
/// let limit = 20;
/// assert!(limit <= MAX_LISTED);
/// ```
pub const MAX_LISTED: u32 = 200;
/// Bytes that an entry uses of the quota in addition to its key and text.
const ENTRY_OVERHEAD_BYTES: usize = 64;

/// Entry of a policy's memory.
///
/// ```
/// # use tollgate_sdk::policy::memory::Remembered;
/// let entry = Remembered { number: 3, ..Remembered::new("denied/ada") };
/// assert_eq!((entry.key.as_str(), entry.text), ("denied/ada", None));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// Key of the entry.
    pub key: String,
    /// Stored text.
    pub text: Option<String>,
    /// Sum of all additions.
    pub number: i64,
    /// Time at which the entry expires, in milliseconds since 1970 UTC.
    pub until_ms: Option<i64>,
}

impl Remembered {
    /// Creates an empty entry.
    #[must_use]
    pub fn new(key: impl Into<String>) -> Remembered {
        Remembered {
            key: key.into(),
            text: None,
            number: 0,
            until_ms: None,
        }
    }

    /// Checks whether the entry has expired.
    #[must_use]
    pub fn is_over(&self, now_ms: i64) -> bool {
        self.until_ms.is_some_and(|until| until <= now_ms)
    }

    /// Bytes that the entry uses of the policy's storage quota.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let bytes = self.key.len() + self.text.as_ref().map_or(0, String::len) + ENTRY_OVERHEAD_BYTES;
        bytes as u64
    }
}

/// Change of one entry. Hosts and [`Judge`](crate::native::Judge) apply changes with the same function.
///
/// ```
/// use tollgate_sdk::policy::memory::{MemoryChange, Remembered};
///
/// let change = MemoryChange::Add { amount: 2, until_ms: Some(60_000) };
/// let once = change.apply("denied/ada", None, 1_000);
/// let twice = change.apply("denied/ada", once, 2_000);
/// assert_eq!(twice.as_ref().map(|entry| entry.number), Some(4));
/// // The time of the entry is over, so counting begins anew.
/// let later = change.apply("denied/ada", twice, 60_000);
/// assert_eq!(later, Some(Remembered { number: 2, until_ms: Some(60_000), ..Remembered::new("denied/ada") }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryChange {
    /// Stores a text.
    Put {
        /// Text of the entry.
        text: String,
        /// Time at which the entry expires.
        until_ms: Option<i64>,
    },
    /// Adds to the number.
    Add {
        /// Number to add.
        amount: i64,
        /// Time at which a new entry expires. An existing entry keeps its time.
        until_ms: Option<i64>,
    },
    /// Removes the entry.
    Forget,
}

impl MemoryChange {
    /// Entry after the change.
    #[must_use]
    pub fn apply(&self, key: &str, entry: Option<Remembered>, now_ms: i64) -> Option<Remembered> {
        let entry = entry.filter(|entry| !entry.is_over(now_ms));
        match self {
            MemoryChange::Forget => None,
            MemoryChange::Put { text, until_ms } => Some(Remembered {
                text: Some(text.clone()),
                until_ms: *until_ms,
                ..entry.unwrap_or_else(|| Remembered::new(key))
            }),
            MemoryChange::Add { amount, until_ms } => {
                let entry = entry.unwrap_or_else(|| Remembered {
                    until_ms: *until_ms,
                    ..Remembered::new(key)
                });
                let sum = entry.number.saturating_add(*amount);
                Some(Remembered {
                    number: sum.clamp(-MAX_NUMBER, MAX_NUMBER),
                    ..entry
                })
            }
        }
    }

    /// Checks a key and the change of its entry.
    pub fn check(&self, key: &str) -> Result<(), MemoryError> {
        check_key(key)?;
        match self {
            MemoryChange::Put { text, .. } if text.len() > MAX_TEXT => Err(MemoryError::Invalid(format!(
                "the text has {} bytes; at most {MAX_TEXT} are allowed",
                text.len()
            ))),
            MemoryChange::Add { amount, .. } if !(-MAX_NUMBER..=MAX_NUMBER).contains(amount) => Err(
                MemoryError::Invalid(format!("{amount} is not within -{MAX_NUMBER} to {MAX_NUMBER}")),
            ),
            _ => Ok(()),
        }
    }
}

/// Checks a key.
///
/// ```
/// # use tollgate_sdk::policy::memory::check_key;
/// assert!(check_key("denied/ada").is_ok() && check_key("").is_err());
/// ```
pub fn check_key(key: &str) -> Result<(), MemoryError> {
    if key.is_empty() || key.len() > MAX_KEY {
        return Err(MemoryError::Invalid(format!(
            "the key has {} bytes, but must have 1 to {MAX_KEY}",
            key.len()
        )));
    }
    Ok(())
}

/// Reason why a request to the memory failed.
///
/// ```
/// # use tollgate_sdk::policy::memory::MemoryError;
/// # use tollgate_sdk::policy::CannotJudge;
/// // `?` converts the error in a policy: the call is denied, unless the policy fails open.
/// let why = CannotJudge::from(MemoryError::Full(1 << 20));
/// assert!(why.0.contains("limits.storage_mib"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MemoryError {
    /// The caller is not a policy that evaluates a call.
    #[error("only a policy that evaluates a call has a memory")]
    Denied,
    /// A key, text or number has an invalid value, or there are too many changes.
    #[error("the policy cannot remember this: {0}")]
    Invalid(String),
    /// The quota is exhausted.
    #[error("the memory and tables of the policy have reached {0} bytes, the limit of limits.storage_mib")]
    Full(u64),
    /// The host failed.
    #[error("the host could not read the memory of the policy")]
    Internal,
}

impl MemoryError {
    /// Error for an evaluation with too many changes.
    #[must_use]
    pub fn too_many() -> MemoryError {
        MemoryError::Invalid(format!("an evaluation changes at most {MAX_CHANGES} entries"))
    }
}

/// Memory of the policy. Created by [`PolicyCx::memory`](super::PolicyCx::memory).
///
/// ```
/// use tollgate_sdk::policy::{CannotJudge, Denial, Phase, Policy, PolicyCx, Request, Verdict};
///
/// /// Denies further calls of an actor after three denials within an hour.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct ThreeStrikes {}
///
/// impl Policy for ThreeStrikes {
///     const NAME: &'static str = "three-strikes";
///     const SUMMARY: &'static str = "Three denials are enough.";
///     const PHASE: Phase = Phase::Request;
///
///     fn before(&self, cx: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
///         let key = format!("denied/{}", request.identity.as_deref().unwrap_or("unknown"));
///         let denied = cx.memory().get(&key)?.map_or(0, |entry| entry.number);
///         if denied >= 3 {
///             return Ok(Denial::new("TOO_MANY_DENIALS", "3 calls were denied within an hour").into());
///         }
///         if request.tool == "note_publish" {
///             cx.memory().add(&key, 1, Some(request.at + 3_600_000))?;
///             return Ok(Denial::new("CLOSED", "nothing is published today").into());
///         }
///         Ok(Verdict::Pass)
///     }
/// }
/// # use tollgate_sdk::native::Judge;
/// let judge = Judge::<ThreeStrikes>::new("{}").unwrap();
/// for _ in 0..3 {
///     assert!(judge.before(&Request::of("note_publish", "{}")).is_denied());
/// }
/// assert!(judge.before(&Request::of("note_get", "{}")).is_denied());
/// ```
pub struct Memory<'a> {
    host: PolicyHostRef<'a>,
}

impl<'a> Memory<'a> {
    pub(super) fn new(host: PolicyHostRef<'a>) -> Memory<'a> {
        Memory { host }
    }

    /// Entry under a key.
    pub fn get(&self, key: &str) -> Result<Option<Remembered>, MemoryError> {
        self.host.recall(key)
    }

    /// Entries whose keys start with a prefix, sorted by key. Starts after another key if one is given. The limit is 1
    /// to 200.
    pub fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Remembered>, MemoryError> {
        self.host.recall_all(prefix, after, limit)
    }

    /// Stores a text under a key. Of two concurrent calls, the one that commits last wins.
    pub fn put(&self, key: &str, text: impl Into<String>, until_ms: Option<i64>) -> Result<(), MemoryError> {
        let text = text.into();
        self.host
            .remember(key, &MemoryChange::Put { text, until_ms })
            .map(drop)
    }

    /// Adds to the number under a key and returns the sum as this evaluation sees it. Additions of concurrent calls
    /// accumulate. `until_ms` applies to a new entry. An existing entry keeps its time.
    pub fn add(&self, key: &str, amount: i64, until_ms: Option<i64>) -> Result<i64, MemoryError> {
        self.host.remember(key, &MemoryChange::Add { amount, until_ms })
    }

    /// Removes the entry under a key.
    pub fn forget(&self, key: &str) -> Result<(), MemoryError> {
        self.host.remember(key, &MemoryChange::Forget).map(drop)
    }
}
