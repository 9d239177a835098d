//! Queue in front of the readers. Keeps only as many readers awake as the machine has cores, and wakes the one that
//! slept last first, because its caches are warm. Further readers wake when guests stall, or when calls of another
//! identity arrive while all awake readers are busy.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

use tollgate_core::share::Share;

use super::turns::Turns;

/// Jobs, and the readers that wait for them.
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    /// Number of readers that are woken immediately.
    enough: usize,
}

struct State<T> {
    jobs: Turns<T>,
    /// Sleeping readers. The last one fell asleep last.
    asleep: Vec<Thread>,
    awake: usize,
    closed: bool,
}

impl<T> Queue<T> {
    /// Queue for this many readers, all of which are awake until they find no job.
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
        // Awake readers work for others, and the next job of those may take long.
        let wants_its_own = state.jobs.is_newcomer(&share);
        state.jobs.push(share, job);
        if state.awake < self.enough || wants_its_own {
            wake_one(state);
        }
    }

    /// Wakes one more reader if jobs wait that may run now, because the awake readers have stalled.
    pub(super) fn hurry(&self) {
        let state = self.state();
        if state.jobs.has_next() {
            wake_one(state);
        }
    }

    /// Next job and its share, for a reader that has finished a job of `done`. `None` once the queue is closed and
    /// empty.
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
            // Jobs that wait for a reader of their identity are run by the readers that finish.
            if state.closed {
                return None;
            }
            state.awake -= 1;
            state.asleep.push(me.clone());
            // The waker removes a reader from the list, so a spurious wake-up is detected.
            while state.asleep.iter().any(|asleep| asleep.id() == me.id()) {
                drop(state);
                std::thread::park();
                state = self.state();
            }
        }
    }

    /// Closes the queue: readers end when all jobs are done.
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
    use std::thread::JoinHandle;

    use super::*;

    /// Job that stalls until its channel is closed or has a message.
    type Stall = Option<mpsc::Receiver<()>>;

    /// Identity of a finished job, and whether the job stalled.
    type Done = (String, bool);

    /// Readers of a queue, and the jobs that they finish.
    fn readers(queue: &Arc<Queue<Stall>>, count: usize) -> (Vec<JoinHandle<()>>, mpsc::Receiver<Done>) {
        let (done, heard) = mpsc::channel();
        let reader = |_| {
            let (queue, done) = (Arc::clone(queue), done.clone());
            std::thread::spawn(move || {
                let mut last = None;
                while let Some((share, job)) = queue.pop(last.take()) {
                    let stalled = job.is_some();
                    job.map(|stall| stall.recv());
                    done.send((share.to_string(), stalled)).unwrap();
                    last = Some(share);
                }
            })
        };
        ((0..count).map(reader).collect(), heard)
    }

    #[test]
    fn every_job_is_done_once_and_a_stalled_reader_holds_up_nobody() {
        let queue = Arc::new(Queue {
            enough: 1,
            ..Queue::new(3)
        });
        let (readers, heard) = readers(&queue, 3);
        let (release, stall) = mpsc::channel();
        queue.push(Share::default(), Some(stall));
        for _ in 0..100 {
            queue.push(Share::default(), None);
            queue.hurry();
        }
        assert!((0..100).all(|_| !heard.recv().unwrap().1));
        release.send(()).unwrap();
        assert!(heard.recv().unwrap().1);
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
        let (readers, heard) = readers(&queue, 8);
        let mut releases = Vec::new();
        for _ in 0..100 {
            let (release, stall) = mpsc::channel();
            releases.push(release);
            queue.push(Share::named("ada"), Some(stall));
            queue.hurry();
        }
        for _ in 0..100 {
            queue.push(Share::named("bob"), None);
            assert_eq!(heard.recv().unwrap().0, "bob");
        }
        drop(releases);
        assert!((0..100).all(|_| heard.recv().unwrap().0 == "ada"));
        queue.close();
        for reader in readers {
            reader.join().unwrap();
        }
    }
}
