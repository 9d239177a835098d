//! Memory of policies during one request, until it is committed with the row of the call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tollgate_sdk::policy::memory::{MAX_CHANGES, MAX_LISTED, check_key};
use tollgate_sdk::policy::{MemoryChange, MemoryError, Remembered};
use tollgate_store::storage::{
    MemoryOwner, Namespace, PAGE_BYTES, PolicyRow, Recollection, Session, StoreResult,
};

/// Most entries that the policies of one request change.
const MAX_ENTRIES: usize = 4_096;

/// Changes of each entry, in order.
type Changes = BTreeMap<(MemoryOwner, String), Vec<MemoryChange>>;

/// Memory of policies during one request. Clones refer to the same request.
#[derive(Clone, Default)]
pub struct Memories(Arc<Mutex<SoFar>>);

#[derive(Clone, Default)]
struct SoFar {
    /// Time of the request in milliseconds since 1970 UTC.
    at_ms: i64,
    kept: Changes,
    /// Changes by the policy that is being asked.
    wanted: Changes,
    /// Number of those changes.
    count: usize,
    /// Bytes by which the entries of each component grew or shrank, the current policy included.
    grown: BTreeMap<String, i64>,
    growing: i64,
}

/// Memory of the policy that is being asked.
#[derive(Clone)]
pub struct Memory {
    /// Owner of the memory.
    pub owner: MemoryOwner,
    /// Most bytes of its memory and its tables.
    pub quota: u64,
    /// Memory of all policies in the request.
    pub all: Memories,
}

impl Memories {
    /// Empty memory of a request at a time.
    pub fn at(at_ms: i64) -> Memories {
        Memories(Arc::new(Mutex::new(SoFar {
            at_ms,
            ..SoFar::default()
        })))
    }

    /// Independent copy, because a result may be judged more than once.
    #[must_use]
    pub fn fork(&self) -> Memories {
        Memories(Arc::new(Mutex::new(self.so_far().clone())))
    }

    /// Ends the question to a policy. Its changes are kept if it returned a verdict.
    pub fn end(&self, component: &str, is_kept: bool) {
        let mut so_far = self.so_far();
        let so_far = &mut *so_far;
        let wanted = std::mem::take(&mut so_far.wanted);
        let growing = std::mem::take(&mut so_far.growing);
        so_far.count = 0;
        if !is_kept {
            return;
        }
        for (entry, changes) in wanted {
            let kept = so_far.kept.entry(entry).or_default();
            changes.into_iter().for_each(|change| add(kept, change));
        }
        *so_far.grown.entry(component.to_owned()).or_default() += growing;
    }

    /// Rows that persist the changes.
    pub fn rows(&self) -> Vec<PolicyRow> {
        let so_far = self.so_far();
        let rows = so_far.kept.iter().flat_map(|((owner, key), changes)| {
            changes.iter().map(|change| Recollection {
                owner: owner.clone(),
                key: key.clone(),
                change: change.clone(),
                at_ms: so_far.at_ms,
            })
        });
        rows.map(|row| PolicyRow::Remember(Box::new(row))).collect()
    }

    fn so_far(&self) -> MutexGuard<'_, SoFar> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SoFar {
    /// Entry after all changes in the request.
    fn applied(&self, owner: &MemoryOwner, key: &str, stored: Option<Remembered>) -> Option<Remembered> {
        let entry = (owner.clone(), key.to_owned());
        let changes = [&self.kept, &self.wanted].map(|changes| changes.get(&entry));
        let changes = changes.into_iter().flatten().flatten();
        changes.fold(stored, |entry, change| change.apply(key, entry, self.at_ms))
    }

    /// Keys with a prefix that the request changes for an owner.
    fn changed<'a>(&'a self, owner: &'a MemoryOwner, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        let keys = self.kept.keys().chain(self.wanted.keys());
        let of_owner = keys.filter(move |(whose, key)| whose == owner && key.starts_with(prefix));
        of_owner.map(|(_, key)| key.as_str())
    }
}

impl Memory {
    /// Entry of a key.
    pub fn get(&self, session: &Session, key: &str) -> StoreResult<Result<Option<Remembered>, MemoryError>> {
        if let Err(err) = check_key(key) {
            return Ok(Err(err));
        }
        let so_far = self.all.so_far();
        let stored = session.policy_memory().get(&self.owner, key, so_far.at_ms)?;
        Ok(Ok(so_far.applied(&self.owner, key, stored)))
    }

