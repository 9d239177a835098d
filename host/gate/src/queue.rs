//! The queue in front of the readers. It keeps as few of them awake as the machine has cores, and the one
//! that slept last wakes first: its caches are warm. Readers beyond that are for when guests stall, and for identities
//! that come while others keep those awake busy.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

use tollgate_core::share::Share;

use super::turns::Turns;

/// Jobs, and the readers that wait for one.
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    /// Readers that are woken without anybody having waited for long.
    enough: usize,
}

struct State<T> {
    jobs: Turns<T>,
    /// Readers that sleep, the last to fall asleep last.
    asleep: Vec<Thread>,
    awake: usize,
    closed: bool,
}

impl<T> Queue<T> {
    /// For this many readers, all of which are awake until they find nothing to do.
    pub(super) fn new(readers: usize) -> Queue<T> {
        Queue {
            state: Mutex::new(State {
                jobs: Turns::new(readers as u64, readers as u64),
                asleep: Vec::with_capacity(readers),
                awake: readers,
                closed: false,
            }),
            enough: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Adds a job.
    pub(super) fn push(&self, share: Share, job: T) {
        let mut state = self.state();
        // Readers that are awake work for others: the next job of those may take long.
        let wants_its_own = state.jobs.is_newcomer(&share);
        state.jobs.push(share, job);
        if state.awake < self.enough || wants_its_own {
            wake_one(state);
        }
    }

    /// Wakes one more reader if jobs wait that may have one: those that are awake have stalled.
    pub(super) fn hurry(&self) {
        let state = self.state();
        if state.jobs.has_next() {
            wake_one(state);
        }
    }

    /// The next job and whose it is, for a reader that is done with one of `done`. `None` once the queue is closed
    /// and empty.
    pub(super) fn pop(&self, done: Option<Share>) -> Option<(Share, T)> {
        let mut state = self.state();
        if let Some(share) = done {
            state.jobs.give_back(&share);
        }
        let me = std::thread::current();
        loop {
            if let Some(next) = state.jobs.next() {
                return Some(next);
            }
            // Jobs that wait for readers of their identity are done by those readers.
            if state.closed {
                return None;
            }
            state.awake -= 1;
            state.asleep.push(me.clone());
            // Whoever wakes a reader takes it off the list, so anything else that ends its sleep is seen.
            while state.asleep.iter().any(|asleep| asleep.id() == me.id()) {
                drop(state);
                std::thread::park();
                state = self.state();
            }
        }
    }

    /// Lets readers end when the jobs are done.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.awake += state.asleep.len();
        for reader in state.asleep.drain(..) {
            reader.unpark();
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake_one<T>(mut state: MutexGuard<'_, State<T>>) {
    if let Some(reader) = state.asleep.pop() {
        state.awake += 1;
        drop(state);
        reader.unpark();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn every_job_is_done_once_and_a_stalled_reader_holds_up_nobody() {
        let queue = Arc::new(Queue {
            enough: 1,
            ..Queue::new(3)
        });
        let (done, heard) = mpsc::channel();
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let (queue, done) = (Arc::clone(&queue), done.clone());
                std::thread::spawn(move || {
                    let mut last = None;
                    while let Some((share, job)) = queue.pop(last.take()) {
                        let stall: Option<mpsc::Receiver<()>> = job;
                        let stalled = stall.is_some();
                        stall.map(|stall| stall.recv());
                        done.send(stalled).unwrap();
                        last = Some(share);
                    }
                })
            })
            .collect();
        let (release, stall) = mpsc::channel();
        queue.push(Share::default(), Some(stall));
        for _ in 0..100 {
            queue.push(Share::default(), None);
            queue.hurry();
        }
        assert!((0..100).all(|_| !heard.recv().unwrap()));
        release.send(()).unwrap();
        assert!(heard.recv().unwrap());
        queue.close();
        for reader in readers {
            reader.join().unwrap();
        }
        assert!(heard.try_recv().is_err());
    }

    #[test]
    fn an_identity_that_stalls_every_reader_it_gets_leaves_some_to_others() {
        let queue = Arc::new(Queue {
            enough: 2,
            ..Queue::new(8)
        });
        let (done, heard) = mpsc::channel();
        let readers: Vec<_> = (0..8)
            .map(|_| {
                let (queue, done) = (Arc::clone(&queue), done.clone());
                std::thread::spawn(move || {
                    let mut last = None;
                    while let Some((share, job)) = queue.pop(last.take()) {
                        let stall: Option<mpsc::Receiver<()>> = job;
                        if let Some(stall) = stall {
                            let _ = stall.recv();
                        }
                        done.send(share.to_string()).unwrap();
                        last = Some(share);
                    }
                })
            })
            .collect();
        let mut releases = Vec::new();
        for _ in 0..100 {
            let (release, stall) = mpsc::channel();
            releases.push(release);
            queue.push(Share::named("ada"), Some(stall));
            queue.hurry();
        }
        for _ in 0..100 {
            queue.push(Share::named("bob"), None);
            assert_eq!(heard.recv().unwrap(), "bob");
        }
        drop(releases);
        assert!((0..100).all(|_| heard.recv().unwrap() == "ada"));
        queue.close();
        for reader in readers {
            reader.join().unwrap();
        }
    }
}
