//! Lanes: parallel execution of calls about different things on a database server.
//!
//! Each lane has a thread and a connection, and commits one piece of work at a time. The dispatcher takes jobs in
//! turn by identity and gives each to an idle lane. Calls that would block each other at the server wait here, so
//! that no lane waits for another, and so that answers and files leave in commit order. Jobs that need the lock of
//! all writers, or that wait for all earlier jobs, are done by the dispatcher itself once all lanes are idle.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender};
use tollgate_store::storage::{Among, Operation};

use super::Writer;
use super::among::{Turn, meet, take_alike};
use super::outage::Outage;
use crate::backlog::Backlog;
use crate::intake::{Idle, Intake, QueuedJob};
use crate::job::Job;

/// Most calls in one commit. They are about the same subject, so they could not run in parallel.
const MAX_TOGETHER: usize = 8;

/// Jobs of one transaction.
struct Work {
    among: Among,
    batch: Vec<QueuedJob>,
    rows: Vec<Operation>,
}

/// Work that a lane has begun.
struct Busy {
    among: Among,
    /// Connections of the finished calls whose rows it writes, each with the last job that arrived before the first
    /// of these calls was over. Later rows of the same connections are written later.
    told_of: HashMap<String, u64>,
    /// Connections of its calls, one entry for each call.
    connections: Vec<String>,
}

/// The dispatcher and its lanes.
pub(super) struct Lanes {
    /// Runs work that needs the exclusive lock.
    writer: Writer,
    backlog: Backlog,
    outage: Outage,
    lanes: Vec<Sender<Work>>,
    threads: Vec<JoinHandle<()>>,
    idle: Receiver<Idle>,
    /// Idle lanes. The one that was busy last comes first, because its connection and memory are warm.
    free: Vec<usize>,
    /// Work that lanes have begun.
    busy: BTreeMap<usize, Busy>,
    /// Rows of reads that are in no lane yet.
    rows: Vec<Operation>,
    /// Connections of these rows, each with the last job that arrived before the first of these calls was over.
    since: HashMap<String, u64>,
    /// Number of jobs that had arrived when rows were last taken. Calls whose rows are taken next were over after
    /// that.
    came: u64,
}

impl Lanes {
    /// Starts the lanes of a writer.
    pub(super) fn open(writer: Writer, backlog: Backlog, number: usize) -> Lanes {
        let (told, idle) = crossbeam_channel::unbounded();
        let mut lanes = Vec::new();
        let mut threads = Vec::new();
        for lane in 0..number {
            let (work, jobs) = crossbeam_channel::bounded(1);
            let beside = Writer {
                database: writer.database.clone(),
                runtime: writer.runtime.clone(),
                // Opened with the first work.
                session: None,
                committed: writer.committed.clone(),
                projector: writer.projector.clone(),
                joined: HashSet::new(),
                ran: None,
                outage: writer.outage.clone(),
                busy_until: None,
                took: Vec::new(),
            };
            let told = Sender::clone(&told);
            let thread = std::thread::Builder::new()
                .name(format!("lane-{lane}"))
                .spawn(move || serve(beside, lane, &jobs, &told))
                .expect("a thread can be started");
            lanes.push(work);
            threads.push(thread);
        }
        Lanes {
            outage: writer.outage.clone(),
            writer,
            backlog,
            lanes,
            threads,
            idle,
            free: (0..number).rev().collect(),
            busy: BTreeMap::new(),
            rows: Vec::new(),
            since: HashMap::new(),
            came: 0,
        }
    }

    /// Works until no sender is left and all jobs are done.
    pub(super) fn work(mut self, jobs: Receiver<Job>) {
        let mut intake = Intake::with_lanes(jobs, self.idle.clone());
        loop {
            let batch = match intake.next_batch() {
                Some(batch) => batch,
                // No sender is left, and rows that could not be written were tried once more.
                None if !self.busy.is_empty() => {
                    intake.wait_for_lane();
                    self.take_notice(&mut intake);
                    continue;
                }
                None if !self.rows.is_empty() => Vec::new(),
                None => break,
            };
            self.dispatch(batch, &mut intake);
            self.outage.look_again(&mut intake);
        }
        self.lanes.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }

