//! Promises of hosts, in the words of a failure report.

use std::fmt;

/// A promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promise {
    /// The row of an acknowledged reply is on disk.
    Durable,
    /// Every host shows acknowledged changes from then on, or newer ones.
    Visible,
    /// A call writes all of its rows or none, and exactly one row in the ledger.
    Whole,
    /// Files are never ahead of the rows.
    Behind,
    /// No limit is exceeded, and counters equal the ledger.
    Counted,
    /// The ledger's chain is intact.
    Chained,
    /// The database passes its engine's own check of tables and indexes.
    Sound,
    /// A start closes everything that dead hosts left open, and nothing of living hosts.
    Buried,
    /// Other hosts continue to serve.
    Serving,
}

impl Promise {
    const fn text(self) -> &'static str {
        match self {
            Promise::Durable => "a reply that was sent is on disk",
            Promise::Visible => {
                "what was acknowledged is answered by every host, once, and never as it was before"
            }
            Promise::Whole => "a call leaves all of its rows or none, and one row in the ledger",
            Promise::Behind => "files are never ahead of the rows, and show all of them once written anew",
            Promise::Counted => "no limit is passed, and counters equal the ledger",
            Promise::Chained => "the ledger's chain holds",
            Promise::Sound => "the database passes its engine's own check",
            Promise::Buried => "a start ends what dead hosts left open, and nothing else",
            Promise::Serving => "hosts go on serving while others die",
        }
    }
}

/// A broken promise, and the evidence.
#[derive(Debug, Clone)]
pub(crate) struct Broken {
    promise: Promise,
    what: String,
}

impl Broken {
    pub(crate) fn new(promise: Promise, what: impl Into<String>) -> Broken {
        Broken {
            promise,
            what: what.into(),
        }
    }

    pub(crate) fn promise(&self) -> Promise {
        self.promise
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\": {}", self.promise.text(), self.what)
    }
}
