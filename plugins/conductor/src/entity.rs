//! Entities that a call changes, by the names that its row in the ledger has: `conductor/JOB-1/S2`.
//!
//! The SQL of `store` notes each of them where it writes, so that no tool can forget one. They are kept beside the
//! call instead of being passed through every function: a component runs one call at a time, on one thread.

use std::cell::RefCell;

use tollgate_sdk::{Cx, Event, LedgerError};

use crate::model::JobId;

/// Most entities that a row names.
const MAX_NAMES: usize = 200;
/// Longest name, in bytes.
const MAX_NAME: usize = 300;

thread_local! {
    static TOUCHED_NAMES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Forgets what an earlier call changed.
pub(crate) fn begin() {
    TOUCHED_NAMES.with_borrow_mut(Vec::clear);
}

/// Notes that a job changed.
pub(crate) fn job(job: &JobId) {
    note(format!("conductor/{job}"));
}

/// Notes that a part of a job changed: a step, block, log line, lesson or submission by its id, or one of the records of
/// its repository.
pub(crate) fn part(job: &JobId, part: &str) {
    note(format!("conductor/{job}/{part}"));
}

/// Notes that something of a step changed, such as a submission.
pub(crate) fn of_step(job: &JobId, step: &str, part: &str) {
    note(format!("conductor/{job}/{step}/{part}"));
}

/// Notes that something changed that belongs to no job: a template, or a lesson of another job.
pub(crate) fn apart(kind: &str, name: &str) {
    note(format!("conductor/{kind}/{name}"));
}

fn note(mut name: String) {
    name.truncate(name.floor_char_boundary(MAX_NAME));
    TOUCHED_NAMES.with_borrow_mut(|touched| {
        if touched.len() < MAX_NAMES && !touched.contains(&name) {
            touched.push(name);
        }
    });
}

/// Names the changed entities in the row of the call, if there are any.
pub(crate) fn tell(cx: &Cx<'_>, tool: &str) -> Result<(), LedgerError> {
    let names = TOUCHED_NAMES.take();
    match names.is_empty() {
        true => Ok(()),
        false => cx
            .ledger()
            .append(&Event::new(&format!("conductor.{tool}")).changed(names)),
    }
}
