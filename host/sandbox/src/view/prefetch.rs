//! Prefetching in workspaces: a thread lists and reads the files that a component announced, while the component
//! works.
//!
//! The component does not wait for the thread to start a request. If the thread has not started on a request, the
//! component's own thread does it, so a hint can slow a call down only by its own cost. The component only waits for
//! a listing that is in progress, because reading a hundred files twice takes longer. While it waits, it works on the
//! next requests, so both threads stay busy until everything has been read.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tollgate_core::deadline::Deadline;
use tollgate_sdk::{FileEntry, Listing, WorkspaceError};

use crate::workspaces::Workspace;

/// Most announced requests that are remembered.
const MAX_EXPECTED: usize = 10_000;
/// Bytes of unused results above which the thread pauses.
const MAX_HELD: usize = 8 << 20;
/// Number of requests that the thread leaves to the component, which is about to make them.
const LEFT_TO_COMPONENT: usize = 2;
/// Number of upcoming requests among which a request is looked up.
const LOOKUP_LIMIT: usize = 16;
/// Longest wait for a listing that is in progress. Starting it again would not be faster.
const LISTING_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval at which a waiting component checks its call's deadline.
const DEADLINE_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// An announced request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrefetchRequest {
    /// Listing from the beginning, of at most this many entries.
    List(String, u32),
    /// Listing, unless the directory still has the known fingerprint.
    ListUnless(String, Option<u64>, u32),
    /// Beginning of a file, of at most this many bytes.
    Read(String, u32),
}

impl PrefetchRequest {
    fn is_listing(&self) -> bool {
        !matches!(self, PrefetchRequest::Read(..))
    }
}

/// Result of a prefetch.
enum Prefetched {
    Listed(Result<Vec<FileEntry>, WorkspaceError>),
    ListedUnless(Result<Option<Listing>, WorkspaceError>),
    Read(Result<Vec<u8>, WorkspaceError>),
}

impl Prefetched {
    /// Runs a request, and gives up once `go_on` returns false.
    fn of(workspace: &Workspace, what: &PrefetchRequest, go_on: &dyn Fn() -> bool) -> Prefetched {
        let tree = &workspace.tree;
        match what {
            PrefetchRequest::List(path, limit) => {
                Prefetched::Listed(tree.list_while(path, None, *limit, go_on))
            }
            PrefetchRequest::ListUnless(path, known, limit) => {
                Prefetched::ListedUnless(tree.list_unless_while(path, *known, *limit, go_on))
            }
            PrefetchRequest::Read(path, limit) => Prefetched::Read(tree.read(path, 0, *limit)),
        }
    }

    /// Approximate size in bytes.
    fn size(&self) -> usize {
        let listed = |entries: &[FileEntry]| {
            let sizes = entries
                .iter()
                .map(|entry| size_of::<FileEntry>() + entry.path.len());
            sizes.sum()
        };
        match self {
            Prefetched::Listed(Ok(entries)) => listed(entries),
            Prefetched::ListedUnless(Ok(Some(listing))) => listed(&listing.entries),
            Prefetched::Read(Ok(content)) => content.len(),
            Prefetched::Listed(Err(_))
            | Prefetched::ListedUnless(Ok(None) | Err(_))
            | Prefetched::Read(Err(_)) => 0,
        }
    }
}

/// Announced requests of one call. The thread starts with the first one and ends with the call.
#[derive(Default)]
pub struct Prefetcher(Option<Arc<Shared>>);

#[derive(Default)]
struct Shared {
    plan: Mutex<Plan>,
    changed: Condvar,
    /// Signals that an awaited listing is complete.
    listed: Condvar,
    /// True if the call is over, or files may have changed, so that results are not needed.
    is_over: AtomicBool,
}

#[derive(Default)]
struct Plan {
    expected: VecDeque<Expected>,
    /// Progress of the thread in the queue. The component shares the lock, so the thread does not search there.
    reached: usize,
    /// Number of requests taken from the front, minus those put there.
    passed: i64,
    /// Number of the next request that is added.
    number: u64,
    /// Bytes of results that were not used yet.
    held: usize,
    /// True if the thread pauses because that is too much.
    is_full: bool,
    rests: bool,
    /// True if the component waits for a listing.
    waits: bool,
}

struct Expected {
    number: u64,
    workspace: Arc<Workspace>,
    what: PrefetchRequest,
    state: State,
}

enum State {
    Open,
    Looking,
    Seen(Prefetched),
}

