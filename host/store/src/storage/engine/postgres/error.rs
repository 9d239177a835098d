//! Errors of PostgreSQL, classified by SQLSTATE.

use std::error::Error;
use std::fmt;

use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::storage::error::{StoreError, StoreFailure};

/// SQLSTATE raised by the host's own triggers: the row does not follow the end of its stream.
const FENCED: &str = "TG001";
/// SQLSTATE raised by the host's own functions: the host was declared dead. It rejoins, as after an outage of the
/// server.
const GONE: &str = "TG005";

/// Error of PostgreSQL, or of the connection to it.
#[derive(Debug)]
pub(in crate::storage) struct Failure {
    what: What,
    kind: StoreFailure,
}

#[derive(Debug)]
enum What {
    /// Error from the server or the client library.
    Said(tokio_postgres::Error),
    /// Error detected by the host.
    Seen(&'static str),
}

impl Failure {
    /// Error detected by the host.
    pub(super) fn seen(kind: StoreFailure, what: &'static str) -> Failure {
        Failure {
            what: What::Seen(what),
            kind,
        }
    }

    /// Error of a commit. Unless the server refused it, the outcome is unknown.
    pub(super) fn of_commit(err: tokio_postgres::Error) -> Failure {
        let was_refused = err.as_db_error().is_some_and(is_refusal);
        let failure = Failure::from(err);
        match was_refused {
            true => failure,
            false => Failure {
                kind: StoreFailure::Unknown,
                ..failure
            },
        }
    }

    /// Error of an autocommitted statement. If the connection was lost, the outcome is unknown.
    pub(super) fn of_alone(self) -> Failure {
        match self.kind {
            StoreFailure::Lost => Failure {
                kind: StoreFailure::Unknown,
                ..self
            },
            _ => self,
        }
    }

    /// Kind of the failure.
    pub(in crate::storage) fn kind(&self) -> StoreFailure {
        self.kind
    }

    /// Message of the server, if it gave one.
    pub(super) fn message(&self) -> Option<&str> {
        match &self.what {
            What::Said(err) => err.as_db_error().map(DbError::message),
            What::Seen(_) => None,
        }
    }

    /// SQLSTATE, if the server gave one.
    pub(super) fn code(&self) -> Option<&str> {
        match &self.what {
            What::Said(err) => err.code().map(SqlState::code),
            What::Seen(_) => None,
        }
    }
}

/// Kind of a library error.
fn kind(err: &tokio_postgres::Error) -> StoreFailure {
    let Some(code) = err.code() else {
        // Encoding and decoding errors are the host's fault. All others are connection errors.
        return match err.is_closed() || is_of_socket(err) {
            true => StoreFailure::Lost,
            false => StoreFailure::Other,
        };
    };
    if code == &SqlState::TOO_MANY_CONNECTIONS {
        return StoreFailure::Busy;
    }
    if err.as_db_error().is_some_and(ends_session) {
        return StoreFailure::Lost;
    }
    match code.code() {
        "40001" | "40P01" => StoreFailure::Conflict,
        "53100" => StoreFailure::Full,
        "55P03" => StoreFailure::Busy,
        "57014" => StoreFailure::Interrupted,
        "25006" | "42501" => StoreFailure::NotWritable,
        "XX001" | "XX002" => StoreFailure::Damaged,
        // The server is shutting down, crashed or is starting, or ended the session itself.
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "25P04" => StoreFailure::Lost,
        FENCED => StoreFailure::Fenced,
        GONE => StoreFailure::Lost,
        code if code.starts_with("08") => StoreFailure::Lost,
        _ => StoreFailure::Other,
    }
}

/// True if the server refused a commit and rolled back. A commit that crashed the server, for example because a flush
/// failed, may still take effect after recovery.
fn is_refusal(said: &DbError) -> bool {
    let code = said.code().code();
    let is_about_the_way = code.starts_with("08") || code.starts_with("57P") || code == "40003";
    !ends_session(said) && !is_about_the_way
}

/// True if the server ends the session, or shuts down, after this message.
fn ends_session(said: &DbError) -> bool {
    match said.parsed_severity() {
        Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
        // Older than any supported server, or not PostgreSQL.
        None => true,
    }
}

fn is_of_socket(err: &tokio_postgres::Error) -> bool {
    let mut cause = err.source();
    while let Some(found) = cause {
        if found.is::<std::io::Error>() {
            return true;
        }
        cause = found.source();
    }
    false
}

impl From<tokio_postgres::Error> for Failure {
    fn from(err: tokio_postgres::Error) -> Failure {
        Failure {
            kind: kind(&err),
            what: What::Said(err),
        }
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> StoreError {
        StoreError::of_postgres(failure)
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(err: tokio_postgres::Error) -> StoreError {
        Failure::from(err).into()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Seen(what) => f.write_str(what),
            What::Said(err) => match err.as_db_error() {
                Some(said) => write!(f, "{} (SQLSTATE {})", said.message(), said.code().code()),
                None => err.fmt(f),
            },
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.what {
            What::Said(err) => err.source().filter(|_| err.as_db_error().is_none()),
            What::Seen(_) => None,
        }
    }
}
