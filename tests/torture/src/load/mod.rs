//! Calls of clients: one load for each pack. A new pack is one more module and one more line in [`ALL`].

mod artifacts;
mod conductor;
mod convergence;
mod envelopes;
mod gsd;
mod lasting;
mod task_store;
mod tasks;

use fastrand::Rng;
use serde_json::{Value, json};

use crate::known::{Known, Told};
use crate::look::Look;
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
    &lasting::Lasting,
];

/// Load on one pack.
pub(crate) trait Load: Sync {
    /// The next call. The pack may refuse the call with a code of its contract.
    fn next(&self, random: &mut Rng, known: &Known) -> Request;
    /// Versions of things in a successful reply.
    fn told(&self, request: &Request, reply: &Value) -> Vec<Told>;
    /// Read call whose reply must have a thing at its version or newer.
    fn ask(&self, thing: &Told) -> Option<Request>;
    /// True if an error code means that an acknowledged thing is lost. Used for calls that name such a thing.
    fn lost(&self, code: &str) -> bool;
    /// Invariants of the pack's own tables and files.
    fn check(&self, db: &dyn Look, seen: &Seen) -> anyhow::Result<Vec<Broken>>;
}

/// One call.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
    pub(crate) kind: Kind,
    /// Acknowledged thing that the call names.
    pub(crate) about: Option<Told>,
    /// True if the reply must contain that thing.
    pub(crate) tells: bool,
}

/// Kind of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Read call, whose row may be lost with its host.
    Read,
    /// Write call, which may carry an envelope and then counts in it.
    Write,
    /// Call that opens or closes an envelope or renders files, and that carries no envelope.
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

    /// Adds a thing that the call names, and that must exist.
    fn about(mut self, thing: &Told) -> Request {
        self.about = Some(thing.clone());
        self
    }

    /// Adds a thing that the reply must contain, at its version or newer.
    fn telling(self, thing: &Told) -> Request {
        Request {
            tells: true,
            ..self.about(thing)
        }
    }
}

/// A new unique word.
fn word(random: &mut Rng) -> String {
    format!("{MARK}{:016x}", random.u64(..))
}

/// Prefix of every unique word.
pub(crate) const MARK: &str = "torture-";

/// A broken promise if two queries return different numbers.
fn equal(db: &dyn Look, one: &str, other: &str, what: &str) -> anyhow::Result<Option<Broken>> {
    let (one, other) = (db.count(one)?, db.count(other)?);
    let what = || format!("{what}: {one} and {other}");
    Ok((one != other).then(|| Broken::new(Promise::Whole, what())))
}

/// A broken promise if the rows that a tool left in a table are fewer than its completed runs in the ledger, or more
/// than its possible runs.
fn within(db: &dyn Look, rows: &str, tool: &str) -> anyhow::Result<Option<Broken>> {
    let left = db.count(rows)?;
    let (least, most) = runs(db, tool)?;
    let what = || format!("{tool} left {left} rows, and was done {least} to {most} times");
    Ok((!(least..=most).contains(&left)).then(|| Broken::new(Promise::Whole, what())))
}

/// Number of completed runs of a tool that runs programs, and the largest possible number.
fn runs(db: &dyn Look, tool: &str) -> anyhow::Result<(i64, i64)> {
    let done = format!("SELECT count(*) FROM core_operations WHERE tool = '{tool}' AND success = 1");
    let perhaps = format!(
        "SELECT (SELECT count(*) FROM core_operations WHERE tool = '{tool}' AND coalesce(failure_class, '') <> 'refused')
           + (SELECT count(*) FROM core_intents WHERE json_extract(operation, '$.tool') = '{tool}')"
    );
    Ok((db.count(&done)?, db.count(&perhaps)?))
}

/// Text at a pointer of a reply.
fn text<'a>(reply: &'a Value, pointer: &str) -> Option<&'a str> {
    reply.pointer(pointer).and_then(Value::as_str)
}

/// A text of about this number of bytes that begins with a unique word.
fn prose(random: &mut Rng, bytes: usize) -> String {
    let word = word(random);
    format!("{word}\n{}", "as it was\n".repeat(bytes / 10))
}

/// Arguments with a workspace.
fn at(workspace: &str, mut more: Value) -> Value {
    more["workspace"] = json!(workspace);
    more
}
