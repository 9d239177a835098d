//! What hosts promise, in the words that a failure is reported in.

use std::fmt;

/// A promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promise {
    /// A reply that says "done" is on disk.
    Durable,
    /// What was acknowledged is what every host answers from then on, or something newer.
    Visible,
    /// A call leaves everything or nothing, and exactly one row.
    Whole,
    /// Files show what rows say, or what they said before.
    Behind,
    /// No limit is passed by one, and counters say what the ledger says.
    Counted,
    /// The ledger's chain holds.
    Chained,
    /// The database is sound.
    Sound,
    /// What a dead host left open is closed, and nothing of a living one.
    Buried,
    /// Other hosts go on serving.
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
            Promise::Sound => "the database passes SQLite's own check",
            Promise::Buried => "a start ends what dead hosts left open, and nothing else",
            Promise::Serving => "hosts go on serving while others die",
        }
    }
}

/// A promise that was broken, and by what one sees it.
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
