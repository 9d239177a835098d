//! Reading of request bodies, in memory that is shared among identities.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, Bytes};
use futures::StreamExt as _;
use tollgate_core::share::{Holdings, Share};

/// Memory for bodies, as a number of bodies of the maximum size.
const MAX_BODIES: usize = 16;
const MIN_MEMORY_BYTES: usize = 64 << 20;

/// Memory for bodies.
pub(super) struct Bodies {
    limit: usize,
    memory: Arc<Mutex<Holdings>>,
}

/// Memory of one body. Dropping it frees the memory.
pub(super) struct BodyReservation {
    share: Share,
    bytes: usize,
    memory: Arc<Mutex<Holdings>>,
}

/// Reason why a body was not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// The body is longer than allowed.
    TooLarge,
    /// The sender has this many bytes in memory, and the rest is reserved for others.
    NoRoom(usize),
    /// The body was cut off.
    BrokenOff,
}

impl Bodies {
    /// Creates memory for bodies of at most `limit` bytes each.
    pub(super) fn new(limit: usize) -> Bodies {
        let memory = limit.saturating_mul(MAX_BODIES).max(MIN_MEMORY_BYTES) as u64;
        Bodies {
            limit,
            memory: Arc::new(Mutex::new(Holdings::new(memory, memory))),
        }
    }

    /// Reads a body. Its memory is in use until the returned reservation is dropped.
    pub(super) async fn read(&self, body: Body, share: &Share) -> Result<(Bytes, BodyReservation), Unread> {
        let mut parts = body.into_data_stream();
        let mut reservation = BodyReservation {
            share: share.clone(),
            bytes: 0,
            memory: Arc::clone(&self.memory),
        };
        let mut first = Bytes::new();
        let mut whole = Vec::new();
        while let Some(part) = parts.next().await {
            let part = part.map_err(|_| Unread::BrokenOff)?;
            if reservation.bytes + part.len() > self.limit {
                return Err(Unread::TooLarge);
            }
            reservation.grow(part.len())?;
            // Most bodies arrive in one part, which needs no copy.
            if first.is_empty() && whole.is_empty() {
                first = part;
            } else {
                whole.extend_from_slice(&std::mem::take(&mut first));
                whole.extend_from_slice(&part);
            }
        }
        let body = if whole.is_empty() {
            first
        } else {
            Bytes::from(whole)
        };
        Ok((body, reservation))
    }
}

impl BodyReservation {
    fn grow(&mut self, bytes: usize) -> Result<(), Unread> {
        let mut memory = lock(&self.memory);
        if !memory.allows(&self.share, bytes as u64) {
            let held = memory.held(&self.share);
            return Err(Unread::NoRoom(usize::try_from(held).unwrap_or(usize::MAX)));
        }
        memory.take(&self.share, bytes as u64);
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for BodyReservation {
    fn drop(&mut self) {
        lock(&self.memory).give_back(&self.share, self.bytes as u64);
    }
}

fn lock(memory: &Mutex<Holdings>) -> MutexGuard<'_, Holdings> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(sizes: &[usize]) -> Body {
        let parts: Vec<_> = sizes
            .iter()
            .map(|&size| Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; size])))
            .collect();
        Body::from_stream(futures::stream::iter(parts))
    }

    #[tokio::test]
    async fn long_bodies_of_one_identity_leave_memory_for_another() {
        let bodies = Bodies::new(8 << 20);
        let (ada, bob) = (Share::named("ada"), Share::named("bob"));
        let mut hers = Vec::new();
        loop {
            match bodies.read(parts(&[4 << 20, 4 << 20]), &ada).await {
                Ok(read) => hers.push(read),
                Err(refused) => break assert_eq!(refused, Unread::NoRoom(64 << 20)),
            }
        }
        assert_eq!(hers.len(), 8);
        let (body, reservation) = bodies.read(parts(&[1, 0, 2]), &bob).await.unwrap();
        assert_eq!(body, "xxx");
        drop((reservation, hers));
        assert!(lock(&bodies.memory).is_unused());
        let long = bodies.read(parts(&[8 << 20, 1]), &bob).await;
        assert_eq!(long.map(drop).unwrap_err(), Unread::TooLarge);
    }
}
