//! What clients ask for: one load for each pack. A new pack is one more module and one more line in
//! [`ALL`].

mod artifacts;
mod conductor;
mod convergence;
mod envelopes;
mod gsd;
mod task_store;
mod tasks;

use fastrand::Rng;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::known::{Known, Told};
use crate::place::Seen;
use crate::promise::{Broken, Promise};

pub(crate) use envelopes::ENVELOPE;
pub(crate) use gsd::{render, shown};

/// All loads, mixed evenly.
pub(crate) const ALL: &[&dyn Load] = &[
    &task_store::TaskStore,
    &task_store::TaskStore,
    &envelopes::Envelopes,
    &tasks::Tasks,
    &tasks::Tasks,
    &gsd::Gsd,
    &gsd::Gsd,
    &conductor::Conductor,
    &convergence::Convergence,
    &artifacts::Artifacts,
];

/// The load of one pack.
pub(crate) trait Load: Sync {
    /// The next call. It may be one that is refused, as long as the refusal is in the pack's contract.
    fn next(&self, random: &mut Rng, known: &Known) -> Request;
    /// What a successful reply tells of things.
    fn told(&self, request: &Request, reply: &Value) -> Vec<Told>;
    /// The read that must tell of a thing of this load's, as it is or newer.
    fn ask(&self, thing: &Told) -> Option<Request>;
    /// Whether a code means that something acknowledged is gone. It is asked of calls that name what was.
    fn lost(&self, code: &str) -> bool;
    /// What must hold in the pack's own tables, and in its files, at any time.
    fn check(&self, db: &Connection, seen: &Seen) -> anyhow::Result<Vec<Broken>>;
}

/// One call.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
    pub(crate) kind: Kind,
    /// What was acknowledged and is named by the call.
    pub(crate) about: Option<Told>,
    /// The reply has to tell of it.
    pub(crate) tells: bool,
}

/// How a call is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Its row may be lost with its host.
    Read,
    /// It may belong to an envelope, and counts there.
    Write,
    /// It is about envelopes and the ledger themselves.
    Control,
}

impl Request {
    fn new(kind: Kind, tool: &'static str, arguments: Value) -> Request {
        Request {
            tool,
            arguments,
            kind,
            about: None,
            tells: false,
        }
    }

    fn read(tool: &'static str, arguments: Value) -> Request {
        Request::new(Kind::Read, tool, arguments)
    }

    fn write(tool: &'static str, arguments: Value) -> Request {
        Request::new(Kind::Write, tool, arguments)
    }

    fn control(tool: &'static str, arguments: Value) -> Request {
        Request::new(Kind::Control, tool, arguments)
    }

    /// It names a thing, which must be there.
    fn about(mut self, thing: &Told) -> Request {
        self.about = Some(thing.clone());
        self
    }

    /// It asks for a thing, and the reply must have it as it was or newer.
    fn telling(self, thing: &Told) -> Request {
        Request {
            tells: true,
            ..self.about(thing)
        }
    }
}

/// A word that nobody said before.
fn word(random: &mut Rng) -> String {
    format!("{MARK}{:016x}", random.u64(..))
}

/// What every such word begins with.
pub(crate) const MARK: &str = "torture-";

/// A number that a query counts.
fn count(db: &Connection, sql: &str) -> rusqlite::Result<i64> {
    db.query_row(sql, [], |row| row.get(0))
}

/// A broken promise unless two queries count the same.
fn equal(db: &Connection, one: &str, other: &str, what: &str) -> rusqlite::Result<Option<Broken>> {
    let (one, other) = (count(db, one)?, count(db, other)?);
    let what = || format!("{what}: {one} and {other}");
    Ok((one != other).then(|| Broken::new(Promise::Whole, what())))
}

/// A broken promise unless a tool that runs programs left at least as many rows in a table as the ledger
/// knows were done, and no more than may have been.
fn within(db: &Connection, rows: &str, tool: &str) -> rusqlite::Result<Option<Broken>> {
    let left = count(db, rows)?;
    let (least, most) = runs(db, tool)?;
    let what = || format!("{tool} left {left} rows, and was done {least} to {most} times");
    Ok((!(least..=most).contains(&left)).then(|| Broken::new(Promise::Whole, what())))
}

/// How often a tool that runs programs was done, and how often it may have been.
fn runs(db: &Connection, tool: &str) -> rusqlite::Result<(i64, i64)> {
    let done = format!("SELECT count(*) FROM core_operations WHERE tool = '{tool}' AND success = 1");
    let perhaps = format!(
        "SELECT (SELECT count(*) FROM core_operations WHERE tool = '{tool}' AND coalesce(failure_class, '') <> 'refused')
           + (SELECT count(*) FROM core_intents WHERE json_extract(operation, '$.tool') = '{tool}')"
    );
    Ok((count(db, &done)?, count(db, &perhaps)?))
}

/// A value of a reply as a text.
fn text<'a>(reply: &'a Value, pointer: &str) -> Option<&'a str> {
    reply.pointer(pointer).and_then(Value::as_str)
}

/// Some text of about so many bytes that begins with a word.
fn prose(random: &mut Rng, bytes: usize) -> String {
    let word = word(random);
    format!("{word}\n{}", "as it was\n".repeat(bytes / 10))
}

/// `{"workspace": …}` with more.
fn at(workspace: &str, mut more: Value) -> Value {
    more["workspace"] = json!(workspace);
    more
}