    /// Takes the waiting rows.
    fn take_waiting(&mut self, intake: &mut Intake) {
        let before = std::mem::replace(&mut self.came, intake.arrived());
        for row in self.backlog.take() {
            self.since.entry(row.connection.clone()).or_insert(before);
            self.rows.push(row);
        }
        if !self.outage.is_hopeless() {
            // An immediate attempt would send them to a lane and back for as long as the server is unreachable.
            let (late, jobs) = self.outage.take_late();
            let connections = late.iter().map(|row| (row.connection.clone(), 0));
            self.since.extend(connections);
            self.rows.splice(..0, late);
            jobs.into_iter().for_each(|job| intake.take_in(job));
        }
    }

    fn take_notice(&mut self, intake: &mut Intake) {
        for Idle { lane, .. } in intake.heard() {
            if self.busy.remove(&lane).is_some() {
                self.free.push(lane);
            }
        }
    }

    /// Gives jobs to lanes, as far as they can begin. The others are put back.
    fn dispatch(&mut self, batch: Vec<QueuedJob>, intake: &mut Intake) {
        self.take_notice(intake);
        self.take_waiting(intake);
        if !self.rows.iter().all(Turn::is_plain) {
            // For example a row that ends an envelope, which later calls must see.
            return self.write_rows_first(batch, intake);
        }
        let mut batch = VecDeque::from(batch);
        let crowded = self.crowded(&batch);
        // Jobs that must not be overtaken.
        let mut ahead: Vec<Among> = self.busy.values().map(|busy| busy.among.clone()).collect();
        let mut left = Vec::new();
        let mut plain = Vec::new();
        let mut for_all = Vec::new();
        while let Some(queued) = batch.pop_front() {
            let Turn::Among(among) = Turn::of_job(&queued.job) else {
                for_all.push(queued);
                break;
            };
            let may_begin =
                !self.is_told_of(&queued, &crowded) && !ahead.iter().any(|other| meet(other, &among));
            if may_begin && among == Among::default() {
                plain.push(queued);
                continue;
            }
            ahead.push(among.clone());
            match self.free.pop_if(|_| may_begin) {
                Some(lane) => {
                    let batch = self.take_like(queued, &among, &mut batch, &crowded, intake);
                    let with: HashSet<&str> = batch
                        .iter()
                        .filter_map(|queued| of_connection(&queued.job))
                        .filter(|connection| !crowded.contains(*connection))
                        .collect();
                    let rows = take_rows(&mut self.rows, |connection| with.contains(connection));
                    self.begin(lane, Work { among, batch, rows });
                }
                None => left.push(queued),
            }
        }
        self.begin_plain(&mut plain);
        let is_next = left.is_empty() && plain.is_empty() && self.busy.is_empty();
        if is_next && !for_all.is_empty() {
            while let Some(queued) = batch.pop_front_if(|queued| Turn::of_job(&queued.job) == Turn::Alone) {
                for_all.push(queued);
            }
            intake.put_back(batch.into());
            let rows = self.take_all_rows();
            return self.writer.commit(&Turn::Alone, for_all, &rows, Some(intake));
        }
        let waits = !(left.is_empty() && plain.is_empty() && for_all.is_empty() && self.rows.is_empty());
        plain.extend(left);
        plain.extend(for_all);
        plain.extend(batch);
        intake.put_back(plain);
        if waits {
            intake.wait_for_news();
        }
    }

    /// Gives jobs and rows that need no lock to an idle lane, if there is one.
    fn begin_plain(&mut self, plain: &mut Vec<QueuedJob>) {
        if plain.is_empty() && self.rows.is_empty() {
            return;
        }
        let Some(lane) = self.free.pop() else {
            return;
        };
        let telling: HashSet<String> = self
            .busy
            .values()
            .flat_map(|busy| busy.told_of.keys())
            .cloned()
            .collect();
        let rows = take_rows(&mut self.rows, |connection| !telling.contains(connection));
        if plain.is_empty() && rows.is_empty() {
            return self.free.push(lane);
        }
        let batch = std::mem::take(plain);
        self.begin(
            lane,
            Work {
                among: Among::default(),
                batch,
                rows,
            },
        );
    }

    /// Writes all waiting rows, under the exclusive lock, before anything else begins.
    fn write_rows_first(&mut self, batch: Vec<QueuedJob>, intake: &mut Intake) {
        intake.put_back(batch);
        if self.busy.is_empty() {
            let rows = self.take_all_rows();
            self.writer.commit(&Turn::Alone, Vec::new(), &rows, Some(intake));
        } else {
            intake.wait_for_news();
        }
    }

