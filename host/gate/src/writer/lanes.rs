//! Lanes: calls about different things, side by side on a server.
//!
//! Each lane has a thread and a connection, and commits one piece of work at a time. The dispatcher takes jobs in turn by identity
//! and gives each to a lane that is idle. Calls that would keep each other waiting at the server wait here, so that no lane waits for another one, and
//! so that answers and files leave in the order of the commits. What wants the turn of all, or waits for all that came before, is done
//! by the dispatcher itself, once all lanes are idle.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender};
use tollgate_store::storage::{Among, Operation};

use super::Writer;
use super::among::{Turn, meet};
use super::outage::Outage;
use crate::backlog::Backlog;
use crate::intake::{Idle, Intake, Pending};
use crate::job::Job;

/// Most calls of one commit. They are about the same, so that they could not be side by side.
const MAX_TOGETHER: usize = 8;

/// Jobs of one transaction.
struct Work {
    among: Among,
    batch: Vec<Pending>,
    rows: Vec<Operation>,
}

/// The dispatcher and its lanes.
pub(super) struct Lanes {
    /// Does what wants the turn of all.
    writer: Writer,
    backlog: Backlog,
    outage: Outage,
    lanes: Vec<Sender<Work>>,
    threads: Vec<JoinHandle<()>>,
    idle: Receiver<Idle>,
    /// Lanes with nothing to do. The one that was busy last comes first, because its connection and memory are warm.
    free: Vec<usize>,
    /// What lanes are at work on.
    busy: BTreeMap<usize, Among>,
    /// Rows of reads that are in no lane yet.
    rows: Vec<Operation>,
}

impl Lanes {
    /// Starts lanes like a writer.
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
        }
    }

    /// Works until nobody can send any job any more and all are done.
    pub(super) fn work(mut self, jobs: Receiver<Job>) {
        let mut intake = Intake::with_lanes(jobs, self.idle.clone());
        loop {
            let batch = match intake.next_batch() {
                Some(batch) => batch,
                // Nobody sends any more. What lanes could not write comes back as rows that wait.
                None if !self.busy.is_empty() => {
                    intake.wait_for_lane();
                    Vec::new()
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

    fn take_notice(&mut self, intake: &mut Intake) {
        for Idle { lane, .. } in intake.heard() {
            if self.busy.remove(&lane).is_some() {
                self.free.push(lane);
            }
        }
    }

    /// Gives jobs to lanes as far as they can begin. The others are put back.
    fn dispatch(&mut self, batch: Vec<Pending>, intake: &mut Intake) {
        self.take_notice(intake);
        self.rows.extend(self.outage.with_late(self.backlog.take()));
        let mut batch = VecDeque::from(batch);
        // What may not begin, because it would overtake.
        let mut ahead: Vec<Among> = self.busy.values().cloned().collect();
        let mut left = Vec::new();
        let mut plain = Vec::new();
        let mut for_all = Vec::new();
        while let Some(pending) = batch.pop_front() {
            match Turn::of_job(&pending.job) {
                Turn::Among(among) if among == Among::default() => plain.push(pending),
                Turn::Among(among) => {
                    let may_begin = !ahead.iter().any(|other| meet(other, &among));
                    ahead.push(among.clone());
                    match self.free.pop_if(|_| may_begin) {
                        Some(lane) => {
                            let together = take_like(pending, &among, &mut batch, intake);
                            let rows = self.rows_beside();
                            self.begin(
                                lane,
                                Work {
                                    among,
                                    batch: together,
                                    rows,
                                },
                            );
                        }
                        None => left.push(pending),
                    }
                }
                Turn::Alone => {
                    for_all.push(pending);
                    break;
                }
            }
        }
        if (!plain.is_empty() || self.rows.iter().any(Turn::is_plain))
            && let Some(lane) = self.free.pop()
        {
            let rows = self.rows_beside();
            let batch = std::mem::take(&mut plain);
            self.begin(
                lane,
                Work {
                    among: Among::default(),
                    batch,
                    rows,
                },
            );
        }
        let is_next = left.is_empty() && plain.is_empty() && self.busy.is_empty();
        if is_next && !(for_all.is_empty() && self.rows.is_empty()) {
            while let Some(pending) = batch.pop_front_if(|pending| Turn::of_job(&pending.job) == Turn::Alone)
            {
                for_all.push(pending);
            }
            intake.put_back(batch.into());
            let rows = std::mem::take(&mut self.rows);
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

    /// Rows that need no turn.
    fn rows_beside(&mut self) -> Vec<Operation> {
        match self.rows.iter().all(Turn::is_plain) {
            true => std::mem::take(&mut self.rows),
            false => {
                let (beside, alone) = std::mem::take(&mut self.rows)
                    .into_iter()
                    .partition(Turn::is_plain);
                self.rows = alone;
                beside
            }
        }
    }

    fn begin(&mut self, lane: usize, work: Work) {
        let among = work.among.clone();
        match self.lanes[lane].send(work) {
            Ok(()) => drop(self.busy.insert(lane, among)),
            // Its thread ended in a panic. The others go on.
            Err(failed) => {
                let Work { among, batch, rows } = failed.into_inner();
                self.writer.commit(&Turn::Among(among), batch, &rows, None);
            }
        }
    }
}

/// The calls that share a commit with one: those that are as much about the same, if nobody is slow.
fn take_like(
    first: Pending,
    among: &Among,
    batch: &mut VecDeque<Pending>,
    intake: &mut Intake,
) -> Vec<Pending> {
    intake.serve(first.share());
    let mut together = vec![first];
    if intake.is_slow(together[0].share()) {
        return together;
    }
    let mut at = 0;
    while at < batch.len() && together.len() < MAX_TOGETHER {
        let is_like = match Turn::of_job(&batch[at].job) {
            Turn::Among(other) => other == *among && !intake.is_slow(batch[at].share()),
            // What waits for all that came before it is overtaken by nothing.
            Turn::Alone => break,
        };
        match is_like.then(|| batch.remove(at)).flatten() {
            Some(like) => {
                intake.serve(like.share());
                together.push(like);
            }
            None => at += 1,
        }
    }
    together
}

/// Tells that a lane is idle when it is dropped, whatever happened before.
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

/// Does the work of a lane.
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
