//! Intake of the writer: receives jobs and forms commits from them, in turn by identity.
//!
//! A call is answered only after the commit that it shares with others. While only one identity has calls, a commit
//! takes all waiting jobs. With two or more, a commit ends after a short time, and a call that is expected to take
//! long shares its commit only with calls of its own identity.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, never, select_biased};
use tollgate_core::share::Share;
use tollgate_store::storage::StoreResult;

use super::ended::Ended;
use super::failure::Failure;
use super::job::Job;
use super::settled::Settled;
use super::turns::Turns;

/// Most jobs in one commit.
const MAX_BATCH: usize = 256;
/// Time that rows without a waiting caller may wait for others.
const ROW_DELAY_LIMIT: Duration = Duration::from_millis(50);
/// Time that calls run before a commit that another identity waits for.
const TURN_LIMIT: Duration = Duration::from_millis(5);
/// Identities whose slowness is remembered.
const MAX_SLOW: usize = 1_024;

/// A job and, after it ran, its result.
pub(super) struct QueuedJob {
    pub(super) job: Job,
    share: Share,
    /// Sequence number of its arrival.
    number: u64,
    /// Failure of the guest. A failed guest has no rows, so the failure stands even if the transaction is lost.
    pub(super) failure: Option<Box<Ended>>,
    /// Number of runs that ended with a lost connection.
    pub(super) losses: u32,
    /// Answer to send after the commit.
    pub(super) settled: Option<Box<Settled>>,
    /// True for the row of a call that another host recorded, because it declared this one dead.
    pub(super) is_recorded_elsewhere: bool,
    /// True for a row that is written later, because the database is unreachable.
    pub(super) is_kept: bool,
    /// True for work that is done later, because the database is unreachable, although its caller gets an error.
    pub(super) is_late: bool,
    /// Start of the work, and its result.
    pub(super) maintained: Option<(Instant, StoreResult<()>)>,
}

impl QueuedJob {
    /// Share of the job.
    pub(super) fn share(&self) -> &Share {
        &self.share
    }

    /// Sequence number of its arrival.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Has a call recorded as failed instead of run again.
    pub(super) fn fail(&mut self, failure: &Failure) {
        self.settled = None;
        if matches!(self.job, Job::Call { .. }) {
            let failed = || Box::new(Ended::failed(failure.clone()));
            self.failure.get_or_insert_with(failed);
        }
    }

    /// True if the job takes a turn. A job that takes none keeps no other job waiting.
    fn takes_a_turn(&self) -> bool {
        !matches!(self.job, Job::Flush(_) | Job::Pulse(_) | Job::Backlog)
    }

    /// True if the job waits for all earlier jobs.
    fn is_last(&self) -> bool {
        matches!(self.job, Job::Flush(_))
    }
}

/// Message from a lane that became idle.
pub(super) struct Idle {
    /// Number of the lane.
    pub(super) lane: usize,
    /// Time that its jobs took, and their shares.
    pub(super) took: Vec<(Share, Duration)>,
}

/// Jobs that wait for the writer.
pub(super) struct Intake {
    jobs: Receiver<Job>,
    /// Messages from lanes, if there are any.
    idle: Receiver<Idle>,
    /// True for a writer with lanes.
    has_lanes: bool,
    /// Lanes that became idle since the last check.
    heard: Vec<Idle>,
    /// True if jobs that were put back cannot begin before something changes.
    is_blocked: bool,
    turns: Turns<QueuedJob>,
    /// Jobs that wait for all earlier jobs.
    last: VecDeque<QueuedJob>,
    /// Jobs that wait for nothing.
    first: Vec<QueuedJob>,
    /// True if rows wait in the backlog.
    has_rows: bool,
    /// Time of the next attempt to write rows that could not be written.
    again_at: Option<Instant>,
    /// True if no sender is left and the last attempt is made.
    is_ending: bool,
    arrived: u64,
    /// Identities whose last call took longer than a turn.
    slow: HashSet<Share>,
    /// Identities with a call in the last commit, in the order in which they were served.
    served: Vec<Share>,
}

impl Intake {
    pub(super) fn new(jobs: Receiver<Job>) -> Intake {
        Intake {
            jobs,
            idle: never(),
            has_lanes: false,
            heard: Vec::new(),
            is_blocked: false,
            turns: Turns::new(u64::MAX, u64::MAX),
            last: VecDeque::new(),
            first: Vec::new(),
            has_rows: false,
            again_at: None,
            is_ending: false,
            arrived: 0,
            slow: HashSet::new(),
            served: Vec::new(),
        }
    }

    /// Intake of a writer with lanes.
    pub(super) fn with_lanes(jobs: Receiver<Job>, idle: Receiver<Idle>) -> Intake {
        Intake {
            idle,
            has_lanes: true,
            ..Intake::new(jobs)
        }
    }