    /// True if a lane writes rows of the job's connection, of calls that were over before the job arrived. Such rows
    /// come before the job's own.
    fn is_told_of(&self, queued: &QueuedJob, crowded: &HashSet<String>) -> bool {
        let connection = of_connection(&queued.job).filter(|connection| !crowded.contains(*connection));
        connection.is_some_and(|connection| {
            let mut told_of = self.busy.values().filter_map(|busy| busy.told_of.get(connection));
            told_of.any(|before| queued.number() > *before)
        })
    }

    /// Connections with several concurrent calls that write, which have no order among them. An example is the
    /// callers of one identity over HTTP, some of whom read all the time. If each write waited for earlier reads, or
    /// took their rows along, the writes would run one at a time.
    fn crowded(&self, batch: &VecDeque<QueuedJob>) -> HashSet<String> {
        let here = batch.iter().filter_map(|queued| of_connection(&queued.job));
        let there = self
            .busy
            .values()
            .flat_map(|busy| busy.connections.iter().map(String::as_str));
        let mut seen = HashSet::new();
        here.chain(there)
            .filter(|connection| !seen.insert(*connection))
            .map(str::to_owned)
            .collect()
    }

    fn take_all_rows(&mut self) -> Vec<Operation> {
        self.since.clear();
        std::mem::take(&mut self.rows)
    }

    fn begin(&mut self, lane: usize, work: Work) {
        let mut told_of = HashMap::new();
        for row in &work.rows {
            if let Some(before) = self.since.remove(&row.connection) {
                told_of.insert(row.connection.clone(), before);
            }
        }
        for queued in &work.batch {
            if let Job::Record { operation, .. } = &queued.job {
                let before = told_of.entry(operation.connection.clone());
                let before = before.or_insert(queued.number());
                *before = queued.number().min(*before);
            }
        }
        let connections = work.batch.iter().filter_map(|queued| of_connection(&queued.job));
        let busy = Busy {
            among: work.among.clone(),
            told_of,
            connections: connections.map(str::to_owned).collect(),
        };
        match self.lanes[lane].send(work) {
            Ok(()) => drop(self.busy.insert(lane, busy)),
            // Its thread panicked, so this error takes the place of its result.
            Err(failed) => {
                let Work { among, batch, rows } = failed.into_inner();
                self.writer.commit(&Turn::Among(among), batch, &rows, None);
                self.free.push(lane);
            }
        }
    }

    /// Calls that can share a commit with a given one: those about the same subject, unless an identity is slow.
    fn take_like(
        &self,
        first: QueuedJob,
        among: &Among,
        batch: &mut VecDeque<QueuedJob>,
        crowded: &HashSet<String>,
        intake: &mut Intake,
    ) -> Vec<QueuedJob> {
        intake.serve(first.share());
        if intake.is_slow(first.share()) {
            return vec![first];
        }
        let alike = take_alike(
            batch,
            among,
            MAX_TOGETHER - 1,
            |next| Turn::of_job(&next.job),
            |next| !intake.is_slow(next.share()) && !self.is_told_of(next, crowded),
        );
        alike.iter().for_each(|like| intake.serve(like.share()));
        std::iter::once(first).chain(alike).collect()
    }
}

/// Takes the rows of connections.
fn take_rows(rows: &mut Vec<Operation>, is_of: impl Fn(&str) -> bool) -> Vec<Operation> {
    rows.extract_if(.., |row| is_of(&row.connection)).collect()
}

/// Connection of a job that writes a row of a call.
fn of_connection(job: &Job) -> Option<&str> {
    match job {
        Job::Call { pending, .. } => Some(&pending.operation.connection),
        Job::Record { operation, .. } => Some(&operation.connection),
        _ => None,
    }
}

/// Reports that a lane is idle when it is dropped, even after a panic.
struct Told<'a> {
    idle: Option<Idle>,
    told: &'a Sender<Idle>,
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if let Some(idle) = self.idle.take() {
            let _ = self.told.send(idle);
        }
    }
}

/// Runs the work of a lane.
fn serve(mut writer: Writer, lane: usize, jobs: &Receiver<Work>, told: &Sender<Idle>) {
    while let Ok(Work { among, batch, rows }) = jobs.recv() {
        let mut telling = Told {
            idle: Some(Idle {
                lane,
                took: Vec::new(),
            }),
            told,
        };
        writer.commit(&Turn::Among(among), batch, &rows, None);
        if let Some(idle) = &mut telling.idle {
            idle.took = std::mem::take(&mut writer.took);
        }
        drop(telling);
        if let Some(pack) = writer.ran.take().filter(|_| jobs.is_empty()) {
            writer.runtime.prepare_pack(&Arc::clone(&pack));
        }
    }
}