impl Prefetcher {
    /// Announces requests that will come before the remaining ones.
    pub fn expect(
        &mut self,
        workspace: &Arc<Workspace>,
        next: impl DoubleEndedIterator<Item = PrefetchRequest>,
    ) {
        let shared = match &self.0 {
            Some(shared) => shared,
            None => match start() {
                Ok(shared) => self.0.insert(shared),
                Err(err) => {
                    tracing::warn!(%err, "cannot start the thread that reads workspace files ahead");
                    return;
                }
            },
        };
        let mut plan = shared.plan();
        for what in next.rev() {
            plan.add(workspace, what);
        }
        shared.wake(&mut plan);
    }

    /// Listing from the beginning, prefetched if it was announced.
    pub fn list(
        &self,
        workspace: &Arc<Workspace>,
        directory: String,
        limit: u32,
        deadline: &Deadline,
    ) -> Result<Vec<FileEntry>, WorkspaceError> {
        let what = PrefetchRequest::List(directory, limit);
        match self.see(workspace, &what, deadline) {
            Prefetched::Listed(entries) => entries,
            Prefetched::ListedUnless(_) | Prefetched::Read(_) => Err(WorkspaceError::Internal),
        }
    }

    /// Listing unless the directory is unchanged, prefetched if it was announced.
    pub fn list_unless(
        &self,
        workspace: &Arc<Workspace>,
        directory: String,
        known: Option<u64>,
        limit: u32,
        deadline: &Deadline,
    ) -> Result<Option<Listing>, WorkspaceError> {
        let what = PrefetchRequest::ListUnless(directory, known, limit);
        match self.see(workspace, &what, deadline) {
            Prefetched::ListedUnless(listing) => listing,
            Prefetched::Listed(_) | Prefetched::Read(_) => Err(WorkspaceError::Internal),
        }
    }

    /// Beginning of a file, prefetched if it was announced.
    pub fn read(
        &self,
        workspace: &Arc<Workspace>,
        path: String,
        limit: u32,
        deadline: &Deadline,
    ) -> Result<Vec<u8>, WorkspaceError> {
        let what = PrefetchRequest::Read(path, limit);
        match self.see(workspace, &what, deadline) {
            Prefetched::Read(content) => content,
            Prefetched::Listed(_) | Prefetched::ListedUnless(_) => Err(WorkspaceError::Internal),
        }
    }

    fn see(&self, workspace: &Arc<Workspace>, what: &PrefetchRequest, deadline: &Deadline) -> Prefetched {
        self.take(workspace, what, deadline)
            .unwrap_or_else(|| Prefetched::of(workspace, what, &|| !deadline.is_over()))
    }

    /// Result for a request that is made now, if it was announced near this position and prefetched. Removes this and
    /// all earlier requests.
    fn take(
        &self,
        workspace: &Arc<Workspace>,
        what: &PrefetchRequest,
        deadline: &Deadline,
    ) -> Option<Prefetched> {
        let shared = self.0.as_ref()?;
        let mut plan = shared.plan();
        let is_it =
            |expected: &Expected| expected.what == *what && Arc::ptr_eq(&expected.workspace, workspace);
        let position = plan.expected.iter().take(LOOKUP_LIMIT).position(is_it)?;
        for _ in 0..position {
            plan.pass();
        }
        if what.is_listing() {
            plan = shared.wait(plan, deadline);
        }
        let seen = plan.pass();
        if plan.is_full && plan.held < MAX_HELD / 2 {
            plan.is_full = false;
            shared.wake(&mut plan);
        }
        seen
    }

    /// Forgets all announced requests, because files may change.
    pub fn forget(&mut self) {
        self.0.take().inspect(|shared| shared.end());
    }
}

impl Drop for Prefetcher {
    fn drop(&mut self) {
        self.forget();
    }
}

impl Plan {
    /// Puts a request before all others. Drops the last one if there are too many.
    fn add(&mut self, workspace: &Arc<Workspace>, what: PrefetchRequest) {
        self.expected.push_front(Expected {
            number: self.number,
            workspace: Arc::clone(workspace),
            what,
            state: State::Open,
        });
        self.number += 1;
        self.passed -= 1;
        self.reached = 0;
        if self.expected.len() > MAX_EXPECTED {
            let last = self.expected.pop_back();
            self.release(last);
        }
    }

    /// True if the thread is working on the first request.
    fn is_looking(&self) -> bool {
        let first = self.expected.front();
        first.is_some_and(|first| matches!(first.state, State::Looking))
    }

    /// Removes the first request and its result.
    fn pass(&mut self) -> Option<Prefetched> {
        let first = self.expected.pop_front();
        self.passed += 1;
        self.reached = self.reached.saturating_sub(1);
        self.release(first)
    }

    fn release(&mut self, expected: Option<Expected>) -> Option<Prefetched> {
        let State::Seen(seen) = expected?.state else {
            return None;
        };
        self.held -= seen.size();
        Some(seen)
    }