    /// Waits for work. `None` once no sender is left and all work is done.
    pub(super) fn next_batch(&mut self) -> Option<Vec<QueuedJob>> {
        self.drain();
        let is_blocked = std::mem::take(&mut self.is_blocked) && self.heard.is_empty();
        if is_blocked || !self.is_urgent() && !self.has_rows {
            self.wait(is_blocked)?;
        }
        let patience = Instant::now() + ROW_DELAY_LIMIT;
        loop {
            self.drain();
            if self.is_urgent() {
                return Some(self.batch());
            }
            match self.jobs.recv_deadline(patience) {
                Ok(job) => self.take_in(job),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Some(self.batch());
                }
            }
        }
    }

    /// Waits for a job, for an idle lane, or for the time of another attempt.
    fn wait(&mut self, is_blocked: bool) -> Option<()> {
        if !self.has_lanes && self.again_at.is_none() {
            // Waiting for one channel begins with a short spin. Waiting for several sleeps immediately.
            let job = self.jobs.recv().ok()?;
            self.take_in(job);
            return Some(());
        }
        let again = self.again_at.map_or_else(never, crossbeam_channel::at);
        select_biased! {
            recv(self.idle) -> idle => self.heard.extend(idle),
            recv(self.jobs) -> job => match job {
                Ok(job) => self.take_in(job),
                // No sender is left.
                Err(_) if is_blocked => self.heard.push(self.idle.recv().ok()?),
                Err(_) if self.again_at.is_none() || self.is_ending => return None,
                Err(_) => {
                    self.is_ending = true;
                    self.has_rows = true;
                }
            },
            recv(again) -> _ => self.has_rows = true,
        }
        Some(())
    }

    /// Number of jobs that arrived.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Lanes that became idle since the last check.
    pub(super) fn heard(&mut self) -> Vec<Idle> {
        for idle in &self.heard {
            for (share, took) in &idle.took {
                note_speed(&mut self.slow, share, *took);
            }
        }
        std::mem::take(&mut self.heard)
    }

    /// Waits for an idle lane.
    pub(super) fn wait_for_lane(&mut self) {
        if self.heard.is_empty() {
            let idle = self.idle.recv();
            self.heard.extend(idle);
        }
    }

    /// Makes the next batch wait until something changes, because jobs that were put back cannot begin before.
    pub(super) fn wait_for_news(&mut self) {
        self.is_blocked = true;
    }

    /// True if the last call of this share took long.
    pub(super) fn is_slow(&self, share: &Share) -> bool {
        self.slow.contains(share)
    }

    /// Schedules another attempt at rows that could not be written, unless a job comes first.
    pub(super) fn look_again_in(&mut self, time: Duration) {
        self.again_at = Some(Instant::now() + time);
    }

    /// True if no job waits for the writer.
    pub(super) fn is_idle(&mut self) -> bool {
        self.drain();
        !self.is_urgent()
    }

    /// Puts back the jobs of a batch that did not begin.
    pub(super) fn put_back(&mut self, batch: Vec<QueuedJob>) {
        for queued in batch.into_iter().rev() {
            if queued.is_last() {
                self.last.push_front(queued);
            } else {
                self.turns.put_back(queued.share.clone(), queued);
            }
        }
    }

    /// Records that a commit has a call of this share.
    pub(super) fn serve(&mut self, share: &Share) {
        // A commit of one identity has many calls and needs only one entry.
        if self.served.last() != Some(share) {
            self.served.push(share.clone());
        }
    }

    /// True if a job of another share waits.
    fn others_wait(&mut self, share: &Share) -> bool {
        self.drain();
        self.turns.waiting().any(|waiting| waiting != share)
    }

    fn drain(&mut self) {
        while let Ok(idle) = self.idle.try_recv() {
            self.heard.push(idle);
        }
        while let Ok(job) = self.jobs.try_recv() {
            self.take_in(job);
        }
    }

    /// Accepts a job.
    pub(super) fn take_in(&mut self, job: Job) {
        self.arrived += 1;
        let queued = QueuedJob {
            share: job.share(),
            number: self.arrived,
            job,
            failure: None,
            losses: 0,
            settled: None,
            is_recorded_elsewhere: false,
            is_kept: false,
            is_late: false,
            maintained: None,
        };
        match queued.job {
            Job::Backlog => self.has_rows = true,
            Job::Pulse(_) => self.first.push(queued),
            Job::Flush(_) => self.last.push_back(queued),
            _ => self.turns.push(queued.share.clone(), queued),
        }
    }

    /// True if a caller waits for a commit.
    fn is_urgent(&self) -> bool {
        !(self.turns.is_empty() && self.last.is_empty() && self.first.is_empty())
    }

    /// Jobs of the next commit, in turn by identity.
    fn batch(&mut self) -> Vec<QueuedJob> {
        self.has_rows = false;
        self.again_at = None;
        let mut batch = std::mem::take(&mut self.first);
        // Jobs left over from a commit are put back before all others. Identities that were served in it come after
        // those that were not.
        for share in self.served.drain(..) {
            self.turns.move_to_end(&share);
        }
        while batch.len() < MAX_BATCH
            && let Some((_, queued)) = self.turns.next()
        {
            batch.push(queued);
        }
        self.turns.clear();
        let oldest = self.turns.heads().map(|queued| queued.number).min();
        let may_go = |last: &QueuedJob| oldest.is_none_or(|oldest| last.number < oldest);
        while let Some(last) = self.last.pop_front_if(|last| may_go(last)) {
            batch.push(last);
        }
        batch
    }
}

