//! Classes of failed calls in the ledger: the party that ended the call.

/// Class of a failed call. Error codes do not tell the class, because a component may use any code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// The host or a policy refused the call, or a policy denied its result.
    Refused,
    /// The tool itself returned the error.
    ToolError,
    /// The call succeeded, and tests that it ran failed.
    TestFailure,
    /// The component crashed, exceeded one of its limits, or sent an invalid reply.
    Trap,
    /// The host ended the call because its time was over.
    Timeout,
    /// The call was cancelled.
    Cancelled,
    /// The host or its storage failed.
    Host,
    /// The host process ended during the call.
    Interrupted,
}

impl FailureClass {
    const ALL: [FailureClass; 8] = [
        FailureClass::Refused,
        FailureClass::ToolError,
        FailureClass::TestFailure,
        FailureClass::Trap,
        FailureClass::Timeout,
        FailureClass::Cancelled,
        FailureClass::Host,
        FailureClass::Interrupted,
    ];

    /// Class from its name in the ledger.
    pub fn parse(text: &str) -> Option<FailureClass> {
        FailureClass::ALL.into_iter().find(|class| class.as_str() == text)
    }

    /// Name in the ledger.
    pub const fn as_str(self) -> &'static str {
        match self {
            FailureClass::Refused => "refused",
            FailureClass::ToolError => "tool_error",
            FailureClass::TestFailure => "test_failure",
            FailureClass::Trap => "trap",
            FailureClass::Timeout => "timeout",
            FailureClass::Cancelled => "cancelled",
            FailureClass::Host => "host",
            FailureClass::Interrupted => "interrupted",
        }
    }

    /// True if the result of the call is the tool's own.
    pub const fn is_of_tool(self) -> bool {
        match self {
            FailureClass::ToolError | FailureClass::TestFailure => true,
            FailureClass::Refused
            | FailureClass::Trap
            | FailureClass::Timeout
            | FailureClass::Cancelled
            | FailureClass::Host
            | FailureClass::Interrupted => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_read_as_it_is_written() {
        for class in FailureClass::ALL {
            assert_eq!(FailureClass::parse(class.as_str()), Some(class));
        }
        assert_eq!(FailureClass::parse("other"), None);
    }
}