    /// Next request to prefetch, and its position. Avoids requests that the component is about to make itself, if
    /// there are others.
    fn next(&mut self) -> Option<Work> {
        self.is_full = self.held >= MAX_HELD;
        if self.is_full {
            return None;
        }
        let further = self.open_from(LEFT_TO_COMPONENT);
        let at = further.or_else(|| {
            let first = self.expected.iter().take(LEFT_TO_COMPONENT);
            first.into_iter().position(Expected::is_open)
        })?;
        self.begin(at)
    }

    /// Next listing to prefetch while another one is awaited.
    fn next_listing(&mut self) -> Option<Work> {
        if self.held >= MAX_HELD {
            return None;
        }
        let at = self.open_from(1)?;
        let is_listing = self.expected.get(at).is_some_and(|next| next.what.is_listing());
        is_listing.then(|| self.begin(at))?
    }

    /// First request that has not been started, after `first` and the thread's position.
    fn open_from(&self, first: usize) -> Option<usize> {
        let from = self.reached.max(first);
        let further = self.expected.iter().skip(from).position(Expected::is_open)?;
        Some(from + further)
    }

    fn begin(&mut self, at: usize) -> Option<Work> {
        self.reached = self.reached.max(at + 1);
        let passed = self.passed;
        let expected = self.expected.get_mut(at)?;
        expected.state = State::Looking;
        Some(Work {
            workspace: Arc::clone(&expected.workspace),
            what: expected.what.clone(),
            position: RequestPosition {
                number: expected.number,
                key: i64::try_from(at).ok()? + passed,
            },
        })
    }

    /// Stores a result, unless the request was made in the meantime.
    fn keep(&mut self, position: &RequestPosition, seen: Prefetched) {
        let at = usize::try_from(position.key - self.passed).ok();
        if let Some(expected) = at.and_then(|at| self.expected.get_mut(at))
            && expected.number == position.number
        {
            self.held += seen.size();
            expected.state = State::Seen(seen);
        }
    }
}

impl Expected {
    fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }
}

/// A request to prefetch.
struct Work {
    workspace: Arc<Workspace>,
    what: PrefetchRequest,
    position: RequestPosition,
}

impl Work {
    fn done(&self, go_on: &dyn Fn() -> bool) -> Prefetched {
        Prefetched::of(&self.workspace, &self.what, go_on)
    }
}

/// Identity and position of a request: the sum of its index and the number of requests passed before stays constant.
struct RequestPosition {
    number: u64,
    key: i64,
}

impl Shared {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, plan: &mut Plan) {
        if std::mem::take(&mut plan.rests) {
            self.changed.notify_one();
        }
    }

    fn end(&self) {
        let mut plan = self.plan();
        self.is_over.store(true, Ordering::Relaxed);
        self.wake(&mut plan);
    }

    /// Waits for the first request if the thread is working on it, and prefetches others meanwhile.
    fn wait<'a>(&'a self, mut plan: MutexGuard<'a, Plan>, deadline: &Deadline) -> MutexGuard<'a, Plan> {
        while plan.is_looking() && !deadline.is_over() {
            let Some(work) = plan.next_listing() else {
                return self.wait_idly(plan, deadline);
            };
            drop(plan);
            plan = self.keep(&work.position, work.done(&|| !deadline.is_over()));
        }
        plan
    }

    /// Waits for the first request when there is nothing else to prefetch.
    fn wait_idly<'a>(&'a self, mut plan: MutexGuard<'a, Plan>, deadline: &Deadline) -> MutexGuard<'a, Plan> {
        let until = Instant::now() + LISTING_TIMEOUT;
        plan.waits = true;
        while plan.is_looking() && !deadline.is_over() && Instant::now() < until {
            let waited = self.listed.wait_timeout(plan, DEADLINE_CHECK_INTERVAL);
            plan = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        plan.waits = false;
        plan
    }

    fn keep(&self, position: &RequestPosition, seen: Prefetched) -> MutexGuard<'_, Plan> {
        let mut plan = self.plan();
        plan.keep(position, seen);
        if plan.waits {
            self.listed.notify_one();
        }
        plan
    }

    /// Main loop of the thread.
    fn look(&self) {
        let mut plan = self.plan();
        let go_on = || !self.is_over.load(Ordering::Relaxed);
        while go_on() {
            let Some(work) = plan.next() else {
                plan.rests = true;
                plan = self.changed.wait(plan).unwrap_or_else(PoisonError::into_inner);
                plan.rests = false;
                continue;
            };
            drop(plan);
            plan = self.keep(&work.position, work.done(&go_on));
        }
    }
}

fn start() -> std::io::Result<Arc<Shared>> {
    let shared = Arc::new(Shared::default());
    let its = Arc::clone(&shared);
    std::thread::Builder::new()
        .name("read-ahead".to_owned())
        .spawn(move || its.look())?;
    Ok(shared)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests write files of their own")]
mod tests;