/// Progress of a commit.
pub(super) struct Progress {
    began: Instant,
    /// Share of the job that came first.
    first: Option<Share>,
    /// True if it has jobs of more than one identity.
    is_shared: bool,
}

impl Progress {
    pub(super) fn begin() -> Progress {
        Progress {
            began: Instant::now(),
            first: None,
            is_shared: false,
        }
    }

    /// True if the next job belongs to another commit, because others wait for this one.
    pub(super) fn is_over(&mut self, next: &QueuedJob, intake: &mut Intake) -> bool {
        let Some(first) = self.first.as_ref().filter(|_| next.takes_a_turn()) else {
            return false;
        };
        let is_company = self.is_shared || *first != next.share;
        if is_company && intake.slow.contains(&next.share) {
            return true;
        }
        self.began.elapsed() > TURN_LIMIT && (is_company || intake.others_wait(first))
    }

    /// Records that a job ran.
    pub(super) fn took(&mut self, done: &QueuedJob, began: Instant, intake: &mut Intake) {
        if !done.takes_a_turn() {
            return;
        }
        match &self.first {
            None => self.first = Some(done.share.clone()),
            Some(first) => self.is_shared |= *first != done.share,
        }
        intake.serve(&done.share);
        note_speed(&mut intake.slow, &done.share, began.elapsed());
    }
}

/// Records whether the last call of a share took long.
fn note_speed(slow: &mut HashSet<Share>, share: &Share, took: Duration) {
    if took <= TURN_LIMIT {
        if !slow.is_empty() {
            slow.remove(share);
        }
    } else if slow.len() < MAX_SLOW {
        slow.insert(share.clone());
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;
    use tollgate_store::storage::Operation;

    use super::*;

    fn job(name: &str) -> Job {
        let (done, _) = oneshot::channel();
        Job::Record {
            share: Share::named(name),
            operation: Box::new(Operation::for_tests(0, None, "2026-03-01T00:00:00.000Z")),
            task: None,
            done,
        }
    }

    /// Runs commits as the writer does, each call slower than a turn. Whose calls they were, a commit a word.
    fn run(intake: &mut Intake, commits: usize, mut meanwhile: impl FnMut(usize)) -> String {
        let mut said = Vec::new();
        for number in 0..commits {
            let mut batch = intake.next_batch().unwrap();
            let (mut turn, mut done) = (Progress::begin(), 0);
            turn.began = Instant::now().checked_sub(2 * TURN_LIMIT).unwrap();
            while done < batch.len() {
                if turn.is_over(&batch[done], intake) {
                    intake.put_back(batch.split_off(done));
                    break;
                }
                meanwhile(number);
                turn.took(&batch[done], turn.began, intake);
                done += 1;
            }
            let shares = batch.iter().map(|queued| queued.share.to_string());
            said.push(shares.collect::<String>());
        }
        said.join(" ")
    }

    #[test]
    fn who_comes_during_a_slow_call_is_next() {
        let (send, jobs) = crossbeam_channel::unbounded();
        let mut intake = Intake::new(jobs);
        for _ in 0..6 {
            send.send(job("a")).unwrap();
        }
        let said = run(&mut intake, 6, |number| {
            if number % 2 == 0 {
                send.send(job("b")).unwrap();
            }
        });
        assert_eq!(said, "a b a b a b");
    }

    #[test]
    fn who_sends_one_slow_call_after_another_has_no_second_turn_before_somebody_else() {
        let (send, jobs) = crossbeam_channel::unbounded();
        let mut intake = Intake::new(jobs);
        send.send(job("a")).unwrap();
        let said = run(&mut intake, 4, |number| match number {
            // Hers comes first, and her line is new: there was nothing left of it.
            0 => ["a", "b", "c"]
                .iter()
                .for_each(|name| send.send(job(name)).unwrap()),
            1 => send.send(job("b")).unwrap(),
            _ => {}
        });
        assert_eq!(said, "a b c a");
    }
}
