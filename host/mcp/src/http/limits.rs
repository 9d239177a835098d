//! Limits on requests in flight and on request rates, per client. Requests beyond a limit are refused.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Maximum number of clients whose rate is remembered. Those that were idle for longest are dropped.
const MAX_CLIENTS: usize = 10_000;

/// Limit that a request exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// Limit of requests in flight on the server.
    Server,
    /// Limit of requests in flight of one client.
    Client,
    /// The client has this many requests in flight, and the rest is reserved for others.
    Share(usize),
}

/// Counter of requests that have not been answered yet.
#[derive(Debug)]
pub(super) struct InFlight {
    all: AtomicUsize,
    of_client: AtomicUsize,
    counts: Arc<Mutex<HashMap<String, usize>>>,
}

/// Slot of one request. Dropping it frees the slot.
#[derive(Debug)]
pub(super) struct Slot {
    client: String,
    counts: Arc<Mutex<HashMap<String, usize>>>,
}

impl InFlight {
    pub(super) fn new(all: usize, of_client: usize) -> InFlight {
        InFlight {
            all: AtomicUsize::new(all),
            of_client: AtomicUsize::new(of_client),
            counts: Arc::default(),
        }
    }

    /// Sets new limits. Requests in flight are not affected.
    pub(super) fn bound(&self, all: usize, of_client: usize) {
        self.all.store(all, Ordering::Relaxed);
        self.of_client.store(of_client, Ordering::Relaxed);
    }

    /// Number of requests in flight.
    pub(super) fn count(&self) -> usize {
        lock(&self.counts).values().sum()
    }

    /// Takes a slot for a client's request.
    pub(super) fn take(&self, client: &str) -> Result<Slot, Full> {
        let mut counts = lock(&self.counts);
        let all = self.all.load(Ordering::Relaxed);
        let free = all.saturating_sub(counts.values().sum());
        if free == 0 {
            return Err(Full::Server);
        }
        let count = counts.entry(client.to_owned()).or_default();
        if *count >= self.of_client.load(Ordering::Relaxed) {
            return Err(Full::Client);
        }
        // Leaves room for other clients before the first request ends.
        if *count >= free {
            return Err(Full::Share(*count));
        }
        *count += 1;
        Ok(Slot {
            client: client.to_owned(),
            counts: Arc::clone(&self.counts),
        })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts);
        if let Some(count) = counts.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.client);
            }
        }
    }
}

/// Rate limiter: a number of requests per second for each client, and the same number at once after a pause.
#[derive(Debug)]
pub(super) struct Rate {
    limit: NonZeroU32,
    buckets: Mutex<HashMap<String, Bucket>>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Rate {
    pub(super) fn new(limit: NonZeroU32) -> Rate {
        Rate {
            limit,
            buckets: Mutex::default(),
        }
    }

    /// Limit per second.
    pub(super) fn limit(&self) -> u32 {
        self.limit.get()
    }

    /// Returns whether a client may send another request now.
    pub(super) fn allows(&self, client: &str, now: Instant) -> bool {
        let limit = f64::from(self.limit.get());
        let mut buckets = lock(&self.buckets);
        if buckets.len() >= MAX_CLIENTS && !buckets.contains_key(client) {
            // A bucket is full again after a second, and a full bucket carries no information.
            buckets.retain(|_, bucket| now.saturating_duration_since(bucket.at).as_secs() < 1);
        }
        let bucket = buckets
            .entry(client.to_owned())
            .or_insert(Bucket { left: limit, at: now });
        let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.left = (bucket.left + passed * limit).min(limit);
        bucket.at = now;
        let is_allowed = bucket.left >= 1.0;
        if is_allowed {
            bucket.left -= 1.0;
        }
        is_allowed
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn slots_are_counted_by_client_and_given_back() {
        let in_flight = InFlight::new(3, 2);
        let one = in_flight.take("a").unwrap();
        let _two = in_flight.take("a").unwrap();
        assert_eq!(in_flight.take("a").unwrap_err(), Full::Client);
        let _three = in_flight.take("b").unwrap();
        assert_eq!(in_flight.take("b").unwrap_err(), Full::Server);
        drop(one);
        let four = in_flight.take("c").unwrap();
        drop(four);
        assert_eq!(lock(&in_flight.counts).len(), 2);
    }

    #[test]
    fn one_client_leaves_half_to_others_and_those_leave_some_to_the_next() {
        let in_flight = InFlight::new(8, 64);
        let fill = |client: &str| std::iter::from_fn(|| in_flight.take(client).ok()).collect::<Vec<_>>();
        let slots = [fill("a"), fill("b"), fill("c"), fill("d")];
        assert_eq!(slots.each_ref().map(Vec::len), [4, 2, 1, 1]);
        assert_eq!(in_flight.take("e").unwrap_err(), Full::Server);
        drop(slots);
        assert!(lock(&in_flight.counts).is_empty());
    }

    #[test]
    fn other_bounds_hold_for_requests_that_come_from_now_on() {
        let in_flight = InFlight::new(8, 4);
        let slots = [in_flight.take("a").unwrap(), in_flight.take("a").unwrap()];
        in_flight.bound(8, 1);
        assert_eq!(in_flight.take("a").unwrap_err(), Full::Client);
        assert_eq!(in_flight.count(), 2, "those that are there stay");
        drop(slots);
        let _one = in_flight.take("a").unwrap();
        in_flight.bound(1, 1);
        assert_eq!(in_flight.take("b").unwrap_err(), Full::Server);
    }

    #[test]
    fn a_client_may_send_so_many_in_a_second() {
        let rate = Rate::new(NonZeroU32::new(10).unwrap());
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let sent = |at| (0..20).filter(|_| rate.allows("a", at)).count();
        assert_eq!(sent(after(0)), 10);
        assert_eq!(sent(after(500)), 5);
        assert_eq!(sent(after(10_000)), 10);
        assert!(rate.allows("b", after(10_000)));
    }
}
