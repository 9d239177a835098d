//! Ticket lock for the database's write lock.
//!
//! SQLite grants the write lock to the process that asks at the right moment, so one that commits in a loop can starve
//! another. Here each write transaction draws a ticket, holds it as a lock on one byte of a shared file, and waits
//! until no lower byte is locked. A ticket is the time at which it was drawn, by the clock that all processes of the
//! machine share, so the order is the order of arrival. The system releases the ticket of a process that dies.
//!
//! The tickets only order the writers. Mutual exclusion is left to SQLite's own lock.

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use tollgate_core::file::NO_WAIT;

/// First and longest interval of polling the queue.
const POLL_INTERVALS: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(1)];
/// Time that the first ticket may block others before they ignore it. Its process may be suspended, and then only
/// SQLite's lock shows whether it is in the way.
const STALLED_TICKET_TIMEOUT: Duration = Duration::from_secs(1);
/// Number of neighbouring tickets that are tried if one is taken.
const TICKET_ATTEMPTS: i64 = 64;

/// Ticket lock of one session.
pub(in crate::storage) struct TicketLock {
    file: File,
    ticket: Cell<Option<i64>>,
    /// Tickets below this one are ignored.
    skip_below: Cell<i64>,
}

impl TicketLock {
    /// Opens the ticket file.
    pub(in crate::storage) fn open(path: &Path) -> std::io::Result<TicketLock> {
        let mut options = std::fs::OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(NO_WAIT)
            .open(path)?;
        Ok(TicketLock {
            file,
            ticket: Cell::new(None),
            skip_below: Cell::new(0),
        })
    }

    /// Waits for this session's turn. Without file locks there are no tickets, and only SQLite's own waiting applies.
    pub(in crate::storage) fn enter(&self) {
        self.enter_unless(|| false);
    }

    /// Waits for this session's turn, unless the caller gives up.
    pub(in crate::storage) fn enter_unless(&self, gives_up: impl Fn() -> bool) {
        self.leave();
        let Some(ticket) = self.take_ticket() else {
            return;
        };
        self.ticket.set(Some(ticket));
        let [mut pause, longest] = POLL_INTERVALS;
        let mut first: Option<(i64, Instant)> = None;
        while let Some(ahead) = self.first_before(ticket) {
            match first {
                Some((same, since)) if same == ahead => {
                    if since.elapsed() > STALLED_TICKET_TIMEOUT {
                        self.skip_below.set(ahead + 1);
                    }
                }
                _ => first = Some((ahead, Instant::now())),
            }
            if gives_up() {
                return self.leave();
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(longest);
        }
    }

    /// Releases the ticket.
    pub(in crate::storage) fn leave(&self) {
        if let Some(ticket) = self.ticket.take() {
            let _ = fcntl(
                &self.file,
                FcntlArg::F_OFD_SETLK(&range(libc::F_UNLCK, ticket, 1)),
            );
        }
    }

    fn take_ticket(&self) -> Option<i64> {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let now = now
            .tv_sec
            .saturating_mul(1_000_000_000)
            .saturating_add(now.tv_nsec);
        (now..now.saturating_add(TICKET_ATTEMPTS)).find(|ticket| {
            fcntl(
                &self.file,
                FcntlArg::F_OFD_SETLK(&range(libc::F_WRLCK, *ticket, 1)),
            )
            .is_ok()
        })
    }

    /// Lowest ticket below this one that counts.
    fn first_before(&self, ticket: i64) -> Option<i64> {
        let skip_below = self.skip_below.get();
        let mut lowest = None;
        let mut end = ticket;
        while end > skip_below {
            let mut wanted = range(libc::F_RDLCK, skip_below, end - skip_below);
            let asked = fcntl(&self.file, FcntlArg::F_OFD_GETLK(&mut wanted));
            if asked.is_err() || i32::from(wanted.l_type) == libc::F_UNLCK {
                break;
            }
            lowest = Some(wanted.l_start);
            end = wanted.l_start;
        }
        lowest
    }
}

fn range(kind: libc::c_int, start: i64, length: i64) -> libc::flock {
    libc::flock {
        l_type: libc::c_short::try_from(kind).unwrap_or_default(),
        l_whence: libc::c_short::try_from(libc::SEEK_SET).unwrap_or_default(),
        l_start: start,
        l_len: length,
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn tickets_are_served_in_the_order_they_were_drawn() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("line");
        let locks: Vec<TicketLock> = (0..4).map(|_| TicketLock::open(&path).unwrap()).collect();
        for lock in &locks {
            lock.ticket.set(lock.take_ticket());
        }
        let tickets: Vec<i64> = locks.iter().filter_map(|lock| lock.ticket.get()).collect();
        assert!(tickets.is_sorted() && tickets.len() == 4, "{tickets:?}");
        for (at, lock) in locks.iter().enumerate() {
            let ahead = locks[at].first_before(tickets[at]);
            assert_eq!(ahead, None, "everybody before has left");
            for later in &tickets[at + 1..] {
                assert_eq!(locks[3].first_before(*later), Some(tickets[at]));
            }
            lock.leave();
        }
    }

    #[test]
    fn whoever_goes_away_with_a_ticket_is_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("line");
        let gone = TicketLock::open(&path).unwrap();
        gone.enter();
        let (done, entered) = mpsc::channel();
        let waiting = std::thread::spawn(move || {
            let lock = TicketLock::open(&path).unwrap();
            lock.enter();
            done.send(()).unwrap();
        });
        drop(gone);
        entered.recv().unwrap();
        waiting.join().unwrap();
    }

    #[test]
    fn who_does_not_move_is_passed_once_and_for_all() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("line");
        let stuck = TicketLock::open(&path).unwrap();
        stuck.enter();
        let lock = TicketLock::open(&path).unwrap();
        lock.enter();
        assert_eq!(lock.skip_below.get(), stuck.ticket.get().unwrap() + 1);
        lock.leave();
        assert_eq!(lock.first_before(i64::MAX), None);
    }
}