    /// Entries whose keys have a prefix, after another key if one is given.
    pub fn list(
        &self,
        session: &Session,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> StoreResult<Vec<Remembered>> {
        let limit = usize::try_from(limit.clamp(1, MAX_LISTED)).unwrap_or(usize::MAX);
        let so_far = self.all.so_far();
        let is_after = |key: &str| after.is_none_or(|after| key > after);
        let changed: Vec<&str> = so_far.changed(&self.owner, prefix).collect();
        // Entries that the request removes do not count, nor does the one to start after.
        let many = limit.saturating_add(changed.len()).saturating_add(1);
        let from = after.filter(|after| *after > prefix).unwrap_or(prefix);
        let stored = session
            .policy_memory()
            .list_from(&self.owner, from, so_far.at_ms, many)?;
        let mut found: BTreeMap<String, Remembered> = stored
            .into_iter()
            .filter(|entry| entry.key.starts_with(prefix) && is_after(&entry.key))
            .map(|entry| (entry.key.clone(), entry))
            .collect();
        for key in changed.into_iter().filter(|key| is_after(key)) {
            let stored = session.policy_memory().get(&self.owner, key, so_far.at_ms)?;
            match so_far.applied(&self.owner, key, stored) {
                Some(entry) => found.insert(key.to_owned(), entry),
                None => found.remove(key),
            };
        }
        Ok(found.into_values().take(limit).collect())
    }

    /// Changes an entry. Returns its number after the change.
    pub fn change(
        &self,
        session: &Session,
        namespace: &Namespace,
        key: &str,
        change: MemoryChange,
    ) -> StoreResult<Result<i64, MemoryError>> {
        if let Err(err) = change.check(key) {
            return Ok(Err(err));
        }
        let mut so_far = self.all.so_far();
        if so_far.count >= MAX_CHANGES {
            return Ok(Err(MemoryError::too_many()));
        }
        if so_far.kept.len() + so_far.wanted.len() >= MAX_ENTRIES {
            let why = format!("the calls of a request can change at most {MAX_ENTRIES} entries");
            return Ok(Err(MemoryError::Invalid(why)));
        }
        let stored = session.policy_memory().get(&self.owner, key, so_far.at_ms)?;
        let before = so_far.applied(&self.owner, key, stored);
        let bytes = |entry: Option<&Remembered>| entry.map_or(0, Remembered::bytes).cast_signed();
        let old = bytes(before.as_ref());
        let after = change.apply(key, before, so_far.at_ms);
        let more = bytes(after.as_ref()) - old;
        if more > 0 && self.is_full(session, namespace, &so_far, more)? {
            return Ok(Err(MemoryError::Full(self.quota)));
        }
        so_far.count += 1;
        so_far.growing += more;
        let wanted = so_far.wanted.entry((self.owner.clone(), key.to_owned()));
        add(wanted.or_default(), change);
        Ok(Ok(after.map_or(0, |entry| entry.number)))
    }

    /// True if more bytes would exceed the quota. Requests that are judged concurrently can exceed it together.
    fn is_full(
        &self,
        session: &Session,
        namespace: &Namespace,
        so_far: &SoFar,
        more: i64,
    ) -> StoreResult<bool> {
        let component = self.owner.component.as_str();
        let grown = so_far.grown.get(component).copied().unwrap_or_default();
        let tables = u64::try_from(session.components().used_pages(namespace)?).unwrap_or_default();
        let stored = session.policy_memory().bytes(component)?;
        let used = stored.saturating_add(tables.saturating_mul(PAGE_BYTES));
        let used = used.saturating_add_signed(grown.saturating_add(so_far.growing).saturating_add(more));
        if used <= self.quota {
            return Ok(false);
        }
        let over = session
            .policy_memory()
            .forgettable_bytes(component, so_far.at_ms)?;
        Ok(used.saturating_sub(over) > self.quota)
    }
}

/// Adds a change after others of the same entry, and merges as many of them as possible.
fn add(changes: &mut Vec<MemoryChange>, change: MemoryChange) {
    match (changes.last_mut(), &change) {
        (Some(MemoryChange::Add { amount, .. }), MemoryChange::Add { amount: more, .. }) => {
            *amount = amount.saturating_add(*more);
            return;
        }
        (Some(last @ MemoryChange::Put { .. }), MemoryChange::Put { .. }) => {
            *last = change;
            return;
        }
        (_, MemoryChange::Forget) => changes.clear(),
        _ => {}
    }
    changes.push(change);
}
