//! Reading bodies, in memory that identities share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, Bytes};
use futures::StreamExt as _;
use tollgate_core::share::{Holdings, Share};

/// Memory for bodies: for so many of the longest, and at least so many bytes.
const LONGEST: usize = 16;
const LEAST: usize = 64 << 20;

/// The memory for bodies.
pub(super) struct Bodies {
    limit: usize,
    memory: Arc<Mutex<Holdings>>,
}

/// Memory of one body. Dropping it makes room.
pub(super) struct Room {
    share: Share,
    bytes: usize,
    memory: Arc<Mutex<Holdings>>,
}

/// Reason why a body was not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// The body is longer than allowed.
    TooLarge,
    /// Its sender has so many bytes in memory, and what is left is for others.
    NoRoom(usize),
    /// The body broke off.
    BrokenOff,
}

impl Bodies {
    /// For bodies of at most so many bytes each.
    pub(super) fn new(limit: usize) -> Bodies {
        let memory = limit.saturating_mul(LONGEST).max(LEAST) as u64;
        Bodies {
            limit,
            memory: Arc::new(Mutex::new(Holdings::new(memory, memory))),
        }
    }

    /// Reads a body. Its memory counts until what comes with it is dropped.
    pub(super) async fn read(&self, body: Body, share: &Share) -> Result<(Bytes, Room), Unread> {
        let mut parts = body.into_data_stream();
        let mut room = Room {
            share: share.clone(),
            bytes: 0,
            memory: Arc::clone(&self.memory),
        };
        let mut first = Bytes::new();
        let mut whole = Vec::new();
        while let Some(part) = parts.next().await {
            let part = part.map_err(|_| Unread::BrokenOff)?;
            if room.bytes + part.len() > self.limit {
                return Err(Unread::TooLarge);
            }
            room.grow(part.len())?;
            // Most bodies come in one part, which needs no copy.
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
        Ok((body, room))
    }
}

impl Room {
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

impl Drop for Room {
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
        let (body, room) = bodies.read(parts(&[1, 0, 2]), &bob).await.unwrap();
        assert_eq!(body, "xxx");
        drop((room, hers));
        assert!(lock(&bodies.memory).is_unused());
        let long = bodies.read(parts(&[8 << 20, 1]), &bob).await;
        assert_eq!(long.map(drop).unwrap_err(), Unread::TooLarge);
    }
}
