//! Failures of calls with their class, and the errors that callers get when a commit fails.

use tollgate_core::failure_class::FailureClass;
use tollgate_sdk::ToolError;
use tollgate_store::storage::{StoreError, StoreFailure};

/// Remediation for a call with an unknown outcome.
const CHECK_FIRST: &str = "Check what the call should have changed before you call again.";
/// Prefix of an error that names an obstacle.
const NOTHING_CHANGED: &str = "nothing was changed: ";

/// Error of a failed call, and its class. The code that creates a failure names the class, because a component may
/// return an error with any of the host's codes.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) class: FailureClass,
    pub(super) error: ToolError,
}

impl Failure {
    /// Refusal by the host or by a policy.
    pub(super) fn refused(error: ToolError) -> Failure {
        Failure::of(FailureClass::Refused, error)
    }

    /// Error that the tool itself returned.
    pub(super) fn of_tool(error: ToolError) -> Failure {
        Failure::of(FailureClass::ToolError, error)
    }

    /// Error of a component that was stopped, or whose reply is invalid.
    pub(super) fn trap(error: ToolError) -> Failure {
        Failure::of(FailureClass::Trap, error)
    }

    /// Error of a call whose time was over.
    pub(super) fn timeout(error: ToolError) -> Failure {
        Failure::of(FailureClass::Timeout, error)
    }

    /// Error of a call that was cancelled.
    pub(super) fn cancelled(error: ToolError) -> Failure {
        Failure::of(FailureClass::Cancelled, error)
    }

    /// Error of the host or of its storage.
    pub(super) fn host(error: ToolError) -> Failure {
        Failure::of(FailureClass::Host, error)
    }

    fn of(class: FailureClass, error: ToolError) -> Failure {
        Failure { class, error }
    }

    /// The failure with a changed error.
    pub(super) fn map(self, change: impl FnOnce(ToolError) -> ToolError) -> Failure {
        Failure::of(self.class, change(self.error))
    }
}

/// Error for the callers of a transaction that SQLite rolled back.
pub(super) fn lost_transaction() -> Failure {
    let error = ToolError::new(
        "STORAGE_FAILED",
        "storage rolled back the call's transaction; nothing was changed",
    );
    Failure::host(error.remediation("Call again; if it fails again, check the host's log."))
}

/// Error for callers of a transaction that conflicted with others in every attempt.
pub(super) fn in_the_way() -> Failure {
    let error = ToolError::new(
        "STORAGE_BUSY",
        "the call conflicted with another transaction; nothing was changed",
    );
    Failure::host(error.remediation("Call again."))
}

/// Error for callers of a commit that failed.
pub(super) fn storage_failed(err: &StoreError) -> Failure {
    if let Some(obstacle) = err.obstacle() {
        let error = ToolError::new("STORAGE_FAILED", format!("{NOTHING_CHANGED}{obstacle}"));
        return Failure::host(error.remediation(
            "Have the operator run `tollgate doctor`, which names the cause and explains how to remove it.",
        ));
    }
    Failure::host(match err.failure() {
        StoreFailure::Full => ToolError::new("STORAGE_FULL", "the disk is full; nothing was changed")
            .remediation("Free disk space and call again."),
        StoreFailure::Busy => ToolError::new(
            "STORAGE_BUSY",
            "another process has locked the database; nothing was changed",
        )
        .remediation("Call again."),
        StoreFailure::Conflict => return in_the_way(),
        StoreFailure::Interrupted => ToolError::new(
            "STORAGE_BUSY",
            "the call reached its time limit while waiting for the database; nothing was changed",
        )
        .remediation("Call again when the host has less to do, or with fewer rows at once."),
        StoreFailure::Lost => return unreachable(),
        StoreFailure::Moved => ToolError::new(
            "STORAGE_MOVED",
            "the database was moved, removed or replaced while the host was running; nothing was changed",
        )
        .remediation(
            "Have the operator stop every host of this data directory, move tollgate.db and tollgate.db-wal back, and start again.",
        ),
        _ => ToolError::new(
            "STORAGE_FAILED",
            "the call could not be committed; nothing was changed",
        )
        .remediation("Search the host's log for the operation's id."),
    })
}

/// Error for the caller of a call that lost the database server, and with it the transaction.
pub(super) fn unreachable() -> Failure {
    let error = ToolError::new(
        "STORAGE_UNREACHABLE",
        "the database server cannot be reached; nothing was changed",
    );
    Failure::host(error.remediation("Call again when the server is back."))
}

/// Error for callers whose failure could not be recorded either. After a failed flush the state of the disk is
/// unknown: a later start may find the commit, unless another one overwrote it. A server may have committed a
/// transaction that it did not acknowledge.
pub(super) fn unrecorded(err: &StoreError) -> Failure {
    let what = match err.failure() {
        StoreFailure::Flush => "the disk failed",
        StoreFailure::Unknown => "the database did not answer",
        _ => return storage_failed(err),
    };
    let error = ToolError::new(
        "OUTCOME_UNKNOWN",
        format!("{what} while the call was committed; it is unknown whether the call took effect"),
    );
    Failure::host(error.remediation(CHECK_FIRST))
}

/// Error for the caller of a call that ran outside any transaction, and whose row could not be recorded.
pub(super) fn ran_unrecorded(failure: &Failure) -> Failure {
    let mut message = "the call ran, but the ledger could not record it".to_owned();
    // The rest of the message is about a call that was rolled back.
    if let Some(obstacle) = failure.error.message.strip_prefix(NOTHING_CHANGED) {
        message.push_str(": ");
        message.push_str(obstacle);
    }
    Failure::host(ToolError::new("OUTCOME_UNKNOWN", message).remediation(CHECK_FIRST))
}

/// Error for a call whose host was declared dead, so that a row with unknown outcome exists.
pub(super) fn recorded_elsewhere() -> Failure {
    Failure::host(ToolError::new(
        "OUTCOME_UNKNOWN",
        format!(
            "{NOTHING_CHANGED}another host assumed that this one had died and recorded the call with an unknown outcome"
        ),
    ))
}

/// Error for the caller of a call that ran outside any transaction and lost the database server.
pub(super) fn ran_unreachable() -> Failure {
    let error = ToolError::new(
        "OUTCOME_UNKNOWN",
        "the database server could not be reached while the call ran; the effects of the call until then are unknown",
    );
    Failure::host(error.remediation(CHECK_FIRST))
}

/// True if a commit failed because another process was writing.
pub(super) fn is_busy(err: &StoreError) -> bool {
    err.failure() == StoreFailure::Busy
}
